"""What results read of a pod, however its text is written."""

import msgspec
import orjson
import pytest

from kubescene.results.states import States, bound_to
from kubescene.types import JsonObject

SPEC = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def text(metadata: JsonObject, **members: JsonObject) -> bytes:
    return orjson.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **members})


OWNED = {"ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "controller": True}]}
TEXTS = {
    "plain": text({"name": "a"}, spec=SPEC, status={"phase": "Pending"}),
    "its twin": text({"name": "b"}, spec=SPEC, status={"phase": "Pending"}),
    "another phase": text({"name": "c"}, spec=SPEC, status={"phase": "Failed"}),
    "on a node": text({"name": "d"}, spec={**SPEC, "nodeName": "n"}, status={}),
    "labelled": text({"name": "e", "labels": {"a": "}"}}, spec=SPEC, status={"phase": "Pending"}),
    "owned": text({"name": "f", **OWNED}, spec=SPEC, status={"phase": "Pending"}),
    "status first": text({"name": "g"}, status={"phase": "Failed"}, spec=SPEC),
    "status first, pending": text({"name": "h"}, status={"phase": "Pending"}, spec=SPEC),
    "a label called spec": text({"labels": {"x": "y", "spec": "z"}}, spec=SPEC, status={}),
    "deep in metadata": text({"managedFields": [{"f": {}, "spec": {}}]}, spec=SPEC, status={}),
    "metadata last": orjson.dumps(
        {"kind": "Pod", "spec": SPEC, "metadata": {"labels": {"q": "r"}}}
    ),
    "no status": text({"name": "i", "labels": {"k": "v"}}, spec=SPEC),
}


@pytest.mark.parametrize("order", [list(TEXTS), list(reversed(TEXTS))], ids=["", "reversed"])
def test_what_is_known_already_changes_nothing(order: list[str]) -> None:
    """Read one after the other by one reader, each is what a new reader makes of it."""
    states = States()
    for name in [*order, *order]:
        assert states.pod_in(TEXTS[name]) == States().decoded_pod(TEXTS[name]), name


def test_what_they_say() -> None:
    states = States()
    read = {name: states.pod_in(each) for name, each in TEXTS.items()}
    assert [read[name].phase for name in ("plain", "status first", "another phase")] == [
        "Pending",
        "Failed",
        "Failed",
    ]
    assert read["owned"].owner == "ReplicaSet/rs"
    assert read["labelled"].labels == {"a": "}"}
    assert read["on a node"].node == "n"


@pytest.mark.parametrize(
    "body",
    [
        b'{"spec":{"nodeName":"n"}}',
        b'{"spec":{"nodeName":"\\u006e"}}',
        b'{"spec":{"x":1,"nodeName":"n"}}',
        b'{"spec":{"nodeName":"m"},"x":{"y":"z"}}',
        b'{"target":{"name":"n"}}',
        b"null",
    ],
)
def test_a_binding_tells_its_node_in_any_form(body: bytes) -> None:
    pod = msgspec.Raw(text({}, spec={**SPEC, "nodeName": "n"}))
    assert bound_to(body, pod) == "n"
