"""The pods that a scheduler outside has not been shown yet.

It is shown them one by one, so that it decides about each after the world has reacted to the one
before: the highest priority first, then the oldest. What happens to a pod meanwhile is folded into
its first appearance.
"""

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType, Decoder
from kubescene.scenario.outside import scheduler_of

FINAL_PHASES = ("Succeeded", "Failed")


class Waiting(NamedTuple):
    """A pod that waits: its newest state, and where it stands in the line."""

    record: Record
    order: int
    is_gated: bool


class WaitingPods:
    """Pods of one scheduler, by uid."""

    def __init__(self, scheduler_names: Collection[str], decoder: Decoder) -> None:
        self._scheduler_names = scheduler_names
        self._decoder = decoder
        self._waiting: dict[str, Waiting] = {}
        self._line: list[tuple[int, int, str]] = []
        """A heap: whose turn comes next. Of those who wait no more some are still in it."""
        self._shown: dict[str, None] = {}

    def sift(self, changes: Iterable[Change]) -> list[Change]:
        """What of this may be sent now; pods that it would try are kept back."""
        return [shown for change in changes if (shown := self._sifted(change)) is not None]

    def take(self, *, everything: bool) -> list[Change]:
        """The next pod, or all that wait, as it appears for the first time."""
        taken: list[Change] = []
        while self._line and (everything or not taken):
            uid = heappop(self._line)[-1]
            if uid in self._waiting:
                taken.append(self._show(self._waiting[uid].record))
        return taken

    def _sifted(self, change: Change) -> Change | None:
        record = change.record
        if record.uid in self._shown:
            if change.type is ChangeType.DELETED:
                del self._shown[record.uid]
            return change
        if change.type is ChangeType.DELETED:
            return None if self._waiting.pop(record.uid, None) is not None else change
        if not self._is_tried(change):
            self._waiting.pop(record.uid, None)
            return self._show(record)
        self._keep(change)
        return None

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
        self._waiting[uid] = Waiting(change.record, order, gated)

    def _show(self, record: Record) -> Change:
        self._waiting.pop(record.uid, None)
        self._shown[record.uid] = None
        return Change(ChangeType.ADDED, record, None, self._decoder)
