"""The samples of examples/plugins in each of the ways a plugin can be brought along."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

import kubescene
from kubescene.testing import make_node, make_pod

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "examples/plugins"
GUIDE = ROOT / "docs/guides/plugins.md"

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "node-number"
version = "1.0"

[project.entry-points."kubescene.plugins"]
NodeNumber = "node_number:NodeNumber"

[tool.hatch.build.targets.wheel]
include = ["node_number.py"]
"""


def scenario(tmp_path: Path) -> Path:
    built = kubescene.ScenarioBuilder("samples")
    built.create(*(make_node(f"node-{number}").cpu("4").memory("8Gi") for number in range(4)))
    built.step(2).create(make_pod("pod-3").cpu("100m"))
    built.step(3).create(make_pod("pod-2").cpu("100m")).done()
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(built.build()))
    return file


def configuration() -> str:
    """The one that the guide shows."""
    return dedent(GUIDE.read_text().split("```yaml\n")[1].split("```")[0])


def placed(tmp_path: Path, *options: str, path: Path | None = None) -> dict[str, str]:
    """Where the command line puts the pods."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "kubescene", "run", str(scenario(tmp_path)), "--out", str(out)]
    environment = dict(os.environ)
    if path is not None:
        known = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = f"{path}{os.pathsep}{known}" if known else str(path)
    done = subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        cwd=SAMPLES,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    summary = yaml.safe_load((out / "summary.json").read_text())
    return {each["pod"].split("/")[-1]: each["node"] for each in summary["placements"]}


def test_by_module_and_class(tmp_path: Path) -> None:
    found = placed(tmp_path, "--plugin", "node_number:NodeNumber")
    assert found == {"pod-3": "node-3", "pod-2": "node-2"}


def test_both_samples_at_once(tmp_path: Path) -> None:
    options = ("--plugin", "node_number:NodeNumber", "--plugin", "headroom:Headroom")
    assert placed(tmp_path, *options)["pod-3"] == "node-3"


def test_by_configuration_with_arguments(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(configuration())
    options = ("--plugin", "node_number:NodeNumber", "--scheduler-config", str(file))
    found = placed(tmp_path, *options)
    assert found["pod-3"] != "node-3"
    assert found["pod-2"] != "node-2"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which a tiny package was really built and installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("target")
    (source / "pyproject.toml").write_text(PYPROJECT)
    (source / "node_number.py").write_text((SAMPLES / "node_number.py").read_text())
    command = [sys.executable, "-m", "pip", "install", str(source), "--target", str(target)]
    quiet = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet")
    done = subprocess.run([*command, *quiet], capture_output=True, text=True, check=False)
    if done.returncode and "No module named pip" in done.stderr:
        pytest.skip("this Python has no pip")
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.xdist_group("installed-sample")
def test_by_entry_point_of_an_installed_package(tmp_path: Path, installed: Path) -> None:
    found = placed(tmp_path, "--plugin", "NodeNumber", path=installed)
    assert found == {"pod-3": "node-3", "pod-2": "node-2"}


@pytest.mark.xdist_group("installed-sample")
def test_an_entry_point_can_be_named_in_a_configuration(tmp_path: Path, installed: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(configuration().replace("reverse: true", "reverse: false"))
    found = placed(tmp_path, "--scheduler-config", str(file), path=installed)
    assert found == {"pod-3": "node-3", "pod-2": "node-2"}
