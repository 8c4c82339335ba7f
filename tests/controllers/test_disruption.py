"""The disruption controller: what a budget's status says, and when."""

import pytest

from kubescene.actors import Actor
from kubescene.api.disruption_budgets import BUDGET
from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change
from kubescene.clock import SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.workloads.disruption import DisruptionReconciler, printed
from kubescene.controllers.reconcile import ObjectKey
from kubescene.errors import TooManyRequestsError
from kubescene.testing import make_deployment, make_node, make_pod, make_replica_set
from kubescene.types import JsonObject


@pytest.fixture
def world() -> ClusterWorld:
    cluster = ClusterWorld()
    cluster.create(make_node("n1").cpu("64").memory("64Gi"))
    return cluster


def guard(cluster: ClusterWorld, **spec: object) -> None:
    selector = {"matchLabels": {"app": "web"}}
    cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard"},
            "spec": {"selector": selector, **spec},
        }
    )


def status(cluster: ClusterWorld) -> JsonObject:
    found: JsonObject = cluster.settle().get("pdb", "guard")["status"]
    return found


def counts(cluster: ClusterWorld) -> tuple[int, int, int, int]:
    """Expected, healthy, desired, allowed."""
    told = status(cluster)
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    expected, healthy, desired, allowed = (told[name] for name in names)
    return expected, healthy, desired, allowed


