"""What the guide about results shows is what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kubescene
from kubescene.cli.app import app
from kubescene.results import open_run

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guides/results.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_the_python_runs_from_top_to_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    world: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for code in blocks("python"):
            exec(compile(code, str(GUIDE), "exec"), world)
    lines = printed.getvalue().splitlines()
    assert lines[0] == "time-passes Succeeded 0.5"
    assert lines[-2:] == ["2 [] 8", "4"]


def test_the_measures_that_are_shown_are_those_of_the_run(tmp_path: Path) -> None:
    kubescene.run(ROOT / "examples/06-time-passes/scenario.yaml", out=tmp_path)
    told = CliRunner().invoke(app, ["results", str(tmp_path)]).stdout.splitlines()
    (shown,) = (each for each in blocks("") if each.startswith("MEASURE"))
    found = {" ".join(line.split()) for line in told}
    for line in shown.splitlines()[:-1]:
        assert " ".join(line.split()) in found


def test_the_tables_that_are_listed_are_those_that_there_are() -> None:
    run = kubescene.run(ROOT / "examples/05-draft-form/scenario.yaml")
    listed = re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(open_run(run).tables())
