"""The world's single writer: revisioned objects, an ordered history, synchronous subscribers.

Every accepted write takes the next revision, replaces one record, is appended to the history and
then handed to the subscribers of its resource, in the order they subscribed. Subscribers may
enqueue work, never write: a write during notification raises `ReentrantWriteError`. The
thread that calls `own` is the only one that may write from then on; other threads read.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import TypeAlias

from kubescene.api.changes import Change, ChangeType
from kubescene.api.records import Payload, Record, make_record, versioned
from kubescene.api.scheme import GroupResource
from kubescene.errors import AlreadyExistsError, ConflictError, NotFoundError, ReentrantWriteError
from kubescene.store.history import DEFAULT_WINDOW, History
from kubescene.store.indexes import Indexes, KeyFunction
from kubescene.types import JsonObject

DECODED_OBJECTS_KEPT = 1024
SNAPSHOT_LOOKS = 3


Subscriber: TypeAlias = Callable[[Change], None]
Records: TypeAlias = list[Record]
Keys: TypeAlias = list[tuple[str, str]]


class Subscription:
    """Hands changes of some resources to one callable, until cancelled."""

    __slots__ = ("_store", "handler", "resources")

    def __init__(
        self, store: "Store", handler: Subscriber, resources: tuple[GroupResource, ...] | None
    ) -> None:
        self._store = store
        self.handler = handler
        self.resources = resources

    def cancel(self) -> None:
        """Stop. Safe to call twice."""
        self._store._unsubscribe(self)


Subscriptions: TypeAlias = list[Subscription]


class Store:
    """All objects of one world."""

    def __init__(self, *, window: int = DEFAULT_WINDOW) -> None:
        self.history: History[Change] = History(window)
        self.indexes = Indexes()
        self._revision = 0
        self._newest: dict[GroupResource, int] = {}
        self._begun = 0
        self._objects: defaultdict[GroupResource, dict[tuple[str, str], Record]] = defaultdict(dict)
        self._sorted: dict[GroupResource, tuple[int, Keys]] = {}
        self._membership: defaultdict[GroupResource, int] = defaultdict(int)
        self._subscriptions: Subscriptions = []
        self._routes: dict[GroupResource, tuple[Subscriber, ...]] = {}
        self._notifying: Change | None = None
        self._owner: int | None = None
        self._decoded: OrderedDict[int, JsonObject] = OrderedDict()

    # -- reading ---------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The revision of the newest accepted write."""
        return self._revision

    def newest(self, resource: GroupResource) -> int:
        """The revision of the newest change of a resource; 0 if there was none."""
        return self._newest.get(resource, 0)

    def known_resources(self) -> tuple[GroupResource, ...]:
        """Resources of which there is or was an object, in order of their first one."""
        return tuple(self._newest)

    def get(self, resource: GroupResource, namespace: str, name: str) -> Record | None:
        objects = self._objects.get(resource)
        return None if objects is None else objects.get((namespace, name))

    def list(self, resource: GroupResource, namespace: str = "") -> Records:
        """Records ordered by namespace and name, as a real API server lists them."""
        objects = self._objects.get(resource)
        if not objects:
            return []
        # Another thread may take objects away meanwhile: `consistent_list` misses none.
        found = map(objects.get, self._keys(resource, objects))
        if namespace:
            return [record for record in found if record and record.namespace == namespace]
        return [record for record in found if record]

    def consistent_list(
        self, resource: GroupResource, namespace: str = ""
    ) -> tuple[Records, int] | None:
        """The records and the revision they are the state of; safe on any thread.

        None if the writer was too busy for a reader to get a clear look: ask on its thread then.

        A writer announces a revision before it changes anything and publishes it afterwards. A
        list during which nothing was announced that is not published is the state of that revision.
        """
        for _ in range(SNAPSHOT_LOOKS):
            revision = self._revision
            records = self.list(resource, namespace)
            if self._begun == revision:
                return records, revision
        return None

    def in_order_of_creation(self, resource: GroupResource) -> Records:
        """Records as they came: what somebody who joins late should be told in which order."""
        return [*self._objects[resource].values()]

    def list_at(self, resource: GroupResource, revision: int, namespace: str = "") -> Records:
        """The records as they were at ``revision``; raises `ExpiredError` if that is forgotten."""
        state = {record.key: record for record in self.list(resource)}
        for change in reversed(self.history.since(revision)):
            if change.record.resource == resource:
                if change.previous is None:
                    state.pop(change.record.key, None)
                else:
                    state[change.record.key] = change.previous
        return [state[key] for key in sorted(state) if not namespace or key[0] == namespace]

    def resources(self) -> tuple[GroupResource, ...]:
        """Resources that hold at least one object, in a fixed order."""
        return tuple(sorted(resource for resource, objects in self._objects.items() if objects))

    def count(self, resource: GroupResource) -> int:
        return len(self._objects.get(resource, ()))

    def decoded(self, record: Record) -> JsonObject:
        """The decoded object, shared and therefore read-only. Owner thread only."""
        cached = self._decoded.get(record.revision)
        if cached is None:
            cached = record.decode()
            self._remember(record.revision, cached)
        return cached

    # -- writing ---------------------------------------------------------------------------

    def create(self, resource: GroupResource, obj: JsonObject) -> Record:
        """Store a new object; its metadata must carry a name."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if key in self._objects[resource]:
            raise AlreadyExistsError(
                f'{resource} "{key[1]}" already exists',
                name=key[1],
                group=resource.group,
                kind=resource.resource,
            )
        self._claim()
        return self._put(ChangeType.ADDED, resource, obj, None)

    def update(
        self, resource: GroupResource, obj: JsonObject, *, expected: int | None = None
    ) -> Record:
        """Replace an object; with ``expected``, only if that is still its revision."""
        metadata = obj["metadata"]
        current = self._current(resource, metadata.get("namespace", ""), metadata["name"], expected)
        self._claim()
        return self._put(ChangeType.MODIFIED, resource, obj, current)

    def update_payload(
        self, record: Record, build: Callable[[int], Payload], *, phase: str
    ) -> Record:
        """Replace the encoding of a record by fragments made for the next revision."""
        current = self._current(record.resource, record.namespace, record.name, None)
        self._claim()
        revision = self._revision + 1
        replacement = Record(
            resource=current.resource,
            namespace=current.namespace,
            name=current.name,
            uid=current.uid,
            revision=revision,
            payload=build(revision),
            labels=current.labels,
            node=current.node,
            phase=phase,
            owner=current.owner,
            deleting=current.deleting,
        )
        return self._commit(ChangeType.MODIFIED, replacement, current)

    def remove(
        self, resource: GroupResource, namespace: str, name: str, *, expected: int | None = None
    ) -> Record:
        """Take an object away.

        The returned record is its last state at the revision of the removal.
        """
        current = self._current(resource, namespace, name, expected)
        self._claim()
        return self._put(ChangeType.DELETED, resource, self.decoded(current), current)

    def own(self) -> None:
        """From now on only the calling thread writes."""
        self._owner = get_ident()

    # -- subscribing -----------------------------------------------------------------------

    def subscribe(
        self, handler: Subscriber, resources: Iterable[GroupResource] | None = None
    ) -> Subscription:
        """Call ``handler`` for every later change (of ``resources``), synchronously."""
        wanted = None if resources is None else tuple(resources)
        subscription = Subscription(self, handler, wanted)
        self._subscriptions.append(subscription)
        self._routes.clear()
        return subscription

    def _unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._routes.clear()

    def add_index(self, resource: GroupResource, name: str, key: KeyFunction) -> None:
        """Keep records findable by ``key(record)``; adding the same index again does nothing."""
        self.indexes.add(resource, name, key, self._objects[resource].values())

    # -- inside ----------------------------------------------------------------------------

    def _current(
        self, resource: GroupResource, namespace: str, name: str, expected: int | None
    ) -> Record:
        current = self.get(resource, namespace, name)
        if current is None:
            raise NotFoundError(
                f'{resource} "{name}" not found',
                name=name,
                group=resource.group,
                kind=resource.resource,
            )
        if expected is not None and expected != current.revision:
            raise ConflictError(
                f'Operation cannot be fulfilled on {resource} "{name}": the object has been '
                "modified; please apply your changes to the latest version and try again",
                name=name,
                group=resource.group,
                kind=resource.resource,
            )
        return current

    def _claim(self) -> None:
        if self._notifying is not None:
            raise ReentrantWriteError(
                f"a subscriber tried to write while it was being told of {self._notifying!r}: "
                "enqueue the work and write when your turn comes"
            )
        if self._owner is not None and self._owner != get_ident():
            raise ReentrantWriteError(
                "this thread does not own the store: submit the write to the engine thread"
            )

    def _put(
        self,
        change_type: ChangeType,
        resource: GroupResource,
        obj: JsonObject,
        previous: Record | None,
    ) -> Record:
        revision = self._revision + 1
        copy = versioned(obj, revision)
        record = make_record(resource, copy, revision)
        self._remember(revision, copy)
        return self._commit(change_type, record, previous)

    def _commit(self, change_type: ChangeType, record: Record, previous: Record | None) -> Record:
        self._begun = record.revision
        objects = self._objects[record.resource]
        key = (record.namespace, record.name)
        if change_type is ChangeType.DELETED:
            del objects[key]
        else:
            objects[key] = record
        if change_type is not ChangeType.MODIFIED:
            self._membership[record.resource] += 1
        self._revision = self._newest[record.resource] = record.revision
        self.indexes.update(previous, None if change_type is ChangeType.DELETED else record)
        self._notify(Change(change_type, record, previous, self))
        return record

    def _notify(self, change: Change) -> None:
        self.history.append(change)
        resource = change.record.resource
        route = self._routes.get(resource)
        if route is None:
            route = self._routes[resource] = tuple(
                s.handler
                for s in self._subscriptions
                if s.resources is None or resource in s.resources
            )
        self._notifying = change
        try:
            for handler in route:
                handler(change)
        finally:
            self._notifying = None

    def _remember(self, revision: int, obj: JsonObject) -> None:
        self._decoded[revision] = obj
        if len(self._decoded) > DECODED_OBJECTS_KEPT:
            self._decoded.popitem(last=False)

    def _keys(self, resource: GroupResource, objects: dict[tuple[str, str], Record]) -> Keys:
        # Counted after the objects changed, so keys sorted during a change are never taken for new.
        membership = self._membership[resource]
        counted, keys = self._sorted.get(resource, (-1, []))
        if counted != membership:
            keys = sorted(objects.copy())
            self._sorted[resource] = (membership, keys)
        return keys
