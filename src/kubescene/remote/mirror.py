"""A copy of everything that an API server holds, kept by watches.

The copy is an ordinary store, so that whoever reads it or is told of changes (controllers, the
scheduler, the engine) need not know that the objects are somewhere else. Nobody writes to it but
the mirror. All controllers hear of a change at once and in the same order, and one wait per write
is enough for all of them.

Objects come without ``managedFields``, which would be most of what is stored, and with the times of
the scenario (`ScenarioTimes`). A real server dates objects by its own clock, and nobody can tell it
to do otherwise. Controllers compare such dates with the world's time, which is virtual: a pod would
have been deleted in two years. So what the mirror hands on says when something happened in the
scenario: an object was created, its deletion was asked for, a pod was bound, at the instant at
which it was heard of. Since every write is waited for, that is the instant at which it was made.
What the server itself holds keeps its real times.
"""

from collections.abc import Callable, Container

from kubescene.api.kinds import LEASE, NODE, POD, SCENARIO
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.client.http import HttpClient
from kubescene.clock import SECOND, Clock, ScaledClock, format_time, go_seconds
from kubescene.errors import UnseenWriteError
from kubescene.registry import Registry
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.remote.intruders import Intruders
from kubescene.types import JsonObject, JsonValue

REAL = frozenset({SCENARIO.kind, LEASE.kind, "Event"})
"""Kinds that live on the server's clock."""
PATIENCE_S = 30.0
LOOK_S = 0.05


class ScenarioTimes:
    """Remembers, by uid, what was heard of when."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._created: dict[str, str] = {}
        self._deleted: dict[str, tuple[str, str]] = {}
        self._bound: dict[str, tuple[str, str]] = {}

    def note_created(self, obj: JsonObject) -> None:
        """An object has come into being now."""
        if obj["kind"] not in REAL:
            self._created[obj["metadata"].get("uid", "")] = self._now()

    def forget(self, uid: str) -> None:
        for known in (self._created, self._deleted, self._bound):
            known.pop(uid, None)

    def retimed(self, obj: JsonObject) -> JsonObject:
        """A copy with the scenario's times, as far as they are known."""
        if obj["kind"] in REAL:
            return obj
        metadata = dict(obj["metadata"])
        uid = metadata.get("uid", "")
        if created := self._created.get(uid):
            metadata["creationTimestamp"] = created
        if stamped := metadata.get("deletionTimestamp"):
            grace_s = int(metadata.get("deletionGracePeriodSeconds") or 0)
            metadata["deletionTimestamp"] = self._end(uid, stamped, grace_s)
        obj = {**obj, "metadata": metadata}
        return self._placed(obj, uid) if obj["kind"] == POD.kind and uid in self._created else obj

    def _end(self, uid: str, stamped: str, grace_s: int) -> str:
        """When the grace of an object ends; anew if somebody has shortened it."""
        known = self._deleted.get(uid)
        if known is None or known[0] != stamped:
            end = format_time(self._clock.now() + go_seconds(grace_s))
            known = self._deleted[uid] = (stamped, end)
        return known[1]

    def _placed(self, pod: JsonObject, uid: str) -> JsonObject:
        """The pod with the time at which it was bound; a server writes that condition itself."""
        conditions = (pod.get("status") or {}).get("conditions") or ()
        for at, condition in enumerate(conditions):
            if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
                stamped = condition.get("lastTransitionTime")
                known = self._bound.setdefault(uid, (stamped, self._now()))
                if stamped != known[0]:
                    return pod
                told = {**condition, "lastTransitionTime": known[1]}
                changed = [*conditions[:at], told, *conditions[at + 1 :]]
                return {**pod, "status": {**pod["status"], "conditions": changed}}
        return pod

    def _now(self) -> str:
        return format_time(self._clock.now())


