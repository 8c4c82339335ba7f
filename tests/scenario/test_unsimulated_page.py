"""The page about what is not simulated says what runs warn about."""

from pathlib import Path

from kubescene.scenario.fields.unsimulated_page import idle_kinds, not_simulated_page
from kubescene.scenario.validation.unsimulated import KINDS

PAGE = Path(__file__).parents[2] / "docs/reference/not-simulated.md"


def test_the_page_is_current(update: bool) -> None:
    if update:
        PAGE.write_text(not_simulated_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == not_simulated_page()


def test_a_kind_leaves_the_page_when_its_controller_comes() -> None:
    assert "StatefulSet" in idle_kinds(["deployment"])
    assert "StatefulSet" not in idle_kinds(["statefulset"])
    assert idle_kinds(KINDS.values()) == []
