"""Scenarios from the drafts' form, from manifests and from cluster dumps."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import kubescene
from commands import kubescene as kubescene_command
from kubescene.cluster import ClusterOptions
from kubescene.errors import ScenarioError
from kubescene.scenario.conversion import merged_form, scenario_from
from kubescene.scenario.reading.object_files import flattened, read_manifests
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

API = "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1"
DRAFT: JsonObject = {
    "apiVersion": API,
    "kind": "Scenario",
    "metadata": {"name": "draft"},
    "spec": {
        "events": [
            {
                "id": "n",
                "step": 1,
                "operation": "Create",
                "createOperation": {"object": make_node("n").build()},
            },
            {
                "id": "p",
                "step": 2,
                "operation": "Patch",
                "patchOperation": {
                    "typeMeta": {"apiVersion": "v1", "kind": "Node"},
                    "objectMeta": {"name": "n"},
                    "patch": '{"metadata":{"labels":{"a":"b"}}}',
                    "PatchType": "application/merge-patch+json",
                },
            },
            {"id": "d", "step": 3, "operation": "Done", "doneOperation": {"done": True}},
        ],
        "controllers": {
            "simulationControllers": {"enabled": [{"Name": "kube-scheduler"}]},
            "preSimulationControllers": {"disabled": [{"name": "*"}]},
        },
    },
}


def dumped(cluster: kubescene.Cluster) -> JsonObject:
    """What kubectl get -o yaml would write of a cluster."""
    kinds = (
        "nodes",
        "deployments",
        "replicasets",
        "statefulsets",
        "daemonsets",
        "controllerrevisions",
        "pods",
        "namespaces",
        "serviceaccounts",
    )
    items = [obj for kind in kinds for obj in cluster.list(kind)]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def created(scenario: JsonObject) -> list[tuple[str, str]]:
    bodies = [each.get("createOperation") for each in scenario["spec"]["operations"]]
    objects = [body["object"] for body in bodies if body]
    return [(obj["kind"], obj["metadata"]["name"]) for obj in objects]


def test_a_draft_becomes_the_merged_form_and_plays_alike() -> None:
    merged = merged_form(DRAFT)
    spec = merged["spec"]
    assert "events" not in spec
    assert [sorted(each) for each in spec["operations"]] == [
        ["createOperation", "id", "step"],
        ["id", "patchOperation", "step"],
        ["doneOperation", "id", "step"],
    ]
    assert spec["operations"][1]["patchOperation"]["patchType"] == "application/merge-patch+json"
    assert spec["operations"][2]["doneOperation"] == {}
    assert spec["controllers"] == {
        "simulationControllers": {"enabled": [{"name": "kube-scheduler"}]},
        "presimulationControllers": {"disabled": [{"name": "*"}]},
    }
    before, after = kubescene.run(DRAFT), kubescene.run(merged)
    assert before.ok, before.message
    assert after.summary.steps == before.summary.steps
    assert after.phase == before.phase


def test_a_dump_becomes_a_scenario_that_makes_the_cluster_again(cluster: kubescene.Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    cluster.create(make_node("n").cpu("8"))
    web = make_deployment("web").replicas(3).template(make_pod("web").cpu("1"))
    cluster.create(web.namespace("team"))
    cluster.create(make_pod("alone").cpu("1"))
    cluster.settle()
    conversion = scenario_from(dumped(cluster)["items"], "again")
    assert created(conversion.scenario) == [
        ("Namespace", "team"),
        ("Node", "n"),
        ("Deployment", "web"),
        ("Pod", "alone"),
    ]
    assert conversion.left_out["Pod", "its controller makes it again"] == 3
    assert conversion.left_out["Namespace", "every cluster has it"] == 4
    text = yaml.safe_dump(conversion.scenario)
    for populated in ("uid", "resourceVersion", "managedFields", "creationTimestamp", "nodeName"):
        assert populated not in text
    run = kubescene.run(conversion.scenario)
    assert run.ok, run.message
    assert run.summary.pending == []
    assert run.summary.placements_total == 4


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_pods_of_sets_are_made_again_by_their_sets(cluster: kubescene.Cluster, kind: str) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": make_pod("web").cpu("1").build()["spec"]}
    cluster.create(make_node("n").cpu("8"))
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )
    cluster.settle()
    conversion = scenario_from(dumped(cluster)["items"], "again")
    assert created(conversion.scenario) == [("Node", "n"), (kind, "web")]
    assert conversion.left_out["Pod", "its controller makes it again"] == 1
    run = kubescene.run(conversion.scenario)
    assert run.ok, run.message
    assert run.summary.warnings == []
    assert run.summary.placements_total == 1


def test_pods_may_stay_where_they_are() -> None:
    scenario = scenario_from([make_pod("p").on("n").build()], "s", placed=True).scenario
    assert scenario["spec"]["operations"][0]["createOperation"]["object"]["spec"]["nodeName"] == "n"


def test_namespaces_that_are_missing_are_made() -> None:
    scenario = scenario_from([make_pod("p").namespace("team").build()], "s").scenario
    assert created(scenario) == [("Namespace", "team"), ("Pod", "p")]
    assert kubescene.run(scenario).ok


def test_what_is_confidential_or_bookkeeping_is_left_out_and_counted() -> None:
    kinds = ["Secret", "Event", "Lease", "Secret"]
    objects: list[Any] = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}} for kind in kinds
    ]
    ended = {**make_pod("done").build(), "status": {"phase": "Succeeded"}}
    left_out = scenario_from([*objects, ended, {"kind": "Odd"}], "s").left_out
    assert left_out["Secret", "confidential, and nobody here reads it"] == 2
    assert left_out["Pod", "it has ended"] == 1
    assert left_out["Odd", "it has no apiVersion and kind"] == 1


def test_the_volume_of_a_token_is_left_out() -> None:
    pod = make_pod("p").build()
    mount = {"name": "kube-api-access-x", "mountPath": "/t"}
    pod["spec"]["volumes"] = [{"name": "kube-api-access-x", "projected": {}}]
    pod["spec"]["containers"] = [{**pod["spec"]["containers"][0], "volumeMounts": [mount]}]
    scenario = scenario_from([pod], "s").scenario
    assert "kube-api-access" not in yaml.safe_dump(scenario)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "pods.yaml.gz").write_bytes(
        gzip.compress(yaml.safe_dump(make_pod("p").build()).encode())
    )
    (tmp_path / "a.json").write_text('{"apiVersion":"v1","kind":"NodeList","items":[{"kind":"X"}]}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert [obj["kind"] for obj in read_manifests(tmp_path)] == ["X", "Pod"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ScenarioError, match="there is no file that ends with"):
        list(read_manifests(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"no gzip", "cannot be unpacked"),
        (gzip.compress(b"a: [", mtime=0), "not valid YAML"),
        (gzip.compress(b"kind: Pod\n" * 9, mtime=0)[:-9], "it ends in the middle"),
    ],
    ids=["no archive", "no YAML", "half of one"],
)
def test_a_broken_archive_is_named(tmp_path: Path, data: bytes, complaint: str) -> None:
    file = tmp_path / "x.yaml.gz"
    file.write_bytes(data)
    with pytest.raises(ScenarioError, match=complaint):
        list(read_manifests(file))


def test_the_command_writes_a_scenario_that_validates(tmp_path: Path) -> None:
    source, out = tmp_path / "dump.yaml", tmp_path / "scenario.yaml"
    source.write_text(yaml.safe_dump_all([make_node("n").build(), make_pod("p").build()]))
    done = kubescene_command("convert", source, "--name", "mine", "--out", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 objects are created" in done.stderr
    assert kubescene_command("validate", out).returncode == 0
    again = kubescene_command("convert", source, "--out", out)
    assert (again.returncode, "it exists" in again.stderr) == (2, True)
    draft = tmp_path / "draft.yaml"
    draft.write_text(yaml.safe_dump(DRAFT))
    assert yaml.safe_load(kubescene_command("convert", draft).stdout) == merged_form(DRAFT)


def test_an_archive_of_several_members_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml.gz"
    file.write_bytes(gzip.compress(b"kind: A\n---\n") + gzip.compress(b"kind: B\n"))
    assert [obj["kind"] for obj in read_manifests(file)] == ["A", "B"]


def test_what_is_not_an_object_is_told_of() -> None:
    conversion = scenario_from([make_node("n").build(), ["a"], "b"], "x")
    assert conversion.left_out == {
        ("list", "it is not an object"): 1,
        ("str", "it is not an object"): 1,
    }


def test_items_of_a_typed_list_are_of_its_kind() -> None:
    """An API server says it once: ``kubectl get --raw /api/v1/pods``."""
    item = {"metadata": {"name": "p"}, "spec": make_pod("p").build()["spec"]}
    pods = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [item]}
    nodes = {"apiVersion": "v1", "kind": "List", "items": [make_node("n").build(), pods]}
    named = {"apiVersion": "a.b/v1", "kind": "AllowList", "metadata": {"name": "l"}, "items": [1]}
    conversion = scenario_from(flattened([nodes, named]), "x")
    assert created(conversion.scenario) == [("Node", "n"), ("AllowList", "l"), ("Pod", "p")]
    assert not conversion.left_out


def test_an_object_that_is_given_twice_is_created_once() -> None:
    node, pod = make_node("n").build(), make_pod("p").build()
    dumped = {**node, "metadata": {**node["metadata"], "uid": "u", "resourceVersion": "7"}}
    elsewhere = make_pod("p").namespace("other").build()
    conversion = scenario_from([node, pod, dumped, elsewhere], "x")
    assert conversion.left_out == {("Node", "it is given twice"): 1}
    assert created(conversion.scenario).count(("Pod", "p")) == 2
    with pytest.raises(ScenarioError, match="Node n: it is given twice, and not the same"):
        scenario_from([node, make_node("n").cpu("77").build()], "x")


def test_objects_whose_names_are_made_up_are_all_created() -> None:
    nameless = make_pod("p").build()
    nameless["metadata"] = {"generateName": "p-"}
    operations = scenario_from([nameless, nameless], "x").scenario["spec"]["operations"]
    assert len(operations) == 3


def test_a_pod_is_left_out_for_a_controller_of_its_own_namespace_only() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
    pod = make_pod("r-1").namespace("a").build()
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    other = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    for namespace, kept in {"a": False, "b": True}.items():
        replica_set = {**other, "metadata": {"name": "r", "namespace": namespace}}
        conversion = scenario_from([replica_set, pod], "x")
        assert (("Pod", "r-1") in created(conversion.scenario)) is kept


def test_a_list_without_a_list_is_told_of() -> None:
    conversion = scenario_from([{"apiVersion": "v1", "kind": "List", "items": 5}], "x")
    assert conversion.left_out == {("List", "its items are not a list"): 1}


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "Pod", "metadata": {"name": ["a"]}},
        {"kind": "Pod", "metadata": {"name": "a", "namespace": {}}},
        {"kind": "Pod", "metadata": {"name": "a", "annotations": ["a"]}},
        {"kind": "Pod", "metadata": {"name": "a", "ownerReferences": ["a"]}},
        {"kind": "Pod", "metadata": {"name": "a"}, "status": "done"},
        {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"volumes": ["a"]}},
        {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"volumeMounts": 1}]}},
        {"kind": "Node", "metadata": {"name": "a"}, "status": ["a"]},
    ],
    ids=lambda obj: str(obj)[8:60],
)
def test_odd_objects_are_named_instead_of_guessed_at(obj: JsonObject) -> None:
    with pytest.raises(ScenarioError, match=r"object 0 \((Pod|Node)\): .* must be"):
        scenario_from([{"apiVersion": "v1", **obj}], "x")


def test_objects_of_other_kinds_may_look_as_they_like() -> None:
    odd = {"apiVersion": "a.b/v1", "kind": "Odd", "spec": {"volumes": "none"}, "status": "fine"}
    nameless = {"apiVersion": "v1", "kind": "Namespace"}
    assert not scenario_from([odd, nameless], "x").left_out


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"operations": [{"step": 1, "doneOperation": {}}], **DRAFT["spec"]}, "both set"),
        ({"events": ["a"]}, "must be an object"),
        ({"events": [{"step": 1, "operation": "Done", "doneOperation": {}, "x": 1}]}, "unknown"),
        ({"operations": {"a": 1}}, "must be a list"),
    ],
    ids=["both forms", "no object", "unknown field", "no list"],
)
def test_a_faulty_scenario_is_not_converted(
    tmp_path: Path, spec: JsonObject, complaint: str
) -> None:
    """What nobody understands would be lost without a word."""
    file = tmp_path / "draft.yaml"
    file.write_text(yaml.safe_dump({**DRAFT, "spec": spec}))
    done = kubescene_command("convert", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kubescene: {file}: spec.")
    assert complaint in done.stderr


# -- what will not run ---------------------------------------------------------------------------

MONITOR: JsonObject = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "web"},
    "spec": {},
}
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
AUTOSCALER: JsonObject = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    },
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / "bundle.yaml"
    file.write_text(yaml.safe_dump_all([make_pod("p").cpu("1").build(), AUTOSCALER, MONITOR]))
    return file


def test_who_converts_is_told_what_will_not_run(bundle: Path) -> None:
    done = kubescene_command("convert", bundle)
    assert done.returncode == 0
    assert "warning: 1 x ServiceMonitor.monitoring.coreos.com: nobody here knows" in done.stderr
    assert "warning: there is no Node: no pod will find a place" in done.stderr
    assert "warning: HorizontalPodAutoscaler has no effect: no time passes" in done.stderr


def test_unknown_kinds_are_left_out_and_nodes_added(bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "scenario.yaml"
    nodes = ("--nodes", "3x8cpu,32Gi", "--nodes", "1x2cpu,4Gi,nvidia.com/gpu=4")
    done = kubescene_command("convert", bundle, "--skip-unknown", *nodes, "--out", out)
    assert "6 objects are created" in done.stderr
    assert "left out: 1 x ServiceMonitor.monitoring.coreos.com" in done.stderr
    assert "there is no Node" not in done.stderr
    assert f"the scenario is in {out}" in done.stderr
    run = kubescene.run(out)
    names = [node["metadata"]["name"] for node in run.cluster.list("nodes")]
    assert names == ["node-a-0", "node-a-1", "node-a-2", "node-b-0"]
    offers = run.cluster.get("nodes", "node-b-0")["status"]["allocatable"]
    assert offers == {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "4", "pods": "110"}
    assert run.cluster.pod("p").node


def test_a_definition_makes_its_kind_known() -> None:
    conversion = scenario_from([MONITOR, DEFINITION, make_node("n").build()], "s", known_only=True)
    assert (conversion.unknown, conversion.left_out) == ({}, {})
    assert kubescene.run(conversion.scenario).ok


@pytest.mark.parametrize(
    "nodes",
    ["x", "3x", "0x8cpu", "3xfoo", "2x8cpu,a=b", "-1x8cpu", "3x8", "3x8,32Gi", "1x8cpu,4cpu"],
)
def test_nodes_that_nobody_understands_are_refused(bundle: Path, nodes: str) -> None:
    done = kubescene_command("convert", bundle, f"--nodes={nodes}")
    assert (done.returncode, "such as 3x8cpu,32Gi" in done.stderr) == (2, True)
    assert done.stdout == ""


def test_what_a_served_world_has_by_itself_is_left_out() -> None:
    world = kubescene.Cluster(ClusterOptions(furnished=True)).settle()
    named = {"name": "kubernetes", "namespace": "kube-public"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": named}
    world.create({**service, "spec": {"ports": [{"port": 1}]}})
    conversion = scenario_from(json.loads(world.export())["items"], "again")
    assert conversion.left_out["Service", "it is the API server's own"] == 1
    assert conversion.left_out["ConfigMap", "every namespace has it"] == 4
    kinds = {kind for kind, _ in created(conversion.scenario)}
    assert kinds == {"CustomResourceDefinition", "Service"}
