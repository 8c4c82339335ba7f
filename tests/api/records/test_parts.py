"""Parts joined are what encoding the whole object gives, however it came about."""

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubescene.api.records import Record, cut_revision, same_metadata, versioned
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.records.parts import (
    Payload,
    PodSections,
    Sections,
    nominating,
    pod_status,
    split_nomination,
    status_of,
)
from kubescene.api.records.templates import NOMINATION
from kubescene.api.scheme import GroupResource
from kubescene.api.text.encoding import encode
from kubescene.store import Store
from kubescene.store.reading import PartDecoder
from kubescene.types import JsonObject, JsonValue

PODS = GroupResource("", "pods")
OTHERS = GroupResource("", "configmaps")

KEYS = st.sampled_from(["a", "b", 'q"uote', "é", "nodeName", "resourceVersion", "metadata"])
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3) | st.just("{}"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
MEMBERS = st.dictionaries(KEYS, VALUES, max_size=4)
OBJECTS = st.builds(
    lambda metadata, members, first: {
        **({"kind": "Pod"} if first else {}),
        **members,
        "metadata": {**metadata, "name": "x"},
        "apiVersion": "v1",
    },
    MEMBERS,
    st.dictionaries(st.sampled_from(["spec", "status", "data", 'q"']), MEMBERS | VALUES),
    st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("bind"), st.text(max_size=3)),
        st.tuples(st.just("label"), MEMBERS),
        st.tuples(st.sampled_from(["spec", "status", "data"]), MEMBERS | VALUES),
        st.tuples(st.just("replace"), OBJECTS),
        st.tuples(st.just("drop"), st.sampled_from(["spec", "status", "data"])),
        st.tuples(st.just("forget"), st.none()),
        st.tuples(st.just("remove"), st.none()),
    ),
    max_size=8,
)


def changed(obj: JsonObject, step: str, value: JsonValue) -> JsonObject:
    """What a writer that copies what it changes makes of an object."""
    match step:
        case "bind" if isinstance(obj.get("spec"), dict):
            return {**obj, "spec": {**obj["spec"], "nodeName": value}}
        case "label":
            return {**obj, "metadata": {**obj["metadata"], **value, "name": "x"}}
        case "spec" | "status" | "data":
            return {**obj, step: value}
        case "replace":
            return dict(value)
        case "drop":
            return {name: part for name, part in obj.items() if name != value}
    return obj


def check(record: Record, obj: JsonObject) -> None:
    whole = encode(versioned(obj, record.revision))
    assert record.unversioned_data == cut_revision(whole)
    assert record.data == whole
    assert record.decode() == orjson.loads(whole)
    assert (
        encode(PartDecoder().decode(sections(record), node_apart=record.resource == PODS)) == whole
    )
    if isinstance(record.payload, PodSections):
        assert encode(PartDecoder().pod(record.payload)) == whole


@settings(deadline=None, max_examples=300)
@given(st.sampled_from([PODS, OTHERS]), OBJECTS, STEPS)
def test_parts_joined_are_the_whole(
    resource: GroupResource, obj: JsonObject, steps: list[tuple[str, JsonValue]]
) -> None:
    store = Store()
    record = store.put(resource, obj, expected=0)
    check(record, obj)
    for step, value in steps:
        if step == "forget":
            store._decoded.clear()
            assert encode(store.decoded(record)) == record.data
            continue
        obj = changed(store.decoded(record), step, value)
        if step == "remove":
            check(store.remove(resource, "", "x"), obj)
            record = store.put(resource, obj, expected=0)
        else:
            record = store.put(resource, obj)
        check(record, obj)


