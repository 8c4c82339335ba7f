"""What happens later, in one order.

Entries are ordered by instant, then by lower priority value, then by who came first. Beside the
entries stand *sources*: simulations with a kernel of their own (the traffic of a service, say),
which only tell when they next have something to do. At one instant entries go first, then the
sources in the order of their attachment. That is the only ordering rule; ties never depend on
anything else. The control surface is `peek`, `step`, `run_due`, `run_until` and `run`, so pausing
and single-stepping cost nothing.

The heap holds bare integers, each made of the triple ``instant, priority, sequence``: they compare
twice as fast as tuples do. The entries lie in a dict beside it; one that is cancelled leaves the
dict at once, and its number in the heap is passed over when its turn comes.
"""

from collections.abc import Callable
from copy import deepcopy
from heapq import heappop, heappush
from typing import Any, Protocol

import msgspec

from kubescene.clock.clocks import Clock

Action = Callable[..., object]
"""A function or bound method; what it needs to know is passed along, never closed over."""

_SEQUENCE_BITS, _PRIORITY_BITS = 48, 16
_INSTANT_SHIFT = _SEQUENCE_BITS + _PRIORITY_BITS
_PRIORITY_LIMIT = 1 << (_PRIORITY_BITS - 1)
_ZERO_PRIORITY = _PRIORITY_LIMIT << _SEQUENCE_BITS
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1
_TIDY_EVERY = 1024


class EventSource(Protocol):
    """A simulation that runs beside the queue, on the same clock. The queue itself is one."""

    def peek(self) -> int | None:
        """The instant at which it next has something to do for others; None if never."""
        ...

    def run_until(self, instant: int) -> int:
        """Do all that is due up to and including ``instant``; returns how many things happened.

        Afterwards `peek` names a later instant, or None.
        """
        ...


class Scheduled(msgspec.Struct, eq=False):
    """One entry of the queue, and the handle to cancel it."""

    instant: int
    action: Action
    arguments: tuple[Any, ...]
    name: str
    _key: int
    _waiting: "dict[int, Scheduled]"

    def cancel(self) -> None:
        """Take it back. Cancelling twice, or after it ran, does nothing."""
        self._waiting.pop(self._key, None)

    @property
    def pending(self) -> bool:
        return self._key in self._waiting

    def __deepcopy__(self, memo: dict[int, Any]) -> "Scheduled":
        # Known to the memo before its parts: whoever acts may hold this very handle.
        copied = Scheduled(self.instant, self.action, (), self.name, self._key, {})
        memo[id(self)] = copied
        copied.action = deepcopy(self.action, memo)
        copied.arguments = deepcopy(self.arguments, memo)
        copied._waiting = deepcopy(self._waiting, memo)
        return copied

    def __repr__(self) -> str:
        state = "" if self.pending else " (not pending)"
        return f"<Scheduled {self.name} at {self.instant}{state}>"


