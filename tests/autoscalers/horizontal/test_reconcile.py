"""Whole passes: published rows, by their number (H88 to H96), and what they leave open."""

import copy

import pytest

from horizontals import (
    NOW,
    autoscaler,
    cpu,
    external,
    hpa,
    observed,
    on_ingress,
    pods,
    reasons,
    utilization,
)
from kubescene.api.selectors import parse_labels
from kubescene.autoscalers.horizontal import (
    Condition,
    ExternalSeries,
    HorizontalStatus,
    Observation,
    ObservedScale,
    OtherAutoscaler,
    RecordedMetrics,
    ScaledPod,
    ScaleFailure,
    observed_pod,
)
from kubescene.durations import SECOND

OUT_OF_RANGE = {
    "H88-below": (2, 3, 10, 3, "Current number of replicas below Spec.MinReplicas"),
    "H88-above": (10, 1, 5, 5, "Current number of replicas above Spec.MaxReplicas"),
    # What doubling 2^31 - 1 came to on amd64: a count that is written, and read by the next pass.
    "overflown": (-(2**31), 1, 2**31 - 1, 1, "Current number of replicas below Spec.MinReplicas"),
}


@pytest.mark.parametrize(
    ("replicas", "minimum", "maximum", "desired", "why"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE
)
def test_a_count_out_of_range_is_brought_back_without_metrics(
    replicas: int, minimum: int, maximum: int, desired: int, why: str
) -> None:
    subject = autoscaler(hpa(utilization(50), minimum=minimum, maximum=maximum))
    result = subject.run(observed(replicas), NOW)
    assert (result.desired, result.scaled_to) == (desired, desired)
    assert result.events[0].message == f"New size: {desired}; reason: {why}"
    assert result.explanation.proposal is None
    assert not result.status.current_metrics
    assert [each.replicas for each in result.history.recommendations] == [replicas]


def test_h88_a_target_at_zero_pauses_the_autoscaler() -> None:
    result = autoscaler(hpa(utilization(50), minimum=3)).run(observed(0), NOW)
    assert (result.desired, result.scaled_to) == (0, None)
    assert reasons(result)["ScalingActive"] == (False, "ScalingDisabled")


def test_h89_the_first_count_is_a_recommendation() -> None:
    subject = autoscaler(hpa(utilization(50), minimum=2, maximum=6))
    result = subject.run(observed(5, (300,) * 5), NOW)
    assert result.explanation.proposal == 3
    assert result.desired == 5
    assert reasons(result)["AbleToScale"] == (True, "ScaleDownStabilized")


def test_h90_a_recent_recommendation_holds_the_count() -> None:
    subject = autoscaler(hpa(utilization(100)), (10, 600), (4, 60))
    result = subject.run(observed(4, (500,) * 4), NOW)
    assert (result.explanation.proposal, result.desired) == (2, 4)
    assert reasons(result)["AbleToScale"] == (True, "ScaleDownStabilized")
    assert "held at 4 by a recommendation of 4 within the last 5m" in str(result.explanation)


def test_h91_one_failing_metric_does_not_stop_scaling_up() -> None:
    subject = autoscaler(hpa(utilization(30), external("gone", "5")))
    result = subject.run(observed(3, (400,) * 3), NOW)
    assert result.desired == 4
    assert result.error.startswith("invalid metrics (1 invalid out of 2), first error is:")
    assert reasons(result)["ScalingActive"] == (True, "ValidMetricFound")


@pytest.mark.parametrize(
    "series", [(), (ExternalSeries("gone"),)], ids=["H92-unknown", "H92-empty"]
)
def test_h92_one_failing_metric_stops_scaling_down(series: tuple[ExternalSeries, ...]) -> None:
    subject = autoscaler(hpa(utilization(50), external("gone", "5")), (2, 10))
    answers = RecordedMetrics(cpu((250,) * 5), external_series=series)
    seen = Observation(ObservedScale(5, "app=web"), pods((1000,) * 5), answers)
    result = subject.run(seen, NOW)
    assert result.desired == 5
    assert reasons(result)["ScalingActive"] == (False, "FailedGetExternalMetric")
    told = [each.reason for each in result.events]
    assert told == ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]
    assert result.status.current_metrics[1] == {"type": ""}


def test_h93_the_minimum_bounds_the_way_down() -> None:
    subject = autoscaler(hpa(utilization(90), minimum=2, maximum=5), (1, 10))
    result = subject.run(observed(3, (10, 95, 10), (900, 1000, 1100)), NOW)
    assert result.desired == 2
    assert reasons(result)["ScalingLimited"] == (True, "TooFewReplicas")


