"""How far a run is, in words: totals, rate and time left, in what a terminal has room for."""

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from kubescene.cli.run.playing import amounts_of
from kubescene.clock import ScenarioStep
from kubescene.reports.progress import (
    STEP_COLUMNS,
    LiveLine,
    MatrixProgress,
    ProgressReporter,
    live_line,
)
from kubescene.reports.tallies import RunTally, ScenarioSize
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

AMOUNTS = ScenarioSize(steps=2, writes=1000, pods=600)


@pytest.mark.parametrize(
    ("done", "left"),
    [
        pytest.param((0, 0, 0), None, id="nothing yet"),
        pytest.param((400, 0, 0), 30, id="objects are created"),
        pytest.param((1000, 300, 0), 2.3, id="pods are bound"),
        pytest.param((1000, 200, 200), 1.4, id="some are not"),
        pytest.param((1000, 600, 0), None, id="all is done"),
        pytest.param((1000, 500, 900), None, id="those that fail are tried again"),
    ],
)
def test_the_time_that_is_left(done: tuple[int, int, int], left: float | None) -> None:
    found = RunTally(AMOUNTS, *done, spent_s=10).left_s
    assert found == (None if left is None else pytest.approx(left, abs=0.05))


def test_it_is_not_told_before_it_means_anything() -> None:
    tally = RunTally(AMOUNTS, 400, 100, 0, spent_s=0.9)
    assert tally.told() == "400 of 1,000 objects written, 100 pods bound, 0 failed attempts"
    assert tally.short() == "400/1000 written, 100 bound"


@pytest.mark.parametrize(
    ("spent_s", "told"),
    [
        (0.1, "2 of 20 runs"),
        (2.0, "2 of 20 runs, 1 a second"),
        (4.0, "2 of 20 runs, 0.5 a second, about 36 s left"),
    ],
)
def test_runs_of_a_matrix_are_estimated_when_some_time_has_passed(
    spent_s: float, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveLine, "spent_s", spent_s)
    progress = MatrixProgress(Console(file=StringIO()))
    progress.start(20, 0)
    for _ in range(2):
        progress.note(failed=False)
    assert progress.reached == told


def test_pods_are_counted_among_the_objects() -> None:
    built = ScenarioBuilder("s").create(make_node("n-$(INDEX)"), count=3).step(2)
    built.create(make_pod("p-$(INDEX)"), count=5).create(make_pod("one")).done()
    assert amounts_of(built.build()) == ScenarioSize(steps=2, writes=9, pods=6)


def test_a_terminal_of_80_columns_has_room_for_all_of_it() -> None:
    """The largest that anybody plays."""
    short = RunTally(ScenarioSize(30, 110_000, 100_000), 110_000, 99_000, 999, spent_s=45).short()
    assert short.endswith("4,644/s, 1 s left")
    console = Console(file=StringIO(), force_terminal=True, width=80)
    shown = live_line(console, STEP_COLUMNS)
    shown.add_task(short, total=30, completed=17)
    with console.capture() as capture:
        console.print(shown.get_renderable())
    (line,) = [each for each in capture.get().splitlines() if "step" in each]
    assert "…" not in line
    assert "17/30" in line
    assert cell_len(short) <= 66


def test_a_line_for_every_step_where_nobody_can_redraw() -> None:
    console = Console(file=StringIO(), width=80)
    reporter = ProgressReporter(console, AMOUNTS)
    reporter.step_finished(ScenarioStep(3, 2))
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue() == (
        "step 3 (1 of 2) at rest after 2 minor steps: 0 of 1,000 objects written, 0 pods bound, "
        "0 failed attempts\n"
    )


def test_nothing_is_foretold_at_the_start() -> None:
    """After a second, or with a hundredth of the work done, any estimate is wild."""
    early = RunTally(AMOUNTS, AMOUNTS.writes // 2, AMOUNTS.pods // 2, 0, spent_s=1.5)
    little = RunTally(AMOUNTS, 1, 0, 0, spent_s=20)
    assert (early.left_s, little.left_s) == (None, None)
    assert "left" not in early.told() + early.short() + little.told() + little.short()
