"""Template files: what Go's text/template makes of them, as far as it is used."""

from pathlib import Path

import pytest

from kubescene.benchmarks.templates import ObjectTemplate
from kubescene.errors import WorkloadError


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (".Index", 7),
        (".Count", 20),
        ("AddInt .Index 3", 10),
        ("SubtractInt .Index 10", -3),
        ("MultiplyInt .Index .Count", 140),
        ("DivideInt .Count 3", 6),
        ("DivideInt (SubtractInt 0 7) 2", -3),
        ("Mod .Index 4", 3),
        ("Mod (AddInt .Index 1) 4", 0),
        ("DivideFloat .Index 2", 3.5),
        ("MultiplyFloat .Index 2", 14),
        ("AddFloat 0.5 1", 1.5),
    ],
)
def test_actions_are_filled_in(action: str, shown: float) -> None:
    filled = ObjectTemplate("a: {{" + action + "}}", "t.yaml").fill(7, 20)
    assert filled == {"a": shown}


def test_blanks_around_an_action_may_be_trimmed() -> None:
    assert ObjectTemplate("a: x-{{- .Index -}}-y", "t.yaml").fill(3) == {"a": "x-3-y"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {{if .Index}}", "'if' is not known"),
        ("a: {{.Name}}", "'.Name' is not known"),
        ("a: {{Mod .Index}}", "an operand is missing"),
        ("a: {{Mod .Index 0}}", "t.yaml"),
        ("a: {{(.Index}}", "a bracket is not closed"),
        ("a: {{.Index .Count}}", "nothing is expected before"),
        ('a: {{printf "%d" .Index}}', "is not understood"),
        ("a: [", "t.yaml"),
        ("[]", "one object"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_the_file(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=r"t\.yaml") as caught:
        ObjectTemplate(text, "t.yaml").fill()
    assert message in str(caught.value)


def test_a_template_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"gone\.yaml cannot be read"):
        ObjectTemplate.load(tmp_path / "gone.yaml")
