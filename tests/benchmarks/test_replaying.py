"""Each op code does what scheduler_perf means by it."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.benchmarks import Workload, WorkloadResult, load_workloads, replay, replaying
from kubescene.benchmarks.stage import ReplayStage
from kubescene.cli.app import app
from kubescene.errors import WorkloadError
from kubescene.types import JsonObject

POD_TEMPLATE: JsonObject = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "p-"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
BIG: JsonObject = {
    **POD_TEMPLATE,
    "spec": {
        "priority": 10,
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "9", "memory": "1Mi"}}}
        ],
    },
}
CONFIG_MAP: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "map-{{.Index}}"},
    "data": {"of": "{{.Count}}"},
}
NODES = {"opcode": "createNodes", "count": 3}


class Played:
    """A workload that was replayed, and the world it left behind."""

    def __init__(self, tmp_path: Path, operations: list[Any], **case: Any) -> None:
        self.folder = tmp_path
        for name, template in (("pod", POD_TEMPLATE), ("big", BIG), ("map", CONFIG_MAP)):
            (tmp_path / f"{name}.yaml").write_text(dump_yaml(template))
        document = {
            "name": "c",
            "workloadTemplate": operations,
            "workloads": [{"name": "w"}],
            **case,
        }
        self.file = tmp_path / "config.yaml"
        self.file.write_text(dump_yaml([document]))

    def workload(self) -> Workload:
        (found,) = load_workloads(self.file)
        return found

    def run(self, monkeypatch: pytest.MonkeyPatch) -> tuple[ReplayStage, WorkloadResult]:
        made: list[ReplayStage] = []

        class Kept(ReplayStage):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                made.append(self)

        monkeypatch.setattr(replaying, "ReplayStage", Kept)
        result = replay(self.workload())
        return made[0], result


def names(stage: ReplayStage, kind: str, namespace: str = "") -> list[str]:
    return [each["metadata"]["name"] for each in stage.cluster.list(kind, namespace)]


def test_create_nodes_labels_them_in_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zones = {"labelKey": "zone", "labelValues": ["a", "b"]}
    operations = [
        {**NODES, "labelNodePrepareStrategy": zones},
        {**NODES, "count": 2, "uniqueNodeLabelStrategy": {"labelKey": "own"}},
    ]
    stage, result = Played(tmp_path, operations).run(monkeypatch)
    nodes = stage.cluster.list("nodes")
    assert result.nodes == 5
    labels = [each["metadata"]["labels"] for each in nodes]
    assert [each.get("zone") for each in labels] == ["a", "b", "a", None, None]
    assert len({each["own"] for each in labels[3:]}) == 2
    assert labels[0]["kubernetes.io/hostname"] == nodes[0]["metadata"]["name"] == "node-0-00001"
    assert nodes[0]["status"]["allocatable"] == {"pods": "110", "cpu": "4", "memory": "32Gi"}


def test_create_nodes_with_limits_of_storage_drivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy = {
        "nodeAllocatable": {"example.com/disks": "39"},
        "csiNodeAllocatable": {"disk.example.com": {"count": 39}},
        "migratedPlugins": ["kubernetes.io/aws-ebs"],
    }
    stage, _ = Played(tmp_path, [{**NODES, "nodeAllocatableStrategy": strategy}]).run(monkeypatch)
    node, csi = stage.cluster.list("nodes")[0], stage.cluster.list("csinodes")[0]
    assert node["status"]["allocatable"]["example.com/disks"] == "39"
    assert node["status"]["allocatable"]["cpu"] == "4"
    assert csi["spec"]["drivers"][0]["allocatable"] == {"count": 39}
    assert list(csi["metadata"]["annotations"].values()) == ["kubernetes.io/aws-ebs"]


def test_create_pods_measures_only_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = [
        NODES,
        {"opcode": "createPods", "count": 4},
        {"opcode": "createPods", "count": 6, "collectMetrics": True},
    ]
    stage, result = Played(tmp_path, operations).run(monkeypatch)
    (measured,) = result.measurements
    assert (measured.name, measured.pods) == ("namespace-2", 6)
    assert len(stage.pods("namespace-1")) == 4
    assert all(each.node for each in stage.pods("namespace-2"))
    assert measured.cpu_s > 0
    assert result.peak_mb > 1


def test_create_pod_sets_in_namespaces_of_a_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Played(
        tmp_path,
        [
            NODES,
            {
                "opcode": "createNamespaces",
                "prefix": "ns",
                "count": 2,
                "namespaceTemplatePath": "namespace.yaml",
            },
            {
                "opcode": "createPodSets",
                "count": 2,
                "namespacePrefix": "ns",
                "createPodsOp": {"opcode": "createPods", "count": 3},
            },
        ],
    )
    template = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"team": "x"}}}
    (tmp_path / "namespace.yaml").write_text(dump_yaml(template))
    stage, _ = played.run(monkeypatch)
    assert len(stage.pods("ns-0")) == len(stage.pods("ns-1")) == 3
    assert stage.cluster.get("namespaces", "ns-1")["metadata"]["labels"]["team"] == "x"


def test_create_pods_with_volumes_that_are_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = {
        "opcode": "createPods",
        "count": 3,
        "persistentVolumeTemplatePath": "pv.yaml",
        "persistentVolumeClaimTemplatePath": "pvc.yaml",
    }
    played = Played(tmp_path, [NODES, pods])
    modes, storage = ["ReadOnlyMany"], {"storage": "1Gi"}
    volume = {"accessModes": modes, "capacity": storage, "csi": {"driver": "d.example.com"}}
    claim = {"accessModes": modes, "resources": {"requests": storage}}
    for name, kind, spec in (
        ("pv", "PersistentVolume", volume),
        ("pvc", "PersistentVolumeClaim", claim),
    ):
        body = {"apiVersion": "v1", "kind": kind, "spec": spec}
        (tmp_path / f"{name}.yaml").write_text(dump_yaml(body))
    stage, _ = played.run(monkeypatch)
    assert names(stage, "pvc", "namespace-1") == ["pvc-0", "pvc-1", "pvc-2"]
    made = stage.cluster.get("pv", "namespace-1-vol-2")
    assert made["spec"]["claimRef"]["name"] == "pvc-2"
    assert made["spec"]["csi"]["volumeHandle"] == "namespace-1-vol-2"
    mounted = [each["spec"]["volumes"][0] for each in stage.cluster.list("pods", "namespace-1")]
    claims = [each["persistentVolumeClaim"]["claimName"] for each in mounted]
    assert claims == ["pvc-0", "pvc-1", "pvc-2"]


def test_steady_state_goes_on_for_its_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = {
        "opcode": "createPods",
        "count": 5,
        "steadyState": True,
        "duration": "100ms",
        "collectMetrics": True,
    }
    stage, result = Played(tmp_path, [NODES, pods]).run(monkeypatch)
    assert result.measurements[0].pods == 50
    assert len(stage.pods("namespace-1")) == 5
    assert result.virtual_s == pytest.approx(0.1)


def test_delete_pods_at_once_and_at_a_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = [
        NODES,
        {"opcode": "createPods", "count": 4, "podTemplatePath": "quick.yaml", "namespace": "a"},
        {"opcode": "createPods", "count": 4, "podTemplatePath": "quick.yaml", "namespace": "b"},
        {"opcode": "deletePods", "namespace": "a"},
        {"opcode": "deletePods", "namespace": "b", "deletePodsPerSecond": 2},
    ]
    played = Played(tmp_path, operations)
    quick = {**POD_TEMPLATE, "spec": {**POD_TEMPLATE["spec"], "terminationGracePeriodSeconds": 0}}
    (tmp_path / "quick.yaml").write_text(dump_yaml(quick))
    stage, result = played.run(monkeypatch)
    assert stage.pods("a") == stage.pods("b") == []
    assert result.virtual_s == 2


def test_a_pod_that_is_deleted_with_grace_stays_for_nobody_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = [
        NODES,
        {"opcode": "createPods", "count": 2, "namespace": "a"},
        {"opcode": "deletePods", "namespace": "a"},
        {"opcode": "sleep", "duration": "1m"},
    ]
    stage, result = Played(tmp_path, operations).run(monkeypatch)
    assert all(each.decode()["metadata"]["deletionTimestamp"] for each in stage.pods("a"))
    assert result.virtual_s == 60


@pytest.mark.parametrize(
    ("mode", "number", "left"), [("create", 3, 3), ("create", 0, 10), ("recreate", 2, 2)]
)
def test_churn_goes_on_beside_the_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, number: int, left: int
) -> None:
    churn = {
        "opcode": "churn",
        "mode": mode,
        "number": number,
        "intervalMilliseconds": 100,
        "templatePaths": ["big.yaml"],
        "namespace": "churning",
    }
    operations = [NODES, churn, {"opcode": "sleep", "duration": "1s"}]
    stage, _ = Played(tmp_path, operations).run(monkeypatch)
    pods = stage.pods("churning")
    assert len(pods) == left
    assert {each.decode()["spec"]["priority"] for each in pods} == {10}


def test_pods_are_created_in_time_while_something_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    churn = {"opcode": "churn", "mode": "create", "templatePaths": ["big.yaml"]}
    operations = [NODES, churn, {"opcode": "createPods", "count": 120, "collectMetrics": True}]
    _, result = Played(tmp_path, operations).run(monkeypatch)
    assert result.measurements[0].pods == 120
    assert result.virtual_s == pytest.approx(120 / 500)


def test_a_barrier_waits_for_what_others_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skipping = {"opcode": "createPods", "skipWaitToCompletion": True}
    operations = [
        {**skipping, "count": 3, "namespace": "big", "podTemplatePath": "big.yaml"},
        NODES,
        {"opcode": "barrier", "stageRequirement": "Attempted", "namespaces": ["big"]},
        {**skipping, "count": 3, "namespace": "small"},
        {"opcode": "barrier", "namespaces": ["small"]},
    ]
    stage, _ = Played(tmp_path, operations).run(monkeypatch)
    assert all(each.node for each in stage.pods("small"))
    assert dict(stage.remembered) == {"big": 3}


def test_collecting_can_be_bracketed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = [
        NODES,
        {"opcode": "startCollectingMetrics", "name": "mine", "namespaces": ["a", "b"]},
        {"opcode": "createPods", "count": 2, "namespace": "a"},
        {"opcode": "createPods", "count": 3, "namespace": "b"},
        {"opcode": "createPods", "count": 4, "namespace": "c"},
        {"opcode": "stopCollectingMetrics"},
    ]
    _, result = Played(tmp_path, operations).run(monkeypatch)
    (measured,) = result.measurements
    assert (measured.name, measured.pods) == ("mine", 5)


def test_what_is_collected_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = [
        {"opcode": "createNodes", "count": 1},
        {"opcode": "startCollectingMetrics", "namespaces": ["a"]},
        {"opcode": "createPods", "count": 2, "namespace": "a"},
        {"opcode": "stopCollectingMetrics"},
    ]
    _, result = Played(tmp_path, operations).run(monkeypatch)
    assert [each.pods for each in result.measurements] == [2]


GATED = """
apiVersion: v1
kind: Pod
metadata: {name: "held-{{.Index}}"}
spec:
  schedulingGates: [{name: example.com/hold}]
  containers: [{name: main, image: app, resources: {requests: {cpu: 100m}}}]
