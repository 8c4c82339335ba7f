"""What all turns have in common: states, and patience that is real time.

A turn is polled: `run_once` looks whether what it waits for has come, and says `WAITING` if not.
It never blocks, since the program's own requests are carried out by the same thread.
"""

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from kubescene.api.records.changes import RecordDecoder
from kubescene.api.scheme import GroupResource
from kubescene.client import Reader
from kubescene.clock import SECOND, Clock, format_time
from kubescene.control import WAITING, Progress
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.outside.programs import OutsideProgram
from kubescene.outside.waiters import ControllerWaiter
from kubescene.scenario.outside import OutsideController

NO_WATCH = "it had no watch: the program has gone, or has lost its server"


class TurnSurroundings(Protocol):
    """What a turn may ask of the world."""

    @property
    def revision(self) -> int: ...

    @property
    def decoder(self) -> RecordDecoder: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def clock(self) -> Clock:
        """The scenario's time."""
        ...

    @property
    def real_clock(self) -> Clock: ...

    def count(self, resource: GroupResource) -> int:
        """How many objects there are."""
        ...


class Turn:
    """A controller whose loops another program does."""

    def __init__(
        self,
        program: OutsideProgram,
        declared: OutsideController,
        world: TurnSurroundings,
        waiter: ControllerWaiter | None = None,
    ) -> None:
        self.name = program.name
        self._program = program
        self._declared = declared
        self._world = world
        self._waiter = waiter
        self._state: Callable[[], Progress] = self._begin
        self._expects = ""
        self._deadline = 0
        self._asked_at = -1
        self._answer = False
        self.gave_up = False
        """Whether it was waited for in vain: that depends on the machine."""

    @property
    def judged_by(self) -> tuple[str, ...]:
        """By what it is judged that the program has nothing left to do."""
        return ()

    @property
    def by_chance(self) -> str:
        """Why what it decided may be a matter of chance; empty if it was not."""
        return ""

    def run_once(self) -> Progress:
        self._program.check()
        progress = self._state()
        if progress.waits and self._world.real_clock.now() > self._deadline:
            self._give_up()
        return progress

    def end(self) -> None:
        """The scenario is over: what the program was shown must be what there is."""

    def _begin(self) -> Progress:
        """What a turn starts with."""
        raise NotImplementedError

    def _go(self, state: Callable[[], Progress], expects: str) -> Progress:
        """Wait for something from now on; ``expects`` says what, in case it never comes."""
        self._state, self._expects = state, expects
        self._deadline = self._world.real_clock.now() + self._declared.timeout_ns
        return WAITING

    def _come_back(self) -> Progress:
        """Wait until it watches again: one that has gone must not be taken for one at rest."""
        return WAITING if self._expects == NO_WATCH else self._go(self._begin, NO_WATCH)

    def _is_content(self) -> bool:
        """Whether its waiter, if it has one, agrees that nothing is left to do.

        It is asked once for every state of the world: it looks at nothing else, and at all of it.
        """
        if self._waiter is None:
            return True
        revision = self._world.revision
        if revision != self._asked_at:
            self._answer, self._asked_at = self._waiter.condition(self._world.reader), revision
        return self._answer

    def _give_up(self) -> NoReturn:
        waited = self._declared.timeout_ns // SECOND
        self.gave_up = True
        raise ScenarioError(
            f"after {waited} s {self._expects}{self._unmet()}; raise its timeout in "
            "spec.controllers.outside if it needs longer",
            where=f"controller {self.name}",
        )

    def _unmet(self) -> str:
        if self._waiter is None or self._is_content():
            return ""
        return f" ({self._waiter.name}: {self._waiter.unmet(self._world.reader)})"

    def _now(self) -> str:
        return format_time(self._world.clock.now())

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise ConfigurationError(
            f"a world in which {self.name} takes part cannot be copied: that program runs outside"
        )
