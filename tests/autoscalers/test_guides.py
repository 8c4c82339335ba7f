"""What the guides to autoscalers show is what happens."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

from commands import kubescene
from kubescene.autoscalers.concurrency import ConcurrencySpec, read_spec

GUIDES = Path(__file__).parent.parent.parent / "docs/guides"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def printed(page: Path) -> str:
    """What all code of a page prints, one piece after the other."""
    names: dict[str, Any] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for code in blocks(page, "python"):
            exec(compile(code, str(page), "exec"), names)
    return out.getvalue()


def shown(page: Path) -> str:
    return page.read_text().split("prints\n\n```\n")[1].split("```")[0]


def test_the_vertical_guide_prints_what_it_says() -> None:
    page = GUIDES / "vertical-autoscaling.md"
    assert printed(page) == shown(page)


def test_the_sample_plugin_answers_what_its_guide_says() -> None:
    page = GUIDES / "autoscaler-plugins.md"
    assert printed(page) == shown(page)


def test_the_concurrency_autoscaler_of_the_guide_is_read() -> None:
    _, text = blocks(GUIDES / "autoscaler-plugins.md", "yaml")
    assert read_spec(text) == ConcurrencySpec(target=10, max_scale=20)


def test_the_sample_plugin_scales_the_run_of_its_guide(tmp_path: Path) -> None:
    page = GUIDES / "autoscaler-plugins.md"
    code, *_ = blocks(page, "python")
    scenario, _ = blocks(page, "yaml")
    (tmp_path / "my_module.py").write_text(code)
    (tmp_path / "run.yaml").write_text(scenario)
    command, *_ = re.findall(r"^\$ kubescene (traffic run .*)$", page.read_text(), re.M)
    done = kubescene(*command.split(), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["requests"] == 500
    assert "and one more" in kubescene(*command.split(), cwd=tmp_path).stdout
