"""The guide to a kube-scheduler of one's own says what happens."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kubescene.cli.app import app
from kubescene.outside.waiters import waiter_of
from kubescene.reports.explaining import OUTSIDE
from kubescene.runs.local import run
from kubescene.scenario import parse_spec
from kubescene.scenario.fields.table import OUTSIDE_CONTROLLER
from kubescene.scenario.outside import OutsideController, WaiterSpec
from kubescene.types import JsonObject
from real_programs import ROOT, require_program

GUIDE = ROOT / "docs/guides/outside-scheduler.md"


def blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [text for each, text in found if each == language]


def judged() -> JsonObject:
    document: JsonObject = yaml.safe_load(blocks("yaml")[0])
    return document


def test_its_declarations_are_without_fault() -> None:
    document = judged()
    document["spec"]["controllers"]["outside"] += yaml.safe_load(blocks("yaml")[1])["outside"]
    names = [each.name for each in parse_spec(document).outside]
    assert names == ["kube-scheduler", "kube-controller-manager", "databases"]


def test_its_waiter_can_be_asked() -> None:
    names: dict[str, Any] = {}
    exec(compile(blocks("python")[0], str(GUIDE), "exec"), names)
    found = waiter_of(
        OutsideController("x", waiter=WaiterSpec("databases")), {"databases": names["Databases"]}
    )
    assert found.name == "databases"


def test_what_it_says_of_defaults_is_in_the_table_of_fields() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for name, words in (
        ("timeout", "`timeout` (240 s"),
        ("attachTimeout", "`attachTimeout` (60 s"),
    ):
        field = OUTSIDE_CONTROLLER.member(name)
        assert field is not None
        assert field.default.removesuffix("s") in words
        assert words in text


def test_the_real_scheduler_does_what_ours_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = require_program("kube-scheduler")
    monkeypatch.chdir(tmp_path)
    Path("judged.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    Path("kube-scheduler").symlink_to(scheduler)
    (line,) = [each for each in blocks("") if "--out theirs" in each]
    arguments = re.fullmatch(r'kubescene (run \S+) --outside (\S+)="(.*)" (--out theirs)\n', line)
    assert arguments is not None
    command, name, program, out = arguments.groups()
    asked = [*command.split(), "--outside", f"{name}={program}", *out.split()]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    (shown,) = [each for each in blocks("") if each.startswith("Outside\n")]
    assert " ".join(shown.split()) in " ".join(result.stdout.split())
    ours = judged()
    del ours["spec"]["controllers"]["outside"]
    run(ours, out=tmp_path / "ours")
    compared = CliRunner().invoke(app, ["compare", "ours", "theirs"])
    assert compared.exit_code == 0, compared.output
    explained = CliRunner().invoke(app, ["explain", "pod", "web-0", "--run", "theirs"])
    assert OUTSIDE in " ".join(explained.stdout.split())
