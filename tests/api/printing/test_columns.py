"""What ``kubectl get`` shows.

``data/printed_rows.jsonl.gz`` holds objects with the cells that the printers of kube-apiserver
v1.36.4 gave for them; the tables below spell out the cases that people look at most.
"""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubescene.api.builtin import builtin_scheme
from kubescene.api.printing.columns import SCALE_COLUMNS, crd_columns, table_columns
from kubescene.api.printing.jsonpaths import JsonPathError, compile_path
from kubescene.api.printing.tables import human_duration
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND
from kubescene.types import JsonObject

SCHEME = builtin_scheme()
NOW = parse_time("2026-01-02T00:00:00Z")
AGO = {"5m": "2026-01-01T23:55:00Z", "1d": "2026-01-01T00:00:00Z", "3h": "2026-01-01T21:00:00Z"}


def printed_rows() -> list[JsonObject]:
    packed = (Path(__file__).parents[1] / "data" / "printed_rows.jsonl.gz").read_bytes()
    return [json.loads(line) for line in gzip.decompress(packed).splitlines()]


def row(name: str, obj: JsonObject) -> list[Any]:
    return table_columns(SCHEME.resolve(name)).row(obj, NOW)


def shown(name: str, obj: JsonObject, *columns: str) -> list[Any]:
    """Cells of the named columns."""
    names = [column.name for column in table_columns(SCHEME.resolve(name)).columns]
    cells = row(name, obj)
    return [cells[names.index(column)] for column in columns]


def test_rows_are_those_of_kube_apiserver() -> None:
    differing = []
    for case in printed_rows():
        obj = case["object"]
        before = copy.deepcopy(obj)
        columns = table_columns(SCHEME.of_kind(obj["apiVersion"], obj["kind"]))
        if columns.row(obj, case["now"]) != case["cells"]:
            differing.append((obj["kind"], case["cells"], columns.row(obj, case["now"])))
        assert columns.conditions(obj) == case["conditions"]
        assert obj == before
    assert differing == []


def test_printed_rows_cover_nearly_all_kinds() -> None:
    assert len({(c["object"]["apiVersion"], c["object"]["kind"]) for c in printed_rows()}) == 78


@pytest.mark.parametrize("resource_type", SCHEME, ids=lambda t: f"{t.plural}.{t.api_version}")
def test_every_kind_has_a_row_even_if_empty(resource_type: ResourceType) -> None:
    columns = table_columns(resource_type)
    assert len(columns.row({"metadata": {"name": "x"}}, NOW)) == len(columns.columns)
    for definition in columns.definitions:
        assert set(definition) == {"name", "type", "format", "description", "priority"}
        assert not definition["description"].startswith("@")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (10860, "3h1m"),
        (28799, "7h59m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (176400, "2d1h"),
        (691199, "7d23h"),
        (691200, "8d"),
        (63071999, "729d"),
        (63072000, "2y"),
        (63158400, "2y1d"),
        (252288000, "8y"),
    ],
)
def test_durations_for_people(seconds: int, text: str) -> None:
    assert human_duration(seconds * SECOND) == text


def test_fractions_of_a_second_are_cut() -> None:
    assert human_duration(119 * SECOND + 999_999_999) == "119s"
    assert human_duration(-2 * SECOND + 1) == "0s"


def running(**status: Any) -> JsonObject:
    return {"ready": True, "restartCount": 0, "state": {"running": {}}, **status}


def waiting(reason: str, **status: Any) -> JsonObject:
    return {"restartCount": 0, "state": {"waiting": {"reason": reason}}, **status}


def terminated(exit_code: int, reason: str = "", **state: Any) -> JsonObject:
    return {
        "restartCount": 0,
        "state": {"terminated": {"exitCode": exit_code, "reason": reason, **state}},
    }


