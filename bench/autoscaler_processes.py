"""How many recommendations a second come from a plugin in another process, over its socket.

    python bench/autoscaler_processes.py [--quick]

The plugin is ours and does nothing but answer. *One run* asks, waits and asks again; *eight runs*
ask at the same time, each in its partition and its thread. CPU is that of the host; that of the
plugin stands beside it. Floor: 2,000 recommendations/s.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    ProcessAutoscaler,
    serve,
)
from measuring import Figures, Span, alone, best_of, row, start

FLOOR = 2_000
REPEAT = 5
RUNS = (1, 8)
SERVE = "--serve"


class Three(AutoscalerPlugin):
    types = ("three.example.com",)
    capabilities = frozenset({Capability.EVENT, Capability.HORIZONTAL_RECOMMENDATION})

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        return HorizontalRecommendationResponse(3, "always three")


def ask(plugin: ProcessAutoscaler, times: int, partition: str) -> None:
    for now in range(times):
        plugin.horizontal_recommendation(HorizontalRecommendationRequest(partition, now))


def ask_all(plugin: ProcessAutoscaler, times: int, partitions: Sequence[str]) -> None:
    if len(partitions) == 1:
        ask(plugin, times, partitions[0])
        return
    with ThreadPoolExecutor(len(partitions)) as pool:
        list(pool.map(partial(ask, plugin, times), partitions))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(runs: int, count: int) -> Figures:
    plugin = ProcessAutoscaler(shlex.join([sys.executable, __file__, SERVE]))
    partitions = [str(number) for number in range(runs)]
    for each in partitions:
        plugin.event(EventRequest(each, 0, EventType.CREATE, Autoscaler(plugin.types[0])))
    ask_all(plugin, 100, partitions)
    pid = plugin.connection.child.pid
    before = cpu_s(pid)
    span = best_of(REPEAT, partial(ask_all, plugin, count // runs, partitions))
    theirs = (cpu_s(pid) - before) / REPEAT
    plugin.close()
    return {**span._asdict(), "plugin_s": theirs}


def main(quick: bool) -> None:
    count = 2_000 if quick else 10_000
    for runs in RUNS:
        figures = alone(__file__, runs=runs, count=count)
        plugin = figures.pop("plugin_s")
        told = f"{Span(**figures).per(count)} {count / plugin:11,.0f} /s CPU of the plugin"
        row(f"recommendations, {runs} run(s) at a time", told, f"floor {FLOOR:,} /s")


if __name__ == "__main__":
    if SERVE in sys.argv:
        serve(Three())
    else:
        start(measure, main)
