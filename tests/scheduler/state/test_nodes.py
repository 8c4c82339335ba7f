from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod

NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")


def add_nodes(table: NodeTable, *nodes: NodeBuilder) -> None:
    for node in nodes:
        obj = node.build()
        table.set_node(make_record(NODES, obj, 1), obj)


def pod_info(pod: PodBuilder, classes: PodClasses | None = None) -> PodInfo:
    obj = pod.build()
    obj = obj | {"metadata": obj["metadata"] | {"uid": obj["metadata"]["name"]}}
    return PodInfo.read(make_record(PODS, obj, 1), obj, classes or PodClasses())


@pytest.fixture
def table() -> NodeTable:
    made = NodeTable()
    add_nodes(made, make_node("a").cpu("4").zone("x"), make_node("b").cpu("2").zone("x"))
    made.refresh()
    return made


def test_columns_follow_pods(table: NodeTable) -> None:
    pod = pod_info(make_pod("p").cpu("500m").request("example.com/gpu", "2"))
    table.add_pod(pod, "b")
    assert table.requested("cpu").tolist() == [0, 500]
    assert table.requested("example.com/gpu").tolist() == [0, 2]
    assert table.requested("pods").tolist() == [0, 1]
    assert table.nonzero_memory.tolist() == [0, 200 * 1024 * 1024]
    table.remove_pod(pod, "b")
    assert table.requested("cpu").tolist() == [0, 0]


def test_the_last_pod_fills_the_hole(table: NodeTable) -> None:
    pods = [pod_info(make_pod(name)) for name in "pqrs"]
    for pod in pods:
        table.add_pod(pod, "a")
    table.remove_pod(pods[1], "a")
    info = table.info("a")
    assert info is not None
    assert [pod.name for pod in info.pods] == ["p", "s", "r"]


def test_n_4_order_changes_only_when_nodes_come_or_go(table: NodeTable) -> None:
    add_nodes(table, make_node("a").cpu("4").zone("y"))
    table.refresh()
    assert list(table.names) == ["a", "b"]
    add_nodes(table, make_node("c").zone("x"))
    table.refresh()
    assert list(table.names) == ["b", "a", "c"]


def test_n_4_a_node_that_came_and_went_between_cycles_changes_nothing(table: NodeTable) -> None:
    add_nodes(table, make_node("a").cpu("4").zone("y"))
    table.refresh()
    layout = table.layout
    add_nodes(table, make_node("c").zone("x"))
    table.remove_node("c")
    table.refresh()
    assert list(table.names) == ["a", "b"]
    assert table.layout == layout


def test_pods_that_ask_for_more_than_a_column_holds_are_counted(table: NodeTable) -> None:
    pods = [pod_info(make_pod(name).memory("7Ei")) for name in "pqr"]
    for pod in pods:
        table.add_pod(pod, "a")
    assert table.requested("memory").tolist() == [2**63 - 1, 0]
    add_nodes(table, make_node("0").cpu("4").zone("0"))
    table.refresh()
    for pod in pods[:2]:
        table.remove_pod(pod, "a")
    row = table.row_of("a")
    assert row is not None
    assert table.requested("memory")[row] == table.nonzero_memory[row] == 7 * 2**60
    assert table.requested("pods")[row] == 1


def test_when_a_taint_came_makes_no_new_set_of_taints(table: NodeTable) -> None:
    for second in range(10):
        taint = {"key": "k", "effect": "NoExecute", "timeAdded": f"2026-01-01T00:00:0{second}Z"}
        node = make_node("a").build()
        node["spec"] = {"taints": [taint]}
        table.set_node(make_record(NODES, node, 1), node)
    assert len(table.taint_sets) == 2


def test_a_node_deleted_and_created_between_cycles_keeps_its_place(table: NodeTable) -> None:
    table.remove_node("a")
    add_nodes(table, make_node("a").cpu("8").zone("x"))
    table.refresh()
    assert list(table.names) == ["a", "b"]
    assert table.allocatable("cpu").tolist() == [8000, 2000]


def test_pods_wait_for_a_node_nobody_knows_yet(table: NodeTable) -> None:
    table.add_pod(pod_info(make_pod("p").cpu("1")), "late")
    assert table.info("late") is None
    add_nodes(table, make_node("late").cpu("4"))
    table.refresh()
    assert table.requested("cpu").tolist()[table.names.index("late")] == 1000


def test_a_change_gives_its_row_a_new_version(table: NodeTable) -> None:
    before = table.versions.tolist()
    table.add_pod(pod_info(make_pod("p")), "b")
    after = table.versions.tolist()
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


def test_label_columns_follow_updates(table: NodeTable) -> None:
    column = table.label("disk")
    assert column.ids.tolist() == [-1, -1]
    add_nodes(table, make_node("b").cpu("2").zone("x").label(disk="ssd"))
    assert column.ids.tolist() == [-1, column.numbers["ssd"]]


def test_pods_of_one_template_share_a_class() -> None:
    classes = PodClasses()
    first, second = make_pod("p").cpu("1").label(app="a"), make_pod("q").cpu("1").label(app="b")
    assert pod_info(first, classes).pod_class is pod_info(second, classes).pod_class
    assert pod_info(first.cpu("2"), classes).pod_class is not pod_info(first, classes).pod_class


ACTIONS = st.tuples(
    st.sampled_from(["add", "remove", "node", "unnode", "refresh"]),
    st.integers(0, 5),
    st.integers(0, 3),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(ACTIONS, max_size=40))
def test_columns_always_equal_a_recount(actions: list[tuple[str, int, int]]) -> None:
    table = NodeTable()
    placed: dict[int, tuple[PodInfo, str]] = {}
    for action, pod_number, node_number in actions:
        node = f"n{node_number}"
        if action == "add" and pod_number not in placed:
            pod = pod_info(make_pod(f"p{pod_number}").cpu(f"{pod_number}"))
            table.add_pod(pod, node)
            placed[pod_number] = (pod, node)
        elif action == "remove" and pod_number in placed:
            table.remove_pod(*placed.pop(pod_number))
        elif action == "node":
            add_nodes(table, make_node(node).cpu(str(node_number + 1)))
        elif action == "unnode":
            table.remove_node(node)
        elif action == "refresh":
            table.refresh()
    table.refresh()
    expected: dict[str, Any] = dict.fromkeys(table.names, 0)
    for number, (_, node) in placed.items():
        if node in expected:
            expected[node] += 1000 * number
    requested = table.requested("cpu").tolist() if len(table) else []
    assert dict(zip(table.names, requested, strict=True)) == expected


def test_n_6_a_node_that_left_its_pods_behind_is_no_node(table: NodeTable) -> None:
    pod = pod_info(make_pod("p").cpu("1"))
    table.add_pod(pod, "b")
    table.remove_node("b")
    table.refresh()
    assert table.info("b") is None
    assert table.row_of("b") is None
    add_nodes(table, make_node("b").cpu("2"))
    table.refresh()
    assert table.requested("cpu").tolist()[table.names.index("b")] == 1000
