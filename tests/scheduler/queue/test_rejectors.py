"""Who counts as having turned a pod away, and is named for it."""

from kubescene.client.interfaces import ObjectRef
from kubescene.scheduler import CycleState, Handle, NodeTable, PodInfo, Status
from kubescene.scheduler.framework.status import SUCCESS
from kubescene.testing.builders import make_node, make_pod, make_priority_class
from kubescene.types import JsonObject
from scheduler.staging import POD, Stage


def pinned(name: str, node: str) -> JsonObject:
    """A pod that names its node as those of a DaemonSet do."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pod = make_pod(name).cpu("3").priority_class("high").build()
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return {**pod, "spec": {**pod["spec"], "affinity": affinity}}


def test_c_5_the_nodes_left_out_also_blame_who_refused_the_nominated_node() -> None:
    world = Stage()
    world.create(make_priority_class("high", 10), make_priority_class("higher", 20))
    world.nodes("a", "b", "c")
    world.create(make_pod("there").cpu("3").priority_class("higher").on("a"))
    world.create(pinned("p", "a"))
    nominated = {"status": {"nominatedNodeName": "a"}}
    world.client.patch(ObjectRef(POD, "p", "default"), nominated, subresource="status")
    attempt = world.work()[0]
    assert attempt.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) "
        "[NodeAffinity NodeResourcesFit]."
    )
    assert attempt.plugins == ("NodeAffinity", "NodeResourcesFit")
    assert attempt.explanation is not None
    assert {each.plugin for each in attempt.explanation.filters} == set(attempt.plugins)


def test_c_6_who_refused_a_nominated_node_that_is_not_searched_again_hears_of_events() -> None:
    world = Stage()
    world.create(make_priority_class("high", 10), make_priority_class("higher", 20))
    world.nodes("a", "b")
    world.create(make_node("tainted").cpu("4").taint("key"))
    world.create(make_pod("there").cpu("3").priority_class("higher").on("a"))
    world.create(pinned("p", "a"))
    nominated = {"status": {"nominatedNodeName": "tainted"}}
    world.client.patch(ObjectRef(POD, "p", "default"), nominated, subresource="status")
    attempt = world.work()[0]
    assert attempt.plugins == ("NodeAffinity", "NodeResourcesFit", "TaintToleration")


class First:
    """Leaves one node to look at."""

    name = "First"
    node = "a"

    def __init__(self, handle: Handle) -> None:
        del handle

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return SUCCESS, frozenset({self.node})


class Second(First):
    name = "Second"
    node = "b"


class Last(First):
    """Turns every pod away for good."""

    name = "Last"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return Status.unresolvable("no"), None


def test_c_3_all_who_left_nodes_turn_a_pod_away_if_no_node_is_left() -> None:
    world = Stage(First, Second)
    world.nodes("a", "b")
    world.create(make_pod("p"))
    attempt = world.work()[0]
    assert "node(s) didn't satisfy plugin(s) [First Second] simultaneously." in attempt.message
    assert attempt.plugins == ("First", "Second")


def test_c_2_who_turns_a_pod_away_for_good_does_so_alone() -> None:
    world = Stage(First, Last)
    world.nodes("a", "b")
    world.create(make_pod("p"))
    attempt = world.work()[0]
    assert attempt.plugins == ("Last",)
