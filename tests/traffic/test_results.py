"""Results: measures by hand, series, files, and what a terminal shows."""

import copy
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from kubescene.autoscalers import (
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
)
from kubescene.clock import MINUTE, SECOND
from kubescene.errors import TrafficError
from kubescene.flows.fields import Objective
from kubescene.flows.records import RequestColumns
from kubescene.flows.units import TrafficDuration
from kubescene.reports.plots import axis, highest, plot
from kubescene.reports.traffic import print_result
from kubescene.traffic import (
    AutoscalerDecision,
    Phase,
    ReplicaCount,
    ReplicaRecord,
    RequestOutcome,
    TrafficResult,
    Verdict,
    run,
)
from kubescene.traffic.measures import (
    all_percentile_s,
    lifetime,
    percentile_s,
    reversals,
    scaling_times,
    slo_minutes,
)
from kubescene.traffic.skenario.series import (
    cpu_utilizations,
    request_tallies,
    requests_per_second,
    response_times,
    tally_lines,
)
from kubescene.traffic.spec.fields import TrafficSpec
from kubescene.traffic.spec.loading import spec_of
from traffic.stubs import Scripted

MEMORY_HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "hpa"},
    "spec": {
        "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "memory",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            }
        ],
    },
}

CPU_HPA = copy.deepcopy(MEMORY_HPA)
CPU_HPA["spec"]["metrics"][0]["resource"]["name"] = "cpu"  # type: ignore[index]


def spec(**fields: object) -> TrafficSpec:
    return spec_of({"duration": "60s", **fields})


def arriving(*instants: str, **fields: object) -> TrafficSpec:
    traffic = {"pattern": "replay", "replay": {"arrivals": list(instants)}}
    return spec(traffic=traffic, **fields)


def columns(*rows: tuple[int, int, RequestOutcome]) -> RequestColumns:
    made = RequestColumns()
    made.append(np.array([row[0] for row in rows], dtype=np.int64))
    made.completed[:] = [row[1] for row in rows]
    made.outcome[:] = [row[2] for row in rows]
    made.replica[:] = 1
    return made


def decision(time: int, before: int, after: int) -> AutoscalerDecision:
    return AutoscalerDecision(time=time, autoscaler="x", before=before, after=after)


def test_percentiles_are_of_the_nearest_rank() -> None:
    times = np.array([1, 2, 3, 4], dtype=np.int64) * SECOND
    assert [percentile_s(times, each) for each in (1, 25, 26, 50, 99, 100)] == [1, 1, 2, 2, 4, 4]
    assert percentile_s(times[:0], 50) == 0.0


def test_a_summary_by_hand() -> None:
    request = {"cpuTime": "1s", "ioTime": "0s", "timeout": "3s"}
    result = run(arriving("1s", "10s", "10s", "59.5s", request=request))
    summary = result.summary
    assert (summary.requests, summary.succeeded, summary.open) == (4, 3, 1)
    assert summary.response_mean_s == pytest.approx((1 + 2 + 2) / 3)
    assert (summary.response_p50_s, summary.response_max_s) == (2.0, 2.0)
    assert summary.replica_hours == pytest.approx(60 / 3600)
    assert summary.cpu_used_hours == pytest.approx(3.5 / 3600)
    assert (summary.minutes, summary.slo_minutes) == (1, 1)


def test_failures_count_at_their_time_outs_beside_those_served() -> None:
    """By hand: nine in a tenth of a second, and one that is never served."""
    request = {"cpuTime": "100ms", "ioTime": "0s", "timeout": "4s"}
    served = [f"{second}s" for second in range(1, 10)]
    result = run(arriving(*served, request=request))
    assert result.summary.all_response_p99_s == result.summary.response_p99_s == 0.1
    long = run(arriving(*served, "20s", request=request | {"cpuTime": "100ms"}))
    assert long.summary.all_response_p99_s == 0.1
    refused = run(arriving(*served, request=request, replicas={"initial": 0})).summary
    assert (refused.all_response_p50_s, refused.response_p50_s) == (4.0, 0.0)
    endless = run(arriving("1s", request={"timeout": "never"}, replicas={"initial": 0})).summary
    assert (endless.failed, endless.all_response_p50_s) == (1, None)


