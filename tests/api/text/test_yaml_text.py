"""What is built as it is read is what a closer look finds."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubescene.api.text import yaml_text
from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.api.text.yaml_text import UNUSUAL, read_plain, read_yaml

EXAMPLES = sorted(
    path
    for path in Path(__file__).parents[3].glob("examples/*/*.yaml")
    if b" &" not in path.read_bytes()
)
WORDS = st.one_of(
    st.sampled_from(["a", "b:", "-", "?", ":", "~", "null", "true", "yes", "=", "<<", "<<:", "é"]),
    st.sampled_from(["1", "0x1f", "1e3", "1_0", "12:30", "2001-01-01", "9" * 20, ".inf"]),
    st.sampled_from(["*x", "&x", "!t", "!!str", "'q'", '"\\ud800"', '"\\u00e9"', "{a: 1, a: 2}"]),
    st.sampled_from(["[", "]", "{", "}", ",", "#", "|", ">", "---", "...", "%YAML"]),
)
SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\n- ", ": ", "\t"])
TEXTS = st.lists(st.tuples(WORDS, SPACES), max_size=12).map(
    lambda parts: "".join(word + space for word, space in parts)
)
JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def outcome(read: Any, text: str, bounds: Bounds) -> object:
    try:
        return repr(read(text, bounds))
    except (ReadingError, yaml.YAMLError, UnicodeError) as error:
        return str(error)


def closely(text: str, bounds: Bounds) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_text, "read_plain", lambda *_, **__: UNUSUAL)
        return read_yaml(text, bounds)


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.integers(1, 5))
@example("a: 1\nb: {c: [1, 2, {d: }]}\n---\n- x\n", 5)
@example("a: {a: {a: 1}}", 2)
@example("? [a]\n: 1", 5)
def test_any_text_is_what_a_closer_look_finds(text: str, depth: int) -> None:
    bounds = Bounds(depth=depth, any_keys=True)
    assert outcome(read_yaml, text, bounds) == outcome(closely, text, bounds)


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_values_come_back(value: Any) -> None:
    assert outcome(read_yaml, yaml_text.dump_yaml(value), Bounds()) == outcome(
        closely, yaml_text.dump_yaml(value), Bounds()
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_examples_need_no_closer_look(path: Path) -> None:
    built = read_plain(
        path.read_bytes(), yaml_text._Loader, depth=200, scalar=yaml_text._plain_value
    )
    assert built is not UNUSUAL
    assert [each.value for each in closely(path.read_text(encoding="utf-8"), Bounds())] == built


@pytest.mark.parametrize(
    "text",
    ["&x a", "*x", "!!str 1", "1: a", "a: 1\na: 2", "<<: {a: 1}", "[a]: b", "{{", "=", '"\\ud800"'],
)
def test_what_is_unusual_is_looked_at_closely(text: str) -> None:
    built = read_plain(text, yaml_text._Loader, depth=9, scalar=yaml_text._plain_value)
    assert built is UNUSUAL
