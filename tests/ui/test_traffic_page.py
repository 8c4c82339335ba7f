"""The traffic page: charts on one cursor, a run under another, decisions, and what can be taken."""

from pathlib import Path

import pytest

from browser import Browser, Page, chromium
from kubescene.api.text.yaml_text import read_yaml
from kubescene.apiserver.server import Server
from kubescene.cli.convert.sources import converted
from kubescene.reports.html.traffic.over_time import traffic_over_time
from kubescene.traffic import parse_run, run
from kubescene.traffic.skenario.series import tally_lines
from ui.walking import open_, press_on, shows, type_into, until

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]


def test_what_autoscalers_decided_stands_below_the_charts_with_one_cursor_over_all(
    browser: Browser, server: Server
) -> None:
    page = open_(browser, server, "/ui/traffic")
    until(page, "document.querySelectorAll('.over-charts figure.chart').length >= 6")
    shows(page, "1 to 2", ".over-decisions")
    page.evaluate("document.querySelectorAll('.plotting')[3].focus()")
    for _ in range(30):
        page.press("ArrowRight")
    shown = "[...document.querySelectorAll('.cursor')].map((e) => e.getAttribute('x1'))"
    places = page.evaluate(shown)
    assert len(places) >= 6
    assert len(set(places)) == 1
    assert places[0] is not None
    shows(page, "1 to 2", ".over-decisions .here")
    assert page.complaints == []


def test_who_has_begun_with_a_chart_keeps_it_while_the_history_comes(
    browser: Browser, server: Server
) -> None:
    page = open_(browser, server, "/ui")
    shows(page, "traffic")
    page.evaluate(
        "(() => { const ask = window.fetch; window.fetch = (what, ...how) =>"
        " String(what).includes('/runs?')"
        " ? new Promise((go) => { window.release = go; }).then(() => ask(what, ...how))"
        " : ask(what, ...how); })()"
    )
    press_on(page, "a[href='/ui/traffic']")
    until(page, "window.release && document.querySelector('.plotting svg')")
    page.evaluate("document.querySelector('.plotting').focus()")
    page.evaluate("window.release()")
    until(page, "document.querySelector('#history .more')")
    until(page, "document.title.startsWith('Traffic')")
    assert page.evaluate("document.activeElement.className") == "plotting"
    assert page.complaints == []


def test_a_run_of_the_history_is_laid_under_another_and_repeated(
    browser: Browser, server: Server
) -> None:
    page = open_(browser, server, "/ui/traffic")
    shows(page, "1,700", "#figures")
    press_on(page, "#executeSimulation")
    until(page, "document.querySelector('[data-beside]')")
    told = page.evaluate("document.querySelector('#history').textContent")
    assert "missed in 2 of 3 min" in told
    assert "Succeeded" not in told
    type_into(page, "#stepConfigRPS", "4")
    shows(page, "680", "#figures")
    press_on(page, "[data-beside='1']")
    shows(page, "before: 1,700", "#figures")
    assert page.evaluate("document.querySelectorAll('path.ghost').length") > 5
    link = page.evaluate("location.pathname + location.search")
    assert "vs=1" in link
    page = open_(browser, server, link)
    shows(page, "680", "#figures")
    shows(page, "before: 1,700", "#figures")
    until(page, "document.querySelector('[data-beside]')")
    press_on(page, "#history .tight .key:last-child")
    until(page, "document.querySelectorAll('[data-beside]').length === 2")
    assert page.complaints == []


def copied(page: Page, what: str) -> str:
    """What the page would put into the clipboard, which this browser does not let it reach."""
    page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    page.evaluate(
        "(() => { document.querySelector('#copied')?.remove();"
        f"const e = document.querySelector('#copy'); e.value = '{what}';"
        "e.dispatchEvent(new Event('change')); })()"
    )
    until(page, "document.querySelector('#copied')")
    return str(page.evaluate("document.querySelector('#copied').value"))


def test_what_is_copied_as_a_scenario_is_what_convert_makes_of_the_run(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    page = open_(browser, server, "/ui/traffic?stepConfigRPS=7")
    shows(page, "1,190", "#figures")
    file = tmp_path / "run.yaml"
    file.write_text(copied(page, "TrafficRun"))
    text = copied(page, "Scenario")
    [document] = read_yaml(text)
    assert document.value == converted([file], name="x", placed=False)
    assert "# spec.statInterval is left out: pods of a scenario are scraped" in text
    type_into(page, "#stepConfigRPS", "5")
    shows(page, "850", "#figures")
    assert "rps: 5" in copied(page, "Scenario")
    assert page.complaints == []


def test_what_no_scenario_can_say_is_named(browser: Browser, server: Server) -> None:
    page = open_(browser, server, "/ui/traffic?pattern=golang_rand_uniform")
    shows(page, "failed", "#figures")
    page.evaluate(
        "(() => { const e = document.querySelector('#copy'); e.value = 'Scenario';"
        "e.dispatchEvent(new Event('change')); })()"
    )
    shows(page, "cannot be said in a scenario", "#said")
    assert all("status of 4" in each for each in page.complaints)


def test_what_is_copied_as_a_traffic_run_gives_the_same_again(
    browser: Browser, server: Server
) -> None:
    """The YAML of the page is read by the program, and every chart is the same."""
    page = open_(browser, server, "/ui/traffic?stepConfigRPS=7")
    shows(page, "1,190", "#figures")
    text = copied(page, "TrafficRun")
    result = run(parse_run(text, "page"))
    assert result.summary.requests == 1190
    own = traffic_over_time(result)
    asked = (
        "fetch('/run?view=charts&dryRun=All', {method: 'POST', headers: {'content-type':"
        " 'application/json'}, body: JSON.stringify({step_config: {rps: 7, step_after: 10e9},"
        " traffic_pattern: 'step'})}).then((r) => r.json()).then((d) => d.summary.requests)"
    )
    assert page.evaluate(asked) == 1190
    desired = next(each for each in own.over_time.charts[0].series if each.name == "desired")
    levels = [
        (at / 1e9, tally) for at, name, _, tally in tally_lines(result) if name == "ReplicasDesired"
    ]
    assert dict(desired.points).items() <= dict(levels).items()
    assert len(desired.points) > 1
