"""Full explanations, kept in memory and queryable, beside runs with the default level.

    python bench/explanations.py [--quick]

The same pods on the same nodes, in processes of their own, in turns. From the moment the nodes are
ready to the finished summary; what the first question about a pod takes, and the next one, stands
beside it.
"""

import statistics
import time
from typing import Any

import kubescene
from kubescene.testing import make_node, make_pod
from measuring import Figures, Span, Stopwatch, alone, peak_mb, row, start
from throughput import NodesReady

SIZE = (5_000, 5_000)
QUICK_SIZE = (300, 300)
ROUNDS = 5
DEFAULT, FULL = "Auto", "Full"
FLOOR = "floor 0.8"


def scenario(nodes: int, pods: int, level: str) -> dict[str, Any]:
    built = kubescene.ScenarioBuilder("explanations")
    built.create(make_node("node-$(INDEX)").cpu("32").memory("256Gi"), count=nodes).step(2)
    built.create(make_pod("pod-$(INDEX)").cpu("250m").memory("512Mi"), count=pods)
    made = built.done().build()
    made["spec"]["simulation"] = {"explain": level}
    return made


def measure(nodes: int, pods: int, level: str) -> Figures:
    ready = NodesReady()
    run = kubescene.run(scenario(nodes, pods, level), instruments=(ready,))
    assert run.summary.placements_total == pods, run.message
    assert ready.at is not None
    wall_s, cpu_s = time.perf_counter() - ready.at.wall_s, time.process_time() - ready.at.cpu_s
    figures = {"wall_s": wall_s, "cpu_s": cpu_s, "peak_mb": peak_mb()}
    if level == FULL:
        figures |= {"first_s": asked(run, "pod-1"), "next_s": asked(run, f"pod-{pods // 2}")}
    return figures


def asked(run: kubescene.Run, pod: str) -> float:
    """CPU seconds of one question, answered with nodes and scores."""
    watch = Stopwatch()
    (attempt,) = run.explain(pod)
    assert attempt.verdicts, pod
    return watch.read().cpu_s


def middle(rounds: list[Figures], name: str) -> float:
    return statistics.median(each[name] for each in rounds)


def show(level: str, pods: int, rounds: list[Figures]) -> None:
    span = Span(middle(rounds, "wall_s"), middle(rounds, "cpu_s"))
    row(f"{level}, {pods:,} pods", f"{span.per(pods)} {middle(rounds, 'peak_mb'):6.0f} MB")


def main(quick: bool) -> None:
    nodes, pods = QUICK_SIZE if quick else SIZE
    rounds: dict[str, list[Figures]] = {DEFAULT: [], FULL: []}
    for _ in range(1 if quick else ROUNDS):
        for level in (DEFAULT, FULL):
            rounds[level].append(alone(__file__, nodes=nodes, pods=pods, level=level))
    for level in (DEFAULT, FULL):
        show(level, pods, rounds[level])
    pairs = zip(rounds[DEFAULT], rounds[FULL], strict=True)
    ratios = sorted(plain["cpu_s"] / full["cpu_s"] for plain, full in pairs)
    spread = f"{statistics.median(ratios):11.2f} of the pods/s, {ratios[0]:.2f} to {ratios[-1]:.2f}"
    row("Full over the default, by CPU", spread, FLOOR)
    first, later = (1e3 * middle(rounds[FULL], name) for name in ("first_s", "next_s"))
    row("a question about a pod", f"{first:11.1f} ms CPU the first, {later:.1f} the next")


if __name__ == "__main__":
    start(measure, main)
