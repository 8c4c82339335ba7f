"""Time, memory and pods: what is measured of a replay."""

import gc
import resource
from dataclasses import dataclass, field
from pathlib import Path

from kubescene.clock import Stopwatch

_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Measurement:
    """Pods that were scheduled between the beginning and the end of a collection, and how long
    that took, creation, store writes and timeline included.
    """

    name: str
    pods: int
    wall_s: float
    cpu_s: float

    @property
    def per_wall_s(self) -> float:
        return self.pods / self.wall_s if self.wall_s else 0.0

    @property
    def per_cpu_s(self) -> float:
        return self.pods / self.cpu_s if self.cpu_s else 0.0


@dataclass(slots=True)
class WorkloadResult:
    """What came of one workload."""

    test_case: str
    workload: str
    threshold: float
    nodes: int = 0
    measurements: list[Measurement] = field(default_factory=list)
    not_replayed: list[str] = field(default_factory=list)
    virtual_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0

    @property
    def full_name(self) -> str:
        return f"{self.test_case}/{self.workload}"


def begin() -> Stopwatch:
    """Begin to measure, with the garbage of what went before out of the way."""
    gc.collect()
    return Stopwatch()


def peak_mb() -> float:
    """The most memory this process has had, in MB."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
