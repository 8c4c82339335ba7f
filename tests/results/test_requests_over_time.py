"""Windows and sums of requests: what a run told of them, added up in another way."""

import math
from itertools import pairwise

import pytest

import kubescene
from controllers.test_traffic import constant, deployment, traffic
from kubescene import Run
from kubescene.results.tables import tables
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node


@pytest.fixture(scope="module")
def run() -> Run:
    """25 requests a second are what a pod of half a core can serve; 30 come."""
    request = {"cpuTime": "20ms", "ioTime": "0s", "timeout": "2s"}
    load = traffic(arrivals=constant(30), request=request)
    return kubescene.run(
        ScenarioBuilder("requests")
        .create(make_node("n").cpu("4").memory("8Gi"), deployment(1), load)
        .advance("1m")
        .expect("windows", "size(windows) == 4 && windows[0].requests == 450")
        .expect("sums", 'traffic["default/load"].requests == 1800')
        .expect("later", "windows.filter(w, w.time_s > 30.0).all(w, w.p99_ms == 2000.0)")
        .build()
    )


def test_expectations_speak_of_windows_and_sums(run: Run) -> None:
    assert run.ok, run.message
    assert [each.holds for each in run.summary.expectations] == [True] * 3


def test_sums_are_those_of_windows(run: Run) -> None:
    found = tables(run)
    windows, [total] = found["windows"].rows, found["traffic"].rows
    for name in ("requests", "succeeded", "good", "failed", "timed_out", "refused", "killed"):
        assert getattr(total, name) == sum(getattr(each, name) for each in windows), name
    assert total.requests == total.succeeded + total.failed + total.inside
    assert total.windows == 4
    # Half a core, a minute long.
    assert total.cpu_hours == pytest.approx(0.5 / 60, rel=0.01)


def test_failures_count_as_their_time_outs(run: Run) -> None:
    for row in tables(run)["windows"].rows:
        done = row.succeeded + row.failed
        is_late = math.ceil(done * 0.99) > row.succeeded
        assert row.p99_ms == (2000.0 if is_late else row.p99_ms)
        assert row.served_max_ms is None or row.served_max_ms <= 2000.0


def test_a_run_without_traffic_has_empty_tables() -> None:
    bare = kubescene.run(ScenarioBuilder("bare").create(make_node("n")).build())
    found = tables(bare)
    assert (found["windows"].rows, found["traffic"].rows) == ([], [])


# -- measures ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def changing() -> Run:
    """A load that doubles for a while, an autoscaler, and a second Traffic without failures."""
    points = [{"at": "0s", "rps": 20}, {"at": "2m", "rps": 60}, {"at": "6m", "rps": 10}]
    request = {"cpuTime": "20ms", "ioTime": "0s", "timeout": "2s"}
    arrivals = {"pattern": "piecewise", "spacing": "even", "piecewise": {"points": points}}
    objective = {"responseTime": "100ms", "percentile": 99}
    load = traffic(arrivals=arrivals, request=request, objective=objective, begin="WhenReady")
    quick = {"cpuTime": "1ms", "ioTime": "0s", "timeout": "9s"}
    to = {"deployment": "calm"}
    calm = traffic("calm", to=to, arrivals=constant(2), request=quick, begin="WhenReady")
    target = {"type": "Utilization", "averageUtilization": 70}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
    scenario = (
        ScenarioBuilder("changing")
        .create(make_node("n").cpu("4").memory("8Gi"), deployment(1), load)
        .create(deployment(1, name="calm"), calm, scaler)
        .advance("10m")
        .build()
    )
    scenario["spec"]["simulation"] = {"kubelet": {"startDelay": "3s", "readyDelay": "10s"}}
    return kubescene.run(scenario)


def test_measures_are_sums_over_windows(changing: Run) -> None:
    found, windows = changing.measures, tables(changing)["windows"].rows
    mine = [each for each in windows if each.traffic == "default/load"]
    assert found["requests"] == sum(each.requests for each in windows)
    assert found["requests_failed"] == sum(each.failed for each in windows)
    assert found["requests_default_load"] == sum(each.requests for each in mine)
    missed = [each for each in mine if each.good < 0.99 * (each.succeeded + each.failed)]
    assert found["slo_minutes_default_load"] == sum(each.window_s for each in missed) / 60 > 0
    assert found["slo_minutes_default_calm"] == 0
    used = sum(each.cpu * each.window_s for each in windows)
    assert found["cpu_used_share"] == pytest.approx(used / (4 * 600), rel=0.02)


def test_a_failure_lasts_as_long_as_its_own_time_out(changing: Run) -> None:
    """Of both Traffics together: 2 s those of one, none of the other fails."""
    found = changing.measures
    assert found["requests_failed_default_calm"] == 0
    assert found["response_p99_s"] == found["response_p99_s_default_load"] == 2.0
    assert found["response_served_p99_s"] <= found["response_served_max_s"] <= 2.0
    assert found["response_p99_s_default_calm"] == pytest.approx(0.002, rel=1 / 16)


def test_scaling_is_counted_by_direction(changing: Run) -> None:
    found, rows = changing.measures, tables(changing)["scaling"].rows
    ups = [each.replicas_to > each.replicas_from for each in rows]
    assert (found["scale_ups"], found["scale_downs"]) == (sum(ups), len(ups) - sum(ups))
    assert found["flapping"] == sum(a != b for a, b in pairwise(ups)) >= 1


def test_a_pod_is_ready_thirteen_seconds_after_its_creation(changing: Run) -> None:
    assert changing.measures["time_to_ready_seconds_p50"] == 13.0


def test_without_requests_and_decisions_there_are_no_measures_of_them() -> None:
    bare = kubescene.run(ScenarioBuilder("bare").create(make_node("n")).advance("1m").build())
    assert bare.measures["nodes_most"] == 1
    assert not {"requests", "response_p99_s", "scale_ups", "flapping", "cpu_used_share"} & {
        *bare.measures
    }


def test_the_summary_tells_both_percentiles_and_where_it_failed(changing: Run) -> None:
    [load, calm] = sorted(changing.summary.traffic, key=lambda each: each.traffic, reverse=True)
    assert (load.traffic, calm.failed) == ("default/load", 0)
    assert load.p99_ms == 2000.0 > (load.served_p99_ms or 0)
    # 60 a second from the second minute on, to the sixth: of 72 parts those from 14 to 43.
    assert [place for place, rps in enumerate(load.rps) if rps == 60] == [*range(14, 44)]
    assert len(changing.summary.scaling) == len(tables(changing)["scaling"].rows)
