"""The pods that a scheduler outside has still to place: new ones, and those it may try again.

It is shown them one by one, so that it decides about each after the world has reacted to the one
before. First those that it has not seen: the highest priority first, then the oldest. What happens
to such a pod meanwhile is folded into its first appearance. Then those that it wants to try again
(see `kubescene.outside.turns.roll_call`), in the order of kube-scheduler's own queue: by the second
in which they failed last, then by priority, then by that failure. The seconds are the scenario's.
"""

from collections.abc import Callable, Collection, Iterable
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType, RecordDecoder
from kubescene.clock import SECOND
from kubescene.outside.turns.roll_call import gone, untold
from kubescene.scenario.outside import scheduler_of

FINAL_PHASES = ("Succeeded", "Failed")
Place: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


class WaitingTurn(NamedTuple):
    """A pod that waits: its newest state, and where it stands in the line."""

    record: Record
    order: int
    is_gated: bool


class Failure(NamedTuple):
    """Where a pod stands among those that are tried again: what comes first is less."""

    second: int
    priority: int
    """The higher one is less."""
    number: int


class UnplacedPods:
    """Pods of one scheduler, by uid."""

    def __init__(
        self, scheduler_names: Collection[str], decoder: RecordDecoder, now: Callable[[], int]
    ) -> None:
        """``now``: the scenario's time."""
        self._scheduler_names = scheduler_names
        self._decoder = decoder
        self._now = now
        self._waiting: dict[str, WaitingTurn] = {}
        self._line: list[tuple[int, int, str]] = []
        """A heap: whose turn comes next. Of those who wait no more some are still in it."""
        self._shown: dict[str, None] = {}
        self._unplaced: dict[Place, Record] = {}
        """Those of the shown that it has not placed, in their newest state."""
        self._failures: dict[Place, Failure] = {}
        self._failed = 0
        self._again: dict[Place, None] = {}
        """Those of the unplaced that it wants to try again."""

    # -- what has happened -----------------------------------------------------------------------

    def sift(self, changes: Iterable[Change]) -> list[Change]:
        """What of this may be sent now; pods that it would try are kept back."""
        return [shown for change in changes if (shown := self._sifted(change)) is not None]

    def failed(self, place: Place) -> None:
        """It has failed at a pod that it was given."""
        record = self._unplaced.get(place)
        if record is not None:
            self._failed += 1
            priority = self._decoder.decoded(record)["spec"].get("priority") or 0
            self._failures[place] = Failure(self._now() // SECOND, -priority, self._failed)

    def wants_again(self, place: Place) -> None:
        """It would try this pod again."""
        if place in self._unplaced:
            self._again[place] = None

    @property
    def unplaced(self) -> list[Record]:
        """Pods that it knows and has not placed."""
        return list(self._unplaced.values())

    # -- whose turn it is ------------------------------------------------------------------------

    @property
    def has_new(self) -> bool:
        while self._line and self._line[0][-1] not in self._waiting:
            heappop(self._line)
        return bool(self._line)

    @property
    def has_any(self) -> bool:
        return self.has_new or bool(self._again)

    def take(self, *, everything: bool) -> list[Change]:
        """The next pod, or all that wait; what was seen before is shown as if it were new."""
        taken: list[Change] = []
        while self.has_new and (everything or not taken):
            uid = heappop(self._line)[-1]
            taken.append(self._show(self._waiting[uid].record))
        while self._again and (everything or not taken):
            taken += self._show_again(min(self._again, key=self._failure_of))
        return taken

    def _failure_of(self, place: Place) -> Failure:
        return self._failures.get(place, Failure(0, 0, 0))

    def _show_again(self, place: Place) -> list[Change]:
        del self._again[place]
        record = self._unplaced[place]
        pod = self._decoder.decoded(record)
        before = Change(ChangeType.DELETED, gone(record, pod), None, self._decoder)
        return [before, Change(ChangeType.ADDED, untold(record, pod), None, self._decoder)]

    # -- inside ----------------------------------------------------------------------------------

    def _sifted(self, change: Change) -> Change | None:
        record = change.record
        if record.uid in self._shown:
            self._follow(change)
            return change
        if change.type is ChangeType.DELETED:
            return None if self._waiting.pop(record.uid, None) is not None else change
        if not self._is_tried(change):
            self._waiting.pop(record.uid, None)
            return self._show(record)
        self._keep(change)
        return None

    def _follow(self, change: Change) -> None:
        """What has become of a pod that it was shown."""
        record = change.record
        place = (record.namespace, record.name)
        if change.type is ChangeType.DELETED:
            del self._shown[record.uid]
        elif self._is_tried(change):
            self._unplaced[place] = record
            return
        self._unplaced.pop(place, None)
        self._failures.pop(place, None)
        self._again.pop(place, None)

    def _is_tried(self, change: Change) -> bool:
        """Whether the scheduler would try to place it."""
        record = change.record
        if record.node or record.deleting or record.phase in FINAL_PHASES:
            return False
        return scheduler_of(change.object) in self._scheduler_names

    def _keep(self, change: Change) -> None:
        spec, uid = change.object["spec"], change.record.uid
        known = self._waiting.get(uid)
        order = change.revision if known is None else known.order
        gated = bool(spec.get("schedulingGates"))
        if not gated and (known is None or known.is_gated):
            # Neither its priority nor what it has waited for changes; gates only go.
            heappush(self._line, (-(spec.get("priority") or 0), order, uid))
        self._waiting[uid] = WaitingTurn(change.record, order, gated)

    def _show(self, record: Record) -> Change:
        if self._waiting.pop(record.uid, None) is not None:
            self._unplaced[record.namespace, record.name] = record
        self._shown[record.uid] = None
        return Change(ChangeType.ADDED, record, None, self._decoder)
