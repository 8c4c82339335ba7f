"""A change of nothing but the status: the short way ends where the long way does.

Two worlds get the same patches. In one of them nothing is taken to be as it was.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from kubescene.api.kinds import NODE
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.drafts import Parts
from kubescene.api.schemas.strict_decoding import are_sound_scalars
from kubescene.api.scheme import GroupVersionKind
from kubescene.errors import ApiError
from kubescene.registry import Registry, decoding
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.exports import export
from kubescene.registry.shortcuts.status_counts import StatusCounts
from kubescene.registry.writes import WriteRequest
from kubescene.shortcuts import PLAIN
from kubescene.store import Store
from kubescene.types import JsonObject
from registry.conftest import USER, make_registry
from registry.confusion import Confusion

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def never(*_: object) -> bool:
    return False


def forgotten(*_: object) -> None:
    return None


@contextmanager
def the_long_way() -> Iterator[None]:
    """Everything is checked and encoded anew, too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decoding, "is_checked_status", never)
        patched.setattr(Store, "_known_encoding", forgotten)
        yield


def outcome(write: Callable[[], Record]) -> object:
    try:
        record = write()
    except ApiError as error:
        return type(error), error.message, error.causes
    return record.data, record.labels, record.phase, record.node, record.owner, record.deleting


def patch_status(registry: Registry, gvk: GroupVersionKind, patch: Any, **options: Any) -> object:
    return patched(registry, gvk, patch, "status", **options)


def patched(
    registry: Registry, gvk: GroupVersionKind, patch: Any, subresource: str = "", **options: Any
) -> object:
    resource_type = registry.type_of(gvk)
    place = "default" if resource_type.namespaced else ""
    merge, given = PatchType.MERGE, WriteOptions(**options)
    return outcome(
        lambda: registry.patch(
            USER, resource_type, place, "a", patch, merge, subresource=subresource, options=given
        )
    )


def create(registry: Registry, obj: JsonObject) -> object:
    return outcome(lambda: registry.create(USER, obj, namespace="default"))


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "tracked"])
def test_for_every_kind_both_ways_end_alike(tracked: bool) -> None:
    short, long = make_registry(), make_registry(PLAIN)
    short.track_fields = long.track_fields = tracked
    confusion = Confusion(7, short.scheme)
    accepted = refused = 0
    for gvk in [gvk for gvk in confusion.kinds if short.type_of(gvk).has_status]:
        sample = confusion.sample(gvk, "a")
        if confusion.happens(20):
            sample["metadata"] |= {"labels": {}, "annotations": {}}
        with the_long_way():
            expected = create(long, sample)
        assert create(short, sample) == expected
        for turn in range(25):
            if turn % 5 == 4:
                words = {"metadata": {"annotations": {"turn": str(turn)}}}
                with the_long_way():
                    expected = patched(long, gvk, words)
                assert patched(short, gvk, words) == expected
            patch = confusion.status(gvk)
            with the_long_way():
                expected = patch_status(long, gvk, patch)
            assert patch_status(short, gvk, patch) == expected, patch
            is_refusal = isinstance(expected, tuple) and isinstance(expected[0], type)
            accepted, refused = accepted + (not is_refusal), refused + is_refusal
    assert export(short) == export(long)
    assert short.store.revision == long.store.revision
    assert min(accepted, refused) > 50, "both answers were given"


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"status": {"replicas": -1}}, id="negative"),
        pytest.param({"status": {"replicas": "1"}}, id="wrong type"),
        pytest.param({"status": {"replicas": 1 << 40}}, id="too large"),
        pytest.param({"status": {"replicas": None, "conditions": [None]}}, id="nulls"),
        pytest.param({"status": {"unheard": 1, "replicas": 2}}, id="unknown"),
        pytest.param({"status": {"conditions": [{"unheard": 1}]}}, id="unknown below"),
        pytest.param({"status": {"readyReplicas": 2, "replicas": 1}}, id="more than all"),
        pytest.param({"status": {"readyReplicas": 1, "replicas": None}}, id="all of none"),
        pytest.param({"status": {"readyReplicas": 2, "collisionCount": None}}, id="fewer names"),
        pytest.param({"status": {"collisionCount": 1}}, id="fewer collisions"),
        pytest.param({"status": {"readyReplicas": True}}, id="a boolean"),
        pytest.param({"status": {"readyReplicas": 1.0}}, id="the same as a fraction"),
        pytest.param({"status": {"readyReplicas": None, "unheard": None}}, id="removed"),
        pytest.param({"status": {"updatedReplicas": 2, "readyReplicas": 3}}, id="one more"),
        pytest.param({"status": {"replicas": 3, "readyReplicas": 1}}, id="the same"),
        pytest.param({"status": {"conditions": []}}, id="no conditions"),
        pytest.param({"status": {}}, id="nothing"),
        pytest.param({"status": None}, id="gone"),
        pytest.param({"status": {"replicas": 1}, "spec": {"replicas": 9}}, id="spec is kept"),
        pytest.param({"status": {"replicas": 1}, "metadata": {"labels": None}}, id="labels"),
        pytest.param({"status": {}, "metadata": {"annotations": {"a": "b"}}}, id="annotations"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, id="another revision"),
        pytest.param({"metadata": {"uid": "x"}}, id="another object"),
    ],
)
@pytest.mark.parametrize(
    "metadata", [{}, {"labels": {}}, {"annotations": {}, "labels": {"a": "b"}}]
)
@pytest.mark.parametrize("options", [{}, {"strict": True}, {"dry_run": True}])
def test_a_deployment_is_patched_alike(
    patch: JsonObject, metadata: JsonObject, options: dict[str, Any]
) -> None:
    first = {"status": {"replicas": 3, "readyReplicas": 1, "collisionCount": 2}}
    last = {"status": {"availableReplicas": 1}}
    short, long = make_registry(), make_registry(PLAIN)
    assert create(short, deployment(metadata)) == create(long, deployment(metadata))
    for patch_, given in ((first, {}), (patch, options), (last, {})):
        with the_long_way():
            expected = patch_status(long, DEPLOYMENT, patch_, **given)
        assert patch_status(short, DEPLOYMENT, patch_, **given) == expected
    assert export(short) == export(long)


