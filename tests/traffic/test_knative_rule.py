"""Runs with a ConcurrencyAutoscaler, at Knative's pace."""

from typing import Any

import pytest

from kubescene.autoscalers import MetricType
from kubescene.errors import TrafficError
from kubescene.traffic import TrafficSpec, run
from kubescene.traffic.spec.loading import spec_of
from traffic.stubs import Scripted


def knative(fields: dict[str, object] | None = None, **scaling: Any) -> TrafficSpec:
    kind = {"apiVersion": "autoscaling.kubescene.dev/v1alpha1", "kind": "ConcurrencyAutoscaler"}
    spec = {
        "duration": "3m",
        "statInterval": "1s",
        "horizontalInterval": "2s",
        "metrics": {"firstAfter": "1s", "lag": "0s"},
        "traffic": {"pattern": "constant", "constant": {"rps": 40}},
        "request": {"cpuTime": "20ms", "ioTime": "180ms"},
        "autoscalers": [{"object": kind | {"metadata": {"name": "web"}, "spec": scaling}}],
    }
    return spec_of(spec | (fields or {}))


def test_a_rate_below_two_leaves_one_replica() -> None:
    result = run(knative(target=2, targetUtilizationPercentage=100, maxScaleUpRate=1.5))
    active = [each.active for each in result.counts]
    assert (active[0], active[-1]) == (1, 4), "40 a second of 200 ms are 8 in flight"


def test_replicas_follow_requests_a_second() -> None:
    result = run(knative(target=20, metric="rps"))
    assert result.counts[-1].active == 3, "40 a second, 14 for each"
    assert "panic window: 3 pods" in {each.reason for each in result.decisions}


def test_requests_a_second_bring_the_first_replica() -> None:
    result = run(knative({"replicas": {"initial": 0}}, target=20, metric="rps", minScale=0))
    assert result.counts[-1].active == 3


def test_requests_a_second_are_told_only_where_somebody_goes_by_them() -> None:
    told = []
    for metric in ("concurrency", "rps"):
        plugin = Scripted({})
        run(knative(target=20, metric=metric), [plugin])
        kinds = {each.type for request in plugin.stats for each in request.stat}
        told.append(MetricType.REQUESTS_PER_SECOND_MILLIS in kinds)
    assert told == [False, True]


def test_faithful_mode_does_not_measure_them() -> None:
    with pytest.raises(TrafficError, match="rps is not measured here"):
        run(knative({"mode": "faithful"}, target=20, metric="rps"))