def test_h94_the_maximum_bounds_the_way_up() -> None:
    subject = autoscaler(hpa(utilization(90), minimum=2, maximum=5))
    result = subject.run(observed(3, (8000, 9500, 1000), (900, 1000, 1100)), NOW)
    assert result.desired == 5
    assert reasons(result)["ScalingLimited"] == (True, "TooManyReplicas")


def test_behavior_takes_whole_seconds_of_the_controllers_window() -> None:
    subject = autoscaler(
        hpa(utilization(50), behavior={"scaleUp": {}}), downscale_stabilization=10 * SECOND + 9
    )
    subject.run(observed(4, (500,) * 4), NOW)
    assert subject.run(observed(4, (250,) * 4), NOW + 10 * SECOND - 1).desired == 4
    assert subject.run(observed(4, (250,) * 4), NOW + 10 * SECOND).desired == 2


UP_700 = {"scaleUp": {"policies": [{"type": "Percent", "value": 700, "periodSeconds": 60}]}}


@pytest.mark.parametrize(
    ("maximum", "desired", "reason"),
    [(100, 24, "ScaleUpLimit"), (20, 20, "TooManyReplicas")],
    ids=["H95-rate", "H95-maximum"],
)
def test_h95_policy_and_maximum(maximum: int, desired: int, reason: str) -> None:
    subject = autoscaler(hpa(utilization(10), maximum=maximum, behavior=UP_700))
    result = subject.run(observed(3, (100, 200, 300), 100), NOW)
    assert result.desired == desired
    assert reasons(result)["ScalingLimited"] == (True, reason)


def scaled_to_zero() -> HorizontalStatus:
    condition = Condition("ScaledToZero", True, "ScaledToZero", "", NOW - SECOND)
    return HorizontalStatus(conditions=(condition,))


def test_h96_a_raised_minimum_leaves_zero() -> None:
    subject = autoscaler(hpa(on_ingress("qps", "15"), minimum=2), scale_to_zero=True)
    subject.status = scaled_to_zero()
    result = subject.run(observed(0, qps=10000), NOW)
    assert result.desired == 2
    assert reasons(result)["ScalingLimited"] == (True, "TooFewReplicas")
    assert reasons(result)["ScaledToZero"] == (False, "NotScaledToZero")


def test_to_zero_and_back() -> None:
    subject = autoscaler(
        hpa(on_ingress("qps", "15"), minimum=0), scale_to_zero=True, downscale_stabilization=0
    )
    subject.run(observed(1, qps=15000), NOW)
    assert subject.run(observed(1, qps=0), NOW + 1).desired == 0
    assert subject.status.is_true("ScaledToZero")
    assert subject.run(observed(0, qps=31000), NOW + 2).desired == 3
    assert not subject.status.is_true("ScaledToZero")


def test_without_the_gate_zero_is_the_end() -> None:
    subject = autoscaler(hpa(on_ingress("qps", "15")))
    subject.status = scaled_to_zero()
    result = subject.run(observed(0, qps=31000), NOW)
    assert result.desired == 0
    assert set(reasons(result)) == {"AbleToScale", "ScalingActive"}


# -- reads and writes that fail ---------------------------------------------------------------


def test_a_scale_that_cannot_be_read_ends_the_pass() -> None:
    subject = autoscaler(hpa(utilization(50)))
    failure = ScaleFailure("timed out", "failed to query scale: timed out")
    result = subject.run(Observation(failure, (), RecordedMetrics()), NOW)
    assert (result.error, result.scaled_to) == ("failed to query scale: timed out", None)
    assert reasons(result) == {"AbleToScale": (False, "FailedGetScale")}
    assert not result.history.recommendations


def test_a_refused_write_keeps_the_desired_count() -> None:
    subject = autoscaler(hpa(utilization(50), behavior=UP_700))
    result = subject.run(observed(2, (1000, 1000)), NOW, scale_error="denied")
    assert (result.desired, result.scaled_to) == (2, None)
    assert result.status.desired_replicas == 0
    assert [each.reason for each in result.events] == ["FailedRescale"]
    assert not result.history.scale_up_events
    assert subject.run(observed(2, (1000, 1000)), NOW + 1).scaled_to == 4


def test_a_refused_status_does_not_hold() -> None:
    subject = autoscaler(hpa(utilization(50)))
    result = subject.run(observed(2, (1000, 1000)), NOW, status_error="conflict")
    assert (result.scaled_to, result.status_written) == (4, False)
    assert result.status == HorizontalStatus()
    assert result.error == "failed to update status for web: conflict"
    assert [each.reason for each in result.events] == ["SuccessfulRescale", "FailedUpdateStatus"]


def test_a_status_that_does_not_change_is_not_written() -> None:
    subject = autoscaler(hpa(utilization(50)))
    first = subject.run(observed(2, (500, 500)), NOW)
    second = subject.run(observed(2, (500, 500)), NOW + 15 * SECOND)
    assert (first.status_written, second.status_written) == (True, False)


