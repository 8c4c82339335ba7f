"""Objects of other kinds than nodes and pods, as the scheduler's watches see them.

One watch per kind, started when the first plugin asks for the objects (`Handle.lister`) or
registers an event of the kind. Each object is decoded once and kept; each change becomes a cluster
event for the pods that wait.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import Client
from kubescene.scheduler.framework.interfaces import Action, ClusterEvent, EventResource
from kubescene.scheduler.state.change_log import ChangeLog, LogReader
from kubescene.types import ReadOnlyObject

POD = GroupVersionKind("", "v1", "Pod")
NODE = GroupVersionKind("", "v1", "Node")

KINDS: Mapping[EventResource, GroupVersionKind] = {
    EventResource.POD: POD,
    EventResource.NODE: NODE,
    EventResource.PERSISTENT_VOLUME: GroupVersionKind("", "v1", "PersistentVolume"),
    EventResource.PERSISTENT_VOLUME_CLAIM: GroupVersionKind("", "v1", "PersistentVolumeClaim"),
    EventResource.STORAGE_CLASS: GroupVersionKind("storage.k8s.io", "v1", "StorageClass"),
    EventResource.CSI_NODE: GroupVersionKind("storage.k8s.io", "v1", "CSINode"),
    EventResource.CSI_DRIVER: GroupVersionKind("storage.k8s.io", "v1", "CSIDriver"),
    EventResource.CSI_STORAGE_CAPACITY: GroupVersionKind(
        "storage.k8s.io", "v1", "CSIStorageCapacity"
    ),
    EventResource.VOLUME_ATTACHMENT: GroupVersionKind("storage.k8s.io", "v1", "VolumeAttachment"),
    EventResource.RESOURCE_CLAIM: GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim"),
    EventResource.RESOURCE_SLICE: GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice"),
    EventResource.DEVICE_CLASS: GroupVersionKind("resource.k8s.io", "v1", "DeviceClass"),
}
RESOURCES = {gvk: resource for resource, gvk in KINDS.items()}

_ACTIONS = {
    ChangeType.ADDED: Action.ADD,
    ChangeType.MODIFIED: Action.UPDATE,
    ChangeType.DELETED: Action.DELETE,
}

Notify: TypeAlias = Callable[[ClusterEvent, Change], None]


class Changes:
    """How often anything has changed that a scheduler follows."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Informer:
    """All objects of one kind, by namespace and name."""

    def __init__(
        self, gvk: GroupVersionKind, notify: Notify, changes: Changes | None = None
    ) -> None:
        self._changes = changes or Changes()
        resource = RESOURCES.get(gvk, gvk)
        self._events = {kind: ClusterEvent(resource, act) for kind, act in _ACTIONS.items()}
        self._notify = notify
        self._tells = gvk not in (POD, NODE)
        self._objects: dict[tuple[str, str], ReadOnlyObject] = {}
        self._followers: list[Callable[[Change], None]] = []
        self._synced = False
        self.version = 0
        self.spec_version = 0
        self._log: ChangeLog[tuple[str, str]] = ChangeLog()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Informer":
        twin: Informer = object.__new__(Informer)
        memo[id(self)] = twin
        for name, value in vars(self).items():
            # Objects are read-only: only who they are is the twin's own.
            own = dict(value) if name == "_objects" else deepcopy(value, memo)
            setattr(twin, name, own)
        return twin

    def start(self, client: Client, gvk: GroupVersionKind) -> None:
        """Take in what exists, which is news to nobody, and then follow."""
        client.watch(gvk, self.changed)
        self._synced = True

    def get(self, name: str, namespace: str = "") -> ReadOnlyObject | None:
        return self._objects.get((namespace, name))

    def list(self, namespace: str = "") -> Sequence[ReadOnlyObject]:
        if not namespace:
            return [*self._objects.values()]
        return [obj for (where, _), obj in self._objects.items() if where == namespace]

    def __len__(self) -> int:
        return len(self._objects)

    def follow(self) -> LogReader[tuple[str, str]]:
        return LogReader(self._log)

    def tell(self, follower: Callable[[Change], None]) -> None:
        self._followers.append(follower)

    def changed(self, change: Change) -> None:
        key, objects = change.record.key, self._objects
        before = objects.get(key)
        after = None if change.type is ChangeType.DELETED else change.object
        if after is None:
            objects.pop(key, None)
        else:
            objects[key] = after
        self.version += 1
        self._changes.count += 1
        self.spec_version += not _same_but_for_status(before, after)
        self._log.add(key)
        for follower in self._followers:
            follower(change)
        if self._synced and self._tells:
            self._notify(self._events[change.type], change)


class Informers:
    """The watches of one scheduler, beside those of nodes and pods."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: list[Notify] = []
        self._informers: dict[GroupVersionKind, Informer] = {}
        self._changes = Changes()
        self.shared: dict[Any, Any] = {}
        """What plugins of several profiles share, by what makes it."""

    @property
    def version(self) -> int:
        """Grows with every change of an object of any of the kinds."""
        return self._changes.count

    def listen(self, listener: Notify) -> None:
        """Tell somebody of every change from now on."""
        self._listeners.append(listener)

    def _notify(self, event: ClusterEvent, change: Change) -> None:
        for listener in self._listeners:
            listener(event, change)

    def lister(self, gvk: GroupVersionKind) -> Informer:
        """The objects of a kind; a kind that does not exist is the API's error."""
        found = self._informers.get(gvk)
        if found is None:
            found = self._informers[gvk] = Informer(gvk, self._notify, self._changes)
            found.start(self._client, gvk)
        return found

    def follow(self, resource: EventResource | GroupVersionKind) -> None:
        """See to it that changes of a kind become events. Pods and nodes do so anyway."""
        gvk = resource if isinstance(resource, GroupVersionKind) else KINDS[resource]
        if gvk not in (POD, NODE):
            self.lister(gvk)


_APART = frozenset({"metadata", "status"})


def _same_but_for_status(before: ReadOnlyObject | None, after: ReadOnlyObject | None) -> bool:
    if before is None or after is None:
        return before is after
    if before["metadata"].get("labels") != after["metadata"].get("labels"):
        return False
    for field, value in after.items():
        known = before.get(field)
        # What is the very same need not be compared.
        if value is not known and field not in _APART and value != known:
            return False
    return before.keys() - _APART <= after.keys()