class EventQueue:
    """Everything that is due later. Actions run on the caller's thread, one at a time.

    An action that raises stops the run: in a simulator a swallowed error is a wrong result. A deep
    copy goes on alike, its bound methods belonging to the copies of their objects.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[int] = []
        self._waiting: dict[int, Scheduled] = {}
        self._sequence = 0
        self._sources: list[EventSource] = []

    def at(
        self, instant: int, action: Action, *arguments: Any, name: str = "", priority: int = 0
    ) -> Scheduled:
        """Call ``action(*arguments)`` at ``instant``; an instant that has passed means now."""
        now = self.clock.now()
        if instant < now:  # noqa: PLR1730 - a call of max costs three times as much
            instant = now
        self._sequence = sequence = self._sequence + 1
        key = (instant << _INSTANT_SHIFT) + _ZERO_PRIORITY + sequence
        if priority:
            key += _shifted(priority)
        waiting = self._waiting
        entry = waiting[key] = Scheduled(instant, action, arguments, name, key, waiting)
        heappush(self._heap, key)
        if not sequence % _TIDY_EVERY:
            self._tidy()
        return entry

    def after(
        self, delay: int, action: Action, *arguments: Any, name: str = "", priority: int = 0
    ) -> Scheduled:
        """Call ``action(*arguments)`` once ``delay`` nanoseconds have passed."""
        return self.at(self.clock.now() + delay, action, *arguments, name=name, priority=priority)

    def attach(self, source: EventSource) -> None:
        """Let a source have its turns, after those attached before it."""
        if source is self or any(known is source for known in self._sources):
            raise ValueError(f"{source!r} is attached already")
        self._sources.append(source)

    def detach(self, source: EventSource) -> None:
        """Let a source go; it gets no further turn."""
        left = [known for known in self._sources if known is not source]
        if len(left) == len(self._sources):
            raise ValueError(f"{source!r} is not attached")
        self._sources = left

    def peek(self) -> int | None:
        """The earliest instant of an entry or a source, or None if nothing is due ever."""
        entry, source = self._first_entry(), self._first_source()
        if source is not None and (entry is None or source[0] < entry.instant):
            return source[0]
        return None if entry is None else entry.instant

    def step(self) -> int:
        """Wait for what comes next, an entry or the turn of a source, and let it happen.

        Returns how many things happened; 0 if nothing is to come. A turn counts as one at least.
        """
        due = self.peek()
        return 0 if due is None else self._turn(due)

    def run_due(self) -> int:
        """Run one batch: what is due now, in order, but not what it adds; returns how many ran.

        It always ends, also on a wall clock and with actions that add themselves again: where
        something added since the call, or the second turn of a source, would come next, it
        returns and leaves that to the next call. So calling it until it returns 0 keeps the order.
        """
        if not self._waiting and not self._sources:
            return 0
        now, newest, ran = self.clock.now(), self._sequence, 0
        had_turn: list[EventSource] = []
        while (due := self.peek()) is not None and due <= now:
            entry = self._first_entry()
            if entry is not None and entry.instant == due:
                if entry._key & _SEQUENCE_MASK > newest:
                    break
            elif (first := self._first_source()) is not None:
                if any(source is first[1] for source in had_turn):
                    break
                had_turn.append(first[1])
            ran += self._turn(due)
        return ran

    def run_until(self, instant: int) -> int:
        """Run everything due up to and including ``instant``; returns how many things happened."""
        ran = self._run_entries(instant)
        while (due := self.peek()) is not None and due <= instant:
            ran += self._turn(due) + self._run_entries(instant)
        return ran

    def run(self, until: int) -> None:
        """Run everything due up to ``until``, then let it become ``until``."""
        self.run_until(until)
        self.clock.wait_until(until)

    def withdraw(self, action: Action) -> None:
        """Cancel every entry that would call ``action``."""
        for entry in [each for each in self._waiting.values() if each.action == action]:
            entry.cancel()

    def clear(self) -> None:
        """Forget all entries and let all sources go."""
        self._heap.clear()
        self._waiting.clear()
        self._sources = []

    def __len__(self) -> int:
        """How many entries wait; sources keep their own count."""
        return len(self._waiting)

    def _turn(self, due: int) -> int:
        entry = self._first_entry()
        self.clock.wait_until(due)
        if entry is None or entry.instant > due:
            return self._turn_of_source(due)
        heappop(self._heap)
        del self._waiting[entry._key]
        entry.action(*entry.arguments)
        return 1

    def _turn_of_source(self, due: int) -> int:
        first = self._first_source()
        assert first is not None
        source = first[1]
        happened = source.run_until(due)
        if (following := source.peek()) is not None and following <= due:
            raise RuntimeError(
                f"{source!r} was run until {due} and is due at {following} again: "
                "run_until must do all that is due up to and including its instant"
            )
        return max(happened, 1)

    def _run_entries(self, last: int) -> int:
        # The whole of `run_until` while no source is attached: half a million entries a second.
        heap, take, wait_until = self._heap, self._waiting.pop, self.clock.wait_until
        end, ran = (last + 1) << _INSTANT_SHIFT, 0
        while heap and heap[0] < end and not self._sources:
            entry = take(heappop(heap), None)
            if entry is not None:
                wait_until(entry.instant)
                entry.action(*entry.arguments)
                ran += 1
        return ran

    def _first_entry(self) -> Scheduled | None:
        heap, waiting = self._heap, self._waiting
        while heap:
            if (entry := waiting.get(heap[0])) is not None:
                return entry
            heappop(heap)
        return None

    def _first_source(self) -> tuple[int, EventSource] | None:
        first: tuple[int, EventSource] | None = None
        for source in self._sources:
            due = source.peek()
            if due is not None and (first is None or due < first[0]):
                first = due, source
        return first

    def _tidy(self) -> None:
        # Timers that are set and cancelled over and over would otherwise fill the heap.
        if len(self._heap) > 2 * len(self._waiting) + _TIDY_EVERY:
            self._heap[:] = sorted(self._waiting)


def _shifted(priority: int) -> int:
    if not -_PRIORITY_LIMIT <= priority < _PRIORITY_LIMIT:
        raise ValueError(f"a priority is between -32768 and 32767, not {priority}")
    return priority << _SEQUENCE_BITS
