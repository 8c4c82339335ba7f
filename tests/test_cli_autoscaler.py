"""``kubescene autoscaler`` and ``--autoscaler-process`` as a user types them."""

import json
import shlex
import sys
from pathlib import Path

from commands import kubescene
from plugin_commands import program

ROOT = Path(__file__).parents[1]
STEP = ROOT / "examples" / "traffic" / "step.yaml"
TEMPLATE = ROOT / "examples" / "autoscaler-plugin"


def marks(text: str) -> dict[str, str]:
    """Each check and its mark; columns are two spaces apart, at least."""
    rows = (line.split("  ") for line in text.splitlines())
    cells = ([each.strip() for each in row if each.strip()] for row in rows)
    return {row[1]: row[0] for row in cells}


def test_a_good_plugin_passes_every_check() -> None:
    done = kubescene("autoscaler", "check", program("served", "horizontal"))
    assert done.returncode == 0, done.stderr
    found = marks(done.stdout)
    assert found.pop("VerticalRecommendation") == "-"
    assert set(found.values()) == {"ok"}
    assert "it ends when it is told to" in found


def test_the_template_passes_every_check() -> None:
    command = shlex.join([sys.executable, "per_request.py"])
    done = kubescene("autoscaler", "check", command, cwd=TEMPLATE)
    assert done.returncode == 0, done.stderr
    assert "2 pods: 8 requests in flight, 4 for each pod" in done.stdout


def test_the_template_scales_its_run() -> None:
    command = shlex.join([sys.executable, "per_request.py"])
    done = kubescene(
        "traffic", "run", "run.yaml", "--autoscaler-process", command, "--json", cwd=TEMPLATE
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["requests"] == 30 * 170


def test_a_plugin_that_fails_a_check_is_code_1() -> None:
    done = kubescene("autoscaler", "check", program("behaving", "raises"))
    assert done.returncode == 1
    assert marks(done.stdout)["HorizontalRecommendation"] == "FAILED"
    assert "RuntimeError: no idea (its last words:" in done.stdout


def test_a_command_that_is_no_plugin_is_one_line_and_code_2() -> None:
    done = kubescene("autoscaler", "check", "/nowhere/at-all")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "autoscaler '/nowhere/at-all' at start: the command cannot be started" in done.stderr


def test_a_run_through_a_served_class_is_the_same_run() -> None:
    served = [sys.executable, "-m", "kubescene", "autoscaler", "serve"]
    command = shlex.join([*served, "kubescene.autoscalers.horizontal:HorizontalPlugin"])
    alone = kubescene("traffic", "run", str(STEP), "--json")
    done = kubescene("traffic", "run", str(STEP), "--json", "--autoscaler-process", command)
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone.stdout


def test_a_second_autoscaler_of_numbers_is_bad_input() -> None:
    command = program("behaving", "dies")
    done = kubescene("traffic", "run", str(STEP), "--quiet", "--autoscaler-process", command)
    assert done.returncode == 2
    assert "at most one autoscaler of a run can do HORIZONTAL_RECOMMENDATION" in done.stderr


def test_a_run_whose_plugin_dies_is_code_1() -> None:
    command = program("behaving", "dies")
    settings = ["--set", "spec.autoscalers=[]", "--autoscaler-process", command]
    done = kubescene("traffic", "run", str(STEP), "--quiet", *settings)
    assert done.returncode == 1, done.stderr
    assert "it exited with code 3 (its last words: asked for a number)" in done.stderr
