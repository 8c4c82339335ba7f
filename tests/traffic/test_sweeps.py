"""Combinations of settings, in one process or many."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kubescene.errors import TrafficError
from kubescene.traffic import load_run, run
from kubescene.traffic.sweeps import alternatives, cases, sweep
from plugin_commands import program

STEP = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"


def swept(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubescene", "traffic", "sweep", str(STEP), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("setting", "parts"),
    [
        ("a.b=1,2", ["a.b=1", "a.b=2"]),
        ("a=1", ["a=1"]),
        ("a=[1,2],[3]", ["a=[1,2]", "a=[3]"]),
        ("a={b: 1, c: 2},{}", ["a={b: 1, c: 2}", "a={}"]),
        ("a='x,y', z", ["a='x,y'", "a=z"]),
    ],
)
def test_commas_divide_outside_of_brackets_and_quotes(setting: str, parts: list[str]) -> None:
    assert alternatives(setting) == parts


@pytest.mark.parametrize("setting", ["a", "=1", "a=", "a=1,,2", "a=1,"])
def test_a_setting_without_values_is_refused(setting: str) -> None:
    with pytest.raises(TrafficError, match="--set"):
        alternatives(setting)


def test_combinations_are_bounded_and_named_once() -> None:
    many = ",".join(map(str, range(101)))
    with pytest.raises(TrafficError, match="10201 combinations"):
        cases(STEP, [f"a={many}", f"b={many}"], ())
    with pytest.raises(TrafficError, match="given twice"):
        cases(STEP, ["a=1", "a=2"], ())


def test_each_outcome_is_that_of_its_own_run() -> None:
    settings = ["spec.seed=1,2", "spec.traffic.step.rps=5,10"]
    found = list(sweep(cases(STEP, settings, ()), 1))
    assert [tuple(each.settings.values()) for each in found] == [
        ("1", "5"),
        ("1", "10"),
        ("2", "5"),
        ("2", "10"),
    ]
    alone = run(load_run(STEP, ["spec.seed=2", "spec.traffic.step.rps=5"]))
    assert found[2].summary == alone.summary


def test_the_number_of_processes_changes_no_byte_and_one_failure_no_other_run() -> None:
    settings = ["--set", "spec.traffic.step.rps=5,-1,10", "--set", "spec.seed=1,2"]
    for format in ("table", "csv", "json"):
        one = swept(*settings, "--format", format, "--jobs", "1")
        two = swept(*settings, "--format", format, "--jobs", "2")
        assert one.stdout == two.stdout
        assert one.returncode == two.returncode == 1
        assert "spec.traffic.step.rps=-1 spec.seed=2: " in one.stderr
    rows = json.loads(two.stdout)
    assert [each["phase"] for each in rows] == ["Succeeded"] * 2 + ["Refused"] * 2 + [
        "Succeeded"
    ] * 2


def test_a_process_that_dies_is_the_outcome_of_its_run(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(
        "import os\n"
        "from kubescene.autoscalers import AutoscalerPlugin, Capability\n"
        "class Dying(AutoscalerPlugin):\n"
        "    types = ('dying.example.com',)\n"
        "    capabilities = frozenset({Capability.EVENT})\n"
        "    def event(self, request):\n"
        "        os._exit(3)\n"
    )
    arguments = ["--set", "spec.seed=1,2", "--jobs", "2", "--format", "json"]
    arguments += ["--autoscaler", "dying:Dying"]
    done = subprocess.run(
        [sys.executable, "-m", "kubescene", "traffic", "sweep", str(STEP), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert done.returncode == 1, done.stderr
    assert [each["message"] for each in json.loads(done.stdout)] == [
        "its process ended, perhaps for want of memory"
    ] * 2


def test_a_run_in_which_nobody_succeeds_has_no_response_times() -> None:
    """None at all would look like very short ones."""
    done = swept("--set", "spec.replicas.initial=0,1", "--set", "spec.autoscalers=[]")
    nobody, somebody = (line.split() for line in done.stdout.splitlines()[1:])
    assert nobody == ["0", "[]", "Succeeded", "1700", "1700", "3", "0", "0.000", "0.000", "0"]
    assert len(somebody) == len(nobody) + 3


def test_bad_arguments_are_bad_input() -> None:
    assert swept("--format", "xml").returncode == 2
    assert swept("--set", "nonsense").returncode == 2


def test_autoscalers_in_processes_take_part_in_a_sweep() -> None:
    pytest.importorskip("grpc")
    process = ("--autoscaler-process", program("counting"))
    settings = ["--set", "spec.seed=1,2", "--set", "spec.autoscalers=[]"]
    settings += ["--format", "json", "--jobs", "2"]
    done = swept(*settings, *process)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [each["phase"] for each in found] == ["Succeeded"] * 2
    missing = swept(*settings, "--autoscaler-process", "no-such-command")
    assert missing.returncode == 1
    assert [each["phase"] for each in json.loads(missing.stdout)] == ["Refused"] * 2
    assert "no-such-command" in missing.stderr
