"""The statuses in which owners count their pods are those of a turn, byte for byte."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kubescene
from kubescene.api.kinds import REPLICA_SET
from kubescene.api.records.changes import Change
from kubescene.controllers.reconcile import NOTHING, Plan
from kubescene.controllers.runtime import ReconcilerController
from kubescene.instruments import Instrument, ObjectWrite
from kubescene.testing import make_deployment, make_node, make_pod
from lane.both_ways import compared, counts, deployment, nodes, pod

MANY = 250


def replica_set(replicas: int, name: str = "set") -> dict[str, Any]:
    made = deployment(replicas, name).build()
    metadata = {"name": name, "namespace": "default"}
    return {**made, "kind": "ReplicaSet", "metadata": metadata}


def changed(made: Any, **spec: object) -> dict[str, Any]:
    built = made if isinstance(made, dict) else made.build()
    return {**built, "spec": {**built["spec"], **spec}}


def test_set_and_deployment_count_without_turns_but_where_a_condition_changes(
    tmp_path: Path,
) -> None:
    found = compared(nodes(MANY).create(deployment(80)).done(), tmp_path)
    # Of 79 pods, since the last is not in the lane, the set counts all but the first. Its owner
    # takes turns for the first and for the one that makes enough of them, and right after these.
    assert found.counted == 78 + 75


def test_a_set_of_its_own_counts_all_but_its_first_pod(tmp_path: Path) -> None:
    found = compared(nodes(MANY).create(replica_set(40)).done(), tmp_path)
    assert found.counted == 38


def test_two_deployments_and_pods_of_nobody_in_one_queue(tmp_path: Path) -> None:
    built = nodes(MANY).create(deployment(30)).create(pod(), count=20).create(deployment(30, "api"))
    assert compared(built.create(replica_set(20)).done(), tmp_path).counted > 100


@pytest.mark.parametrize(
    "spec",
    [
        {"minReadySeconds": 5},
        {"progressDeadlineSeconds": 2},
        {"paused": True},
        {"strategy": {"type": "Recreate"}},
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 7}}},
    ],
    ids=str,
)
def test_deployments_of_all_kinds(spec: dict[str, object], tmp_path: Path) -> None:
    built = nodes(MANY).create(changed(deployment(40), **spec)).advance("3s").step(3)
    compared(built.advance("1m").done(), tmp_path)


def test_a_rollout_with_an_older_set_takes_turns(tmp_path: Path) -> None:
    built = nodes(MANY).create(deployment(30)).step(3)
    image = [{"name": "main", "image": "app:2", "resources": {"requests": {"cpu": "100m"}}}]
    patch = {"spec": {"template": {"spec": {"containers": image}}}}
    compared(built.patch("apps/v1", "Deployment", "web", patch).advance("1m").done(), tmp_path)


def test_scaling_up_and_down_while_pods_come(tmp_path: Path) -> None:
    built = nodes(20, cpu="4").create(deployment(60)).step(3)
    built.patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 90}}).step(4)
    built.patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 10}}).advance("1m")
    assert compared(built.done(), tmp_path).counted > 100


def test_pods_with_delays_are_counted_when_they_are_ready(tmp_path: Path) -> None:
    built = nodes(MANY).create(deployment(30)).create(replica_set(10)).advance("1m")
    compared(built.settings(kubelet={"readyDelay": "2s"}).done(), tmp_path)


class Onlooker:
    """A controller of somebody else who follows ReplicaSets, and wakes up at each third change."""

    name = "onlooker"
    kinds = (REPLICA_SET,)

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.turns: list[int] = []

    def observe(self, change: Change) -> list[Any]:
        self.seen.append((change.type.value, change.revision))
        key = (change.record.namespace, change.record.name)
        return [key] if len(self.seen) % 3 == 0 else []

    def reconcile(self, key: Any, reader: Any, now: int) -> Plan:
        self.turns.append(len(self.seen))
        return NOTHING

    def refused(self, *_: Any) -> Plan:
        return NOTHING


class Writes(Instrument):
    """Is content with what passes in the lane, and sees the writes of owners."""

    in_lane = True

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def object_written(self, write: ObjectWrite) -> None:
        if write.record.resource.resource != "pods":
            told = (write.actor, write.role, write.verb, write.subresource, write.patch_type)
            before = write.previous
            self.seen.append(
                (*told, write.record.data, None if before is None else before.data, write.body)
            )


def test_others_see_every_status_and_have_their_turns() -> None:
    told = []
    for plain in (False, True):
        onlooker, writes = Onlooker(), Writes()
        run = kubescene.run(
            nodes(MANY).create(deployment(40)).done(),
            plain=plain,
            instruments=[writes],
            controllers={"onlooker": partial(ReconcilerController, onlooker)},
        )
        assert run.ok, run.message
        if not plain:
            assert counts(run).counted > 50
        told.append((onlooker.seen, onlooker.turns, writes.seen))
    assert told[0] == told[1]


def test_a_template_that_its_selector_no_longer_matches(tmp_path: Path) -> None:
    labeled = make_deployment("web").replicas(20).template(make_pod("web").cpu("100m"))
    built = nodes(MANY).create(labeled).step(3).create(pod().labels({"app": "web"}), count=10)
    compared(built.done(), tmp_path)


def test_pods_that_come_later_are_progress_of_that_time(tmp_path: Path) -> None:
    built = nodes(5, cpu="1").create(deployment(30)).advance("5s").step(3)
    more = make_node("late-$(INDEX)").cpu("1").memory("256Gi")
    assert compared(built.create(more, count=4).done(), tmp_path).counted > 20


def test_labels_that_pods_get_from_their_nodes_wake_no_owner(tmp_path: Path) -> None:
    built = nodes(20, labeled=lambda node: node.zone("east")).create(deployment(60))
    found = compared(built.create(replica_set(20)).done(), tmp_path)
    assert found.counted > 120
    assert found.shown < 5


def test_labels_that_a_selector_forbids_make_a_pod_an_orphan(tmp_path: Path) -> None:
    made = replica_set(10)
    labels = made["spec"]["template"]["metadata"]["labels"]
    forbids = [{"key": "topology.kubernetes.io/zone", "operator": "DoesNotExist"}]
    made["spec"]["selector"] = {"matchLabels": labels, "matchExpressions": forbids}
    built = nodes(5, cpu="1", labeled=lambda node: node.zone("east")).create(made).done()
    compared(built, tmp_path)
    pods = kubescene.run(built).cluster.list("pods")
    bound = [it for it in pods if it["spec"].get("nodeName")]
    # All that find room, since the set makes another one for each that it gives up.
    assert len(bound) == 20
    assert not any(it["metadata"].get("ownerReferences") for it in bound)


@pytest.mark.parametrize("hosts", ["named", "unnamed", "some zones"])
@pytest.mark.parametrize("explain", ["Auto", "Full"])
def test_sets_are_spread_over_nodes_whose_labels_come_and_go(
    hosts: str, explain: str, tmp_path: Path
) -> None:
    """Several owners, pods of nobody, deletions, nodes that get a zone or lose their name."""
    host, zone = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

    def labeled(node: Any) -> Any:
        built = node.build()
        if hosts == "unnamed":
            del built["metadata"]["labels"][host]
        return built

    built = nodes(20, cpu="4", labeled=labeled)
    if hosts == "some zones":
        built.create(make_node("zoned-$(INDEX)").cpu("4").memory("64Gi").zone("east"), count=9)
    built.create(deployment(40)).create(deployment(25, "api")).create(pod(), count=10).step(3)
    built.patch("v1", "Node", "node-3", {"metadata": {"labels": {zone: "west"}}})
    built.patch("v1", "Node", "node-4", {"metadata": {"labels": {host: None}}})
    built.delete("v1", "Pod", "pod-3").create(replica_set(20)).step(4)
    built.patch("v1", "Node", "node-3", {"metadata": {"labels": {zone: None}}})
    built.patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 20}})
    built.delete("v1", "Node", "node-5").create(make_node("late").cpu("8").memory("64Gi")).step(5)
    built.patch("apps/v1", "Deployment", "api", {"spec": {"replicas": 60}}).settings(
        explain=explain
    )
    assert compared(built.done(), tmp_path).counted > 100
