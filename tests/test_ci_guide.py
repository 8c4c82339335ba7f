"""The guide and the workflow for CI: what a runner of GitHub would do, step by step."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import parse

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples/ci"
WORKFLOW = FOLDER / ".github/workflows/scenarios.yml"
MATCHER = FOLDER / ".github/kubescene.json"
GUIDE = ROOT / "docs/guides/ci.md"
PLUGIN = "kubescene.testing.pytest_plugin"


def steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    found: list[dict[str, Any]] = workflow["jobs"]["scenarios"]["steps"]
    return found


class Runner:
    """Does the steps of a job as GitHub's runner does, but for what it would install."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: dict[str, str] = {}
        self.codes: dict[str, int] = {}
        tools = folder.parent / "bin"
        tools.mkdir()
        self._link(tools / "kubescene", "kubescene")
        self._link(tools / "pytest", "pytest")
        self._environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        if not any(each.value == PLUGIN for each in entry_points(group="pytest11")):
            self._environment["PYTEST_PLUGINS"] = PLUGIN

    def _link(self, file: Path, module: str) -> None:
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        file.chmod(0o755)

    def run(self) -> bool:
        """Whether the job is green."""
        for step in steps():
            if "run" in step and "pip install" not in step["run"] and self._is_due(step):
                self._do(step)
        return not any(self.codes.values())

    def _is_due(self, step: dict[str, Any]) -> bool:
        condition = step.get("if", "success()")
        return "failure()" in condition or condition == "always()" or not any(self.codes.values())

    def _do(self, step: dict[str, Any]) -> None:
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.said[step["name"]] = done.stdout + done.stderr
        self.codes[step["name"]] = done.returncode


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    folder = tmp_path / "repository"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("results", "__pycache__"))
    return Runner(folder)


def suites(folder: Path) -> dict[str, dict[str, str]]:
    """The outcome of every case of every scenario."""
    found = {}
    for file in sorted(folder.glob("results/*/junit.xml")):
        for suite in parse(file).getroot():
            cases = suite.iter("testcase")
            found[suite.attrib["name"]] = {
                case.attrib["name"]: ",".join(each.tag for each in case) for case in cases
            }
    return found


def test_the_workflow_is_green(runner: Runner) -> None:
    assert runner.run(), runner.said
    found = suites(runner.folder)
    assert set(found) == {"maintenance", "release"}
    assert len(found["release"]) == 6
    assert not any(outcome for cases in found.values() for outcome in cases.values())
    assert (runner.folder / "results/release/summary.json").exists()
    root = parse(runner.folder / "results/pytest.xml").getroot()
    assert sum(1 for _ in root.iter("testcase")) == 10


def test_an_expectation_that_does_not_hold_makes_it_red(runner: Runner) -> None:
    file = runner.folder / "scenarios/release.scenario.yaml"
    file.write_text(
        file.read_text().replace("replicas: 8", "").replace('"replicas": 8', '"replicas": 80')
    )
    assert not runner.run()
    assert runner.codes["Play the scenarios"] == 3
    assert runner.codes["The same scenarios, and tests in Python, with pytest"] == 1
    found = suites(runner.folder)
    assert found["release"]["every pod has a node"] == "failure"
    assert set(found["maintenance"].values()) == {""}
    pattern = json.loads(MATCHER.read_text())["problemMatcher"][0]["pattern"][0]
    lines = runner.said["Play the scenarios"].splitlines()
    matches = [match for line in lines if (match := re.match(pattern["regexp"], line))]
    told = {match[pattern["message"]].partition(" does not")[0] for match in matches}
    assert "expectation 'every pod has a node'" in told
    assert {match[pattern["file"]] for match in matches} == {"scenarios/release.scenario.yaml"}


def test_a_typo_makes_it_red_before_anything_is_played(runner: Runner) -> None:
    file = runner.folder / "scenarios/release.scenario.yaml"
    file.write_text(file.read_text().replace("pending.size() == 0", "waiting.size() == 0"))
    assert not runner.run()
    assert runner.codes["Check the files"] == 2
    assert "Play the scenarios" not in runner.codes
    pattern = json.loads(MATCHER.read_text())["problemMatcher"][0]["pattern"][0]
    assert re.search(pattern["regexp"], runner.said["Check the files"], re.MULTILINE)


def test_the_guide_shows_the_files_as_they_are() -> None:
    text = GUIDE.read_text()
    assert f"```yaml\n{WORKFLOW.read_text()}```" in text
    assert f"```json\n{MATCHER.read_text()}```" in text


def test_the_guides_console_shows_what_happens(runner: Runner) -> None:
    shown = re.findall(r"```console\n\$ ([^\n]*)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(shown) == 2
    for command, expected in shown:
        runner._do({"name": command, "run": command})
        assert runner.codes[command] == 0
        for line in expected.splitlines():
            assert line in runner.said[command]


def test_the_guides_python_is_that_of_the_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code in (FOLDER / "tests/test_scheduling.py").read_text()


def test_every_step_has_a_name_and_every_job_few_rights() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert all("name" in step for step in steps() if "run" in step)
