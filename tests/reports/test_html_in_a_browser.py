"""The report in a real browser: it draws, answers to mouse and keys, and fetches nothing."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubescene
from browser import Browser, Page, chromium
from kubescene.reports.html import write_report
from kubescene.reports.html.comparison import comparison_page
from kubescene.results.comparison import compare
from kubescene.results.opening import open_run
from kubescene.results.tables import tables
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from reported_runs import example, failing, hostile, many_nodes, nothing

PROGRAM = chromium()
pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
RUNS = (
    "first-scenario",
    "preemption",
    "time-passes",
    "devices",
    "spike",
    "many",
    "failing",
    "hostile",
    "nothing",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM) as running:
        yield running


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The directories of some runs, each with its report."""
    base = tmp_path_factory.mktemp("runs")
    made = {name: example(name, base / name) for name in RUNS[:5]}
    made["many"] = many_nodes(600, 7, base / "many")
    made["failing"] = failing(base / "failing")
    made["hostile"] = hostile(base / "hostile")
    made["nothing"] = nothing(base / "nothing")
    for path in made.values():
        write_report(path, path / "report.html")
    return made


def opened(browser: Browser, run: Path, *, dark: bool = False, width: int = 1280) -> Page:
    return browser.open((run / "report.html").as_uri(), dark=dark, width=width)


@THEMES
@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_fetched_and_nothing_goes_wrong(
    browser: Browser, runs: dict[str, Path], name: str, dark: bool
) -> None:
    page = opened(browser, runs[name], dark=dark)
    assert page.requests == [(runs[name] / "report.html").as_uri()]
    assert page.complaints == []


def test_scripts_in_names_do_not_run(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["hostile"])
    assert page.evaluate("document.title") == "first-scenario: Succeeded · Kubescene"
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    for place in range(page.evaluate("document.querySelectorAll('.list button').length")):
        page.evaluate(f"document.querySelectorAll('.list button')[{place}].click()")
    assert page.evaluate("document.title") == "first-scenario: Succeeded · Kubescene"
    assert "</script><script>" in page.evaluate("document.body.innerText")
    assert page.complaints == []


