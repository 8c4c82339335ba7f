"""Autoscaler objects: versions that are accepted, and fields that are refused by name."""

from typing import Any

import pytest

from horizontals import external, hpa, utilization
from kubescene.autoscalers.horizontal import accepted, compiled
from kubescene.autoscalers.horizontal.specs import MetricTarget
from kubescene.durations import SECOND
from kubescene.errors import BadRequestError, ConfigurationError, InvalidError
from kubescene.types import JsonObject

SKENARIO = """
apiVersion: autoscaling/v2beta2
kind: HorizontalPodAutoscaler
metadata:
  name: hpa
spec:
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - resource:
      name: cpu
      target:
        averageUtilization: 50
        type: Utilization
    type: Resource
  scaleTargetRef:
    apiVersion: extensions/v1beta1
    kind: Deployment
    name: deployment
"""


def test_the_old_form_is_accepted() -> None:
    spec = compiled(accepted(SKENARIO))
    assert (spec.minimum, spec.maximum, spec.reference) == (1, 10, "Deployment/default/deployment")
    assert spec.metrics[0].target == MetricTarget("Utilization", average_utilization=50)


def test_version_1_is_accepted() -> None:
    source = hpa()
    source |= {"apiVersion": "autoscaling/v1"}
    del source["spec"]["metrics"]
    assert compiled(accepted(source)).metrics[0].target.average_utilization == 80
    source["spec"]["targetCPUUtilizationPercentage"] = 65
    spec = compiled(accepted(source))
    assert spec.metrics[0].target.average_utilization == 65
    assert spec.behavior is None


def test_behavior_is_completed_in_both_directions() -> None:
    source = hpa(behavior={"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "9m"}})
    behavior = compiled(accepted(source)).behavior
    assert behavior is not None
    assert (behavior.scale_up.window, behavior.scale_down.window) == (0, 60 * SECOND)
    assert [str(each) for each in behavior.scale_up.policies] == [
        "4 pods per 15 s",
        "100 % per 15 s",
    ]
    assert behavior.scale_down.tolerance == 9 * 0.001
    assert behavior.scale_down.tolerance != 0.009


@pytest.mark.parametrize(
    ("text", "width"), [("1.02E2", 102.0), ("1.5e+1", 15.0), ("5e-2", 0.05), ("2", 2.0)]
)
def test_a_tolerance_may_be_written_with_an_exponent(text: str, width: float) -> None:
    behavior = compiled(accepted(hpa(**rules(tolerance=text)))).behavior
    assert behavior is not None
    assert behavior.scale_up.tolerance == width


def rules(**fields: Any) -> JsonObject:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    return {"behavior": {"scaleUp": {"policies": [policy], **fields}}}


def policy(**fields: Any) -> JsonObject:
    return rules(policies=[{"type": "Pods", "value": 1, "periodSeconds": 60, **fields}])


def cpu_target(**target: Any) -> JsonObject:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


INVALID = {
    "max below min": (hpa(minimum=5, maximum=4), "spec.maxReplicas"),
    "no max": (hpa(maximum=0), "spec.maxReplicas"),
    "zero": (hpa(external("q", "1"), minimum=0), "spec.minReplicas"),
    "policy value": (hpa(**policy(value=0)), "spec.behavior.scaleUp.policies[0].value"),
    "period": (
        hpa(**policy(periodSeconds=1801)),
        "spec.behavior.scaleUp.policies[0].periodSeconds",
    ),
    "window": (
        hpa(**rules(stabilizationWindowSeconds=3601)),
        "spec.behavior.scaleUp.stabilizationWindowSeconds",
    ),
    "select": (hpa(**rules(selectPolicy="Most")), "spec.behavior.scaleUp.selectPolicy"),
    "no policies": (hpa(**rules(policies=[])), "spec.behavior.scaleUp.policies"),
    "tolerance": (hpa(**rules(tolerance="-1")), "spec.behavior.scaleUp.tolerance"),
    "utilization": (
        hpa(cpu_target(type="Utilization", averageUtilization=0)),
        "spec.metrics[0].resource.target.averageUtilization",
    ),
    "two targets": (
        hpa(cpu_target(type="Utilization", averageUtilization=1, averageValue="1")),
        "spec.metrics[0].resource.target.averageValue",
    ),
    "negative value": (hpa(external("q", "-1")), "spec.metrics[0].external.target.value"),
    "metric type": (hpa({"type": "Magic"}), "spec.metrics[0].type"),
    "target ref": (hpa(scaleTargetRef={"kind": "Deployment"}), "spec.scaleTargetRef.name"),
}


@pytest.mark.parametrize(("source", "field"), INVALID.values(), ids=INVALID)
def test_what_the_api_refuses_is_refused_with_its_field(source: JsonObject, field: str) -> None:
    with pytest.raises(InvalidError) as caught:
        accepted(source)
    assert field in [cause.field for cause in caught.value.causes]
    assert field in str(caught.value)


def test_zero_is_behind_a_gate_and_needs_a_metric_that_outlives_pods() -> None:
    accepted(hpa(external("q", "1"), minimum=0), scale_to_zero=True)
    with pytest.raises(InvalidError, match=r"spec\.metrics"):
        accepted(hpa(utilization(50), minimum=0), scale_to_zero=True)


def test_a_misspelled_field_is_refused() -> None:
    source = hpa(behavior={"scaleDown": {"stabilisationWindowSeconds": 5}})
    with pytest.raises(BadRequestError, match="stabilisationWindowSeconds"):
        accepted(source)


def test_a_value_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(BadRequestError, match="maxReplicas"):
        accepted(hpa(maximum="ten"))  # type: ignore[arg-type]


NO_AUTOSCALERS = {
    "kind": (hpa() | {"kind": "Deployment"}, "not a HorizontalPodAutoscaler"),
    "version": (hpa() | {"apiVersion": "autoscaling/v2beta1"}, "autoscaling/v2beta1"),
    "nothing": ({}, "no apiVersion"),
    "text": ("- 1", "expected one HorizontalPodAutoscaler object"),
    "no yaml": ("a: [", "cannot be read"),
    "two": (f"{SKENARIO}\n---\n{SKENARIO}", "found 2 documents"),
}


@pytest.mark.parametrize(("source", "words"), NO_AUTOSCALERS.values(), ids=NO_AUTOSCALERS)
def test_what_is_no_autoscaler_is_said_so(source: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        accepted(source)
