"""What every benchmark shares: wall and CPU time, peak memory, a process of its own, one line each.

The machines are shared, so CPU time stands beside wall time, and floors are compared with what CPU
time says. A benchmark fails when something breaks, never because it was slow.
"""

import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

Figures = dict[str, float]
Measure = Callable[..., Figures]


class Span(NamedTuple):
    """How long something took."""

    wall_s: float
    cpu_s: float

    def per(self, count: int) -> str:
        """Things per second, by CPU and by wall."""
        return f"{count / self.cpu_s:11,.0f} /s CPU {count / self.wall_s:11,.0f} /s wall"


class Stopwatch:
    """Runs from its making; CPU time is that of this process, all threads."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Span:
        return Span(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def best_of(times: int, action: Callable[[], object]) -> Span:
    """The run with the least CPU time: what is left when others disturb least."""
    spans = []
    for _ in range(times):
        gc.collect()
        watch = Stopwatch()
        action()
        spans.append(watch.read())
    return min(spans, key=lambda span: span.cpu_s)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(script: str, **case: Any) -> Figures:
    """Measure one case in a process of its own, so that memory and caches are its own."""
    command = [sys.executable, script, "--case", json.dumps(case)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


def own_process() -> None:
    """The collector is set as in the command ``kubescene``; older versions did so by themselves."""
    try:
        from kubescene.garbage import take_charge
    except ImportError:
        return
    take_charge()


def start(measure: Measure, main: Callable[[bool], None]) -> None:
    """Either one case for `alone`, or the whole benchmark; ``--quick`` makes it smaller."""
    own_process()
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(measure(**json.loads(sys.argv[2]))))
    else:
        main("--quick" in sys.argv[1:])


def row(name: str, figures: str, floor: str = "") -> None:
    print(f"{name:34} {figures}" + (f"   [{floor}]" if floor else ""), flush=True)
