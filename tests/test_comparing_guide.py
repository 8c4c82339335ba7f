"""The guide about comparing shows what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kubescene.cli.app import app

GUIDE = Path(__file__).parent.parent / "docs/guides/comparing.md"
DIFFERENT = 1


def test_every_command_prints_what_the_guide_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GUIDE.read_text()
    monkeypatch.chdir(tmp_path)
    contents = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    for name, content in zip(("shop", "spread", "pack"), contents, strict=True):
        Path(f"{name}.yaml").write_text(content)
    ((command, expected),) = re.findall(
        r"```console\n\$ kubescene (.*?)\n(.*?)```", text, re.DOTALL
    )
    assert printed(command) == expected.strip("\n")
    (page,) = re.findall(r"```markdown\n(.*?)```", text, re.DOTALL)
    assert printed("compare out/a out/b --format markdown").startswith(page.strip("\n"))


def printed(command: str) -> str:
    done = CliRunner().invoke(app, command.split(), env={"COLUMNS": "120"})
    assert done.exit_code == DIFFERENT, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n")


def test_the_python_of_the_guide_prints_what_it_says() -> None:
    text = GUIDE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(compile(code, str(GUIDE), "exec"), {})
    assert told.getvalue() == text.split("prints\n\n```\n")[1].split("```")[0]
