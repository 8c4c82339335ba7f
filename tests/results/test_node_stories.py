"""What became of nodes, and what the cluster autoscaler said of them and of pods."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import kubescene
from kubescene.cli.app import app
from kubescene.results import RunSource, open_run
from kubescene.results.node_stories import loops_about, loops_of, node_story

EXAMPLE = Path(__file__).parents[2] / "examples/21-nodes-follow/scenario.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes-follow")
    assert kubescene.run(EXAMPLE, out=folder).ok
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> RunSource:
    return open_run(folder)


def explained(*words: str) -> str:
    done = CliRunner().invoke(app, ["explain", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_node_is_told_from_its_order_to_its_end(run: RunSource) -> None:
    story = node_story(run, "steady-a-2")
    assert story is not None
    assert story.machine is not None
    assert story.ordered is not None
    assert story.removed is not None
    assert story.ordered.time_s == story.machine.ordered_s == story.machine.launched_s == 1860
    grown = {each.group: (each.before, each.after) for each in story.ordered.told.ordered}
    assert grown == {"steady-a": (1, 3), "steady-b": (1, 2)}
    assert set(story.ordered.told.skipped) == {"spot-a", "spot-b"}
    assert [each.reason.split(":")[0] for each in story.stays] == ["NotUnderutilized"] * 2
    assert story.outcome == "Ok"
    (removed,) = (each for each in story.removed.told.removed if each.node == "steady-a-2")
    assert (removed.size, removed.evicted) == (3, ())


def test_what_each_expander_kept_is_told(run: RunSource) -> None:
    first = next(loops_of(run)).told
    assert [(each.expander, each.kept) for each in first.expanders] == [
        ("price", ("spot-a", "spot-b"))
    ]
    assert [each.group for each in first.options if each.chosen] == ["spot-a"]
    assert len(first.triggered) == 4


def test_groups_that_grow_and_shrink_are_in_the_table_of_scaling(run: RunSource) -> None:
    rows = [each for each in run.tables()["scaling"] if each.target == "NodeGroup/steady-a"]
    assert [(each.time_s, each.replicas_from, each.replicas_to) for each in rows] == [
        (1860, 1, 3),
        (3920, 3, 1),
    ]
    assert rows[1].reason == "not needed: steady-a-1, steady-a-2"
    launched = [each for each in run.tables()["instances"] if each.group == "steady-a"]
    assert sum(each.ordered_s == 1860 for each in launched) == 2


def test_pods_know_for_which_of_them_nodes_were_ordered(run: RunSource) -> None:
    late = [pod for pod in run.tables()["pods"] if pod.pending_s > 100 and pod.state == "Bound"]
    assert late
    for pod in late:
        loops = loops_about(run, f"{pod.namespace}/{pod.name}")
        assert loops, pod.name
        assert loops[-1].time_s <= (pod.bound_s or 0)


def test_the_command_tells_of_nodes_and_of_machines_that_never_had_one(folder: Path) -> None:
    told = explained("node", "steady-a-2", "--run", str(folder))
    assert "steady-a: 1 -> 3" in told
    assert "spot-a was not asked: in backoff after failed scale-up" in told
    assert "outcome: Ok" in told
    failed = explained("instance/spot-a-3", "--run", str(folder))
    assert "it failed with QuotaExceeded" in failed
    assert "it never had a node" in failed


def test_the_command_tells_what_was_ordered_for_a_pod(folder: Path, run: RunSource) -> None:
    pod = next(pod for pod in run.tables()["pods"] if pod.pending_s > 100)
    told = explained("pod", pod.name, "--run", str(folder))
    assert "cluster autoscaler at +10 s" in told
    assert "spot-a: 0 -> 1" in told


def test_a_node_that_never_was_is_an_error(folder: Path) -> None:
    done = CliRunner().invoke(app, ["explain", "node", "nobody", "--run", str(folder)])
    assert done.exit_code == 2
    assert "tells of no node nobody" in done.output
