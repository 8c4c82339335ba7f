"""The short account of a run, read from the timeline alone."""

from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

import kubescene
from kubescene.reports.terminal import amount, print_summary
from kubescene.results import PendingPod, Summary, open_run
from kubescene.results.summary import PLACEMENTS_KEPT, SummaryFold, summarize
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import TimelineLog

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-first-scenario" / "scenario.yaml"
GI = 1024**3


@pytest.fixture(scope="module")
def example() -> Summary:
    return kubescene.run(EXAMPLE).summary


def test_the_example_is_told_step_by_step(example: Summary) -> None:
    assert (example.scenario, example.phase, example.message) == (
        "first-scenario",
        "Succeeded",
        "",
    )
    counts = [
        (s.major, s.operations, s.minor_steps, s.scheduled, s.failed_attempts, s.pending, s.deleted)
        for s in example.steps
    ]
    assert counts == [
        (1, 2, 0, 0, 0, 0, 0),
        (2, 4, 8, 8, 0, 0, 0),
        (3, 1, 0, 0, 1, 1, 0),
        (4, 1, 1, 1, 0, 0, 4),
        (5, 4, 0, 0, 1, 1, 2),
    ]


def test_operations_are_counted_as_validate_counts_them(example: Summary) -> None:
    """One that makes several objects is one."""
    spec = yaml.safe_load(EXAMPLE.read_text())["spec"]
    assert sum(step.operations for step in example.steps) == len(spec["operations"])


def test_bound_means_the_same_everywhere(example: Summary) -> None:
    """Pods that are on a node at the end: not those that were, and are gone."""
    run = kubescene.run(EXAMPLE)
    bound = run.measures["pods_bound"]
    assert bound == example.pods_bound == 4
    assert f" {bound} bound" in repr(run)
    assert f" {bound} bound" in repr(run.summary)
    assert f"{bound} bound" in run._repr_html_()


def test_what_ends_a_scenario_writes_no_object() -> None:
    fold = SummaryFold()
    for fact in kubescene.run(EXAMPLE).log.read():
        fold.add(fact)
    assert (fold.counts(4)["written"], fold.counts()["written"]) == (10, 13)


def test_the_example_has_its_placements(example: Summary) -> None:
    assert example.placements_total == len(example.placements) == 9
    placed = {p.pod: p for p in example.placements}
    assert placed["default/report"].node == "batch-0"
    assert placed["default/database"].node.startswith("node-")
    assert (placed["default/search"].step, placed["default/search"].feasible) == ("4.1", 2)
    web = [p for p in example.placements if p.pod.startswith("default/web-")]
    assert len(web) == 6
    assert all(p.candidates == 4 and p.feasible == 3 for p in web)
    assert all(p.score is not None and p.runner_up for p in web)


def test_the_example_ends_with_these_nodes(example: Summary) -> None:
    assert [node.name for node in example.nodes] == ["node-0", "node-1", "node-2"]
    total = sum(node.requested.get("cpu", 0) for node in example.nodes)
    assert total == 2 * 700 + 2000 + 3000
    assert all(node.allocatable["memory"] == 16 * GI for node in example.nodes)
    assert sum(node.pods for node in example.nodes) == 4


def test_the_example_leaves_one_pod_waiting(example: Summary) -> None:
    (pod,) = example.pending
    assert (pod.pod, pod.attempts) == ("default/report-2", 1)
    assert pod.message.startswith("0/3 nodes are available:")


def test_a_pod_that_was_deleted_waits_no_longer() -> None:
    scenario = ScenarioBuilder("s").create(make_pod("a")).step(2)
    run = kubescene.run(scenario.delete("v1", "Pod", "a", namespace="default"))
    assert run.summary.pending == []


