"""One reader for what others wrote: whatever the text, JSON comes out or a `ReadingError`."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.text import yaml_text
from kubescene.api.text.reading import Bounds, Duplicate, JsonCheck, ReadingError, read_json
from kubescene.api.text.yaml_text import read_yaml

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


def check_object(text: str) -> Any:
    value = orjson.loads(text)
    JsonCheck(Bounds(), values=100_000).check(value)
    return value


def only(text: str | bytes, bounds: Bounds | None = None) -> Any:
    [document] = read_yaml(text, bounds)
    return document.value


READERS: list[Callable[[str], Any]] = [lambda text: read_json(text).value, only, check_object]
each_reader = pytest.mark.parametrize("read", READERS, ids=["json", "yaml", "objects"])


@each_reader
def test_two_hundred_levels_are_read(read: Callable[[str], Any]) -> None:
    value = read("[" * 200 + "]" * 200)
    for _ in range(199):
        [value] = value
    assert value == []


@each_reader
def test_one_level_more_is_refused(read: Callable[[str], Any]) -> None:
    with pytest.raises(ReadingError, match="nested deeper than 200 levels"):
        read("[" * 201 + "]" * 201)


@each_reader
def test_levels_that_hold_only_scalars_do_not_count(read: Callable[[str], Any]) -> None:
    assert read("[" * 200 + "1" + "]" * 200)


def test_levels_count_alike_where_a_closer_look_is_needed() -> None:
    deep = orjson.loads("[" * 199 + "]" * 199)
    JsonCheck(Bounds(), values=1000).check(["ä", deep])
    with pytest.raises(ReadingError, match="nested deeper than 200 levels"):
        JsonCheck(Bounds(), values=1000).check(["ä", [deep]])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="broken"),
        pytest.param("[NaN]", id="nan"),
        pytest.param("[1e999]", id="infinite"),
        pytest.param("[" + "9" * 5000 + "]", id="5,000 digits"),
        pytest.param('["\\ud800"]', id="lone surrogate"),
        pytest.param("['\ud800']", id="surrogate"),
        pytest.param(b'["\xff"]', id="not utf-8"),
        pytest.param("[" * 100_000, id="abyss"),
    ],
)
def test_json_that_is_none_is_refused(text: str | bytes) -> None:
    with pytest.raises(ReadingError):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        pytest.param("a: [", "did not find expected node", (2, 1), id="broken"),
        pytest.param("a: 1\nb: 1e999", "not a finite number", (2, 4), id="infinite"),
        pytest.param("a: !!float .inf", "not a finite number", (1, 4), id="infinity"),
        pytest.param("a: !!float x", "not a number or boolean: 'x'", (1, 4), id="no float"),
        pytest.param("a: !!int x", "not a number or boolean: 'x'", (1, 4), id="no integer"),
        pytest.param("a: !!int ''", "not a number or boolean: ''", (1, 4), id="empty integer"),
        pytest.param("a: !!bool x", "not a number or boolean: 'x'", (1, 4), id="no boolean"),
        pytest.param(f"a: {'9' * 5000}", "not a number or boolean: '9", (1, 4), id="5,000 digits"),
        pytest.param("a: 18446744073709551616", "too large a number", (1, 4), id="65 bits"),
        pytest.param("a: -9223372036854775809", "too large a number", (1, 4), id="-65 bits"),
        pytest.param("a: !!timestamp 2026-01-01", "constructor", (1, 4), id="timestamp"),
        pytest.param("a: !!timestamp x", "constructor", (1, 4), id="no timestamp"),
        pytest.param("a: !!binary aGk=", "constructor", (1, 4), id="binary"),
        pytest.param("a: !!set {x}", "constructor", (1, 4), id="set"),
        pytest.param("a: !!python/name:os.system", "constructor", (1, 4), id="python"),
        pytest.param("a: !!map x", "expected a mapping node", (1, 4), id="no map"),
        pytest.param("a: !!str {}", "expected a scalar node", (1, 4), id="no text"),
        pytest.param("a: *b", "undefined alias", (1, 4), id="no anchor"),
        pytest.param("a: &b {c: *b}", "the alias *b stands within itself", (1, 11), id="endless"),
        pytest.param('a: "\\ud800"', "Unicode", (1, 7), id="lone surrogate"),
        pytest.param("{a: 1, [1]: 2}", "unhashable key", (1, 8), id="list key"),
        pytest.param(b"a: \xff", "", (0, 0), id="not utf-8"),
        pytest.param("a: \x00", "", (0, 0), id="control character"),
        pytest.param("a: \ud800", "surrogates", (0, 0), id="surrogate"),
    ],
)
def test_yaml_that_is_no_json_is_refused_where_it_stands(
    text: str | bytes, problem: str, place: tuple[int, int]
) -> None:
    with pytest.raises(ReadingError) as caught:
        read_yaml(text)
    assert problem in caught.value.problem
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("key", ["1", "1.5", "true", "~", "null"])
def test_keys_are_text(key: str) -> None:
    with pytest.raises(ReadingError, match="is not text: put it in quotes") as caught:
        only(f"a:\n  b: 1\n  {key}: 2\n")
    assert (caught.value.line, caught.value.column) == (3, 3)


def test_keys_may_become_text_as_in_kubectl() -> None:
    keys = only("{1: a, 1.5: b, true: c, x: d}", Bounds(any_keys=True))
    assert keys == {"1": "a", "1.5": "b", "true": "c", "x": "d"}, "to Python, 1 is true"
    with pytest.raises(ReadingError, match="the key None is not text"):
        only("{~: a}", Bounds(any_keys=True))


def test_keys_given_twice_are_noted() -> None:
    assert read_json('{"a": {"b": 1, "b": 2}, "c": [{"d": 1, "d": 2}]}') == (
        {"a": {"b": 2}, "c": [{"d": 2}]},
        (Duplicate("a.b"), Duplicate("c[0].d")),
    )
    assert read_yaml("a: {b: 1,\n  b: 2}") == [({"a": {"b": 2}}, (Duplicate("b", 2, 3),))]


def test_integers_keep_every_digit() -> None:
    text = "[18446744073709551615, -9223372036854775808]"
    assert read_json(text).value == only(text) == [(1 << 64) - 1, -1 << 63]


def test_a_bomb_is_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml_text, "_KubernetesLoader")
    with pytest.raises(ReadingError, match="its aliases stand for more than 100000 values"):
        read_yaml(BOMB)


def test_a_bomb_of_merged_keys_is_refused() -> None:
    lines = ["a0: &a0 {x: 1}\n"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)]
    with pytest.raises(ReadingError, match="its aliases stand for more than"):
        read_yaml("".join(lines))


def test_aliases_count_with_all_that_they_stand_for() -> None:
    text = "a: &a [1, 2]\nb: [*a, *a]\n"
    assert only(text, Bounds(aliased=6)) == {"a": [1, 2], "b": [[1, 2], [1, 2]]}
    with pytest.raises(ReadingError, match="more than 5 values"):
        only(text, Bounds(aliased=5))


def test_aliases_count_with_the_depth_of_what_they_stand_for() -> None:
    text = "a: &a [[1]]\nb: [*a]\n"
    assert only(text, Bounds(depth=4))
    with pytest.raises(ReadingError, match="nested deeper than 3 levels"):
        only(text, Bounds(depth=3))


def test_shared_objects_count_with_their_depth_wherever_they_stand() -> None:
    shared: list[Any] = [[]]
    value = [shared, [shared]]
    JsonCheck(Bounds(depth=4), values=100).check(value)
    with pytest.raises(ReadingError, match="nested deeper than 3 levels"):
        JsonCheck(Bounds(depth=3), values=100).check(value)


def test_shared_objects_count_each_time() -> None:
    value = [[1, 2]] * 3
    JsonCheck(Bounds(), values=10).check(value)
    with pytest.raises(ReadingError, match="it holds 10 values, more than 9"):
        JsonCheck(Bounds(), values=9).check(value)


def test_objects_that_are_shared_again_and_again_are_refused_at_once() -> None:
    value: list[Any] = []
    for _ in range(100):
        value = [value, value]
    with pytest.raises(ReadingError, match="values, more than 1000"):
        JsonCheck(Bounds(), values=1000).check(value)


@pytest.mark.parametrize("key", [1, True, None, 1.5, b"a", "\ud800"])
def test_keys_of_objects_are_text(key: Any) -> None:
    with pytest.raises(ReadingError, match="key"):
        JsonCheck(Bounds(), values=100).check({"a": [{key: "b"}]})


@pytest.mark.parametrize(
    "value", [1 << 64, -(1 << 63) - 1, math.nan, math.inf, {1}, (1,), "\udfff"]
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(ReadingError, match=r"^a\[1\]\.b "):
        JsonCheck(Bounds(), values=100).check({"a": [1, {"b": value}]})


def test_anchors_end_with_their_document() -> None:
    assert [each.value for each in read_yaml("a: &a 1\n---\nb: &a 2\nc: *a\n")] == [
        {"a": 1},
        {"b": 2, "c": 2},
    ]
    with pytest.raises(ReadingError, match="undefined alias"):
        read_yaml("a: &a 1\n---\nc: *a\n")


def test_merged_keys_are_merged() -> None:
    assert only("{a: &a {x: 1, y: 2}, b: {<<: *a, y: 3}}")["b"] == {"x": 1, "y": 3}


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(scalars, inner, max_size=4),
    max_leaves=12,
)
words = (
    "a|&a |*a|!!int |!!map |!!float |!!binary |[|]|{|}|: |,|- |\n|  |<<|? |'|\\ud800|---\n|1|~|%|\0"
)
yaml_soup = st.lists(st.sampled_from(words.split("|")), max_size=20).map("".join)


@given(yaml_soup | st.text(max_size=40) | st.binary(max_size=40))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    with suppress(ReadingError):
        orjson.dumps(read_json(text).value)
    with suppress(ReadingError):
        orjson.dumps([document.value for document in read_yaml(text)])


@given(values)
def test_any_object_is_json_or_refused(value: Any) -> None:
    try:
        JsonCheck(Bounds(), values=1000).check(value)
    except ReadingError:
        return
    assert orjson.loads(orjson.dumps(value)) == value


@given(values)
def test_yaml_of_any_object_is_read_as_it_was_or_refused(value: Any) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    try:
        document = only(text)
    except ReadingError:
        return
    orjson.dumps(document)
