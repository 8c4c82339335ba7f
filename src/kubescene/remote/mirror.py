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

`Intruders` finds out that somebody else has written while a scenario had the cluster. With the
admission webhook nobody can. Without it, what others write would change the result, and nobody
would know: so the scenario fails and says who it was. The engine makes one write at a time
and knows what the server answered, so a change that is newer than the newest answer about its
object is somebody else's. What the server does for itself is not looked at, nor are bookkeeping
and the system namespaces.
"""

from collections.abc import Callable, Container

from kubescene.api.disruption_budgets import BUDGETS
from kubescene.api.kinds import BOOKKEEPING, LEASE, NODE, POD, SCENARIO
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.client.http import HttpClient
from kubescene.clock import SECOND, Clock, Deadline, ScaledClock, format_time, go_seconds
from kubescene.errors import UnseenWriteError
from kubescene.registry import Registry
from kubescene.registry.admission.plugins.service_account import DEFAULT_ACCOUNT, SERVICE_ACCOUNTS
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.remote.wiping import SYSTEM_NAMESPACES, is_of_server
from kubescene.types import JsonObject, JsonValue

UNKNOWN = "somebody"
ACCOUNT = (SERVICE_ACCOUNTS, DEFAULT_ACCOUNT)
"""Which a controller manager makes for every namespace, as we do."""
ENDINGS = ("delete", "evict")


class Intruders:
    """Told of every answer to our own writes, and then of every change."""

    def __init__(self, managers: Container[str]) -> None:
        """``managers`` are the field managers that Kubescene writes as."""
        self._managers = managers
        self._is_looking = False
        self._answered: dict[tuple[GroupResource, str, str], int] = {}
        self._ended: set[str] = set()
        self.found = ""
        """What the first of them did; empty as long as there was none."""

    def look(self) -> None:
        """A scenario has the cluster from now on."""
        self._is_looking = True
        self.found = ""

    def look_away(self) -> None:
        """Everybody may write again."""
        self._is_looking = False
        self.found = ""
        self._answered.clear()
        self._ended.clear()

    def answered(self, verb: str, record: Record) -> None:
        """A write of our own was accepted."""
        key = (record.resource, *record.key)
        self._answered[key] = max(record.revision, self._answered.get(key, 0))
        if verb in ENDINGS or record.deleting:
            self._ended.add(record.uid)
            if record.resource == DEFINITIONS:
                self._ended.add(record.name)  # which is what its resource is called

    def heard(self, change: Change) -> None:
        """Something has changed on the server."""
        if self._is_looking and not self.found and not self._is_expected(change):
            record = change.record
            what = {ChangeType.ADDED: "created", ChangeType.DELETED: "deleted"}
            self.found = (
                f'{record.resource} "{record.name}" was {what.get(change.type, "changed")} by '
                f"{self._writer_of(change)}"
            )

    def _is_expected(self, change: Change) -> bool:
        record = change.record
        if is_aside(record):
            return True
        if change.type is ChangeType.DELETED:
            # With its definition, a server takes away all that is of a kind.
            return record.uid in self._ended or str(record.resource) in self._ended
        if record.resource == BUDGETS and is_status_alone(change):
            return True  # an eviction notes there what it has taken
        return record.revision <= self._answered.get((record.resource, *record.key), 0)

    def _writer_of(self, change: Change) -> str:
        """Another field manager that wrote last, as far as the object tells: not of a deletion."""
        if change.type is ChangeType.DELETED:
            return UNKNOWN
        entries = [
            entry
            for entry in change.object["metadata"].get("managedFields") or ()
            if entry.get("manager") not in self._managers
        ]
        newest = max(entries, key=lambda entry: entry.get("time") or "", default=None)
        return UNKNOWN if newest is None else str(newest.get("manager") or UNKNOWN)


def is_aside(record: Record) -> bool:
    """Whether a change of the object means nothing to a scenario."""
    return (
        record.resource in BOOKKEEPING
        or record.resource == DEFINITIONS
        or record.namespace in SYSTEM_NAMESPACES
        or (record.resource, record.name) == ACCOUNT
        or is_of_server(record)
    )


def is_status_alone(change: Change) -> bool:
    before = change.previous_object
    return before is not None and generation(before) == generation(change.object)


def generation(obj: JsonObject) -> int:
    return int(obj["metadata"].get("generation") or 0)


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
        deadline = Deadline(self._clock, int(self._patience_s * SECOND))
        while not happened():
            if deadline.is_over:
                raise UnseenWriteError(f"{what} is not so after {self._patience_s:g} s")
            # That a new kind is followed is no change of an object: nothing is told of it.
            self._client.pump(min(deadline.left_s, LOOK_S))

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
