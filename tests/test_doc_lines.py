"""Documents are wrapped at 120 columns: to change a sentence is to change a line or two."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COLUMNS = 120
GENERATED = {"docs/reference/scenario.md", "docs/reference/expectations.md"}
PAGES = [
    page
    for page in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
    if page.relative_to(ROOT).as_posix() not in GENERATED
]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither code nor part of a table, nor one word that cannot be broken."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith("|") and " " in line.strip():
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_of_prose_is_longer_than_120_columns(page: Path) -> None:
    assert [at for at, line in prose(page.read_text()) if len(line) > COLUMNS] == []


def test_tables_and_code_may_be_wider() -> None:
    text = f"a\n| {'x' * 200} |\n```\n{'y ' * 100}\n```\n- {'z ' * 70}\n"
    assert [at for at, line in prose(text) if len(line) > COLUMNS] == [6]
