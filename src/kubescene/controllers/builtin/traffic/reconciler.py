"""The controller of Traffic objects: which pods serve, from when on and until when.

A pod serves from the instant at which it is ready until it is not, or is marked for deletion. It is
asked every 15 seconds for what became of the requests, at whole multiples of that; between these it
is about pods alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kubescene.api.kinds import NODE, POD
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, from_label_selector, from_labels, parse_labels
from kubescene.client import ObjectRef, Reader
from kubescene.clock import Streams, format_duration, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.traffic.definition import TRAFFIC
from kubescene.controllers.kubelet.behaviour import OUT_OF_MEMORY
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, BadRequestError, NotFoundError, TrafficError
from kubescene.types import JsonObject
from kubescene.usage.measuring import RESOLUTION
from kubescene.usage.registry import RequestLoad, ScrapedPod, ScrapedService

if TYPE_CHECKING:
    from kubescene.controllers.builtin.traffic.pods import ServingPod
    from kubescene.controllers.builtin.traffic.serving import Serving
    from kubescene.controllers.builtin.traffic.sharing import Sharing
    from kubescene.controllers.builtin.traffic.spec import ServedSpec

NAME = "traffic"
SERVICE = GroupVersionKind("", "v1", "Service")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
PODS = "pods"


class _Known:
    """What is remembered of one Traffic."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.generation: int | None = None
        self.spec: ServedSpec | None = None
        self.fault = ""
        self.selector: LabelSelector | None = None
        self.serving: Serving | None = None
        self.changed: dict[str, None] = {}
        """Names of pods that have changed, in the order of their last changes."""
        self.measured_at = -1
        self.killed: dict[str, int] = {}
        """Of pods that were out of memory, by uid: the run that was."""


