"""One container: what its samples add to its aggregate.

CPU samples go there one by one. Of memory only the peak of each interval counts: a higher sample
takes the place of the peak before it. An out-of-memory kill is a memory sample larger than what the
container had.
"""

from kubescene.autoscalers.vertical.aggregates import Aggregate
from kubescene.autoscalers.vertical.amounts import amount, scaled
from kubescene.autoscalers.vertical.options import RecommenderOptions


class ContainerUsage:
    """The state of one container. ``window_end`` is where the interval of its peak ends.

    ``pinned`` is set once the labels of the pod changed: from then on the container feeds this very
    aggregate, also after that was garbage-collected, and what it feeds then is lost (upstream does
    so).
    """

    __slots__ = ("last_cpu", "last_memory", "oom_peak", "peak", "pinned", "window_end")

    def __init__(self) -> None:
        self.last_cpu: int | None = None
        self.last_memory: int | None = None
        self.window_end: int | None = None
        self.peak = 0
        self.oom_peak = 0
        self.pinned: Aggregate | None = None

    @property
    def highest(self) -> int:
        """The peak of the running interval, kills included."""
        return max(self.peak, self.oom_peak)

    def accepts_cpu(self, millicores: int, time: int) -> bool:
        """Whether a CPU sample is neither negative nor as old as the last."""
        return millicores >= 0 and (self.last_cpu is None or time > self.last_cpu)

    def accepts_memory(self, size: int, time: int) -> bool:
        """Whether a memory sample is neither negative nor older than the last."""
        return size >= 0 and (self.last_memory is None or time >= self.last_memory)

    def add_cpu(self, aggregate: Aggregate, millicores: int, time: int) -> bool:
        """Take a CPU sample in; False if it is not accepted."""
        if not self.accepts_cpu(millicores, time):
            return False
        aggregate.add_cpu(millicores, time)
        self.last_cpu = time
        return True

    def add_memory(self, aggregate: Aggregate, size: int, time: int, interval: int) -> bool:
        """Take a memory sample in; False if it is not accepted."""
        if not self.accepts_memory(size, time):
            return False
        self._add_memory(aggregate, size, time, interval, is_oom=False)
        return True

    def add_oom(
        self, aggregate: Aggregate, requested: int, time: int, options: RecommenderOptions
    ) -> bool:
        """Take a kill in; False if it is older than the running interval.

        The peaks of earlier kills do not count here: a container that is killed over and over would
        run away.
        """
        interval = options.memory_aggregation_interval
        if self.window_end is not None and time < self.window_end - interval:
            return False
        used = max(requested, self.peak)
        needed = max(
            used + amount(options.oom_min_bump_up_bytes), scaled(used, options.oom_bump_up_ratio)
        )
        if needed < 0:
            return False
        self._add_memory(aggregate, needed, time, interval, is_oom=True)
        return True

    def _add_memory(
        self, aggregate: Aggregate, size: int, time: int, interval: int, *, is_oom: bool
    ) -> None:
        self.last_memory = time
        if self._becomes_peak(aggregate, size, time, interval):
            assert self.window_end is not None
            aggregate.add_peak(size, self.window_end)
            if is_oom:
                self.oom_peak = size
            else:
                self.peak = size

    def _becomes_peak(self, aggregate: Aggregate, size: int, time: int, interval: int) -> bool:
        """Whether a sample is the peak now; the one it replaces is taken back."""
        end = time if self.window_end is None else self.window_end
        if time >= end:
            self.window_end = end + (time - end) // interval * interval + interval
            self.peak = self.oom_peak = 0
            return True
        # A peak of 0 bytes is never replaced within its interval (upstream takes it for none).
        if not 0 != self.highest < size:
            return False
        aggregate.subtract_peak(self.highest, end)
        return True
