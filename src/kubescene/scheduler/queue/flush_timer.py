"""When the queue has something to flush, its scheduler is woken."""

from kubescene.clock import Scheduled
from kubescene.control.timers import Timers
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue


class FlushTimer:
    """One timer, set for the next pod whose backoff ends; nobody waits, no timer."""

    def __init__(self, queue: SchedulingQueue, timers: Timers, name: str) -> None:
        self._queue = queue
        self._timers = timers
        self._name = name
        self._timer: Scheduled | None = None

    def set(self) -> None:
        """Ask to be woken when the queue has something to flush."""
        due = self._queue.next_flush()
        timer = self._timer
        if timer is not None and timer.pending:
            if timer.instant == due:
                return
            timer.cancel()
        self._timer = None
        if due is not None:
            self._timer = self._timers.at(due, self._flush, name=f"{self._name} flush")

    def _flush(self) -> None:
        self._queue.flush()
        self.set()
