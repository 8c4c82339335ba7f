"""What came of expectations, side by side."""

import io

import pytest
from rich.console import Console

import kubescene
from kubescene.reports.comparison import print_comparison
from kubescene.reports.comparison_markdown import markdown
from kubescene.results.comparison import Comparison, compare
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

PLACED = {
    "name": "all | placed",
    "expression": "pending.size() == 0",
    "message": "*somebody* waits",
}
NODES = {"name": "nodes", "expression": "nodes.size() == 1"}


def played(cpu: str, *expectations: dict[str, str]) -> kubescene.Run:
    scenario = ScenarioBuilder("expecting").create(make_node("n").cpu(cpu))
    built = scenario.create(make_pod("p").cpu("2")).done().build()
    built["spec"]["expectations"] = [*expectations]
    return kubescene.run(built)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(played("4", PLACED, NODES), played("1", PLACED), names=("a", "b"))


def terminal(comparison: Comparison) -> str:
    text = io.StringIO()
    print_comparison(comparison, Console(file=text, width=150), replayable=True)
    return text.getvalue()


def test_every_expectation_is_told_for_both_runs(found: Comparison) -> None:
    told = [(each.name, each.in_a, each.in_b, each.why_in_b) for each in found.expectations]
    assert told == [
        ("all | placed", True, False, "*somebody* waits"),
        ("nodes", True, None, ""),
    ]


def test_terminal_and_markdown_show_them(found: Comparison) -> None:
    assert "Expectations that hold: 2 of 2 in A, 0 of 1 in B" in " ".join(terminal(found).split())
    assert "fails: *somebody* waits" in terminal(found)
    assert r"| all \| placed | holds | fails: \*somebody\* waits |" in markdown(found)
    assert "fails" in found._repr_html_()


def test_an_outcome_that_changes_is_a_difference() -> None:
    """Even where nothing else happened otherwise."""
    never = {**PLACED, "expression": "false"}
    found = compare(played("4", PLACED), played("4", never))
    assert not found.equal
    assert (found.placed, found.measures) == ((), ())


def test_equal_runs_tell_what_fails_in_both() -> None:
    found = compare(played("1", PLACED), played("1", PLACED))
    assert found.equal
    assert "fails: *somebody* waits" in terminal(found)
    assert "0 of 1 in A, 0 of 1 in B" in markdown(found)
    fine = compare(played("4", PLACED), played("4", PLACED))
    assert "xpectation" not in terminal(fine)


def test_a_scenario_object_has_its_outcomes_too() -> None:
    run = played("1", PLACED)
    assert compare(run, run.scenario).expectations[0].in_b is False
