"""The ReplicaSet controller: as many active pods as asked for, and a status that says so."""

from functools import partial
from typing import Any

import pytest

import kubescene
from kubescene import ScenarioBuilder
from kubescene.client import Reader
from kubescene.clock import SECOND
from kubescene.cluster import ClusterWorld
from kubescene.controllers.builtin.workloads.replica_sets.replicaset import ReplicaSetReconciler
from kubescene.controllers.reconcile import ObjectKey, Plan
from kubescene.controllers.runtime import ReconcilerController
from kubescene.testing import make_node, make_pod, make_priority_class, make_replica_set
from kubescene.types import JsonObject


class Doubting(ReplicaSetReconciler):
    """Takes a pass that it may leave out all the same: it must find nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        self.left_out = 0

    def _rests(self, key: ObjectKey) -> bool:
        return False

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        rests = super()._rests(key)
        plan = super().reconcile(key, reader, now)
        if rests:
            assert not plan.writes
            self.left_out += 1
        return plan


@pytest.fixture
def world() -> ClusterWorld:
    """Only the controller under test runs: pods are what the test makes of them."""
    cluster = ClusterWorld()
    cluster.registrations.replace("replicaset", partial(ReconcilerController, Doubting()))
    cluster.start(["replicaset"])
    return cluster


def pods(cluster: ClusterWorld) -> list[JsonObject]:
    return cluster.list("pods")


def names(cluster: ClusterWorld) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(cluster)]


def status(cluster: ClusterWorld, name: str = "web") -> JsonObject:
    found: JsonObject = cluster.get("replicasets", name)["status"]
    return found


def scale(cluster: ClusterWorld, replicas: int) -> None:
    cluster.patch("replicasets", "web", {"spec": {"replicas": replicas}})
    cluster.settle()


def set_status(cluster: ClusterWorld, pod: str, **changes: Any) -> None:
    cluster.patch("pods", pod, {"status": changes}, patch_type="merge", subresource="status")


def make_ready(cluster: ClusterWorld, pod: str) -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    set_status(cluster, pod, phase="Running", conditions=[condition])


# -- creating ----------------------------------------------------------------------------------


def test_missing_pods_are_created_from_the_template(world: ClusterWorld) -> None:
    template = make_pod("ignored").cpu("100m")
    replica_set = world.create(make_replica_set("web").replicas(3).template(template))
    found = pods(world.settle())
    assert len(found) == 3
    for pod in found:
        metadata = pod["metadata"]
        assert metadata["name"].startswith("web-")
        assert metadata["generateName"] == "web-"
        assert metadata["labels"] == {"app": "web"}
        assert metadata["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": replica_set["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m"}


def test_more_pods_than_a_burst_are_created_in_passes(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(501))
    assert len(pods(world.settle())) == 501
    assert status(world)["replicas"] == 501


def test_a_lost_pod_is_replaced(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    lost = names(world.settle())[0]
    world.delete("pods", lost)
    world.settle()
    assert len(names(world)) == 2
    assert lost not in names(world)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_finished_pod_is_replaced_and_kept(world: ClusterWorld, phase: str) -> None:
    world.create(make_replica_set("web"))
    finished = names(world.settle())[0]
    set_status(world, finished, phase=phase)
    world.settle()
    assert len(names(world)) == 2
    assert finished in names(world)
    assert status(world)["replicas"] == 1


def test_a_set_that_is_being_deleted_manages_nothing(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    lost = names(world.settle())[0]
    world.patch("replicasets", "web", {"metadata": {"finalizers": ["example.com/held"]}})
    world.delete("replicasets", "web")
    world.delete("pods", lost)
    assert len(names(world.settle())) == 1
    assert status(world)["replicas"] == 1


# -- scaling down ------------------------------------------------------------------------------


def test_surplus_pods_are_deleted(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(5))
    before = names(world.settle())
    scale(world, 2)
    assert len(names(world)) == 2
    assert set(names(world)) < set(before)


def test_scaling_to_zero_and_back(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(3))
    world.settle()
    scale(world, 0)
    assert names(world) == []
    assert status(world)["replicas"] == 0
    scale(world, 1)
    assert len(names(world)) == 1


def test_the_running_pod_outlives_the_pending_one(cluster: ClusterWorld) -> None:
    cluster.create(make_node("n").cpu("1"))
    cluster.create(make_replica_set("web").replicas(2).template(make_pod("x").cpu("1")))
    (placed,) = (
        p["metadata"]["name"] for p in cluster.settle().list("pods", fields="spec.nodeName=n")
    )
    scale(cluster, 1)
    assert names(cluster) == [placed]


# -- claiming ----------------------------------------------------------------------------------


def test_a_matching_orphan_is_adopted_instead_of_creating(world: ClusterWorld) -> None:
    world.create(make_pod("orphan").label(app="web"))
    world.create(make_pod("stranger").label(app="other"))
    world.create(make_replica_set("web").replicas(2))
    world.settle()
    assert len(names(world)) == 3
    (owner,) = world.get("pods", "orphan")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", "web", True)
    assert "ownerReferences" not in world.get("pods", "stranger")["metadata"]


def test_an_orphan_that_comes_later_is_adopted_and_is_one_too_many(world: ClusterWorld) -> None:
    world.create(make_replica_set("web"))
    world.settle()
    world.create(make_pod("late").label(app="web"))
    world.settle()
    assert len(names(world)) == 1


def test_a_pod_whose_labels_come_to_match_is_adopted_and_is_one_too_many(
    world: ClusterWorld,
) -> None:
    world.create(make_pod("stranger").label(app="other"))
    world.create(make_replica_set("web"))
    world.settle()
    assert len(names(world)) == 2
    world.patch("pods", "stranger", {"metadata": {"labels": {"app": "web"}}})
    world.settle()
    assert len(names(world)) == 1


def test_two_sets_do_not_adopt_the_same_orphan(world: ClusterWorld) -> None:
    world.create(make_pod("orphan").label(app="web"))
    world.create(make_replica_set("web"))
    other = make_replica_set("web").build()
    world.create({**other, "metadata": {"name": "rival", "namespace": "default"}})
    world.settle()
    owners = [pod["metadata"]["ownerReferences"] for pod in pods(world)]
    assert sorted(reference["name"] for (reference,) in owners) == ["rival", "web"]


def test_a_finished_orphan_is_not_adopted(world: ClusterWorld) -> None:
    world.create(make_pod("orphan").label(app="web"))
    set_status(world, "orphan", phase="Succeeded")
    world.create(make_replica_set("web"))
    world.settle()
    assert "ownerReferences" not in world.get("pods", "orphan")["metadata"]


def test_a_pod_of_another_owner_is_not_adopted(world: ClusterWorld) -> None:
    pod = make_pod("taken").label(app="web").build()
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}
    world.create({**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}})
    world.create(make_replica_set("web"))
    world.settle()
    assert len(names(world)) == 2
    assert world.get("pods", "taken")["metadata"]["ownerReferences"] == [owner]


def test_an_orphan_of_another_namespace_is_not_adopted(world: ClusterWorld) -> None:
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    if not world.list("serviceaccounts", "far"):
        world.create({**account, "metadata": {"name": "default", "namespace": "far"}})
    world.create(make_pod("orphan", "far").label(app="web"))
    world.create(make_replica_set("web"))
    world.settle()
    assert "ownerReferences" not in world.get("pods", "orphan", "far")["metadata"]


def test_a_pod_that_no_longer_matches_is_released_and_replaced(world: ClusterWorld) -> None:
    world.create(make_replica_set("web"))
    (pod,) = names(world.settle())
    world.patch("pods", pod, {"metadata": {"labels": {"app": "debug"}}})
    world.settle()
    assert len(names(world)) == 2
    assert "ownerReferences" not in world.get("pods", pod)["metadata"]
    assert status(world)["replicas"] == 1


def test_pods_are_made_of_the_template_as_it_is_then(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(1))
    world.settle()
    scale(world, 2)
    newer = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    world.patch("replicasets", "web", newer)
    scale(world, 3)
    versions = [each["metadata"].get("annotations", {}).get("version") for each in pods(world)]
    assert versions == [None, None, "2"]


# -- status ------------------------------------------------------------------------------------


def test_the_status_counts(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(3))
    first, second, _ = names(world.settle())
    assert status(world) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    make_ready(world, first)
    make_ready(world, second)
    counts = status(world.settle())
    assert (counts["readyReplicas"], counts["availableReplicas"]) == (2, 2)
    scale(world, 2)
    assert status(world)["observedGeneration"] == 2


def test_a_pod_without_the_template_labels_is_not_fully_labeled(world: ClusterWorld) -> None:
    web = make_replica_set("web").build()
    labels = {"app": "web", "track": "canary"}
    template = {**web["spec"]["template"], "metadata": {"labels": labels}}
    world.create(make_pod("orphan").label(app="web"))
    world.create({**web, "spec": {**web["spec"], "replicas": 2, "template": template}})
    counts = status(world.settle())
    assert (counts["replicas"], counts["fullyLabeledReplicas"]) == (2, 1)


def test_terminating_pods_are_counted_apart(world: ClusterWorld) -> None:
    world.create(make_node("n"))
    world.create(make_replica_set("web").template(make_pod("x").on("n")))
    (pod,) = names(world.settle())
    world.delete("pods", pod)
    counts = status(world.settle())
    assert (counts["replicas"], counts["terminatingReplicas"]) == (1, 1)


def test_a_pod_that_is_no_longer_ready_is_not_counted_so(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    first, second = names(world.settle())
    for pod in (first, second):
        make_ready(world, pod)
    assert status(world.settle())["readyReplicas"] == 2
    set_status(world, first, conditions=[{"type": "Ready", "status": "False"}])
    assert status(world.settle())["readyReplicas"] == 1
    world.patch("pods", second, {"metadata": {"labels": {"more": "x"}}})
    make_ready(world, first)
    counts = status(world.settle())
    assert (counts["readyReplicas"], counts["fullyLabeledReplicas"]) == (2, 2)


@pytest.mark.parametrize(("delay", "available"), [(0, 2), (5, 1)])
def test_a_ready_pod_that_does_not_say_since_when_is_never_old_enough(
    world: ClusterWorld, delay: int, available: int
) -> None:
    web = make_replica_set("web").replicas(3).build()
    world.create({**web, "spec": {**web["spec"], "minReadySeconds": delay}})
    first, second, third = names(world.settle())
    make_ready(world, first)
    set_status(world, second, conditions=[{"type": "Ready", "status": "True"}])
    set_status(world, third, conditions=[{"type": "Ready"}])
    world.settle()
    world.clock.wait_until(world.clock.now() + 60 * SECOND)
    counts = status(world.settle())
    assert (counts["readyReplicas"], counts["availableReplicas"]) == (2, available)
    scale(world, 1)
    assert names(world) == [first]


def test_a_set_at_rest_is_not_looked_at() -> None:
    doubting, cluster = Doubting(), ClusterWorld()
    cluster.registrations.replace("replicaset", partial(ReconcilerController, doubting))
    cluster.start(["replicaset"])
    cluster.create(make_replica_set("web").replicas(5))
    for pod in names(cluster.settle()):
        make_ready(cluster, pod)
        cluster.settle()
    assert doubting.left_out >= 5, "a pass after each status that was written"


def test_a_set_at_rest_gets_no_turn() -> None:
    reconciler, cluster = ReplicaSetReconciler(), ClusterWorld()
    cluster.registrations.replace("replicaset", partial(ReconcilerController, reconciler))
    (slot,) = cluster.start(["replicaset"])
    cluster.create(make_replica_set("web").replicas(1))
    (pod,) = names(cluster.settle())
    make_ready(cluster, pod)
    cluster.settle()
    cluster.patch("pods", pod, {"metadata": {"annotations": {"a": "b"}}})
    assert not slot.awake
    cluster.patch("pods", pod, {"metadata": {"labels": {"a": "b"}}})
    assert not slot.awake  # it gets more labels, as from its node: still selected
    cluster.patch("pods", pod, {"metadata": {"labels": {"app": "another"}}})
    assert slot.awake


def test_a_pod_that_gets_a_label_its_set_excludes_is_released(world: ClusterWorld) -> None:
    made = make_replica_set("web").build()
    made["spec"]["selector"]["matchExpressions"] = [{"key": "debug", "operator": "DoesNotExist"}]
    world.create(made)
    (pod,) = names(world.settle())
    make_ready(world, pod)
    world.settle()
    world.patch("pods", pod, {"metadata": {"labels": {"debug": "yes"}}})
    world.settle()
    assert "ownerReferences" not in world.get("pods", pod)["metadata"]
    assert len(names(world)) == 2


def test_a_settled_set_is_not_written_again(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(3))
    revision = world.settle().store.revision
    assert world.settle().store.revision == revision


# -- refused writes ----------------------------------------------------------------------------


def test_a_status_that_somebody_else_wrote_is_put_right(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    right = status(world.settle())
    wrong = {"replicas": 9, "observedGeneration": None}
    world.patch("replicasets", "web", {"status": wrong}, patch_type="merge", subresource="status")
    assert status(world.settle()) == right


def test_a_change_of_the_set_that_asks_for_nothing_is_observed(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    world.settle()
    world.patch("replicasets", "web", {"spec": {"minReadySeconds": 5}})
    assert status(world.settle())["observedGeneration"] == 2


def test_a_pod_whose_labels_change_twice_counts_once(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    first = names(world.settle())[0]
    for value in ("x", "y"):
        world.patch("pods", first, {"metadata": {"labels": {"extra": value}}})
        assert status(world.settle())["fullyLabeledReplicas"] == 2
    set_status(world, first, phase="Failed")
    assert status(world.settle())["fullyLabeledReplicas"] == 2
    assert len(names(world)) == 3


def test_a_set_of_the_same_name_starts_anew(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    before = status(world.settle())
    world.delete("replicasets", "web")
    for name in names(world):
        world.delete("pods", name)
    world.create(make_replica_set("web").replicas(2))
    assert status(world.settle()) == before
    assert len(names(world)) == 2


def with_missing_class() -> JsonObject:
    return (
        make_replica_set("web").replicas(3).template(make_pod("x").priority_class("gold")).build()
    )


def test_a_refused_create_shows_as_replica_failure(world: ClusterWorld) -> None:
    world.clock.wait_until(world.clock.now() + 5 * SECOND)
    world.create(with_missing_class())
    (condition,) = status(world.settle())["conditions"]
    assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
    assert condition["reason"] == "FailedCreate"
    assert "no PriorityClass with name gold was found" in condition["message"]
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:05Z"
    assert names(world) == []


def test_the_failure_goes_when_the_pods_can_be_created(world: ClusterWorld) -> None:
    world.create(with_missing_class())
    world.settle().create(make_priority_class("gold", 10))
    scale(world, 2)
    assert len(names(world)) == 2
    assert "conditions" not in status(world)


def test_what_was_refused_is_tried_again_in_the_next_step() -> None:
    scenario = ScenarioBuilder("refused").step(1).create(with_missing_class())
    run = kubescene.run(scenario.step(2).create(make_priority_class("gold", 10)).done())
    assert len(names(run.cluster)) == 3
    assert "conditions" not in status(run.cluster)


def test_a_failure_leaves_the_other_counts_right(world: ClusterWorld) -> None:
    web = with_missing_class()
    world.create(make_priority_class("gold", 10))
    world.create({**web, "spec": {**web["spec"], "replicas": 1, "minReadySeconds": 5}})
    (pod,) = names(world.settle())
    make_ready(world, pod)
    world.clock.wait_until(world.clock.now() + 60 * SECOND)
    world.delete("priorityclasses", "gold")
    scale(world, 2)
    counts = status(world)
    assert counts["conditions"][0]["reason"] == "FailedCreate"
    assert (counts["readyReplicas"], counts["availableReplicas"]) == (1, 1)