"""


def test_a_pod_is_updated_by_a_template_that_knows_nothing_of_admission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "held.yaml").write_text(GATED)
    free = "\n".join(line for line in GATED.splitlines() if "schedulingGates" not in line)
    (tmp_path / "free.yaml").write_text(free)
    grown = free.replace("100m", "200m")
    (tmp_path / "grown.yaml").write_text(grown)
    held = {"podTemplatePath": "held.yaml", "skipWaitToCompletion": True}
    every = {"namespace": "test", "count": 2}
    operations = [
        {"opcode": "createNodes", "count": 1},
        {"opcode": "createPods", **held, **every},
        {"opcode": "updateAny", "templatePath": "free.yaml", **every},
        {"opcode": "barrier"},
        {"opcode": "updateAny", "templatePath": "grown.yaml", **every, "subresources": ["resize"]},
    ]
    stage, result = Played(tmp_path, operations).run(monkeypatch)
    pods = stage.cluster.list("pods", "test")
    assert [bool(pod["spec"].get("nodeName")) for pod in pods] == [True, True]
    requests = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in pods]
    assert requests == ["200m", "200m"]
    assert result.not_replayed == []


def test_create_any_and_update_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    any_of = {"templatePath": "map.yaml", "namespace": "maps", "count": 3}
    operations = [
        {"opcode": "createAny", **any_of},
        {"opcode": "updateAny", **any_of, "count": 2, "updatePerSecond": 4},
        {"opcode": "updateAny", **any_of, "count": 1, "subresources": ["status", "scale"]},
    ]
    stage, result = Played(tmp_path, operations).run(monkeypatch)
    maps = stage.cluster.list("configmaps", "maps")
    assert [each["data"]["of"] for each in maps] == ["1", "2", "3"]
    assert result.virtual_s == 0.5
    assert result.not_replayed == ["updateAny of subresource scale"]


def test_drivers_and_claims_that_are_allocated_in_advance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = [
        NODES,
        {
            "opcode": "createResourceDriver",
            "driverName": "d.example.com",
            "nodes": "node-0-*",
            "maxClaimsPerNode": 2,
        },
        {
            "opcode": "createResourceClaims",
            "templatePath": "claim.yaml",
            "namespace": "claims",
            "count": 5,
        },
        {"opcode": "allocResourceClaims", "namespace": "claims"},
    ]
    played = Played(tmp_path, operations)
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": [request]}},
    }
    (tmp_path / "claim.yaml").write_text(dump_yaml(claim))
    stage, _ = played.run(monkeypatch)
    slices = stage.cluster.list("resourceslices")
    assert [len(each["spec"]["devices"]) for each in slices] == [2, 2, 2]
    claims = stage.cluster.list("resourceclaims", "claims")
    given = [each["status"]["allocation"]["devices"]["results"][0] for each in claims]
    assert len({(each["pool"], each["device"]) for each in given}) == 5


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"opcode": "createPods", "count": 1, "podTemplatePath": "no.yaml"}, "no.yaml cannot be"),
        ({"opcode": "createPods", "count": 1, "podTemplatePath": "big.yaml"}, "0 of 1 pods"),
        ({"opcode": "barrier", "namespaces": ["x"]}, "no pods wait in the namespace 'x'"),
        ({"opcode": "barrier", "stageRequirement": "Dreamt"}, "'Dreamt'"),
        ({"opcode": "stopCollectingMetrics"}, "startCollectingMetrics comes first"),
        ({"opcode": "sleep", "duration": "soon"}, "soon"),
        ({"opcode": "churn", "mode": "swirl", "templatePaths": []}, "'swirl'"),
        (
            {
                "opcode": "createPods",
                "count": 1,
                "collectMetrics": True,
                "skipWaitToCompletion": True,
            },
            "exclude each other",
        ),
        (
            {"opcode": "createPods", "count": 1, "persistentVolumeTemplatePath": "pod.yaml"},
            "give both templates",
        ),
        ({"opcode": "updateAny", "templatePath": "map.yaml", "namespace": "x"}, "not found"),
    ],
)
def test_what_goes_wrong_is_said_with_file_workload_and_path(
    tmp_path: Path, operation: JsonObject, message: str
) -> None:
    played = Played(tmp_path, [NODES, operation])
    with pytest.raises(WorkloadError) as caught:
        replay(played.workload())
    text = str(caught.value)
    assert text.startswith(f"{played.file}: c/w: [0].workloadTemplate[1]: {operation['opcode']}: ")
    assert message in text


def test_gates_that_cannot_be_turned_are_named(tmp_path: Path) -> None:
    gates = {"SchedulerQueueingHints": False, "SchedulerPopFromBackoffQ": False}
    result = replay(Played(tmp_path, [NODES], featureGates=gates).workload())
    assert result.not_replayed == ["feature gate SchedulerQueueingHints=false"]


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    operations = [NODES, {"opcode": "createPods", "count": 5, "collectMetrics": True}]
    file = str(Played(tmp_path, operations).file)
    runner = CliRunner()
    shown = runner.invoke(app, ["bench", "scheduler-perf", file])
    assert shown.exit_code == 0, shown.output
    assert "c/w" in shown.output
    given = runner.invoke(app, ["bench", "scheduler-perf", file, "--json", "--filter", "c/w"])
    document = orjson.loads(given.stdout)
    (workload,) = document["workloads"]
    assert workload["measurements"][0]["pods"] == 5
    assert workload["nodes"] == 3
    assert workload["peakMegabytes"] > 1


def test_a_filter_that_nothing_matches_names_what_there_is(tmp_path: Path) -> None:
    file = str(Played(tmp_path, [NODES]).file)
    refused = CliRunner().invoke(app, ["bench", "scheduler-perf", file, "--filter", "zzz"])
    assert isinstance(refused.exception, WorkloadError)
    assert "c/w" in str(refused.exception)
