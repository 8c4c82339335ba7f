"""The messages of autoscalers: numbers and fields of the protobuf service."""

import msgspec
import pytest

from kubescene.autoscalers import (
    Autoscaler,
    AutoscalerPlugin,
    Capability,
    EventRequest,
    EventType,
    HorizontalRecommendationRequest,
    MetricType,
    Pod,
    RecommendedPodResources,
    Stat,
    VerticalRecommendationRequest,
)


def test_numbers_are_those_of_the_protobuf() -> None:
    assert [(each.name, int(each)) for each in EventType] == [
        ("CREATE", 0),
        ("UPDATE", 1),
        ("DELETE", 2),
    ]
    assert [
        int(each) for each in (MetricType.CPU_MILLIS, MetricType.CONCURRENT_REQUESTS_MILLIS)
    ] == [
        0,
        1,
    ]
    assert [(each.name, int(each)) for each in Capability] == [
        ("EVENT", 0),
        ("STAT", 1),
        ("VERTICAL_RECOMMENDATION", 2),
        ("HORIZONTAL_RECOMMENDATION", 3),
    ]


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (Autoscaler, ["type", "yaml"]),
        (Pod, ["name", "state", "last_transition", "cpu_request", "memory_request"]),
        (EventRequest, ["partition", "time", "type", "object"]),
        (Stat, ["time", "pod_name", "type", "value"]),
        (HorizontalRecommendationRequest, ["partition", "time_nanos"]),
        (VerticalRecommendationRequest, ["partition", "time_nanos"]),
        (RecommendedPodResources, ["lower_bound", "upper_bound", "target", "resource_name"]),
    ],
)
def test_fields_are_those_of_the_protobuf(message: type, fields: list[str]) -> None:
    assert [each.name for each in msgspec.structs.fields(message)] == fields


def test_an_autoscaler_says_what_it_cannot_do() -> None:
    plugin = AutoscalerPlugin()
    with pytest.raises(NotImplementedError, match="recommends no number of pods"):
        plugin.horizontal_recommendation(HorizontalRecommendationRequest("1", 0))
    with pytest.raises(NotImplementedError, match="recommends no size of pods"):
        plugin.vertical_recommendation(VerticalRecommendationRequest("1", 0))