class TrafficReconciler:
    """Keeps flows and pods together."""

    name = NAME
    kinds: Sequence[GroupVersionKind] = (TRAFFIC,)

    def __init__(self, streams: Streams) -> None:
        self.needs_pods = False
        self._streams = streams
        self._known: dict[str, dict[str, _Known]] = {}
        """By namespace and name."""
        self._pods: dict[str, dict[str, Record]] = {}
        """Likewise."""
        self._scraped: dict[str, tuple[int, list[ScrapedPod]]] = {}
        """By namespace: when somebody asked last, and the answer."""
        self._nodes: dict[str, Record] = {}
        self._sharing: Sharing | None = None
        self._origin = 0
        """What times of flows count from: when the first Traffic was created."""

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == PODS:
            return self._observe_pod(change)
        if record.resource.resource == "nodes":
            return self._observe_node(change)
        if record.resource.resource == "services":
            return self._observe_service(record)
        self.needs_pods = True
        return (ObjectKey(record.namespace, record.name),)

    def _observe_pod(self, change: Change) -> Iterator[ObjectKey]:
        record = change.record
        pods = self._pods.setdefault(record.namespace, {})
        if change.type is ChangeType.DELETED:
            pods.pop(record.name, None)
        else:
            pods[record.name] = record
        for name, known in self._known.get(record.namespace, {}).items():
            if (
                known.selector is None
                or known.selector.matches(record.labels)
                or (known.serving is not None and record.uid in known.serving.pods)
            ):
                known.changed.pop(record.name, None)
                known.changed[record.name] = None
                yield ObjectKey(record.namespace, name)

    def _observe_node(self, change: Change) -> Iterator[ObjectKey]:
        record = change.record
        if change.type is ChangeType.DELETED:
            self._nodes.pop(record.name, None)
            return
        self._nodes[record.name] = record
        if self._sharing is not None and self._sharing.note(record.name):
            for namespace, here in self._known.items():
                yield from (ObjectKey(namespace, name) for name in here)

    def _observe_service(self, record: Record) -> Iterator[ObjectKey]:
        for name, known in self._known.get(record.namespace, {}).items():
            if known.spec is not None and known.spec.to.service == record.name:
                known.selector = None
                yield ObjectKey(record.namespace, name)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        traffic = found(key, reader)
        here = self._known.setdefault(key.namespace, {})
        known = here.get(key.name)
        if traffic is None:
            here.pop(key.name, None)
            return NOTHING if known is None else self._closed(known, now)
        if known is None or known.uid != traffic["metadata"]["uid"]:
            known = here[key.name] = _Known(traffic["metadata"]["uid"])
        self._read(key, known, traffic, now)
        if known.spec is None or known.serving is None:
            return self._told(traffic, known, {"message": known.fault})
        if self._sharing is not None:
            self._sharing.go_on(now - self._origin)
        missing = self._select(key, known, known.spec, reader)
        self._bring_in_line(key, known, known.serving, now)
        return self._measured(key, traffic, known, known.serving, missing, now)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    # -- the object ------------------------------------------------------------------------------

    def _read(self, key: ObjectKey, known: _Known, traffic: JsonObject, now: int) -> None:
        generation = traffic["metadata"].get("generation")
        if generation == known.generation:
            return
        # Loaded with the first Traffic: they take longer than many a run.
        from kubescene.controllers.builtin.traffic.serving import Serving
        from kubescene.controllers.builtin.traffic.sharing import Sharing
        from kubescene.controllers.builtin.traffic.spec import fixed_fields, read_spec

        known.generation = generation
        self._scraped.clear()
        try:
            spec = read_spec(traffic["spec"])
        except TrafficError as error:
            known.fault = f"{error}; it goes on as it was" if known.serving else str(error)
            return
        known.fault = ""
        if known.spec is not None:
            if fixed := fixed_fields(known.spec, spec):
                known.fault = f"spec.{fixed[0]} cannot be changed: create another Traffic"
                return
            if known.spec.to != spec.to:
                known.selector = None
        known.spec = spec
        if known.serving is not None:
            known.serving.change(spec, now)
            return
        created = parse_time(traffic["metadata"]["creationTimestamp"])
        if self._sharing is None:
            self._sharing, self._origin = Sharing(self._capacity), created
        known.serving = Serving(
            (key.namespace, key.name),
            spec,
            self._streams,
            self._sharing,
            origin=self._origin,
            created=created,
            now=now,
        )
        known.measured_at = now

    def _closed(self, known: _Known, now: int) -> Plan:
        """The object is gone: so are its requests."""
        self._scraped.clear()
        if known.serving is None:
            return NOTHING
        facts = [known.serving.measure(now)] if known.measured_at != now else []
        known.serving.stop(now)
        return Plan(facts=facts)

    def _capacity(self, node: str) -> int:
        """Millicores of a node, 0 if there is none."""
        from kubescene.controllers.builtin.traffic.pods import node_capacity

        record = self._nodes.get(node)
        return 0 if record is None else node_capacity(record.decode())

    # -- who serves ------------------------------------------------------------------------------

    def _select(self, key: ObjectKey, known: _Known, spec: "ServedSpec", reader: Reader) -> str:
        """Find the pods of the target, if they are not known; why there are none."""
        if known.selector is not None:
            return ""
        try:
            selector = selector_of(key, spec, reader)
        except ApiError as error:
            return error.message
        if selector is None:
            return f"{spec.to} has no selector"
        known.selector = selector
        pods = self._pods.get(key.namespace, {})
        known.changed = dict.fromkeys([*known.changed, *pods])
        return ""

    def _bring_in_line(self, key: ObjectKey, known: _Known, serving: "Serving", now: int) -> None:
        if known.selector is None:
            return
        from kubescene.controllers.builtin.traffic.pods import serving_pod

        records, changed = self._pods.get(key.namespace, {}), known.changed
        if changed:
            self._scraped.clear()
        known.changed = {}
        for name in changed:
            record = records.get(name)
            for served in list(serving.pods.values()):
                if served.pod.name == name and (record is None or record.uid != served.pod.uid):
                    serving.end(served, now)
            if record is not None:
                pod = serving_pod(record.decode(), serving.spec.container)
                serves = known.selector.matches(record.labels)
                is_dead = known.killed.get(pod.uid) == pod.restarts
                self._place(serving, pod, serves=serves and not is_dead, now=now)

    def _place(self, serving: "Serving", pod: "ServingPod", *, serves: bool, now: int) -> None:
        """Let one pod join or leave, as it is now."""
        served = serving.pods.get(pod.uid)
        if served is not None and pod.restarts != served.pod.restarts:
            serving.end(served, now)
            served = None
        serves = serves and pod.is_ready and pod.deadline is None
        if served is None:
            if serves and pod.restarts >= 0:
                serving.join(pod, now)
        elif pod.deadline is not None:
            serving.leave(served, now, max(pod.deadline, now))
        elif not serves:
            serving.leave(served, now, now + LONGEST_DRAIN)
        elif served.station is None:
            serving.rejoin(served, pod, now)
        else:
            serving.resize(served, pod, now)

    # -- what is measured ------------------------------------------------------------------------

    def _measured(
        self,
        key: ObjectKey,
        traffic: JsonObject,
        known: _Known,
        serving: "Serving",
        missing: str,
        now: int,
    ) -> Plan:
        since = now % RESOLUTION
        mark, due = now - since, RESOLUTION - since
        status: JsonObject = {
            "target": str(serving.spec.to) if serving.spec.to.selector is None else "Pods",
            "message": known.fault or missing or self._inexact(serving) or None,
            "ready": serving.ready,
        }
        facts = []
        if known.measured_at < mark:
            known.measured_at = mark
            measured = serving.measure(mark, self._inexact(serving))
            counts = measured.counts
            if (
                counts.arrived
                or counts.inside
                or counts.succeeded
                or counts.failed
                or measured.started
            ):
                facts.append(measured)
            from kubescene.controllers.builtin.traffic.serving import rate_text

            p99 = counts.all[-1]
            status["rps"] = rate_text(counts.arrived, measured.window)
            status["p99"] = None if p99 is None else format_duration(p99 // 1000 * 1000)
        status["requests"], status["failed"] = serving.requests, serving.failed
        told = self._told(traffic, known, status)
        killed = [_killed(known, key.namespace, pod, now) for pod in serving.kill_overfull(now)]
        doubt = serving.next_doubt(now + due)
        due = due if doubt is None else max(doubt - now, 1)
        return Plan([*told.writes, *killed], due, facts=facts)

    def _inexact(self, serving: "Serving") -> str:
        """What is simulated here in another way than it would be."""
        assert self._sharing is not None
        other = self._sharing.also_served(serving.namespace, serving.name)
        if other:
            return f"pods serve {other}, too: each of both has all of their CPU"
        if serving.counts_alone and self._sharing.shares_any(serving.flow):
            return "leastConnections does not know that pods share their node"
        return ""

    def _told(self, traffic: JsonObject, known: _Known, status: JsonObject) -> Plan:
        before = traffic.get("status") or {}
        status = {**status, "observedGeneration": known.generation}
        if all(before.get(name) == value for name, value in status.items()):
            return NOTHING
        return Plan([Patch(ObjectRef.to(traffic), {"status": status}, subresource="status")])

    def __bool__(self) -> bool:
        return self.needs_pods

    # -- what others ask (`kubescene.usage`) -----------------------------------------------------

    def scraped(self, namespace: str, now: int) -> Sequence[ScrapedPod]:
        # Many autoscalers ask at one instant, before anything changes.
        scraped = self._scraped.get(namespace)
        if scraped is None or scraped[0] != now:
            here = self._known.get(namespace, {}).values()
            served = [known.serving for known in here if known.serving is not None]
            found = [pod for serving in served for pod in serving.scraped(now)]
            scraped = self._scraped[namespace] = now, found
        return scraped[1]

    def scraped_services(self, namespace: str, now: int) -> Iterator[ScrapedService]:
        for known in self._known.get(namespace, {}).values():
            serving = known.serving
            if serving is not None and (service := serving.spec.to.service):
                total: dict[str, int] = {}
                for pod in serving.scraped(now):
                    for metric, value in pod.metrics.items():
                        total[metric] = total.get(metric, 0) + value
                if total:
                    yield ScrapedService(service, total)

    def load(
        self, namespace: str, labels: Mapping[str, str], begin: int, end: int
    ) -> RequestLoad | None:
        loads = [each.load(begin, end) for each in self._served_by(namespace, labels)]
        if not loads:
            return None
        return RequestLoad(*map(sum, zip(*loads, strict=True)))

    def load_of(self, namespace: str, name: str, begin: int, end: int) -> RequestLoad | None:
        known = self._known.get(namespace, {}).get(name)
        if known is None or known.serving is None:
            return None
        return known.serving.load(begin, end)

    def next_request(
        self, namespace: str, labels: Mapping[str, str], now: int, until: int
    ) -> int | None:
        found = (each.next_request(now, until) for each in self._served_by(namespace, labels))
        return min((each for each in found if each is not None), default=None)

    def _served_by(self, namespace: str, labels: Mapping[str, str]) -> Iterator["Serving"]:
        """The requests that come to pods with these labels."""
        for known in self._known.get(namespace, {}).values():
            selector = known.selector
            if known.serving is not None and selector is not None and selector.matches(labels):
                yield known.serving

    def drained_at(self, uid: str, now: int, deadline: int) -> int | None:
        ends = [
            known.serving.leave(known.serving.pods[uid], now, deadline)
            for here in self._known.values()
            for known in here.values()
            if known.serving is not None and uid in known.serving.pods
        ]
        return max(ends, default=None)


LONGEST_DRAIN = 1 << 60


def _killed(known: _Known, namespace: str, pod: "ServingPod", now: int) -> Patch:
    """Tell the kubelet that a container is out of memory."""
    known.killed[pod.uid] = pod.restarts
    told = f"{pod.container}/{pod.restarts}@{format_time(now)}"
    ref = ObjectRef(POD, pod.name, namespace)
    return Patch(ref, {"metadata": {"annotations": {OUT_OF_MEMORY: told}}})


def selector_of(key: ObjectKey, spec: "ServedSpec", reader: Reader) -> LabelSelector | None:
    """Of the target of a Traffic; raises `ApiError` if there is no such target."""
    to = spec.to
    if to.selector is not None:
        return from_label_selector(to.selector)
    if to.service:
        service = reader.get(ObjectRef(SERVICE, to.service, key.namespace))
        labels = service["spec"].get("selector")
        return from_labels(labels) if labels else None
    ref = ObjectRef(DEPLOYMENT, to.deployment, key.namespace)
    if to.scale is not None:
        kind = GroupVersionKind.of(to.scale.api_version, to.scale.kind)
        ref = ObjectRef(kind, to.scale.name, key.namespace)
    text = (reader.get_scale(ref).get("status") or {}).get("selector")
    return parse_labels(text) if text else None


def found(key: ObjectKey, reader: Reader) -> JsonObject | None:
    """A Traffic; None if it is gone, or its definition is."""
    try:
        return reader.find(ObjectRef(TRAFFIC, key.name, key.namespace))
    except BadRequestError:
        return None


def traffic(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    reconciler = TrafficReconciler(context.streams)
    context.usage.bring(NAME, reconciler)
    context.usage.requests = reconciler
    return LatePodsController(reconciler, context, traits=EVERYTHING, before=(SERVICE, NODE))
