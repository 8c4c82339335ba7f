"""The report of a traffic run: what its charts claim, and the page in a real browser."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from browser import Browser, chromium
from kubescene.clock import SECOND
from kubescene.reports.amounts import told_time
from kubescene.reports.html.charts import Chart, ChartLine, path, ticks
from kubescene.reports.html.traffic import write_traffic_report
from kubescene.reports.html.traffic.contents import (
    figures_of,
    percentiles,
    requested_and_used,
    response_times,
    sizes,
    utilization,
)
from kubescene.reports.html.traffic.page import traffic_page
from kubescene.reports.traffic import failures
from kubescene.traffic import TrafficResult, TrafficSpec, load_run, run
from kubescene.traffic.spec.loading import spec_of

SERVED = "95 % of those served"
PROGRAM = chromium()
in_a_browser = pytest.mark.skipif(
    PROGRAM is None, reason="no chromium on PATH: scripts/install-chromium installs one"
)
EXAMPLES = Path(__file__).parents[2] / "examples" / "traffic"
RUNS: dict[str, dict[str, Any]] = {
    "form": {"traffic": {"pattern": "ramp"}},
    "nothing": {"traffic": {"pattern": "uniform", "uniform": {"numberOfRequests": 0}}},
    "one": {"traffic": {"pattern": "replay", "replay": {"arrivals": ["3s"]}}},
    "short": {"duration": "1ns"},
    "refused": {"replicas": {"initial": 0}},
    "faithful": {"mode": "faithful", "duration": "30s"},
}


def result(name: str) -> TrafficResult:
    spec: TrafficSpec = spec_of(RUNS[name])
    return run(spec)


def drawn(points: list[tuple[float, float]], **line: object) -> str:
    chart = Chart("any", 10.0, ())
    return "".join(path(chart, ChartLine("any", points, "info", **line), 1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nothing", {"Failed": "no request ended", SERVED: "no request succeeded"}),
        ("refused", {"Failed": "100.00 %", SERVED: "no request succeeded"}),
        ("one", {"Failed": "0.00 %", SERVED: "median 0.400 s, 99 % 0.400 s"}),
    ],
)
def test_what_there_is_none_of_is_not_shown_as_0(name: str, shown: dict[str, str]) -> None:
    found = {each.name: each for each in figures_of(result(name))}
    assert {each: found[each].note for each in shown} == shown
    assert "decision to ready" not in found["Scaling"].note
    assert (found[SERVED].value == "–") == (name != "one")
    assert ("95 % of all" in found) == (name == "refused"), "only where somebody failed"


def test_the_share_that_failed_is_of_those_that_ended_as_in_a_terminal() -> None:
    asked = {"traffic": {"pattern": "step", "step": {"rps": 20}}, "request": {"cpuTime": "1s"}}
    told = run(spec_of(asked))
    ended = told.summary.requests - told.summary.open
    assert told.summary.open
    assert told.summary.failed
    [failed] = [each for each in figures_of(told) if each.name == "Failed"]
    assert failed.note == f"{100 * told.summary.failed / ended:.2f} %"
    assert failed.note in failures(told.summary)


def test_a_line_is_not_drawn_where_nothing_is_known() -> None:
    points = [(1.0, 0.0), (2.0, 0.5), (7.0, 1.0)]
    assert drawn(points).count("M") == 1
    assert drawn(points, near=1.5).count("M") == 2
    assert drawn(points, near=1.5).endswith("h0"), "one that has no neighbour is a dot"
    assert drawn(points, steps=True).count("M") == 1


def test_percentiles_of_those_served_have_gaps_and_those_of_all_the_time_out() -> None:
    """The form's ramp on one replica: after some seconds everybody times out, for a while."""
    shown = result("form")
    *every, served = percentiles(shown).lines
    times = [at for at, _ in served.points]
    assert max(later - before for before, later in pairwise(times)) > served.near
    assert drawn(list(served.points), near=served.near).count("M") > 1
    for line in every:
        assert drawn(list(line.points), near=line.near).count("M") == 1, "worst, and no gap"
        assert max(value for _, value in line.points) == 10.0
    gap = next(before for before, later in pairwise(times) if later - before > served.near)
    assert dict(every[0].points)[gap + 2.0] == 10.0


