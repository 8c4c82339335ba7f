"""The recorder of one component: from notices to Event objects, in the component's own name.

An Event is called by the object's name and an instant, as ``web.18a2f0c81b3e5d00``. On a real
cluster nanoseconds make such names unique. Here many things happen at one instant, so the stamp
moves on by one nanosecond for each: the same world gives the same names.

Events of events.k8s.io come in the series of client-go's newer recorder: the first of its kind is
written, the second turns it into a series, those that follow are only counted. A series is written
once more when nothing was added for six minutes, and every half hour while it goes on. Notices are
of a kind when all but their messages agree.

Events of one form are what a component says again and again about one object after the other. They
differ in their name, in what they are about, in their message and in the instant. The registry
checks the first of a form and makes the others like it; see `api.records.templates`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from kubescene.api.kinds import EVENT
from kubescene.api.options import NO_OPTIONS, WriteOptions
from kubescene.api.records.templates import Blueprint
from kubescene.api.scheme import GroupVersionKind
from kubescene.bounded import BoundedDict
from kubescene.client import ObjectRef, Writer
from kubescene.clock import MINUTE, Clock, EventQueue, format_micro_time, format_time
from kubescene.errors import AlreadyExistsError, ApiError, NotFoundError
from kubescene.recording.correlation import CorrelatedEvent, Correlator
from kubescene.recording.notices import Notice
from kubescene.types import JsonObject, ReadOnlyObject

_LONGEST_MESSAGE = 250
"""In characters, of which none takes more than four bytes; 1,024 bytes are allowed."""
_LONGEST_HOST = 120

_STORED_AS = {
    "eventTime": "eventTime",
    "firstTimestamp": "firstTimestamp",
    "involvedObject": "involvedObject",
    "lastTimestamp": "lastTimestamp",
    "message": "message",
    "note": "message",
    "regarding": "involvedObject",
    "reportingInstance": "reportingInstance",
    "source": "source",
}
"""What is each Event's own, and what it is called in the form that is stored."""


class EventForm(Blueprint):
    """An Event that others are like. They have a short message and are the first of their kind."""

    __slots__ = ()

    def covers(self, obj: ReadOnlyObject) -> bool:
        body = self.body
        if obj.keys() != body.keys():
            return False
        for name, value in obj.items():
            if name in _FREE:
                continue
            rule, known = _RULES.get(name), body[name]
            if not (value == known if rule is None else rule(value, known)):
                return False
        return True

    def poured(self, stored: JsonObject, obj: ReadOnlyObject) -> JsonObject:
        own = {_STORED_AS[name]: value for name, value in obj.items() if name in _STORED_AS}
        return {**stored, **own}


class EventForms:
    """The forms of one recorder, by what Events of one form have in common."""

    __slots__ = ("_forms",)

    def __init__(self) -> None:
        self._forms: BoundedDict[tuple[object, ...], EventForm] = BoundedDict()

    def of(self, event: JsonObject) -> EventForm | None:
        """The form that an Event has, or is the first to have; None if it is like no other."""
        if event.get("count", 1) > 1 or "series" in event or "related" in event:
            return None
        about = event.get("involvedObject") or event["regarding"]
        namespace = event["metadata"]["namespace"]
        key = (event["apiVersion"], namespace, event["reason"], event["type"], *about)
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = EventForm(event)
        return form


def _is_short(one: Any, other: Any) -> bool:
    return len(str(one)) <= _LONGEST_MESSAGE


def _is_host(one: Any, other: Any) -> bool:
    return len(str(one)) <= _LONGEST_HOST and bool(one) is bool(other)


def _is_there(one: Any, other: Any) -> bool:
    """Whether two objects have the same members, and are in the same namespace."""
    return bool(one.keys() == other.keys() and one.get("namespace") == other.get("namespace"))


def _is_of(one: Any, other: Any) -> bool:
    """The same of the component that speaks."""
    return bool(one.keys() == other.keys() and one.get("component") == other.get("component"))


