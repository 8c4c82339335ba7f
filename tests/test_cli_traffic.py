"""``kubescene traffic run`` as a user types it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from commands import kubescene
from kubescene.cli.traffic.playing import Interruption, tell
from kubescene.traffic import run

ROOT = Path(__file__).parents[1]
STEP = ROOT / "examples" / "traffic" / "step.yaml"


def traffic_run(*arguments: str, cwd: Path | None = None) -> CompletedProcess[str]:
    return kubescene("traffic", "run", *arguments, cwd=cwd)


def test_a_run_is_shown_and_written(tmp_path: Path) -> None:
    done = traffic_run(str(STEP), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "step  SLO missed" in done.stdout
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == [
        "requests.npy",
        "story.jsonl",
        "summary.json",
        "traffic.yaml",
    ]
    again = traffic_run(str(tmp_path / "out" / "traffic.yaml"), "--json")
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert json.loads(again.stdout) == written


def test_settings_change_the_run() -> None:
    done = traffic_run(str(STEP), "--json", "--set", "spec.traffic.step.rps=20")
    assert json.loads(done.stdout)["summary"]["requests"] == 3400


def test_a_dash_is_standard_input() -> None:
    command = [sys.executable, "-m", "kubescene", "traffic", "run", "-", "--json"]
    done = subprocess.run(command, input=STEP.read_bytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["summary"] == json.loads(run(STEP).header())["summary"]


def test_an_autoscaler_that_is_refused_is_told_with_its_file_and_field() -> None:
    done = traffic_run(str(STEP), "--set", "spec.autoscalers.0.object.spec.maxReplicas=0")
    assert done.returncode == 2
    assert done.stderr.startswith(f"kubescene: {STEP}: spec.autoscalers[0]: HorizontalPodAuto")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "spec.statInterval=0s"], "spec.statInterval: must be longer than 0s"),
        (["--set", "spec.traffic.pattern=waves"], "spec.traffic.pattern: Invalid enum value"),
        (["--autoscaler", "nothing"], "autoscaler 'nothing' must be written as module:Class"),
    ],
)
def test_bad_input_is_one_line_and_code_2(arguments: list[str], told: str) -> None:
    done = traffic_run(str(STEP), *arguments)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert told in done.stderr


def test_the_input_is_never_written_over(tmp_path: Path) -> None:
    file = tmp_path / "traffic.yaml"
    file.write_bytes(STEP.read_bytes())
    done = traffic_run(str(file), "--out", str(tmp_path))
    assert done.returncode == 2
    assert "would write over" in done.stderr
    assert file.read_bytes() == STEP.read_bytes()


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_simulated(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    done = traffic_run(str(STEP), "--out", str(tmp_path / "file" / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "file/out cannot be written: Not a directory" in done.stderr


OWN = """
from kubescene.autoscalers import *


class Two(AutoscalerPlugin):
    types = ("two.example.com",)
    capabilities = frozenset({Capability.HORIZONTAL_RECOMMENDATION})

    def horizontal_recommendation(self, request):
        if request.time_nanos > 60 * 10**9 and FAIL:
            raise RuntimeError("my last words\\x1b[2J")
        return HorizontalRecommendationResponse(2, "always two")
"""


@pytest.mark.parametrize("fails", [False, True])
def test_an_autoscaler_of_the_users_own(tmp_path: Path, fails: bool) -> None:
    (tmp_path / "mine.py").write_text(f"FAIL = {fails}\n{OWN}")
    (tmp_path / "run.yaml").write_text(
        "apiVersion: kubescene.dev/v1alpha1\nkind: TrafficRun\nmetadata: {name: own}\nspec: {}\n"
    )
    done = traffic_run("run.yaml", "--autoscaler", "mine:Two", "--out", "out", cwd=tmp_path)
    if not fails:
        assert done.returncode == 0
        assert "always two" in done.stdout
        return
    assert done.returncode == 1
    assert (
        "'two.example.com' at HorizontalRecommendation: RuntimeError: my last words\\u001b[2J\n"
        in done.stderr
    )
    assert "\x1b" not in done.stderr + done.stdout
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["phase"] == "Failed"


def test_an_interruption_stops_the_run_and_a_second_one_the_program() -> None:
    interruption = Interruption()
    try:
        assert not interruption()
        signal.raise_signal(signal.SIGINT)
        assert interruption()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        interruption.over()
    result = run(STEP, cancelled=interruption)
    assert tell(result, as_json=False, quiet=True) == 130


def test_bad_input_leaves_an_earlier_run_as_it_was(tmp_path: Path) -> None:
    out, none = tmp_path / "out", tmp_path / "none"
    assert traffic_run(str(STEP), "--out", str(out)).returncode == 0
    before = {each.name: each.read_bytes() for each in out.iterdir()}
    wrong = ("--set", "spec.replicas.initial=many")
    assert traffic_run(str(STEP), *wrong, "--out", str(out)).returncode == 2
    assert {each.name: each.read_bytes() for each in out.iterdir()} == before
    assert traffic_run(str(STEP), *wrong, "--out", str(none)).returncode == 2
    assert not none.exists()
