"""Counts that follow the nodes, against counting anew."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.scheduler import Delta, DeltaKind, NodeTable, PodInfo
from kubescene.scheduler.state.deltas import DeltaLog, DeltaReader
from kubescene.scheduler.state.pods import PodClasses
from kubescene.testing.builders import make_node, make_pod

NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")
ZONE = "topology.kubernetes.io/zone"
CLASSES = PodClasses()


def add_node(table: NodeTable, name: str, zone: str) -> None:
    obj = make_node(name).cpu("4").zone(zone).build()
    table.set_node(make_record(NODES, obj, 1), obj)


def pod_info(name: str, colour: str = "red", *, cpu: str = "1", deleted: bool = False) -> PodInfo:
    obj = make_pod(name).cpu(cpu).label(colour=colour).build()
    obj["metadata"]["uid"] = name
    if deleted:
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return PodInfo.read(make_record(PODS, obj, 1), obj, CLASSES)


def counts(pod: PodInfo) -> bool:
    return pod.labels.get("colour") == "red" and not pod.terminating


class ZoneCounts:
    """How many red pods each zone has, kept up to date."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.reader: DeltaReader = table.follow()
        self.rebuilt = 0
        self.by_node: Counter[str] = Counter()
        self.zone_of: dict[str, str] = {}

    def by_zone(self) -> Counter[str]:
        deltas = self.reader.read()
        if deltas is None:
            self.rebuilt += 1
            self.by_node = Counter(
                {info.name: sum(map(counts, info.pods)) for info in self.table.infos}
            )
            self.zone_of = {info.name: info.labels[ZONE] for info in self.table.infos}
        else:
            for delta in deltas:
                self.take(delta)
        found: Counter[str] = Counter()
        for node, count in self.by_node.items():
            found[self.zone_of[node]] += count
        return +found

    def take(self, delta: Delta) -> None:
        name = delta.node.name
        if delta.kind is DeltaKind.NODE_LEFT:
            self.by_node.pop(name, None)
            return
        if delta.kind is DeltaKind.POD_CHANGED:
            old, new = delta.pods
            self.by_node[name] += counts(new) - counts(old)
            return
        self.zone_of[name] = delta.node.labels[ZONE]
        sign = -1 if delta.kind is DeltaKind.POD_REMOVED else 1
        self.by_node[name] += sign * sum(map(counts, delta.pods))


def recount(table: NodeTable) -> Counter[str]:
    found: Counter[str] = Counter()
    for info in table.infos:
        found[info.labels[ZONE]] += sum(map(counts, info.pods))
    return +found


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove", "recolour", "end", "node", "unnode", "refresh", "read"]),
        st.integers(0, 4),
        st.integers(0, 3),
        st.sampled_from(["x", "y"]),
    ),
    max_size=50,
)


@settings(deadline=None, max_examples=150)
@given(ACTIONS, st.sampled_from([3, 10_000]))
def test_counts_by_zone_follow_whatever_happens(
    actions: list[tuple[str, int, int, str]], kept: int
) -> None:
    table = NodeTable()
    table._log = DeltaLog(kept)
    zones = ZoneCounts(table)
    placed: dict[int, tuple[PodInfo, str]] = {}
    for action, pod, node, zone in actions:
        name = f"n{node}"
        if action == "add" and pod not in placed:
            placed[pod] = (pod_info(f"p{pod}"), name)
            table.add_pod(*placed[pod])
        elif action == "remove" and pod in placed:
            table.remove_pod(*placed.pop(pod))
        elif action in ("recolour", "end") and pod in placed:
            old, where = placed[pod]
            new = pod_info(f"p{pod}", "blue" if zone == "x" else "red", deleted=action == "end")
            table.update_pod(old, new, where)
            placed[pod] = (new, where)
        elif action == "node":
            add_node(table, name, zone)
        elif action == "unnode":
            table.remove_node(name)
        elif action == "refresh":
            table.refresh()
        elif action == "read":
            assert zones.by_zone() == recount(table)
    assert zones.by_zone() == recount(table)


