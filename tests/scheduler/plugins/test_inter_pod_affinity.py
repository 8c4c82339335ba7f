"""InterPodAffinity, rule by rule (ids of the scheduler checklist)."""

from typing import Any

import pytest

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Action, ClusterEvent, EventResource
from kubescene.scheduler.framework.status import Code
from kubescene.store import Store
from kubescene.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.neighbourhood import NODES, PODS, Neighbourhood
from scheduler.plain_topology import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING,
    HOSTNAME,
    PREFERRED,
    REQUIRED,
    ZONE,
)
from scheduler.staging import Stage

TERMINATING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
SHOWN = {AFFINITY: "{}:affinity", ANTI_AFFINITY: "{}:anti", EXISTING: "{}:existing"}


def db(name: str, namespace: str = "default") -> PodBuilder:
    return make_pod(name, namespace).label(app="db")


def related(pod: PodBuilder, kind: str = "podAffinity", *terms: JsonObject) -> JsonObject:
    """A pod with required terms; each is for pods ``app=db`` in the zone, but for its fields."""
    written = [
        {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}} | term
        for term in terms or ({},)
    ]
    return merged(pod.build(), {"spec": {"affinity": {kind: {REQUIRED: written}}}})


def city(**arguments: Any) -> Neighbourhood:
    """Zone a with two nodes and a database on the first, zone b, and a node without zone."""
    nodes = [make_node(name).zone(name[0]) for name in ("a1", "a2", "b1")]
    world = Neighbourhood(*nodes, make_node("bare"), **arguments)
    world.namespace("default", {"team": "x"})
    world.namespace("other", {"team": "y"})
    world.add(db("db"), "a1")
    return world


def refused(world: Neighbourhood, obj: JsonObject | PodBuilder) -> str | None:
    found = world.filter(world.affinity, world.pod(obj))
    if found is None:
        return None
    pairs = sorted(zip(world.table.names, found, strict=True))
    return " ".join(SHOWN[text].format(name) for name, text in pairs if text)


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({}, "b1:affinity bare:affinity", id="IPA-6 the domain has a match"),
        pytest.param(
            {"topologyKey": HOSTNAME},
            "a2:affinity b1:affinity bare:affinity",
            id="IPA-6 by hostname",
        ),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "none"}}},
            "a1:affinity a2:affinity b1:affinity bare:affinity",
            id="IPA-6 nobody matches, not even the pod itself",
        ),
        pytest.param(
            {"labelSelector": None},
            "a1:affinity a2:affinity b1:affinity bare:affinity",
            id="IPA-1 no selector matches no pod",
        ),
        pytest.param({"labelSelector": {}}, "b1:affinity bare:affinity", id="IPA-1 {} matches all"),
        pytest.param(
            {"namespaces": ["other"]},
            "a1:affinity a2:affinity b1:affinity bare:affinity",
            id="IPA-1 another namespace",
        ),
        pytest.param(
            {"namespaceSelector": {}}, "b1:affinity bare:affinity", id="IPA-1 every namespace"
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "x"}}},
            "b1:affinity bare:affinity",
            id="IPA-2 namespaces by label",
        ),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "y"}}},
            "a1:affinity a2:affinity b1:affinity bare:affinity",
            id="IPA-2 namespaces with another label",
        ),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]
                }
            },
            "b1:affinity bare:affinity",
            id="IPA-2 a selector content with no labels means every namespace",
        ),
    ],
)
def test_affinity_refuses(term: JsonObject, expected: str) -> None:
    assert refused(city(), related(make_pod("new"), "podAffinity", term)) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param({}, "a1:anti a2:anti", id="IPA-5 the domain has a match"),
        pytest.param({"topologyKey": HOSTNAME}, "a1:anti", id="IPA-5 by hostname"),
        pytest.param({"namespaces": ["other"]}, "", id="IPA-1 another namespace"),
        pytest.param({"topologyKey": "none"}, "", id="IPA-4 nodes without the key do not count"),
    ],
)
def test_anti_affinity_refuses(term: JsonObject, expected: str) -> None:
    assert refused(city(), related(make_pod("new"), "podAntiAffinity", term)) == expected


