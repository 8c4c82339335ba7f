"""PodTopologySpread, rule by rule (ids of the scheduler checklist)."""

from typing import Any

import pytest

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Action, ClusterEvent, EventResource
from kubescene.scheduler.framework.status import Code
from kubescene.store import Store
from kubescene.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.neighbourhood import NODES, PODS, Neighbourhood
from scheduler.plain_topology import HOSTNAME, MISSING_LABEL, SKEWED, ZONE
from scheduler.staging import Stage

TERMINATING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def web(name: str, namespace: str = "default") -> PodBuilder:
    return make_pod(name, namespace).label(app="web")


def with_constraint(pod: PodBuilder, **fields: Any) -> JsonObject:
    """A pod whose only constraint is hard, over zones and ``app=web``, but for these fields."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return merged(pod.build(), {"spec": {"topologySpreadConstraints": [constraint | fields]}})


def zoned(name: str, zone: str) -> NodeBuilder:
    return make_node(name).zone(zone)


def two_in_a(**arguments: Any) -> Neighbourhood:
    """Zone a with two nodes and two pods, zone b with one empty node, and a node without zone."""
    nodes = (zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), make_node("bare"))
    world = Neighbourhood(*nodes, **arguments)
    world.add(web("p1"), "a1")
    world.add(web("p2"), "a2")
    return world


def reasons(world: Neighbourhood, obj: JsonObject | PodBuilder) -> dict[str, str] | None:
    found = world.filter(world.spread, world.pod(obj))
    return None if found is None else dict(zip(world.table.names, found, strict=True))


def refused(world: Neighbourhood, obj: JsonObject | PodBuilder) -> str:
    """The nodes that are refused, those for a missing label in brackets."""
    found = reasons(world, obj) or {}
    shown = {SKEWED: "{}", MISSING_LABEL: "({})"}
    return " ".join(shown[text].format(name) for name, text in sorted(found.items()) if text)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, "a1 a2 (bare)", id="PTS-5 two and one is too many where another has none"),
        pytest.param({"maxSkew": 3}, "(bare)", id="PTS-5 within the skew"),
        pytest.param({"maxSkew": 2}, "a1 a2 (bare)", id="PTS-5 the pod itself counts"),
        pytest.param(
            {"maxSkew": 2, "labelSelector": {"matchLabels": {"app": "web", "tier": "x"}}},
            "(bare)",
            id="PTS-6 only what the selector finds",
        ),
        pytest.param({"minDomains": 3}, "a1 a2 (bare)", id="PTS-4 too few domains: lowest is 0"),
        pytest.param({"labelSelector": {}}, "(bare)", id="PTS-6 an empty selector counts nobody"),
        pytest.param({"labelSelector": None}, "(bare)", id="PTS-2 no selector matches nothing"),
        pytest.param({"topologyKey": HOSTNAME}, "a1 a2", id="PTS-5 by hostname"),
        pytest.param(
            {"matchLabelKeys": ["app", "none"], "labelSelector": {}},
            "a1 a2 (bare)",
            id="PTS-2 matchLabelKeys narrow the selector",
        ),
        pytest.param({"topologyKey": "none"}, "(a1) (a2) (b1) (bare)", id="PTS-5 no such key"),
    ],
)
def test_a_hard_constraint_refuses(fields: JsonObject, expected: str) -> None:
    assert refused(two_in_a(), with_constraint(web("new"), **fields)) == expected


def test_pts_4_the_lowest_count_is_0_while_domains_are_missing() -> None:
    world = two_in_a()
    world.add(web("p3"), "b1")
    world.add(web("p4"), "b1")
    assert refused(world, with_constraint(web("new"))) == "(bare)"
    assert refused(world, with_constraint(web("new"), minDomains=3)) == "a1 a2 b1 (bare)"


def test_pts_5_a_pod_that_does_not_match_itself_may_go_one_further() -> None:
    other = make_pod("new").label(app="db")
    assert refused(two_in_a(), with_constraint(other, maxSkew=2)) == "(bare)"
    assert refused(two_in_a(), with_constraint(other, maxSkew=1)) == "a1 a2 (bare)"


def test_pts_5_codes_say_whether_preemption_could_help() -> None:
    world = two_in_a()
    pod, state = world.pod(with_constraint(web("new"))), CycleState()
    world.spread.pre_filter(state, pod, world.table)
    codes = {info.name: world.spread.filter(state, pod, info).code for info in world.table.infos}
    assert codes == {
        "a1": Code.UNSCHEDULABLE,
        "a2": Code.UNSCHEDULABLE,
        "b1": Code.SUCCESS,
        "bare": Code.UNRESOLVABLE,
    }


def test_pts_1_soft_constraints_alone_are_skipped_by_filter() -> None:
    soft = with_constraint(web("new"), whenUnsatisfiable="ScheduleAnyway")
    assert reasons(two_in_a(), soft) is None


def test_pts_3_nodes_count_that_have_all_keys_of_all_hard_constraints() -> None:
    nameless = NodeBuilder({**make_node("a2").build(), "metadata": {"name": "a2"}}).zone("a")
    world = Neighbourhood(zoned("a1", "a"), nameless, zoned("b1", "b"))
    world.add(web("p1"), "a2")
    world.add(web("p2"), "a2")
    pod = web("new").spread(ZONE, app="web")
    assert refused(world, pod) == "a1 a2"
    # The pods on a2 do not count any more, since a2 has no hostname.
    assert refused(world, pod.spread(HOSTNAME, app="web")) == "(a2)"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param({}, "(bare)", id="PTS-3 nodes that the pod cannot run on do not count"),
        pytest.param(
            {"nodeAffinityPolicy": "Ignore"}, "a1 a2 (bare)", id="PTS-3 unless they are to count"
        ),
    ],
)
def test_node_affinity_decides_which_nodes_count(policy: JsonObject, expected: str) -> None:
    world = two_in_a()
    pod = web("new").require(ZONE, "In", "a")
    assert refused(world, with_constraint(pod, maxSkew=1, **policy)) == expected


@pytest.mark.parametrize(
    ("policy", "tolerates", "expected"),
    [
        pytest.param("Ignore", False, "a1 a2 (bare)", id="PTS-3 tainted nodes count"),
        pytest.param("Honor", False, "(bare)", id="PTS-3 tainted nodes do not count if honoured"),
        pytest.param("Honor", True, "a1 a2 (bare)", id="PTS-3 tolerated taints do not matter"),
    ],
)
def test_taints_decide_which_nodes_count(policy: str, tolerates: bool, expected: str) -> None:
    world = two_in_a()
    world.set_node(zoned("b1", "b").taint("full"))
    pod = web("new").tolerate("full") if tolerates else web("new")
    assert refused(world, with_constraint(pod, nodeTaintsPolicy=policy)) == expected


def test_pts_3_pods_that_come_to_nodes_that_do_not_count_change_nothing() -> None:
    world = Neighbourhood(zoned("a1", "a"), zoned("a2", "a").taint("full"), zoned("b1", "b"))
    pod = with_constraint(web("new"), nodeTaintsPolicy="Honor")
    assert refused(world, pod) == ""
    world.add(web("p1"), "a2")
    assert refused(world, pod) == ""
    world.add(web("p2"), "a1")
    assert refused(world, pod) == "a1 a2"
    world.remove("default/p2")
    world.set_node(zoned("a2", "a"))
    assert refused(world, pod) == "a1 a2"


def test_pts_6_pods_of_other_namespaces_and_terminating_ones_do_not_count() -> None:
    world = two_in_a()
    assert refused(world, with_constraint(web("new", "other"))) == "(bare)"
    for name in ("p1", "p2"):
        world.update(f"default/{name}", TERMINATING)
    assert refused(world, with_constraint(web("new"))) == "(bare)"


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param({"matchLabels": {"app": "web"}}, SKEWED, id="PTS-7 terminating ones count"),
        pytest.param({}, SKEWED, id="PTS-7 an empty selector matches"),
        pytest.param(None, "", id="PTS-7 no selector matches nothing"),
    ],
)
def test_supposed_pods_count_by_the_selector_alone(selector: Any, expected: str) -> None:
    world = Neighbourhood(zoned("a1", "a"), zoned("b1", "b"))
    pod = world.pod(with_constraint(web("new"), labelSelector=selector))
    state = CycleState()
    world.spread.pre_filter(state, pod, world.table)
    clone, node = state.clone(), world.table.info("a1")
    leaving = world.pod(merged(web("p1").build(), TERMINATING))
    world.spread.add_pod(clone, pod, leaving, node)
    assert world.spread.filter(clone, pod, node).message == expected
    assert world.spread.filter(state, pod, node).ok
    world.spread.remove_pod(clone, pod, leaving, node)
    assert world.spread.filter(clone, pod, node).ok


def test_pts_7_counts_may_become_negative() -> None:
    world = Neighbourhood(zoned("a1", "a"), zoned("b1", "b"))
    world.add(merged(web("p1").build(), TERMINATING), "a1")
    pod, state = world.pod(with_constraint(web("new"))), CycleState()
    world.spread.pre_filter(state, pod, world.table)
    clone, info = state.clone(), world.table.info("a1")
    world.spread.remove_pod(clone, pod, world.placed["default/p1"][1], info)
    assert world.judged(world.spread, clone, pod) == ["", SKEWED]


# -- Score ---------------------------------------------------------------------------------------


def spread_scores(world: Neighbourhood, obj: JsonObject | PodBuilder) -> Any:
    rows = range(len(world.table))
    found = world.scores(world.spread, world.pod(obj), rows)
    return found and [dict(zip(world.table.names, each, strict=True)) for each in found]


def test_sc_6_fewer_pods_around_score_higher_and_unlabelled_nodes_nothing() -> None:
    world = two_in_a()
    soft = with_constraint(web("new"), whenUnsatisfiable="ScheduleAnyway", maxSkew=2)
    raw, final = spread_scores(world, soft)
    # Two domains: ln(4) = 1.386; two pods make 2.77 + 1.
    assert raw == {"a1": 4, "a2": 4, "b1": 1, "bare": 0}
    assert final == {"a1": 25, "a2": 25, "b1": 100, "bare": 0}


def test_sc_6_of_a_hostname_only_the_node_itself_counts() -> None:
    world = two_in_a()
    world.set_node(make_node("b1").zone("b").labels({HOSTNAME: "a1"}))
    fields = {"whenUnsatisfiable": "ScheduleAnyway", "topologyKey": HOSTNAME}
    raw, _ = spread_scores(world, with_constraint(web("new"), **fields))
    # Four nodes: ln(6) = 1.79.
    assert raw == {"a1": 2, "a2": 2, "b1": 0, "bare": 0}


def test_sc_6_nodes_without_zone_are_those_of_the_empty_zone() -> None:
    world = Neighbourhood(zoned("empty", ""), zoned("a1", "a"), make_node("bare"))
    world.service("web", "default", {"app": "web"})
    assert spread_scores(world, web("new"))[0] == {"empty": 6, "a1": 6, "bare": 2}
    world.add(web("p1"), "bare")
    # Two zones, ln(4), and three nodes, ln(5): the pod is in the empty zone, and on bare.
    assert spread_scores(world, web("new"))[0] == {"empty": 7, "a1": 6, "bare": 4}


def test_sc_6_all_get_100_where_no_pod_is_around() -> None:
    world = Neighbourhood(zoned("a1", "a"), zoned("b1", "b"))
    soft = with_constraint(web("new"), whenUnsatisfiable="ScheduleAnyway")
    assert spread_scores(world, soft)[1] == {"a1": 100, "b1": 100}


def test_sc_6_pods_that_a_service_selects_are_spread_by_default() -> None:
    world = two_in_a()
    assert spread_scores(world, web("new")) is None
    world.service("web", "default", {"app": "web"})
    raw, final = spread_scores(world, web("new"))
    # Nodes without zone take part: hostname ln(6) + 2, zone ln(5) * 2 + 4, of which bare has none.
    assert raw == {"a1": 11, "a2": 11, "b1": 6, "bare": 2}
    assert final == {"a1": 18, "a2": 18, "b1": 63, "bare": 100}
    assert spread_scores(world, web("new", "other")) is None
    assert spread_scores(world, make_pod("new").label(app="db")) is None


def test_sc_6_a_service_without_selector_selects_nothing() -> None:
    world = two_in_a()
    world.service("web", "default", None)  # type: ignore[arg-type]
    assert spread_scores(world, web("new")) is None


OWNERS = {
    "ReplicaSet": GroupVersionKind("apps", "v1", "ReplicaSet"),
    "StatefulSet": GroupVersionKind("apps", "v1", "StatefulSet"),
    "ReplicationController": GroupVersionKind("", "v1", "ReplicationController"),
    "Job": GroupVersionKind("batch", "v1", "Job"),
}


@pytest.mark.parametrize(
    ("kind", "spreads"),
    [
        pytest.param("ReplicaSet", True, id="SC-6 ReplicaSet"),
        pytest.param("StatefulSet", True, id="SC-6 StatefulSet"),
        pytest.param("ReplicationController", True, id="SC-6 ReplicationController"),
        pytest.param("Job", False, id="SC-6 Jobs do not count"),
    ],
)
def test_pods_of_a_controller_are_spread_by_default(kind: str, spreads: bool) -> None:
    world, gvk = two_in_a(), OWNERS[kind]
    labels = {"app": "web"}
    selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
    metadata = {"name": "owner", "namespace": "default", "uid": "1"}
    world.objects.put(gvk, {"metadata": metadata, "spec": {"selector": selector}})
    owner = {"apiVersion": gvk.api_version, "kind": kind, "name": "owner", "uid": "1"}
    owned = merged(web("new").build(), {"metadata": {"ownerReferences": [owner]}})
    assert spread_scores(world, owned) is None
    owner["controller"] = True  # type: ignore[assignment]
    assert (spread_scores(world, owned) is not None) is spreads


LIST = {
    "defaultingType": "List",
    "defaultConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    ],
}


def test_pts_1_listed_defaults_apply_to_pods_without_any_constraint() -> None:
    world = two_in_a(spread=LIST)
    assert reasons(world, web("new")) is None
    world.service("web", "default", {"app": "web"})
    assert refused(world, web("new")) == "a1 a2 (bare)"
    soft = with_constraint(web("new"), whenUnsatisfiable="ScheduleAnyway")
    assert reasons(world, soft) is None


def test_an_empty_list_of_defaults_concerns_nobody() -> None:
    world = two_in_a(spread={"defaultingType": "List"})
    world.service("web", "default", {"app": "web"})
    signature = world.pod(web("new")).signature
    assert not world.spread.concerns(signature)
    assert not world.spread.concerns_scoring(signature)


def test_a_selector_that_makes_no_sense_is_an_error() -> None:
    world = two_in_a()
    wrong = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]}
    pod = world.pod(with_constraint(web("new"), labelSelector=wrong))
    status, _ = world.spread.pre_filter(CycleState(), pod, world.table)
    assert (status.code, status.message) == (
        Code.ERROR,
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Like" is not a valid label selector operator',
    )


# -- hints ---------------------------------------------------------------------------------------


def change(
    kind: ChangeType, before: JsonObject | None, after: JsonObject, *, of_node: bool = False
) -> Change:
    resource = NODES if of_node else PODS
    old = None if before is None else make_record(resource, before, 1)
    return Change(kind, make_record(resource, after, 2), old, Store())


def hint(world: Neighbourhood, event: ClusterEvent, pod: JsonObject, what: Change) -> str:
    for each in world.spread.events_to_register():
        if each.event.resource == event.resource and each.event.action & event.action:
            assert each.by_signature
            return str(each.hint(world.pod(pod), what).value)
    raise AssertionError("not registered")


WAITING = with_constraint(web("waiting"))
PLACED = web("p1").on("a1").build()
UNLABELLED = make_pod("p1").on("a1").build()


@pytest.mark.parametrize(
    ("action", "before", "after", "expected"),
    [
        pytest.param(Action.ADD, None, PLACED, "Queue", id="a pod that counts got a node"),
        pytest.param(Action.ADD, None, UNLABELLED, "Skip", id="a pod that does not count"),
        pytest.param(
            Action.ADD, None, web("p1", "other").on("a1").build(), "Skip", id="other namespace"
        ),
        pytest.param(Action.DELETE, PLACED, PLACED, "Queue", id="a pod that counts is gone"),
        pytest.param(Action.DELETE, None, web("p1").build(), "Skip", id="it had no node"),
        pytest.param(Action.UPDATE_POD_LABEL, UNLABELLED, PLACED, "Queue", id="labels begin"),
        pytest.param(Action.UPDATE_POD_LABEL, PLACED, UNLABELLED, "Queue", id="labels end"),
        pytest.param(
            Action.UPDATE_POD_LABEL,
            PLACED,
            web("p1").label(tier="x").on("a1").build(),
            "Skip",
            id="labels that do not matter",
        ),
    ],
)
def test_pods_wake_those_they_may_help(
    action: Action, before: JsonObject | None, after: JsonObject, expected: str
) -> None:
    kind = ChangeType.DELETED if action is Action.DELETE else ChangeType.MODIFIED
    event = ClusterEvent(EventResource.POD, action)
    assert hint(two_in_a(), event, WAITING, change(kind, before, after)) == expected


@pytest.mark.parametrize(
    ("policy", "expected"), [("Honor", "Queue"), ("Ignore", "Skip")], ids=["Honor", "Ignore"]
)
def test_own_tolerations_help_where_taints_matter(policy: str, expected: str) -> None:
    own = merged(
        with_constraint(web("waiting"), nodeTaintsPolicy=policy),
        {"metadata": {"uid": "default/waiting"}},
    )
    after = merged(own, {"spec": {"tolerations": [{"operator": "Exists"}]}})
    event = ClusterEvent(EventResource.POD, Action.UPDATE_POD_TOLERATION)
    what = change(ChangeType.MODIFIED, own, after)
    assert hint(two_in_a(), event, own, what) == expected


@pytest.mark.parametrize(
    ("action", "before", "after", "expected"),
    [
        pytest.param(Action.ADD, None, zoned("n", "a"), "Queue", id="a node with the key"),
        pytest.param(Action.ADD, None, make_node("n"), "Skip", id="a node without the key"),
        pytest.param(Action.DELETE, zoned("n", "a"), zoned("n", "a"), "Queue", id="is gone"),
        pytest.param(Action.DELETE, make_node("n"), make_node("n"), "Skip", id="never counted"),
        pytest.param(
            Action.UPDATE_NODE_LABEL, make_node("n"), zoned("n", "a"), "Queue", id="gets the key"
        ),
        pytest.param(
            Action.UPDATE_NODE_LABEL, zoned("n", "a"), make_node("n"), "Queue", id="loses the key"
        ),
        pytest.param(
            Action.UPDATE_NODE_LABEL, zoned("n", "a"), zoned("n", "b"), "Queue", id="moves"
        ),
        pytest.param(
            Action.UPDATE_NODE_LABEL,
            zoned("n", "a"),
            zoned("n", "a").label(disk="ssd"),
            "Skip",
            id="another label",
        ),
        pytest.param(
            Action.UPDATE_NODE_TAINT,
            zoned("n", "a").taint("k"),
            zoned("n", "a"),
            "Queue",
            id="loses a taint",
        ),
        pytest.param(
            Action.UPDATE_NODE_TAINT,
            make_node("n").taint("k"),
            make_node("n"),
            "Skip",
            id="a taint of a node without the key",
        ),
    ],
)
def test_nodes_wake_those_they_may_help(
    action: Action, before: NodeBuilder | None, after: NodeBuilder, expected: str
) -> None:
    kind = ChangeType.DELETED if action is Action.DELETE else ChangeType.MODIFIED
    old = None if before is None else before.build()
    what = change(kind, old, after.build(), of_node=True)
    event = ClusterEvent(EventResource.NODE, action)
    assert hint(two_in_a(), event, WAITING, what) == expected


# -- in a cluster --------------------------------------------------------------------------------


def test_pods_are_spread_over_zones_and_wait_when_they_cannot_be() -> None:
    stage = Stage()
    stage.create(*(make_node(name).cpu("4").zone(name[0]) for name in ("a1", "a2", "b1")))
    pods = [web(f"w{number}").spread(ZONE, app="web") for number in range(4)]
    zones = [placed.split(":")[1][0] for placed in stage.place(*pods)]
    assert sorted(zones) == ["a", "a", "b", "b"]
    stage.create(make_node("c1").cpu("4").zone("c"))
    placed = stage.place(*(web(f"x{number}").spread(ZONE, app="web") for number in range(2)))
    assert placed == ["x0:c1", "x1:c1"]


def test_a_plain_pod_is_no_concern_until_a_service_selects_it() -> None:
    world = two_in_a()
    signature = world.pod(web("new")).signature
    before = world.spread.concern_version
    assert not world.spread.concerns(signature)
    assert not world.spread.concerns_scoring(signature)
    world.service("web", "default", {"app": "web"})
    assert world.spread.concern_version > before
    assert world.spread.concerns_scoring(signature)


def test_the_status_of_a_replica_set_changes_nothing() -> None:
    world, gvk = two_in_a(), OWNERS["ReplicaSet"]
    obj = {"metadata": {"name": "rs", "namespace": "default"}, "spec": {"replicas": 1}}
    world.objects.put(gvk, obj)
    before = world.objects.lister(gvk).spec_version
    world.objects.put(gvk, {**obj, "status": {"replicas": 1}})
    assert world.objects.lister(gvk).spec_version == before
    world.objects.put(gvk, {**obj, "spec": {"replicas": 2}})
    assert world.objects.lister(gvk).spec_version > before
