"""What the guides to operators of your own show is what there is."""

import json
import re
import shlex
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from commands import started
from kubescene.apiserver.server import Server
from kubescene.cli.app import app
from real_programs import ROOT, SOURCES

GO = ROOT / "docs/guides/outside-go.md"
PYTHON = ROOT / "docs/guides/outside-python.md"


def blocks(guide: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", guide.read_text(), re.DOTALL)


def test_the_go_code_is_that_of_the_operator() -> None:
    sources = "".join(file.read_text() for file in sorted((SOURCES / "operator").glob("*.go")))
    shown = [block for block in blocks(GO, "go") if not block.startswith("// Command loop")]
    assert len(shown) == 5
    for line in "".join(shown).splitlines():
        assert line in sources.splitlines(), line


def test_the_loop_is_shown_as_a_whole() -> None:
    assert (SOURCES / "loop" / "main.go").read_text() in blocks(GO, "go")


def test_the_scenario_is_one(tmp_path: Path) -> None:
    (scenario,) = blocks(GO, "yaml")
    file = tmp_path / "fan-out.yaml"
    file.write_text(scenario)
    assert app(["validate", str(file)], standalone_mode=False) in (None, 0)


def test_the_request_is_answered_as_shown() -> None:
    (shown,) = re.findall(
        r"^curl .* -d '(.*)' http://127.0.0.1:8001(\S+)\n(.*)$", GO.read_text(), re.M
    )
    body, path, answer = shown
    headers = {"Content-Type": "application/json"}
    with Server(port=0) as server:
        request = Request(server.url + path, body.encode(), headers)
        assert json.loads(urlopen(request).read()) == json.loads(answer)


def test_the_operator_of_the_example_plays_in_its_scenario(tmp_path: Path) -> None:
    pytest.importorskip("kopf", reason="kopf is not installed: pip install kopf")
    (command,) = re.findall(r"^kubescene (run fan-out.yaml .*)$", PYTHON.read_text(), re.M)
    words = [word.replace("python ", f"{sys.executable} ") for word in shlex.split(command)]
    done = started(*words, "--out", tmp_path / "out", cwd=ROOT / "examples" / "outside-python")
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, (tmp_path / "out" / "timeline.jsonl").read_text().splitlines()[1:])
    made = [each["name"] for each in lines if each["fact"] == "ObjectCreated"]
    assert made == ["seeds", "seeds-0", "seeds-1", "seeds-2"]


def test_the_python_code_is_python() -> None:
    pytest.importorskip("kopf", reason="kopf is not installed: pip install kopf")
    handler, loop = blocks(PYTHON, "python")
    world: dict[str, object] = {}
    exec(compile(handler + loop, str(PYTHON), "exec"), world)
    assert callable(world["fan_out"])
    assert callable(world["work"])
