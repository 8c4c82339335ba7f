"""``kubescene run --interactive``: step by step, with additions, and back."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import kubescene
from kubescene.cli.run.interactive import Session
from kubescene.runs.requests import RunRequest
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Timeline

SCENARIO = (
    ScenarioBuilder("by-hand")
    .create(make_node("n").cpu("3"), make_pod("a").cpu("1"), make_pod("b").cpu("1"))
    .next_step()
    .create(make_pod("c").cpu("1"))
)
WORST = (
    "add {step: 3, id: worst, createOperation: {object: {apiVersion: v1, kind: Pod, "
    "metadata: {name: worst}, spec: {containers: [{name: x, image: x, "
    "resources: {requests: {cpu: 2}}}]}}}}"
)


def talk(*lines: str, scenario: ScenarioBuilder = SCENARIO) -> tuple[Session, list[str]]:
    shown = StringIO()
    session = Session(RunRequest(scenario=scenario.build()), Console(file=shown, width=200))
    session.run(iter(lines))
    return session, shown.getvalue().splitlines()[3:]


def test_minor_and_major_steps_are_played_one_by_one() -> None:
    _, shown = talk("minor", "n", "n", "major", "major", "major", "quit", "n")
    assert shown == [
        "Running at step 1.0: ControllerRunning, kube-scheduler",
        "Running at step 1.1: ControllerRunning, kube-scheduler",
        "Running at step 1.2: ControllerRunning, kube-scheduler",
        "Running at step 1.2: Finished",
        "Running at step 2.1: Finished",
        "Paused at step 2.1: Finished",
    ]


def test_the_words_of_debuggers_are_known() -> None:
    assert talk("step", "next", "status")[1] == talk("minor", "major", "state")[1]


def test_a_drain_is_added_while_it_is_paused_and_a_wrong_one_refused() -> None:
    drain = "add {step: 3, id: %s, drainOperation: {names: [n], force: true%s}}"
    wrong, right = drain % ("wrong", ", timeout: soon"), drain % ("right", "")
    _, shown = talk("end", wrong, right, "end", "state")
    assert shown[:4] == [
        "Paused at step 2.1: Finished",
        "spec.operations[4] (id 'wrong').drainOperation.timeout: "
        "'soon' is not a duration such as 90s, 5m or 1h30m",
        "added as operation 'right'",
        "Paused at step 3.0: Finished",
    ]
    assert shown[5] == "1 nodes, 0 pods on them, 0 wait"


def test_the_worst_case_is_added_while_it_is_paused() -> None:
    session, shown = talk("end", WORST, "end", "state", "explain worst")
    assert shown[:3] == [
        "Paused at step 2.1: Finished",
        "added as operation 'worst'",
        "Paused at step 3.0: Finished",
    ]
    assert "1 nodes, 3 pods on them, 1 wait" in shown
    assert any("default/worst: 0/1 nodes are available" in line for line in shown)
    assert any("NodeResourcesFit" in line for line in shown)
    assert session.engine.scenario.phase == "Paused"


def test_a_major_step_from_a_pause_is_the_one_that_was_added() -> None:
    _, shown = talk("end", WORST, "major", "major", "back", "back", "minor", "major")
    assert shown[2:] == [
        "Running at step 3.0: Finished",
        "Paused at step 3.0: Finished",
        "Running at step 3.0: Finished",
        "Paused at step 2.1: Finished",
        "Running at step 3.0: ControllerRunning, kube-scheduler",
        "Running at step 3.0: Finished",
    ]


def test_a_key_given_twice_in_an_added_operation_is_refused() -> None:
    _, shown = talk("add {step: 3, step: 4, doneOperation: {}}")
    assert shown == ["the key 'step' is given twice, at column 11"]


def test_back_is_exact() -> None:
    detour, _ = talk("n", "n", WORST, "end", "end", "back", "back", "back", "n", "b", "end")
    straight, _ = talk("end")
    expected = kubescene.run(SCENARIO).timeline
    for session in (detour, straight):
        timeline = Timeline(session._scene.log)
        assert list(timeline) == list(expected)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("jump", "there is no command 'jump'; help shows them"),
        ("back", "there is nothing to undo"),
        ("add {stepp: 1}", "did you mean step?"),
        ("add {step: [", "this is not YAML"),
        ("add", "an operation is an object"),
        ("explain nobody", "nobody has tried to place 'nobody' so far"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(line: str, answer: str) -> None:
    session, shown = talk(line)
    assert answer in "\n".join(shown)
    assert session.engine.scenario.step.major == 0


def test_a_step_that_has_passed_cannot_be_added_to() -> None:
    _, shown = talk("major", "major", "add {step: 1, doneOperation: {}}")
    assert shown[-1] == "step 1 has passed: the scenario is at 2"


def test_an_end_is_an_end() -> None:
    done = ScenarioBuilder("s").create(make_node("n")).done()
    _, shown = talk("end", "end", WORST, scenario=done)
    assert shown[0] == "Succeeded at step 1.0: Finished"
    assert "the scenario is over" in shown[1]
    assert "the scenario has ended" in shown[2]


def test_the_command_reads_lines(tmp_path: Path) -> None:
    file = SCENARIO.save(tmp_path / "s.yaml")
    command = [sys.executable, "-m", "kubescene", "run", str(file), "--interactive"]
    done = subprocess.run(
        command, input="major\nhelp\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Running at step 1.2: Finished" in done.stdout
    assert "back (b)" in done.stdout
