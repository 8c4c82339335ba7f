"""Combinations of settings, in one process or many."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from kubescene.errors import TrafficError
from kubescene.experiments.sweeps import alternatives, cases, sweep
from kubescene.traffic import load_run, run
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
    found = sweep(cases(STEP, settings, ()), 1).outcomes
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
    for each in json.loads(done.stdout):
        assert each["phase"] == "Failed"
        assert "the process that played it ended twice with code 3" in each["message"]


def test_a_run_in_which_nobody_succeeds_has_no_response_times_of_those_served() -> None:
    """None at all would look like very short ones; of all, everybody took the time-out."""
    done = swept("--set", "spec.replicas.initial=0,1", "--set", "spec.autoscalers=[]")
    nobody, somebody = (line.split() for line in done.stdout.splitlines()[1:3])
    late = ["10.000"] * 3
    rest = ["3", "0", "0.000", "0.000", "0"]
    assert nobody == ["0", "[]", "Succeeded", "1700", "1700", *late, *rest]
    assert len(somebody) == len(nobody) + 1
    assert "SERVED P95 of those served" in done.stdout


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


# -- many seeds ----------------------------------------------------------------------------------


def test_seeds_give_means_with_intervals(tmp_path: Path) -> None:
    found = sweep(cases(STEP, ["spec.traffic.step.rps=5,10"], seeds=3), 1)
    assert [row.runs for row in found.rows] == [3, 3]
    alone = [
        run(load_run(STEP, ["spec.traffic.step.rps=10", f"spec.seed={seed}"])).summary
        for seed in (1, 2, 3)
    ]
    mean = found.rows[1].measures["responseMeanS"]
    assert mean.mean == pytest.approx(sum(each.response_mean_s for each in alone) / 3)
    assert mean.low is not None
    assert mean.low < mean.mean
    assert found.rows[1].measures["requests"].half_width == 0


def test_a_table_of_seeds_says_what_it_shows(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = swept("--set", "spec.traffic.step.rps=5,10", "--seeds", "2", "--out", str(out))
    header, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert header.split()[:4] == ["rps", "RUNS", "REQUESTS", "FAILED"]
    assert [row.split()[:5] for row in rows] == [
        ["5", "2", "850", "±", "0"],
        ["10", "2", "1700", "±", "0"],
    ]
    assert "95% confidence interval" in done.stdout
    assert "4 of 4 runs" in done.stderr
    with (out / "runs.csv").open() as file:
        kept = list(csv.DictReader(file))
    assert [(each["spec.traffic.step.rps"], each["seed"]) for each in kept] == [
        ("5", "1"),
        ("5", "2"),
        ("10", "1"),
        ("10", "2"),
    ]


def test_seeds_are_named_once() -> None:
    with pytest.raises(TrafficError, match="either that or --seeds"):
        cases(STEP, ["spec.seed=1,2"], seeds=2)
    assert swept("--seeds", "2", "--seed", "3").returncode == 2
    assert swept("--seeds", "0").returncode == 2


# -- going on ------------------------------------------------------------------------------------


class Count:
    """How much is simulated, and how much was found."""

    def __init__(self) -> None:
        self.kept = self.simulated = 0
        self.damaged: list[Path] = []

    def begin(self, total: int, kept: int, damaged: Sequence[Path]) -> None:
        self.kept, self.damaged = kept, list(damaged)

    def finished(self, *, failed: bool) -> None:
        self.simulated += 1


def counted(out: Path, *settings: str, seeds: int | None = None, file: Path = STEP) -> Count:
    count = Count()
    sweep(cases(file, settings, seeds=seeds), 1, out=out, watcher=count)
    return count


def test_what_was_simulated_is_not_simulated_again(tmp_path: Path) -> None:
    first = counted(tmp_path, "spec.traffic.step.rps=5,-1,10")
    assert (first.kept, first.simulated) == (0, 3)
    again = counted(tmp_path, "spec.traffic.step.rps=5,-1,10,20")
    assert (again.kept, again.simulated) == (2, 2)  # what failed is tried again


def test_another_file_or_seed_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "step.yaml"
    file.write_text(STEP.read_text())
    assert counted(tmp_path, file=file).simulated == 1
    assert counted(tmp_path, file=file).simulated == 0
    assert counted(tmp_path, file=file, seeds=2).simulated == 2
    file.write_text(STEP.read_text().replace("duration: 180s", "duration: 170s"))
    assert counted(tmp_path, file=file).simulated == 1


def test_a_damaged_marker_is_not_believed(tmp_path: Path) -> None:
    counted(tmp_path)
    (marker,) = (tmp_path / "runs").iterdir()
    marker.write_bytes(marker.read_bytes().replace(b'"requests":', b'"requests":1'))
    again = counted(tmp_path)
    assert (again.damaged, again.simulated) == ([marker], 1)


# -- being stopped -------------------------------------------------------------------------------


def alive(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, _, process_group = rest.split()[:3]
        if int(process_group) == group and state != "Z":
            found.append(name)
    return found


def wait_until_gone(group: int) -> None:
    """Those who end because another has ended need a moment."""
    for _ in range(1200):
        if not alive(group):
            return
        Event().wait(0.05)
    raise AssertionError(f"still there: {alive(group)}")


def begun(*arguments: str) -> "subprocess.Popen[str]":
    """A sweep whose runs take minutes, in a process group of its own, with its workers."""
    long = ("--set", "spec.duration=24h", "--set", "spec.traffic.step.rps=100")
    return subprocess.Popen(
        [sys.executable, "-m", "kubescene", "traffic", "sweep", str(STEP), *long, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_a_sweep_at_once_and_leaves_nobody_behind(tmp_path: Path, jobs: int) -> None:
    out = tmp_path / "out"
    process = begun("--seeds", "4", "--jobs", str(jobs), "--out", str(out))
    while not (out / "runs").exists() or len(alive(process.pid)) < jobs:
        assert process.poll() is None
        Event().wait(0.05)
    Event().wait(1)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "keeps 0 runs: the same command goes on from there" in told
    assert "Traceback" not in told
    wait_until_gone(process.pid)


def test_workers_end_with_whoever_sends_them_work(tmp_path: Path) -> None:
    process = begun("--seeds", "4", "--jobs", "2")
    while len(alive(process.pid)) < 3:
        assert process.poll() is None
        Event().wait(0.05)
    process.kill()
    process.communicate()
    wait_until_gone(process.pid)
