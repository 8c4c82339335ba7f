"""Owner references read out of encoded metadata are those of the decoded object."""

from typing import Any

import msgspec
import pytest

from kubescene.api.records import Record, may_be_held
from kubescene.api.records.owner_references import (
    OwnerReference,
    controller_name,
    may_have_owners,
    owner_references,
)
from kubescene.api.scheme import GroupResource
from kubescene.scenario.fields.definition import SCENARIOS
from kubescene.scenario.resource import ScenarioPayload
from kubescene.store import Store

PODS = GroupResource("", "pods")
OWNER: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}


def stored(metadata: dict[str, Any]) -> Record:
    metadata = {"name": "a", "namespace": "default", "uid": "x", **metadata}
    return Store().put(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, expected=0)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({}, id="none"),
        pytest.param({"ownerReferences": []}, id="an empty list"),
        pytest.param({"ownerReferences": [OWNER]}, id="one"),
        pytest.param(
            {"ownerReferences": [OWNER, {**OWNER, "uid": "2", "controller": True}]}, id="two"
        ),
        pytest.param({"ownerReferences": [{**OWNER, "blockOwnerDeletion": True}]}, id="blocks"),
        pytest.param({"ownerReferences": [{**OWNER, "controller": False}]}, id="no controller"),
        pytest.param({"ownerReferences": [{**OWNER, "name": 'a"b\\'}]}, id="quotes"),
        pytest.param(
            {"annotations": {"a": '"ownerReferences":[{"uid":"9"}]', "ownerReferences": "[]"}},
            id="in a text",
        ),
        pytest.param(
            {"managedFields": [{"fieldsV1": {"f:metadata": {"f:ownerReferences": {}}}}]},
            id="as a field somebody manages",
        ),
    ],
)
def test_what_is_read_is_what_the_object_says(metadata: dict[str, Any]) -> None:
    record = stored(metadata)
    said = record.decode()["metadata"].get("ownerReferences") or ()
    assert owner_references(record) == tuple(msgspec.convert(it, OwnerReference) for it in said)
    assert may_have_owners(record) or not said


def test_a_bracket_in_a_name_asks_for_decoding() -> None:
    assert owner_references(stored({"ownerReferences": [{**OWNER, "name": "a]b"}]})) is None
    cut = {**OWNER, "name": '"}]'}
    assert owner_references(stored({"ownerReferences": [cut]})) is None


def test_pods_of_one_owner_share_what_they_say_of_it() -> None:
    one, other = (stored({"name": name, "ownerReferences": [OWNER]}) for name in "ab")
    assert owner_references(one) is owner_references(other)


def test_the_managing_owner_is_named() -> None:
    other = OwnerReference(kind="Job", name="a")
    manager = OwnerReference(kind="ReplicaSet", name="web", controller=True)
    assert controller_name([other, manager]) == "ReplicaSet/web"
    assert controller_name([other]) == ""


class Unread:
    """A part that nobody has a reason to encode."""

    def __bytes__(self) -> bytes:
        raise AssertionError("the timeline of a Scenario was rendered")

    def __len__(self) -> int:
        return 1 << 30


@pytest.mark.parametrize(
    ("tail", "found"),
    [(b'","name":"s"}', False), (b'","ownerReferences":[],"finalizers":[]}', True)],
)
def test_metadata_of_a_scenario_are_read_without_its_timeline(tail: bytes, found: bool) -> None:
    """A served world asks this of every Scenario whenever the next one begins."""
    opens = b'{"kind":"Scenario","metadata":{"resourceVersion":"'
    payload = ScenarioPayload((opens, b"1", tail, b',"spec":{}', b"", b"", Unread(), b"}"))
    record = Record(SCENARIOS, "", "s", "u", 1, payload, {})
    assert (may_have_owners(record), may_be_held(record)) == (found, found)