class Mirror:
    """Follows every kind that the server has, in one thread: its owner's."""

    def __init__(
        self,
        client: HttpClient,
        registry: Registry,
        managers: Container[str],
        patience_s: float = PATIENCE_S,
    ) -> None:
        """``managers`` are the field managers that Kubescene writes as."""
        self._client = client
        self._registry = registry
        self._store = registry.store
        self._managers = managers
        self._patience_s = patience_s
        self._clock: Clock = ScaledClock(1)
        self._times = ScenarioTimes(registry.clock)
        self._is_complete = False
        self._ours: set[str] = set()
        self.nodes_to_be: dict[str, JsonValue] = {}
        """The taints that nodes are to have whose creation is under way, by name."""
        self.intruders = Intruders(managers)

    def begin(self) -> None:
        """Take over all that exists, and follow it from now on."""
        self._client.watch_all(self._heard)
        self._is_complete = True

    def hear(self, timeout_s: float = 0.0) -> int:
        """Take over what has changed meanwhile; how many changes."""
        return self._client.pump(timeout_s)

    def wait_for(self, record: Record) -> None:
        """Return when the copy shows a write; ``record`` is what the server answered."""
        self._client.wait_seen(record.revision)

    def wait_until(self, happened: Callable[[], bool], what: str) -> None:
        """Return when something that the server does by itself is so in the copy."""
        deadline = self._clock.now() + int(self._patience_s * SECOND)
        while not happened():
            left = deadline - self._clock.now()
            if left <= 0:
                raise UnseenWriteError(f"{what} is not so after {self._patience_s:g} s")
            # That a new kind is followed is no change of an object: nothing is told of it.
            self._client.pump(min(left / SECOND, LOOK_S))

    def is_ours(self, record: Record) -> bool:
        """Whether Kubescene has written the object: by what its field managers are called."""
        return record.uid in self._ours

    # -- inside ----------------------------------------------------------------------------

    def _heard(self, change: Change) -> None:
        self.intruders.heard(change)
        if change.type is ChangeType.DELETED:
            self._remove(change.record)
        else:
            self._put(change)

    def _put(self, change: Change) -> None:
        record, obj = change.record, change.object
        if change.type is ChangeType.ADDED and self._is_complete:
            self._times.note_created(obj)
        self._note_managers(obj)
        kept = self._store.mirror(record.resource, self._shown(obj), record.revision)
        if kept.resource == DEFINITIONS:
            self._registry.custom.install(kept)

    def _remove(self, record: Record) -> None:
        if self._store.get(record.resource, record.namespace, record.name) is not None:
            self._store.remove(record.resource, record.namespace, record.name)
        self._times.forget(record.uid)
        self._ours.discard(record.uid)
        if record.resource == DEFINITIONS:
            self._registry.custom.uninstall(record.name)

    def _shown(self, obj: JsonObject) -> JsonObject:
        obj = self._times.retimed(obj)
        if "managedFields" in obj["metadata"]:
            metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
            obj = {**obj, "metadata": metadata}
        if obj["kind"] == NODE.kind and obj["metadata"]["name"] in self.nodes_to_be:
            return with_taints(obj, self.nodes_to_be[obj["metadata"]["name"]])
        return node_last(obj) if obj["kind"] == POD.kind else obj

    def _note_managers(self, obj: JsonObject) -> None:
        metadata = obj["metadata"]
        entries = metadata.get("managedFields") or ()
        if any(entry.get("manager") in self._managers for entry in entries):
            self._ours.add(metadata.get("uid", ""))


def with_taints(node: JsonObject, taints: JsonValue) -> JsonObject:
    rest = {name: value for name, value in (node.get("spec") or {}).items() if name != "taints"}
    return {**node, "spec": {**rest, "taints": taints} if taints else rest}


def node_last(pod: JsonObject) -> JsonObject:
    """A pod whose node is the last member of its spec: so a binding changes nothing before it."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or "nodeName" not in spec:
        return pod
    rest = {name: value for name, value in spec.items() if name != "nodeName"}
    return {**pod, "spec": {**rest, "nodeName": spec["nodeName"]}}
