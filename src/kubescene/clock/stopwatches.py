"""How long something takes on this machine. For benchmarks: no result may depend on it."""

import time
from typing import NamedTuple


class Span(NamedTuple):
    """How long something took."""

    wall_s: float
    cpu_s: float


class Stopwatch:
    """Runs from its making; CPU time is that of this process, all threads."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Span:
        return Span(time.perf_counter() - self._wall, time.process_time() - self._cpu)