def test_the_page_may_not_fetch_even_if_a_script_wanted_to(
    browser: Browser, runs: dict[str, Path]
) -> None:
    page = opened(browser, runs["devices"])
    tried = "fetch('https://example.invalid/').then(() => 'fetched', () => 'refused')"
    assert page.evaluate(tried) == "refused"
    assert any("Content Security Policy" in each for each in page.complaints)
    with pytest.raises(AssertionError, match="TrustedHTML"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")


@THEMES
def test_charts_over_time_have_one_cursor(
    browser: Browser, runs: dict[str, Path], dark: bool
) -> None:
    page = opened(browser, runs["spike"], dark=dark)
    charts = page.evaluate("document.querySelectorAll('#over-time figure').length")
    assert charts == 7
    x, y = page.middle("#over-time figure:nth-child(2) .plotting")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    seen = page.evaluate(
        "[...document.querySelectorAll('#over-time .cursor')].map((line) =>"
        " [line.getAttribute('visibility'), Math.round(line.getBoundingClientRect().x)])"
    )
    assert [each[0] for each in seen] == ["visible"] * charts
    assert len({each[1] for each in seen}) == 1
    assert seen[0][1] == pytest.approx(x, abs=2)
    every = "[...document.querySelectorAll('#over-time .reads')]"
    reads = page.evaluate(f"{every}.map((each) => each.innerText)")
    assert len({each.split()[0] for each in reads}) == 1
    # The 32nd minute: the load is gone, and the pods are still there.
    assert "ready 29" in reads[4]
    page.evaluate("document.querySelector('.over-decisions tbody tr').focus()")
    assert page.text("#over-time .reads").startswith("7m20s")
    assert page.complaints == []


def luminance(page: Page) -> float:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return float(sum(map(int, colour.strip("rgb()").split(","))) / 3)


@THEMES
def test_the_page_is_as_light_as_the_system_wants(
    browser: Browser, runs: dict[str, Path], dark: bool
) -> None:
    assert (luminance(opened(browser, runs["preemption"], dark=dark)) < 100) is dark


def test_the_switch_changes_the_theme_and_is_remembered(
    browser: Browser, runs: dict[str, Path]
) -> None:
    page = opened(browser, runs["preemption"])
    seen = []
    for _ in range(4):
        page.click_on("#theme")
        seen.append((page.text("#theme"), luminance(page) < 100))
    assert seen == [
        ("Theme: light", False),
        ("Theme: dark", True),
        ("Theme: projector", False),
        ("Theme: auto", False),
    ]
    page.click_on("#theme")
    page.click_on("#theme")
    again = opened(browser, runs["preemption"])
    assert luminance(again) < 100
    again.click_on("#theme")
    again.click_on("#theme")
    assert again.text("#theme") == "Theme: auto"


def cell(page: Page, column: int, row: int) -> tuple[float, float]:
    """Where a cell of the heat map is in the window."""
    page.middle("#heat")
    found = page.evaluate(
        "(() => { const e = document.querySelector('#heat'), d = e.dataset,"
        "b = e.getBoundingClientRect();"
        f"return [b.x + Number(d.gutter) + ({column} + 0.5) * d.columnWidth,"
        f"b.y + Number(d.top) + ({row} + 0.5) * d.rowHeight]; }})()"
    )
    return float(found[0]), float(found[1])


def test_a_cell_of_the_heat_map_shows_its_value(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["first-scenario"])
    page.click(*cell(page, 3, 2))
    (row,) = [
        each
        for each in tables(runs["first-scenario"])["utilization"]
        if (each.step, each.node) == (4, "node-1")
    ]
    share = round(200 * row.cpu_utilization) / 2
    told = page.text("#readout")
    assert "Step 4" in told
    assert "node-1" in told
    assert f"cpu {share:g} %" in told
    assert f"cpu {share:g} %" in page.text("#tip")


def test_a_row_of_many_nodes_tells_of_each_of_them(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["many"])
    assert "a row is 3 nodes, their mean" in page.text(".controls")
    page.click(*cell(page, 6, 0))
    assert "node-0 and 2 more" in page.text("#readout"), "the fullest first: alike ones together"
    choose(page, "#by-order", "name")
    page.click(*cell(page, 6, 0))
    told = page.text("#readout")
    assert "node-0 … node-2" in told
    assert "on average of 3 nodes" in told
    shares = {
        each.node: each.cpu_utilization
        for each in tables(runs["many"])["utilization"]
        if each.step == 7
    }
    for node in ("node-0", "node-1", "node-2"):
        row = f".bars div[title='{node}']"
        assert page.text(row).split("\n")[-1] == f"{round(200 * shares[node]) / 2:g} %"


def test_what_is_between_two_ends_of_steps_and_what_keeps_pods_away_is_told(
    browser: Browser, tmp_path: Path
) -> None:
    scenario = ScenarioBuilder("between").settings(kubelet={"terminateDelay": "30s"})
    scenario.create(make_node("n").cpu("4").memory("8Gi")).create(make_pod("a").cpu("3"))
    scenario.step(2).delete("v1", "Pod", "a")
    scenario.patch("v1", "Node", "n", {"spec": {"unschedulable": True}}).advance("5m").done()
    kubescene.run(scenario, out=tmp_path)
    write_report(tmp_path, tmp_path / "report.html")
    page = opened(browser, tmp_path)
    page.click(*cell(page, 1, 0))
    assert "cordoned; cpu 75 % at most, 0 % at its end" in page.text("#readout")
    assert "cordoned or tainted" in page.text(".controls")
    choose(page, "#by-of-a-step", "end")
    assert "cordoned; cpu 0 %" in page.text("#readout")


def test_nodes_are_counted_by_how_full_they_are(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["many"])
    choose(page, "#by-as", "crowds")
    page.evaluate("document.querySelector('#heat').focus()")
    counts = []
    for _ in range(12):
        page.press("ArrowDown")
        counts.append(int(page.text("#readout > div:last-child p").split(" ")[0]))
    full = [each.cpu_utilization for each in tables(runs["many"])["utilization"] if each.step == 7]
    assert sum(counts) == 600
    assert counts[8] == sum(0.2 < share <= 0.3 for share in full)
    assert counts[5] == sum(0.5 < share <= 0.6 for share in full)


def choose(page: Page, selector: str, value: str) -> None:
    page.evaluate(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
        f"e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})()"
    )


def test_the_heat_map_is_painted(browser: Browser, runs: dict[str, Path]) -> None:
    """A full node is bright, an empty one dark."""
    page = opened(browser, runs["preemption"])

    def brightness(column: int) -> int:
        x, y = cell(page, column, 0)
        found = page.evaluate(
            "(() => { const e = document.querySelector('#heat'), b = e.getBoundingClientRect();"
            f"const p = e.getContext('2d').getImageData({x} - b.x, {y} - b.y, 1, 1).data;"
            "return p[0] + p[1] + p[2]; })()"
        )
        return int(found)

    assert brightness(0) < 200
    assert brightness(2) > 450


def test_a_click_on_a_decision_shows_its_explanation(
    browser: Browser, runs: dict[str, Path]
) -> None:
    page = opened(browser, runs["first-scenario"])
    page.evaluate("document.querySelector('.list').scrollTop = 0")
    found = "[...document.querySelectorAll('.list button')].findIndex("
    found += "(e) => e.innerText.includes('default/database'))"
    place = page.evaluate(found)
    page.click_on(f".list button:nth-child({place + 1})")
    (attempt,) = open_run(runs["first-scenario"]).explain("default/database")
    told = page.text("#detail")
    assert f"default/database → {attempt.node}" in told
    best, second = attempt.verdicts[:2]
    assert f"won with {best.total}" in told
    assert second.node in told
    for plugin in attempt.plugins:
        assert plugin in told.replace("\u200b", "")
    for verdict in attempt.verdicts:
        if verdict.rejected_by:
            assert f"{verdict.rejected_by}: {verdict.reasons}" in told


def test_why_a_pod_waits_leads_to_its_explanation(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["first-scenario"])
    page.evaluate("document.querySelectorAll('.list button')[4].click()")
    page.click_on(".why")
    assert page.text("#detail h3") == "default/report-2 waits"


def test_a_preemption_is_explained(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["preemption"])
    page.evaluate(
        "[...document.querySelectorAll('.chips button')]"
        ".find((e) => e.innerText.startsWith('preempts')).click()"
    )
    page.click_on(".list button")
    told = page.text("#detail")
    assert "default/urgent waits until node-0 has made room" in told
    assert "node-0 makes room by losing" in told
    assert "chosen" in told


def test_decisions_are_found_by_name(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["first-scenario"])
    page.click_on(".find input")
    for letter in "search":
        page.press(letter)
    names = page.evaluate("[...document.querySelectorAll('.list .pod')].map((e) => e.innerText)")
    assert len(names) == 2
    assert all(name.startswith("default/search") for name in names)


def test_everything_can_be_reached_by_keys(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["first-scenario"])
    reached = set()
    for _ in range(60):
        page.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "heat", "by-show", "why"} <= reached
    page.evaluate("document.querySelector('#heat').focus()")
    for key in ("Home", "ArrowRight", "ArrowDown"):
        page.press(key)
    assert "Step 2" in page.text("#readout")
    assert "batch-0" in page.text("#readout")
    page.evaluate("document.querySelector('.list button').focus()")
    page.press("ArrowDown")
    assert page.text("#detail h3").startswith("default/search")
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"