_RULES: Mapping[str, Callable[[Any, Any], bool]] = {
    "message": _is_short,
    "note": _is_short,
    "reportingInstance": _is_host,
    "metadata": _is_there,
    "involvedObject": _is_there,
    "regarding": _is_there,
    "source": _is_of,
}
"""When two Events are alike in what may differ; in all else they have to be the same."""
_FREE = frozenset(_STORED_AS.keys() - _RULES.keys())


FINISH_AFTER = 6 * MINUTE
REFRESH_EVERY = 5
"""In ticks of `FINISH_AFTER`: half an hour."""

Key: TypeAlias = tuple[object, ...]


class EventSeries(msgspec.Struct):
    """An Event and how often it has been observed. ``count`` 1 means that it is no series."""

    notice: Notice
    name: str
    first: int
    last: int
    count: int = 1


class SeriesBook:
    """The Events of one component that may still be added to."""

    def __init__(self) -> None:
        self._open: dict[Key, EventSeries] = {}
        self._ticks = 0

    def observe(self, notice: Notice, name: str, now: int) -> EventSeries | None:
        """What to write now; ``name`` is for a new Event. None: it has been counted."""
        key = kind_of(notice)
        known = self._open.get(key)
        if known is None:
            known = self._open[key] = EventSeries(notice, name, now, now)
            return known
        known.count += 1
        known.last = now
        return known if known.count == 2 else None

    def tick(self, now: int) -> list[EventSeries]:
        """Close what has ended; returns the series to write once more."""
        self._ticks += 1
        due = []
        for key, series in list(self._open.items()):
            ended = series.last < now - FINISH_AFTER
            if ended:
                del self._open[key]
            if series.count > 1 and (ended or self._ticks % REFRESH_EVERY == 0):
                due.append(series)
        return due

    def __len__(self) -> int:
        return len(self._open)


def kind_of(notice: Notice) -> Key:
    parts = (notice.type, notice.action, notice.reason, notice.reporter, notice.host)
    related = notice.related or {}
    return (*parts, *sorted(notice.about.items()), "", *sorted(related.items()))


MAX_NAME_LENGTH = 253
NEW_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
DEFAULT_NAMESPACE = "default"
"""Where Events about objects without a namespace lie."""
_INSTANCE = "kubescene"
_log = logging.getLogger(__name__)


class EventStamps:
    """Stamps of one world, shared by all of its recorders."""

    __slots__ = ("_clock", "_last")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = -1

    def name(self, about: str) -> str:
        """A name that no Event of this world has had."""
        stamp = self._last = max(self._clock.now(), self._last + 1)
        name = f"{about}.{stamp:x}"
        # A name that long is no name any more; upstream makes one up, too.
        return name if len(name) <= MAX_NAME_LENGTH else f"{stamp:x}"

    def reset(self) -> None:
        self._last = -1


class Recorder(Protocol):
    """Where a component tells what happened."""

    @property
    def on(self) -> bool:
        """Whether anybody listens. Ask before you make up a notice that costs something."""
        ...

    def tell(self, notice: Notice) -> None:
        """Something happened."""
        ...


class Silent:
    """Nobody listens."""

    on = False

    def tell(self, notice: Notice) -> None:
        del notice


SILENT = Silent()


class NoticeList:
    """Keeps what is told, for those who compare it."""

    on = True

    def __init__(self, notices: list[Notice]) -> None:
        self._notices = notices

    def tell(self, notice: Notice) -> None:
        self._notices.append(notice)