@pytest.mark.parametrize("percent", [1, 50, 89, 90, 91, 99, 100])
def test_percentiles_of_all_are_those_of_a_sorted_list(percent: float) -> None:
    served = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=np.int64) * SECOND
    for failed in (0, 1, 9):
        every = np.array([*served, *[10 * SECOND] * failed], dtype=np.int64)
        told = all_percentile_s(served, failed, 10 * SECOND, percent)
        assert told == percentile_s(every, percent)


def test_the_worse_run_looks_worse() -> None:
    """Replicas that start after half a minute serve fewer, and those that they serve faster."""
    step = {"pattern": "step", "step": {"rps": 20}}
    quick, slow = (
        run(
            spec_of(
                {
                    "traffic": step,
                    "replicas": {"launchDelay": delay},
                    "autoscalers": [{"object": CPU_HPA}],
                }
            )
        ).summary
        for delay in ("1s", "30s")
    )
    assert slow.failed > 2 * quick.failed
    assert slow.response_p95_s < quick.response_p95_s
    assert slow.all_response_p50_s == 10.0
    assert quick.all_response_p50_s is not None
    assert quick.all_response_p50_s < 10.0


def test_a_verdict_is_what_the_objective_says() -> None:
    assert run(arriving("1s")).verdict is Verdict.KEPT
    assert run(arriving("1s", replicas={"initial": 0})).verdict is Verdict.MISSED
    assert run(arriving("1s"), cancelled=lambda: True).verdict is Phase.CANCELLED
    nothing = {"pattern": "uniform", "uniform": {"numberOfRequests": 0}}
    assert run(spec(traffic=nothing)).verdict is Verdict.NOTHING


def test_a_minute_is_missed_if_too_few_are_fast_enough() -> None:
    good, slow, failed = (
        (0, SECOND, RequestOutcome.OK),
        (0, 2 * SECOND, RequestOutcome.OK),
        RequestOutcome.TIMEOUT,
    )
    late = (MINUTE, MINUTE + 1, failed)
    objective = Objective(response_time=TrafficDuration(SECOND), percentile=50)
    assert slo_minutes(columns(good, slow), objective) == (1, 0)
    assert slo_minutes(columns(good, slow, slow), objective) == (1, 1)
    assert slo_minutes(columns(good, late), objective) == (2, 1)
    assert slo_minutes(columns((0, SECOND, RequestOutcome.OPEN)), objective) == (0, 0)


def test_turns_are_changes_of_direction() -> None:
    ups = [decision(0, 1, 2), decision(1, 2, 4), decision(2, 4, 3), decision(3, 3, 5)]
    assert reversals(ups) == 2
    assert reversals(ups[:2]) == 0


def test_time_to_scale_is_until_so_many_are_active() -> None:
    counts = [ReplicaCount(at, 0, 0, active, 0) for at, active in ((0, 1), (15, 2), (21, 4))]
    assert scaling_times([decision(10, 1, 4)], counts) == [11]
    assert scaling_times([decision(10, 1, 4), decision(20, 4, 2)], counts) == []
    assert scaling_times([decision(10, 1, 2), decision(20, 2, 9)], counts) == [5]


def test_a_life_ends_with_the_run() -> None:
    replica = ReplicaRecord(name="replica-1", cpu=1, launched_at=10, terminated_at=50)
    assert [lifetime(replica, end) for end in (5, 30, 90)] == [0, 20, 40]


def test_8_6_requests_by_second_leave_out_empty_ones() -> None:
    result = run(arriving("1.2s", "1.9s", "5s"))
    assert [tuple(each) for each in requests_per_second(result)] == [(1, 2), (5, 1)]


