"""Karpenter in worlds of objects: machines come for pods, and go when others hold them for less."""

from typing import Any

import pytest

from karpenter_worlds import (
    CAPACITY,
    LARGE,
    SMALL,
    ZONE,
    KarpenterCluster,
    catalogue,
    deployment,
    kind,
    pod,
    pool,
    wants,
)
from kubescene.cluster import ClusterWorld
from kubescene.types import JsonObject

SPOTTED = tuple(kind(f"m-{n}", n, f"0.{n}", spot=f"0.0{n}") for n in (2, 4, 8))


def test_a_pod_that_finds_no_node_gets_the_cheapest_machine_that_holds_it() -> None:
    cluster = KarpenterCluster(catalogue(), pool(), pod("p", "3")).after("50s")
    assert (cluster.types, cluster.waiting) == (["m-4"], ["p"])
    cluster.after("10s")
    assert cluster.waiting == [], "ready after 1 s of batching and 55 s of boot"
    [claim] = cluster.claims
    assert claim["status"]["nodeName"] == claim["metadata"]["name"]
    assert claim["spec"]["resources"]["requests"] == {"cpu": "3", "memory": "1Gi", "pods": "1"}
    conditions = {each["type"]: each["status"] for each in claim["status"]["conditions"]}
    assert conditions == dict.fromkeys(
        ("Launched", "Registered", "Initialized", "Ready", "Consolidatable"), "True"
    )


def test_pods_that_come_within_a_second_of_each_other_share_machines() -> None:
    cluster = KarpenterCluster(catalogue(), pool(), pod("a", "3"))
    cluster.after("500ms").add(pod("b", "3")).after("2s")
    assert len(cluster.claims) == 1
    cluster.add(pod("c", "3")).after("2s")
    assert len(cluster.claims) == 2, "the next batch: what is on its way is full"


def test_a_batch_ends_after_ten_seconds_even_if_pods_keep_coming() -> None:
    cluster = KarpenterCluster(catalogue(), pool())
    for number in range(14):
        cluster.add(pod(f"p{number}", "100m")).after("900ms")
        assert bool(cluster.claims) == (number >= 11), "10 s after the first"


@pytest.mark.parametrize(("flag", "claims"), [("1s", 2), ("5s", 1)])
def test_flags_of_batches_are_heard(flag: str, claims: int) -> None:
    cluster = KarpenterCluster(catalogue(SMALL, LARGE), pool(), batch_idle_duration=flag)
    cluster.add(pod("a")).after("2s").add(pod("b", "7")).after("8s")
    assert len(cluster.claims) == claims, "a type is left open only until its batch ends"


def test_spot_is_cheaper_and_taken_where_it_is_allowed() -> None:
    both = pool("general", wants(CAPACITY, "spot", "on-demand"))
    cluster = KarpenterCluster(catalogue(*SPOTTED), both, pod("p")).after("1m")
    assert cluster.labels(CAPACITY) == ["spot"]
    only = pool("general", wants(CAPACITY, "on-demand"))
    cluster = KarpenterCluster(catalogue(*SPOTTED), only, pod("p")).after("1m")
    assert cluster.labels(CAPACITY) == ["on-demand"]
    [machine] = cluster.world.list("instances")
    assert machine["spec"]["price"] == {"perHour": "0.2", "currency": "USD"}


def test_the_heavier_pool_is_asked_first_and_its_limits_hold() -> None:
    first = pool("first", weight=10, limits={"cpu": "4"})
    cluster = KarpenterCluster(catalogue(), first, pool("second"))
    cluster.add(*(pod(f"p{n}", "3") for n in range(3))).after("2m")
    assert cluster.labels("karpenter.sh/nodepool") == ["first", "second"]
    assert cluster.waiting == []


def test_pods_have_to_tolerate_taints_of_a_pool_and_its_nodes_have_them() -> None:
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    template = {"taints": [taint]}
    cluster = KarpenterCluster(catalogue(), pool(template=template), pod("p"))
    tolerant = pod("t", spec={"tolerations": [{"key": "dedicated", "operator": "Exists"}]})
    cluster.add(tolerant).after("2m")
    assert cluster.waiting == ["p"]
    [node] = cluster.nodes
    assert {key: node["spec"]["taints"][0][key] for key in taint} == taint


