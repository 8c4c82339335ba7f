"""The page of a scenario: played, held, forked, played step by step, looked at afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import kubescene
from browser import Browser, Page, chromium
from kubescene.apiserver.server import Server
from kubescene.runs.opened import OpenedRuns
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from ui.walking import open_, press_on, shows, type_into, until

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"


def shop() -> ScenarioBuilder:
    """Three steps: a node, two pods that fit, one that does not; then it is over."""
    scenario = ScenarioBuilder("shop").create(make_node("n").cpu("4"))
    scenario.step(2).create(make_pod("a").cpu("1"), make_pod("b").cpu("1"))
    scenario.step(3).create(make_pod("large").cpu("3"))
    scenario.expect("everybody has a place", "pods.all(p, p.node != '')")
    return scenario.step(4).done()


def create(page: Page, scenario: ScenarioBuilder) -> None:
    body = json.dumps(scenario.build())
    page.evaluate(
        f"fetch('{SCENARIOS}', {{method: 'POST', headers: {{'content-type': 'application/json'}},"
        f" body: {json.dumps(body)}}}).then((r) => r.text())"
    )


def ended(page: Page, phase: str = "Succeeded") -> None:
    until(page, f"document.querySelector('#phase')?.textContent === '{phase}'")


def facts(page: Page, run: str) -> list[dict[str, Any]]:
    text = page.evaluate(
        f"fetch('/simulator/v1/runs/{run}/files/timeline.jsonl').then((r) => r.text())"
    )
    return [orjson.loads(line) for line in text.splitlines()[1:]]


@pytest.fixture
def played(browser: Browser, server: Server) -> Iterator[Page]:
    page = open_(browser, server, "/ui")
    create(page, shop())
    page = open_(browser, server, "/ui/scenario/shop")
    ended(page)
    until(page, "document.querySelector('#when').textContent.startsWith('4.')")
    yield page
    # The browser itself notes answers of 4xx in its log; nothing else is there.
    assert all("status of 4" in each for each in page.complaints)


def test_a_fork_plays_the_same_up_to_its_step_and_then_something_else(played: Page) -> None:
    shows(played, "fails", "#expectations")
    type_into(played, "#slider", "1")
    shows(played, "2.", "#when")
    press_on(played, "#fork-here")
    text = played.evaluate("document.querySelector('#fork-text').value")
    assert "large" in text
    assert "name: a\n" not in text
    type_into(played, "#fork-text", text.replace('cpu: "3"', 'cpu: "2"'))
    press_on(played, "#fork-all")
    until(played, "location.pathname === '/ui/scenario/shop-2'")
    ended(played)
    shows(played, "holds", "#expectations")
    before, after = facts(played, "scenario-1"), facts(played, "scenario-2")
    early = [each for each in before if each["step"][0] <= 2]
    assert [each for each in after if each["step"][0] <= 2] == early
    assert before != after


def test_what_is_wrong_with_a_fork_is_said_with_its_line(played: Page) -> None:
    press_on(played, "#fork-here")
    type_into(played, "#fork-text", "- id: x\n  step: 4\n  createOperation: [\n")
    press_on(played, "#fork-all")
    shows(played, "line 4", "#fork-said")
    type_into(played, "#fork-text", "- id: x\n  step: 4\n  createOperatoin: {}\n")
    press_on(played, "#fork-all")
    ended(played, "Failed")
    shows(played, "did you mean createOperation?", "#message")


def test_a_scenario_is_played_step_by_step_and_back(played: Page) -> None:
    """It waits after each step; expectations are looked at as often; the end frees the world."""
    press_on(played, "#by-steps")
    until(played, "location.pathname === '/ui/scenario/shop-2'")
    ended(played, "Paused")
    shows(played, "1.", "#when")
    press_on(played, "#next-step")
    until(played, "document.querySelector('#when').textContent.startsWith('2.')")
    shows(played, "2 pods", "#tile-told")
    shows(played, "everybody has a place", "#expectations .good")
    press_on(played, "#back")
    until(played, "document.querySelector('#when')?.textContent.startsWith('1.')")
    ended(played, "Paused")
    press_on(played, "#go-on")
    ended(played)
    shows(played, "it held before", "#expectations .bad")


def test_more_is_written_for_a_scenario_that_waits(browser: Browser, server: Server) -> None:
    page = open_(browser, server, "/ui")
    create(page, ScenarioBuilder("walk").create(make_node("n").cpu("4")))
    page = open_(browser, server, "/ui/scenario/walk")
    ended(page, "Paused")
    press_on(page, "#add")
    press_on(page, "#add-all")
    shows(page, "1 pod", "#tile-told")
    until(page, "document.querySelector('#when').textContent.startsWith('2.')")
    press_on(page, "#end")
    ended(page)
    assert page.complaints == []


def test_a_long_scenario_is_held_and_let_go(browser: Browser, server: Server) -> None:
    """The same bytes as if nobody had: what is held does not know it."""
    long = ScenarioBuilder("long").create(make_node("n").cpu("64").pods("5000"))
    for step in range(2, 400):
        long.step(step).create(make_pod(f"p-{step}").cpu("10m"))
    page = open_(browser, server, "/ui")
    create(page, long.done())
    held = """(async () => {
        for (;;) {
            const answer = await fetch('/simulator/v1/scenarios/long/hold', {method: 'POST'});
            if (answer.ok) break;
        }
        const page = '/simulator/v1/scenarios/long';
        const facts = async () => (await (await fetch(`${page}/timeline`)).text()).length;
        const before = await facts();
        for (let n = 0; n < 100; n++) await fetch(`${page}/progress`);  // commands of others
        return [before, await facts()];
    })()"""
    before, after = page.evaluate(held)
    assert after == before > 0
    page = open_(browser, server, "/ui/scenario/long")
    ended(page, "held")
    press_on(page, "#hold")
    ended(page)
    own = kubescene.run(long)
    assert len(facts(page, "scenario-1")) == len(own.log)


def test_the_charts_and_the_report_of_a_run_are_one_click_away(
    browser: Browser, server: Server
) -> None:
    scenario = ScenarioBuilder("hours").create(make_node("n").cpu("4"))
    scenario.step(2).create(make_pod("a").cpu("1")).advance("1h").step(3)
    page = open_(browser, server, "/ui")
    create(page, scenario.done())
    page = open_(browser, server, "/ui/scenario/hours?view=time&axis=time")
    ended(page)
    until(page, "document.querySelectorAll('#over-time figure.chart').length >= 1")
    until(page, "document.querySelector('#when').textContent.startsWith('3.')")
    chart = "document.querySelector('#over-time .plotting')"
    x, y = page.middle("#over-time .plotting")
    page.click(x, y)
    until(page, "document.querySelector('#when').textContent.includes('+0:00:0')")
    assert page.evaluate(f"{chart}.querySelector('.cursor').getAttribute('visibility')")
    report = page.evaluate(
        "fetch(document.querySelector('#report').href).then(async (r) => "
        "[r.status, r.headers.get('content-security-policy'), await r.text()])"
    )
    assert report[:2] == [200, "sandbox allow-scripts; frame-ancestors 'none'"]
    assert "hours: " in report[2]
    assert page.complaints == []


def test_finished_runs_are_shown_by_their_directories_and_forked(
    browser: Browser, tmp_path: Path
) -> None:
    """What `kubescene ui RUN...` serves: the slider, a pod, both beside each other, a fork."""
    wide = ScenarioBuilder("shop").create(make_node("n").cpu("8"), make_pod("large").cpu("5"))
    kubescene.run(shop(), out=tmp_path / "one")
    kubescene.run(wide.done(), out=tmp_path / "two")
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    opened = OpenedRuns([tmp_path / "one", tmp_path / "two"])
    assert opened.page == "/ui/compare?a=opened-1&b=opened-2"
    with Server(port=0, opened=opened) as server:
        page = open_(browser, server, opened.page)
        shows(page, "default/large")
        page = open_(browser, server, "/ui/run/opened-1")
        ended(page)
        shows(page, "1 pod waits", "#waiting")
        press_on(page, "#waiting .reason")
        press_on(page, "#side td a")
        shows(page, "Insufficient cpu", "#why")
        page = open_(browser, server, "/ui/run/opened-1")
        ended(page)
        press_on(page, "#again")
        until(page, "location.pathname === '/ui/scenario/shop-2'")
        ended(page)
        assert page.complaints == []
    assert {path: path.read_bytes() for path in before} == before
