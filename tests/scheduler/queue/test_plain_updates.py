"""Updates of pods that are seen to be general ones without decoding the pod."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.scheduler.queue.cluster_events import POD_UPDATED, is_plain_update, pod_events
from kubescene.store import Store
from kubescene.testing import make_pod
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")


def running() -> JsonObject:
    obj = make_pod("a").cpu("1").label(app="web").on("n1").build()
    statuses = [{"name": "main", "ready": True}]
    return {**obj, "status": {"phase": "Running", "containerStatuses": statuses}}


def changed(*path: Any, to: Any) -> Callable[[JsonObject], None]:
    def change(obj: JsonObject) -> None:
        *way, last = path
        at: Any = obj
        for step in way:
            at = at[step] if isinstance(step, int) else at.setdefault(step, {})
        at[last] = to

    return change


LESS = {"requests": {"cpu": "100m"}}
MAIN = ("spec", "containers", 0)
PLAIN = {
    "phase": changed("status", "phase", to="Succeeded"),
    "condition": changed("status", "conditions", to=[{"type": "Ready", "status": "True"}]),
    "deletion": changed("metadata", "deletionTimestamp", to="2024-01-01T00:00:00Z"),
    "annotation": changed("metadata", "annotations", "a", to="b"),
}
TELLING = {
    "label": changed("metadata", "labels", "app", to="db"),
    "asks for less": changed(*MAIN, "resources", to=LESS),
    "toleration": changed("spec", "tolerations", to=[{"operator": "Exists"}]),
    "claims": changed("status", "resourceClaimStatuses", to=[{"name": "x"}]),
}


def update(change: Callable[[JsonObject], None]) -> Change:
    store = Store()
    before = store.put(PODS, running(), expected=0)
    obj = copy.deepcopy(store.decoded(before))
    change(obj)
    return Change(ChangeType.MODIFIED, store.put(PODS, obj), before, store)


def events_of(change: Change) -> list[Any]:
    assert change.previous_object is not None
    return pod_events(change.previous_object, change.object)


@pytest.mark.parametrize("what", PLAIN)
def test_status_and_bookkeeping_are_plain(what: str) -> None:
    change = update(PLAIN[what])
    assert is_plain_update(change)
    assert events_of(change) == [POD_UPDATED]


@pytest.mark.parametrize("what", TELLING)
def test_whatever_may_be_an_event_of_its_own_is_looked_at(what: str) -> None:
    change = update(TELLING[what])
    assert not is_plain_update(change)
    assert events_of(change) != [POD_UPDATED]


def test_what_was_reported_before_is_looked_at_as_well() -> None:
    store = Store()
    obj = running()
    obj["status"]["containerStatuses"][0]["resources"] = {"requests": {"cpu": "2"}}
    before = store.put(PODS, obj, expected=0)
    after = store.put(PODS, {**store.decoded(before), "status": running()["status"]})
    assert not is_plain_update(Change(ChangeType.MODIFIED, after, before, store))