def pod(
    phase: str,
    *containers: JsonObject,
    init: list[JsonObject] | None = None,
    conditions: dict[str, str] | None = None,
    deleted: bool = False,
) -> JsonObject:
    names = [f"c{position}" for position in range(max(1, len(containers)))]
    init_names = [f"i{position}" for position in range(len(init or ()))]
    metadata: JsonObject = {"name": "p", "creationTimestamp": AGO["5m"]}
    if deleted:
        metadata["deletionTimestamp"] = AGO["5m"]
    return {
        "metadata": metadata,
        "spec": {
            "containers": [{"name": name} for name in names],
            "initContainers": [{"name": name} for name in init_names],
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": t, "status": s} for t, s in (conditions or {}).items()],
            "containerStatuses": list(containers),
            "initContainerStatuses": [
                {"name": name, **status}
                for name, status in zip(init_names, init or (), strict=True)
            ],
        },
    }


@pytest.mark.parametrize(
    ("obj", "ready", "status"),
    [
        (pod("Pending"), "0/1", "Pending"),
        (pod("Running", running()), "1/1", "Running"),
        (pod("Pending", waiting("ContainerCreating")), "0/1", "ContainerCreating"),
        (pod("Running", running(), waiting("CrashLoopBackOff")), "1/2", "CrashLoopBackOff"),
        (pod("Succeeded", terminated(0, "Completed")), "0/1", "Completed"),
        (pod("Failed", terminated(1, "Error")), "0/1", "Error"),
        (pod("Failed", terminated(2)), "0/1", "ExitCode:2"),
        (pod("Failed", terminated(137, signal=9)), "0/1", "Signal:9"),
        (pod("Failed", terminated(137, "OOMKilled")), "0/1", "OOMKilled"),
        (
            pod("Running", terminated(0, "Completed"), running(), conditions={"Ready": "True"}),
            "1/2",
            "Running",
        ),
        (pod("Running", terminated(0, "Completed"), running()), "1/2", "NotReady"),
        (pod("Running", terminated(0, "Completed"), terminated(1, "Error")), "0/2", "Error"),
        (pod("Pending", init=[waiting("PodInitializing"), {}]), "0/1", "Init:0/2"),
        (pod("Pending", init=[terminated(0), running(ready=False)]), "0/1", "Init:1/2"),
        (pod("Pending", init=[terminated(1, "Error")]), "0/1", "Init:Error"),
        (pod("Pending", init=[terminated(3)]), "0/1", "Init:ExitCode:3"),
        (pod("Pending", init=[waiting("CrashLoopBackOff")]), "0/1", "Init:CrashLoopBackOff"),
        (pod("Running", running(), init=[terminated(0, "Completed")]), "1/1", "Running"),
        (pod("Running", running(), deleted=True), "1/1", "Terminating"),
        (pod("Succeeded", terminated(0, "Completed"), deleted=True), "0/1", "Completed"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_pod_status(obj: JsonObject, ready: str, status: str) -> None:
    assert shown("pods", obj, "Ready", "Status", "Age") == [ready, status, "5m"]


def test_pod_restarts_tell_when_the_last_one_was() -> None:
    ended = {"terminated": {"finishedAt": AGO["3h"]}}
    obj = pod("Running", running(restartCount=3, lastState=ended), running(restartCount=1))
    assert shown("pods", obj, "Restarts") == ["4 (3h ago)"]
    assert shown("pods", pod("Running", running(restartCount=2)), "Restarts") == ["2"]


def test_sidecars_count_as_containers() -> None:
    obj = pod("Running", running(), init=[running(started=True)])
    obj["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    assert shown("pods", obj, "Ready", "Status") == ["2/2", "Running"]


def test_gated_and_lost_pods() -> None:
    gated = pod("Pending")
    gated["status"]["conditions"] = [{"type": "PodScheduled", "reason": "SchedulingGated"}]
    assert shown("pods", gated, "Status") == ["SchedulingGated"]
    lost = pod("Running", running(), deleted=True)
    lost["status"]["reason"] = "NodeLost"
    assert shown("pods", lost, "Status") == ["Unknown"]


def test_wide_pod() -> None:
    obj = pod("Running", running(), conditions={"gate": "True"})
    obj["spec"] |= {"nodeName": "n1", "readinessGates": [{"conditionType": "gate"}]}
    obj["status"]["podIPs"] = [{"ip": "10.0.0.1"}, {"ip": "fe80::1"}]
    assert row("pods", obj)[5:] == ["10.0.0.1", "n1", "<none>", "1/1"]
    assert row("pods", pod("Pending"))[5:] == ["<none>"] * 4


def test_completed_pods_mark_their_row() -> None:
    (condition,) = table_columns(SCHEME.resolve("pods")).conditions(pod("Succeeded"))
    assert condition == {
        "type": "Completed",
        "status": "True",
        "reason": "Succeeded",
        "message": "The pod has completed successfully.",
    }


def node(ready: str | None, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": {"name": "n", "labels": labels or {}, "creationTimestamp": AGO["1d"]},
        "spec": spec,
        "status": {"conditions": conditions, "nodeInfo": {"kubeletVersion": "v1.36.4"}},
    }


@pytest.mark.parametrize(
    ("obj", "status", "roles"),
    [
        (node("True"), "Ready", "<none>"),
        (node("False"), "NotReady", "<none>"),
        (node("Unknown"), "NotReady", "<none>"),
        (node(None), "Unknown", "<none>"),
        (node("True", unschedulable=True), "Ready,SchedulingDisabled", "<none>"),
        (
            node("True", {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}),
            "Ready",
            "gpu,worker",
        ),
        (
            node("True", {"node-role.kubernetes.io/": "x", "kubernetes.io/role": ""}),
            "Ready",
            "<none>",
        ),
    ],
)
def test_nodes(obj: JsonObject, status: str, roles: str) -> None:
    assert row("nodes", obj)[:5] == ["n", status, roles, "24h", "v1.36.4"]


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        (
            {"type": "ClusterIP", "clusterIPs": ["10.1.1.1"], "ports": [{"port": 80}]},
            {},
            ["ClusterIP", "10.1.1.1", "<none>", "80/TCP"],
        ),
        (
            {
                "type": "NodePort",
                "clusterIPs": ["10.1.1.1"],
                "ports": [
                    {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                ],
            },
            {},
            ["NodePort", "10.1.1.1", "<none>", "80:30080/TCP,53/UDP"],
        ),
        (
            {"type": "LoadBalancer", "clusterIPs": ["10.1.1.1"]},
            {},
            ["LoadBalancer", "10.1.1.1", "<pending>", "<none>"],
        ),
        (
            {"type": "LoadBalancer", "clusterIPs": ["10.1.1.1"], "externalIPs": ["9.9.9.9"]},
            {"loadBalancer": {"ingress": [{"ip": "4.4.4.4"}, {"hostname": "lb"}]}},
            ["LoadBalancer", "10.1.1.1", "4.4.4.4,lb,9.9.9.9", "<none>"],
        ),
        (
            {"type": "ExternalName", "externalName": "db.example.com"},
            {},
            ["ExternalName", "<none>", "db.example.com", "<none>"],
        ),
        (
            {"type": "ClusterIP", "clusterIPs": ["None"]},
            {},
            ["ClusterIP", "None", "<none>", "<none>"],
        ),
    ],
    ids=["cluster-ip", "node-port", "pending", "load-balancer", "external-name", "headless"],
)
def test_services(spec: JsonObject, status: JsonObject, cells: list[str]) -> None:
    obj = {"metadata": {"name": "s"}, "spec": spec, "status": status}
    assert row("services", obj)[1:5] == cells


def cpu(current: int | None, target: int) -> tuple[JsonObject, JsonObject]:
    used = {} if current is None else {"averageUtilization": current}
    return (
        {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": target}}},
        {"type": "Resource", "resource": {"name": "cpu", "current": used}},
    )


def queue(current: str, target: str) -> tuple[JsonObject, JsonObject]:
    return (
        {"type": "External", "external": {"target": {"averageValue": target}}},
        {"type": "External", "external": {"current": {"averageValue": current}}},
    )


@pytest.mark.parametrize(
    ("metrics", "targets"),
    [
        ([], "<none>"),
        ([cpu(80, 50)], "cpu: 80%/50%"),
        ([cpu(None, 50)], "cpu: <unknown>/50%"),
        ([queue("1500m", "2")], "1500m/2 (avg)"),
        ([cpu(80, 50), queue("1", "2")], "cpu: 80%/50%, 1/2 (avg)"),
        ([cpu(80, 50), queue("1", "2"), cpu(1, 2)], "cpu: 80%/50%, 1/2 (avg) + 1 more..."),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_autoscaler_targets(metrics: list[tuple[JsonObject, JsonObject]], targets: str) -> None:
    obj = {
        "apiVersion": "autoscaling/v2",
        "spec": {"metrics": [m[0] for m in metrics], "maxReplicas": 9},
        "status": {"currentMetrics": [m[1] for m in metrics]},
    }
    assert shown("hpa", obj, "Targets", "MinPods", "MaxPods") == [targets, "<unset>", 9]


def test_deployments_and_their_wide_columns() -> None:
    obj = {
        "metadata": {"name": "d", "creationTimestamp": AGO["3h"]},
        "spec": {
            "replicas": 5,
            "selector": {
                "matchLabels": {"app": "x"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["b", "a"]}],
            },
            "template": {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}},
        },
        "status": {"readyReplicas": 2, "updatedReplicas": 5, "availableReplicas": 1},
    }
    assert row("deploy", obj) == ["d", "2/5", 5, 1, "3h", "a,b", "i,", "app=x,tier in (a,b)"]


def test_resource_quotas_part_requests_from_limits() -> None:
    hard = {"pods": "10", "limits.cpu": "4", "cpu": "2"}
    obj = {"status": {"hard": hard, "used": {"cpu": "1500m", "pods": "3"}}}
    assert row("quota", obj)[1:3] == ["cpu: 1500m/2, pods: 3/10", "limits.cpu: 0/4"]


def test_events_of_both_groups() -> None:
    old = {
        "metadata": {"name": "e"},
        "firstTimestamp": AGO["3h"],
        "lastTimestamp": AGO["5m"],
        "count": 7,
        "type": "Normal",
        "reason": "Scheduled",
        "message": " placed \n",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
        "source": {"component": "default-scheduler", "host": "h"},
    }
    new = {
        "metadata": {"name": "e"},
        "deprecatedFirstTimestamp": AGO["3h"],
        "deprecatedLastTimestamp": AGO["5m"],
        "deprecatedCount": 7,
        "type": "Normal",
        "reason": "Scheduled",
        "note": " placed \n",
        "regarding": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
        "deprecatedSource": {"component": "default-scheduler", "host": "h"},
    }
    expected = ["5m", "Normal", "Scheduled", "pod/p", "spec", "default-scheduler, h", "placed"]
    for name, obj in (("events", old), ("events.events.k8s.io", new)):
        assert row(name, obj) == [*expected, "3h", 7, "e"]


def test_endpoints_show_three_and_count_the_rest() -> None:
    subset = {
        "addresses": [{"ip": "1.1.1.1"}, {"ip": "::1"}],
        "ports": [{"port": 80}, {"port": 81}],
    }
    obj = {"subsets": [subset]}
    assert row("ep", obj)[1] == "1.1.1.1:80,[::1]:80,1.1.1.1:81 + 1 more..."
    assert row("ep", {"subsets": []})[1] == "<none>"


@pytest.mark.parametrize(
    "name", ["limitranges", "roles", "clusterroles", "crd", "csistoragecapacities"]
)
def test_kinds_without_printer_show_when_they_were_created(name: str) -> None:
    obj = {"metadata": {"name": "x", "creationTimestamp": AGO["1d"]}}
    assert row(name, obj) == ["x", AGO["1d"]]
    columns = table_columns(SCHEME.resolve(name)).definitions
    assert [(c["name"], c["type"]) for c in columns] == [("Name", "string"), ("Created At", "date")]


def test_scale_subresource() -> None:
    obj = {"metadata": {"name": "d"}, "spec": {"replicas": 3}, "status": {"replicas": 2}}
    assert SCALE_COLUMNS.row(obj, NOW) == ["d", 3, 2, "<unknown>"]


def test_column_descriptions_are_those_of_the_fields() -> None:
    definitions = {c["name"]: c for c in table_columns(SCHEME.resolve("pods")).definitions}
    assert definitions["Node"]["description"].startswith("NodeName indicates in which node")
    assert definitions["Node"]["priority"] == 1
    assert definitions["Name"]["format"] == "name"


WIDGET: JsonObject = {
    "metadata": {
        "name": "w",
        "creationTimestamp": AGO["5m"],
        "labels": {"app.kubernetes.io/name": "web"},
    },
    "spec": {"size": 3, "ratio": 0.5, "on": True, "tags": ["a", "b"], "none": None, "big": 1e21},
    "status": {
        "conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}],
        "at": AGO["3h"],
        "nodes": [{"n": 1}, {"n": 2}, {"n": 3}],
    },
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("integer", ".spec.size", 3),
        ("integer", ".spec.ratio", 0),
        ("integer", ".spec.tags", None),
        ("integer", ".spec.on", None),
        ("number", ".spec.ratio", 0.5),
        ("number", ".spec.size", 3.0),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.size", None),
        ("string", ".spec.size", "3"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.ratio", "0.5"),
        ("string", ".spec.big", "1e+21"),
        ("string", ".spec.tags", '["a","b"]'),
        ("string", ".spec.tags[0]", "a"),
        ("string", ".spec.tags[-1]", "b"),
        ("string", ".spec.tags[5]", None),
        ("string", ".spec.tags[*]", "a"),
        ("string", ".spec.absent.deep", None),
        ("string", ".spec.none", "<no value>"),
        ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
        ("string", ".status.conditions[?(@.type=='Synced')].status", "False"),
        ("string", '.status.conditions[?(@.type=="Gone")].status', None),
        ("integer", ".status.nodes[?(@.n>1)].n", 2),
        ("integer", ".status.nodes[1:].n", 2),
        ("string", r".metadata.labels.app\.kubernetes\.io/name", "web"),
        ("string", ".metadata.labels['app.kubernetes.io/name']", "web"),
        ("date", ".metadata.creationTimestamp", "5m"),
        ("date", ".status.at", "3h"),
        ("date", ".spec.tags[0]", "<invalid>"),
        ("date", ".spec.absent", None),
    ],
)
def test_columns_of_custom_resources(kind: str, path: str, cell: Any) -> None:
    columns = crd_columns([{"name": "X", "type": kind, "jsonPath": path}])
    assert columns.row(WIDGET, NOW) == ["w", cell]
    assert type(columns.row(WIDGET, NOW)[1]) is type(cell)


def test_custom_columns_keep_what_the_definition_says() -> None:
    wide = {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}
    told = {"name": "On", "type": "boolean", "jsonPath": ".spec.on", "description": "Whether"}
    definitions = crd_columns([wide, told]).definitions
    assert [d["name"] for d in definitions] == ["Name", "Size", "On"]
    assert definitions[1] == {
        "name": "Size",
        "type": "integer",
        "format": "",
        "description": "Custom resource definition column (in JSONPath format): .spec.size",
        "priority": 1,
    }
    assert definitions[2]["description"] == "Whether"


@pytest.mark.parametrize("additional", [None, []])
def test_without_columns_a_custom_resource_shows_its_age(additional: Any) -> None:
    columns = crd_columns(additional)
    assert [d["name"] for d in columns.definitions] == ["Name", "Age"]
    assert columns.row(WIDGET, NOW) == ["w", "5m"]
    custom = ResourceType(
        GroupVersionKind("example.com", "v1", "Widget"), "widgets", namespaced=True, custom=True
    )
    assert table_columns(custom).row(WIDGET, NOW) == ["w", "5m"]


def test_a_broken_path_ends_the_columns() -> None:
    broken = {"name": "B", "type": "string", "jsonPath": ".spec[?("}
    fine = {"name": "A", "type": "string", "jsonPath": ".spec.size"}
    assert [d["name"] for d in crd_columns([fine, broken, fine]).definitions] == ["Name", "A"]


@pytest.mark.parametrize("path", [".spec[?(", "spec", ".a[?(b==1)]", ".a[?(@.b==c)]", ".a[x]"])
def test_paths_that_make_no_sense_are_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)
