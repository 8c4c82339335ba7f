"""``kubescene report`` and ``kubescene run --report``."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubescene.cli.app import app
from kubescene.errors import ConfigurationError
from kubescene.reports.html import report_html
from reported_runs import EXAMPLES, example

SCENARIO = EXAMPLES / "01-first-scenario" / "scenario.yaml"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return example("first-scenario", tmp_path / "run")


def invoke(*arguments: str | Path) -> str:
    """What the command prints; errors that it raises on purpose are raised."""
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_page_goes_into_the_directory_of_the_run(run: Path) -> None:
    assert invoke("report", run).strip() == str(run / "report.html")
    assert (run / "report.html").read_text() == report_html(run)


def test_the_page_goes_elsewhere_or_to_standard_output(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "new" / "page.html"
    invoke("report", run, "--out", file)
    assert file.read_text() == invoke("report", run, "--out", "-") == report_html(run)
    assert not (run / "report.html").exists()


def test_a_timeline_alone_needs_a_place_for_its_page(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="say with --out where the page goes"):
        invoke("report", run / "timeline.jsonl")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no run"):
        invoke("report", tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="no run"):
        invoke("report", tmp_path)


def test_a_place_that_cannot_be_written_is_named(run: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be written to .*choose another --out"):
        invoke("report", run, "--out", run / "timeline.jsonl" / "page.html")


def test_a_run_writes_its_page_if_asked(run: Path, tmp_path: Path) -> None:
    invoke("run", SCENARIO, "--out", tmp_path / "again", "--report", "--quiet")
    assert (tmp_path / "again" / "report.html").read_text() == report_html(run)


def test_a_page_without_a_directory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="give it with --out"):
        invoke("run", SCENARIO, "--report")


def test_the_page_of_an_earlier_run_does_not_pass_for_this_one(run: Path) -> None:
    invoke("report", run)
    invoke("run", SCENARIO, "--out", run, "--quiet")
    assert not (run / "report.html").exists()


def test_a_scenario_called_like_the_page_is_not_overwritten(tmp_path: Path) -> None:
    scenario = tmp_path / "report.html"
    scenario.write_bytes(SCENARIO.read_bytes())
    with pytest.raises(ConfigurationError, match="would overwrite"):
        invoke("run", scenario, "--out", tmp_path)
