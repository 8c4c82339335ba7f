"""Kept results: those that are out of date are found, whichever way they are looked for."""

import numpy as np
import pytest

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.clock import Stream
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_results import RowResults
from kubescene.scheduler.state.row_types import Window
from kubescene.testing.builders import make_node, make_pod

NODES, PODS = GroupResource("", "nodes"), GroupResource("", "pods")
CLASSES = PodClasses()


def add_node(nodes: NodeTable, name: str) -> None:
    obj = make_node(name).cpu("100").memory("8Gi").build()
    nodes.set_node(make_record(NODES, obj, 1), obj)


def table(count: int) -> NodeTable:
    nodes = NodeTable()
    for number in range(count):
        add_node(nodes, f"n{number:03d}")
    nodes.refresh()
    return nodes


def land(nodes: NodeTable, row: int) -> None:
    obj = make_pod("p").cpu("1").build()
    nodes.add_pod(PodInfo.read(make_record(PODS, obj, 1), obj, CLASSES), nodes.names[row])


def rows_of(window: Window) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return (np.arange(window.size) + window.start) % window.total


@pytest.mark.parametrize("burst", [1, 3, POLICY.few_outdated + 1, 1500])
def test_following_changes_finds_what_comparing_versions_finds(burst: int) -> None:
    random, nodes = Stream(burst), table(200)
    followed, compared = RowResults(nodes), RowResults(nodes)
    for _ in range(60):
        for _ in range(random.below(burst + 1)):
            land(nodes, random.below(200))
        window = Window(random.below(200), 1 + random.below(200), 200)
        rows = rows_of(window)
        found = followed.outdated(nodes, rows, window)
        expected = compared.outdated(nodes, rows, None)
        assert list(found) == expected.tolist()  # type: ignore[union-attr]
        followed.renewed(nodes, found)
        compared.renewed(nodes, expected)


def test_rows_that_were_not_renewed_stay_out_of_date() -> None:
    nodes = table(5)
    kept, window = RowResults(nodes), Window(3, 5, 5)
    kept.renewed(nodes, np.arange(5))
    assert list(kept.outdated(nodes, rows_of(window), window)) == []
    land(nodes, 4)
    for _ in range(2):
        assert list(kept.outdated(nodes, rows_of(window), window)) == [4]
    assert list(kept.outdated(nodes, np.arange(4), Window(0, 4, 5))) == []


def test_results_that_moved_are_compared_anew() -> None:
    nodes = table(5)
    kept, window = RowResults(nodes), Window(0, 5, 5)
    kept.outdated(nodes, rows_of(window), window)
    kept.renewed(nodes, np.arange(5))
    assert list(kept.outdated(nodes, rows_of(window), window)) == []
    land(nodes, 1)
    add_node(nodes, "m")
    nodes.refresh()
    assert kept.in_place(nodes)
    window = Window(0, 6, 6)
    found = [nodes.names[row] for row in kept.outdated(nodes, rows_of(window), window)]
    assert sorted(found) == ["m", "n001"]


@pytest.mark.parametrize("start", [0, 2, 4])
def test_a_window_shows_a_copy(start: int) -> None:
    column, window = np.arange(5) * 10, Window(start, 3, 5)
    shown = window.of(column, rows_of(window))
    assert shown.tolist() == (rows_of(window) * 10).tolist()
    shown[0] = -1
    assert column.tolist() == [0, 10, 20, 30, 40]
