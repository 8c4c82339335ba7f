"""Every example validates, plays, and prints what its ``expected.txt`` shows.

``expected.txt`` is the summary as a terminal of 100 columns without colours shows it, and
``timeline.sha256`` the hash of all its facts. After a change that is meant to change them:
``pytest tests/test_examples.py --update``, and read the diff.
"""

import hashlib
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import kubescene
from kubescene.cli.validate.faults import validate_files
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


def files(run: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in run.iterdir() if each.is_file()}


@EXAMPLES
def test_an_example_writes_the_same_files_without_shortcuts(scenario: Path, tmp_path: Path) -> None:
    for name, plain in (("fast", False), ("plain", True)):
        kubescene.run(scenario, out=tmp_path / name, plain=plain)
    written = files(tmp_path / "fast")
    assert "timeline.jsonl" in written
    assert files(tmp_path / "plain") == written


def hash_of(run: Path) -> str:
    """The hash of a run's facts; the line before them names the version."""
    _, _, facts = (run / "timeline.jsonl").read_bytes().partition(b"\n")
    return f"{hashlib.sha256(facts).hexdigest()}\n"


@EXAMPLES
def test_an_example_has_the_same_facts_in_every_process(
    scenario: Path, tmp_path: Path, update: bool
) -> None:
    kubescene.run(scenario, out=tmp_path / "here")
    command = [sys.executable, "-m", "kubescene", "run", str(scenario), "--quiet"]
    subprocess.run([*command, "--out", str(tmp_path / "there")], check=True)
    pinned = scenario.with_name("timeline.sha256")
    if update:
        pinned.write_text(hash_of(tmp_path / "here"))
    assert hash_of(tmp_path / "here") == hash_of(tmp_path / "there") == pinned.read_text()


@EXAMPLES
def test_an_example_uses_nothing_that_has_no_effect(scenario: Path) -> None:
    assert kubescene.run(scenario).summary.warnings == []


CONVERSATIONS = sorted(ROOT.glob("examples/*/commands.txt"))


@pytest.mark.parametrize("commands", CONVERSATIONS, ids=[c.parent.name for c in CONVERSATIONS])
def test_a_conversation_goes_as_shown(
    commands: Path, update: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    scenario = commands.with_name("scenario.yaml")
    command = [sys.executable, "-m", "kubescene", "run", str(scenario), "--interactive"]
    done = subprocess.run(
        command, input=commands.read_text(), capture_output=True, text=True, check=True
    )
    found = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    session = commands.with_name("session.txt")
    if update:
        session.write_text(found)
    assert found == session.read_text()


@EXAMPLES
def test_an_example_tells_what_it_is_about(scenario: Path) -> None:
    assert scenario.with_name("README.md").read_text(encoding="utf-8").startswith("# ")
