"""The page of many runs, over the tables that `matrix` and `tune` write."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import Browser, Page, chromium
from kubescene.apiserver.server import Server
from kubescene.cli.tune.playing import json_of
from kubescene.errors import ConfigurationError
from kubescene.experiments import matrix
from kubescene.experiments.goals import Goal, parse_condition
from kubescene.experiments.ranges import parse_ranges
from kubescene.experiments.results import MatrixResult
from kubescene.experiments.tuning import TuningResult, tune
from kubescene.runs.opened import OpenedRuns
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.testing import make_node, make_pod
from matrix_plugins import Dice
from ui.walking import HOSTILE, open_, shows, tab_to, until

pytestmark = [
    pytest.mark.skipif(
        chromium() is None, reason="no chromium on PATH: scripts/install-chromium installs one"
    ),
    pytest.mark.xdist_group("browser"),
]
COUNT = "spec.operations.1.createOperation.count"
CELLS = (
    "[...document.querySelectorAll('#rows tbody tr')]"
    ".map((r) => [...r.cells].map((c) => c.innerText))"
)
HEADS = "[...document.querySelectorAll('#rows thead th')].map((c) => c.innerText)"


def packing() -> ScenarioBuilder:
    """Pods of half a core on three nodes of 4."""
    scenario = ScenarioBuilder("packing").create(make_node("n-$(INDEX)").cpu("4"), count=3)
    return scenario.create(make_pod("p-$(INDEX)").cpu("500m"), count=6).done()


@pytest.fixture(scope="module")
def combined() -> MatrixResult:
    schedulers = {"default": None, "dice": with_plugin(SchedulerOptions(), Dice)}
    return matrix(packing(), schedulers, seeds=4, settings={COUNT: [6, 20]}, jobs=1)


@pytest.fixture(scope="module")
def searched() -> TuningResult:
    goal = Goal("pods_bound", (parse_condition("pods_pending == 0"),), most=True)
    return tune(packing(), parse_ranges([f"{COUNT}=20..28/2"]), goal, jobs=1)


@pytest.fixture
def sweeps(
    tmp_path: Path, combined: MatrixResult, searched: TuningResult
) -> Iterator[tuple[Server, Path]]:
    """A server that was given both; the tables are as the commands write them."""
    for name, file, text in (
        ("many", "matrix.json", combined.json()),
        ("best", "tune.json", json_of(searched).encode()),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_bytes(text)
    opened = OpenedRuns([tmp_path / "many", tmp_path / "best"])
    assert opened.page == "/ui/sweeps/sweep-1"
    with Server(port=0, opened=opened) as server:
        yield server, tmp_path


def numbers(cell: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?[0-9.]+(?:e[-+]?[0-9]+)?", cell)]


def choose(page: Page, selector: str, value: str) -> None:
    page.evaluate(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
        f"e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})()"
    )


def test_a_matrix_is_a_table_with_intervals_and_small_pictures(
    browser: Browser, sweeps: tuple[Server, Path], combined: MatrixResult
) -> None:
    """Every number is the one that the result has, whichever measures are chosen."""
    page = open_(browser, sweeps[0], "/ui/sweeps/sweep-1?measures=imbalance_cpu,pods_bound")
    shows(page, "4 combinations", "#story")
    heads = page.evaluate(HEADS)
    assert heads[:2] == ["configuration", "settings"]
    for cells, row in zip(page.evaluate(CELLS), combined.rows, strict=True):
        assert cells[:2] == [row.configuration, row.settings.rpartition(".")[2]]
        for head, cell in list(zip(heads, cells, strict=True))[2:4]:
            found = row.measures[head]
            mean, half = numbers(cell)
            assert mean == pytest.approx(found.mean, rel=1e-5)
            assert half == pytest.approx(found.half_width, rel=1e-2)
    assert page.evaluate("document.querySelectorAll('#multiples svg').length") == 2
    uneven = [row for row in combined.rows if row.measures["imbalance_cpu"].half_width]
    assert uneven
    lines = page.evaluate("document.querySelectorAll('#multiples path.s-info').length")
    assert lines == len(uneven)
    tab_to(page, "th button[name='imbalance_cpu']")
    page.press("Enter")
    until(page, "document.querySelector('#rows [aria-sort=ascending]')")
    means = [numbers(cells[heads.index("imbalance_cpu")])[0] for cells in page.evaluate(CELLS)]
    assert means == sorted(means)
    assert "sort=imbalance_cpu" in page.evaluate("location.search")
    assert page.complaints == []


def test_a_search_shows_its_best_and_its_frontier(
    browser: Browser, sweeps: tuple[Server, Path], searched: TuningResult
) -> None:
    page = open_(browser, sweeps[0], "/ui/sweeps/sweep-2")
    shows(page, "count=24", "#story")
    rows = page.evaluate(CELLS)
    assert searched.best is not None
    told = [each[-1] for each in rows]
    frontier = searched.frontier
    expected = [
        "best" if each is searched.best else "frontier" if any(each is o for o in frontier) else ""
        for each in searched.trials
    ]
    assert told == expected
    tones = "[...document.querySelectorAll('#frontier circle')].map((c) => c.classList[1])"
    kept = ["down" if each.is_feasible else "up" for each in searched.trials]
    assert page.evaluate(tones) == kept
    assert page.evaluate("document.querySelectorAll('#frontier .level').length") == 1
    choose(page, "#axis-x", "pods_pending")
    until(page, "location.search.includes('x=pods_pending')")
    until(page, "!document.querySelector('#frontier circle')")  # a measure against itself
    page.evaluate("history.back()")
    until(page, "document.querySelector('#frontier circle')")
    assert page.complaints == []


def test_a_table_is_opened_in_a_page_that_was_served_without(
    browser: Browser, server: Server, sweeps: tuple[Server, Path]
) -> None:
    page = open_(browser, server, "/ui")
    shows(page, "Rehearse")
    page.press("g")
    page.press("w")
    shows(page, "None was given to this server", "#said")
    give(page, sweeps[1] / "best" / "tune.json")
    shows(page, "count=24", "#story")
    wrong = sweeps[1] / "wrong.json"
    for text in ("{}", "[]", "nonsense", '[{"measures": 3}]', '{"trials": [{"settings": 3}]}'):
        wrong.write_text(text)
        give(page, wrong)
        shows(page, "This is no matrix.json", "#said")
    row: dict[str, Any] = {"scenario": HOSTILE, "configuration": "a", "settings": "__proto__=1"}
    row |= {
        "runs": 1,
        "failed": 1,
        "unmet": 0,
        "error": HOSTILE,
        "measures": {HOSTILE: {"mean": 1}},
    }
    wrong.write_text(json.dumps([row, {**row, "configuration": HOSTILE, "measures": {}}]))
    give(page, wrong)
    shows(page, "<img src=x", "#rows")
    assert page.evaluate("document.querySelectorAll('#page img').length") == 0
    assert page.complaints == []


def give(page: Page, file: Path) -> None:
    """Choose a file, as somebody would in the dialog of the browser."""
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    field = page.call("DOM.querySelector", nodeId=root, selector="#file")["nodeId"]
    page.evaluate("document.querySelector('#said').textContent = ''")
    page.call("DOM.setFileInputFiles", nodeId=field, files=[str(file)])


def test_a_folder_that_holds_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no matrix\.json or tune\.json"):
        OpenedRuns([tmp_path])
    (tmp_path / "matrix.json").write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        OpenedRuns([tmp_path]).sweep("sweep-1")
