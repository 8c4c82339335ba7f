"""The page about measures is the one that the measures make."""

from pathlib import Path

from kubescene.results.measures import ALL
from kubescene.results.measures.reference import SECTIONS, page

PAGE = Path(__file__).parents[2] / "docs/reference/measures.md"


def test_the_page_is_current(update: bool) -> None:
    if update:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_measure_is_on_it_in_one_sentence() -> None:
    told = [measure for _, _, measures in SECTIONS for measure in measures]
    assert {measure.name for measure in told} == {measure.name for measure in ALL}
    for measure in told:
        assert measure.meaning.endswith(".")
        assert ". " not in measure.meaning
        assert measure.formula
        assert measure.unit