def test_startup_taints_keep_a_node_from_being_ready_until_somebody_takes_them_away() -> None:
    taint = {"key": "starting", "effect": "NoSchedule"}
    cluster = KarpenterCluster(catalogue(), pool(template={"startupTaints": [taint]}), pod("p"))
    cluster.after("3m")
    [node] = cluster.nodes
    assert cluster.waiting == ["p"]
    assert len(cluster.claims) == 1, "nobody has to tolerate them: the one on its way will do"
    cluster.world.patch("nodes", node["metadata"]["name"], {"spec": {"taints": None}})
    cluster.after("15s")
    assert cluster.waiting == []
    assert cluster.labels("karpenter.sh/initialized") == ["true"]


@pytest.mark.parametrize(
    ("otherwise", "policy", "zones"),
    [
        ("DoNotSchedule", "Respect", {"a", "b"}),
        ("DoNotSchedule", "Ignore", {"a", "b"}),
        ("ScheduleAnyway", "Respect", {"a", "b"}),
        ("ScheduleAnyway", "Ignore", {"a"}),
    ],
)
def test_zones_are_spread_as_pods_ask(otherwise: str, policy: str, zones: set[str]) -> None:
    """What is only preferred counts, unless the flag says otherwise."""
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = deployment(4, "3")
    web["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
    cluster = KarpenterCluster(catalogue(), pool(), web, preference_policy=policy)
    assert cluster.after("2m").waiting == []
    assert set(cluster.labels(ZONE)) == zones


def test_daemon_sets_take_their_part_of_a_new_machine() -> None:
    agent = deployment(1, "1500m", "agent")
    del agent["spec"]["replicas"]
    agent["kind"] = "DaemonSet"
    cluster = KarpenterCluster(catalogue(), pool(), agent, pod("p", "1")).after("2m")
    assert cluster.types == ["m-4"], "2 cores hold the pod, and not the agent, too"
    assert cluster.waiting == []


# -- going -----------------------------------------------------------------------------------------


def test_an_empty_node_goes_after_its_wait_and_what_validates_it() -> None:
    wait = {"consolidateAfter": "1m"}
    cluster = KarpenterCluster(catalogue(), pool(disruption=wait), deployment(1)).after("5m")
    cluster.scale(0).after("70s")
    assert len(cluster.nodes) == 1
    cluster.after("40s")
    assert (cluster.nodes, cluster.claims) == ([], [])


def test_never_means_never() -> None:
    cluster = KarpenterCluster(catalogue(), pool(disruption={"consolidateAfter": "Never"}))
    cluster.add(deployment(1)).after("5m").scale(0).after("3h")
    assert len(cluster.nodes) == 1


def test_a_node_of_which_little_is_used_is_replaced_by_a_cheaper_one() -> None:
    cluster = KarpenterCluster(catalogue(), pool(), deployment(7)).after("5m")
    assert cluster.types == ["m-8"]
    cluster.scale(1).after("5m")
    assert (cluster.types, cluster.waiting) == (["m-2"], [])


def test_only_empty_nodes_go_where_the_policy_says_so() -> None:
    policy = {"consolidationPolicy": "WhenEmpty"}
    cluster = KarpenterCluster(catalogue(), pool(disruption=policy), deployment(7)).after("5m")
    cluster.scale(1).after("30m")
    assert cluster.types == ["m-8"]


def test_nodes_whose_pods_others_hold_go_together() -> None:
    cluster = KarpenterCluster(catalogue(LARGE), pool())
    for name in ("a", "b", "c"):
        cluster.add(deployment(7, name=name)).after("2m")
    assert len(cluster.nodes) == 3
    for name in ("a", "b", "c"):
        cluster.scale(2, name)
    cluster.after("5m")
    assert (len(cluster.nodes), cluster.waiting) == (1, [])


@pytest.mark.parametrize(
    ("budgets", "left"),
    [
        ([{"nodes": "0"}], 3),
        ([{"nodes": "0", "reasons": ["Empty"]}], 3),
        ([{"nodes": "0", "reasons": ["Drifted"]}], 0),
        ([{"nodes": "0", "schedule": "0 0 1 1 *", "duration": "10m"}], 0),
        ([{"nodes": "0", "schedule": "* * * * *", "duration": "1h"}], 3),
    ],
)
def test_budgets_say_how_many_nodes_may_go(budgets: Any, left: int) -> None:
    cluster = KarpenterCluster(catalogue(LARGE), pool(disruption={"budgets": budgets}))
    cluster.add(deployment(3, "7")).after("3m")
    assert len(cluster.nodes) == 3
    cluster.scale(0).after("10m")
    assert len(cluster.nodes) == left


def test_a_budget_with_a_schedule_holds_while_it_lasts() -> None:
    budgets = [{"nodes": "0", "schedule": "0 0 * * *", "duration": "2h"}]
    cluster = KarpenterCluster(catalogue(LARGE), pool(disruption={"budgets": budgets}))
    cluster.add(deployment(1, "7")).after("10m").scale(0).after("100m")
    assert len(cluster.nodes) == 1, "worlds begin at midnight"
    cluster.after("20m")
    assert cluster.nodes == []


@pytest.mark.parametrize("where", ["pod", "node"])
def test_what_must_not_be_disrupted_is_not(where: str) -> None:
    stays = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    kept: Any = stays if where == "pod" else {}
    web = deployment(7, **kept)
    cluster = KarpenterCluster(catalogue(), pool(), web).after("2m")
    if where == "node":
        [node] = cluster.nodes
        cluster.world.patch("nodes", node["metadata"]["name"], {"metadata": stays})
    cluster.scale(1).after("30m")
    assert cluster.types == ["m-8"]


def test_a_budget_of_pods_that_allows_nothing_keeps_a_node() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    cluster = KarpenterCluster(catalogue(), pool(), deployment(7), budget).after("2m")
    cluster.scale(1).after("30m")
    assert cluster.types == ["m-8"]


def test_a_node_that_is_too_old_goes_and_its_pods_have_another_before() -> None:
    cluster = KarpenterCluster(catalogue(), pool(template={"expireAfter": "1h"}), deployment(1))
    cluster.after("50m")
    [before] = cluster.nodes
    cluster.after("15m")
    [after] = cluster.nodes
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert cluster.waiting == []


def test_nodes_of_a_pool_that_has_changed_drift_and_are_replaced() -> None:
    cluster = KarpenterCluster(catalogue(), pool(), deployment(1)).after("5m")
    [before] = cluster.nodes
    zone = {"spec": {"template": {"spec": {"requirements": [wants(ZONE, "b")]}}}}
    cluster.world.patch("nodepools", "general", zone)
    cluster.after("5m")
    assert before["metadata"]["labels"][ZONE] == "a"
    assert (cluster.labels(ZONE), cluster.waiting) == (["b"], [])
    taints = [{"key": "new", "effect": "PreferNoSchedule"}]
    cluster.world.patch(
        "nodepools", "general", {"spec": {"template": {"spec": {"taints": taints}}}}
    )
    cluster.after("5m")
    [node] = cluster.nodes
    assert node["spec"]["taints"][0]["key"] == "new"


def test_after_the_grace_of_a_node_its_pods_are_deleted_whoever_protects_them() -> None:
    template = {"terminationGracePeriod": "10m"}
    stays = {"karpenter.sh/do-not-disrupt": "true"}
    cluster = KarpenterCluster(
        catalogue(), pool(template=template), deployment(1, annotations=stays)
    ).after("5m")
    [claim] = cluster.claims
    cluster.world.delete("nodeclaims", claim["metadata"]["name"])
    cluster.after("9m")
    assert claim["metadata"]["name"] in [each["metadata"]["name"] for each in cluster.nodes]
    cluster.after("2m")
    assert claim["metadata"]["name"] not in [each["metadata"]["name"] for each in cluster.nodes]
    assert cluster.waiting == []


def test_spot_machines_are_taken_back_with_notice_and_their_pods_move_before() -> None:
    interruptions = {"after": "1h", "notice": "2m"}
    cluster = KarpenterCluster(
        catalogue(*SPOTTED, interruptions=interruptions),
        pool("general", wants(CAPACITY, "spot")),
        deployment(1),
    ).after("59m")
    [before] = cluster.nodes
    cluster.after("3m")
    [after] = cluster.nodes
    assert before["metadata"]["name"] != after["metadata"]["name"]
    assert cluster.waiting == []


# -- what goes wrong -------------------------------------------------------------------------------


def test_without_a_catalogue_a_pool_says_that_nothing_is_offered() -> None:
    cluster = KarpenterCluster(pool(), pod("p")).after("1m")
    assert cluster.ready() == ("False", "there is no InstanceCatalogue that offers anything")
    cluster.add(catalogue()).after("2m")
    assert (cluster.ready(), cluster.waiting) == (("True", ""), [])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"limits": {"cpu": "lots"}}, "spec.limits: quantities must match"),
        ({"replicas": 2}, "spec.replicas: static capacity is not simulated"),
        ({"disruption": {"consolidateAfter": "soon"}}, "spec.disruption.consolidateAfter"),
        (
            {"disruption": {"budgets": [{"nodes": "1", "schedule": "often", "duration": "1h"}]}},
            "spec.disruption.budgets",
        ),
    ],
)
def test_a_pool_that_makes_no_sense_says_so_and_orders_nothing(spec: Any, message: str) -> None:
    cluster = KarpenterCluster(catalogue(), pool(**spec), pod("p")).after("5m")
    status, told = cluster.ready()
    assert status == "False"
    assert message in told
    assert (cluster.claims, cluster.waiting) == ([], ["p"])


