"""Windows and sums of requests: what a run told of them, added up in another way."""

import math

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