# -- selectors --------------------------------------------------------------------------------

REFUSED = {
    "none": ("", "SelectorRequired", "InvalidSelector"),
    "broken": ("app in", "InvalidSelector", "InvalidSelector"),
}


@pytest.mark.parametrize(("text", "event", "condition"), REFUSED.values(), ids=REFUSED)
def test_a_scale_without_a_usable_selector(text: str, event: str, condition: str) -> None:
    subject = autoscaler(hpa(utilization(50)))
    seen = Observation(ObservedScale(2, text), pods((100, 100)), RecordedMetrics(cpu((50, 50))))
    result = subject.run(seen, NOW)
    assert reasons(result)["ScalingActive"] == (False, condition)
    assert [each.reason for each in result.events] == [event, "FailedComputeMetricsReplicas"]


def test_two_autoscalers_must_not_select_the_same_pods() -> None:
    subject = autoscaler(hpa(utilization(50)))
    seen = observed(2, (500, 500))
    for selector, refused in (("app=web", True), ("app=db", False)):
        other = OtherAutoscaler("other", parse_labels(selector))
        result = subject.run(Observation(seen.scale, seen.pods, seen.metrics, (other,)), NOW)
        assert (reasons(result)["ScalingActive"][1] == "AmbiguousSelector") == refused


def test_pods_of_others_do_not_count() -> None:
    ours, other = pods((1000, 1000))
    stranger = ScaledPod(other.name, other.requests, {"app": "db"})
    seen = Observation(
        ObservedScale(1, "app=web"), (ours, stranger), RecordedMetrics(cpu((500, 90000)))
    )
    result = autoscaler(hpa(utilization(50))).run(seen, NOW)
    assert (result.desired, result.explanation.proposal) == (1, 1)


# -- values -----------------------------------------------------------------------------------


def test_a_copy_goes_on_alike_and_leaves_the_original_alone() -> None:
    subject = autoscaler(hpa(utilization(50), behavior=UP_700))
    subject.run(observed(2, (1000, 1000)), NOW)
    twin = copy.deepcopy(subject)
    later = NOW + 15 * SECOND
    assert twin.run(observed(4, (900,) * 4), later) == subject.run(observed(4, (900,) * 4), later)
    twin.run(observed(8, (10,) * 8), later + SECOND)
    assert twin.history != subject.history


def test_a_kubernetes_pod_is_read() -> None:
    pod = observed_pod(
        {
            "metadata": {"name": "a", "labels": {"x": "y"}, "deletionTimestamp": "now"},
            "spec": {
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m"}}}],
                "initContainers": [
                    {"name": "once", "resources": {"requests": {"cpu": "9"}}},
                    {
                        "name": "side",
                        "restartPolicy": "Always",
                        "resources": {"requests": {"cpu": "50m"}},
                    },
                ],
            },
            "status": {
                "phase": "Running",
                "startTime": "1970-01-01T00:00:05Z",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "lastTransitionTime": "1970-01-01T00:00:07Z",
                    }
                ],
            },
        }
    )
    assert (pod.started, pod.ready_since, pod.ready) == (5 * SECOND, 7 * SECOND, "True")
    assert pod.deleting
    assert pod.requests.amount("cpu", container="", pod="a", pod_level=True) == 300
    assert pod.requests.amount("cpu", container="side", pod="a", pod_level=True) == 50


def test_requests_of_the_pod_itself_come_first() -> None:
    spec = {
        "resources": {"requests": {"memory": "1Gi"}},
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}},
            {"name": "b"},
        ],
    }
    requests = observed_pod({"metadata": {"name": "p"}, "spec": spec}).requests
    assert requests.amount("memory", container="", pod="p", pod_level=True) == 2**30 * 1000
    assert requests.amount("cpu", container="", pod="p", pod_level=True) == 100
    assert requests.amount("cpu", container="a", pod="p", pod_level=True) == 100


def test_an_explanation_is_json_and_names_what_limited() -> None:
    subject = autoscaler(hpa(utilization(10), behavior=UP_700))
    why = subject.run(observed(3, (100, 200, 300), 100), NOW).explanation
    shown = why.to_dict()
    assert shown["metrics"][0]["proposal"] == 60
    assert shown["limit"]["reason"] == "ScaleUpLimit"
    assert shown["limit"]["policies"][shown["limit"]["policy"]] == {
        "policy": "700 % per 60 s",
        "start": 3,
        "added": 0,
        "removed": 0,
        "allowed": 24,
    }
    assert str(why) == (
        "3 -> 24: cpu resource utilization (percentage of request) at 200% (target 10%) proposes "
        "60 (ratio of usage and target); limited to 24 by policy 0 (700 % per 60 s)"
    )
