"""Owners say what a pass would count only where it would do nothing else."""

from typing import Any

from kubescene.api.selectors import from_labels
from kubescene.controllers.builtin.workloads.deployments.counting import waiting_of
from kubescene.controllers.builtin.workloads.deployments.rollout import rollout_of
from kubescene.controllers.builtin.workloads.pod_tally import OwnedPod, PodTally
from kubescene.controllers.builtin.workloads.replica_sets.replicaset import (
    ReplicaSetReconciler,
    SettledSet,
)
from kubescene.controllers.reconcile import ObjectKey
from kubescene.testing import make_deployment, make_pod

KEY = ObjectKey("default", "set")
LABELS = (("app", "web"),)


class SetAtRest:
    """A set with three pods, one of which is ready, and a status that says so."""

    def __init__(self) -> None:
        self.tally = PodTally()
        self.put("a", ready=True)
        self.put("b")
        self.put("c")
        status = {"replicas": 3, "readyReplicas": 1, "availableReplicas": 1}
        self.reconciler = ReplicaSetReconciler()
        self.reconciler._orphans.select(KEY, from_labels({"app": "web"}))
        rest = SettledSet(self.tally, self.tally.changes, {"replicas": 3}, status)
        self.reconciler._at_rest[KEY] = rest

    def put(self, name: str, *, ready: bool = False, labels: Any = LABELS) -> None:
        since = 0 if ready else None
        self.tally.put(ObjectKey("default", name), OwnedPod(True, False, since, labels))

    def counts(self) -> Any:
        found = self.reconciler.recount(KEY, 0)
        return None if found is None else found.counts


def test_a_set_counts_one_more_pod_that_is_ready() -> None:
    found = SetAtRest()
    assert found.counts() is None
    found.put("b", ready=True)
    assert found.counts() == {"readyReplicas": 2, "availableReplicas": 2}


def test_a_set_of_which_more_has_changed_than_one_pod_takes_a_pass() -> None:
    """The pod that has another label may be one to give up."""
    found = SetAtRest()
    found.put("b", ready=True)
    found.put("c", labels=(("app", "other"),))
    assert found.counts() is None


def test_a_set_with_a_pod_too_many_takes_a_pass() -> None:
    found = SetAtRest()
    found.put("d", ready=True)
    assert found.counts() is None


def rollout(*older: str) -> Any:
    """A Deployment of three pods, of whose newest set a second one has become ready."""
    deployment = make_deployment("web").replicas(3).template(make_pod("web").cpu("1")).build()
    counts = {"replicas": 3, "readyReplicas": 1, "availableReplicas": 1}
    deployment["status"] = {**counts, "unavailableReplicas": 2}
    sets = [(name, "app:old", 0) for name in older] + [("web-new", "", 2)]
    owned = []
    for number, (name, image, ready) in enumerate(sets):
        template = make_pod("web").cpu("1").build()
        template = deployment["spec"]["template"] if not image else {"spec": template["spec"]}
        metadata = {"name": name, "uid": name, "namespace": "default"}
        metadata["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
        spec = {"replicas": 3 if not image else 0, "template": template}
        status = {"replicas": 3, "readyReplicas": ready, "availableReplicas": ready}
        owned.append({"metadata": metadata, "spec": spec, "status": status})
    return rollout_of(deployment, owned)


def test_a_rollout_waits_for_the_pods_of_one_set_alone() -> None:
    status = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "unavailableReplicas": 1}
    alone = rollout()
    assert alone.new.name == "web-new"
    assert waiting_of(alone, status, 0) is not None
    with_older = rollout("web-old")
    assert (with_older.new.name, len(with_older.olds)) == ("web-new", 1)
    assert waiting_of(with_older, status, 0) is None
