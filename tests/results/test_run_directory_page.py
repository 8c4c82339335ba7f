"""The page of the run directory has every member that runs write."""

import json
from pathlib import Path
from typing import Any

import pytest

import kubescene

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "run-directory.md").read_text()


def members(file: Path) -> set[str]:
    """What the lines of a file have, and what is in those parts that are described, too."""
    found: set[str] = set()
    for line in file.read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        for part in (row, row.get("result"), row.get("preemption")):
            found.update(part or ())
        for tried in (row.get("preemption") or {}).get("tried", ()):
            found.update(tried)
    return found


@pytest.mark.parametrize("example", ["01-first-scenario", "07-node-fails", "09-preemption"])
def test_every_member_is_described(example: str, tmp_path: Path) -> None:
    kubescene.run(ROOT / "examples" / example / "scenario.yaml", out=tmp_path)
    written = members(tmp_path / "timeline.jsonl") | members(tmp_path / "explanations.jsonl")
    written |= set(json.loads((tmp_path / "summary.json").read_text()))
    described = [name for name in written if f"`{name}`" in PAGE or f"`{name}[]`" in PAGE]
    assert sorted(written - {*described, "nodes"}) == []
