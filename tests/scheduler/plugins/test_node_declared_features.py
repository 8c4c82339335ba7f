"""NodeDeclaredFeatures: what a pod needs, who declares it, and what wakes a pod that lacks it."""

import pytest

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Hint
from kubescene.scheduler.plugins.node_declared_features import (
    NodeDeclaredFeatures,
    needed_features,
)
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.tables import Table, change

PLUGIN = NodeDeclaredFeatures()
RESTART = "RestartAllContainersOnContainerExits"
NETWORK = "UserNamespacesHostNetworkSupport"
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]


def declaring(name: str, *features: str) -> JsonObject:
    return merged(make_node(name).build(), {"status": {"declaredFeatures": [*features]}})


def asking(**spec: object) -> JsonObject:
    return merged(make_pod("p").build(), {"spec": spec})


@pytest.mark.parametrize(
    ("pod", "needed"),
    [
        pytest.param(asking(), set(), id="F-24 nothing"),
        pytest.param(
            asking(containers=[{"restartPolicyRules": RULES}]), {RESTART}, id="F-24 container"
        ),
        pytest.param(
            asking(initContainers=[{"restartPolicyRules": RULES}]), {RESTART}, id="F-24 init"
        ),
        pytest.param(
            asking(containers=[{"restartPolicyRules": [{"action": "Restart"}]}]),
            set(),
            id="F-24 another action",
        ),
        pytest.param(asking(hostNetwork=True, hostUsers=False), {NETWORK}, id="F-24 host network"),
        pytest.param(asking(hostNetwork=True), set(), id="F-24 host users by default"),
        pytest.param(asking(hostUsers=False), set(), id="F-24 own network"),
    ],
)
def test_f_24_what_a_pod_needs(pod: JsonObject, needed: set[str]) -> None:
    assert needed_features(pod["spec"]) == needed
    signature = Table().pod(pod).signature
    assert PLUGIN.concerns(signature) is bool(needed)


def test_f_24_both_forms_refuse_nodes_that_do_not_declare_it() -> None:
    nodes = declaring("a"), declaring("b", NETWORK), declaring("c", NETWORK, RESTART)
    table, state = Table(*nodes), CycleState()
    rules = [{"name": "c", "restartPolicyRules": RULES}]
    pod = table.pod(asking(hostNetwork=True, hostUsers=False, containers=rules))
    assert PLUGIN.filter_nodes(state, pod, table.nodes, table.rows).tolist() == [1, 1, 0]
    statuses = [PLUGIN.filter(state, pod, info) for info in table.nodes.infos]
    assert [status.ok for status in statuses] == [False, False, True]
    assert statuses[0].reasons == ("node(s) didn't match Pod's required features",)
    assert statuses[0].code.name == "UNRESOLVABLE"


def test_hints() -> None:
    on_node, on_pod = (each.hint for each in PLUGIN.events_to_register())
    assert on_node is not None
    assert on_pod is not None
    pod = Table().pod(asking(hostNetwork=True, hostUsers=False))
    assert on_node(pod, change(declaring("a"))) is Hint.QUEUE
    assert on_node(pod, change(declaring("a", NETWORK), declaring("a"))) is Hint.QUEUE
    assert on_node(pod, change(declaring("a", NETWORK), declaring("a", NETWORK))) is Hint.SKIP
    before = merged(asking(hostNetwork=True, hostUsers=False), {"metadata": {"uid": "p"}})
    after = merged(before, {"spec": {"hostUsers": True}})
    assert on_pod(pod, change(after, before)) is Hint.QUEUE
    assert on_pod(pod, change(before, before)) is Hint.SKIP
    other = {"metadata": {"uid": "other"}}
    assert on_pod(pod, change(merged(after, other), merged(before, other))) is Hint.SKIP
