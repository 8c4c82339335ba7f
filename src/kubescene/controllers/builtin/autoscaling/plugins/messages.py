"""What autoscalers are told of pods and of what was measured."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from kubescene.api.records import Record
from kubescene.api.selectors import LabelSelector
from kubescene.autoscalers.horizontal import PodRequests, observed_pod
from kubescene.autoscalers.interfaces import (
    CUSTOM_METRICS,
    SERVICE,
    EventType,
    MetricType,
    Pod,
    PodState,
    Stat,
)
from kubescene.clock import SECOND
from kubescene.types import JsonObject, Nanoseconds
from kubescene.usage.measuring import Measurements
from kubescene.usage.registry import RequestLoad

OOM_KILLED = "OOMKilled"
NOBODY = "RoutingStock"
"""The name of requests that no pod has."""


class KnownPod(NamedTuple):
    """A pod as it was told of last."""

    uid: str
    pod: Pod


class PodMessage(NamedTuple):
    """An event about a pod."""

    time: Nanoseconds
    type: EventType
    pod: Pod


class PodMessages:
    """The pods of a target: what has happened to them, and what was told of it.

    Several changes at one instant are one: in which order controllers have had their turns is
    nothing that an autoscaler could see.
    """

    def __init__(self, container: str = "") -> None:
        self.selector: LabelSelector | None = None
        self._container = container
        self.told: dict[str, KnownPod] = {}
        self._noted: dict[tuple[Nanoseconds, str, str], Record | None] = {}
        self._pending: set[tuple[str, str]] = set()
        """Names and uids of those that have been noted."""

    def note(self, now: Nanoseconds, record: Record, *, is_gone: bool = False) -> None:
        """A pod has changed, if it is one of them."""
        if self.selector is None:
            return
        gone = is_gone or not self.selector.matches(record.labels)
        one = record.name, record.uid
        if gone and record.name not in self.told and one not in self._pending:
            return
        self._pending.add(one)
        self._noted[now, record.name, record.uid] = None if gone else record

    def follow(self, selector: LabelSelector, pods: Iterable[Record], now: Nanoseconds) -> None:
        """These are the pods from now on."""
        if self.selector == selector:
            return
        self.selector = selector
        for record in pods:
            self.note(now, record)

    def news(self) -> Iterator[PodMessage]:
        """What has not been told, in order of time."""
        noted, self._noted = self._noted, {}
        self._pending.clear()
        for (time, name, uid), record in noted.items():
            known = self.told.get(name)
            seen = None if record is None else message_of(record.decode(), self._container)
            if known is not None and (known.uid != uid or seen is None):
                if known.uid == uid or seen is not None:
                    del self.told[name]
                    yield PodMessage(time, EventType.DELETE, known.pod)
                known = None
            if seen is None:
                continue
            if known is None:
                pod = replace(seen, last_transition=seen.last_transition or time)
                self.told[name] = KnownPod(uid, pod)
                yield PodMessage(time, EventType.CREATE, pod)
            elif (pod := _changed(known.pod, seen, time)) != known.pod:
                self.told[name] = KnownPod(uid, pod)
                yield PodMessage(time, EventType.UPDATE, pod)


def _changed(before: Pod, after: Pod, now: Nanoseconds) -> Pod:
    """A pod that is in the same state has been there since it entered it."""
    if after.state == before.state:
        return replace(after, last_transition=before.last_transition)
    return replace(after, last_transition=after.last_transition or now)


def message_of(obj: JsonObject, container: str = "") -> Pod | None:
    """A pod as autoscalers know it; None if it takes no requests any more.

    If a ``container`` is named, its requests are told, else those of all.
    """
    pod = observed_pod(obj)
    if pod.deleting or pod.phase in ("Succeeded", "Failed"):
        return None
    state, since = PodState.LAUNCHING, 0
    if pod.ready == "True":
        state, since = PodState.ACTIVE, pod.ready_since
    elif _is_killed(obj):
        state = PodState.OOM_KILLED
    cpu, memory = (_requested(pod.requests, name, container) for name in ("cpu", "memory"))
    return Pod(pod.name, state.value, since, cpu, memory // 1000)


def _requested(requests: PodRequests, resource: str, container: str) -> int:
    named = [each for each in requests.containers if container in ("", each.name)]
    if not container and requests.pod_level is not None and resource in requests.pod_level:
        return requests.pod_level[resource]
    return sum(each.requests.get(resource, 0) for each in named)


def _is_killed(pod: JsonObject) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    states = [(each.get("state") or {}, each.get("lastState") or {}) for each in statuses]
    return any(
        (now.get("terminated") or before.get("terminated") or {}).get("reason") == OOM_KILLED
        for now, before in states
    )


# -- stats ---------------------------------------------------------------------------------------


def stats_of(
    measured: Measurements, pods: Iterable[str], services: Iterable[str], container: str = ""
) -> tuple[Stat, ...]:
    """What a scrape has seen of pods, of the services before them, and of the world outside."""
    time, usage = measured.time, measured.usage()
    metrics = [each for each in measured.of_pods() if each.metric in CUSTOM_METRICS]
    found = []
    for name in sorted(pods):
        by_container = usage.get(name, {})
        containers = [by_container[each] for each in by_container if container in ("", each)]
        for resource, kind, unit in _RESOURCES:
            if amounts := [used[resource] for used in containers if resource in used]:
                found.append(Stat(time, name, kind, sum(amounts) // unit))
        found += [
            Stat(time, name, CUSTOM_METRICS[each.metric], each.values[name])
            for each in metrics
            if name in each.values
        ]
    of_services: dict[str, int] = {}
    for metric in measured.of_objects():
        if metric.kind == "Service" and metric.name in services and metric.metric in CUSTOM_METRICS:
            of_services[metric.metric] = of_services.get(metric.metric, 0) + metric.value
    found += [Stat(time, SERVICE, CUSTOM_METRICS[name], n) for name, n in of_services.items()]
    outside = measured.external()
    found += [Stat(time, each.metric, MetricType.EXTERNAL_MILLIS, n) for each, n in outside]
    return tuple(found)


_RESOURCES = (("cpu", MetricType.CPU_MILLIS, 1), ("memory", MetricType.MEMORY_BYTES, 1000))


def stats_of_nobody(load: RequestLoad, begin: Nanoseconds, now: Nanoseconds) -> tuple[Stat, ...]:
    """Requests of a time in which there was no pod: how many waited, else how many came."""
    width = max(now - begin, 1)
    waiting = load.inside * 1000 // width if load.inside else load.arrived * 1000
    rate = load.arrived * 1000 * SECOND // width
    return (
        Stat(now, NOBODY, MetricType.CONCURRENT_REQUESTS_MILLIS, waiting),
        Stat(now, NOBODY, MetricType.REQUESTS_PER_SECOND_MILLIS, rate),
    )


def selects(service: JsonObject, labels: Mapping[str, str]) -> bool:
    """Whether a Service sends requests to pods with these labels."""
    wanted = (service.get("spec") or {}).get("selector") or {}
    return bool(wanted) and all(labels.get(name) == value for name, value in wanted.items())