class EventRecorder:
    """Writes Events through the component's client, on the world's clock.

    A refused Event is dropped, as upstream: what happened has happened.
    """

    on = True

    def __init__(
        self, client: Writer, clock: Clock, event_queue: EventQueue, stamps: EventStamps
    ) -> None:
        self._client = client
        self._clock = clock
        self._event_queue = event_queue
        self._stamps = stamps
        self._correlator = Correlator()
        self._series = SeriesBook()
        self._forms = EventForms()
        self._ticking = False

    def tell(self, notice: Notice) -> None:
        now, name = self._clock.now(), self._stamps.name(notice.about["name"])
        if notice.action:
            self._tell_series(notice, name, now)
        elif observation := self._correlator.observe(notice, name, now):
            changes = {"count": observation.count, "lastTimestamp": format_time(now)}
            changes["message"] = observation.notice.message
            event = core_event(observation, now)
            self._write(event, changes if observation.count > 1 else None)

    def withdraw(self) -> None:
        """Its component is gone: series stay as they were written last."""
        self._event_queue.withdraw(self._tick)

    def _tell_series(self, notice: Notice, name: str, now: int) -> None:
        if series := self._series.observe(notice, name, now):
            self._write_series(series)
        if not self._ticking:
            self._ticking = True
            self._event_queue.after(FINISH_AFTER, self._tick, name="series of events")

    def _tick(self) -> None:
        """Series that have ended get their final count."""
        for series in self._series.tick(self._clock.now()):
            self._write_series(series)
        self._ticking = len(self._series) > 0
        if self._ticking:
            self._event_queue.after(FINISH_AFTER, self._tick, name="series of events")

    def _write_series(self, series: EventSeries) -> None:
        event = new_event(series)
        self._write(event, {"series": event["series"]} if series.count > 1 else None)

    def _write(self, event: JsonObject, changes: JsonObject | None) -> None:
        """Create the Event, or change it; one that has expired is created again."""
        try:
            if changes is not None and self._is_changed(event, changes):
                return
            self._client.create(event, options=self._options(event))
        except AlreadyExistsError:
            return
        except ApiError as error:
            if not error.has_cause("NamespaceTerminating"):
                _log.warning("the event %s was refused: %s", event["metadata"]["name"], error)

    def _options(self, event: JsonObject) -> WriteOptions:
        form = self._forms.of(event)
        return NO_OPTIONS if form is None else WriteOptions(blueprint=form)

    def _is_changed(self, event: JsonObject, changes: JsonObject) -> bool:
        try:
            self._client.patch(ObjectRef.to(event), changes)
        except NotFoundError:
            return False
        return True


def core_event(observation: CorrelatedEvent, now: int) -> JsonObject:
    """An Event as kube-controller-manager and the kubelet write them."""
    notice = observation.notice
    event: JsonObject = {
        **_identity(EVENT, notice, observation.name),
        "involvedObject": notice.about,
        "reason": notice.reason,
        "message": notice.message,
        "source": {"component": notice.reporter, **({"host": notice.host} if notice.host else {})},
        "firstTimestamp": format_time(observation.first),
        "lastTimestamp": format_time(now),
        "count": observation.count,
        "type": notice.type,
    }
    if not observation.combined:
        event |= {"reportingComponent": notice.reporter, "reportingInstance": notice.host}
    return event


def new_event(series: EventSeries) -> JsonObject:
    """An Event as kube-scheduler writes them."""
    notice = series.notice
    event: JsonObject = {
        **_identity(NEW_EVENT, notice, series.name),
        "eventTime": format_micro_time(series.first),
        "reportingController": notice.reporter,
        "reportingInstance": f"{notice.reporter}-{notice.host or _INSTANCE}",
        "action": notice.action,
        "reason": notice.reason,
        "regarding": notice.about,
        "note": notice.message,
        "type": notice.type,
    }
    if notice.related is not None:
        event["related"] = notice.related
    if series.count > 1:
        last = format_micro_time(series.last)
        event["series"] = {"count": series.count, "lastObservedTime": last}
    return event


def _identity(gvk: GroupVersionKind, notice: Notice, name: str) -> JsonObject:
    namespace = notice.about.get("namespace", DEFAULT_NAMESPACE)
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}