@pytest.mark.parametrize(
    ("term", "newcomer", "expected"),
    [
        pytest.param({}, db("new"), "b1:existing", id="IPA-4 a pod on b1 repels"),
        pytest.param({}, make_pod("new"), None, id="IPA-4 nobody means the pod: skipped"),
        pytest.param({}, db("new", "other"), None, id="IPA-1 of its own namespace only"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "y"}}},
            db("new", "other"),
            "b1:existing",
            id="IPA-2 by the real labels of the pod's namespace",
        ),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]
                }
            },
            db("new", "other"),
            None,
            id="IPA-2 which it has",
        ),
        pytest.param({"topologyKey": "none"}, db("new"), None, id="IPA-4 no node has the key"),
    ],
)
def test_pods_on_nodes_repel(term: JsonObject, newcomer: PodBuilder, expected: str | None) -> None:
    world = city()
    world.add(related(make_pod("hermit"), "podAntiAffinity", term), "b1")
    assert refused(world, newcomer) == expected


def test_ipa_5_affinity_comes_first_then_anti_affinity_then_others() -> None:
    world = city()
    world.add(make_pod("hermit").away_from(ZONE, app="web"), "a1")
    pod = make_pod("new").label(app="web").near(ZONE, app="db").away_from(HOSTNAME, app="db")
    assert refused(world, pod) == "a1:anti a2:existing b1:affinity bare:affinity"


def test_ipa_5_codes_say_whether_preemption_could_help() -> None:
    codes = {code: status.code for code, status in city().affinity.REFUSALS.items()}
    assert codes == {1: Code.UNRESOLVABLE, 2: Code.UNSCHEDULABLE, 3: Code.UNSCHEDULABLE}


def test_ipa_3_match_label_keys_are_the_business_of_the_api_server() -> None:
    unmerged = related(db("new").label(tier="x"), "podAffinity", {"matchLabelKeys": ["tier"]})
    assert refused(city(), unmerged) == "b1:affinity bare:affinity"


def test_ipa_4_one_pod_must_match_all_terms() -> None:
    world = city()
    world.add(make_pod("web").label(app="web"), "a1")
    both = make_pod("new").near(ZONE, app="db").near(ZONE, app="web")
    assert refused(world, both) == "a1:affinity a2:affinity b1:affinity bare:affinity"
    world.add(make_pod("all").label(app="web", tier="x"), "b1")
    both = make_pod("new").near(ZONE, app="web").near(HOSTNAME, tier="x")
    assert refused(world, both) == "a1:affinity a2:affinity bare:affinity"


def test_ipa_6_the_first_of_its_kind_goes_where_the_key_is() -> None:
    world = city()
    first = make_pod("new").label(app="web").near(ZONE, app="web")
    assert refused(world, first) == "bare:affinity"
    world.add(first, "b1")
    second = make_pod("next").label(app="web").near(ZONE, app="web")
    assert refused(world, second) == "a1:affinity a2:affinity bare:affinity"


def test_ipa_6_matching_pods_on_nodes_without_the_key_are_nobody() -> None:
    world = city()
    world.add(make_pod("web").label(app="web"), "bare")
    assert refused(world, make_pod("new").label(app="web").near(ZONE, app="web")) == "bare:affinity"


def test_ipa_7_a_term_that_makes_no_sense_fails_the_pod() -> None:
    world = city()
    wrong = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}
    pod = world.pod(related(make_pod("new"), "podAffinity", wrong))
    status, _ = world.affinity.pre_filter(CycleState(), pod, world.table)
    assert (status.code, status.message) == (
        Code.UNRESOLVABLE,
        'parsing pod: requiredAffinityTerms: "Like" is not a valid label selector operator',
    )
    both = merged(related(make_pod("new"), "podAntiAffinity", wrong), pod.object)
    status, _ = world.affinity.pre_filter(CycleState(), world.pod(both), world.table)
    assert status.message.startswith("parsing pod: [requiredAffinityTerms: ")
    assert ", requiredAntiAffinityTerms: " in status.message


