"""Server-side defaulting, held against kube-apiserver's own.

``data/defaults.jsonl.gz`` has, per line, an object and what the Go code of Kubernetes v1.36.3
(default feature gates) makes of it: decoded, defaulted, converted to the internal type and
back, encoded.
"""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.defaulting.defaults import apply_defaults, drop_nulls
from kubescene.api.defaulting.images import pull_policy
from kubescene.api.scheme import GroupVersionKind
from kubescene.registry.preparation import prepare_namespace
from kubescene.types import JsonObject

DATA = Path(__file__).parents[1] / "data" / "defaults.jsonl.gz"
POD = GroupVersionKind("", "v1", "Pod")

# A counter that the create strategy starts, not a default.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def recorded() -> list[tuple[JsonObject, JsonObject]]:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        pairs = [json.loads(line) for line in lines]
    for pair in pairs:
        metadata = pair["output"]["metadata"]
        if metadata.get("annotations", {}).pop(TEMPLATE_GENERATION, None) is not None:
            metadata.pop("annotations")
    return [(pair["input"], pair["output"]) for pair in pairs]


RECORDED = recorded()
for_each_recorded = pytest.mark.parametrize(
    ("written", "stored"),
    RECORDED,
    ids=[f"{number}-{written['kind']}" for number, (written, _) in enumerate(RECORDED, 1)],
)


def served(obj: JsonObject) -> JsonObject:
    return apply_defaults(drop_nulls(obj), gvk_of(obj))


def gvk_of(obj: JsonObject) -> GroupVersionKind:
    return GroupVersionKind.of(obj["apiVersion"], obj["kind"])


def without_empties(value: Any) -> Any:
    """Go leaves out empty optional members that were written out; we may keep them."""
    if isinstance(value, list):
        return [without_empties(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_empties(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item not in (None, "", {}, [])}


def missing(wanted: Any, got: Any, path: str = "") -> list[str]:
    """Paths at which ``wanted`` has something other than null that ``got`` has not."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        return [
            place
            for key, value in wanted.items()
            if value is not None
            for place in missing(value, got.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        pairs = enumerate(zip(wanted, got, strict=True))
        return [place for i, (a, b) in pairs for place in missing(a, b, f"{path}[{i}]")]
    return [] if wanted == got else [f"{path}: {wanted!r}, not {got!r}"]


@for_each_recorded
def test_same_as_kube_apiserver(written: JsonObject, stored: JsonObject) -> None:
    assert without_empties(served(written)) == without_empties(stored)


@for_each_recorded
def test_all_that_kube_apiserver_prints_is_there(written: JsonObject, stored: JsonObject) -> None:
    assert missing(stored, served(written)) == []


@for_each_recorded
def test_input_stays_as_it_was(written: JsonObject, stored: JsonObject) -> None:
    before = copy.deepcopy(written)
    served(written)
    assert written == before


@for_each_recorded
def test_complete_object_is_handed_back_itself(written: JsonObject, stored: JsonObject) -> None:
    complete = served(written)
    assert apply_defaults(complete, gvk_of(complete)) is complete


def test_record_is_broad() -> None:
    assert len(RECORDED) > 350
    assert len({gvk_of(written) for written, _ in RECORDED}) > 50


def test_unchanged_parts_are_shared() -> None:
    affinity: JsonObject = {"nodeAffinity": {}}
    security: JsonObject = {"runAsUser": 1}
    container = {"name": "c", "image": "a:1", "securityContext": security}
    pod = {"metadata": {"name": "p"}, "spec": {"affinity": affinity, "containers": [container]}}
    done = apply_defaults(pod, POD)
    assert done["metadata"] is pod["metadata"]
    assert done["spec"]["affinity"] is affinity
    assert done["spec"]["containers"][0]["securityContext"] is security


@pytest.mark.parametrize(
    "gvk",
    [GroupVersionKind("example.com", "v1", "Pod"), GroupVersionKind("", "v1", "Unknown")],
    ids=str,
)
def test_kinds_without_defaults_pass_through(gvk: GroupVersionKind) -> None:
    obj: JsonObject = {"spec": {"containers": [{"name": "c"}]}}
    assert apply_defaults(obj, gvk) is obj


def test_no_quantity_is_left_for_validation() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "much", "memory": True}}}
    done = apply_defaults({"spec": {"containers": [container]}}, POD)
    assert done["spec"]["containers"][0]["resources"] == container["resources"]


def test_pods_follow_limits_but_templates_do_not() -> None:
    spec = {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m"}}}]}
    pod = apply_defaults({"spec": spec}, POD)
    workload = apply_defaults(
        {"spec": {"template": {"spec": spec}}}, GroupVersionKind("apps", "v1", "ReplicaSet")
    )
    template = workload["spec"]["template"]
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("localhost:5000/nginx", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("no such image", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


# -- nulls ---------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text("abc", max_size=3), inner, max_size=4),
    max_leaves=20,
)


def naively_without_nulls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: naively_without_nulls(item) for key, item in value.items() if item is not None}


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text("abc", max_size=3), JSON, max_size=5))
def test_null_members_are_dropped_at_any_depth(obj: JsonObject) -> None:
    before = copy.deepcopy(obj)
    done = drop_nulls(obj)
    assert done == naively_without_nulls(obj)
    assert obj == before
    assert drop_nulls(done) is done


def test_null_members_in_lists_of_objects_are_dropped() -> None:
    obj = {"spec": {"containers": [{"name": "a"}, {"name": "b", "command": None}]}}
    done = drop_nulls(obj)
    assert done == {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    assert done["spec"]["containers"][0] is obj["spec"]["containers"][0]


# -- creation ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "finalizers"),
    [
        ({}, ["kubernetes"]),
        ({"finalizers": ["kubernetes"]}, ["kubernetes"]),
        ({"finalizers": ["example.com/mine"]}, ["example.com/mine", "kubernetes"]),
    ],
)
def test_new_namespace_waits_for_its_content(spec: JsonObject, finalizers: list[str]) -> None:
    done = prepare_namespace({"metadata": {"name": "a"}, "spec": spec})
    assert done["spec"]["finalizers"] == finalizers
    assert done["status"] == {"phase": "Active"}


def test_what_is_false_and_left_out_by_go_is_not_there() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}}
    cordoned = {**node, "spec": {"unschedulable": True}}
    said = {**node, "spec": {"unschedulable": False}}
    assert apply_defaults(said, gvk_of(said)) == apply_defaults(node, gvk_of(node))
    assert apply_defaults(cordoned, gvk_of(cordoned))["spec"] == {"unschedulable": True}