def test_a_pod_that_came_assigned_uses_its_node() -> None:
    run = kubescene.run(
        ScenarioBuilder("s").create(make_node("n").cpu("4"), make_pod("a").cpu("1").on("n"))
    )
    (node,) = run.summary.nodes
    assert (node.pods, node.requested["cpu"]) == (1, 1000)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_through_takes_nothing_from_its_node(phase: str, tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n1").cpu("4"))
    scenario.create(make_pod("through").cpu("1")).create(make_pod("runs").cpu("2"))
    patch = {"status": {"phase": phase}}
    scenario.step(2).patch("v1", "Pod", "through", patch, subresource="status").done()
    run = kubescene.run(scenario, out=tmp_path)
    log = TimelineLog.open(tmp_path / "timeline.jsonl")
    for summary in (run.summary, summarize(log.read(), scenario="s")):
        (node,) = summary.nodes
        assert (node.pods, node.requested["cpu"]) == (1, 2000)
        assert summary.pending == []


def test_the_newest_placements_are_kept() -> None:
    scenario = ScenarioBuilder("s").settings(explain="Off")
    scenario.create(make_node("n").pods("5000"))
    run = kubescene.run(scenario.create(make_pod("p-$(INDEX)"), count=PLACEMENTS_KEPT + 5))
    summary = run.summary
    assert summary.placements_total == PLACEMENTS_KEPT + 5
    assert len(summary.placements) == PLACEMENTS_KEPT
    assert summary.placements[-1].step == f"1.{PLACEMENTS_KEPT + 5}"


def printed(summary: Summary) -> str:
    file = StringIO()
    print_summary(summary, Console(width=100, no_color=True, file=file))
    return file.getvalue()


def decisions(*nodes: str, level: str) -> list[str]:
    """The title, the header and the row of one pod's placement."""
    scenario = ScenarioBuilder("s").settings(explain=level)
    for node in nodes:
        scenario.create(make_node(node))
    text = printed(kubescene.run(scenario.step(2).create(make_pod("p")).done()).summary)
    lines = [line.rstrip() for line in text.splitlines()]
    at = next(at for at, line in enumerate(lines) if line.startswith("Decisions"))
    return lines[at : at + 3]


def test_a_decision_shows_its_score_and_the_runner_up() -> None:
    title, header, row = decisions("a", "b", level="Full")
    assert title == "Decisions"
    assert header.split("  ")[-3:] == ["score", "runner-up", "feasible"]
    assert row.split()[2:] == ["a", "300", "b", "300", "2", "of", "2"]


def test_a_pod_that_fits_one_node_is_not_scored_and_says_so() -> None:
    scenario = ScenarioBuilder("s").create(make_node("a")).create(make_node("b")).step(2)
    scenario.create(make_pod("first")).create(make_pod("p").select(alone="yes"))
    scenario.create(make_node("c").label(alone="yes"))
    rows = printed(kubescene.run(scenario.done()).summary).splitlines()
    assert any("default/p " in row and "-  only one fits" in row for row in rows)


@pytest.mark.parametrize("level", ["Off", "Failures"])
def test_columns_of_scores_that_were_not_kept_are_left_away(level: str) -> None:
    title, header, _ = decisions("a", "b", level=level)
    assert title == "Decisions (scores were not kept)"
    assert "score" not in header
    assert "runner-up" not in header


def test_a_warning_that_is_wrapped_stays_indented() -> None:
    printed = StringIO()
    warning = "StatefulSet has no effect: the controller statefulset does not run"
    print_summary(Summary(warnings=[warning]), Console(file=printed, width=40))
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    at = lines.index("Not simulated")
    assert lines[at + 1 : at + 3] == [
        "  StatefulSet has no effect: the",
        "  controller statefulset does not run",
    ]


def test_messages_are_printed_as_they_are() -> None:
    summary = Summary(phase="Failed", message="a [bold] claim", pending=[])
    summary.pending = [PendingPod("default/a", 1, "plugin says [red]no[/red] {a: [b]}")]
    text = printed(summary)
    assert "a [bold] claim" in text
    assert "plugin says [red]no[/red] {a: [b]}" in text


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 0, "0"),
        ("memory", 0, "0"),
        ("memory", 1023, "1023"),
        ("memory", 16 * GI, "16Gi"),
        ("memory", 1010 * 1024**2, "1010Mi"),
        ("memory", 3 * GI // 2, "1.5Gi"),
        ("memory", 5000 * 1024 * GI, "5000Ti"),
    ],
)
def test_amounts_are_written_for_people(resource: str, value: int, text: str) -> None:
    assert amount(resource, value) == text


def test_a_pod_that_a_finalizer_held_does_not_come_back() -> None:
    held = make_pod("a").cpu("1").build()
    held = {**held, "metadata": {**held["metadata"], "finalizers": ["example.dev/hold"]}}
    scenario = (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("1"), held)
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .create(make_pod("b").cpu("1"))
        .step(3)
        .patch("v1", "Pod", "a", {"metadata": {"finalizers": None}}, patch_type="merge")
        .done()
    )
    run = kubescene.run(scenario)
    assert run.ok, run.message
    (node,) = run.summary.nodes
    assert (node.pods, node.requested["cpu"]) == (1, 1000)
    assert [p.pod for p in run.summary.placements] == ["default/a", "default/b"]
    assert [e["operation"] for e in run.timeline].count("Delete") == 1


def test_a_run_ends_when_its_time_does() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n")).advance("1h").done()
    summary = kubescene.run(scenario).summary
    assert (summary.started[11:19], summary.ended[11:19]) == ("00:00:00", "01:00:00")


def test_an_account_so_far_does_not_change_when_more_happens() -> None:
    """A server hands one out while the scenario goes on."""
    builder = ScenarioBuilder("x").create(make_node("n").cpu("4")).create(make_pod("p")).done()
    facts = list(kubescene.run(builder).log)
    fold = SummaryFold()
    for fact in facts[:1]:
        fold.add(fact)
    before = fold.finish("x")
    told = before.to_dict()
    for fact in facts[1:]:
        fold.add(fact)
    assert before.to_dict() == told
    assert fold.finish("x").placements_total == 1
    assert fold.counts() == {"written": 2, "bound": 1, "failedAttempts": 0}


def test_a_pod_that_terminates_still_takes_its_room() -> None:
    scenario = (
        ScenarioBuilder("leaving")
        .settings(kubelet={"terminateDelay": "20s"})
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
    )
    (node,) = kubescene.run(scenario).summary.nodes
    assert (node.pods, node.requested) == (1, {"cpu": 1000})
    (node,) = kubescene.run(scenario.advance("20s").done()).summary.nodes
    assert (node.pods, node.requested) == (0, {})


def test_what_is_told_of_the_scenario_itself_belongs_to_no_step() -> None:
    """Warnings are recorded before the first step."""
    stray = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}}
    stray["spec"] = {
        "schedule": "* * * * *",
        "jobTemplate": {
            "spec": {
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "c", "image": "i"}],
                    }
                }
            }
        },
    }
    run = kubescene.run(ScenarioBuilder("stray").step(3).create(stray).done())
    assert run.summary.warnings
    assert [step.major for step in run.summary.steps] == [3]
    assert [row.step for row in open_run(run).tables()["steps"]] == [3]
