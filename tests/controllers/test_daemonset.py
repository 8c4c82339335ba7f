"""The DaemonSet controller where recordings of the real one do not look."""

from typing import Any

import pytest

import kubescene
from kubescene.api.records.templates import target_of
from kubescene.api.selectors.daemon_fitness import DaemonFitness, DaemonNode, daemon_tolerations
from kubescene.cluster.options import ClusterOptions
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.daemon_sets import daemonset
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def daemon_set(name: str = "ds", pod: JsonObject | None = None, **spec: Any) -> JsonObject:
    labels = {"app": name}
    containers = [{"name": "c", "image": "v1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": containers, **(pod or {})},
            },
            **spec,
        },
    }


def new_cluster(nodes: int = 3, **options: Any) -> kubescene.Cluster:
    cluster = kubescene.Cluster(ClusterOptions(**options))
    for number in range(1, nodes + 1):
        cluster.create(make_node(f"n{number}").cpu("8").memory("16Gi"))
    return cluster


@pytest.fixture
def cluster() -> kubescene.Cluster:
    return new_cluster(events=True)


def places(cluster: kubescene.Cluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in cluster.list("pods"))


def status(cluster: kubescene.Cluster, name: str = "ds") -> JsonObject:
    found: JsonObject = cluster.get("daemonsets", name)["status"]
    return found


def reasons(cluster: kubescene.Cluster) -> list[str]:
    events = cluster.list("events")
    return [each["reason"] for each in events if each["involvedObject"]["kind"] == "DaemonSet"]


def uids(cluster: kubescene.Cluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in cluster.list("pods")}


def fail(cluster: kubescene.Cluster, node: str) -> None:
    [pod] = [each for each in cluster.list("pods") if each["spec"].get("nodeName") == node]
    cluster.patch(
        "pods",
        pod["metadata"]["name"],
        {"status": {"phase": "Failed"}},
        "default",
        subresource="status",
    )


def test_every_node_gets_a_pod_and_so_does_one_that_joins(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set())
    cluster.settle()
    assert places(cluster) == ["n1", "n2", "n3"]
    assert {pod["status"]["phase"] for pod in cluster.list("pods")} == {"Running"}
    cluster.create(make_node("n4").cpu("8").memory("16Gi"))
    cluster.settle()
    assert places(cluster) == ["n1", "n2", "n3", "n4"]
    told = status(cluster)
    assert told["desiredNumberScheduled"] == told["numberAvailable"] == 4


def test_a_pod_of_a_node_that_is_gone_is_counted_no_more(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set())
    cluster.settle()
    cluster.delete("nodes", "n2")
    cluster.settle()
    cluster.advance("10m")
    assert places(cluster) == ["n1", "n3"]
    assert status(cluster)["desiredNumberScheduled"] == 2


def test_a_pod_without_a_node_goes_with_the_node_it_waited_for() -> None:
    cluster = new_cluster(nodes=1)
    cluster.create(daemon_set(pod={"schedulerName": "nobody"}))
    cluster.settle()
    assert places(cluster) == [""]
    cluster.delete("nodes", "n1")
    cluster.settle()
    # Nobody is told; the next change of the set shows it.
    cluster.patch("DaemonSet", "ds", {"metadata": {"labels": {"seen": "again"}}})
    cluster.settle()
    assert not cluster.list("pods")


