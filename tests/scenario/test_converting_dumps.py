"""Dumps of real clusters become scenarios that play: what one cluster knows, another does not."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubescene
from commands import kubescene as command
from dumped import TOKEN, dump, items, shop
from kubescene.errors import ScenarioError
from kubescene.scenario.conversion import Conversion, scenario_from
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

SAMPLE = Path(__file__).parent.parent / "snapshots/samples/kubectl-dump.yaml"


def sample() -> list[JsonObject]:
    listed: list[JsonObject] = yaml.safe_load(SAMPLE.read_text())["items"]
    return listed


def created(conversion: Conversion, kind: str) -> list[JsonObject]:
    bodies = [each.get("createOperation") for each in conversion.scenario["spec"]["operations"]]
    return [body["object"] for body in bodies if body and body["object"]["kind"] == kind]


def converted(objects: list[JsonObject], **options: Any) -> Conversion:
    return scenario_from(objects, "s", **options)


@pytest.mark.parametrize("placed", [False, True])
def test_the_sample_of_a_dump_plays_without_a_fault(tmp_path: Path, placed: bool) -> None:
    file = tmp_path / "scenario.yaml"
    done = command("convert", SAMPLE, "--out", file, *(["--placed"] if placed else []))
    assert done.returncode == 0, done.stderr
    assert command("validate", file).returncode == 0
    run = kubescene.run(file, thorough=True)
    assert run.ok, run.message


def test_c1_a_service_gets_an_address_of_its_new_cluster() -> None:
    (service,) = created(converted(sample()), "Service")
    assert {"clusterIP", "clusterIPs", "ipFamilies"}.isdisjoint(service["spec"])
    headless = {**job(), "kind": "Service", "metadata": {"name": "h"}}
    headless |= {"apiVersion": "v1", "spec": {"clusterIP": "None", "clusterIPs": ["None"]}}
    (kept,) = created(converted([headless]), "Service")
    assert kept["spec"]["clusterIP"] == "None"


def job(**spec: Any) -> JsonObject:
    uid = "ff1055d2-c6b5-aef2-84b7-cfd3f709148a"
    labels = {"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid, "job-name": "j"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": uid, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": template,
            **spec,
        },
    }


def pod_of(owner: JsonObject, name: str = "p", node: str = "n") -> JsonObject:
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    pod = make_pod(name).on(node).build()
    pod["metadata"] |= {
        "ownerReferences": [reference],
        "labels": owner["spec"]["template"]["metadata"]["labels"],
    }
    return pod


def test_c2_a_job_gets_a_selector_of_its_new_uid() -> None:
    conversion = converted([make_node("n").cpu("4").build(), job(), pod_of(job())])
    (made,) = created(conversion, "Job")
    assert "selector" not in made["spec"]
    assert made["spec"]["template"]["metadata"]["labels"] == {"job-name": "j"}
    assert conversion.left_out["Pod", "its controller makes it again"] == 1
    run = kubescene.run(conversion.scenario, thorough=True)
    assert run.ok, run.message
    assert [pod["spec"]["nodeName"] for pod in run.cluster.list("pods")] == ["n"]


def test_c2_a_job_of_a_placed_conversion_takes_its_pod_over() -> None:
    conversion = converted([make_node("n").cpu("4").build(), job(), pod_of(job())], placed=True)
    run = kubescene.run(conversion.scenario, thorough=True)
    assert run.ok, run.message
    (pod,) = run.cluster.list("pods")
    assert pod["metadata"]["name"] == "p"
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"


def test_a_job_that_has_finished_is_not_run_again() -> None:
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    conversion = converted([{**job(), "status": status}])
    assert conversion.left_out["Job", "it has finished"] == 1


def test_c3_volumes_stay_with_their_claims() -> None:
    cluster = shop()
    kinds = ("nodes", "storageclasses", "persistentvolumes", "persistentvolumeclaims")
    objects = [*items(cluster, *kinds), *items(cluster, "statefulsets", "pods")]
    for obj in objects:
        if obj["kind"] == "PersistentVolume":  # of another cluster, where claims had other uids
            obj["spec"]["claimRef"]["uid"] = "4b105b74-6246-9639-08b3-294b70a16de3"
    conversion = converted(objects)
    run = kubescene.run(conversion.scenario)
    assert run.ok, run.message
    phases = [each["status"]["phase"] for each in run.cluster.list("persistentvolumes")]
    assert phases == ["Bound"] * 3
    names = {each["metadata"]["name"] for each in cluster.list("persistentvolumes")}
    assert {each["metadata"]["name"] for each in run.cluster.list("persistentvolumes")} == names


def test_c4_pods_of_deployments_stay_where_they_are_if_that_is_wanted() -> None:
    cluster = shop()
    kinds = ("nodes", "deployments", "replicasets", "daemonsets", "pods")
    conversion = converted(items(cluster, *kinds), placed=True)
    run = kubescene.run(conversion.scenario)
    assert run.ok, run.message
    before = {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in cluster.list("pods")
        if pod["spec"].get("nodeName")
    }
    after = {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in run.cluster.list("pods")
        if pod["spec"].get("nodeName")
    }
    assert after == before
    owners = {
        pod["metadata"]["ownerReferences"][0]["kind"]
        for pod in run.cluster.list("pods")
        if pod["metadata"].get("ownerReferences")
    }
    assert owners == {"ReplicaSet", "DaemonSet"}


def test_c5_static_pods_stay_on_their_node() -> None:
    static = make_pod("static").on("n").build()
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "a"}
    conversion = converted([make_node("n").build(), static])
    assert created(conversion, "Pod")[0]["spec"]["nodeName"] == "n"
    run = kubescene.run(conversion.scenario, thorough=True)
    assert run.ok, run.message


def test_c6_pods_that_nobody_would_make_again_are_counted(tmp_path: Path) -> None:
    rollout = {**job(), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    conversion = converted([make_node("n").build(), pod_of(rollout), pod_of(rollout, "q")])
    assert conversion.orphans == {"Rollout": 2}
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"kind": "List", "items": [make_node("n").build(), pod_of(job())]}))
    done = command("convert", file)
    assert "1 x Pod of a Job that is not in it: nobody makes it again" in done.stderr


def test_c7_values_do_not_come_out_unless_that_is_wanted(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(dump(shop()))
    assert TOKEN in file.read_text()
    assert TOKEN not in command("convert", file).stdout
    assert TOKEN in command("convert", file, "--keep-values").stdout
    assert "s3cr3t" not in command("convert", SAMPLE).stdout


def test_c8_a_pod_that_is_being_deleted_is_left_out() -> None:
    pod = make_pod("p").build()
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conversion = converted([make_node("n").build(), pod])
    assert created(conversion, "Pod") == []
    assert conversion.left_out["Pod", "it is being deleted"] == 1


def test_c9_of_an_object_that_is_given_twice_the_newer_counts() -> None:
    older, newer = (make_node("n").cpu(cpu).build() for cpu in ("1", "2"))
    older["metadata"]["resourceVersion"], newer["metadata"]["resourceVersion"] = "9", "10"
    for both in ([older, newer], [newer, older]):
        conversion = converted(both)
        (node,) = created(conversion, "Node")
        assert node["status"]["allocatable"]["cpu"] == "2"
        assert sum(conversion.left_out.values()) == 1
    del older["metadata"]["resourceVersion"]
    with pytest.raises(ScenarioError, match="it is given twice, and not the same"):
        converted([older, newer])
