"""The world's single writer: revisioned objects, an ordered history, synchronous subscribers.

Every accepted write takes the next revision, is handed to the journal if there is one, replaces
one record, is appended to the history and then handed to the subscribers of its resource, in the
order they subscribed. Subscribers may enqueue work, never write: a write during notification
raises `ReentrantWriteError`. The thread that calls `own` is the only one that may write from then
on; other threads read.
"""

from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from threading import get_ident
from types import FunctionType
from typing import Any, TypeAlias, cast

import orjson

from kubescene.api.changes import Change, ChangeType
from kubescene.api.encoding import encode
from kubescene.api.part_decoding import PartDecoder
from kubescene.api.parts import Composite, PartEncoder, Payload, Predecessor, Sections, restated
from kubescene.api.records import Record, make_record, successor, versioned
from kubescene.api.scheme import GroupResource
from kubescene.api.traits import EVERYTHING, traits_of
from kubescene.errors import AlreadyExistsError, ConflictError, NotFoundError, ReentrantWriteError
from kubescene.store.history import DEFAULT_WINDOW, History
from kubescene.store.indexes import Indexes, KeyFunction
from kubescene.store.journals import Journal
from kubescene.types import JsonObject

DECODED_OBJECTS_KEPT = 1024
SNAPSHOT_LOOKS = 3
PODS = GroupResource("", "pods")
EVENTS = GroupResource("", "events")
"""Many small members, none of them shared or changed apart: Events are encoded as a whole."""


Subscriber: TypeAlias = Callable[[Change], None]
Records: TypeAlias = list[Record]
Keys: TypeAlias = list[tuple[str, str]]
Route: TypeAlias = tuple[Subscriber, ...]
"""Who is told of a resource, and which traits of a change they look for."""