def pod(**metadata: str) -> JsonObject:
    containers = [{"name": "c", "image": "i" * 50}]
    spec = {"containers": containers, "schedulerName": "s"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", **metadata},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


@pytest.fixture
def store() -> Store:
    return Store()


def sections(record: Record) -> Sections:
    assert isinstance(record.payload, Sections)
    return record.payload


def test_a_binding_shares_metadata_and_spec(store: Store) -> None:
    first = store.put(PODS, pod(), expected=0)
    obj = store.decoded(first)
    bound = store.put(PODS, {**obj, "spec": {**obj["spec"], "nodeName": "n1"}})
    assert sections(bound).metadata is sections(first).metadata
    assert sections(bound).members[0] is sections(first).members[0]
    assert sections(bound).members[1] == b',"nodeName":"n1"}'
    assert same_metadata(bound, first)


def test_a_status_shares_all_but_itself(store: Store) -> None:
    record = store.put(PODS, pod(), expected=0)
    obj = store.decoded(record)
    bound = store.put(PODS, {**obj, "spec": {**obj["spec"], "nodeName": "n1"}})
    runs = store.put(PODS, {**store.decoded(bound), "status": {"phase": "Running"}})
    assert sections(runs).metadata is sections(bound).metadata
    assert sections(runs).members[:2] == sections(bound).members[:2]
    assert sections(runs).members[1] is sections(bound).members[1]
    assert sections(runs).members[2] == b',"status":{"phase":"Running"}'


def test_equal_parts_of_different_objects_are_one(store: Store) -> None:
    first, second = (store.put(PODS, pod(name=name), expected=0) for name in "ab")
    assert sections(first).members[0] is sections(second).members[0]
    assert sections(first).members[2] is sections(second).members[2]


def test_changed_metadata_are_encoded_again(store: Store) -> None:
    first = store.put(PODS, pod(), expected=0)
    obj = store.decoded(first)
    metadata = {**obj["metadata"], "uid": "u"}
    second = store.put(PODS, {**obj, "metadata": metadata})
    assert not same_metadata(second, first)
    assert b'"uid":"u"' in second.data


def test_members_in_another_order_are_encoded_in_that_order(store: Store) -> None:
    store.put(PODS, {**pod(), "metadata": {"name": "a", "uid": "u"}}, expected=0)
    metadata = {"uid": "u", "name": "a"}
    obj = {"status": {}, **pod(), "metadata": metadata}
    check(store.put(PODS, obj), obj)


def test_an_object_is_joined_once(store: Store) -> None:
    record = store.put(PODS, pod(), expected=0)
    assert record.data is record.data


class Growing:
    def __init__(self, text: bytes) -> None:
        self.text = text

    def __bytes__(self) -> bytes:
        return self.text


def test_a_part_may_be_anything_that_turns_into_bytes(store: Store) -> None:
    record = store.put(OTHERS, pod(), expected=0)
    head, log = b'{"metadata":{"resourceVersion":"', Growing(b'"log":[1,2]')

    def build(revision: int) -> Payload:
        return (head, b"%d" % revision, b'","name":"a"},', log, b"}")

    changed = store.put(OTHERS, Rebuilt(record, build, ""))
    assert changed.data == b'{"metadata":{"resourceVersion":"2","name":"a"},"log":[1,2]}'
    assert changed.unversioned_data == b'{"metadata":{"name":"a"},"log":[1,2]}'


@given(st.dictionaries(st.sampled_from(["a", "conditions", "nominatedNodeName"]), VALUES))
@example({"a": 1, "nominatedNodeName": ""})
@example({"a": 1, "nominatedNodeName": "x"})
@example({"a": {"nominatedNodeName": "x"}})
def test_a_status_is_split_from_its_nomination_or_left_alone(status: JsonObject) -> None:
    part = pod_status(status)
    split = split_nomination(part)
    if split is None:
        return
    rest, node = split
    assert status_of(rest) == {k: v for k, v in status.items() if not node or k != NOMINATION}
    assert (status.get(NOMINATION) or "") == node or NOMINATION not in status
    assert part == (nominating(rest, node) if node else rest)


@pytest.mark.parametrize(
    "message",
    ['"nominatedNodeName"', ',"nominatedNodeName":"n"', ',"nominatedNodeName":"n"}', '"}'],
)
def test_a_text_that_looks_like_a_nomination_is_none(message: str) -> None:
    part = pod_status({"message": message})
    assert split_nomination(part) == (part, "")
    assert split_nomination(nominating(part, "n")) == (part, "n")
