"""The columns of cpu and memory says what the columns of the table say, to the last bit."""

from typing import Any

import numpy as np
import pytest

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.clock import Stream
from kubescene.scheduler import CycleState
from kubescene.scheduler.fast.cpu_memory import (
    LARGEST,
    BalanceScore,
    CpuMemoryColumns,
    FitFilter,
    LeastAllocatedScore,
    Pairs,
    balances,
)
from kubescene.scheduler.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    balance_of,
)
from kubescene.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubescene.scheduler.plugins.scoring_strategies import MostAllocated
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.row_types import Window
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject
from scheduler.tables import Table

BOTH = ((CPU, 1), (MEMORY, 1))
FIT = NodeResourcesFit(BOTH)
BALANCED = NodeResourcesBalancedAllocation([CPU, MEMORY])
FITS, LEAST, BALANCE = FitFilter(FIT), LeastAllocatedScore(FIT), BalanceScore(BALANCED)


class Changes:
    """A table to which something happens all the time."""

    def __init__(self, seed: int) -> None:
        self.random = Stream(seed)
        self.names = [f"n{number}" for number in range(40)]
        self.table = Table(*(self.node(name) for name in self.names))
        self.pods: list[Any] = []
        self.made = 0

    def amount(self, *most: int) -> int:
        return 1 + self.random.below(most[self.random.below(len(most))])

    def node(self, name: str) -> JsonObject:
        cpu, memory = self.amount(64_000, 3, 999), self.amount(LARGEST, 1 << 38, 1000)
        pods = str(self.amount(9))
        node: JsonObject = make_node(name).cpu(f"{cpu}m").memory(str(memory)).pods(pods).build()
        return node

    def pod(self) -> JsonObject:
        self.made += 1
        pod = make_pod(f"p{self.made}")
        if self.random.below(5):
            pod = pod.cpu(f"{self.amount(4000, 3)}m")
        if self.random.below(5):
            pod = pod.memory(str(self.amount(1 << 40, 1 << 30, 900)))
        built: JsonObject = pod.build()
        return built

    def happen(self) -> None:
        nodes, name = self.table.nodes, self.names[self.random.below(len(self.names))]
        event = self.random.below(12)
        if event == 0:
            self.table.set_node(self.node(name))
        elif event == 1 and len(self.names) > 30:
            self.names.remove(name)
            nodes.remove_node(name)
        elif event == 2:
            self.made += 1
            self.names.append(f"new-{self.made}")
            self.table.set_node(self.node(self.names[-1]))
        elif event == 3 and self.pods:
            pod = self.pods.pop(self.random.below(len(self.pods)))
            nodes.remove_pod(pod, pod.node)
        else:
            self.pods.append(self.table.add(self.pod(), name))
        nodes.refresh()


