"""Every example validates, plays, and prints what its ``expected.txt`` shows.

``expected.txt`` is the summary as a terminal of 100 columns without colours shows it. After a
change that is meant to change it: ``pytest tests/test_examples.py --update``, and read the diff.
"""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import kubescene
from kubescene.cli.validate import validate_files
from kubescene.reports.terminal import print_summary
from kubescene.results import Summary

ROOT = Path(__file__).parents[1]
SCENARIOS = sorted(ROOT.glob("examples/*/scenario.yaml"))

EXAMPLES = pytest.mark.parametrize("scenario", SCENARIOS, ids=[s.parent.name for s in SCENARIOS])


def printed(summary: Summary) -> str:
    """The summary as a plain terminal shows it; spaces that only fill a line are left out."""
    file = StringIO()
    print_summary(summary, Console(file=file, width=100, no_color=True, force_terminal=False))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def test_there_are_examples() -> None:
    assert SCENARIOS


@EXAMPLES
def test_an_example_validates(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate_files([scenario]) == 0
    assert "fine" in capsys.readouterr().out


@EXAMPLES
def test_an_example_prints_what_it_shows(scenario: Path, update: bool) -> None:
    run = kubescene.run(scenario)
    assert run.ok, run.message
    expected = scenario.with_name("expected.txt")
    found = printed(run.summary)
    if update:
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


@EXAMPLES
def test_an_example_tells_what_it_is_about(scenario: Path) -> None:
    assert scenario.with_name("README.md").read_text(encoding="utf-8").startswith("# ")
