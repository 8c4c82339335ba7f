"""What the terminal shows of expectations."""

from io import StringIO

from rich.console import Console

from kubescene.reports.terminal import print_summary
from kubescene.results import ExpectationOutcome, Summary


def shown(*outcomes: ExpectationOutcome) -> list[str]:
    file = StringIO()
    summary = Summary(scenario="s", phase="Succeeded", expectations=[*outcomes])
    print_summary(summary, Console(file=file, width=60, no_color=True, force_terminal=False))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def held(name: str) -> ExpectationOutcome:
    return ExpectationOutcome(name, "true", True)


def test_they_are_listed_in_the_order_of_their_author() -> None:
    broken = ExpectationOutcome("b", "x", False, "no", "no such key: x")
    assert shown(held("a"), broken, held("c"))[-4:] == [
        "Expectations: 2 of 3 hold",
        "  holds  a",
        "  FAILS  b: no: no such key: x",
        "  holds  c",
    ]


def test_of_many_those_that_do_not_hold_are_all_shown() -> None:
    many = [held(f"h{number}") for number in range(30)]
    broken = [ExpectationOutcome(f"b{number}", "false", False, "no") for number in range(20)]
    lines = shown(*many, *broken)
    assert sum(line.startswith("  FAILS  b") for line in lines) == 20
    assert sum(line.startswith("  holds  h") for line in lines) == 12
    assert lines[-1] == "  and 18 more that hold"


def test_markup_and_long_texts_are_plain_text() -> None:
    lines = shown(ExpectationOutcome("[red]x[/red]", "false", False, "word " * 30))
    assert lines[-4].startswith("  FAILS  [red]x[/red]: word")
    assert all(line.startswith("         word") for line in lines[-3:])


def test_without_any_nothing_is_said() -> None:
    assert not any("xpectation" in line for line in shown())
