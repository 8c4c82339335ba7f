"""JSON merge patch and JSON patch: the vectors of the RFCs, kube-apiserver's library, properties.

``data/json_patch.jsonl.gz`` holds outcomes of gopkg.in/evanphx/json-patch.v4 v4.13.0, the library
of kube-apiserver v1.36, on generated patches of one document.
"""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.patching.patches import (
    MAX_DEPTH,
    PatchType,
    diff_merge_patch,
    json_patch,
    merge_patch,
    strategic_merge,
)
from kubescene.errors import ApiError, BadRequestError, InvalidError, RequestTooLargeError

DATA = Path(__file__).parents[1] / "data"

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"])
keys = st.sampled_from(["a", "b", "c"])


def json_values(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=12,
    )


values = json_values(scalars)
values_without_null = json_values(scalars.filter(lambda leaf: leaf is not None))
objects = st.dictionaries(keys, values, max_size=3)
objects_without_null = st.dictionaries(keys, values_without_null, max_size=3)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("member", list(PatchType), ids=lambda member: member.name)
def test_patch_type_is_parsed_from_media_type_and_word(member: PatchType) -> None:
    assert PatchType.parse(member.value) is member
    assert PatchType.parse(f"{member.value}; charset=utf-8") is member
    assert PatchType.parse(member.name.lower()) is member


def test_unknown_patch_type_lists_the_choices() -> None:
    with pytest.raises(ValueError, match=r"'yaml'.*json .*merge .*strategic .*apply "):
        PatchType.parse("yaml")


RFC7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "result"), RFC7386)
def test_merge_patch_gives_the_results_of_rfc7386(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_merge_patch_shares_what_it_does_not_touch() -> None:
    target = {"metadata": {"labels": {"a": "1"}}, "spec": {"x": [1]}}
    result = merge_patch(target, {"metadata": {"labels": {"a": "2"}}})
    assert result["spec"] is target["spec"]
    assert result["metadata"] is not target["metadata"]


@pytest.mark.parametrize("patch", [{}, {"a": {"b": [1]}}, {"z": None}, {"a": {"z": None}}])
def test_merge_patch_without_effect_returns_the_target_itself(patch: Any) -> None:
    target = {"a": {"b": [1]}}
    assert merge_patch(target, patch) is target


@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (1, 1.0), ([0], [False]), ({"a": 1}, {"a": True})]
)
def test_equal_in_python_is_not_equal_in_json(old: Any, new: Any) -> None:
    patched = merge_patch({"x": old}, diff_merge_patch({"x": old}, {"x": new}))
    assert json.dumps(patched) == json.dumps({"x": new})


def test_diff_is_minimal() -> None:
    old = {"a": {"b": 1, "c": [1, 2]}, "gone": 1, "kept": {"x": 1}}
    new = {"a": {"b": 2, "c": [1, 2]}, "kept": {"x": 1}, "came": {}}
    assert diff_merge_patch(old, new) == {"a": {"b": 2}, "came": {}, "gone": None}


@settings(deadline=None, max_examples=200)
@given(old=values, new=values_without_null)
def test_diff_then_merge_gives_the_new_value(old: Any, new: Any) -> None:
    assert json.dumps(merge_patch(old, diff_merge_patch(old, new)), sort_keys=True) == json.dumps(
        new, sort_keys=True
    )


@settings(deadline=None, max_examples=200)
@given(target=values, patch=values)
def test_merge_patch_is_idempotent_and_pure(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) is once
    assert (target, patch) == before


