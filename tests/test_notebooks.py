"""Notebooks of the examples run, and what they show is bounded and safe."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import kubescene
from kubescene.markup import ROWS_SHOWN
from kubescene.remedies import Remedies
from kubescene.results.comparison import compare
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict
from kubescene.results.summary import PendingPod, Summary
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted(ROOT.glob("examples/notebooks/*.ipynb"))
EXAMPLE = ROOT / "examples" / "01-first-scenario" / "scenario.yaml"


@pytest.fixture(scope="module")
def run() -> kubescene.Run:
    return kubescene.run(EXAMPLE)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # of the machinery that starts kernels
def test_a_notebook_runs_and_shows_something_in_every_cell(path: Path) -> None:
    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "keep it free of outputs"
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            (output,) = cell.outputs
            assert output.output_type == "execute_result", cell.source
            assert len(output.data["text/plain"]) < 2000, cell.source
    shown = [cell.outputs[0].data for cell in notebook.cells if cell.cell_type == "code"]
    assert sum("text/html" in data for data in shown) >= 7
    assert shown[-1]["text/plain"] == "True"


def test_a_run_shows_its_steps_and_who_waits(run: kubescene.Run) -> None:
    shown = run._repr_html_()
    assert "<b>first-scenario</b> Succeeded" in shown
    assert "4 bound, 1 waiting, 3 nodes, seed 0" in shown
    assert "default/report-2" in shown
    assert run.result._repr_html_() == shown == run.summary._repr_html_()


def test_the_words_of_a_run_are_few(run: kubescene.Run) -> None:
    for shown in (run, run.summary, run.timeline, run.tables["pods"], run.log):
        assert len(repr(shown)) < 400


def test_attempts_show_every_node_and_plugin(run: kubescene.Run) -> None:
    attempts = run.explain("default/search")
    shown = attempts._repr_html_()
    for attempt in attempts:
        assert attempt._repr_html_() in shown
        assert all(verdict.node in shown for verdict in attempt.verdicts)
    assert all(f">{plugin}</th>" in shown for plugin in attempts[-1].plugins)
    assert f">{attempts[-1].verdicts[0].total}</td>" in shown
    assert ">chosen</td>" in shown
    assert run.explain("nobody")._repr_html_() == "<p>no attempt</p>"


def test_a_preemption_is_told_of() -> None:
    (path,) = ROOT.glob("examples/*-preemption/scenario.yaml")
    shown = kubescene.run(path).explain("default/urgent")._repr_html_()
    assert "preemption: node-0 makes room by losing default/" in shown


def test_remedies_are_a_table(run: kubescene.Run) -> None:
    found = run.remedies("default/report-2")
    assert found[0].text in found._repr_html_()
    assert "no single change" in Remedies()._repr_html_()


def test_the_timeline_lists_its_first_events(run: kubescene.Run) -> None:
    shown = run.timeline._repr_html_()
    assert shown.count("<tr>") == ROWS_SHOWN + 1
    assert "Pod default/database on node-0" in shown
    assert f"of {len(run.timeline)} events" in shown


def test_long_tables_are_cut_and_say_so() -> None:
    builder = ScenarioBuilder("crowd").create(make_node("n").cpu("1"))
    builder.step(2).create(make_pod("p-$(INDEX)").cpu("1"), count=500)
    run = kubescene.run(builder.done())
    for shown in (run.tables["pods"], run.tables["attempts"], run):
        html = shown._repr_html_()
        assert html.count("<tr>") < 30
        assert "more" in html
        assert len(html) < 30_000
    assert "and 479 more pods wait" in run._repr_html_()
    assert len(run.tables["pods"].rows) == 500


def test_a_comparison_names_who_moved_and_through_whom(tmp_path: Path) -> None:
    def played(name: str, *pods: str) -> Path:
        builder = ScenarioBuilder(name).create(make_node("n-$(INDEX)").cpu("4"), count=2)
        for pod in pods:
            builder.step(2).create(make_pod(pod).cpu("1"))
        kubescene.run(builder.done(), out=tmp_path / name)
        return tmp_path / name

    same = compare(played("one", "a", "b"), played("one", "a", "b"))
    assert "the same happened in both" in same._repr_html_()
    other = compare(played("one", "a", "b"), played("two", "b", "a"))
    shown = other._repr_html_()
    assert f"{len(other.placed)} pods placed otherwise" in shown
    assert all(f">{each.pod}</td>" in shown for each in other.placed)
    assert other.placed


HOSTILE = "<script>alert(1)</script>\u202e"


def test_what_users_write_is_text() -> None:
    attempt = ExplainedAttempt(
        pod=HOSTILE,
        step="1.1",
        node="",
        message=HOSTILE,
        verdicts=(NodeVerdict(HOSTILE, HOSTILE, HOSTILE),),
        explained=True,
    )
    summary = Summary(scenario=HOSTILE, message=HOSTILE, warnings=[HOSTILE])
    summary.pending = [PendingPod(HOSTILE, 1, HOSTILE)]
    for shown in (attempt, summary):
        assert "<script" not in shown._repr_html_()
        assert "\u202e" not in shown._repr_html_()
        assert "&lt;script&gt;" in shown._repr_html_()


def test_a_line_of_a_run_says_that_expectations_failed() -> None:
    builder = ScenarioBuilder("s").done().expect("some", "pods.size() > 0").expect("none", "true")
    assert ": Succeeded, 1 of 2 expectations failed, " in repr(kubescene.run(builder))
