"""What the scenario engine needs of a world, and of the object that tells where it stands.

`kubescene.cluster.ClusterWorld` is such a world, with an embedded store; one in front of an API
server that is not ours can be another. The engine knows only this.
"""

from collections.abc import Sequence
from typing import Protocol, SupportsBytes

from kubescene.actors import Actor
from kubescene.api.gates import WriteGate
from kubescene.api.scheme import Scheme
from kubescene.client import Client
from kubescene.clock import Clock, EventQueue, ScenarioStep, Streams
from kubescene.control import Crank, Slot
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.lane import CreateAlike, Lane
from kubescene.scenario.edits import IgnoredOperation
from kubescene.scenario.outside import OutsideController, OutsideStatus
from kubescene.scenario.phases import ScenarioPhase, StepPhase
from kubescene.timeline import Instruments, Outcome
from kubescene.types import JsonObject


class World(Protocol):
    """One clock, one set of objects, and controllers that somebody has to turn."""

    @property
    def clock(self) -> Clock: ...

    @property
    def event_queue(self) -> EventQueue: ...

    @property
    def streams(self) -> Streams:
        """Chance, by name: one who draws more often does not shift what others draw."""
        ...

    @property
    def crank(self) -> Crank: ...

    @property
    def instruments(self) -> Instruments: ...

    @property
    def scheme(self) -> Scheme: ...

    @property
    def registrations(self) -> ControllerRegistrations:
        """The controllers that the world has, by name in settle order."""
        ...

    @property
    def lane(self) -> Lane | None:
        """Where like pods pass without a turn for each; None if there is no such way."""
        ...

    @property
    def creates_alike(self) -> CreateAlike | None:
        """Creates pods of one template many at a time; None if there is no such way."""
        ...

    @property
    def revision(self) -> int:
        """The revision of the newest accepted write."""
        ...

    def clear(self, most: int) -> bool:
        """Let all controllers go and take at most so many objects away; whether more are left."""
        ...

    def begin_anew(self) -> None:
        """Nobody, nothing, time and names from the start."""
        ...

    def start(self, names: Sequence[str]) -> Sequence[Slot]:
        """Make controllers anew, with fresh state, and let them see what exists."""
        ...

    def client(self, actor: Actor) -> Client: ...

    def guard(self, gate: WriteGate) -> None:
        """From now on this gate has the last word before every write."""
        ...


class Stage(Protocol):
    """Where programs outside the process have their turns."""

    def check(self, declared: Sequence[OutsideController]) -> None:
        """Raise `ScenarioError` for one that nobody could judge; nothing has been touched yet."""
        ...

    def enter(self, declared: OutsideController) -> Slot:
        """The place of one of them in the scenario that begins."""
        ...

    def is_gathered(self) -> bool:
        """Whether all are there and know what exists; from then on they move in turns only.

        Raises `ScenarioError` if one has not come in time.
        """
        ...

    def look(self) -> None:
        """Raise `ScenarioError` if one of those who were called has died or misbehaved."""
        ...

    def statuses(self) -> tuple[OutsideStatus, ...]:
        """How those who were called have been judged so far, in the order in which they came."""
        ...

    def leave(self, scenario: str) -> None:
        """The scenario is over: whatever they wait for is answered."""
        ...


class LiveScenario(Protocol):
    """The Scenario object while it is played: the author's spec, the engine's status."""

    phase: ScenarioPhase
    message: str
    step: ScenarioStep
    step_phase: StepPhase | None
    controller: str
    ignored: tuple[IgnoredOperation, ...]
    expectations: tuple[Outcome, ...]
    outside: tuple[OutsideStatus, ...]
    timeline: SupportsBytes
    """``status.scenarioResult.timeline``, published with the next `write`."""

    @property
    def name(self) -> str: ...

    @property
    def is_unseen(self) -> bool:
        """Whether nobody looks at the status for now: of several writes the last will do."""
        ...

    @property
    def exists(self) -> bool:
        """Whether nobody has deleted it."""
        ...

    @property
    def object(self) -> JsonObject:
        """The Scenario as its author last wrote it."""
        ...

    def write(self) -> None:
        """Make the status visible; raises `ScenarioGoneError` if the object was deleted."""
        ...