def test_ipa_8_terminating_pods_still_count() -> None:
    world = city()
    world.update("default/db", TERMINATING)
    assert refused(world, make_pod("new").near(ZONE, app="db")) == "b1:affinity bare:affinity"
    world.update("default/db", {"metadata": {"labels": {"app": "web"}}})
    assert refused(world, make_pod("new").away_from(ZONE, app="db")) == ""


def test_supposed_pods_end_and_restore_the_exception_for_the_first() -> None:
    world = city()
    obj = make_pod("new").label(app="web").near(ZONE, app="web")
    pod, state = world.pod(obj), CycleState()
    world.affinity.pre_filter(state, pod, world.table)
    clone, node = state.clone(), world.table.info("b1")
    other = world.pod(make_pod("other").label(app="web").away_from(HOSTNAME, app="web"))
    world.affinity.add_pod(clone, pod, other, node)
    assert world.judged(world.affinity, clone, pod) == [AFFINITY, EXISTING, AFFINITY, AFFINITY]
    world.affinity.remove_pod(clone, pod, other, node)
    assert world.judged(world.affinity, clone, pod) == world.judged(world.affinity, state, pod)


# -- Score ---------------------------------------------------------------------------------------


def scores(world: Neighbourhood, obj: JsonObject | PodBuilder) -> Any:
    rows = range(len(world.table))
    found = world.scores(world.affinity, world.pod(obj), rows)
    return found and [dict(zip(world.table.names, each, strict=True)) for each in found]


def test_sc_7_own_preferences_add_up_over_keys() -> None:
    world = city()
    pod = make_pod("new").near(ZONE, weight=10, app="db").away_from(HOSTNAME, weight=4, app="db")
    raw, final = scores(world, pod)
    assert raw == {"a1": 6, "a2": 10, "b1": 0, "bare": 0}
    assert final == {"a1": 60, "a2": 100, "b1": 0, "bare": 0}


@pytest.mark.parametrize(
    ("neighbour", "arguments", "expected"),
    [
        pytest.param(make_pod("n").near(ZONE, app="db"), {}, 1, id="SC-7 required affinity, 1"),
        pytest.param(
            make_pod("n").near(ZONE, app="db"),
            {"hardPodAffinityWeight": 30},
            30,
            id="SC-7 required affinity, configured",
        ),
        pytest.param(
            make_pod("n").near(ZONE, app="db"),
            {"hardPodAffinityWeight": 0},
            None,
            id="SC-7 required affinity, not at all",
        ),
        pytest.param(make_pod("n").near(ZONE, weight=7, app="db"), {}, 7, id="SC-7 preferred"),
        pytest.param(
            make_pod("n").away_from(ZONE, weight=7, app="db"), {}, -7, id="SC-7 preferred not"
        ),
        pytest.param(
            make_pod("n").away_from(ZONE, app="db"),
            {},
            None,
            id="SC-7 required anti does not count",
        ),
        pytest.param(
            make_pod("n").near(ZONE, weight=7, app="db"),
            {"ignorePreferredTermsOfExistingPods": True},
            None,
            id="SC-7 ignored",
        ),
    ],
)
def test_pods_on_nodes_have_preferences_too(
    neighbour: PodBuilder, arguments: JsonObject, expected: int | None
) -> None:
    world = city(affinity=arguments)
    world.add(neighbour, "b1")
    found = scores(world, db("new"))
    assert (found and found[0]["b1"]) == expected


def test_sc_7_with_own_preferences_nothing_is_ignored() -> None:
    world = city(affinity={"ignorePreferredTermsOfExistingPods": True})
    world.add(make_pod("n").near(ZONE, weight=7, app="db"), "b1")
    assert scores(world, db("new").near(ZONE, weight=1, app="db"))[0]["b1"] == 7


