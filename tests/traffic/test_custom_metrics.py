"""HPAs on what a world measures of requests, and on series from outside."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kubescene.autoscalers import MetricType, Stat
from kubescene.autoscalers.interfaces import CUSTOM_METRICS, SERVICE
from kubescene.clock import MILLISECOND, SECOND
from kubescene.errors import TrafficError
from kubescene.traffic import RequestOutcome, TrafficResult, TrafficSpec, run
from kubescene.traffic.results import TrafficResult as Result
from kubescene.traffic.spec.loading import load_run, spec_of
from traffic.stubs import Scripted

AT_ONCE: dict[str, Any] = {"hpaController": {"downscaleStabilization": "0s"}}
SERVICE_REFERENCE = {"apiVersion": "v1", "kind": "Service", "name": "web"}


def metric(kind: str, name: str, average: str = "", value: str = "") -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": average}
    if value:
        target = {"type": "Value", "value": value}
    source: dict[str, Any] = {"metric": {"name": name}, "target": target}
    if kind == "Object":
        source["describedObject"] = SERVICE_REFERENCE
    return {"type": kind, kind.lower(): source}


def hpa(*metrics: dict[str, Any], least: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa"},
        "spec": {
            "minReplicas": least,
            "maxReplicas": 50,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": list(metrics),
        },
    }


def spec(*metrics: dict[str, Any], least: int = 1, **fields: Any) -> TrafficSpec:
    asked = {
        "duration": "3m",
        "traffic": {"pattern": "constant", "spacing": "even", "constant": {"rps": 20}},
        "request": {"cpuTime": "20ms", "ioTime": "180ms", "timeout": "5s"},
        "autoscalers": [{"object": hpa(*metrics, least=least)}],
    }
    return spec_of(asked | fields)


def wanted(result: TrafficResult) -> int:
    assert result.ok, result.message
    return result.decisions[-1].after


@pytest.mark.parametrize("kind", ["Pods", "Object", "External"])
def test_requests_a_second_are_divided_among_replicas(kind: str) -> None:
    """20 a second, 5 for each: 4, however the total is told."""
    result = run(spec(metric(kind, "requests_per_second", average="5"), **AT_ONCE))
    assert wanted(result) == 4
    assert "(target 5)" in result.decisions[1].reason


@pytest.mark.parametrize("kind", ["Pods", "Object", "External"])
def test_concurrency_is_what_littles_law_says(kind: str) -> None:
    """20 a second for 0.2 s are 4 in flight."""
    assert wanted(run(spec(metric(kind, "concurrent_requests", average="1"), **AT_ONCE))) == 4


def test_a_total_beside_a_value_scales_by_their_ratio() -> None:
    """20 a second with a target of 10: twice as many as there are, and again, up to the most."""
    result = run(spec(metric("Object", "requests_per_second", value="10")))
    assert [each.after for each in result.decisions[:3]] == [2, 4, 8]


@pytest.mark.parametrize("kind", ["Pods", "Object"])
def test_queues_and_latencies_scale_too(kind: str) -> None:
    """One that is overloaded: its queue grows, and so does what waits in it."""
    slow = {"cpuTime": "100ms", "ioTime": "0s", "timeout": "5s"}
    value = {"value": "5"} if kind == "Object" else {"average": "5"}
    for name in ("queue_length", "latency_p95"):
        target = value if name == "queue_length" else dict.fromkeys(value, "500m")
        result = run(spec(metric(kind, name, **target), request=slow, replicas={"limit": 1}))
        assert wanted(result) > 1, name


def series_of(result: TrafficResult, stats: list[Stat], kind: MetricType) -> dict[int, int]:
    del result
    return {each.time: each.value for each in stats if each.type == kind}


def test_what_is_measured_of_the_service_is_what_its_requests_say() -> None:
    """Each window again, from the columns alone: rates, Little's integral, nearest ranks."""
    plugin = Scripted({})
    fields: dict[str, Any] = {
        "traffic": {"pattern": "constant", "spacing": "poisson", "constant": {"rps": 36}},
        "request": {"cpuTime": "60ms", "ioTime": "50ms", "timeout": "2s", "demand": "exponential"},
        "replicas": {"initial": 2, "limit": 4},
        "horizontalInterval": "5s",
    }
    result = run(spec(metric("Object", "latency_p95", value="1k"), **fields), [plugin])
    told = [each for request in plugin.stats for each in request.stat if each.pod_name == SERVICE]
    columns, width = result.requests, 10 * SECOND
    assert {each.time for each in told} == {at * width for at in range(1, 18)}
    assert columns.outcome.tolist().count(RequestOutcome.TIMEOUT) > 50
    for end in range(width, 180 * SECOND, width):
        begin = end - width
        here = [each for each in told if each.time == end]
        if not here:
            continue
        values = {each.type: each.value for each in here}
        came = int(((columns.arrived >= begin) & (columns.arrived < end)).sum())
        assert values[MetricType.REQUESTS_PER_SECOND_MILLIS] == came * 100
        inside = np.minimum(columns.completed, end) - np.maximum(columns.arrived, begin)
        held = int(np.maximum(inside, 0).sum())
        assert values[MetricType.CONCURRENT_REQUESTS_MILLIS] == held * 1000 // width
        ended = (columns.completed >= begin) & (columns.completed < end)
        taken = np.sort((columns.completed - columns.arrived)[ended])
        for kind, share in (
            (MetricType.LATENCY_P50_MILLIS, 50),
            (MetricType.LATENCY_P99_MILLIS, 99),
        ):
            rank = -(-len(taken) * share // 100)
            assert values[kind] == taken[rank - 1] // MILLISECOND


def test_what_is_measured_of_pods_adds_up_to_the_service() -> None:
    plugin = Scripted({})
    replicas = {"initial": 3, "limit": 1}
    request = {"cpuTime": "160ms", "ioTime": "0s", "timeout": "5s"}
    run(
        spec(metric("Pods", "queue_length", average="1k"), replicas=replicas, request=request),
        [plugin],
    )
    told = [each for request in plugin.stats for each in request.stat]
    queues = [each for each in told if each.type == MetricType.QUEUE_LENGTH_MILLIS]
    assert max(each.value for each in queues) > 3000
    for at in {each.time for each in queues}:
        own = [each.value for each in queues if each.time == at and each.pod_name != SERVICE]
        [total] = [each.value for each in queues if each.time == at and each.pod_name == SERVICE]
        assert (len(own), sum(own)) == (3, total)


@pytest.mark.parametrize("rule", ["wait", "refuse"])
def test_without_a_replica_a_service_has_a_queue_or_failures(rule: str) -> None:
    """Two wait at the end of the first window; refused at once, they count at their time-outs."""
    plugin = Scripted({})
    traffic = {"pattern": "replay", "replay": {"arrivals": ["8s", "9s"]}}
    fields: dict[str, Any] = {"traffic": traffic, "replicas": {"initial": 0}, "whenNone": rule}
    run(spec(metric("Object", "queue_length", value="1"), **fields), [plugin])
    told = [each for request in plugin.stats for each in request.stat if each.pod_name == SERVICE]
    first = {each.type: each.value for each in told if each.time == 10 * SECOND}
    waiting = rule == "wait"
    assert first[MetricType.QUEUE_LENGTH_MILLIS] == (2000 if waiting else 0)
    assert first.get(MetricType.LATENCY_P50_MILLIS) == (None if waiting else 5000)
    assert first[MetricType.CONCURRENT_REQUESTS_MILLIS] == (300 if waiting else 0)


@pytest.mark.parametrize(("lag", "first"), [("5s", 10), ("6s", 20)])
def test_what_is_measured_of_the_service_comes_later(lag: str, first: int) -> None:
    """Read at 10 s, told at the tick of 15 s if it is there by then."""
    plugin = Scripted({})
    asked = spec(metric("Object", "queue_length", value="1k"), metrics={"lag": lag})
    run(asked, [plugin])
    told = [each for request in plugin.stats for each in request.stat if each.pod_name == SERVICE]
    assert told[0].time == first * SECOND


def test_nobody_is_told_of_what_nobody_asks_for() -> None:
    plugin = Scripted({})
    run(spec(metric("Pods", "concurrent_requests", average="1")), [plugin])
    kinds = {each.type for request in plugin.stats for each in request.stat}
    assert kinds == {MetricType.CPU_MILLIS, MetricType.CONCURRENT_REQUESTS_MILLIS}


ORDERS = {"name": "orders", "points": [{"at": "0s", "value": 30}, {"at": "1m", "value": 80}]}


def test_a_series_from_outside_is_followed() -> None:
    result = run(spec(metric("External", "orders", average="10"), metrics={"external": [ORDERS]}))
    at = {each.time // SECOND: each.after for each in result.decisions}
    assert (at[15], at[45], at[60]) == (3, 3, 6), "at most twice as many at once"
    assert at[75] == 8


def test_before_its_first_point_there_is_no_such_metric() -> None:
    late = {"name": "orders", "points": [{"at": "40s", "value": 30}]}
    result = run(spec(metric("External", "orders", average="10"), metrics={"external": [late]}))
    told = {each.time // SECOND: each for each in result.decisions}
    assert "no metrics returned from external metrics API" in told[15].details["error"]
    assert told[45].after == 3


@pytest.mark.parametrize(
    "rows",
    [
        "time,value\n0,30\n60,80\n",
        "2026-03-01T08:00:00Z,30\n2026-03-01T08:01:00Z,80\n",
        "0s,30\n1m,80\n",
    ],
    ids=["seconds", "calendar", "durations"],
)
def test_a_series_may_stand_in_a_file_and_a_run_that_is_kept_has_it(
    tmp_path: Path, rows: str
) -> None:
    (tmp_path / "orders.csv").write_text(rows)
    inline = run(spec(metric("External", "orders", average="10"), metrics={"external": [ORDERS]}))
    from kubescene.traffic.runs import as_run
    from kubescene.traffic.spec.loading import to_object

    asked = to_object(as_run(spec(metric("External", "orders", average="10"))))
    asked["spec"]["metrics"]["external"] = [{"name": "orders", "file": "orders.csv"}]
    result = run(asked, folder=tmp_path)
    assert [each.after for each in result.decisions] == [each.after for each in inline.decisions]
    result.save(tmp_path / "out")
    again = run(load_run(tmp_path / "out" / "traffic.yaml"))
    assert Result.load(tmp_path / "out").story() == again.story()


def test_an_hpa_may_scale_from_zero_by_a_series() -> None:
    """With the gate, as upstream; requests wait meanwhile."""
    quiet = {"name": "orders", "points": [{"at": "0s", "value": 0}, {"at": "1m", "value": 20}]}
    fields = {
        "metrics": {"external": [quiet]},
        "replicas": {"initial": 1},
        "hpaController": {"downscaleStabilization": "0s"},
        "traffic": {"pattern": "replay", "replay": {"arrivals": ["50s", "100s"]}},
        "request": {"timeout": "never"},
        "whenNone": "wait",
        "featureGates": {"HPAScaleToZero": True},
    }
    result = run(spec(metric("External", "orders", average="10"), least=0, **fields))
    active = [each.active for each in result.counts]
    assert (0 in active, active[-1], result.summary.succeeded) == (True, 2, 2)
    fields["featureGates"] = {"HPAScaleToZero": False}
    with pytest.raises(TrafficError, match="minReplicas"):
        run(spec(metric("External", "orders", average="10"), least=0, **fields))


def test_an_unknown_name_lists_those_that_there_are() -> None:
    known = ", ".join(CUSTOM_METRICS)
    with pytest.raises(TrafficError, match=f"pods.metric.name: 'rps' is not .* there are {known}$"):
        run(spec(metric("Pods", "rps", average="1")))
    with pytest.raises(TrafficError, match=f"there are {known}, orders; spec.metrics.external of"):
        run(spec(metric("External", "order", average="1"), metrics={"external": [ORDERS]}))
    labelled = metric("External", "orders", average="1")
    labelled["external"]["metric"]["selector"] = {"matchLabels": {"shop": "a"}}
    with pytest.raises(TrafficError, match=r"metric.selector: metrics here have no"):
        run(spec(labelled, metrics={"external": [ORDERS]}))


@pytest.mark.parametrize(
    ("series", "told"),
    [
        ({"name": "queue_length", "points": [{"at": "0s", "value": 1}]}, "is measured here"),
        ({"name": "a"}, "give either points or file"),
        ({"name": "a", "points": [{"at": "0s", "value": -1}]}, "must be a number from 0"),
        (
            {"name": "a", "points": [{"at": "9m", "value": 1}], "origin": "1m"},
            "all times lie after",
        ),
    ],
)
def test_a_bad_series_is_told(series: dict[str, Any], told: str) -> None:
    with pytest.raises(TrafficError, match=rf"spec.metrics.external\[0\].*{told}"):
        run(spec(metric("External", "a", average="1"), metrics={"external": [series]}))


def test_flags_of_the_controller_count() -> None:
    """Tolerance: 4 in flight at a target of 3.5 is a seventh too much. Stabilization: a spike."""

    def flags(**given: object) -> dict[str, Any]:
        return {"hpaController": given}

    busy = metric("Pods", "concurrent_requests", average="3500m")
    assert wanted(run(spec(busy, **flags(tolerance=0.1)))) == 2
    assert wanted(run(spec(busy, **flags(tolerance=0.2)))) == 1
    spike = {
        "pattern": "spikes",
        "spikes": {"rps": 1, "spikeRps": 40, "after": "5s", "width": "40s"},
    }
    by_rate = metric("Object", "requests_per_second", average="10")
    assert wanted(run(spec(by_rate, traffic=spike, **flags()))) == 4
    assert wanted(run(spec(by_rate, traffic=spike, **flags(downscaleStabilization="30s")))) == 1
    with pytest.raises(TrafficError, match=r"hpaController.tolerance"):
        spec(busy, **flags(tolerance=1.0))


def test_how_new_a_pod_is_counts_as_the_controller_is_told() -> None:
    """A new pod is read a second after it is ready, then every 5 s, of the 5 s before.

    While it is new, only a reading that lies wholly behind its readiness counts: that at 6 s, and
    of the pod that is wanted then and ready at 11 s, that at 17 s. Else the first ones do.
    """

    def decided(**flags: str) -> list[int]:
        cpu = {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60},
            },
        }
        result = run(
            spec(
                cpu,
                request={"cpuTime": "90ms", "ioTime": "0s", "timeout": "2s"},
                replicas={"launchDelay": "5s"},
                metrics={"firstAfter": "1s", "lag": "0s"},
                statInterval="5s",
                horizontalInterval="3s",
                hpaController=flags,
            )
        )
        return [each.time // SECOND for each in result.decisions if each.after > each.before]

    assert decided() == decided(cpuInitializationPeriod="1h") == [6, 18]
    assert decided(cpuInitializationPeriod="0s") == [3, 9, 15]