def test_the_replicas_of_an_axis_are_whole_and_times_of_a_run_look_alike() -> None:
    assert ticks(6) == [0, 2, 4, 6]
    assert ticks(10, whole=True) == [0, 5, 10]
    assert ticks(3, whole=True) == [0, 1, 2, 3]
    assert [told_time(each, 7200) for each in (0, 720, 3600)] == ["0:00:00", "0:12:00", "1:00:00"]


def test_charts_have_the_lines_that_people_measure_by() -> None:
    shown = run(EXAMPLES / "step.yaml")
    assert [each.value for each in utilization(shown).levels] == [50]
    assert [each.value for each in percentiles(shown).levels] == [1.0]
    page = traffic_page(shown)
    for part in ("HPA target: 50 %", "objective: 95 % within 1s", "decision for more"):
        assert part in page
    assert "for fewer" not in page, "a legend names what is there"


def test_a_badge_says_what_the_objective_says() -> None:
    for name, verdict, tone in (
        ("one", "SLO kept", "good"),
        ("refused", "SLO missed", "bad"),
        ("nothing", "no requests", "wait"),
    ):
        page = traffic_page(result(name))
        assert f'<span class="phase {tone}">{verdict}</span>' in page


def test_a_number_that_never_changes_has_its_reason_on_the_page() -> None:
    asked = load_run(EXAMPLES / "step.yaml", ["spec.replicas.initial=0"])
    page = traffic_page(run(asked))
    assert "11 decisions left the number as it was" in page
    assert "scaling is disabled since the replica count of the target is zero" in page


def test_a_vpa_that_evicts_nobody_is_seen() -> None:
    off = 'spec.autoscalers.1.object.spec.updatePolicy.updateMode="Off"'
    shown = run(load_run(EXAMPLES / "fighting.yaml", [off, "spec.duration=1h"]))
    assert shown.sizes
    assert not any(each.evicted for each in shown.sizes)
    [cpu] = sizes(shown)
    assert [each.name for each in cpu.lines] == ["of replicas, mean", "target", "lower bound"]
    targets = [each.resources[0].target / 1000 for each in shown.sizes]
    assert [value for _, value in cpu.lines[1].points] == targets
    assert f"cpu {shown.sizes[0].resources[0].target}m" in traffic_page(shown)


def test_cpu_that_was_used_is_what_the_measures_say() -> None:
    """A replica of a core that is busy for half of the time; what is read at ticks adds up."""
    asked = {"traffic": {"pattern": "constant", "spacing": "even", "constant": {"rps": 5}}}
    asked["request"] = {"cpuTime": "100ms", "ioTime": "0s"}
    shown = run(spec_of(asked | {"duration": "151s"}))
    assert {each.millicores for each in shown.cpu_used} == {500}
    assert [each.time // SECOND for each in shown.cpu_used] == list(range(15, 151, 15))
    [used] = [line for line in requested_and_used(shown).lines if line.name == "used"]
    assert {value for _, value in used.points} == {0.5}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM) as running:
        yield running


@in_a_browser
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", RUNS)
def test_a_browser_has_nothing_to_complain_about(
    browser: Browser, tmp_path: Path, name: str, dark: bool
) -> None:
    file = write_traffic_report(result(name), tmp_path / "report.html")
    page = browser.open(file.as_uri(), dark=dark)
    assert page.complaints == []
    assert page.requests == [file.as_uri()]
    assert page.evaluate("document.querySelectorAll('svg.chart').length") >= 2


def test_percentiles_are_of_the_times_that_requests_took() -> None:
    shown = result("one")
    taken = (shown.requests.completed - shown.requests.arrived).tolist()
    lines = percentiles(shown).lines
    assert [[value for _, value in each.points] for each in lines] == [[taken[0] / SECOND]] * 3


def test_a_point_of_a_request_is_as_high_as_it_took() -> None:
    shown = result("one")
    (taken,) = (shown.requests.completed - shown.requests.arrived).tolist()
    ((_, value),) = response_times(shown).lines[0].points
    assert value == pytest.approx(taken / SECOND, rel=1 / 100)
