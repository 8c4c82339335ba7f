"""What if everybody asked for what he uses: how much less is that, in nodes and in money?

Both clusters, as they are and as they would be, are shrunk; the difference is what it saves.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY
from kubescene.autoscalers.vertical.options import RecommenderOptions
from kubescene.cluster import ClusterWorld
from kubescene.results.cost.prices import Prices
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.costs import COST_COLUMNS, an_hour, cost_row, hourly, monthly
from kubescene.what_if.shrinking import Shrunk
from kubescene.what_if.sizes import RESOURCES, Recommenders, Sized
from kubescene.what_if.worlds import (
    SHOWN,
    counted,
    is_live,
    percent,
    pods_in,
    waiting_pods,
    why_waiting,
)

GIB = 1024**3


class RightSized(NamedTuple):
    """Both clusters, and what is different."""

    sizes: Sequence[Sized]
    workloads: int
    now: Shrunk
    then: Shrunk
    asked: Mapping[str, tuple[int, int]]
    """In all, before and after: thousandths of a core and bytes."""
    waiting: Mapping[str, JsonObject]

    @property
    def covered(self) -> int:
        return len({each.workload for each in self.sizes})

    @property
    def raised(self) -> list[Sized]:
        """Those that are to ask for more of something."""
        return [each for each in self.sizes if any(each.saved(name) < 0 for name in RESOURCES)]

    @property
    def killed(self) -> list[Sized]:
        return [each for each in self.sizes if each.would_be_killed]


def asked_by(world: ClusterWorld) -> Counter[str]:
    """What all live pods ask for, waiting or not."""
    total = Counter[str]()
    for pod in pods_in(world):
        if is_live(pod):
            total.update(pod_requests(pod))
    return total


def rightsize(
    worlds: tuple[ClusterWorld, ClusterWorld],
    shrunk: tuple[Shrunk, Shrunk],
    recommenders: Recommenders,
    sizes: Sequence[Sized],
    unknown: Sequence[str],
    *,
    options: RecommenderOptions,
    prices: Prices | None,
) -> Answer:
    """The answer of both worlds, as they are and right-sized, and of both when they are shrunk."""
    before, after = (asked_by(world) for world in worlds)
    waited = waiting_pods(worlds[0])
    it = RightSized(
        sizes=sizes,
        workloads=recommenders.workloads,
        now=shrunk[0],
        then=shrunk[1],
        asked={each: (before[each], after[each]) for each in RESOURCES},
        waiting={k: pod for k, pod in waiting_pods(worlds[1]).items() if k not in waited},
    )
    told = [*unknown, *_unknown(it, recommenders)]
    money = {} if prices is None else _money(worlds[0], it, prices)
    saving = f", {money['saved_a_month']} {prices.currency} a month less" if prices else ""
    sentence = (
        f"If {it.covered} of {counted(it.workloads, 'workload')} asked for what they use "
        f"({options.target_cpu_percentile:.0%} of samples and {options.safety_margin:.0%} more), "
        f"cpu asked for would go from {_cores(before[CPU])} to {_cores(after[CPU])} cores and "
        f"memory from {_gib(before[MEMORY])} to {_gib(after[MEMORY])} GiB: {len(it.then.gone)} "
        f"instead of {len(it.now.gone)} of {counted(len(it.now.order), 'node')} could go{saving}. "
        f"{counted(len(it.raised), 'container')} would ask for more than now; "
        f"{counted(len(it.killed), 'container')} used more memory than the new limit."
    )
    return Answer(
        question="rightsize",
        unknown=told,
        sentence=sentence,
        tables=[*_tables(it, worlds[0], prices)],
        measures={
            "workloads": it.workloads,
            "covered": it.covered,
            "cpu_before": before[CPU] / 1000,
            "cpu_after": after[CPU] / 1000,
            "memory_before": before[MEMORY],
            "memory_after": after[MEMORY],
            "nodes": len(it.now.order),
            "removable_before": len(it.now.gone),
            "removable_after": len(it.then.gone),
            "raised": len(it.raised),
            "killed": len(it.killed),
            "pending": len(it.waiting),
            **money,
        },
        closer=["kubescene traffic back-test --vpa FILE --usage FILE shows one workload in time"],
    )


def _unknown(it: RightSized, recommenders: Recommenders) -> Iterator[str]:
    silent = recommenders.workloads - it.covered
    if silent:
        yield (
            f"what {counted(silent, 'workload')} use: nothing was measured of them, and what they "
            "ask for stays"
        )
    for what, times in sorted(recommenders.left_out.items()):
        yield f"usage: left out were {times:,} {what}"
    yield "usage that comes later: what was measured is taken for what will be"
    yield "nodes go in one order, the least asked of first: another may free more"


def _money(world: ClusterWorld, it: RightSized, prices: Prices) -> dict[str, float]:
    """What is paid now, what could go, and what the nodes are paid for that nobody asks for."""
    nodes = world.list("nodes")
    now, then = hourly(prices, it.now.gone), hourly(prices, it.then.gone)
    return {
        "cost_an_hour": an_hour(hourly(prices, nodes)),
        "saved_an_hour": an_hour(then - now),
        "saved_a_month": monthly(then - now),
        "slack_an_hour": an_hour(_slack(nodes, it, prices)),
    }


def _slack(nodes: Sequence[JsonObject], it: RightSized, prices: Prices) -> Fraction:
    """The part of the bill for what is asked for and would not be: cpu and memory alike."""
    total = hourly(prices, nodes)
    shares = Fraction(0)
    for resource in RESOURCES:
        offered = sum(node_allocatable(node).get(resource, 0) for node in nodes)
        before, after = it.asked[resource]
        if offered:
            shares += Fraction(before - after, offered) / len(RESOURCES)
    return total * shares


def _tables(it: RightSized, world: ClusterWorld, prices: Prices | None) -> Iterator[AnswerTable]:
    for resource in RESOURCES:
        changes = [each for each in it.sizes if resource in each.target]
        changes.sort(key=lambda each: (-abs(each.saved(resource)), each.workload, each.container))
        if changes:
            names = "workload", "container", "pods", "request", "then", "samples above"
            rows = [_row(each, resource) for each in changes[:SHOWN]]
            yield AnswerTable(f"{resource.capitalize()}, the largest changes first", names, rows)
    if it.killed:
        killed: list[tuple[Cell, ...]] = [
            (str(each.workload), each.container, _mib(each.peak), _mib(each.limits[MEMORY].value()))
            for each in it.killed[:SHOWN]
        ]
        of_killed = "workload", "container", "peak", "new limit"
        yield AnswerTable("Used more memory than the new limit", of_killed, killed)
    lines: list[tuple[Cell, ...]] = [
        (when, len(each.order), len(each.gone), each.why or "-")
        for when, each in (("as it is", it.now), ("right-sized", it.then))
    ]
    yield AnswerTable("Nodes", ("when", "nodes", "can go", "the next one cannot"), lines)
    if prices is not None:
        whole = hourly(prices, world.list("nodes"))
        costs = [
            cost_row("now", whole),
            cost_row("now, without the nodes that can go", whole - hourly(prices, it.now.gone)),
            cost_row("right-sized", whole - hourly(prices, it.then.gone)),
        ]
        yield AnswerTable(f"What nodes cost ({prices.currency})", COST_COLUMNS, costs)
    if it.waiting:
        waiting: list[tuple[Cell, ...]] = [
            (name, why_waiting(pod)) for name, pod in sorted(it.waiting.items())[:SHOWN]
        ]
        yield AnswerTable("Pods that wait", ("pod", "why"), waiting)


def _row(each: Sized, resource: str) -> tuple[Cell, ...]:
    above = each.above(resource)
    amounts = each.before[resource], each.after(resource)
    told = [f"{amount}m" if resource == CPU else _mib(amount) for amount in amounts]
    share = "-" if above is None else percent(above)
    return str(each.workload), each.container, each.pods, *told, share


def _mib(size: int) -> str:
    return f"{round(size / 1024**2)}Mi"


def _cores(milli: int) -> str:
    return f"{milli / 1000:g}"


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"