def test_taints_and_labels_decide_who_gets_a_pod(cluster: kubescene.Cluster) -> None:
    cluster.patch("nodes", "n1", {"metadata": {"labels": {"disk": "ssd"}}})
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    cluster.patch("nodes", "n2", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.patch("nodes", "n2", {"spec": {"taints": [taint]}})
    cluster.create(daemon_set(pod={"nodeSelector": {"disk": "ssd"}}))
    cluster.settle()
    assert places(cluster) == ["n1"]
    cluster.patch("nodes", "n2", {"spec": {"taints": None}})
    cluster.settle()
    assert places(cluster) == ["n1", "n2"]
    cluster.patch("nodes", "n1", {"metadata": {"labels": {"disk": None}}})
    cluster.settle()
    assert places(cluster) == ["n2"]


def test_a_rolling_restart_replaces_every_pod(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set())
    cluster.settle()
    before = uids(cluster)
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
    cluster.patch(
        "DaemonSet", "ds", {"spec": {"template": {"metadata": {"annotations": restarted}}}}
    )
    cluster.settle()
    assert places(cluster) == ["n1", "n2", "n3"]
    assert not before & uids(cluster)
    assert status(cluster)["updatedNumberScheduled"] == 3
    assert len(cluster.list("controllerrevisions")) == 2


@pytest.mark.parametrize(
    ("pace", "old", "new"),
    [
        ({"maxUnavailable": 1}, 2, 1),
        ({"maxUnavailable": "50%"}, 1, 2),
        ({"maxSurge": 1, "maxUnavailable": 0}, 3, 1),
        ({"maxSurge": "100%", "maxUnavailable": 0}, 3, 3),
    ],
)
def test_an_update_that_does_not_start_goes_no_further_than_it_may(
    cluster: kubescene.Cluster, pace: JsonObject, old: int, new: int
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": pace}
    cluster.create(daemon_set(updateStrategy=strategy))
    cluster.settle()
    before = uids(cluster)
    # Nobody schedules the new ones.
    cluster.patch("DaemonSet", "ds", {"spec": {"template": {"spec": {"schedulerName": "no"}}}})
    cluster.settle()
    assert len(before & uids(cluster)) == old
    assert len(uids(cluster) - before) == new


def test_failed_pods_are_replaced_ever_more_slowly(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set())
    cluster.settle()
    fail(cluster, "n1")
    cluster.settle()
    assert places(cluster) == ["n1", "n2", "n3"]
    assert "FailedDaemonPod" in reasons(cluster)
    for wait in (1, 2):
        before = uids(cluster)
        fail(cluster, "n1")
        cluster.settle()
        cluster.advance(f"{wait * 1000 - 1}ms")
        assert uids(cluster) == before
        cluster.advance("1ms")
        assert uids(cluster) != before


def test_a_pod_is_available_after_a_while(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set(minReadySeconds=20))
    cluster.settle()
    assert status(cluster)["numberReady"] == 3
    assert status(cluster)["numberUnavailable"] == 3
    cluster.advance("20s")
    assert status(cluster)["numberAvailable"] == 3


def test_a_refused_pod_is_told(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set(pod={"priorityClassName": "nobody-made-it"}))
    cluster.settle()
    assert not cluster.list("pods")
    told = [each["message"] for each in cluster.list("events") if each["reason"] == "FailedCreate"]
    assert all(message.startswith("Error creating: pods") for message in told)
    assert told
    assert status(cluster)["desiredNumberScheduled"] == 3
    assert status(cluster)["currentNumberScheduled"] == 0


def test_pods_are_adopted_and_released(cluster: kubescene.Cluster) -> None:
    cluster.create(make_pod("mine").label(app="ds").on("n1"))
    cluster.settle()
    # A pod that was made by hand is of no revision: an update would replace it.
    cluster.create(daemon_set(updateStrategy={"type": "OnDelete"}))
    cluster.settle()
    assert places(cluster) == ["n1", "n2", "n3"]
    assert cluster.get("pods", "mine")["metadata"]["ownerReferences"][0]["name"] == "ds"
    cluster.patch("pods", "mine", {"metadata": {"labels": {"app": "another"}}})
    cluster.settle()
    assert "ownerReferences" not in cluster.get("pods", "mine")["metadata"]
    assert places(cluster) == ["n1", "n1", "n2", "n3"]


def test_revisions_with_one_template_become_one(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set())
    cluster.settle()
    [revision] = cluster.list("controllerrevisions")
    labels = {"app": "ds", "controller-revision-hash": "double"}
    double = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "ds-double", "labels": labels},
        "data": revision["data"],
        "revision": 7,
    }
    cluster.create(double)
    cluster.settle()
    [kept] = cluster.list("controllerrevisions")
    assert kept["metadata"]["name"] == "ds-double"
    hashes = [pod["metadata"]["labels"]["controller-revision-hash"] for pod in cluster.list("pods")]
    assert hashes == ["double"] * 3