def test_the_second_of_a_kind_is_stored_like_the_first() -> None:
    body = deployment({"labels": {"a": "b"}})
    body["spec"]["revisionHistoryLimit"] = 3
    worlds = [make_registry(), make_registry()]
    for world in worlds:
        world.track_fields = True
    assert create(worlds[0], body) == create(worlds[1], body)


def test_what_is_stored_is_what_its_bytes_say() -> None:
    registry = make_registry()
    create(registry, deployment({"labels": {"a": "b"}}))
    for count in range(3):
        patch_status(registry, DEPLOYMENT, {"status": {"replicas": count}})
        record = registry.record(registry.type_of(DEPLOYMENT), "default", "a")
        assert record.data == orjson.dumps(registry.store.decoded(record))


def test_counts_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    find = StatusCounts.find

    def noted(counts: StatusCounts, request: WriteRequest, current: Record | None) -> Parts | None:
        found = find(counts, request, current)
        if found is not None:
            written.append(request.body["status"]["replicas"])
        return found

    monkeypatch.setattr(StatusCounts, "find", noted)
    registry = make_registry()
    create(registry, deployment({"labels": {"a": "b"}}))
    for count in (1, 2, 2, 3):
        patch_status(registry, DEPLOYMENT, {"status": {"replicas": count}})
    relabelled = {"metadata": {"labels": {"a": "c"}}}
    deployments, merge = registry.type_of(DEPLOYMENT), PatchType.MERGE
    registry.patch(USER, deployments, "default", "a", relabelled, merge)
    for count in (4, 5):
        patch_status(registry, DEPLOYMENT, {"status": {"replicas": count}})
    assert written == [2, 3, 4, 5], "the first one of all goes the long way, and all of one count"


def test_admission_that_has_not_declared_itself_sees_every_status() -> None:
    seen: list[object] = []

    class Curious:
        name = "Curious"

        def admit(self, request: AdmissionRequest) -> JsonObject:
            seen.append(request.obj.get("status"))
            return request.obj

    registry = make_registry()
    create(registry, deployment({}))
    patch_status(registry, DEPLOYMENT, {"status": {"replicas": 1}})
    registry.admission.add(Curious())
    for count in (2, 3):
        patch_status(registry, DEPLOYMENT, {"status": {"replicas": count}})
    assert seen == [{"replicas": 2}, {"replicas": 3}]


@pytest.mark.parametrize(
    ("members", "sound"),
    [
        ({"phase": "Running"}, True),
        ({"phase": None}, False),
        ({"phase": 1}, False),
        ({"unheard": "x"}, False),
        ({"capacity": {"cpu": None}}, False),
        ({"capacity": {"cpu": "1"}}, False),
        ({"conditions": []}, False),
    ],
)
def test_a_quick_yes_is_for_scalars_only(members: JsonObject, sound: bool) -> None:
    assert are_sound_scalars(members, NODE, "status") is sound


def deployment(metadata: JsonObject) -> JsonObject:
    labels = {"app": "a"}
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", **metadata},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
