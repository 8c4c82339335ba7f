"""Strategic merge against the real apimachinery, and the rules one by one.

``data/strategic.jsonl.gz`` holds outcomes of ``strategicpatch.StrategicMergePatch`` v0.36.6 on
generated objects and patches: plain fields, all directives, faulty patches, and the two-way and
three-way patches that kubectl makes. Only outcomes that do not depend on Go's map order are kept.
``data/strategic_types.json`` holds the merge keys of the five kinds, read from the Go struct tags:
type, field, then strategies, merge key and element type.
"""

import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.patching.patches import FieldInfo, TypeRef, strategic_merge
from kubescene.api.patching.strategic import _insertion_sorted, _itself, merge_objects, same
from kubescene.errors import ApiError, BadRequestError, InternalError, InvalidError
from kubescene.types import JsonObject

DATA = Path(__file__).parents[1] / "data"
DELETE = {"$patch": "delete"}


@dataclass(frozen=True, slots=True)
class Table:
    """A type of a table: type name → field name → (strategies, merge key, element type name)."""

    types: dict[str, dict[str, Any]]
    name: str

    def field(self, name: str) -> FieldInfo:
        strategies, merge_key, element = self.types[self.name].get(name, ((), "", ""))
        return FieldInfo(
            tuple(strategies), merge_key, Table(self.types, element) if element else None
        )


PODS: dict[str, dict[str, Any]] = {
    "Pod": {"metadata": ((), "", "Meta"), "spec": ((), "", "PodSpec")},
    "Meta": {"finalizers": (("merge",), "", "")},
    "PodSpec": {
        "containers": (("merge",), "name", "Container"),
        "volumes": (("merge", "retainKeys"), "name", "Volume"),
        "strategy": (("retainKeys",), "", ""),
        "replaced": (("replace",), "", ""),
    },
    "Container": {
        "ports": (("merge",), "containerPort", ""),
        "env": (("merge",), "name", ""),
    },
    "Volume": {},
}
POD: TypeRef = Table(PODS, "Pod")


