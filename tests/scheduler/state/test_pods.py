"""Pods as the scheduler sees them: read once where they are alike, and the same as read alone."""

import pytest
from msgspec import structs

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.drafts import changed
from kubescene.api.records.parts import PodSections
from kubescene.api.scheme import GroupResource
from kubescene.scheduler.state.pod_kinds import NO_NAME
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing import make_pod
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")


def claiming(claim: str, **more: object) -> JsonObject:
    return {"name": "v", "persistentVolumeClaim": {"claimName": claim, **more}}


def pod(name: str, *volumes: JsonObject, text: str = "") -> JsonObject:
    obj = make_pod(name).cpu("1").label(app="web").build()
    obj["metadata"] |= {"uid": f"uid-{name}"}
    env = [{"name": "TEXT", "value": text}]
    obj["spec"]["containers"][0]["env"] = env
    obj["spec"]["volumes"] = [*volumes]
    obj["status"] = {"phase": "Pending"}
    return obj


def read(classes: PodClasses, *pods: JsonObject) -> list[PodInfo]:
    store = Store()
    changes = [
        Change(ChangeType.ADDED, store.put(PODS, obj, expected=0), None, store) for obj in pods
    ]
    return [PodInfo.of(change, classes) for change in changes]


SHAPES = {
    "one": [claiming("a")],
    "two, one of them read-only": [claiming("a"), claiming("b", readOnly=True)],
    "between others": [{"name": "x", "emptyDir": {}}, claiming("a"), {"name": "y"}],
    "a name that is no name": [claiming(NO_NAME)],
    "an odd name": [claiming('a"b\\c')],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("text", ["", '"claimName":"x"', 'a\\"claimName":"x"'])
def test_pods_with_other_claims_are_what_reading_them_alone_gives(shape: str, text: str) -> None:
    def named(name: str) -> JsonObject:
        volumes = [
            claiming(f"{name}{at}", **{k: v for k, v in known.items() if k != "claimName"})
            if (known := each.get("persistentVolumeClaim"))
            else each
            for at, each in enumerate(SHAPES[shape])
        ]
        return pod(name, *volumes, text=text)

    objects = [pod("first", *SHAPES[shape], text=text), named("a"), named("b")]
    together = read(PodClasses(), *objects)
    for seen, obj in zip(together, objects, strict=True):
        [alone] = read(PodClasses(), obj)
        assert seen.spec.alike[1:] == alone.spec.alike[1:]
        assert seen.pod_class.spec == alone.pod_class.spec
        assert [*seen.signature.volumes] == [*alone.signature.volumes] == obj["spec"]["volumes"]
        assert [*seen.signature.kind.volumes] == [*alone.signature.kind.volumes]


def test_pods_that_differ_in_claims_are_of_one_kind_and_signatures_of_their_own() -> None:
    first, second, third = read(
        PodClasses(),
        pod("a", claiming("a")),
        pod("b", claiming("b")),
        pod("c", claiming("c", readOnly=True)),
    )
    assert first.signature is not second.signature
    assert first.signature.kind is second.signature.kind is not third.signature.kind
    assert first.signature.kind.kind is first.signature.kind


@pytest.mark.parametrize("claim", ["x", NO_NAME, 'odd"\\'])
def test_pods_of_one_claim_have_one_signature(claim: str) -> None:
    first, second = read(PodClasses(), pod("a", claiming(claim)), pod("b", claiming(claim)))
    assert first.signature is second.signature
    assert [*second.signature.volumes] == [claiming(claim)]


def test_pods_without_claims_are_their_own_kind() -> None:
    [seen] = read(PodClasses(), pod("a", {"name": "x", "emptyDir": {}}))
    assert seen.signature.kind is seen.signature


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "u", "controller": True}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": {"labels": {"app": "db"}}}, id="labels"),
        pytest.param({"metadata": {"namespace": "other"}}, id="namespace"),
        pytest.param({"metadata": {"ownerReferences": [OWNER]}}, id="owner"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="deleting"),
        pytest.param({"status": {"phase": "Pending", "nominatedNodeName": "n"}}, id="nomination"),
        pytest.param({"status": {"startTime": "2026-01-01T00:00:00Z"}}, id="start"),
        pytest.param({"spec": {"nodeName": "n"}}, id="node"),
        pytest.param({"spec": {"priority": 7}}, id="priority"),
    ],
)
def test_a_pod_that_is_read_after_another_is_what_reading_it_alone_gives(
    change: JsonObject,
) -> None:
    other = pod("b")
    for member, value in change.items():
        other[member] = {**other[member], **value} if member != "status" else value
    *_, seen = read(PodClasses(), pod("a"), pod("c"), other)
    [alone] = read(PodClasses(), other)
    for field in PodInfo.__struct_fields__:
        if field not in ("record", "spec", "pod_class", "signature"):
            assert getattr(seen, field) == getattr(alone, field), field
    assert seen.record.decode()["metadata"]["name"] == "b"
    assert seen.spec.alike[1:] == alone.spec.alike[1:]
    for name in ("namespace", "labels", "owner", "priority"):
        assert getattr(seen.signature, name) == getattr(alone.signature, name)


def test_a_pod_whose_status_changes_is_what_reading_it_anew_gives() -> None:
    store, classes = Store(), PodClasses()
    first = store.put(PODS, pod("a"), expected=0)
    before = PodInfo.of(Change(ChangeType.ADDED, first, None, store), classes)
    statuses: list[JsonObject] = [
        {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
        {"phase": "Running", "startTime": "2026-01-02T00:00:00Z", "nominatedNodeName": "n"},
        {"phase": "Running"},
    ]
    for status in (*statuses, *statuses):
        record = store.put(PODS, {**store.decoded(before.record), "status": status})
        change = Change(ChangeType.MODIFIED, record, before.record, store)
        pod_ = before.restated(record, classes) or PodInfo.of(change, classes, before)
        assert (pod_.start_time, pod_.nominated_node) == (
            status.get("startTime", ""),
            status.get("nominatedNodeName", ""),
        )
        assert pod_.record is record
        before = pod_


def test_more_than_a_status_is_no_new_status() -> None:
    store, classes = Store(), PodClasses()
    for name in ("a", "b"):
        added = Change(ChangeType.ADDED, store.put(PODS, pod(name), expected=0), None, store)
        before = PodInfo.of(added, classes)
    obj = store.decoded(before.record)
    assert isinstance(before.record.payload, PodSections)
    restated = store.put(PODS, changed(before.record, before.record.payload.members, ""))
    assert before.restated(restated, classes) is not None
    relabeled = {**obj, "metadata": {**obj["metadata"], "labels": {"app": "db"}}}
    assert before.restated(store.put(PODS, relabeled), classes) is None
    assert isinstance(restated.payload, PodSections)
    spec, _, status, end = restated.payload.members
    members = (spec, b',"nodeName":"n"}', status, end)
    bound = store.put(PODS, structs.replace(changed(restated, members, "Pending"), node="n"))
    assert before.restated(bound, classes) is None