def test_a_pool_named_as_a_group_is_refused_since_machines_could_not_be_told_apart() -> None:
    group: JsonObject = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": "general"},
        "spec": {"size": 0, "template": {}},
    }
    cluster = KarpenterCluster(catalogue(), group, pool(), pod("p")).after("1m")
    assert cluster.ready()[1].startswith("there is a NodeGroup general, too")


def test_a_catalogue_that_makes_no_sense_offers_nothing() -> None:
    bad = {**SMALL, "offers": [{"zone": "a", "price": "much"}]}
    cluster = KarpenterCluster(catalogue(bad), pool(), pod("p")).after("1m")
    assert cluster.ready()[0] == "False"
    assert cluster.claims == []


def test_what_cannot_be_had_is_not_ordered() -> None:
    gone = [{**each, "available": False} for each in SMALL["offers"]]
    cluster = KarpenterCluster(catalogue({**SMALL, "offers": gone}, LARGE), pool(), pod("p"))
    assert cluster.after("2m").types == ["m-8"]


def test_a_pod_that_no_type_holds_waits_and_is_told_why() -> None:
    cluster = KarpenterCluster(catalogue(SMALL), pool(), pod("p", "3")).after("5m")
    assert (cluster.claims, cluster.waiting) == ([], ["p"])


def test_a_machine_that_never_registers_is_given_up_and_another_ordered() -> None:
    slow = {"time": "1h"}
    cluster = KarpenterCluster(catalogue(SMALL, boot=slow), pool(), pod("p")).after("14m")
    [before] = cluster.claims
    cluster.after("3m")
    names = [each["metadata"]["name"] for each in cluster.claims]
    assert len(names) == 1
    assert names != [before["metadata"]["name"]]


def test_a_machine_that_somebody_takes_away_takes_its_claim_with_it() -> None:
    cluster = KarpenterCluster(catalogue(), pool(), deployment(1)).after("2m")
    [claim] = cluster.claims
    cluster.world.delete("instances", claim["metadata"]["name"])
    cluster.after("3m")
    assert claim["metadata"]["name"] not in [it["metadata"]["name"] for it in cluster.claims]
    assert (len(cluster.nodes), cluster.waiting) == (1, [])


def test_without_its_section_nobody_acts_on_pools() -> None:
    world = ClusterWorld()
    for each in (catalogue(), pool(), pod("p")):
        world.create(each)
    world.advance("5m")
    assert list(world.list("nodes")) == []
    assert "nodeclaims" not in {str(each) for each in world.list("customresourcedefinitions")}