def test_8_6_response_times_have_failed_and_open_ones() -> None:
    request = {"cpuTime": "2s", "ioTime": "0s", "timeout": "1s"}
    result = run(arriving("1s", "59.5s", request=request))
    assert [tuple(each) for each in response_times(result)] == [
        (SECOND, 2 * SECOND, SECOND),
        (59_500_000_000, 59_500_000_000, 0),
    ]


def test_8_6_tallies_in_fixed_mode() -> None:
    request = {"cpuTime": "2s", "ioTime": "0s", "timeout": "1s"}
    result = run(arriving("1s", request=request), [Scripted({0: 2})])
    lines = [
        (line.stock_name, line.occurs_at // SECOND, line.tally) for line in tally_lines(result)
    ]
    assert lines == [
        ("ReplicasActive", 0, 1),
        ("ReplicasDesired", 0, 1),
        ("RequestsProcessing", 1, 1),
        ("RequestsFailed", 2, 1),
        ("RequestsProcessing", 2, 0),
        ("ReplicasDesired", 15, 2),
        ("ReplicasActive", 20, 2),
        ("ReplicasActive", 60, 2),
        ("ReplicasDesired", 60, 2),
    ]
    assert {line.kind_stocked for line in tally_lines(result)} == {"Replica", "Request"}


def test_8_6_both_modes_name_the_same_lines() -> None:
    names = []
    for mode in ("fixed", "faithful"):
        traffic = {"pattern": "step", "step": {"rps": 1}}
        result = run(spec(mode=mode, traffic=traffic), [Scripted({0: 3})])
        names.append({line.stock_name for line in tally_lines(result)} - {"RequestsRouting"})
    assert names[0] == names[1] == {"ReplicasActive", "ReplicasDesired", "RequestsProcessing"}


def test_tallies_of_no_requests() -> None:
    assert list(request_tallies(columns())) == []


def test_8_6_utilization_is_the_highest_of_an_instant() -> None:
    result = run(arriving("1s", request={"cpuTime": "3s", "ioTime": "0s"}))
    first = cpu_utilizations(result)[0]
    assert (first.cpu_utilization, first.calculated_at) == (20.0, 15 * SECOND)


def test_a_saved_run_is_read_as_it_was(tmp_path: Path) -> None:
    for mode in ("fixed", "faithful"):
        result = run(spec(mode=mode), [Scripted({0: 2})])
        result.save(tmp_path / mode)
        read = TrafficResult.load(tmp_path / mode)
        assert read.header() == result.header()
        assert read.story() == result.story()
        assert read.requests.rows().tobytes() == result.requests.rows().tobytes()


def test_a_run_takes_21_bytes_a_request() -> None:
    assert run(spec()).requests.rows().dtype.itemsize == 21


@pytest.mark.parametrize("missing", ["summary.json", "requests.npy", "story.jsonl", "traffic.yaml"])
def test_a_directory_that_is_cut_short(tmp_path: Path, missing: str) -> None:
    run(spec()).save(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(TrafficError, match=f"not the directory of a complete run: .*{missing}"):
        TrafficResult.load(tmp_path)


@pytest.mark.parametrize("damaged", ["summary.json", "requests.npy", "story.jsonl"])
def test_a_directory_that_is_damaged(tmp_path: Path, damaged: str) -> None:
    run(spec()).save(tmp_path)
    (tmp_path / damaged).write_bytes(b"{")
    with pytest.raises(TrafficError, match="the run cannot be read"):
        TrafficResult.load(tmp_path)


def test_columns_grow_when_more_come_than_expected() -> None:
    made = RequestColumns(10)
    for start in range(0, 5000, 500):
        made.append(np.arange(start, start + 500, dtype=np.int64))
    made.close(10_000)
    assert made.arrived.tolist() == list(range(5000))
    assert set(made.completed.tolist()) == {10_000}


def test_the_highest_level_of_each_part() -> None:
    assert highest([(0, 1), (5, 3), (6, 2)], 10, 5) == [1, 1, 3, 2, 2]
    assert highest([(0, 1), (99, 7)], 100, 4) == [1, 1, 1, 7]
    assert highest([], 10, 2) == [0, 0]


def test_a_plot_fills_in_eighths_and_marks_what_is_wanted() -> None:
    assert plot([0, 1, 2, 4], 2, [4, 0, 0, 4]) == ["4 │─  █", "0 │ ▄██"]
    assert plot([1, 8], 1) == ["8 │▁█"]
    assert plot([0, 0], 2) == ["1 │  ", "0 │  "]
    assert axis(10, 1, "1m") == ["  └──────────", "   0s      1m"]


def test_a_terminal_shows_phase_plot_measures_and_reasons() -> None:
    result = run(spec(), [Scripted({0: 1, 30: 3})])
    shown = StringIO()
    print_result(result, Console(file=shown, width=90, no_color=True))
    text = shown.getvalue()
    for part in ("traffic  SLO missed", "Replicas (active; ─ desired)", "█", "by the script"):
        assert part in text
    for part in ("p99", "replica-hours", "SLO", "1 → 3", "30s", "decision to ready"):
        assert part in text


def test_a_terminal_shows_what_an_autoscaler_says_as_it_says_it() -> None:
    """Brackets are no styles, a cause may be anything that JSON has, and nobody steers it."""

    class Bracketed(Scripted):
        def horizontal_recommendation(
            self, request: HorizontalRecommendationRequest
        ) -> HorizontalRecommendationResponse:
            return HorizontalRecommendationResponse(
                3, "queue[web] is [/long] :fire:\x1b[31m", {"error": ["busy"]}
            )

    result = run(spec(), [Bracketed({0: 1})])
    shown = StringIO()
    print_result(result, Console(file=shown, width=90, no_color=True))
    assert "queue[web] is [/long] :fire:\\u001b[31m" in shown.getvalue()
    assert "first at 15s: ['busy']" in shown.getvalue()


def test_a_terminal_tells_of_metrics_that_failed() -> None:
    # Memory is modelled, but nobody requests any: utilization has no meaning.
    result = run(spec(replicas={"memory": {}}, autoscalers=[{"object": MEMORY_HPA}]))
    shown = StringIO()
    print_result(result, Console(file=shown, width=400, no_color=True))
    cause = "missing request for memory in container container of Pod replica-1"
    assert f"Metrics failed in 3 of 3 decisions, first at 15s: {cause}" in shown.getvalue()


def test_a_first_pass_without_metrics_is_no_warning() -> None:
    """A pod is measured some seconds after it became active: that is so after every start."""
    result = run(spec(autoscalers=[{"object": CPU_HPA}]))
    assert "error" in result.decisions[0].details
    shown = StringIO()
    print_result(result, Console(file=shown, width=400, force_terminal=True))
    assert "No metrics yet until 15s, as after every start" in shown.getvalue()
    assert "\x1b[33m" not in shown.getvalue(), "nothing is yellow"


def test_a_number_that_never_changes_has_its_reason_in_a_terminal() -> None:
    result = run(spec(autoscalers=[{"object": CPU_HPA}], replicas={"initial": 0}))
    shown = StringIO()
    print_result(result, Console(file=shown, width=200, no_color=True))
    assert "Decisions: all 3 left the number as it was" in shown.getvalue()
    assert "0, 3 times  scaling is disabled since the replica count of" in shown.getvalue()


def test_a_metric_that_is_not_modelled_is_refused() -> None:
    told = (
        r"spec.autoscalers\[0\]: spec.metrics\[0\].resource.name: 'memory' is not measured here, "
        "only cpu"
    )
    with pytest.raises(TrafficError, match=told):
        run(spec(autoscalers=[{"object": MEMORY_HPA}]))
    assert run(spec(mode="faithful", autoscalers=[{"object": MEMORY_HPA}])).ok


def test_a_terminal_shows_no_response_times_where_nobody_succeeded() -> None:
    shown = StringIO()
    print_result(run(spec(replicas={"initial": 0})), Console(file=shown, width=90, no_color=True))
    assert "of all, failures at their time-outs: p50 10.00 s" in (text := shown.getvalue())
    assert "none was served" in text
    assert "of those served: p" not in text