def test_sc_7_weights_that_cancel_are_not_the_same_as_none() -> None:
    world = city()
    pod = make_pod("new").near(ZONE, weight=5, app="db").away_from(ZONE, weight=5, app="db")
    assert scores(world, pod) == [dict.fromkeys(world.table.names, 0)] * 2
    assert scores(world, make_pod("new").near(ZONE, weight=5, app="none")) is None


# -- hints ---------------------------------------------------------------------------------------


def hint(event: ClusterEvent, pod: JsonObject, what: Change) -> str:
    world = city()
    for each in world.affinity.events_to_register():
        if each.event.resource == event.resource and each.event.action & event.action:
            assert each.by_signature
            return str(each.hint(world.pod(pod), what).value)
    raise AssertionError("not registered")


def change(kind: ChangeType, before: Any, after: Any, *, of_node: bool = False) -> Change:
    resource = NODES if of_node else PODS
    old = None if before is None else make_record(resource, before.build(), 1)
    return Change(kind, make_record(resource, after.build(), 2), old, Store())


NEAR, AWAY = make_pod("w").near(ZONE, app="db"), make_pod("w").away_from(ZONE, app="db")
BY_TEAM = related(
    make_pod("w"), "podAffinity", {"namespaceSelector": {"matchLabels": {"team": "x"}}}
)
PLACED, PLAIN = db("p").on("a1"), make_pod("p").on("a1")
GRUDGE = make_pod("p").on("a1").away_from(ZONE, app="web")


@pytest.mark.parametrize(
    ("action", "waiting", "before", "after", "expected"),
    [
        pytest.param(Action.ADD, NEAR, None, PLACED, "Queue", id="a match got a node"),
        pytest.param(Action.ADD, NEAR, None, PLAIN, "Skip", id="somebody else"),
        pytest.param(Action.ADD, AWAY, None, PLACED, "Skip", id="anti-affinity: no help"),
        pytest.param(Action.DELETE, AWAY, PLACED, PLACED, "Queue", id="who was in the way"),
        pytest.param(Action.DELETE, AWAY, PLAIN, PLAIN, "Skip", id="was not in the way"),
        pytest.param(Action.DELETE, AWAY, None, db("p"), "Skip", id="was on no node"),
        pytest.param(
            Action.DELETE,
            make_pod("w").label(app="web"),
            GRUDGE,
            GRUDGE,
            "Queue",
            id="who repelled",
        ),
        pytest.param(Action.DELETE, db("w"), GRUDGE, GRUDGE, "Skip", id="who repelled others"),
        pytest.param(Action.UPDATE_POD_LABEL, NEAR, PLAIN, PLACED, "Queue", id="begins to match"),
        pytest.param(Action.UPDATE_POD_LABEL, NEAR, PLACED, PLAIN, "Skip", id="ceases to match"),
        pytest.param(Action.UPDATE_POD_LABEL, AWAY, PLACED, PLAIN, "Queue", id="ceases to repel"),
        pytest.param(Action.UPDATE_POD_LABEL, AWAY, PLAIN, PLACED, "Skip", id="begins to repel"),
        pytest.param(
            Action.UPDATE_POD_LABEL, NEAR, make_pod("p"), db("p"), "Skip", id="is on no node"
        ),
    ],
)
def test_pods_wake_those_they_may_help(
    action: Action,
    waiting: PodBuilder,
    before: PodBuilder | None,
    after: PodBuilder,
    expected: str,
) -> None:
    kind = ChangeType.DELETED if action is Action.DELETE else ChangeType.MODIFIED
    what = change(kind, before, after)
    assert hint(ClusterEvent(EventResource.POD, action), waiting.build(), what) == expected


def test_namespaces_by_label_are_unknown_to_hints() -> None:
    event = ClusterEvent(EventResource.POD, Action.ADD)
    assert hint(event, BY_TEAM, change(ChangeType.MODIFIED, None, PLACED)) == "Skip"


def test_own_labels_always_help() -> None:
    own = merged(NEAR.build(), {"metadata": {"uid": "default/w"}})
    what = Change(
        ChangeType.MODIFIED, make_record(PODS, own, 2), make_record(PODS, own, 1), Store()
    )
    assert hint(ClusterEvent(EventResource.POD, Action.UPDATE_POD_LABEL), own, what) == "Queue"


