"""The report of a traffic run: what its charts claim, and the page in a real browser."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from browser import Browser, chromium
from kubescene.clock import SECOND
from kubescene.reports.html.traffic import write_traffic_report
from kubescene.reports.html.traffic.charts import Chart, Line, path
from kubescene.reports.html.traffic.contents import figures_of, percentiles
from kubescene.reports.traffic import failures
from kubescene.traffic import TrafficResult, TrafficSpec, run
from kubescene.traffic.spec.loading import spec_of

PROGRAM = chromium()
in_a_browser = pytest.mark.skipif(
    PROGRAM is None, reason="no chromium on PATH: scripts/install-chromium installs one"
)
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
    return "".join(path(chart, Line("any", points, "info", **line), 1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nothing", {"Failed": "no request ended", "95 %": "no request succeeded"}),
        ("refused", {"Failed": "100.00 %", "Median": "no request succeeded"}),
        ("one", {"Failed": "0.00 %", "Median": "response time"}),
    ],
)
def test_what_there_is_none_of_is_not_shown_as_0(name: str, shown: dict[str, str]) -> None:
    found = {each.name: each for each in figures_of(result(name))}
    assert {each: found[each].note for each in shown} == shown
    assert "Time to scale" not in found
    assert (found["Median"].value == "–") == (name != "one")


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


def test_percentiles_have_gaps_where_no_request_succeeded() -> None:
    """The form's ramp on one replica: after some seconds everybody times out, for a while."""
    for line in percentiles(result("form")).lines:
        times = [at for at, _ in line.points]
        assert max(later - before for before, later in pairwise(times)) > line.near
        assert drawn(list(line.points), near=line.near).count("M") > 1


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