def patch_spec(spec: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = strategic_merge({"spec": spec}, {"spec": patch}, POD)["spec"]
    return result


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def names(containers: list[dict[str, Any]]) -> str:
    return " ".join(container["name"] for container in containers)


def _recorded() -> list[dict[str, Any]]:
    lines = gzip.decompress((DATA / "strategic.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def _outcome(case: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    try:
        table = Table(types, case["kind"])
        return {"result": strategic_merge(case["original"], case["patch"], table)}
    except ApiError as error:
        return {"error": error.message, "code": error.code}


def test_agrees_with_apimachinery() -> None:
    types = json.loads((DATA / "strategic_types.json").read_text())
    cases = _recorded()
    for case in cases:
        before = copy.deepcopy(case)
        expected = {key: case[key] for key in ("result", "error", "code") if key in case}
        assert _outcome(case, types) == expected, case["id"]
        assert case == before, f"{case['id']} changed its input"
    assert len(cases) >= 300
    assert sum("error" in case for case in cases) >= 50


def test_merges_list_elements_by_merge_key() -> None:
    spec = {"containers": [{"name": "a", "image": "1", "ports": [{"containerPort": 80}]}]}
    patch = {"containers": [{"name": "a", "image": "2", "ports": [{"containerPort": 81}]}]}
    ports = [{"containerPort": 81}, {"containerPort": 80}]
    assert patch_spec(spec, patch) == {"containers": [{"name": "a", "image": "2", "ports": ports}]}


def test_atomic_list_is_replaced() -> None:
    spec = {"tolerations": [{"key": "a"}, {"key": "b"}]}
    assert patch_spec(spec, {"tolerations": [{"key": "c"}]}) == {"tolerations": [{"key": "c"}]}


def test_unchanged_target_is_returned_itself() -> None:
    target = {"spec": {"containers": [{"name": "a", "image": "1"}]}}
    patch = {"spec": {"containers": [{"name": "a", "image": "1"}], "gone": None}}
    assert strategic_merge(target, patch, POD) is target
    assert strategic_merge(target, None, POD) is target


def test_untouched_elements_are_shared() -> None:
    target = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "status": {}}
    result = strategic_merge(target, {"spec": {"containers": [{"name": "b", "image": "2"}]}}, POD)
    assert result["status"] is target["status"]
    assert result["spec"]["containers"][0] is target["spec"]["containers"][0]


def test_scalar_list_is_a_union_and_deletes_by_its_parallel_list() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(target, patch, POD) == {"metadata": {"finalizers": ["c", "b"]}}


def test_scalar_both_added_and_deleted_is_deleted() -> None:
    target = {"metadata": {"finalizers": ["a"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["c"], "finalizers": ["c"]}}
    assert strategic_merge(target, patch, POD) == {"metadata": {"finalizers": ["a"]}}


def test_retain_keys_drops_the_other_fields() -> None:
    spec = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert patch_spec(spec, patch) == {"strategy": {"type": "Recreate"}}


MAP_DIRECTIVES = {
    "replace": ({"m": {"a": 1}}, {"m": {"$patch": "replace", "b": 2}}, {"m": {"b": 2}}),
    "delete": ({"m": {"a": 1}}, {"m": {"$patch": "delete"}}, {"m": {}}),
    "delete of what is absent": ({}, {"m": {"$patch": "delete"}}, {}),
    "replace strategy": ({"replaced": {"a": 1}}, {"replaced": {"b": 2}}, {"replaced": {"b": 2}}),
    "null": ({"m": 1, "n": 2}, {"m": None}, {"n": 2}),
    "new value sheds nulls": ({}, {"m": {"a": None, "b": [{"c": None}]}}, {"m": {"b": [{}]}}),
}


@pytest.mark.parametrize(("spec", "patch", "result"), MAP_DIRECTIVES.values(), ids=MAP_DIRECTIVES)
def test_directive_in_a_map(spec: Any, patch: Any, result: Any) -> None:
    assert patch_spec(spec, patch) == result


ORDERS = {
    "added goes first": ("a b", {"containers": named("c")}, "c a b"),
    "delete": ("a b c", {"containers": [{"name": "b", "$patch": "delete"}]}, "a c"),
    "replace": ("a b", {"containers": [{"$patch": "replace"}, {"name": "z"}]}, "z"),
    "order alone": ("a b c", {"$setElementOrder/containers": named("c", "b", "a")}, "c b a"),
    "server-only keeps its place": (
        "a sidecar b",
        {"$setElementOrder/containers": named("a", "b", "c"), "containers": named("c")},
        "a sidecar b c",
    ),
    "added takes the place of deleted": (
        "a b sidecar",
        {
            "$setElementOrder/containers": named("a", "c"),
            "containers": [{"name": "c"}, {"name": "b", "$patch": "delete"}],
        },
        "a sidecar c",
    ),
}


@pytest.mark.parametrize(("before", "patch", "after"), ORDERS.values(), ids=ORDERS)
def test_order_of_elements(before: str, patch: Any, after: str) -> None:
    spec = {"containers": named(*before.split())}
    assert names(patch_spec(spec, patch)["containers"]) == after


REFUSALS: dict[str, tuple[Any, type[ApiError], str]] = {
    "no merge key": (
        {"containers": [{"image": "x", "tty": True}]},
        InternalError,
        "map: map[image:x tty:true] does not contain declared merge key: name",
    ),
    "unknown directive": (
        {"containers": [{"name": "a", "$patch": "frob"}]},
        InternalError,
        "unknown patch type: frob in map: map[$patch:frob name:a]",
    ),
    "elements of two types": (
        {"containers": [[]]},
        InternalError,
        "list element types are not identical: [[map[name:a]] [[]]]",
    ),
    "null element": (
        {"containers": [None]},
        InternalError,
        "list element types are not identical: [[map[name:a]] [<nil>]]",
    ),
    "retainKeys forgets a field": (
        {"m": {"x": 1}, "$retainKeys": ["containers"]},
        BadRequestError,
        "invalid patch format of retainKeys",
    ),
    "nameless order": (
        {"$setElementOrder": []},
        BadRequestError,
        "invalid patch format of setElementOrder list",
    ),
    "nameless deletion": (
        {"$deleteFromPrimitiveList": []},
        BadRequestError,
        "invalid patch format of primitive list",
    ),
    "order of another type": (
        {"$setElementOrder/containers": "a"},
        InternalError,
        "expected a []interface {}, but received a string",
    ),
}


@pytest.mark.parametrize(("patch", "kind", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refuses_with_upstream_text(patch: Any, kind: type[ApiError], message: str) -> None:
    with pytest.raises(kind) as refusal:
        patch_spec({"containers": named("a")}, patch)
    assert refusal.value.message == message


def test_list_of_lists_is_invalid() -> None:
    with pytest.raises(InvalidError, match="lists of lists are not supported"):
        patch_spec({"containers": []}, {"containers": [[]]})


@pytest.mark.parametrize("patch", [[], "text", 1])
def test_patch_that_is_no_object_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(BadRequestError, match="json: cannot unmarshal"):
        strategic_merge({}, patch, POD)


def test_field_unknown_to_the_schema_is_merge_patched() -> None:
    spec = {"custom": {"list": [1, 2], "kept": 1}}
    assert patch_spec(spec, {"custom": {"list": [3]}}) == {"custom": {"list": [3], "kept": 1}}


# Work grows with the patch, not with its square


class Counted(str):
    """A text that counts how often texts like it are compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


class MergedLists:
    """A type whose ``items`` are merged by name and whose ``words`` are a set."""

    def field(self, name: str) -> FieldInfo:
        if name == "items":
            return FieldInfo(("merge",), "name", None)
        return FieldInfo(("merge",) if name == "words" else (), "", None)


def counted_items(count: int, **more: str) -> list[dict[str, Any]]:
    return [{"name": Counted(f"n{number}"), **more} for number in range(count)]


def counted_words(count: int) -> list[str]:
    return [Counted(f"n{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("target", "patch"),
    [
        pytest.param(
            lambda n: {"items": counted_items(n)},
            lambda n: {"items": counted_items(n, **DELETE)},
            id="delete",
        ),
        pytest.param(
            lambda n: {"items": counted_items(n)},
            lambda n: {"items": counted_items(n, v="1")},
            id="merge",
        ),
        pytest.param(
            lambda n: {"items": counted_items(n)},
            lambda n: {
                "items": counted_items(n, **DELETE)[: n // 2] + counted_items(n, v="1")[n // 2 :],
                "$setElementOrder/items": counted_items(n)[n // 2 :],
            },
            id="delete and order",
        ),
        pytest.param(
            lambda n: {"items": counted_items(n // 2)},
            lambda n: {
                "items": counted_items(n, v="1"),
                "$setElementOrder/items": counted_items(n),
            },
            id="order",
        ),
        pytest.param(
            lambda n: {"items": counted_items(n // 2)},
            lambda n: {"items": counted_items(n)[n // 2 :], "$setElementOrder/items": []},
            id="without order",
        ),
        pytest.param(
            lambda n: {"words": counted_words(n)[::-1]},
            lambda n: {"words": counted_words(n), "$setElementOrder/words": counted_words(n)},
            id="words",
        ),
        pytest.param(
            lambda n: {"words": counted_words(n)},
            lambda n: {"$deleteFromPrimitiveList/words": counted_words(n)},
            id="words deleted",
        ),
        pytest.param(
            lambda n: dict.fromkeys(counted_words(n), 1),
            lambda n: {"$retainKeys": counted_words(n)},
            id="retained keys",
        ),
    ],
)
def test_work_grows_with_the_patch(
    target: Callable[[int], JsonObject], patch: Callable[[int], JsonObject]
) -> None:
    compared = []
    for count in (200, 400):
        arguments = target(count), patch(count)
        Counted.compared = 0
        merge_objects(*arguments, MergedLists())
        compared.append(Counted.compared)
    assert compared[1] < 2.5 * compared[0] + 100


def test_equality_looks_at_each_value_once() -> None:
    left: Any = counted_words(10)
    right: Any = counted_words(10)
    for _ in range(50):
        left, right = [left], [right]
    Counted.compared = 0
    assert same(left, right)
    assert Counted.compared == 10


@given(
    st.lists(st.sampled_from("abcdef"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=5)
)
def test_elements_without_a_rank_stand_where_inserting_puts_them(
    items: list[str], order: list[str]
) -> None:
    ranks = {word: at for at, word in reversed(list(enumerate(order)))}
    placed: list[str] = []
    for item in items:
        at = len(placed)
        while at and (
            item not in ranks or placed[at - 1] not in ranks or ranks[item] < ranks[placed[at - 1]]
        ):
            at -= 1
        placed.insert(at, item)
    identities = {_itself(word): rank for word, rank in ranks.items()}
    assert _insertion_sorted(list(items), identities, _itself) == placed
