"""VerticalPodAutoscaler objects: what is taken, what is refused, and how the refusal reads."""

from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import in_mode, make_object, policies
from kubescene.autoscalers.vertical import (
    VerticalPodAutoscalerError,
    read_vpa,
    recommender_options,
    updater_options,
)
from kubescene.clock import SECOND
from kubescene.errors import ConfigurationError

YAML = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: InPlaceOrRecreate, minReplicas: 1}
  resourcePolicy:
    containerPolicies:
    - {containerName: app, minAllowed: {cpu: 100m}, maxAllowed: {cpu: 2, memory: 1Gi}}
    - {containerName: "*", mode: "Off"}
"""


def test_yaml_is_read() -> None:
    vpa = read_vpa(YAML)
    assert (vpa.name, vpa.update_mode) == ("web", "InPlaceOrRecreate")
    own, other = vpa.policy_of("app"), vpa.policy_of("sidecar")
    assert own is not None
    assert own.max_allowed is not None
    assert {name: str(each) for name, each in own.max_allowed.items()} == {
        "cpu": "2",
        "memory": "1Gi",
    }
    assert other is not None
    assert other.is_off


def test_the_older_version_is_taken_too() -> None:
    assert read_vpa(make_object() | {"apiVersion": "autoscaling.k8s.io/v1beta2"}).name == "web"


@pytest.mark.parametrize("spec", [{}, in_mode("Recreate"), in_mode("Auto")])
def test_recreate_is_the_default_and_auto_is_kept(spec: dict[str, Any]) -> None:
    assert read_vpa(make_object(spec)).update_mode in ("Recreate", "Auto")


POLICY = "spec.resourcePolicy.containerPolicies[0]"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"targetRef": None}, "spec.targetRef: Required value"),
    ({"updatePolicy": {}}, "spec.updatePolicy.updateMode: Required value"),
    (in_mode("Sometimes"), 'spec.updatePolicy.updateMode: Unsupported value: "Sometimes"'),
    (in_mode("InPlace"), "spec.updatePolicy.updateMode: Forbidden: not supported when"),
    (in_mode("Off", minReplicas=0), "spec.updatePolicy.minReplicas: Invalid value: 0"),
    (
        in_mode("Off", minReplicas="two"),
        "spec.updatePolicy.minReplicas: must be a whole number, not text ('two')",
    ),
    (in_mode("Off", evictAfterOOMSeconds=5), "spec.updatePolicy.evictAfterOOMSeconds: Forbidden"),
    (
        in_mode("Off", evictionRequirements=[{"resources": ["cpu"], "changeRequirement": "Any"}]),
        "spec.updatePolicy.evictionRequirements[0].changeRequirement: Unsupported value",
    ),
    (policies({}), f"{POLICY}.containerName: Required value"),
    (policies({"containerName": "a", "mode": "On"}), f'{POLICY}.mode: Unsupported value: "On"'),
    (
        policies({"containerName": "a", "controlledValues": "Limits"}),
        f"{POLICY}.controlledValues: Unsupported value",
    ),
    (
        policies({"containerName": "a", "mode": "Off", "controlledValues": "RequestsAndLimits"}),
        f"{POLICY}.controlledValues: Forbidden",
    ),
    (
        policies({"containerName": "a", "minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}}),
        f'{POLICY}.maxAllowed[cpu]: Invalid value: "1": max resource for cpu is lower',
    ),
    (
        policies({"containerName": "a", "minAllowed": {"cpu": "1u"}}),
        f'{POLICY}.minAllowed[cpu]: Invalid value: "1u": must be a whole number of milli CPUs',
    ),
    (
        policies({"containerName": "a", "maxAllowed": {"memory": "1m"}}),
        f'{POLICY}.maxAllowed[memory]: Invalid value: "1m": must be a whole number of bytes',
    ),
    (policies({"containerName": "a", "minAllowed": {"cpu": "lots"}}), "minAllowed: [cpu]: 'lots'"),
    (policies({"containerName": "a", "minAllowed": {"cpu": []}}), "[cpu]: [] is no quantity"),
    (policies({"containerName": "a", "minAllowed": 3}), "expected resources and quantities"),
    (policies({"containerName": "a", "oomBumpUpRatio": "2"}), f"{POLICY}.oomBumpUpRatio: Forb"),
    (policies({"containerName": "a", "startupBoost": {}}), f"{POLICY}.startupBoost: Forbidden"),
    (
        policies({"containerName": "a", "minalowed": {}}),
        f"{POLICY}.minalowed: there is no such field: did you mean minAllowed?",
    ),
    ({"startupBoost": {}}, "spec.startupBoost: Forbidden"),
    ({"recommenders": [{"name": "a"}, {"name": "b"}]}, "spec.recommenders: Too many: 2"),
    ({"updatepolicy": {}}, "spec.updatepolicy: there is no such field: did you mean updatePolicy?"),
]


@pytest.mark.parametrize(("spec", "said"), REFUSED, ids=[said[:60] for _, said in REFUSED])
def test_a_refusal_names_the_field(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(VerticalPodAutoscalerError) as refusal:
        read_vpa(make_object(spec))
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not readable as YAML"),
        ("- 1", "expected one VerticalPodAutoscaler"),
        ("", "expected one VerticalPodAutoscaler"),
        (YAML + "---" + YAML, "found 2 documents"),
        (YAML.replace("k8s.io/v1", "k8s.io/v1beta1"), "apiVersion, kind: expected"),
        (YAML.replace("name: web}\nspec", "labels: {}}\nspec"), "metadata.name: Required value"),
    ],
)
def test_what_is_no_such_object_is_refused(text: str, said: str) -> None:
    with pytest.raises(VerticalPodAutoscalerError) as refusal:
        read_vpa(text)
    assert said in str(refusal.value)


def test_options_have_the_names_of_the_flags() -> None:
    options = recommender_options(
        {
            "targetCPUPercentile": 0.8,
            "confidenceIntervalMemory": 3600,
            "oomMinBumpUpBytes": 0,
            "globalMaxAllowed": {"cpu": "2"},
            "humanizeMemory": True,
        }
    )
    assert options.target_cpu_percentile == 0.8
    assert options.confidence_interval_memory == 3600 * SECOND
    assert str(options.global_max_allowed["cpu"]) == "2"
    assert updater_options({"evictAfterOOMThreshold": 1}).evict_after_oom_threshold == SECOND


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"targetCpuPercentile": 0.8}, "targetCpuPercentile: no such option; there are"),
        ({"safetyMargin": float("nan")}, "safetyMargin: nan"),
        ({"safetyMargin": -0.1}, "safetyMargin: -0.1"),
        ({"safetyMargin": "1"}, "safetyMargin: '1' is no number"),
        ({"targetCPUPercentile": 90}, "targetCPUPercentile: 90 is no percentile"),
        ({"memoryAggregationInterval": 0}, "memoryAggregationInterval: 0 seconds"),
        ({"roundCPUMillicores": 1.5}, "roundCPUMillicores: 1.5 is no whole number"),
        ({"humanizeMemory": 1}, "humanizeMemory: 1 is neither true nor false"),
        ({"globalMaxAllowed": {"cpu": "x"}}, "globalMaxAllowed: "),
        ({"globalMaxAllowed": 5}, "globalMaxAllowed: expected resources"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        recommender_options(given)
    assert str(refusal.value).startswith(said)
