"""The StatefulSet controller where recordings of the real one do not look."""

from typing import Any

import pytest

import kubescene
from kubescene.api.feature_gates import MAX_UNAVAILABLE_STATEFUL_SET
from kubescene.cluster.options import ClusterOptions
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.stateful_sets.passes import Sync
from kubescene.errors import ConfigurationError
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


def stateful_set(name: str = "db", replicas: int = 3, **spec: Any) -> JsonObject:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "v1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    },
}


def new_cluster(**options: Any) -> kubescene.Cluster:
    cluster = kubescene.Cluster(ClusterOptions(**options))
    for name in ("n1", "n2"):
        cluster.create(make_node(name).cpu("8").memory("16Gi"))
    return cluster


@pytest.fixture
def cluster() -> kubescene.Cluster:
    return new_cluster(events=True)


def names(cluster: kubescene.Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.list("pods")]


def status(cluster: kubescene.Cluster, name: str = "db") -> JsonObject:
    found: JsonObject = cluster.get("statefulsets", name)["status"]
    return found


def said(cluster: kubescene.Cluster, name: str = "db") -> list[tuple[str, str]]:
    events = [each for each in cluster.list("events") if each["involvedObject"]["name"] == name]
    return [(each["reason"], each["message"]) for each in events]


def order_of_creation(cluster: kubescene.Cluster) -> list[str]:
    pods = cluster.list("pods")
    return [
        pod["metadata"]["name"]
        for pod in sorted(pods, key=lambda pod: int(pod["metadata"]["resourceVersion"]))
    ]


def test_it_comes_up_in_order(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set())
    cluster.settle()
    assert order_of_creation(cluster) == names(cluster) == ["db-0", "db-1", "db-2"]
    assert status(cluster)["readyReplicas"] == status(cluster)["availableReplicas"] == 3
    assert {pod["status"]["phase"] for pod in cluster.list("pods")} == {"Running"}


def test_it_shrinks_from_the_highest_ordinal(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set())
    cluster.settle()
    cluster.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    cluster.settle()
    assert names(cluster) == ["db-0"]
    told = [message for reason, message in said(cluster) if reason == "SuccessfulDelete"]
    assert told == [
        "Delete Pod db-2 in StatefulSet db successful",
        "Delete Pod db-1 in StatefulSet db successful",
    ]


def test_a_pod_that_finds_no_node_holds_up_the_others(cluster: kubescene.Cluster) -> None:
    wide = stateful_set()
    wide["spec"]["template"]["spec"]["nodeSelector"] = {"nobody": "has"}
    cluster.create(wide)
    cluster.settle()
    assert names(cluster) == ["db-0"]
    parallel = stateful_set("all", podManagementPolicy="Parallel")
    parallel["spec"]["template"]["spec"]["nodeSelector"] = {"nobody": "has"}
    cluster.create(parallel)
    cluster.settle()
    assert names(cluster) == ["all-0", "all-1", "all-2", "db-0"]


def test_a_rolling_restart_replaces_every_pod(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set())
    cluster.settle()
    before = {pod["metadata"]["uid"] for pod in cluster.list("pods")}
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    cluster.patch(
        "StatefulSet",
        "db",
        {"spec": {"template": {"metadata": {"annotations": restarted}}}},
    )
    cluster.settle()
    after = {pod["metadata"]["uid"] for pod in cluster.list("pods")}
    assert len(after) == 3
    assert not before & after
    assert all(pod["metadata"]["annotations"] == restarted for pod in cluster.list("pods"))
    told = status(cluster)
    assert told["currentRevision"] == told["updateRevision"]
    assert len(cluster.list("controllerrevisions")) == 2


