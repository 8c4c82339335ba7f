"""TrafficRuns that become scenarios: the same requests where nobody contends, or told why not."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import kubescene
from controllers.test_traffic import rows
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.cli.convert.sources import converted
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.durations import parse_duration
from kubescene.errors import TrafficError
from kubescene.traffic import run
from kubescene.traffic.as_scenario import left_out, scenario_of
from kubescene.traffic.spec.fields import (
    AutoscalerGates,
    HpaController,
    Metadata,
    Metrics,
    Replicas,
    TrafficRun,
    TrafficSpec,
)
from kubescene.traffic.spec.loading import spec_of
from kubescene.types import JsonObject

STEP = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"


def document(**spec: Any) -> JsonObject:
    return {"kind": "TrafficRun", "metadata": {"name": "load"}, "spec": spec}


def scenario(**spec: Any) -> JsonObject:
    return scenario_of(
        TrafficRun(metadata=Metadata(name="load"), spec=spec_of(spec)), document(**spec)
    )


def played(made: JsonObject) -> ClusterWorld:
    """The operations in a world, one after the other."""
    delays = made["spec"]["simulation"]["kubelet"]
    kubelet = KubeletDelays(
        0, parse_duration(delays["readyDelay"]), parse_duration(delays["terminateDelay"])
    )
    world = ClusterWorld(ClusterOptions(kubelet=kubelet))
    for operation in made["spec"]["operations"]:
        if "createOperation" in operation:
            world.create(operation["createOperation"]["object"])
            world.settle()
        elif "advanceOperation" in operation:
            world.advance(operation["advanceOperation"]["duration"])
    return world


@pytest.mark.parametrize(
    "traffic",
    [
        {"pattern": "constant", "constant": {"rps": 90}},
        {"pattern": "step", "step": {"rps": 60, "after": "10s"}},
        {"pattern": "ramp", "ramp": {"deltaV": 3, "maxRps": 90}},
        {"pattern": "piecewise", "piecewise": {"points": [{"at": "5s", "rps": 70}]}},
    ],
)
@pytest.mark.parametrize("routing", ["roundRobin", "leastConnections"])
def test_evenly_spaced_requests_are_the_same_to_the_byte(traffic: JsonObject, routing: str) -> None:
    spec = {
        "duration": "1m",
        "traffic": {**traffic, "spacing": "even"},
        "request": {"cpuTime": "25ms", "ioTime": "5ms", "timeout": "900ms"},
        "replicas": {"initial": 2, "cpu": "700m", "requestCpu": "1", "launchDelay": "5s"},
        "routing": routing,
    }
    cluster = played(scenario(**spec))
    assert len(cluster.list("pods")) == 2
    expected = run(spec_of(spec)).requests
    assert expected.count > 1000
    assert rows(cluster) == expected.rows().tobytes()


def test_the_form_becomes_a_scenario_that_plays_and_scales(tmp_path: Path) -> None:
    made = converted([STEP], name="x", placed=False)
    kinds = [
        each["createOperation"]["object"]["kind"]
        for each in made["spec"]["operations"]
        if "createOperation" in each
    ]
    assert kinds == ["Node", "Deployment", "HorizontalPodAutoscaler", "Traffic"]
    file = tmp_path / "scenario.yaml"
    file.write_text(dump_yaml(made), encoding="utf-8")
    result = kubescene.run(file, strict=True)
    assert result.ok, result.message
    changes = [(row.replicas_from, row.replicas_to) for row in result.tables["scaling"].rows]
    assert changes[0][0] == 1
    assert max(after for _, after in changes) >= 4


def test_a_concurrency_autoscaler_becomes_knatives_object_and_requests_wait() -> None:
    autoscaler = {
        "apiVersion": "autoscaling.kubescene.dev/v1alpha1",
        "kind": "ConcurrencyAutoscaler",
        "metadata": {"name": "c"},
        "spec": {"target": 4, "stableWindow": "30s", "minScale": 0},
    }
    made = scenario(autoscalers=[{"object": autoscaler, "type": CONCURRENCY}])
    objects = [
        each["createOperation"]["object"]
        for each in made["spec"]["operations"]
        if "createOperation" in each
    ]
    named = {each["kind"]: each for each in objects}
    annotations = named["PodAutoscaler"]["metadata"]["annotations"]
    assert annotations == {
        "autoscaling.knative.dev/target": "4",
        "autoscaling.knative.dev/window": "30s",
        "autoscaling.knative.dev/min-scale": "0",
    }
    assert named["Traffic"]["spec"]["whenNone"] == "wait"


CONCURRENCY = "concurrency.v1alpha1.autoscaling.kubescene.dev"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"mode": "faithful"}, "spec.mode"),
        (
            {"traffic": {"pattern": "uniform", "uniform": {"numberOfRequests": 10}}},
            "spec.traffic.uniform.width",
        ),
        ({"autoscalers": [{"type": "mine.example.com", "yaml": "kind: Mine"}]}, "autoscalers[0]"),
    ],
)
def test_what_a_scenario_cannot_say_is_refused_by_name(spec: JsonObject, path: str) -> None:
    with pytest.raises(TrafficError) as told:
        scenario(**spec)
    assert path in str(told.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("faithful", {"queueServers": 50}),
        ("featureGates.HPAConfigurableTolerance", False),
        ("featureGates.HPAScaleToZero", True),
        ("featureGates.InPlace", True),
        ("metrics.firstAfter", "5s"),
        ("metrics.lag", "4s"),
        ("replicas.replacement", "surge"),
        ("replicas.victims", "newest"),
        ("statInterval", "10s"),
        ("updateRule", "seed"),
        ("verticalInterval", "15s"),
    ],
)
def test_each_field_that_is_left_out_is_named_if_it_is_set(path: str, value: Any) -> None:
    outer, _, inner = path.partition(".")
    spec = {outer: {inner: value} if inner else value}
    spec_of(spec)  # a TrafficRun may say it
    [line] = left_out(document(**spec))
    assert line.startswith(f"spec.{path} is left out: ")


def test_values_that_say_what_holds_anyway_are_not_named() -> None:
    gates = {"InPlace": False, "HPAConfigurableTolerance": True, "HPAScaleToZero": False}
    spec = {"featureGates": gates, "replicas": {"replacement": "auto"}, "updateRule": "updater"}
    assert list(left_out(document(**spec, duration="1m"))) == []
    assert list(left_out({"kind": "TrafficRun"})) == []


OTHERWISE: JsonObject = {
    "duration": "1m",
    "seed": 7,
    "traffic": {"pattern": "constant", "constant": {"rps": 3}},
    "request": {"cpuTime": "1ms"},
    "replicas": {
        "initial": 3,
        "cpu": "300m",
        "limit": 3,
        "requestCpu": "200m",
        "launchDelay": "1s",
        "terminateDelay": "3s",
        "gracePeriod": "3s",
        "victims": "newest",
        "replacement": "surge",
        "memory": {"limit": "1Gi"},
    },
    "mode": "faithful",
    "routing": "leastConnections",
    "whenNone": "wait",
    "metrics": {
        "firstAfter": "1s",
        "lag": "1s",
        "external": [{"name": "m", "points": [{"at": "0s", "value": 1}]}],
    },
    "statInterval": "1s",
    "horizontalInterval": "1s",
    "verticalInterval": "1s",
    "updateRule": "seed",
    "featureGates": {
        "InPlace": True,
        "HPAConfigurableTolerance": False,
        "HPAScaleToZero": True,
    },
    "hpaController": {
        "tolerance": 0.3,
        "downscaleStabilization": "1s",
        "cpuInitializationPeriod": "1s",
        "initialReadinessDelay": "1s",
    },
    "autoscalers": [
        {
            "object": {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "h"},
                "spec": {
                    "maxReplicas": 2,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                },
            }
        }
    ],
    "objective": {"responseTime": "1s"},
    "faithful": {"queueServers": 3},
}
"""Every field of the spec of a TrafficRun, with another value than its default."""

REFUSED = {"mode": "spec.mode", "replicas": "spec.replicas.memory"}
REFUSED["replicas.memory"] = REFUSED["replicas"]


def fields_of(part: type[msgspec.Struct]) -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(part)]


@pytest.mark.parametrize(
    "path",
    [
        *(each for each in fields_of(TrafficSpec)),
        *(f"replicas.{each}" for each in fields_of(Replicas)),
        *(f"metrics.{each}" for each in fields_of(Metrics)),
        *(f"featureGates.{each}" for each in fields_of(AutoscalerGates)),
        *(f"hpaController.{each}" for each in fields_of(HpaController)),
    ],
)
def test_no_field_of_a_traffic_run_is_lost_in_silence(path: str) -> None:
    outer, _, inner = path.partition(".")
    spec = {outer: {inner: OTHERWISE[outer][inner]} if inner else OTHERWISE[outer]}
    if path in REFUSED:
        with pytest.raises(TrafficError, match=REFUSED[path]):
            scenario(**spec)
        return
    made = scenario(**spec)
    named = list(left_out(document(**spec)))
    assert made != scenario() or named
    assert all(line.startswith(f"spec.{path}") for line in named if inner)


def test_labels_and_annotations_of_autoscalers_stay() -> None:
    said = OTHERWISE["autoscalers"][0]["object"]
    metadata = {"name": "h", "labels": {"team": "a"}, "annotations": {"why": "b"}}
    made = scenario(autoscalers=[{"object": {**said, "metadata": metadata}}])
    objects = [
        each["createOperation"]["object"]
        for each in made["spec"]["operations"]
        if "createOperation" in each
    ]
    [found] = [each for each in objects if each["kind"] == "HorizontalPodAutoscaler"]
    assert found["metadata"] == metadata


def test_the_command_says_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.yaml"
    text = STEP.read_text(encoding="utf-8")
    file.write_text(text.replace("spec:\n", "spec:\n  statInterval: 1s\n", 1), encoding="utf-8")
    converted([file], name="x", placed=False)
    assert capsys.readouterr().err == (
        "kubescene: warning: spec.statInterval is left out: "
        "pods of a scenario are scraped every 15 seconds\n"
    )