def windows(changes: Changes) -> list[tuple[Any, Window | None]]:
    """All rows, a piece of them, a piece that goes on at the beginning, and some here and there."""
    rows = changes.table.rows
    count, random = rows.size, changes.random
    start, size = random.below(count), 1 + random.below(count)
    some = np.array([row for row in range(count) if random.below(3)], dtype=np.intp)
    return [
        (rows, Window(0, count, count)),
        (np.tile(rows, 2)[start : start + size], Window(start, size, count)),
        (some, None),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_plugins_judge_and_rate_the_columns_as_they_do_the_table(seed: int) -> None:
    changes = Changes(seed)
    table = changes.table
    columns, looked = table.nodes.shared(CpuMemoryColumns), 0
    for _ in range(120):
        for _ in range(1 + changes.random.below(2)):
            changes.happen()
        pod = table.pod(changes.pod())
        exact = columns.is_exact()
        assert exact == (not any(is_odd(info) for info in table.nodes.infos))
        if not exact:
            continue
        looked += 1
        full = [info.requested[PODS] >= info.allocatable[PODS] for info in table.nodes.infos]
        for rows, window in windows(changes):
            pairs = columns.of(rows, window)
            assert (pairs.full is None) == (not any(full))
            compare(table, pod, rows, pairs)
    assert looked > 40


def is_odd(info: NodeInfo) -> bool:
    used = (info.requested[CPU], info.requested[MEMORY], info.nonzero_cpu, info.nonzero_memory)
    return max(*used, info.allocatable[CPU], info.allocatable[MEMORY]) > LARGEST


def compare(table: Table, pod: Any, rows: Any, pairs: Pairs) -> None:
    state, nodes, of_class = CycleState(), table.nodes, pod.pod_class
    assert FITS.serves(of_class)
    codes = FIT.filter_nodes(state, pod, nodes, rows)
    judged = FITS.judge(of_class, pairs)
    assert codes.tolist() == (np.zeros_like(codes) if judged is None else judged).tolist()
    infos = [nodes.infos[row] for row in rows.tolist()]
    assert [FITS.judge_one(of_class, info) for info in infos] == codes.tolist()
    assert LEAST.serves(of_class)
    wanted = FIT.score_nodes(state, pod, nodes, rows).tolist()
    assert LEAST.rate(of_class, pairs).tolist() == wanted
    assert [LEAST.rate_one(of_class, info) for info in infos] == wanted
    if BALANCE.serves(of_class):
        wanted = BALANCED.score_nodes(state, pod, nodes, rows).tolist()
        assert BALANCE.rate(of_class, pairs).tolist() == wanted
        assert [BALANCE.rate_one(of_class, info) for info in infos] == wanted


def test_quotients_of_the_largest_amounts_are_rounded_down_as_integers_are() -> None:
    for offered in (LARGEST, LARGEST - 1, LARGEST - 3, LARGEST // 3):
        for percent in (1, 33, 50, 99, 100):
            for below in (0, 1, 2):
                # The quotient is an integer, or lies just below the next one.
                part = -(-percent * offered // 100) - below
                assert int(np.floor(np.float64(part * 100) / np.float64(offered))) == (
                    part * 100 // offered
                )


def test_a_balance_is_the_same_for_one_node_and_for_many() -> None:
    random = Stream(7)
    shares = np.array([random.below(1 << 30) / (1 << 30) for _ in range(2000)]).reshape(2, -1)
    pairs = zip(*shares.tolist(), strict=True)
    assert balances(shares).tolist() == [balance_of(*each) for each in pairs]


def test_weights_of_cpu_and_memory_count() -> None:
    table = Table(make_node("a").cpu("7").memory("3Gi").build())
    pod = table.pod(make_pod("p").cpu("1").memory("1Gi").build())
    columns = table.nodes.shared(CpuMemoryColumns)
    assert columns.is_exact()
    for weights in (((CPU, 3), (MEMORY, 2)), ((MEMORY, 5), (CPU, 1)), ((CPU, 100), (MEMORY, 1))):
        fit = NodeResourcesFit(weights)
        wanted = fit.score_nodes(CycleState(), pod, table.nodes, table.rows).tolist()
        least, pairs = LeastAllocatedScore(fit), columns.of(table.rows, None)
        assert least.rate(pod.pod_class, pairs).tolist() == wanted
        assert [least.rate_one(pod.pod_class, table.nodes.infos[0])] == wanted


def test_who_asks_for_more_than_cpu_and_memory_is_not_judged_by_pairs() -> None:
    table = Table(make_node("a").cpu("7").memory("3Gi").build())

    def of(builder: Any) -> Any:
        return table.pod(builder.build()).pod_class

    plain, small = of(make_pod("p").cpu("1").memory("1Gi")), of(make_pod("p"))
    disk = of(make_pod("p").cpu("1").request("ephemeral-storage", "1Gi"))
    huge = of(make_pod("p").cpu("1").memory(str(LARGEST + 1)))
    assert [FITS.serves(each) for each in (plain, small, disk, huge)] == [
        True,
        True,
        False,
        False,
    ]
    assert [BALANCE.serves(each) for each in (plain, small, huge)] == [True, False, False]
    assert not LEAST.serves(huge)
    assert not LeastAllocatedScore(NodeResourcesFit(BOTH, MostAllocated())).serves(plain)
    assert not LeastAllocatedScore(NodeResourcesFit([(CPU, 1)])).serves(plain)
    assert not LeastAllocatedScore(NodeResourcesFit([*BOTH, ("nvidia.com/gpu", 1)])).serves(plain)
    assert not BalanceScore(NodeResourcesBalancedAllocation([CPU])).serves(plain)


@pytest.mark.parametrize("memory", ["0", str(LARGEST + 1)])
def test_a_node_with_no_memory_or_too_much_ends_the_picture_until_it_changes(memory: str) -> None:
    table = Table(*(make_node(name).cpu("1").memory("1Gi").build() for name in "ab"))
    columns = table.nodes.shared(CpuMemoryColumns)
    assert columns.is_exact()
    table.set_node(make_node("b").cpu("1").memory(memory).build())
    assert not columns.is_exact()
    assert not CpuMemoryColumns(table.nodes).is_exact()
    table.set_node(make_node("b").cpu("1").memory(str(LARGEST)).build())
    assert columns.is_exact()
    assert columns.of(np.arange(2)).offered.tolist() == [[1000, 1000], [1 << 30, LARGEST]]


def test_pods_that_request_too_much_end_the_picture_until_they_leave() -> None:
    table = Table(make_node("a").cpu("1").memory("1Gi").build())
    columns = table.nodes.shared(CpuMemoryColumns)
    assert columns.is_exact()
    pod = table.add(make_pod("p").cpu("1").memory(str(LARGEST + 1)).build(), "a")
    assert not columns.is_exact()
    assert not CpuMemoryColumns(table.nodes).is_exact()
    table.nodes.remove_pod(pod, "a")
    assert columns.is_exact()
    assert columns.of(np.arange(1)).requested.tolist() == [[0], [0]]