def test_claims_come_with_pods_and_stay(cluster: kubescene.Cluster) -> None:
    cluster.create(storage_class())
    cluster.create(stateful_set(volumeClaimTemplates=[CLAIM]))
    cluster.settle()
    claims = cluster.list("persistentvolumeclaims")
    assert [each["metadata"]["name"] for each in claims] == ["data-db-0", "data-db-1", "data-db-2"]
    assert all(pod["status"]["phase"] == "Running" for pod in cluster.list("pods"))
    cluster.delete("StatefulSet", "db")
    cluster.settle()
    assert len(cluster.list("persistentvolumeclaims")) == 3


def test_claims_go_with_the_set_and_with_what_is_cut_off(cluster: kubescene.Cluster) -> None:
    cluster.create(storage_class())
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    cluster.create(
        stateful_set(
            volumeClaimTemplates=[CLAIM],
            persistentVolumeClaimRetentionPolicy=policy,
        )
    )
    cluster.settle()
    cluster.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    cluster.settle()
    claims = cluster.list("persistentvolumeclaims")
    assert [each["metadata"]["name"] for each in claims] == ["data-db-0"]
    cluster.delete("StatefulSet", "db")
    cluster.settle()
    assert not cluster.list("persistentvolumeclaims")


def test_a_pod_waits_until_the_claim_of_its_predecessor_is_gone() -> None:
    world = kubescene.Cluster(ClusterOptions(events=True))
    world.create(make_node("n1"))
    world.create(storage_class())
    world.create(stateful_set(replicas=1, volumeClaimTemplates=[CLAIM]))
    world.settle()
    world.patch("persistentvolumeclaims", "data-db-0", {"metadata": {"finalizers": ["a.b/hold"]}})
    world.delete("persistentvolumeclaims", "data-db-0")
    world.delete("pods", "db-0")
    world.settle()
    assert not world.list("pods")
    why = "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
    assert ("FailedCreate", why) in said(world)
    world.patch("persistentvolumeclaims", "data-db-0", {"metadata": {"finalizers": None}})
    world.settle()
    assert world.get("pods", "db-0")["status"]["phase"] == "Running"


def test_a_refused_pod_is_told_and_tried_again(cluster: kubescene.Cluster) -> None:
    missing = stateful_set(replicas=1)
    missing["spec"]["template"]["spec"]["priorityClassName"] = "nobody-made-it"
    cluster.create(missing)
    cluster.settle()
    assert not cluster.list("pods")
    assert status(cluster)["replicas"] == 0
    [(_, message)] = [each for each in said(cluster) if each[0] == "FailedCreate"]
    assert message.startswith("Create Pod db-0 in StatefulSet db failed error: pods")