def test_a_fork_goes_on_alike(cluster: kubescene.Cluster) -> None:
    cluster.create(daemon_set(minReadySeconds=10))
    cluster.settle()
    fork = cluster.fork()
    for world in (cluster, fork):
        world.create(make_node("n9").cpu("8").memory("16Gi"))
        world.advance("30s")
        world.patch("DaemonSet", "ds", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
        world.advance("2m")
    assert cluster.list("pods") == fork.list("pods")
    assert status(cluster) == status(fork)
    assert status(fork)["updatedNumberScheduled"] == 4


def test_shortcuts_change_nothing() -> None:
    worlds = [kubescene.Cluster(plain=plain) for plain in (False, True)]
    for world in worlds:
        for name in ("n1", "n2", "n-with-a-longer-name"):
            world.create(make_node(name).cpu("8").memory("16Gi"))
        affinity = {
            "podAntiAffinity": {},
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "kubernetes.io/os", "operator": "DoesNotExist"}
                            ]
                        }
                    ]
                }
            },
        }
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "100-percent"}}]
        notes = {"text": '"key":"metadata.name","operator":"In","values":["x"]'}
        world.create(make_node("small").cpu("1").memory("1Gi"))
        wide = [{"name": "c", "image": "v1", "resources": {"requests": {"cpu": "2"}}}]
        world.create(daemon_set("wide", pod={"containers": wide}))
        ds = daemon_set(pod={"affinity": affinity})
        ds["spec"]["template"]["metadata"]["annotations"] = notes
        world.create(ds)
        world.create(daemon_set("claims", pod={"volumes": volumes}))
        world.settle()
        world.patch("DaemonSet", "ds", {"spec": {"template": {"spec": {"hostNetwork": True}}}})
        world.advance("1m")
    for kind in ("pods", "daemonsets", "controllerrevisions"):
        assert worlds[0].list(kind) == worlds[1].list(kind)
    assert status(worlds[0])["numberReady"] == 4
    assert status(worlds[0], "wide")["numberUnavailable"] == 1


def test_a_world_without_sets_hears_of_no_node() -> None:
    cluster = new_cluster()
    cluster.create(make_pod("a"))
    cluster.settle()
    controllers = [each.controller for each in cluster.manager.slots]
    [controller] = [each for each in controllers if each and each.name == "daemonset"]
    assert isinstance(controller, LatePodsController)
    assert not controller.is_following


def test_more_nodes_than_one_pass_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemonset, "BURST", 2)
    cluster = new_cluster(nodes=5)
    cluster.create(daemon_set())
    cluster.settle()
    assert status(cluster)["numberReady"] == 5
    cluster.delete("DaemonSet", "ds")
    cluster.settle()
    assert not cluster.list("pods")
    assert not cluster.list("controllerrevisions")


# -- which nodes fit -------------------------------------------------------------------------


def node(name: str = "n1", taints: tuple[JsonObject, ...] = (), **labels: str) -> DaemonNode:
    return DaemonNode(name, labels, taints)


def taint(key: str, effect: str) -> JsonObject:
    return {"key": key, "effect": effect}


@pytest.mark.parametrize(
    ("spec", "there", "fits"),
    [
        ({}, node(), (True, True)),
        ({}, None, (False, False)),
        ({"nodeName": "n2"}, node(), (False, False)),
        ({"nodeSelector": {"a": "b"}}, node(a="b"), (True, True)),
        ({"nodeSelector": {"a": "b"}}, node(a="c"), (False, False)),
        ({}, node(taints=(taint("x", "NoSchedule"),)), (False, True)),
        ({}, node(taints=(taint("x", "NoExecute"),)), (False, False)),
        ({}, node(taints=(taint("x", "PreferNoSchedule"),)), (True, True)),
        ({}, node(taints=(taint("node.kubernetes.io/unschedulable", "NoSchedule"),)), (True, True)),
        (
            {},
            node(taints=(taint("node.kubernetes.io/network-unavailable", "NoSchedule"),)),
            (False, True),
        ),
        (
            {"hostNetwork": True},
            node(taints=(taint("node.kubernetes.io/network-unavailable", "NoSchedule"),)),
            (True, True),
        ),
        (
            {"tolerations": [{"operator": "Exists"}]},
            node(taints=(taint("x", "NoExecute"),)),
            (True, True),
        ),
        # A term that asks for nothing matches nothing.
        (
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}},
            node(),
            (False, False),
        ),
    ],
)
def test_which_nodes_fit(
    spec: JsonObject, there: DaemonNode | None, fits: tuple[bool, bool]
) -> None:
    assert DaemonFitness(spec).of(there) == fits


def test_a_toleration_that_is_there_is_not_added_again() -> None:
    given = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert len(daemon_tolerations({"tolerations": [given]})) == 6
    longer = {**given, "tolerationSeconds": 5}
    assert daemon_tolerations({"tolerations": [longer]})[0] == given


@pytest.mark.parametrize(
    "terms",
    [
        [],
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}],
        [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}],
    ],
)
def test_a_pod_that_asks_for_no_single_node_belongs_nowhere(terms: list[JsonObject]) -> None:
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    assert target_of({"affinity": affinity}) == ""
    assert target_of({}) == ""
