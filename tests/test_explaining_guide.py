"""The guide about explanations shows what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubescene.cli.app import app

GUIDE = Path(__file__).parent.parent / "docs/guides/explaining.md"


def test_every_command_prints_what_the_guide_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GUIDE.read_text()
    (scenario,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("tight.yaml").write_text(scenario)
    shown = re.findall(r"```console\n\$ kubescene ([^\n]*)\n(.*?)```", text, re.DOTALL)
    assert len(shown) == 3
    for command, expected in shown:
        done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "120"})
        assert done.exit_code == 0
        printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        assert printed.strip("\n") == expected.strip("\n"), command


def test_the_python_of_the_guide_prints_what_it_says() -> None:
    text = GUIDE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(GUIDE), "exec"), {})
    assert printed.getvalue() == text.split("prints\n\n```\n")[1].split("```")[0]
