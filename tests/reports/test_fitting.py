"""Tables in terminals: nothing is wider than they are, and what has no room is told."""

from itertools import pairwise
from pathlib import Path

import pytest

import kubescene
from commands import in_terminal
from kubescene.experiments import matrix
from kubescene.experiments.display import text_lines as matrix_lines
from kubescene.reports.tables import fitted, text_lines
from kubescene.results import open_run
from kubescene.results.sources import RunSource
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

TABLES = ["measures", "pods", "nodes", "steps", "attempts", "utilization"]


def scenario() -> ScenarioBuilder:
    builder = ScenarioBuilder("narrow").create(make_node("n").cpu("2"))
    return builder.create(make_pod("a").cpu("1").label(app="x"), make_pod("b").cpu("4")).done()


@pytest.fixture(scope="module")
def run() -> RunSource:
    return open_run(kubescene.run(scenario()))


@pytest.mark.parametrize("name", TABLES)
def test_a_wide_terminal_shows_what_a_pipe_gets(run: RunSource, name: str) -> None:
    table = run.tables()[name]
    found = fitted(table, 1000)
    assert found.left_out == []
    assert list(found.lines) == list(text_lines(table))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
@pytest.mark.parametrize("name", TABLES)
def test_no_line_is_wider_than_the_terminal(run: RunSource, name: str, width: int) -> None:
    table = run.tables()[name]
    found = fitted(table, width)
    lines = [line.rstrip("\n") for line in found.lines]
    assert max(map(len, lines)) <= width
    shown = lines[0].lower().split()
    assert shown == [each for each in table.columns if each not in found.left_out]
    assert shown[0] == table.columns[0]


@pytest.mark.parametrize("name", TABLES)
def test_the_first_column_stays_in_the_narrowest_terminal(run: RunSource, name: str) -> None:
    table = run.tables()[name]
    assert table.columns[0] not in fitted(table, 1).left_out


def test_columns_go_as_late_as_possible(run: RunSource) -> None:
    table = run.tables()["pods"]
    widths = range(40, 400, 4)
    left = [fitted(table, width).left_out for width in widths]
    assert all(len(after) <= len(before) for before, after in pairwise(left))
    first_gone = next(names for names in reversed(left) if names)
    assert set(first_gone) <= {"owner", "ended_step", "ended_s", "preempted_by", "other"}


def test_a_terminal_that_is_just_wide_enough_shows_everything(run: RunSource) -> None:
    table = run.tables()["steps"]
    widest = max(len(line) - 1 for line in text_lines(table))
    assert fitted(table, widest).left_out == []
    assert len(fitted(table, widest - 1).left_out) == 1


def test_texts_stand_in_several_lines_and_lose_no_word(run: RunSource) -> None:
    table = run.tables()["attempts"]
    (message,) = [row.message for row in table if row.message]
    lines = list(fitted(table, 80).lines)
    place = lines[0].index("MESSAGE")
    assert " ".join(" ".join(line[place:].split()) for line in lines[2:]).strip("- ") == message


def test_a_combination_of_a_matrix_has_a_few_lines_where_a_row_is_too_long() -> None:
    found = matrix(scenario(), seeds=2, jobs=1)
    wide, narrow = list(matrix_lines(found)), list(matrix_lines(found, width=60))
    assert list(matrix_lines(found, width=max(map(len, wide)) - 1)) == wide
    assert "narrow\n" in narrow
    assert "  pods_bound             1 ± 0\n" in narrow
    assert max(map(len, wide)) > 61


def test_a_terminal_is_told_what_has_no_room(tmp_path: Path) -> None:
    kubescene.run(scenario(), out=tmp_path)
    code, told = in_terminal("results", tmp_path, "--table", "pods")
    lines = told.splitlines()
    assert code == 0
    assert lines[0].startswith("NAMESPACE   NAME   STATE")
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1].startswith("no room for uid, owner, ")


def test_state_and_node_of_pods_are_there_in_48_columns(run: RunSource) -> None:
    header = next(fitted(run.tables()["pods"], 48).lines).split()
    assert header[:4] == ["NAMESPACE", "NAME", "STATE", "NODE"]
