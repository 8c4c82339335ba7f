"""A node table with listers of storage objects, for tests of the volume plugins alone."""

from collections.abc import Sequence
from typing import Any

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.clock import VirtualClock
from kubescene.scheduler.framework.informers import Informer
from kubescene.scheduler.framework.interfaces import (
    ClusterEvent,
    EventRegistration,
    EventResource,
    Hint,
)
from kubescene.scheduler.state.pods import PodInfo
from kubescene.store import Store
from kubescene.types import JsonObject
from scheduler.tables import Table, change

PLURALS = {"StorageClass": "storageclasses", "CSIStorageCapacity": "csistoragecapacities"}


class Shelf(Table):
    """Plays the `Handle` of a plugin, with objects that tests put there."""

    def __init__(self, *nodes: JsonObject) -> None:
        super().__init__(*nodes)
        self.clock = VirtualClock()
        self._informers: dict[str, Informer] = {}

    def lister(self, gvk: GroupVersionKind) -> Informer:
        if gvk.kind not in self._informers:
            self._informers[gvk.kind] = Informer(gvk, _ignore)
        return self._informers[gvk.kind]

    @property
    def handle(self) -> Any:
        return self

    def put(self, *objects: JsonObject) -> None:
        for obj in objects:
            self._tell(ChangeType.MODIFIED, obj)

    def take(self, obj: JsonObject) -> None:
        self._tell(ChangeType.DELETED, obj)

    def _tell(self, what: ChangeType, obj: JsonObject) -> None:
        group, _, version = obj["apiVersion"].rpartition("/")
        informer = self.lister(GroupVersionKind(group, version, obj["kind"]))
        resource = GroupResource(group, PLURALS.get(obj["kind"], f"{obj['kind'].lower()}s"))
        informer.changed(Change(what, make_record(resource, obj, 1), None, Store()))


def hint_of(
    registrations: Sequence[EventRegistration],
    pod: PodInfo,
    resource: EventResource,
    after: JsonObject,
    before: JsonObject | None = None,
    *,
    gone: bool = False,
) -> Hint | None:
    """What a plugin says of a change, None if it does not want to hear of it."""
    told = change(after, before, gone=gone)
    bits = {ChangeType.ADDED: 1, ChangeType.MODIFIED: 8191 - 3, ChangeType.DELETED: 2}[told.type]
    for each in registrations:
        event = each.event
        if event.resource == resource and event.action & bits:
            return Hint.QUEUE if each.hint is None else each.hint(pod, told)
    return None


def _ignore(event: ClusterEvent, told: Change) -> None:
    del event, told
