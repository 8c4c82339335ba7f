"""One stored object, several versions: what each client reads and writes."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.conversion import convert
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import InvalidError
from kubescene.registry import Registry

V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
CORE_EVENT = GroupVersionKind("", "v1", "Event")
NEW_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
PREFIX = "autoscaling.alpha.kubernetes.io/"

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def autoscaler(version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 10, **spec},
    }


def cpu(percent: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


PODS_METRIC = {
    "type": "Pods",
    "pods": {
        "metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}


def test_v1_is_stored_as_v2(client: DirectClient, registry: Registry) -> None:
    record = client.create(autoscaler("v1", targetCPUUtilizationPercentage=50))
    stored = record.decode()
    assert stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"]["metrics"] == [cpu(50)]
    shown = orjson.loads(registry.present(record, registry.type_of(V1)))
    assert shown["apiVersion"] == "autoscaling/v1"
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 50
    assert "metrics" not in shown["spec"]
    assert registry.present(record, registry.type_of(V2)) is record.data


def test_v1_without_target_gets_the_default_metric(client: DirectClient) -> None:
    stored = client.create(autoscaler("v1")).decode()
    assert stored["spec"]["metrics"] == [cpu(80)]


def test_other_metrics_and_behavior_travel_in_annotations() -> None:
    behavior = {
        "scaleDown": {
            "stabilizationWindowSeconds": 60,
            "selectPolicy": "Max",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
        }
    }
    shown = convert(autoscaler("v2", metrics=[PODS_METRIC, cpu(70)], behavior=behavior), V2, V1)
    annotations = shown["metadata"]["annotations"]
    assert annotations[PREFIX + "metrics"] == (
        '[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10",'
        '"selector":{"matchLabels":{"a":"b"}}}}]'
    )
    assert annotations[PREFIX + "behavior"] == (
        '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":60,"SelectPolicy":"Max",'
        '"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null}}'
    )
    assert shown["spec"]["targetCPUUtilizationPercentage"] == 70
    back = convert(shown, V1, V2)
    assert "annotations" not in back["metadata"]
    assert back["spec"]["metrics"] == [PODS_METRIC, cpu(70)]
    assert back["spec"]["behavior"] == behavior


def test_status_of_v2_survives_a_client_of_v1() -> None:
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "conditions": [
            {
                "type": "AbleToScale",
                "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "ReadyForNewScale",
                "message": "fine",
            }
        ],
        "currentMetrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "current": {"averageValue": "100m", "averageUtilization": 40},
                },
            }
        ],
    }
    shown = convert({**autoscaler("v2", metrics=[cpu(50)]), "status": status}, V2, V1)
    assert shown["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentCPUUtilizationPercentage": 40,
    }
    assert convert(shown, V1, V2)["status"] == status


METRICS = st.one_of(
    st.builds(cpu, st.integers(1, 100)),
    st.just(PODS_METRIC),
    st.builds(
        lambda name, value: {
            "type": "External",
            "external": {
                "metric": {"name": name},
                "target": {"type": "Value", "value": str(value)},
            },
        },
        st.sampled_from(["a", "b"]),
        st.integers(1, 9),
    ),
    st.builds(
        lambda average: {
            "type": "Object",
            "object": {
                "describedObject": TARGET,
                "target": {"type": "AverageValue", "averageValue": str(average)},
                "metric": {"name": "hits"},
            },
        },
        st.integers(1, 9),
    ),
    st.builds(
        lambda container: {
            "type": "ContainerResource",
            "containerResource": {
                "name": "memory",
                "container": container,
                "target": {"type": "AverageValue", "averageValue": "1Gi"},
            },
        },
        st.sampled_from(["a", "b"]),
    ),
)


@settings(deadline=None, max_examples=100)
@given(metrics=st.lists(METRICS, min_size=1, max_size=4))
def test_metrics_survive_the_round_trip(metrics: list[dict[str, Any]]) -> None:
    def is_cpu(metric: dict[str, Any]) -> bool:
        return bool(metric.get("resource", {}).get("name") == "cpu")

    before = autoscaler("v2", metrics=metrics)
    frozen = orjson.dumps(before)
    after = convert(convert(before, V2, V1), V1, V2)["spec"]["metrics"]
    assert orjson.dumps(before) == frozen
    # Version 1 holds one CPU target, and it comes back last.
    others = [metric for metric in metrics if not is_cpu(metric)]
    targets = [metric for metric in metrics if is_cpu(metric)][:1]
    assert after == others + targets


def test_patch_in_v1_changes_what_v2_reads(client: DirectClient) -> None:
    client.create(autoscaler("v2", metrics=[PODS_METRIC, cpu(70)]))
    client.patch(ObjectRef(V1, "web", "default"), {"spec": {"targetCPUUtilizationPercentage": 30}})
    obj = client.get(ObjectRef(V2, "web", "default"))
    assert obj["spec"]["metrics"] == [PODS_METRIC, cpu(30)]
    assert "annotations" not in obj["metadata"]


def test_invalid_v1_is_refused_in_v1(client: DirectClient) -> None:
    with pytest.raises(InvalidError, match="maxReplicas"):
        client.create(autoscaler("v1", maxReplicas=0))


# The newer group is not given a count when an event is made (it has series); the core group is.
EVENT_IN_CORE = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Scheduled",
    "action": "Binding",
    "message": "bound",
    "type": "Normal",
    "reportingComponent": "default-scheduler",
    "reportingInstance": "default-scheduler-0",
    "count": 2,
}
EVENT_IN_NEW = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Scheduled",
    "action": "Binding",
    "note": "bound",
    "type": "Normal",
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-0",
}


@pytest.mark.parametrize(
    ("event", "count"), [(EVENT_IN_CORE, 2), (EVENT_IN_NEW, None)], ids=["core", "new"]
)
def test_events_of_both_groups_are_the_same_objects(
    client: DirectClient, registry: Registry, event: dict[str, Any], count: int | None
) -> None:
    record = client.create(event)
    core = orjson.loads(registry.present(record, registry.type_of(CORE_EVENT)))
    assert core["involvedObject"]["name"] == "p"
    assert (core["message"], core.get("count")) == ("bound", count)
    assert core["reportingComponent"] == "default-scheduler"
    new = orjson.loads(registry.present(record, registry.type_of(NEW_EVENT)))
    assert new["regarding"]["name"] == "p"
    assert (new["note"], new.get("deprecatedCount")) == ("bound", count)
    assert new["reportingController"] == "default-scheduler"
    assert not {"involvedObject", "message", "count", "source"} & new.keys()


def test_an_event_of_the_newer_group_is_not_given_a_count(client: DirectClient) -> None:
    with pytest.raises(InvalidError, match="needs to be unset"):
        client.create({**EVENT_IN_NEW, "deprecatedCount": 2})


def test_device_requests_change_shape_between_versions() -> None:
    old = GroupVersionKind("resource.k8s.io", "v1beta1", "ResourceClaim")
    new = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
    flat = {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2}
    claim = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [flat]}},
    }
    later = convert(claim, old, new)
    assert later["spec"]["devices"]["requests"] == [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}
    ]
    assert convert(later, new, old) == claim


def test_versions_with_equal_fields_differ_in_name_only() -> None:
    old = GroupVersionKind("networking.k8s.io", "v1beta1", "IPAddress")
    new = GroupVersionKind("networking.k8s.io", "v1", "IPAddress")
    obj = {"apiVersion": old.api_version, "kind": "IPAddress", "metadata": {"name": "10.0.0.1"}}
    assert convert(obj, old, new) == {**obj, "apiVersion": "networking.k8s.io/v1"}
    assert convert(obj, old, old) is obj
