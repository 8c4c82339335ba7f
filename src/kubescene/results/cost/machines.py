"""Machines: Instances of node groups, from their order to the end of their bill."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.clock import ScenarioStep, parse_time
from kubescene.results.ledger_entries import PodEntry

INSTANCE = ("kubescene.dev", "Instance")
"""The kind of objects, by group."""
FINALIZERS = b'"finalizers"'
REGISTERED, ENDED = "Registered", "Ended"


class InstanceEntry(msgspec.Struct, eq=False):
    """One machine; times in nanoseconds since 1970, None if not yet."""

    name: str
    uid: str
    step: ScenarioStep
    time: int
    group: str = ""
    zone: str = ""
    capacity_type: str = ""
    per_hour: str | None = None
    """A decimal number; None if nobody said what it costs."""
    currency: str = ""
    labels: dict[str, str] = {}
    """Of its node."""
    node: str = ""
    state: str = "Ordered"
    is_deleted: bool = False
    error: str = ""
    message: str = ""
    launched_time: int | None = None
    """When the bill begins."""
    registered_time: int | None = None
    ready_time: int | None = None
    ended_step: ScenarioStep | None = None
    ended_time: int | None = None
    """When it ends."""


class ResizeEntry(msgspec.Struct, frozen=True, array_like=True):
    """A pod on a node asked for as much until then, in thousandths of a core and bytes."""

    namespace: str
    name: str
    uid: str
    time: int
    cpu: int
    memory: int


class _Price(msgspec.Struct, frozen=True, rename="camel"):
    per_hour: str | None = None
    currency: str = "USD"


class _InstanceMetadata(msgspec.Struct, frozen=True, rename="camel"):
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _NodeTemplate(msgspec.Struct, frozen=True):
    metadata: _InstanceMetadata | None = None


class _InstanceSpec(msgspec.Struct, frozen=True, rename="camel"):
    group: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: _Price | None = None
    template: _NodeTemplate | None = None


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class _InstanceStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = "Ordered"
    node: str = ""
    launched_at: str | None = None
    ready_at: str | None = None
    ended_at: str | None = None
    error: _Error | None = None


class _Instance(msgspec.Struct, frozen=True):
    metadata: _InstanceMetadata
    spec: _InstanceSpec
    status: _InstanceStatus = _InstanceStatus()


_DECODER = msgspec.json.Decoder(_Instance)
_NO_TEMPLATE, _NO_PRICE, _NO_ERROR = _NodeTemplate(), _Price(), _Error()


class MachineEntries:
    """All that were ever ordered, in their order, and what pods asked for before resizes."""

    def __init__(
        self, known: Sequence[InstanceEntry] = (), resizes: Sequence[ResizeEntry] = ()
    ) -> None:
        self.all = [*known]
        self.resizes = [*resizes]
        self._there = {each.name: each for each in known if each.ended_step is None}

    def __iter__(self) -> Iterator[InstanceEntry]:
        return iter(self.all)

    def __bool__(self) -> bool:
        return bool(self.all)

    def written(self, name: str, uid: str, text: Any, step: ScenarioStep, time: int) -> None:
        """An Instance is as its text says."""
        entry = self._there.get(name)
        if entry is not None and entry.uid != uid:
            self.removed(name, step, time)
            entry = None
        told = _DECODER.decode(text)
        if entry is None:
            entry = self._there[name] = InstanceEntry(name, uid, step, time)
            self.all.append(entry)
        machine_told(entry, told, time)

    def patched(self, name: str, body: bytes, step: ScenarioStep, time: int) -> None:
        """A deleted object whose last finalizer goes is gone with it: no other fact tells it."""
        entry = self._there.get(name)
        if entry is not None and entry.is_deleted and FINALIZERS in body:
            self.removed(name, step, time)

    def removed(self, name: str, step: ScenarioStep, time: int) -> None:
        """Its object is gone: nobody pays for it any more, whatever it said."""
        entry = self._there.pop(name, None)
        if entry is not None:
            entry.state, entry.ended_step = ENDED, step
            entry.ended_time = time if entry.ended_time is None else entry.ended_time

    def resized(self, pod: PodEntry, time: int) -> None:
        """Until now it asked for what it says."""
        asked = pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)
        self.resizes.append(ResizeEntry(pod.namespace, pod.name, pod.uid, time, *asked))


def machine_told(entry: InstanceEntry, told: _Instance, time: int) -> None:
    """Take over what its object says now."""
    spec, status = told.spec, told.status
    template, price = spec.template or _NO_TEMPLATE, spec.price or _NO_PRICE
    entry.group, entry.zone, entry.capacity_type = spec.group, spec.zone, spec.capacity_type
    entry.per_hour, entry.currency = price.per_hour, price.currency
    entry.labels = (template.metadata.labels if template.metadata else None) or {}
    entry.is_deleted = told.metadata.deletion_timestamp is not None
    entry.state, entry.node = status.phase, status.node
    error = status.error or _NO_ERROR
    entry.error, entry.message = error.code, error.message
    entry.launched_time = _instant(status.launched_at)
    entry.ready_time, entry.ended_time = _instant(status.ready_at), _instant(status.ended_at)
    if status.phase == REGISTERED and entry.registered_time is None:
        entry.registered_time = time


def _instant(text: str | None) -> int | None:
    return None if text is None else parse_time(text)