A, B, NOWHERE = make_node("n").zone("a"), make_node("n").zone("b"), make_node("n")


@pytest.mark.parametrize(
    ("waiting", "before", "after", "expected"),
    [
        pytest.param(NEAR, None, A, "Queue", id="affinity: a node with the key"),
        pytest.param(NEAR, None, NOWHERE, "Skip", id="affinity: a node without the key"),
        pytest.param(AWAY, None, NOWHERE, "Queue", id="anti-affinity: any node"),
        pytest.param(NEAR, NOWHERE, A, "Queue", id="affinity: the key is gained"),
        pytest.param(NEAR, A, NOWHERE, "Skip", id="affinity: the key is lost"),
        pytest.param(NEAR, A, B, "Queue", id="affinity: the node moves"),
        pytest.param(AWAY, NOWHERE, A, "Skip", id="anti-affinity: the key is gained"),
        pytest.param(AWAY, A, NOWHERE, "Queue", id="anti-affinity: the key is lost"),
        pytest.param(AWAY, A, B, "Queue", id="anti-affinity: the node moves"),
        pytest.param(AWAY, A, A.label(disk="ssd"), "Skip", id="another label"),
    ],
)
def test_nodes_wake_those_they_may_help(
    waiting: PodBuilder, before: NodeBuilder | None, after: NodeBuilder, expected: str
) -> None:
    action = Action.ADD if before is None else Action.UPDATE_NODE_LABEL
    what = change(ChangeType.MODIFIED, before, after, of_node=True)
    assert hint(ClusterEvent(EventResource.NODE, action), waiting.build(), what) == expected


# -- whom it concerns ----------------------------------------------------------------------------


def test_a_plain_pod_is_no_concern_until_somebody_means_it() -> None:
    world = city()
    signature = world.pod(db("new")).signature
    world.affinity.concern_version  # noqa: B018 - reading it takes in what has happened
    assert not world.affinity.concerns(signature)
    assert not world.affinity.concerns_scoring(signature)
    before = world.affinity.concern_version
    world.add(make_pod("plain"), "b1")
    assert world.affinity.concern_version == before
    world.add(make_pod("n1").away_from(ZONE, app="db"), "b1")
    after = world.affinity.concern_version
    assert after > before
    assert world.affinity.concerns(signature)
    world.add(make_pod("n2").away_from(ZONE, app="db"), "b1")
    assert world.affinity.concern_version == after
    world.remove("default/n1")
    world.remove("default/n2")
    assert world.affinity.concern_version > after
    assert not world.affinity.concerns(signature)


def test_c_2_a_nominated_pod_that_repels_is_not_seen_by_a_pod_that_is_no_concern() -> None:
    """Item 8 of the additions to the checklist."""
    stage = Stage()
    stage.create(make_node("a").cpu("4"))
    preemptor = merged(
        make_pod("hermit").gate("wait").away_from(HOSTNAME, app="db").build(),
        {"status": {"nominatedNodeName": "a"}},
    )
    stage.create(preemptor)
    assert stage.place(db("new").cpu("1")) == ["new:a"]


# -- in a cluster --------------------------------------------------------------------------------


def test_one_pod_per_node_and_the_rest_wait_for_one_to_go() -> None:
    stage = Stage()
    stage.nodes("a", "b")
    pods = [db(f"p{number}").away_from(HOSTNAME, app="db") for number in range(3)]
    assert sorted(stage.place(*pods)) == ["p0:a", "p1:b", "p2:"]
    stage.delete("p0")
    assert [f"{each.pod.name}:{each.node}" for each in stage.work()] == ["p2:a"]


def test_preferred_terms_list_a_weight_each() -> None:
    built = make_pod("p").near(ZONE, weight=1, app="a").near(ZONE, weight=2, app="b").build()
    listed = built["spec"]["affinity"]["podAffinity"][PREFERRED]
    assert [each["weight"] for each in listed] == [1, 2]
