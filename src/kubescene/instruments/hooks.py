"""Hooks that let an observer follow a run without the run knowing the observer.

An `Instrument` overrides the hooks it wants; `Instruments` groups them per hook, so that a hook
nobody overrides costs one attribute look-up. Components keep the one `Instruments` of their world;
instruments are attached to it and detached from it at any time. Hooks run synchronously on the
engine thread. They must not write. An exception in a hook ends the run: a run without its record is
worth nothing.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec

import msgspec

from kubescene.actors import Actor, Role
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.clock import ScenarioStep
from kubescene.errors import ConfigurationError

if TYPE_CHECKING:
    from kubescene.api.options import OperationOrigin
    from kubescene.instruments.attempts import Preemption, SchedulingAttempt


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

    goes_with_fork: ClassVar[bool] = False
    """Whether a fork of the world gets a copy; otherwise the instrument stays with the original."""

    in_lane: ClassVar[bool] = False
    """Whether it is enough to be told of the attempts at like pods (`kubescene.lane`).

    Then it hears of no write of these, of no phase but the last of many pods, and of attempts that
    nobody explains only if it `counts_attempts`.
    """
    counts_attempts: ClassVar[bool] = False

    def object_written(self, write: ObjectWrite) -> None:
        """A write was accepted and its subscribers were told."""

    def object_removed(self, actor: Actor, record: Record) -> None:
        """An object is gone whose deletion was written earlier; ``record`` is its last state."""

    def pod_attempted(self, attempt: "SchedulingAttempt") -> None:
        """A scheduler finished one attempt at one pod; its writes were already made."""

    def pod_preempted(self, preemption: "Preemption") -> None:
        """A scheduler made a pod leave its node; its deletion was already written."""

    def phase_changed(self, change: StepPhaseChange) -> None:
        """A step phase begins."""

    def time_advanced(self, now: int) -> None:
        """Virtual time moved to ``now``."""

    def step_finished(self, step: ScenarioStep) -> None:
        """A major step came to rest."""

    def run_ended(self, phase: str, message: str) -> None:
        """The scenario reached ``Succeeded``, ``Paused`` or ``Failed``."""

    def fact_told(self, actor: Actor, fact: msgspec.Struct) -> None:
        """A controller or plugin told a fact of its own (`Instruments.tell`)."""


P = ParamSpec("P")


class Instruments:
    """Those who look on; each hook attribute is the tuple of overridden hooks of that name."""

    def __init__(self, *instruments: Instrument) -> None:
        self._attached: tuple[Instrument, ...] = ()
        self._group()
        self.attach(*instruments)

    def attach(self, *instruments: Instrument) -> None:
        """From now on they are told what happens."""
        for instrument in instruments:
            if any(each is instrument for each in self._attached):
                raise ConfigurationError(f"{instrument!r} is attached already: detach it first")
            self._attached += (instrument,)
        self._group()

    def detach(self, *instruments: Instrument) -> None:
        """They are told nothing more; who was not attached is not an error."""
        leaving = set(map(id, instruments))
        self._attached = tuple(each for each in self._attached if id(each) not in leaving)
        self._group()

    def overriding(self, *hooks: Callable[..., None]) -> list[Instrument]:
        """Those who are told by one of these hooks of `Instrument`, in order."""
        names = [hook.__name__ for hook in hooks]
        return [
            each
            for each in self._attached
            if any(getattr(type(each), name) is not getattr(Instrument, name) for name in names)
        ]

    def tell(self, actor: Actor, fact: msgspec.Struct) -> None:
        """A fact of a component's own: a struct of plain data, whose class names what happened.

        The timeline writes it down with id, step, time and who told it. It is no write: it moves no
        step and wakes nobody.
        """
        for hook in self.fact_told:
            hook(actor, fact)

    def _group(self) -> None:
        # Whoever is calling hooks right now goes on with the tuple it began with.
        instruments = self._attached
        self.object_written = _overridden(instruments, Instrument.object_written)
        self.object_removed = _overridden(instruments, Instrument.object_removed)
        self.pod_attempted = _overridden(instruments, Instrument.pod_attempted)
        self.pod_preempted = _overridden(instruments, Instrument.pod_preempted)
        self.phase_changed = _overridden(instruments, Instrument.phase_changed)
        self.time_advanced = _overridden(instruments, Instrument.time_advanced)
        self.step_finished = _overridden(instruments, Instrument.step_finished)
        self.run_ended = _overridden(instruments, Instrument.run_ended)
        self.fact_told = _overridden(instruments, Instrument.fact_told)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Instruments":
        """For a fork of the world: those who say so come along as copies."""
        copy = memo[id(self)] = Instruments()
        copy.attach(*(deepcopy(each, memo) for each in self._attached if each.goes_with_fork))
        return copy


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
