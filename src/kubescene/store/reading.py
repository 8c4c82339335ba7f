"""What a store holds, as it is read: by name, in order, as it was, decoded.

`StoreIndexes` find records by more than their name: pods by node, pods by controller.

Any thread may read; records are immutable. Decoding is for the thread that writes, since what was
decoded is remembered.

What objects share is decoded once, and shared (`PartDecoder`): the pods of one template have one
spec in the store, as bytes, and so they have one decoded spec. It is the object that decoding the
whole text gives, apart from who else holds it: read-only.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

import orjson

from kubescene.api.records import Record
from kubescene.api.records.changes import DELETED, MODIFIED, Change
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.records.parts import LONGEST_SHARED, PodSections, Sections
from kubescene.api.records.traits import PODS
from kubescene.api.scheme import GroupResource
from kubescene.api.text import pieces
from kubescene.bounded import BoundedDict
from kubescene.store.history import DEFAULT_WINDOW, History
from kubescene.types import JsonObject, JsonValue

_SPEC = b',"spec":{'


class PartDecoder:
    """Remembers the newest decoded parts."""

    def __init__(self) -> None:
        self._heads: dict[bytes, JsonObject] = {}
        self._known: BoundedDict[bytes, JsonObject] = BoundedDict()

    def decode(self, sections: Sections, *, node_apart: bool) -> JsonObject:
        """The object; with ``node_apart`` its spec is in two parts, the second from the node on."""
        revision = {"resourceVersion": str(sections.revision)}
        obj: JsonObject = {**self._head(sections.head), "metadata": None}
        obj["metadata"] = revision | orjson.loads(b"{" + sections.metadata)
        parts = iter(sections.members[:-1])
        for part in parts:
            if node_apart and part.startswith(_SPEC):
                obj["spec"] = self._spec(part, next(parts))
            else:
                obj.update(self._member(part, b"}"))
        return obj

    def pod(self, sections: PodSections) -> JsonObject:
        """A pod, whose parts are known."""
        spec, ending, status, _ = sections.members
        return {
            **self._head(sections.head),
            "metadata": {"resourceVersion": str(sections.revision)}
            | orjson.loads(b"{" + sections.metadata),
            "spec": self._spec(spec, ending),
            "status": self._member(status, b"}")["status"],
        }

    def _head(self, head: bytes) -> JsonObject:
        decoded = self._heads.get(head)
        if decoded is None:
            decoded = orjson.loads(head + b"}}")
            del decoded["metadata"]
            self._heads[head] = decoded
        return decoded

    def _spec(self, part: bytes, ending: bytes) -> JsonValue:
        spec = self._member(part, b"}}")["spec"]
        return spec if ending == b"}" else {**spec, **orjson.loads(b"{" + ending[1:])}

    def _member(self, part: bytes, closing: bytes) -> JsonObject:
        """An object with the one member that a part encodes."""
        member = self._known.get(part)
        if member is None:
            member = pieces.loads(b"{" + part[1:] + closing)
            if len(part) <= LONGEST_SHARED:
                self._known[part] = member
        return member


SNAPSHOT_LOOKS = 3

Records: TypeAlias = list[Record]
Keys: TypeAlias = list[tuple[str, str]]
KeyFunction: TypeAlias = Callable[[Record], str]
"""The key of a record, or an empty string if it does not belong into the index.

