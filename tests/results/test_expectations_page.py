"""The reference of expectations says what there is; what it shows compiles."""

from pathlib import Path

import yaml

from kubescene.results.expectations import faults_of
from kubescene.results.expectations.reference import reference_page
from kubescene.scenario.expectations import expectations_of

PAGE = Path(__file__).parents[2] / "docs/reference/expectations.md"


def test_the_page_is_current(update: bool) -> None:
    if update:
        PAGE.write_text(reference_page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference_page()


def test_what_it_shows_compiles() -> None:
    text = reference_page().partition("```yaml\n")[2].partition("```")[0]
    expected = expectations_of(yaml.safe_load(text))
    assert len(expected) == 2
    assert list(faults_of(expected)) == []
