"""The command line: exit codes, errors that say what to do, and help with examples."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from kubescene.cli.app import app
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.version import __version__

EXAMPLE = Path(__file__).parents[1] / "examples" / "01-first-scenario" / "scenario.yaml"
COMMANDS = [
    command.name or command.callback.__name__
    for command in app.registered_commands
    if command.callback
]
HEAD = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: a}
"""


def kubescene(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The real command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kubescene", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )


class Done(NamedTuple):
    exit_code: int
    stdout: str


def invoke(*arguments: str | Path) -> Done:
    """The same without a process, for what does not depend on one."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return Done(result.exit_code, result.stdout)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scenario.yaml"


# -- exit codes --------------------------------------------------------------------------------


def test_a_run_that_succeeds_exits_0(tmp_path: Path) -> None:
    done = kubescene("run", EXAMPLE, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (0, 5)
    assert "first-scenario  Succeeded" in done.stdout
    assert f"Results are in {tmp_path / 'out'}" in done.stdout.replace("\n", "")
    assert (tmp_path / "out" / "summary.json").exists()


def test_a_run_that_is_paused_exits_0_and_says_so(file: Path) -> None:
    ScenarioBuilder("s").create(make_node("n")).save(file)
    done = invoke("run", file)
    assert done.exit_code == 0
    assert "Paused" in done.stdout
    assert "no done operation" in done.stdout


def test_a_run_that_fails_exits_1(file: Path) -> None:
    ScenarioBuilder("s").delete("v1", "Node", "n", id="away").save(file)
    done = invoke("run", file)
    assert done.exit_code == 1
    assert "step 1, operation 'away': delete was refused" in done.stdout


def test_a_faulty_scenario_exits_2(file: Path) -> None:
    ScenarioBuilder("s").simulate("kube-schedular").save(file)
    done = invoke("run", file)
    assert done.exit_code == 2
    assert "'kube-schedular'" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(None, "there is no such file", id="missing"),
        pytest.param(HEAD + "spec: {a: [\n", ":5:1: not valid YAML", id="bad YAML"),
        pytest.param(
            HEAD + "kind: X\n", ":4:1: not valid YAML: the key 'kind' is given twice", id="dup"
        ),
        pytest.param("apiVersion: v1\nkind: Pod\n", "found 'v1' and 'Pod'", id="wrong kind"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exits_2(
    file: Path, text: str | None, message: str
) -> None:
    if text is not None:
        file.write_text(text)
    done = kubescene("run", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"kubescene: {file}")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_results_that_cannot_be_written_are_one_line_and_exit_2(file: Path) -> None:
    ScenarioBuilder("s").save(file)
    done = kubescene("run", file, "--out", file)
    assert (done.returncode, done.stdout) == (2, "")
    expected = f"kubescene: cannot write results to {file}: File exists; choose another --out\n"
    assert done.stderr == expected


def test_a_full_disk_is_one_line_and_exits_1(file: Path, tmp_path: Path) -> None:
    ScenarioBuilder("s").create(make_pod("p-$(INDEX)"), count=50).save(file)
    (tmp_path / "timeline.jsonl").symlink_to("/dev/full")
    done = kubescene("run", file, "--quiet", "--out", tmp_path)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


# -- options -----------------------------------------------------------------------------------


def test_quiet_prints_nothing_if_all_is_well(tmp_path: Path) -> None:
    done = kubescene("run", EXAMPLE, "--quiet", "--out", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_quiet_still_says_what_failed(file: Path) -> None:
    ScenarioBuilder("s").delete("v1", "Node", "n", id="away").save(file)
    done = kubescene("run", file, "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert "step 1, operation 'away': delete was refused" in done.stderr


def test_a_seed_changes_generated_names(tmp_path: Path) -> None:
    timelines = []
    for seed in ("1", "1", "2"):
        assert invoke("run", EXAMPLE, "--seed", seed, "--out", tmp_path).exit_code == 0
        timelines.append((tmp_path / "timeline.jsonl").read_bytes())
    assert timelines[0] == timelines[1] != timelines[2]


def test_the_version_is_told() -> None:
    assert invoke("--version").stdout == f"kubescene {__version__}\n"


def test_progress_goes_to_stderr(tmp_path: Path) -> None:
    done = kubescene("run", EXAMPLE, "--out", tmp_path)
    assert "step 2 at rest after 8 minor steps" in done.stderr
    assert "at rest" not in done.stdout


# -- validate ----------------------------------------------------------------------------------


def test_validate_tells_of_every_file(file: Path) -> None:
    file.write_text(HEAD + "spec: {operations: [{step: 1, id: x}]}\n")
    done = kubescene("validate", EXAMPLE, file, EXAMPLE)
    assert done.returncode == 2
    assert done.stdout.count(f"{EXAMPLE}: fine, 12 operations in 5 steps\n") == 2
    assert done.stderr.startswith(f"{file}: spec.operations[0] (id 'x'): exactly one of")


def test_validate_exits_0_if_all_is_well() -> None:
    assert invoke("validate", EXAMPLE).exit_code == 0


# -- help --------------------------------------------------------------------------------------


def test_the_commands_are_listed() -> None:
    listed = invoke("--help").stdout
    assert {"run", "validate"} <= set(COMMANDS)
    assert all(command in listed for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example(command: str) -> None:
    shown = invoke(command, "--help")
    assert shown.exit_code == 0
    assert f"Example: kubescene {command}" in shown.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [["run", str(EXAMPLE)], ["kubeconfig"]], ids=["run", "echo"])
def test_an_output_that_is_full_is_told(command: list[str], tmp_path: Path) -> None:
    more = ["--out", str(tmp_path)] if command[0] == "run" else []
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "kubescene", *command, *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == "kubescene: the output: No space left on device"
    assert "Traceback" not in process.stderr