A plain function: copies of the store share it.
"""


class Index:
    """One index over one resource. Within a key, records keep the order of their creation."""

    __slots__ = ("_entries", "key")

    def __init__(self, key: KeyFunction) -> None:
        self.key = key
        self._entries: dict[str, dict[tuple[str, str], Record]] = {}

    def update(self, previous: Record | None, current: Record | None) -> None:
        before = self.key(previous) if previous is not None else ""
        after = self.key(current) if current is not None else ""
        if before and previous is not None and before != after:
            entries = self._entries[before]
            del entries[previous.key]
            if not entries:
                del self._entries[before]
        if after and current is not None:
            self._entries.setdefault(after, {})[current.key] = current

    def records(self, key: str) -> list[Record]:
        return list(self._entries.get(key, {}).values())

    def copied(self) -> "Index":
        copy = Index(self.key)
        copy._entries = {key: {**entries} for key, entries in self._entries.items()}
        return copy


class StoreIndexes:
    """All indexes of a store."""

    def __init__(self) -> None:
        self.kept: dict[GroupResource, dict[str, Index]] = {}
        """By resource and name."""

    def add(
        self, resource: GroupResource, name: str, key: KeyFunction, records: Iterable[Record]
    ) -> None:
        indexes = self.kept.setdefault(resource, {})
        if name not in indexes:
            index = indexes[name] = Index(key)
            for record in records:
                index.update(None, record)

    def update(self, change: Change) -> None:
        record = change.record
        if indexes := self.kept.get(record.resource):
            current = None if change.type is DELETED else record
            for index in indexes.values():
                index.update(change.previous, current)

    def records(self, resource: GroupResource, name: str, key: str) -> list[Record]:
        return self.kept[resource][name].records(key)

    def copied(self) -> "StoreIndexes":
        """The same indexes of the same records, for another store."""
        copy = StoreIndexes()
        for resource, indexes in self.kept.items():
            copy.kept[resource] = {name: it.copied() for name, it in indexes.items()}
        return copy


class StoredObjects:
    """The objects of one world, for those who read them."""

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.history = History(window)
        self.indexes = StoreIndexes()
        self._revision = 0
        self._begun = 0
        self._objects: defaultdict[GroupResource, dict[tuple[str, str], Record]] = defaultdict(dict)
        self._sorted: dict[GroupResource, tuple[int, Keys]] = {}
        self._membership: defaultdict[GroupResource, int] = defaultdict(int)
        self._deferred: dict[GroupResource, Rebuilt] = {}
        self._decoder = PartDecoder()
        self._decoded: BoundedDict[int, JsonObject] = BoundedDict()

    # -- revisions -------------------------------------------------------------------------

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

    # -- objects ---------------------------------------------------------------------------

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

    def all_records(self) -> Records:
        """All objects, those of a resource as they came."""
        self.catch_up(*self._deferred)
        return [it for resource in self.resources() for it in self._objects[resource].values()]

    def add_index(self, resource: GroupResource, name: str, key: KeyFunction) -> None:
        """Keep records findable by ``key(record)``; adding the same index again does nothing."""
        self.indexes.add(resource, name, key, self._objects[resource].values())

    def _keys(self, resource: GroupResource, objects: dict[tuple[str, str], Record]) -> Keys:
        # Counted after the objects changed, so keys sorted during a change are never taken for new.
        membership = self._membership[resource]
        counted, keys = self._sorted.get(resource, (-1, []))
        if counted != membership:
            keys = sorted(objects.copy())
            self._sorted[resource] = (membership, keys)
        return keys

    # -- decoding --------------------------------------------------------------------------

    def decoded(self, record: Record) -> JsonObject:
        """The decoded object, shared and therefore read-only. Owner thread only.

        Of an object with a large part it is the outline: that part is not decoded.
        """
        cached = self._decoded.get(record.revision)
        if cached is None:
            cached = self._decode(record)
            self._decoded[record.revision] = cached
        else:
            self._decoded.move_to_end(record.revision)
        return cached

    def _decode(self, record: Record) -> JsonObject:
        payload = record.payload
        if type(payload) is PodSections:
            return self._decoder.pod(payload)
        if isinstance(payload, Sections):
            return self._decoder.decode(payload, node_apart=record.resource == PODS)
        outline = record.outline
        return record.decode() if outline is None else cast("JsonObject", orjson.loads(outline))

    # -- what was deferred until somebody reads --------------------------------------------

    def catch_up(self, *resources: GroupResource) -> None:
        """Make what was deferred, before somebody looks at what has happened."""
        for resource in resources:
            self._catch_up(resource)

    def _catch_up(self, resource: GroupResource) -> None:
        """Make the change that was deferred. Nobody follows it, so nobody has to be told."""
        deferred = self._deferred.pop(resource, None)
        if deferred is None:
            return
        deferred.waits = False
        record = deferred.record
        self._begun = revision = self._revision + 1
        newest = deferred.at(revision)
        self._objects[resource][record.key] = newest
        self._revision = revision
        change = Change(MODIFIED, newest, record, self)
        self.indexes.update(change)
        self.history.append(change)
