"""Stored bytes: the revision can be cut out again, fragments are joined only when read."""

import re
from pathlib import Path

import orjson
import pytest

import kubescene
from kubescene.api.records import Record, cut_revision
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.scheme import GroupResource
from kubescene.store import Store
from kubescene.testing import make_pod
from kubescene.types import JsonObject

CONFIG_MAPS = GroupResource("", "configmaps")

TRAP = '"resourceVersion":"7"'


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"metadata": {"name": "a"}}, id="bare"),
        pytest.param({"data": {"resourceVersion": "7"}, "metadata": {"name": "a"}}, id="elsewhere"),
        pytest.param({"data": {"x": TRAP}, "metadata": {"name": "a"}}, id="inside text"),
        pytest.param(
            {"data": {}, "metadata": {"name": "a", "resourceVersion": "3", "uid": "u"}}, id="stale"
        ),
        pytest.param(
            {"metadata": {"annotations": {"note": TRAP}, "name": "a"}, "kind": "X"}, id="annotation"
        ),
    ],
)
def test_the_revision_is_cut_out_and_nothing_else(obj: JsonObject) -> None:
    record = Store().put(CONFIG_MAPS, obj, expected=0)
    expected = {"apiVersion": "", "kind": "", **obj}
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    assert orjson.loads(record.unversioned_data) == {**expected, "metadata": metadata}
    whole = orjson.loads(record.data)
    assert whole["metadata"]["resourceVersion"] == "1"


def test_metadata_that_holds_only_a_revision_becomes_empty() -> None:
    assert cut_revision(b'{"metadata":{"resourceVersion":"1"}}') == b'{"metadata":{}}'


def stored() -> tuple[Store, Record]:
    store = Store()
    return store, store.put(CONFIG_MAPS, make_pod("a").build(), expected=0)


def test_fragments_are_joined_only_when_somebody_reads() -> None:
    store, record = stored()
    large = b'"data":{"x":"' + b"y" * 1000 + b'"}}'

    def build(revision: int) -> tuple[bytes, ...]:
        head = b'{"metadata":{"resourceVersion":"%d","name":"a"},' % revision
        return (head, large)

    changed = store.put(record.resource, Rebuilt(record, build, "Running"))
    assert isinstance(changed.payload, tuple)
    assert changed.payload == (build(2)[0], large)
    assert changed.payload[1] is large
    assert changed.data == build(2)[0] + large
    assert changed.decode()["metadata"]["resourceVersion"] == "2"
    assert (changed.revision, changed.phase, changed.name) == (2, "Running", "a")
    assert store.decoded(changed)["data"] == {"x": "y" * 1000}


def test_a_record_made_of_fragments_can_be_removed() -> None:
    store, record = stored()

    def build(revision: int) -> tuple[bytes, ...]:
        head = b'{"metadata":{"resourceVersion":"%d",' % revision
        return (head, b'"name":"a","namespace":"default"}}')

    store.put(CONFIG_MAPS, Rebuilt(record, build, ""))
    gone = store.remove(CONFIG_MAPS, "default", "a")
    assert gone.decode()["metadata"] == {
        "name": "a",
        "namespace": "default",
        "resourceVersion": "3",
    }


def test_how_an_object_is_encoded_is_asked_of_its_record() -> None:
    """What import contracts cannot see: an attribute."""
    source = Path(kubescene.__file__).parent
    allowed = ("api/records", "store", "registry/shortcuts")
    others = [
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if not path.relative_to(source).as_posix().startswith(allowed)
        and re.search(r"\.payload\b", path.read_text())
    ]
    assert others == []