@settings(deadline=None, max_examples=200)
@given(target=objects, patch=objects_without_null)
def test_strategic_merge_without_schema_is_a_merge_patch(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert strategic_merge(target, patch, None) == merge_patch(target, patch)
    assert (target, patch) == before


RFC6902 = {
    "A1 adding an object member": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"baz": "qux", "foo": "bar"},
    ),
    "A2 adding an array element": (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    "A3 removing an object member": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "remove", "path": "/baz"}],
        {"foo": "bar"},
    ),
    "A4 removing an array element": (
        {"foo": ["bar", "qux", "baz"]},
        [{"op": "remove", "path": "/foo/1"}],
        {"foo": ["bar", "baz"]},
    ),
    "A5 replacing a value": (
        {"baz": "qux", "foo": "bar"},
        [{"op": "replace", "path": "/baz", "value": "boo"}],
        {"baz": "boo", "foo": "bar"},
    ),
    "A6 moving a value": (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    "A7 moving an array element": (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    "A8 testing a value: success": (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [
            {"op": "test", "path": "/baz", "value": "qux"},
            {"op": "test", "path": "/foo/1", "value": 2},
        ],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    "A9 testing a value: error": (
        {"baz": "qux"},
        [{"op": "test", "path": "/baz", "value": "bar"}],
        InvalidError,
    ),
    "A10 adding a nested member object": (
        {"foo": "bar"},
        [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        {"foo": "bar", "child": {"grandchild": {}}},
    ),
    "A11 ignoring unrecognized elements": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        {"foo": "bar", "baz": "qux"},
    ),
    "A12 adding to a nonexistent target": (
        {"foo": "bar"},
        [{"op": "add", "path": "/baz/bat", "value": "qux"}],
        InvalidError,
    ),
    "A14 ~ escape ordering": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": 10}],
        {"/": 9, "~1": 10},
    ),
    "A15 comparing strings and numbers": (
        {"/": 9, "~1": 10},
        [{"op": "test", "path": "/~01", "value": "10"}],
        InvalidError,
    ),
    "A16 adding an array value": (
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        {"foo": ["bar", ["abc", "def"]]},
    ),
}


@pytest.mark.parametrize(("target", "operations", "result"), RFC6902.values(), ids=RFC6902)
def test_json_patch_gives_the_results_of_rfc6902(target: Any, operations: Any, result: Any) -> None:
    if isinstance(result, type):
        with pytest.raises(result):
            json_patch(target, operations)
    else:
        assert json_patch(target, operations) == result


def _outcome(target: Any, operations: Any) -> dict[str, Any]:
    try:
        return {"result": json_patch(target, operations)}
    except ApiError as error:
        return {"error": error.message, "code": error.code}


def _recorded() -> list[dict[str, Any]]:
    lines = gzip.decompress((DATA / "json_patch.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def test_json_patch_agrees_with_the_library_of_kube_apiserver() -> None:
    head, *cases = _recorded()
    document, before = head["document"], copy.deepcopy(head["document"])
    for case in cases:
        operations = copy.deepcopy(case["operations"])
        expected = {key: case[key] for key in ("result", "error", "code") if key in case}
        assert _outcome(document, operations) == expected, case["id"]
        assert (document, operations) == (before, case["operations"])
    assert len(cases) >= 300


def test_failed_test_says_which_value() -> None:
    with pytest.raises(InvalidError, match=r"^testing value /x failed: test failed$") as refusal:
        json_patch({"x": 1}, [{"op": "test", "path": "/x", "value": 2}])
    assert refusal.value.code == 422


@pytest.mark.parametrize(
    "operations",
    [None, {}, "text", [1], ["add"], [{"op": 1, "path": "/a"}], [{"op": "add", "path": 3}]],
)
def test_malformed_json_patch_is_a_bad_request(operations: Any) -> None:
    with pytest.raises(BadRequestError, match="json: cannot unmarshal "):
        json_patch({}, operations)


def test_too_many_operations_are_refused() -> None:
    operations = [{"op": "test", "path": "", "value": {}}] * 10_001
    message = "The allowed maximum operations in a JSON patch is 10000, got 10001"
    with pytest.raises(RequestTooLargeError, match=message):
        json_patch({}, operations)
    assert json_patch({}, operations[:-1]) == {}


def test_copies_cannot_grow_without_bound() -> None:
    grow = [{"op": "copy", "from": "/a", "path": f"/a/{n}"} for n in range(60)]
    with pytest.raises(InvalidError, match="Unable to complete the copy, the accumulated size"):
        json_patch({"a": {"x": "y" * 100}}, grow)


def test_patch_may_be_as_deep_as_the_bound_and_no_deeper() -> None:
    assert merge_patch({}, nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert strategic_merge({}, nested(MAX_DEPTH), None) == nested(MAX_DEPTH)


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 50_000])
def test_too_deep_patch_is_a_bad_request(levels: int) -> None:
    deep = nested(levels)
    with pytest.raises(BadRequestError, match="nested deeper than 200 levels"):
        merge_patch({}, deep)
    with pytest.raises(BadRequestError, match="nested deeper"):
        strategic_merge({}, deep, None)
    with pytest.raises(BadRequestError, match="nested deeper"):
        json_patch({}, [{"op": "add", "path": "/x", "value": deep}])


def test_json_patch_cannot_deepen_a_document_beyond_the_bound() -> None:
    half = nested(MAX_DEPTH // 2 + 1)
    path = "/a" * (MAX_DEPTH // 2)
    with pytest.raises(BadRequestError, match="nested deeper"):
        json_patch(half, [{"op": "add", "path": f"{path}/x", "value": half}])


class CountedDict(dict[str, Any]):
    """A dict that counts its copies."""

    copies = 0

    def copy(self) -> dict[str, Any]:
        CountedDict.copies += 1
        return dict(self)


def test_a_json_patch_copies_each_container_once() -> None:
    document = CountedDict(a=CountedDict(l=[1, 2, 3]))
    operations = [{"op": "add", "path": f"/a/k{number}", "value": number} for number in range(50)]
    operations += [{"op": "add", "path": "/a/l/-", "value": number} for number in range(50)]
    operations += [{"op": "remove", "path": "/a/l/0"}] * 50
    operations += [{"op": "replace", "path": "/a/k1", "value": 5}] * 50
    CountedDict.copies = 0
    result = json_patch(document, operations)
    assert CountedDict.copies == 2
    assert len(result["a"]["l"]) == 3
    assert document == {"a": {"l": [1, 2, 3]}}


@pytest.mark.parametrize("first", [[], [{"op": "add", "path": "/a/b/y", "value": 1}]])
def test_a_copied_value_goes_its_own_way(first: list[dict[str, Any]]) -> None:
    copied = {"op": "copy", "from": "/a", "path": "/c"}
    changed = {"op": "add", "path": "/a/b/x", "value": 1}
    result = json_patch({"a": {"b": {}}}, [*first, copied, changed])
    assert "x" in result["a"]["b"]
    assert "x" not in result["c"]["b"]
