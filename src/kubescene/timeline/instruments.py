"""Hooks that let an observer follow a run without the run knowing the observer.

An `Instrument` overrides the hooks it wants; `Instruments` groups them per hook, so that a hook
nobody overrides costs one attribute look-up. Hooks run synchronously on the engine thread. They
must not write. An exception in a hook ends the run: a run without its record is worth nothing.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import msgspec

from kubescene.actors import Actor, Role
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.clock import ScenarioStep

if TYPE_CHECKING:
    from kubescene.api.options import OperationOrigin
    from kubescene.timeline.attempts import SchedulingAttempt


class ObjectWrite(msgspec.Struct, frozen=True):
    """One accepted write.

    ``role`` is what the actor was in the scenario at that moment.
    ``verb`` is ``create``, ``update``, ``patch``, ``delete`` or ``bind``. ``record`` is the state
    after it, for a delete the last state before. ``body`` is what the writer sent: the object for
    a create, the patch for a patch. ``origin`` is set when a scenario operation asked for the
    write.
    """

    actor: Actor
    role: Role
    verb: str
    subresource: str
    gvk: GroupVersionKind
    record: Record
    previous: Record | None
    body: Any = None
    patch_type: str = ""
    origin: "OperationOrigin | None" = None


class StepPhaseChange(msgspec.Struct, frozen=True):
    """The scenario moved to another step phase. Called before the work of that phase starts."""

    step: ScenarioStep
    phase: str
    controller: str


class Instrument:
    """Subclass and override what you want to see. Every hook is optional."""

    def object_written(self, write: ObjectWrite) -> None:
        """A write was accepted and its subscribers were told."""

    def pod_attempted(self, attempt: "SchedulingAttempt") -> None:
        """A scheduler finished one attempt at one pod; its writes were already made."""

    def phase_changed(self, change: StepPhaseChange) -> None:
        """A step phase begins."""

    def time_advanced(self, now: int) -> None:
        """Virtual time moved to ``now``."""

    def step_finished(self, step: ScenarioStep) -> None:
        """A major step came to rest."""

    def run_ended(self, phase: str, message: str) -> None:
        """The scenario reached ``Succeeded``, ``Paused`` or ``Failed``."""


P = ParamSpec("P")


class Instruments:
    """A fixed set of instruments; each attribute is the tuple of overridden hooks of that name."""

    def __init__(self, *instruments: Instrument) -> None:
        self.object_written = _overridden(instruments, Instrument.object_written)
        self.pod_attempted = _overridden(instruments, Instrument.pod_attempted)
        self.phase_changed = _overridden(instruments, Instrument.phase_changed)
        self.time_advanced = _overridden(instruments, Instrument.time_advanced)
        self.step_finished = _overridden(instruments, Instrument.step_finished)
        self.run_ended = _overridden(instruments, Instrument.run_ended)


def _overridden(
    instruments: Sequence[Instrument], hook: Callable[Concatenate[Instrument, P], None]
) -> tuple[Callable[P, None], ...]:
    """The bound hooks of those instruments that override this one."""
    name = hook.__name__
    return tuple(
        getattr(instrument, name)
        for instrument in instruments
        if getattr(type(instrument), name) is not hook
    )