@pytest.mark.parametrize("width", [360, 768, 1920])
@pytest.mark.parametrize("name", ["first-scenario", "many", "hostile"])
def test_no_page_is_wider_than_its_window(
    browser: Browser, runs: dict[str, Path], name: str, width: int
) -> None:
    page = opened(browser, runs[name], width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 800, 400])
@pytest.mark.parametrize("row", [-1, 1], ids=["all nodes", "a node"])
def test_nothing_beside_the_bars_of_a_step_is_cut(
    browser: Browser, runs: dict[str, Path], width: int, row: int
) -> None:
    page = opened(browser, runs["first-scenario"], width=width)
    page.click(*cell(page, 2, row))
    assert ("All nodes" if row < 0 else "node-") in page.text("#readout")
    cut = (
        "[...document.querySelectorAll('.bars span')].filter((e) => e.scrollWidth > e.clientWidth)"
    )
    assert page.evaluate(f"{cut}.map((e) => e.textContent)") == []


def test_figures_and_nodes_fit_into_a_narrow_window(
    browser: Browser, runs: dict[str, Path]
) -> None:
    page = opened(browser, runs["first-scenario"], width=800)
    too_wide = "[...document.querySelectorAll('.figure, #nodes .wide')]"
    assert page.evaluate(f"{too_wide}.filter((e) => e.scrollWidth > e.clientWidth).length") == 0
    heights = "new Set([...document.querySelectorAll('.figure .value')].map((e) => e.offsetHeight))"
    assert page.evaluate(f"{heights}.size") == 1


def test_the_page_can_be_printed(browser: Browser, runs: dict[str, Path]) -> None:
    page = opened(browser, runs["first-scenario"], dark=True)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert luminance(page) == 255
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert len(page.call("Page.printToPDF")["data"]) > 10_000


def test_the_browser_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PROGRAM is not None
    # Not tmp_path: sockets have short names only.
    with tempfile.TemporaryDirectory(prefix="k-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr("tempfile.tempdir", None)
        with Browser(PROGRAM) as running:
            running.open("about:blank")
            assert os.listdir(folder)
        assert os.listdir(folder) == []


def test_the_theme_of_two_runs_beside_each_other_is_switched(
    browser: Browser, runs: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "comparison.html"
    sides = [open_run(runs[name]) for name in ("first-scenario", "preemption")]
    file.write_text(comparison_page(compare(*sides)), "utf-8")
    page = browser.open(file.as_uri())
    assert page.text("#theme") == "Theme: auto"
    page.click_on("#theme")
    assert page.text("#theme") == "Theme: light"
    assert page.complaints == []
