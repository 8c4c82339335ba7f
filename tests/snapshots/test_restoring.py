"""A snapshot is restored as it was, and nobody does anything because of it."""

import json
from pathlib import Path

import pytest

import kubescene
from dumped import dump, listed, placed, shop
from kubescene.cluster import ClusterOptions
from kubescene.snapshots import Snapshot, read_snapshot, restore
from kubescene.types import JsonObject

MADE_BY_CONTROLLERS = {"Endpoints", "EndpointSlice", "ControllerRevision"}


@pytest.fixture(scope="module")
def world() -> kubescene.Cluster:
    return shop()


def restored(snapshot: Snapshot) -> kubescene.Cluster:
    cluster = kubescene.Cluster(ClusterOptions(start=snapshot.taken_at))
    assert list(restore(cluster.registry, snapshot)) == []
    return cluster


def by_name(cluster: kubescene.Cluster) -> dict[tuple[str, str, str], JsonObject]:
    found = {}
    for obj in json.loads(cluster.export())["items"]:
        metadata = obj["metadata"]
        found[obj["kind"], metadata.get("namespace", ""), metadata["name"]] = obj
    return found


def differing(before: JsonObject, after: JsonObject) -> set[str]:
    parts = {name for name in {**before, **after} if before.get(name) != after.get(name)}
    if "metadata" in parts:
        parts |= {
            f"metadata.{name}"
            for name in {**before["metadata"], **after["metadata"]}
            if before["metadata"].get(name) != after["metadata"].get(name)
        }
    return parts - {"status", "metadata"}


@pytest.mark.parametrize("redact", [True, False])
def test_a_dump_settles_with_no_write_but_statuses(
    world: kubescene.Cluster, tmp_path: Path, redact: bool
) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(world))
    cluster = restored(read_snapshot(file, redact=redact))
    before, pods = by_name(cluster), placed(cluster)
    cluster.settle().advance("10m")
    after = by_name(cluster)
    assert placed(cluster) == pods == placed(world)
    assert {key[0] for key in after.keys() - before.keys()} <= MADE_BY_CONTROLLERS
    assert not before.keys() - after.keys()
    changed = {key: differing(before[key], after[key]) for key in before}
    assert {key: parts for key, parts in changed.items() if parts} == {}


def test_volumes_stay_bound_and_uids_and_owners_are_kept(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(world))
    cluster = restored(read_snapshot(file)).settle()
    assert [each["status"]["phase"] for each in cluster.list("persistentvolumes")] == ["Bound"] * 3
    for kind in ("pods", "replicasets", "persistentvolumeclaims", "controllerrevisions"):
        kept = [each["metadata"].get("ownerReferences") for each in cluster.list(kind)]
        assert kept == [each["metadata"].get("ownerReferences") for each in world.list(kind)]


def test_a_dump_without_replica_sets_and_revisions_moves_no_pod(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    kinds = (
        *("namespaces", "nodes", "pods", "deployments", "statefulsets", "daemonsets", "jobs"),
        *("persistentvolumes", "persistentvolumeclaims", "storageclasses"),
    )
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(world, *kinds))
    snapshot = read_snapshot(file)
    assert [each for each in snapshot.remarks if "made again" in each] == [
        "2 ReplicaSets not in it made again from Deployments and pods: a rollout that was under "
        "way goes on differently"
    ]
    cluster = restored(snapshot)
    cluster.settle().advance("10m")
    assert placed(cluster) == placed(world)


def test_amounts_that_are_written_otherwise_make_no_new_revision(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    otherwise = dump(world).replace(b'"500m"', b'"0.5"').replace(b'"256Mi"', b'"262144Ki"')
    file = tmp_path / "cluster.json"
    file.write_bytes(otherwise)
    (ledger,) = (
        each
        for each in json.loads(otherwise)["items"]
        if each["kind"] == "ControllerRevision" and each["metadata"]["name"].startswith("ledger")
    )
    (container,) = ledger["data"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "0.5", "memory": "262144Ki"}
    cluster = restored(read_snapshot(file))
    cluster.settle().advance("10m")
    revisions = sorted(each["metadata"]["name"] for each in world.list("controllerrevisions"))
    assert sorted(each["metadata"]["name"] for each in cluster.list("controllerrevisions")) == (
        revisions
    )
    assert placed(cluster) == placed(world)


def test_pods_whose_owners_are_not_there_are_kept_and_told(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(world, "nodes", "pods"))
    snapshot = read_snapshot(file)
    assert "6 Pods of DaemonSets that are not in it: nobody would make them again" in (
        snapshot.remarks
    )
    assert "3 Pods of StatefulSets that are not in it: nobody would make them again" in (
        snapshot.remarks
    )
    cluster = restored(snapshot)
    cluster.settle().advance("10m")
    assert placed(cluster) == placed(world)


def test_pods_on_nodes_that_are_not_there_are_left_out_and_told(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    document = listed(world)
    document["items"] = [
        each for each in document["items"] if each["metadata"]["name"] != "worker-1"
    ]
    lost = [pod for pod in world.list("pods") if pod["spec"].get("nodeName") == "worker-1"]
    live = [pod for pod in lost if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(document))
    snapshot = read_snapshot(file)
    assert snapshot.remarks[0] == (
        f"{len(live)} pods on nodes that are not in it (such as worker-1) left out"
    )


def test_the_snapshot_of_an_export_of_ours_is_that_world_again(tmp_path: Path) -> None:
    world = shop()
    file = tmp_path / "export.json"
    file.write_bytes(world.export())
    cluster = restored(read_snapshot(file, redact=False))
    left = {"Endpoints", "EndpointSlice"}
    mine = {key: each for key, each in by_name(world).items() if key[0] not in left}
    assert by_name(cluster) == mine


def test_its_own_file_gives_the_same_snapshot_and_the_same_bytes(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    dumped = tmp_path / "cluster.json"
    dumped.write_bytes(dump(world))
    snapshot = read_snapshot(dumped)
    for name in ("first.json", "second.json.gz"):
        snapshot.write(tmp_path / name)
        again = read_snapshot(tmp_path / name)
        assert again == snapshot
        assert again.encoded() == snapshot.encoded()


def test_a_scenario_begins_with_the_snapshot_that_it_names(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    (tmp_path / "cluster.json").write_bytes(dump(world))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        """
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: less}
spec:
  simulation: {snapshot: cluster.json}
  operations:
  - step: 1
    patchOperation:
      typeMeta: {apiVersion: apps/v1, kind: Deployment}
      objectMeta: {name: frontend, namespace: shop}
      patch: '{"spec":{"replicas": 6}}'
  - {step: 2, doneOperation: {}}
"""
    )
    run = kubescene.run(scenario)
    assert run.ok, run.message
    assert run.summary.placements_total == 1
    mine = placed(run.cluster)
    assert len(mine) == len(placed(world)) + 1
    assert {name: mine[name] for name in placed(world)} == placed(world)
    again = kubescene.run(scenario, plain=True)
    assert again.scenario == run.scenario
    assert again.cluster.export() == run.cluster.export()


def test_a_snapshot_may_be_given_beside_the_scenario(
    world: kubescene.Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(world))
    scenario = {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "nothing"},
        "spec": {"operations": [{"step": 1, "doneOperation": {}}]},
    }
    run = kubescene.run(scenario, snapshot=file)
    assert run.ok, run.message
    assert placed(run.cluster) == placed(world)
    assert run.cluster.clock.now() == read_snapshot(file).taken_at
