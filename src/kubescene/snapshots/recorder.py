"""A cluster followed for a while, by GET alone: what `kubescene record` does.

The first state is a snapshot; after it every change is written down that says more than that
something is still alive: specs, labels, places, phases, what a node has and how it fares.
Heartbeats are not. Held is the state of the cluster, however long it is followed.

A watch that breaks is taken up again; where the server has forgotten what happened meanwhile (410)
the state is listed anew and the difference is written down, as of then.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kubescene.actors import Actor
from kubescene.api.records.changes import Change, ChangeType
from kubescene.client.http import Endpoint, HttpClient
from kubescene.clock import MILLISECOND, SECOND, Clock
from kubescene.errors import ApiError, BadRequestError, ForbiddenError, SnapshotError
from kubescene.histories.history import RecordedEvent
from kubescene.histories.recordings import RecordingWriter
from kubescene.snapshots.anonymizing import Names
from kubescene.snapshots.gathering import scrubbed, why_not
from kubescene.snapshots.live import KINDS, TIMEOUT_S, ReadingRequests
from kubescene.snapshots.redaction import redacted
from kubescene.types import JsonObject

RECORDER = Actor("kubescene-record")
PATIENCE_S = 600.0
"""How long a cluster may be unreachable: its upgrade takes minutes."""
LOOK_S = 0.25
FLUSH_EVERY = 5 * SECOND
EVENTS = {
    ChangeType.ADDED: RecordedEvent.ADD,
    ChangeType.MODIFIED: RecordedEvent.UPDATE,
    ChangeType.DELETED: RecordedEvent.DELETE,
}


@dataclass(slots=True)
class Recorded:
    """What came of it."""

    objects: int = 0
    changes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)


class ClusterRecorder:
    """Follows one cluster, on the thread that calls it."""

    def __init__(
        self,
        endpoint: Endpoint,
        writer: RecordingWriter,
        clock: Clock,
        *,
        key: bytes | None = None,
        redact: bool = True,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """``key`` is what names are replaced with, if they are."""
        requests = ReadingRequests(endpoint, clock, timeout_s=TIMEOUT_S)
        self.client = HttpClient(
            endpoint, RECORDER, clock=clock, patience_s=patience_s, requests=requests
        )
        self._writer = writer
        self._clock = clock
        self._key = key
        self._redact = redact
        self._names: Names | None = None
        self._heard: list[Change] = []
        self.recorded = Recorded()
        self.reached: dict[str, int] = {}
        """By kind, the newest revision of an object that was heard of and written down."""

    @property
    def changes(self) -> int:
        """How many are written down so far."""
        return self._writer.changes

    def record(self, until: int | None, is_over: Callable[[], bool]) -> Recorded:
        """Follow the cluster until an instant, or until ``is_over`` says so.

        What was written is a complete recording, also where the cluster could not be reached any
        longer: then that is told by an `ApiError` in the end.
        """
        try:
            self._begin()
        except BaseException:
            self._writer.abandon()
            self.client.close()
            raise
        try:
            failure = self._follow(until, is_over)
        finally:
            self.client.close()
        if failure is not None:
            told = f"the cluster could not be followed to the end: {failure.message}"
            self.recorded.remarks.append(told)
        self._writer.end(self._clock.now(), self.recorded.remarks)
        self.recorded.changes = self._writer.changes
        if failure is not None:
            raise failure
        return self.recorded

    # -- inside ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        taken_at = self._clock.now()
        for each in KINDS:
            try:
                self.client.watch(each.gvk, self._heard.append)
            except BadRequestError:
                continue  # the server does not have the kind
            except ForbiddenError as error:
                told = f"{each.plural} may not be listed, and are not in it: {error.message}"
                self.recorded.remarks.append(told)
        objects = [shown for each in self._taken() if (shown := self._plain(each.object))]
        if not objects:
            raise SnapshotError("there is no object that could be recorded")
        if self._key is not None:
            self._names = Names(self._key, objects)
            objects = [self._names.renamed(each) for each in objects]
        self.recorded.kinds.update(str(each["kind"]) for each in objects)
        self.recorded.objects = self._writer.begin(
            taken_at,
            objects,
            redacted=self._redact,
            anonymized=self._key is not None,
            remarks=self.recorded.remarks,
        )
        self._writer.flush()

    def _follow(self, until: int | None, is_over: Callable[[], bool]) -> ApiError | None:
        flush_at = self._clock.now() + FLUSH_EVERY
        while not is_over():
            now = self._clock.now()
            if until is not None and now >= until:
                return None
            wait_s = LOOK_S if until is None else min(LOOK_S, (until - now) / SECOND)
            try:
                self.client.pump(max(wait_s, MILLISECOND / SECOND))
            except ApiError as error:
                self._write_down()
                return error
            self._write_down()
            if self._clock.now() >= flush_at:
                self._writer.flush()
                flush_at = self._clock.now() + FLUSH_EVERY
        return None

    def _write_down(self) -> None:
        """What was heard at once, in the order in which the server came to it."""
        at = self._clock.now()
        for change in self._taken():
            if change.type is not ChangeType.MODIFIED or is_news(change):
                obj = self._plain(change.object)
                if obj is not None and self._names is not None:
                    obj = self._names.renamed(obj)
                if obj is not None:
                    self._writer.add(at, EVENTS[change.type], obj)
            self.reached[change.object["kind"]] = change.revision

    def _taken(self) -> Iterator[Change]:
        heard, self._heard[:] = sorted(self._heard, key=lambda each: each.revision), []
        return iter(heard)

    def _plain(self, obj: JsonObject) -> JsonObject | None:
        """The object without what is confidential; None if it is no part of a recording."""
        if why_not(obj, custom=False, finished=True):
            return None
        return scrubbed(redacted(obj) if self._redact else obj)


def is_news(change: Change) -> bool:
    """Whether a change says more than that something is alive."""
    before = change.previous_object
    return before is None or essence(before) != essence(change.object)


def essence(obj: JsonObject) -> Any:
    """What of an object is written down when it changes."""
    metadata = obj["metadata"]
    told = [metadata.get(part) for part in ("labels", "annotations", "deletionTimestamp", "uid")]
    rest = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
    return [told, rest, _status(obj)]


def _status(obj: JsonObject) -> Any:
    status = obj.get("status")
    if not isinstance(status, dict):
        return None
    if obj["kind"] == "Pod":
        disrupted = [each for each in _conditions(status) if each.get("type") == "DisruptionTarget"]
        return [status.get("phase"), disrupted]
    if obj["kind"] == "Node":
        room = [status.get("capacity"), status.get("allocatable")]
        return [room, [(each.get("type"), each.get("status")) for each in _conditions(status)]]
    if obj["kind"] in ("PersistentVolume", "PersistentVolumeClaim", "Namespace"):
        return status.get("phase")
    return None


def _conditions(status: JsonObject) -> Iterator[JsonObject]:
    listed = status.get("conditions")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield each