def test_a_reader_that_is_too_far_behind_starts_over() -> None:
    table = NodeTable()
    table._log = DeltaLog(8)
    zones = ZoneCounts(table)
    add_node(table, "a", "x")
    table.refresh()
    assert (zones.by_zone(), zones.rebuilt) == ({}, 1)
    for number in range(8):
        table.add_pod(pod_info(f"p{number}"), "a")
    assert (zones.by_zone(), zones.rebuilt) == ({"x": 8}, 1)
    for number in range(8, 40):
        table.add_pod(pod_info(f"p{number}"), "a")
    assert (zones.by_zone(), zones.rebuilt) == ({"x": 40}, 2)
    assert len(table._log._deltas) < 16


def test_nothing_is_logged_while_nobody_follows() -> None:
    table = NodeTable()
    add_node(table, "a", "x")
    table.refresh()
    table.add_pod(pod_info("p"), "a")
    assert table._log.end == 0


@pytest.mark.parametrize("change", ["pod", "node"])
def test_versions_tell_why_a_row_changed(change: str) -> None:
    table = NodeTable()
    add_node(table, "a", "x")
    add_node(table, "b", "x")
    table.refresh()
    before = [each.tolist() for each in (table.versions, table.spec_versions)]
    if change == "pod":
        table.add_pod(pod_info("p"), "b")
    else:
        add_node(table, "b", "y")
    after = [each.tolist() for each in (table.versions, table.spec_versions)]
    changed = [old[1] != new[1] for old, new in zip(before, after, strict=True)]
    assert changed == [True, change == "node"]
    assert all(old[0] == new[0] for old, new in zip(before, after, strict=True))


def test_a_joining_node_moves_rows_without_making_them_new() -> None:
    table = NodeTable()
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
        add_node(table, name, zone)
    table.refresh()
    table.add_pod(pod_info("p", cpu="2"), "b")
    layout, versions = table.layout, dict(zip(table.names, table.versions.tolist(), strict=True))
    colours = table.label(ZONE)
    add_node(table, "d", "y")
    table.refresh()
    assert list(table.names) == ["a", "c", "b", "d"]
    moves = table.moved_from(layout)
    assert moves is not None
    assert moves.tolist() == [0, 1, 2, -1]
    table.remove_node("a")
    table.refresh()
    moves = table.moved_from(layout)
    assert moves is not None
    assert [("a", "c", "b")[at] if at >= 0 else "new" for at in moves.tolist()] == [
        {"a": "a", "b": "b", "c": "c", "d": "new"}[name] for name in table.names
    ]
    kept = {name: version for name, version in versions.items() if name != "a"}
    now = dict(zip(table.names, table.versions.tolist(), strict=True))
    assert {name: now[name] for name in kept} == kept
    assert table.requested("cpu").tolist() == [2000 if n == "b" else 0 for n in table.names]
    assert table.label(ZONE) is colours
    assert [colours.values[at] for at in colours.ids.tolist()] == [
        {"b": "x", "c": "y", "d": "y"}[name] for name in table.names
    ]


def test_a_layout_too_long_ago_is_forgotten() -> None:
    table = NodeTable()
    for number in range(20):
        add_node(table, f"n{number}", "x")
        table.refresh()
    assert table.moved_from(3) is None
    assert table.moved_from(4) is not None
    assert table.moved_from(19) is not None


def test_a_pod_that_is_being_deleted_is_told() -> None:
    table = NodeTable()
    zones = ZoneCounts(table)
    add_node(table, "a", "x")
    table.refresh()
    alive, ending = pod_info("p"), pod_info("p", deleted=True)
    table.add_pod(alive, "a")
    assert zones.by_zone() == {"x": 1}
    table.update_pod(alive, ending, "a")
    assert (zones.by_zone(), zones.rebuilt) == ({}, 1)
