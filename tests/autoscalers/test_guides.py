"""What the guides to autoscalers show is what happens."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

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
    [text] = blocks(GUIDES / "autoscaler-plugins.md", "yaml")
    assert read_spec(text) == ConcurrencySpec(target=10, max_scale=20)
