"""The guide about sweeps shows what happens."""

import contextlib
import io
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubescene.cli.app import app

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs/guides/sweeps.md"


def test_the_command_prints_what_the_guide_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GUIDE.read_text()
    monkeypatch.chdir(tmp_path)
    example = Path("examples/01-first-scenario/scenario.yaml")
    example.parent.mkdir(parents=True)
    shutil.copy(ROOT / example, example)
    contents = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    for name, content in zip(("spread", "pack"), contents, strict=True):
        Path(f"{name}.yaml").write_text(content)
    ((command, expected),) = re.findall(
        r"```console\n\$ kubescene (.*?)\n(.*?)```", text, re.DOTALL
    )
    done = CliRunner().invoke(app, [*command.split(), "--jobs", "1"])
    assert (done.exit_code, done.stdout) == (0, expected)


def test_the_python_prints_what_the_guide_says() -> None:
    text = GUIDE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(code, str(GUIDE), "exec"), {"__name__": "guide"})
    assert told.getvalue() == text.split("prints\n\n```\n")[1].split("```")[0]
