"""`kubescene explain`: what a run's side file says about one pod."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import kubescene
from kubescene.cli.app import app
from kubescene.errors import ConfigurationError
from kubescene.results.explaining import read_attempts
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod


@pytest.fixture
def run(tmp_path: Path) -> Path:
    nodes = (make_node("small").cpu("1"), make_node("big").cpu("8"), make_node("bigger").cpu("16"))
    tainted = make_node("tainted").cpu("8").taint("keep", value="out")
    scenario = (
        ScenarioBuilder("s")
        .create(*nodes, tainted)
        .step(2)
        .create(make_pod("a").cpu("2"))
        .step(3)
        .create(make_pod("huge").cpu("99"))
    )
    kubescene.run(scenario, out=tmp_path)
    return tmp_path


def test_the_chosen_node_comes_first_and_its_scores_add_up(run: Path) -> None:
    (attempt,) = read_attempts(run, "a")
    best = attempt.verdicts[0]
    assert (attempt.node, best.node) == ("bigger", "bigger")
    assert best.total == sum(best.scores)
    assert attempt.plugins[0] == "TaintToleration"


def test_rejected_nodes_name_plugin_and_reason(run: Path) -> None:
    (attempt,) = read_attempts(run, "default/a")
    rejected = {v.node: (v.rejected_by, v.reasons) for v in attempt.verdicts if v.rejected_by}
    assert rejected == {
        "small": ("NodeResourcesFit", "Insufficient cpu"),
        "tainted": ("TaintToleration", "node(s) had untolerated taint(s)"),
    }


def test_a_failed_attempt_has_the_schedulers_message(run: Path) -> None:
    (attempt,) = read_attempts(run, "huge")
    assert attempt.node == ""
    assert attempt.message.startswith("0/4 nodes are available:")
    assert len(attempt.verdicts) == 4


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name the --out directory of a run"):
        read_attempts(tmp_path / "nothing", "a")


def test_the_command_shows_the_table(run: Path) -> None:
    shown = CliRunner().invoke(app, ["explain", "a", "--run", str(run)])
    assert shown.exit_code == 0
    assert "default/a at step 2.1: bound to bigger" in shown.output
    assert "chosen" in shown.output


def test_an_unknown_pod_is_bad_input(run: Path) -> None:
    shown = CliRunner().invoke(app, ["explain", "nobody", "--run", str(run)])
    assert shown.exit_code == 2
    assert "tells of no attempt at nobody" in shown.output