class Subscription:
    """Hands changes of some resources to one callable, until cancelled."""

    __slots__ = ("_store", "goes_with_fork", "handler", "patient", "resources", "traits")

    def __init__(
        self,
        store: "Store",
        handler: Subscriber,
        resources: tuple[GroupResource, ...] | None,
        goes_with_fork: bool,
        patient: Collection[GroupResource] = (),
        traits: int = EVERYTHING,
    ) -> None:
        self._store = store
        self.handler = handler
        self.resources = resources
        self.goes_with_fork = goes_with_fork
        self.patient = patient
        self.traits = traits

    def follows(self, resource: GroupResource) -> bool:
        """Whether it wants every change of the resource, also one that could be deferred."""
        if self.resources is None:
            return resource not in self.patient
        return resource in self.resources

    def hears(self, resource: GroupResource, traits: int) -> bool:
        """Whether it is told of a change of the resource that has these traits."""
        follows = self.resources is None or resource in self.resources
        return follows and (self.traits == EVERYTHING or bool(self.traits & traits))

    def cancel(self) -> None:
        """Stop. Safe to call twice."""
        self._store._unsubscribe(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Subscription":
        twin = memo[id(self)] = Subscription.__new__(Subscription)
        twin._store = deepcopy(self._store, memo)
        twin.handler = deepcopy(self.handler, memo)
        twin.resources = self.resources
        twin.goes_with_fork = True
        twin.patient = self.patient
        twin.traits = self.traits
        return twin


Subscriptions: TypeAlias = list[Subscription]


class Store:
    """All objects of one world.

    A copy (`copy.deepcopy`) shares the records and is independent otherwise. Components that are
    subscribed are copied along, so a copied controller hears the copied store; watches and plain
    functions stay with the original. The copy has no journal and no owner.
    """

    def __init__(self, *, window: int = DEFAULT_WINDOW, journal: Journal | None = None) -> None:
        self.history = History(window)
        self._journal = journal
        self._encoder = PartEncoder()
        self._decoder = PartDecoder()
        self.indexes = Indexes()
        self._revision = 0
        self._deferred: dict[GroupResource, tuple[Record, Callable[[int], Payload], str]] = {}
        self._followed: dict[GroupResource, bool] = {}
        self._begun = 0
        self._objects: defaultdict[GroupResource, dict[tuple[str, str], Record]] = defaultdict(dict)
        self._sorted: dict[GroupResource, tuple[int, Keys]] = {}
        self._membership: defaultdict[GroupResource, int] = defaultdict(int)
        self._subscriptions: Subscriptions = []
        self._routes: dict[tuple[GroupResource, int], Route] = {}
        self._looks_for_traits = False
        """Whether somebody is told only of changes with certain traits."""
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
        return self.history.newest_of(resource)

    def known_resources(self) -> tuple[GroupResource, ...]:
        """Resources of which there is or was an object, in order of their first one."""
        return self.history.resources()

    @property
    def durable_revision(self) -> int:
        """Up to where nothing can be lost; without a journal that is all there is."""
        return self._revision if self._journal is None else self._journal.durable

    def get(self, resource: GroupResource, namespace: str, name: str) -> Record | None:
        if resource in self._deferred:
            self._catch_up(resource)
        objects = self._objects.get(resource)
        return None if objects is None else objects.get((namespace, name))

    def list(self, resource: GroupResource, namespace: str = "") -> Records:
        """Records ordered by namespace and name, as a real API server lists them."""
        if resource in self._deferred:
            self._catch_up(resource)
        objects = self._objects.get(resource)
        if not objects:
            return []
        keys = self._keys(resource, objects)
        if namespace:
            start = bisect_left(keys, (namespace, ""))
            keys = keys[start : bisect_left(keys, (namespace + "\0", ""), start)]
        # Another thread may take objects away meanwhile: `consistent_list` misses none.
        return [*filter(None, map(objects.get, keys))]

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
        self._catch_up(resource)
        return [*self._objects[resource].values()]

    def list_at(self, resource: GroupResource, revision: int, namespace: str = "") -> Records:
        """The records as they were at ``revision``; raises `ExpiredError` if that is forgotten."""
        state = {record.key: record for record in self.list(resource)}
        for change in reversed(self.history.since(revision, (resource,))):
            if change.previous is None:
                state.pop(change.record.key, None)
            else:
                state[change.record.key] = change.previous
        return [state[key] for key in sorted(state) if not namespace or key[0] == namespace]

    def is_newest(self, record: Record) -> bool:
        """Whether nobody has written the object since, but for what its owner deferred."""
        return self._objects[record.resource].get(record.key) is record

    def resources(self) -> tuple[GroupResource, ...]:
        """Resources that hold at least one object, in a fixed order."""
        return tuple(sorted(resource for resource, objects in self._objects.items() if objects))

    def count(self, resource: GroupResource) -> int:
        return len(self._objects.get(resource, ()))

    def decoded(self, record: Record) -> JsonObject:
        """The decoded object, shared and therefore read-only. Owner thread only.

        Of a `Composite` payload it is the outline: the large part is not decoded.
        """
        cached = self._decoded.get(record.revision)
        if cached is None:
            cached = self._decode(record)
            self._remember(record.revision, cached)
        else:
            self._decoded.move_to_end(record.revision)
        return cached

    # -- writing ---------------------------------------------------------------------------

    def create(
        self, resource: GroupResource, obj: JsonObject, *, like: Predecessor | None = None
    ) -> Record:
        """Store a new object; its metadata must carry a name.

        ``like`` is another object, stored and decoded: members that are the very same as its own
        are not encoded again.
        """
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if key in self._objects[resource]:
            raise taken(resource, key[1])
        self._claim()
        return self._put(ChangeType.ADDED, resource, obj, None, like)

    def update(
        self, resource: GroupResource, obj: JsonObject, *, expected: int | None = None
    ) -> Record:
        """Replace an object; with ``expected``, only if that is still its revision."""
        metadata = obj["metadata"]
        current = self._current(resource, metadata.get("namespace", ""), metadata["name"], expected)
        self._claim()
        return self._put(ChangeType.MODIFIED, resource, obj, current)

    def create_like(
        self, other: Record, name: str, uid: str, metadata: bytes, members: tuple[bytes, ...]
    ) -> Record:
        """Store a new object that is encoded already, and like another one in all else."""
        resource, namespace = other.resource, other.namespace
        assert isinstance(other.payload, Sections)
        if (namespace, name) in self._objects[resource]:
            raise taken(resource, name)
        self._claim()
        revision = self._revision + 1
        record = Record(
            resource,
            namespace,
            name,
            uid,
            revision,
            type(other.payload)(other.payload.head, revision, metadata, members),
            other.labels,
            other.node,
            other.phase,
            other.owner,
        )
        return self._commit(Change(ChangeType.ADDED, record, None, self))

    def rewrite(
        self,
        current: Record,
        members: tuple[bytes, ...],
        *,
        node: str,
        phase: str,
        metadata: bytes | None = None,
        labels: dict[str, str] | None = None,
        deleting: bool = False,
    ) -> Record:
        """Replace the encoding of the newest record, apart from metadata that are not given.

        ``node``, ``phase``, ``labels`` and ``deleting`` are what the encoding says of them.
        """
        self._claim()
        revision, old = self._revision + 1, current.payload
        assert isinstance(old, Sections)
        metadata = old.metadata if metadata is None else metadata
        record = Record(
            current.resource,
            current.namespace,
            current.name,
            current.uid,
            revision,
            type(old)(old.head, revision, metadata, members),
            current.labels if labels is None else labels,
            node,
            phase,
            current.owner,
            deleting or current.deleting,
        )
        return self._commit(Change(ChangeType.MODIFIED, record, current, self))

    def restate(self, current: Record, status: JsonObject) -> Record:
        """Replace the status of the newest record, which ends with it; all else stays."""
        self._claim()
        revision, old, before = self._revision + 1, current.payload, self.decoded(current)
        assert isinstance(old, Sections)
        metadata = {**before["metadata"], "resourceVersion": str(revision)}
        obj = {**before, "metadata": metadata, "status": status}
        payload = type(old)(old.head, revision, old.metadata, restated(old, status))
        record = successor(current, obj, revision, payload)
        return self._commit(Change(ChangeType.MODIFIED, record, current, self), obj)

    def shared(self, part: bytes) -> bytes:
        """The part, or the one that is kept already for the same text."""
        return self._encoder.shared(part)

    def update_payload(
        self, record: Record, build: Callable[[int], Payload], *, phase: str
    ) -> Record:
        """Replace the encoding of a record by parts made for the next revision."""
        current = self._current(record.resource, record.namespace, record.name, None)
        self._claim()
        replacement = replaced(current, self._revision + 1, build, phase)
        return self._commit(Change(ChangeType.MODIFIED, replacement, current, self))

    def defer_payload(self, record: Record, build: Callable[[int], Payload], *, phase: str) -> bool:
        """Like `update_payload`, but made only when somebody reads the resource.

        For the newest record of an object that changes far more often than anybody looks at it.
        Refused (False) if the record is not the newest, or if somebody may be looking already: a
        subscriber of the resource, a journal, another thread.
        """
        resource = record.resource
        pending = self._deferred.get(resource)
        if pending is None or pending[0] is not record:
            # What was deferred once may be so again: whoever comes to look makes it at once.
            served = self._journal is not None or self._owner is not None
            if served or self._is_followed(resource) or not self.is_newest(record):
                return False
            self._catch_up(resource)
        self._deferred[resource] = (record, build, phase)
        return True

    def remove(
        self, resource: GroupResource, namespace: str, name: str, *, expected: int | None = None
    ) -> Record:
        """Take an object away.

        The returned record is its last state at the revision of the removal.
        """
        current = self._current(resource, namespace, name, expected)
        self._claim()
        payload = current.payload
        if not isinstance(payload, Sections):
            return self._put(ChangeType.DELETED, resource, self.decoded(current), current)
        revision = self._revision + 1
        payload = type(payload)(payload.head, revision, payload.metadata, payload.members)
        record = at_revision(current, revision, payload)
        return self._commit(Change(ChangeType.DELETED, record, current, self))

    def mirror(self, resource: GroupResource, obj: JsonObject, version: int) -> Record:
        """Take over an object as another server holds it, new or changed.

        Its ``resourceVersion`` stays that server's ``version``, so that whoever sends the object
        back is understood; here it takes the next revision, as every write does.
        """
        metadata = obj["metadata"]
        current = self._objects[resource].get((metadata.get("namespace", ""), metadata["name"]))
        self._claim()
        copy = versioned(obj, version)
        before = None if current is None else self._known_encoding(current, obj)
        payload = self._encoder.sections(copy, version, before, node_apart=resource == PODS)
        record = make_record(resource, copy, self._revision + 1, payload)
        kind = ChangeType.ADDED if current is None else ChangeType.MODIFIED
        return self._commit(Change(kind, record, current, self), copy)

    def restore(self, records: Iterable[Record], revision: int) -> None:
        """Fill an empty store with records, in order of creation, as they were at ``revision``.

        Subscribers are told of each as ADDED once all are there. The journal is not: it is where
        they come from. Nothing before ``revision`` is known.
        """
        self._claim()
        if self._revision or any(self._objects.values()):
            raise ValueError("only an empty store can be restored: make a new one")
        restored = [*records]
        if any(record.revision > revision for record in restored):
            raise ValueError(f"a record is newer than revision {revision}, which it is part of")
        self._begun = revision
        changes = [Change(ChangeType.ADDED, record, None, self) for record in restored]
        for change in changes:
            self._objects[change.record.resource][change.record.key] = change.record
            self._membership[change.record.resource] += 1
            self.indexes.update(change)
        self.history.begin_at(revision)
        self._revision = revision
        for change in changes:
            self._notify(change)

    def flush(self) -> None:
        """Return once every write is durable: what has to happen before a client is answered."""
        if self._journal is not None:
            self._journal.flush()

    def own(self) -> None:
        """From now on only the calling thread writes."""
        self.catch_up(*self._deferred)
        self._owner = get_ident()

    # -- subscribing -----------------------------------------------------------------------

    def subscribe(
        self,
        handler: Subscriber,
        resources: Iterable[GroupResource] | None = None,
        *,
        goes_with_fork: bool = True,
        patient: Collection[GroupResource] = (),
        traits: int = EVERYTHING,
    ) -> Subscription:
        """Call ``handler`` for every later change (of ``resources``), synchronously.

        Who follows everything may say what it is ``patient`` about: resources of which it need not
        hear what may be deferred (see `defer_payload`). Changes of pods that have none of the
        ``traits`` (`kubescene.api.traits`) are left out. A copy of the store has a copy of the
        subscription, unless that is not wanted or the handler is a plain function, which cannot be
        told apart from its copy.
        """
        wanted = None if resources is None else tuple(resources)
        for resource in [*self._deferred] if wanted is None else wanted:
            self._catch_up(resource)
        copied = goes_with_fork and not isinstance(handler, FunctionType)
        subscription = Subscription(self, handler, wanted, copied, patient, traits)
        self._subscriptions.append(subscription)
        self._reroute()
        return subscription

    def _unsubscribe(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._reroute()

    def _reroute(self) -> None:
        """Those who listen are others now."""
        self._routes.clear()
        self._followed.clear()
        self._looks_for_traits = any(it.traits != EVERYTHING for it in self._subscriptions)

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

    def catch_up(self, *resources: GroupResource) -> None:
        """Make what was deferred, before somebody looks at what has happened."""
        for resource in resources:
            self._catch_up(resource)

    def _is_followed(self, resource: GroupResource) -> bool:
        """Whether somebody wants to hear of every change of this resource."""
        followed = self._followed.get(resource)
        if followed is None:
            followed = any(each.follows(resource) for each in self._subscriptions)
            self._followed[resource] = followed
        return followed

    def _catch_up(self, resource: GroupResource) -> None:
        """Make the change that was deferred. Nobody follows it, so nobody has to be told."""
        deferred = self._deferred.pop(resource, None)
        if deferred is None:
            return
        record, build, phase = deferred
        self._begun = revision = self._revision + 1
        newest = replaced(record, revision, build, phase)
        self._objects[resource][record.key] = newest
        self._revision = revision
        change = Change(ChangeType.MODIFIED, newest, record, self)
        self.indexes.update(change)
        self.history.append(change)

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
        like: Predecessor | None = None,
    ) -> Record:
        revision = self._revision + 1
        copy = versioned(obj, revision)
        if resource == EVENTS:
            record = make_record(resource, copy, revision, encode(copy))
            return self._commit(Change(change_type, record, previous, self), copy)
        if previous is not None and isinstance(previous.payload, Composite):
            shared = previous.payload.succeed(copy, revision)
            if shared is not None:
                record = make_record(resource, copy, revision, shared)
                return self._commit(Change(change_type, record, previous, self), copy)
        before = like if previous is None else self._known_encoding(previous, obj)
        payload = self._encoder.sections(copy, revision, before, node_apart=resource == PODS)
        if previous is not None and before is not None and before.same_metadata:
            record = successor(previous, copy, revision, payload)
        else:
            record = make_record(resource, copy, revision, payload)
        return self._commit(Change(change_type, record, previous, self), copy)

    def _known_encoding(self, previous: Record, obj: JsonObject) -> Predecessor | None:
        """What is known of the encoding of an object that replaces ``previous``."""
        payload = previous.payload
        if not isinstance(payload, Sections):
            return None
        old = self._decoded.get(previous.revision)
        if old is None:
            return Predecessor(payload)
        return Predecessor(payload, old, same_metadata=obj["metadata"] is old["metadata"])

    def _commit(self, change: Change, decoded: JsonObject | None = None) -> Record:
        if self._journal is not None:
            self._enter(change)
        record = change.record
        resource = record.resource
        self._begun = record.revision
        if change.type is ChangeType.DELETED:
            del self._objects[resource][record.namespace, record.name]
        else:
            self._objects[resource][record.namespace, record.name] = record
        if change.type is not ChangeType.MODIFIED:
            self._membership[resource] += 1
        self._revision = record.revision
        if decoded is not None:
            self._remember(record.revision, decoded)
        self.indexes.update(change)
        self.history.append(change)
        self._notify(change)
        return record

    def _enter(self, change: Change) -> None:
        assert self._journal is not None
        try:
            self._journal.append(change)
        except BaseException:
            # What the journal may have decoded is not what the next write of this revision says.
            self._decoded.pop(change.revision, None)
            raise

    def _notify(self, change: Change) -> None:
        """Tell everybody; if some fail, the others hear of it all the same, then it is raised."""
        failures: list[Exception] = []
        self._notifying = change
        resource = change.record.resource
        traits = traits_of(change) if self._looks_for_traits and resource == PODS else EVERYTHING
        try:
            for handler in self._routes.get((resource, traits)) or self._route(resource, traits):
                try:
                    handler(change)
                except Exception as error:
                    failures.append(error)
        finally:
            self._notifying = None
        if failures:
            first, *others = failures
            for other in others:
                first.add_note(f"another subscriber failed with {other!r}")
            raise first

    def _route(self, resource: GroupResource, traits: int) -> Route:
        """Who is told of a change with these traits; there are few combinations."""
        route = self._routes[resource, traits] = tuple(
            each.handler for each in self._subscriptions if each.hears(resource, traits)
        )
        return route

    def _decode(self, record: Record) -> JsonObject:
        payload = record.payload
        if isinstance(payload, Sections):
            return self._decoder.decode(payload, node_apart=record.resource == PODS)
        if isinstance(payload, Composite):
            return cast("JsonObject", orjson.loads(payload.outline))
        return record.decode()

    def _remember(self, revision: int, obj: JsonObject) -> None:
        self._decoded[revision] = obj
        if len(self._decoded) > DECODED_OBJECTS_KEPT:
            self._decoded.popitem(last=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Store":
        twin = memo[id(self)] = type(self)()
        twin.history = self.history.copied(twin)
        twin.indexes = self.indexes.copied()
        twin._revision = twin._begun = self._revision
        twin._objects.update((resource, {**held}) for resource, held in self._objects.items())
        twin._membership.update(self._membership)
        twin._deferred.update(deepcopy(self._deferred, memo))
        twin._sorted.update(self._sorted)
        twin._subscriptions += [
            deepcopy(it, memo) for it in self._subscriptions if it.goes_with_fork
        ]
        twin._reroute()
        return twin

    def _keys(self, resource: GroupResource, objects: dict[tuple[str, str], Record]) -> Keys:
        # Counted after the objects changed, so keys sorted during a change are never taken for new.
        membership = self._membership[resource]
        counted, keys = self._sorted.get(resource, (-1, []))
        if counted != membership:
            keys = sorted(objects.copy())
            self._sorted[resource] = (membership, keys)
        return keys


def replaced(record: Record, revision: int, build: Callable[[int], Payload], phase: str) -> Record:
    """The record with another encoding and phase, at the next revision."""
    return Record(
        resource=record.resource,
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
        revision=revision,
        payload=build(revision),
        labels=record.labels,
        node=record.node,
        phase=phase,
        owner=record.owner,
        deleting=record.deleting,
    )


def at_revision(record: Record, revision: int, payload: Payload) -> Record:
    """The record at another revision, encoded as ``payload``."""
    return Record(
        record.resource,
        record.namespace,
        record.name,
        record.uid,
        revision,
        payload,
        record.labels,
        record.node,
        record.phase,
        record.owner,
        record.deleting,
    )


def taken(resource: GroupResource, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f'{resource} "{name}" already exists',
        name=name,
        group=resource.group,
        kind=resource.resource,
    )