def advance(cluster: ClusterWorld, seconds: int) -> None:
    cluster.event_queue.run(cluster.clock.now() + seconds * SECOND)
    cluster.settle()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 2}, (5, 5, 2, 3)),
        ({"minAvailable": 9}, (5, 5, 9, 0)),
        ({"minAvailable": "50%"}, (5, 5, 3, 2)),
        ({"maxUnavailable": 1}, (5, 5, 4, 1)),
        ({"maxUnavailable": "50%"}, (5, 5, 2, 3)),
        ({"maxUnavailable": 9}, (5, 5, 0, 5)),
        ({}, (0, 5, 0, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("owner", ["Deployment", "ReplicaSet"])
def test_counts_and_percentages(
    world: ClusterWorld, owner: str, spec: dict[str, object], expected: tuple[int, ...]
) -> None:
    make = make_deployment if owner == "Deployment" else make_replica_set
    world.create(make("web").replicas(5))
    guard(world, **spec)
    assert counts(world) == expected


def test_a_budget_sees_pods_that_were_there_before_it(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(3))
    world.settle()
    guard(world, minAvailable=1)
    assert counts(world) == (3, 3, 1, 2)


def test_percentages_are_of_what_is_wanted_not_of_what_is_there(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(4))
    world.create(make_pod("alone").label(app="alone"))
    either = {"key": "app", "operator": "In", "values": ["web", "alone"]}
    guard(world, minAvailable="50%", selector={"matchExpressions": [either]})
    assert counts(world) == (4, 5, 2, 3)
    world.scale("rs", "web", 2)
    assert counts(world) == (2, 3, 1, 2)


def test_a_budget_without_pods_allows_nothing(world: ClusterWorld) -> None:
    guard(world, minAvailable=0)
    assert counts(world) == (0, 0, 0, 0)
    (condition,) = status(world)["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")


def test_the_condition_follows_the_count(world: ClusterWorld) -> None:
    guard(world, minAvailable=1)
    world.create(make_pod("a").label(app="web"))
    assert status(world)["conditions"][0]["reason"] == "InsufficientPods"
    world.create(make_pod("b").label(app="web"))
    (condition,) = status(world)["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "SufficientPods")


def test_a_changed_budget_is_counted_anew(world: ClusterWorld) -> None:
    world.create(make_pod("a").label(app="web"))
    guard(world, minAvailable=1)
    assert counts(world) == (1, 1, 1, 0)
    world.patch("pdb", "guard", {"spec": {"minAvailable": 0}})
    assert counts(world) == (1, 1, 0, 1)
    assert status(world)["observedGeneration"] == 2
    selector = {"matchLabels": {"app": "other"}}
    world.patch("pdb", "guard", {"spec": {"selector": selector}})
    assert counts(world) == (0, 0, 0, 0)


def test_a_pod_that_changes_its_labels_leaves_the_budget(world: ClusterWorld) -> None:
    guard(world, minAvailable=0)
    world.create(make_pod("a").label(app="web"))
    assert counts(world) == (1, 1, 0, 1)
    world.patch("pods", "a", {"metadata": {"labels": {"app": "other"}}})
    assert counts(world) == (0, 0, 0, 0)


def test_deleted_pods_are_not_counted(world: ClusterWorld) -> None:
    guard(world, minAvailable=0)
    world.create(make_pod("a").label(app="web"))
    assert counts(world) == (1, 1, 0, 1)
    world.delete("pods", "a")
    assert counts(world) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        (("batch/v1", "Job"), "jobs.batch does not implement the scale subresource"),
        (("example.com/v1", "Thing"), 'no matches for kind "Thing" in version "example.com/v1"'),
        (("apps/v1", "StatefulSet"), 'found no controllers for pod "a"'),
    ],
    ids=["unscalable", "unknown", "gone"],
)
def test_owners_whose_scale_is_unknown_stop_all_evictions(
    owner: tuple[str, str], message: str
) -> None:
    world = ClusterWorld()
    world.start(["disruption"])
    api_version, kind = owner
    reference = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u"}
    pod = make_pod("a").label(app="web").build()
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    world.create(pod)
    guard(world, maxUnavailable=1)
    told = status(world)
    assert told["disruptionsAllowed"] == 0
    assert (told["conditions"][0]["reason"], told["conditions"][0]["message"]) == (
        "SyncFailed",
        message,
    )


def test_evictions_go_on_as_replacements_become_ready(world: ClusterWorld) -> None:
    """A drain: every pod is replaced, and never more than one is missing."""
    world.create(make_replica_set("web").replicas(3))
    guard(world, maxUnavailable=1)
    first = [pod["metadata"]["name"] for pod in world.settle().list("pods")]
    for name, other in zip(first, [*first[1:], None], strict=True):
        world.evict(name)
        if other is not None:
            with pytest.raises(TooManyRequestsError):
                world.evict(other)
        assert counts(world) == (3, 3, 2, 1)
        assert "disruptedPods" not in status(world)
    assert not set(first) & {pod["metadata"]["name"] for pod in world.list("pods")}


def test_a_disrupted_pod_that_stays_counts_again_after_two_minutes(world: ClusterWorld) -> None:
    world.create(make_pod("a").label(app="web"))
    guard(world, minAvailable=0)
    assert counts(world) == (1, 1, 0, 1)
    noted = {"disruptedPods": {"a": "2026-01-01T00:00:00Z", "gone": "2026-01-01T00:00:00Z"}}
    world.patch("pdb", "guard", {"status": noted}, patch_type="merge", subresource="status")
    assert counts(world) == (1, 0, 0, 0)
    assert list(status(world)["disruptedPods"]) == ["a"]
    advance(world, 119)
    assert counts(world) == (1, 0, 0, 0)
    advance(world, 1)
    assert counts(world) == (1, 1, 0, 1)
    assert "disruptedPods" not in status(world)


def test_what_has_been_counted_is_not_written_again(world: ClusterWorld) -> None:
    world.create(make_pod("a").label(app="web"))
    guard(world, minAvailable=0)
    before = world.settle().get("pdb", "guard")["metadata"]["resourceVersion"]
    world.patch("pods", "a", {"metadata": {"annotations": {"a": "b"}}})
    assert world.settle().get("pdb", "guard")["metadata"]["resourceVersion"] == before


def test_pods_matter_as_soon_as_there_is_a_budget(world: ClusterWorld) -> None:
    reconciler = DisruptionReconciler(world.scheme)
    assert not reconciler.needs_pods
    changes: list[Change] = []
    world.client(Actor("test")).watch(BUDGET, changes.append)
    guard(world, minAvailable=0)
    for change in changes:
        reconciler.observe(change)
    assert reconciler.needs_pods


def test_pods_between_a_budget_and_its_first_count_are_counted_once(world: ClusterWorld) -> None:
    guard(world, minAvailable=0)
    world.create(make_pod("a").label(app="web"))
    world.create(make_pod("b").label(app="web"))
    world.delete("pods", "b")
    status = world.settle().get("pdb", "guard")["status"]
    assert status["expectedPods"] == 1


def test_budgets_that_are_gone_are_forgotten(world: ClusterWorld) -> None:
    reconciler = DisruptionReconciler(world.scheme)
    client = world.client(Actor("test"))
    noted: list[ObjectKey] = []
    client.watch(BUDGET, lambda change: noted.extend(reconciler.observe(change)))
    guard(world, minAvailable=0)
    world.delete("pdb", "guard")
    assert reconciler.reconcile(noted[-1], client, 0).writes == ()
    assert reconciler._covered == {}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"maxUnavailable": 1}, True),
        ({"minAvailable": "50%"}, True),
        ({"minAvailable": 1}, False),
    ],
)
def test_pods_that_nobody_manages_are_told_where_owners_count(spec: JsonObject, told: bool) -> None:
    cluster = ClusterWorld(ClusterOptions(events=True))
    cluster.create(make_pod("bare").label(app="web"))
    guard(cluster, **spec)
    reasons = [each["reason"] for each in cluster.settle().list("Event")]
    assert ("UnmanagedPods" in reasons) is told


def test_counts_of_unmanaged_pods_go_down_again(world: ClusterWorld) -> None:
    reconciler = DisruptionReconciler(world.scheme)
    client = world.client(Actor("test"))
    noted: list[ObjectKey] = []
    for kind in (BUDGET, POD):
        client.watch(kind, lambda change: noted.extend(reconciler.observe(change)))
    guard(world, maxUnavailable=1)
    world.create(make_pod("bare").label(app="web"))
    key = ObjectKey("default", "guard")
    assert [each.reason for each in reconciler.reconcile(key, client, 0).notices] == [
        "UnmanagedPods"
    ]
    world.delete("pods", "bare", grace_period_s=0)
    assert [each.reason for each in reconciler.reconcile(key, client, 0).notices] == ["NoPods"]


def test_selectors_are_printed_as_go_does() -> None:
    assert printed(None) == "nil"
    expressions = [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "Exists"},
    ]
    assert printed({"matchLabels": {"n": "1", "m": "2"}, "matchExpressions": expressions}) == (
        "&LabelSelector{MatchLabels:map[string]string{m: 2,n: 1,},MatchExpressions:"
        "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:a,Operator:In,Values:[x y],},"
        "LabelSelectorRequirement{Key:b,Operator:Exists,Values:[],},},}"
    )