def test_pods_of_its_name_are_adopted_and_others_left(cluster: kubescene.Cluster) -> None:
    for name in ("db-0", "db-x", "other-0"):
        cluster.create(make_pod(name).label(app="db"))
    cluster.settle()
    cluster.create(stateful_set(replicas=1))
    cluster.settle()
    owned = {
        pod["metadata"]["name"]: bool(pod["metadata"].get("ownerReferences"))
        for pod in cluster.list("pods")
    }
    assert owned == {"db-0": True, "db-x": False, "other-0": False}
    labels = cluster.get("pods", "db-0")["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"


def test_a_pod_whose_labels_no_longer_match_is_released(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set(replicas=1))
    cluster.settle()
    cluster.patch("pods", "db-0", {"metadata": {"labels": {"app": "another"}}})
    cluster.settle()
    assert "ownerReferences" not in cluster.get("pods", "db-0")["metadata"]
    # Its name is taken, so the set has to wait.
    assert status(cluster)["replicas"] == 0
    cluster.delete("pods", "db-0")
    cluster.settle()
    cluster.create(make_node("n3"))
    cluster.settle()
    assert cluster.get("pods", "db-0")["metadata"]["labels"]["app"] == "db"


def test_what_is_not_ready_for_long_enough_holds_up_the_next(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set(replicas=2, minReadySeconds=30))
    cluster.settle()
    assert names(cluster) == ["db-0"]
    cluster.advance("29s")
    assert names(cluster) == ["db-0"]
    cluster.advance("1s")
    assert names(cluster) == ["db-0", "db-1"]
    cluster.advance("30s")
    assert status(cluster)["availableReplicas"] == 2


@pytest.mark.parametrize(("gates", "gone"), [((), 1), ((MAX_UNAVAILABLE_STATEFUL_SET,), 2)])
def test_as_many_are_updated_at_once_as_the_gate_allows(gates: tuple[str, ...], gone: int) -> None:
    cluster = new_cluster(events=True, gates=frozenset(gates))
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    cluster.create(stateful_set(podManagementPolicy="Parallel", updateStrategy=strategy))
    cluster.settle()
    kept = cluster.get("statefulsets", "db")["spec"]["updateStrategy"]["rollingUpdate"]
    assert kept.get("maxUnavailable") == (2 if gates else None)
    changes = {"containers": [{"name": "c", "image": "v2"}], "nodeSelector": {"nobody": "has"}}
    cluster.patch("StatefulSet", "db", {"spec": {"template": {"spec": changes}}})
    cluster.settle()
    pending = [pod for pod in cluster.list("pods") if pod["status"]["phase"] == "Pending"]
    assert len(pending) == gone


def test_a_gate_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot be turned on"):
        ClusterOptions(gates=frozenset({"MakeCoffee"}))


def test_a_name_that_is_taken_gives_a_revision_another_one(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set(replicas=0))
    cluster.settle()
    [revision] = cluster.list("controllerrevisions")
    cluster.delete("StatefulSet", "db")
    cluster.settle()
    foreign = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": revision["metadata"]["name"]},
        "data": {"something": "else"},
        "revision": 1,
    }
    cluster.create(foreign)
    cluster.create(stateful_set(replicas=0))
    cluster.settle()
    assert len(cluster.list("controllerrevisions")) == 2
    assert status(cluster)["collisionCount"] == 1


def test_a_fork_goes_on_alike(cluster: kubescene.Cluster) -> None:
    cluster.create(stateful_set(minReadySeconds=10))
    cluster.settle()
    fork = cluster.fork()
    for world in (cluster, fork):
        world.advance("30s")
        world.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
        world.settle()
    assert cluster.list("pods") == fork.list("pods")
    assert status(cluster) == status(fork)
    assert names(fork) == ["db-0"]


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("strategy", ["RollingUpdate", "OnDelete"])
def test_counting_comes_to_the_same_as_walking(
    policy: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play() -> list[list[JsonObject]]:
        cluster = new_cluster(events=True)
        update = {"type": strategy}
        cluster.create(stateful_set(podManagementPolicy=policy, updateStrategy=update))
        cluster.settle()
        for change in (
            {"replicas": 5},
            {"template": {"spec": {"containers": [{"name": "c", "image": "v2"}]}}},
            {"ordinals": {"start": 2}},
            {"replicas": 2},
            {"template": {"spec": {"nodeSelector": {"nobody": "has"}}}},
            {"template": {"spec": {"nodeSelector": None}}},
        ):
            cluster.patch("StatefulSet", "db", {"spec": change})
            cluster.settle()
            cluster.delete("pods", names(cluster)[0])
            cluster.settle()
        return [cluster.list(kind) for kind in ("pods", "statefulsets", "events")]

    quick = play()
    monkeypatch.setattr(Sync, "_next_step", lambda self: None)
    assert play() == quick


def test_a_world_without_sets_hears_of_no_pod() -> None:
    cluster = new_cluster()
    cluster.create(make_pod("a"))
    cluster.settle()
    controllers = [each.controller for each in cluster.manager.slots]
    [controller] = [each for each in controllers if each and each.name == "statefulset"]
    assert isinstance(controller, LatePodsController)
    assert not controller.is_following


def storage_class() -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.example.com",
    }
