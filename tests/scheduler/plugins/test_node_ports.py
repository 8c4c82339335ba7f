"""NodePorts: which host ports conflict, where they are taken, and whom their end wakes."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Hint
from kubescene.scheduler.plugins.node_ports import NodePorts
from kubescene.scheduler.state.host_ports import ANY_ADDRESS, HostPort, PortNumber, host_ports
from kubescene.testing.builders import PodBuilder, make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.staging import Stage
from scheduler.tables import Table, change

PLUGIN = NodePorts()


def port(number: int, protocol: str = "", address: str = "") -> JsonObject:
    named = {"hostPort": number, "containerPort": number}
    return named | {k: v for k, v in (("protocol", protocol), ("hostIP", address)) if v}


def using(name: str, *ports: JsonObject) -> PodBuilder:
    pod = make_pod(name)
    container = {**pod.build()["spec"]["containers"][0], "ports": [*ports]}
    return PodBuilder(merged(pod.build(), {"spec": {"containers": [container]}}))


@pytest.mark.parametrize(
    ("wanted", "taken", "refused"),
    [
        pytest.param(port(80), port(80), True, id="F-10 same port"),
        pytest.param(port(80), port(81), False, id="F-10 other port"),
        pytest.param(port(80, "UDP"), port(80), False, id="F-10 other protocol"),
        pytest.param(port(80, "TCP"), port(80), True, id="F-10 TCP is the default"),
        pytest.param(port(80, address="10.0.0.1"), port(80), True, id="F-10 taken everywhere"),
        pytest.param(port(80), port(80, address="10.0.0.1"), True, id="F-10 wanted everywhere"),
        pytest.param(
            port(80, address="10.0.0.1"), port(80, address="10.0.0.2"), False, id="F-10 other IP"
        ),
        pytest.param(
            port(80, address="10.0.0.1"), port(80, address="10.0.0.1"), True, id="F-10 same IP"
        ),
        pytest.param(port(80, address=ANY_ADDRESS), port(80), True, id="F-10 0.0.0.0 is all"),
    ],
)
def test_f_10_conflicts(wanted: JsonObject, taken: JsonObject, refused: bool) -> None:
    table = Table(make_node("a").build(), make_node("b").build())
    table.add(using("there", taken).build(), "a")
    pod, state = table.pod(using("new", wanted).build()), CycleState()
    one = [PLUGIN.filter(state, pod, info).ok for info in table.nodes.infos]
    assert one == [not refused, True]
    codes = PLUGIN.filter_nodes(state, pod, table.nodes, table.rows)
    assert codes.tolist() == [int(refused), 0]


def test_f_10_the_reason_and_that_preemption_may_help() -> None:
    stage = Stage()
    stage.nodes("a")
    assert stage.place(using("first", port(80))) == ["first:a"]
    stage.create(using("second", port(80)))
    attempt = stage.work()[0]
    assert "1 node(s) didn't have free ports for the requested pod ports" in attempt.message
    assert attempt.plugins == ("NodePorts",)
    stage.delete("first")
    assert [each.node for each in stage.work()] == ["a"]


def test_r_6_ports_of_ordinary_init_containers_do_not_count() -> None:
    ordinary = {"name": "i", "ports": [port(1)]}
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [port(2), {"containerPort": 9}]}
    spec = {"initContainers": [ordinary, sidecar], "containers": [{"ports": [port(3)]}]}
    assert [each.number.port for each in host_ports(spec)] == [2, 3]


def test_ports_of_a_node_are_a_set_as_upstream() -> None:
    table = Table(make_node("a").build())
    first = table.add(using("one", port(80)).build(), "a")
    second = table.add(using("two", port(80)).build(), "a")
    pod, state = table.pod(using("new", port(80)).build()), CycleState()
    table.nodes.remove_pod(first, "a")
    assert PLUGIN.filter(state, pod, table.nodes.infos[0]).ok
    table.nodes.update_pod(second, table.again(second), "a")
    assert not PLUGIN.filter(state, pod, table.nodes.infos[0]).ok


NUMBERS = st.sampled_from([80, 81])
ADDRESSES = st.sampled_from(["", "10.0.0.1", "10.0.0.2"])
PORTS = st.lists(st.tuples(NUMBERS, st.sampled_from(["", "UDP"]), ADDRESSES), max_size=2)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.tuples(PORTS, st.integers(0, 2), st.booleans()), max_size=12), wanted=PORTS
)
def test_both_forms_and_the_index_agree_with_what_is_rebuilt(steps: Any, wanted: Any) -> None:
    table = Table(*(make_node(name).build() for name in "abc"))
    placed: list[Any] = []
    for number, (ports, node, leaves) in enumerate(steps):
        if leaves and placed:
            gone = placed.pop(0)
            table.nodes.remove_pod(gone, gone.node)
        else:
            obj = using(f"p{number}", *(port(*each) for each in ports)).build()
            placed.append(table.add(obj, "abc"[node]))
    pod, state = table.pod(using("new", *(port(*each) for each in wanted)).build()), CycleState()
    one = [int(not PLUGIN.filter(state, pod, info).ok) for info in table.nodes.infos]
    assert PLUGIN.filter_nodes(state, pod, table.nodes, table.rows).tolist() == one
    for value in (80, 81):
        for protocol in ("TCP", "UDP"):
            key = PortNumber(protocol, value)
            asked = [HostPort(ANY_ADDRESS, key)]
            held = {info.name for info in table.nodes.infos if key in info.ports}
            assert {info.name for info in table.nodes.with_ports(asked)} == held
            assert {info.name for info in copy.deepcopy(table.nodes).with_ports(asked)} == held


@pytest.mark.parametrize(
    ("gone", "hint"),
    [
        pytest.param(using("gone", port(80)).on("a").build(), Hint.QUEUE, id="conflicts"),
        pytest.param(using("gone", port(81)).on("a").build(), Hint.SKIP, id="other port"),
        pytest.param(using("gone", port(80)).build(), Hint.SKIP, id="was nowhere"),
        pytest.param(
            merged(using("gone", port(80)).build(), {"status": {"nominatedNodeName": "a"}}),
            Hint.QUEUE,
            id="was nominated",
        ),
    ],
)
def test_whom_the_end_of_a_pod_wakes(gone: JsonObject, hint: Hint) -> None:
    deletion, node_added = PLUGIN.events_to_register()
    assert deletion.hint is not None
    pod = Table().pod(using("waits", port(80)).build())
    assert deletion.hint(pod, change(gone, gone=True)) is hint
    assert node_added.hint is None


def test_pods_without_host_ports_do_not_concern_it() -> None:
    table = Table()
    assert not PLUGIN.concerns(table.pod(make_pod("plain").build()).signature)
    assert PLUGIN.concerns(table.pod(using("p", port(80)).build()).signature)
