"""The one thing that turns controllers.

Every controller stands in a `Slot`, which knows whether it has work: a watch or a timer wakes it,
and it goes to sleep when it says that nothing is left. A round gives each slot that is awake one
turn, in order; nobody else is asked. When all sleep, what is due at this very instant runs, which
may wake some of them. When nothing is due either, they are *at rest*: exact, nobody waits.

The scenario engine, `Cluster.settle`, `Cluster.advance` and the thread of a served world all turn
this crank. They differ in whom they turn and in what an exception means: in a rehearsal it ends the
run, in a served world (`ServingCrank`) it is logged and the controller tries again later.
"""

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from kubescene.client.interfaces import Watcher
from kubescene.clock import MILLISECOND, SECOND, Clock, EventQueue
from kubescene.control.loops import Controller, Progress, Releasing, Retrying, StepAware
from kubescene.control.patience import DEFAULT_MAX_ROUNDS, Patience
from kubescene.control.timers import Timers

FIRST_RETRY = 5 * MILLISECOND
LAST_RETRY = 16 * SECOND

_AWAKE = attrgetter("awake")
_log = logging.getLogger(__name__)


class Alarm:
    """Rings where somebody sleeps until a controller has work; in a rehearsal nobody does.

    ``woken`` are the slots that were woken since somebody cleared it. A copy of a world has an
    alarm of its own that rings nowhere.
    """

    __slots__ = ("ring", "woken")

    def __init__(self, ring: Callable[[], None] | None = None) -> None:
        self.ring = ring
        self.woken: dict[Slot, None] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Alarm":
        twin = memo[id(self)] = Alarm()
        return twin


class Slot:
    """The place of one controller: whether it is awake, and how it fared."""

    __slots__ = (
        "alarm",
        "awake",
        "controller",
        "failures",
        "held_until",
        "name",
        "timers",
        "waits",
        "watcher",
    )

    def __init__(self, name: str, alarm: Alarm | None = None) -> None:
        self.name = name
        self.alarm = alarm or Alarm()
        self.controller: Controller | None = None
        self.watcher: Watcher | None = None
        self.timers: Timers | None = None
        self.awake = True
        self.waits = False
        self.failures = 0
        self.held_until = 0

    def wake(self, *_: object) -> None:
        """There is something to do. Any thread may say so."""
        self.awake = True
        alarm = self.alarm
        alarm.woken[self] = None
        if alarm.ring is not None:
            alarm.ring()

    def turn(self) -> Progress:
        """Let the controller do one piece of work."""
        assert self.controller is not None, f"the slot of {self.name} is empty"
        self.awake = False
        try:
            progress = self.controller.run_once()
        except BaseException:
            self.awake = True
            raise
        if progress.more:
            self.awake = True
        self.waits = progress.waits
        return progress

    def begin_step(self) -> None:
        """A new step begins: the controller hears of it if it wants to."""
        controller: object = self.controller
        if isinstance(controller, StepAware):
            controller.begin_step()
            self.awake = True

    def retry(self) -> None:
        """Where no steps are: what was refused is tried once more."""
        controller: object = self.controller
        if isinstance(controller, Retrying):
            controller.retry_refused()
            self.awake = True

    def retire(self) -> None:
        """The controller is let go: what it had planned is forgotten.

        It knows its slot, so the slot forgets it.
        """
        if self.timers is not None:
            self.timers.withdraw()
        controller: object = self.controller
        if isinstance(controller, Releasing):
            controller.release()
        self.controller = self.watcher = self.timers = None

    def changed_since(self, revision: int) -> bool:
        """Whether anything that the controller watches has changed after ``revision``."""
        return self.watcher is None or self.watcher.changed_since(revision)

    def __repr__(self) -> str:
        return f"<Slot {self.name}, {'awake' if self.awake else 'asleep'}>"


class Crank:
    """Turns the controllers of one world. ``objects`` counts what the world holds."""

    def __init__(self, event_queue: EventQueue, objects: Callable[[], int]) -> None:
        self._event_queue = event_queue
        self._objects = objects

    def patience(self, max_rounds: int = DEFAULT_MAX_ROUNDS) -> Patience:
        """What one attempt to come to rest may cost."""
        return Patience(max_rounds, self._objects)

    def settle(self, slots: Sequence[Slot], max_rounds: int = DEFAULT_MAX_ROUNDS) -> None:
        """Run to rest; raises `LivelockError` if there is none."""
        patience = self.patience(max_rounds)
        while self.round(slots, patience):
            pass

    def round(self, slots: Sequence[Slot], patience: Patience) -> bool:
        """One turn for each slot that is awake, or what is due now. False: all is at rest."""
        wrote: list[str] = []
        turned = [slot.name for slot in filter(_AWAKE, slots) if self._turn(slot, wrote)]
        if not turned and not self._run_due():
            return False
        patience.spend(turned, wrote)
        return True

    def release(self, slots: Sequence[Slot]) -> list[str]:
        """Let those try again at once that failed and rest; who they are."""
        del slots
        return []

    def _turn(self, slot: Slot, wrote: list[str]) -> bool:
        """Whether the slot had its turn; who wrote is noted."""
        if slot.turn().wrote:
            wrote.append(slot.name)
        return True

    def _run_due(self) -> bool:
        return self._event_queue.run_due() > 0


class ServingCrank(Crank):
    """Goes on whatever a controller does: what fails is logged and tried again, later each time.

    How much later is a matter of the server, not of the world, whose time may stand still:
    ``clock`` is the machine's.
    """

    def __init__(self, event_queue: EventQueue, objects: Callable[[], int], clock: Clock) -> None:
        super().__init__(event_queue, objects)
        self._clock = clock

    def round(self, slots: Sequence[Slot], patience: Patience) -> bool:
        """As ever, but a controller that never ends does not keep what is due from happening."""
        ran = self._run_due()
        return super().round(slots, patience) or ran

    def release(self, slots: Sequence[Slot]) -> list[str]:
        held = [slot for slot in slots if slot.awake and slot.held_until]
        for slot in held:
            slot.held_until = 0
        return [slot.name for slot in held]

    def next_retry(self, slots: Sequence[Slot]) -> int | None:
        """When the first of those that failed may try again, by the server's clock."""
        return min((slot.held_until for slot in slots if slot.awake), default=None)

    def _turn(self, slot: Slot, wrote: list[str]) -> bool:
        if slot.held_until > (now := self._clock.now() if slot.held_until else 0):
            return False
        try:
            super()._turn(slot, wrote)
        except Exception:
            delay = min(FIRST_RETRY << slot.failures, LAST_RETRY)
            _log.exception(
                "controller %s failed; it tries again in %g s", slot.name, delay / SECOND
            )
            slot.failures = min(slot.failures + 1, 20)
            slot.held_until = (now or self._clock.now()) + delay
        else:
            slot.failures = slot.held_until = 0
        return True

    def _run_due(self) -> bool:
        try:
            return super()._run_due()
        except Exception:
            _log.exception("something that was due failed; the server goes on")
            return True
