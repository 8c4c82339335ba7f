"""What a store holds, as it is read: by name, in order, as it was, decoded.

Any thread may read; records are immutable. Decoding is for the thread that writes, since what was
decoded is remembered.
"""

from bisect import bisect_left
from collections import defaultdict
from typing import TypeAlias, cast

import orjson

from kubescene.api.records import Record
from kubescene.api.records.changes import MODIFIED, Change
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.records.part_decoding import PartDecoder
from kubescene.api.records.parts import Composite, PodSections, Sections
from kubescene.api.records.traits import PODS
from kubescene.api.scheme import GroupResource
from kubescene.bounded import BoundedDict
from kubescene.store.history import DEFAULT_WINDOW, History
from kubescene.store.indexes import Indexes, KeyFunction
from kubescene.types import JsonObject

DECODED_OBJECTS_KEPT = 1024
SNAPSHOT_LOOKS = 3

Records: TypeAlias = list[Record]
Keys: TypeAlias = list[tuple[str, str]]


class StoredObjects:
    """The objects of one world, for those who read them."""

    def __init__(self, window: int = DEFAULT_WINDOW) -> None:
        self.history = History(window)
        self.indexes = Indexes()
        self._revision = 0
        self._begun = 0
        self._objects: defaultdict[GroupResource, dict[tuple[str, str], Record]] = defaultdict(dict)
        self._sorted: dict[GroupResource, tuple[int, Keys]] = {}
        self._membership: defaultdict[GroupResource, int] = defaultdict(int)
        self._deferred: dict[GroupResource, Rebuilt] = {}
        self._decoder = PartDecoder()
        self._decoded: BoundedDict[int, JsonObject] = BoundedDict(DECODED_OBJECTS_KEPT)

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

        Of a `Composite` payload it is the outline: the large part is not decoded.
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
        if isinstance(payload, Composite):
            return cast("JsonObject", orjson.loads(payload.outline))
        return record.decode()

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
