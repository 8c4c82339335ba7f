"""Which pods a Service selects, and since when they are as they are.

Kept up to date from watches: a change of a pod looks up the Services that ask for one of its
labels, and a pass over a Service looks at those of its pods that have changed since the last one,
and at those that have a place in its endpoints.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from kubescene.api.kinds import POD
from kubescene.api.objects import Pod
from kubescene.api.records.changes import ADDED, DELETED, Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import from_labels
from kubescene.client import ObjectRef, Reader
from kubescene.clock import format_time, parse_time
from kubescene.controllers.reconcile import ObjectKey
from kubescene.types import JsonObject

SERVICE = GroupVersionKind("", "v1", "Service")
ENDPOINTS = GroupVersionKind("", "v1", "Endpoints")
ENDPOINT_SLICE = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")

LAST_CHANGE = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS = "service.kubernetes.io/headless"


class ServiceSelection:
    """The pods of one Service. Not ``filled``: those that were there before are not in."""

    def __init__(self, selector: Mapping[str, str]) -> None:
        self.selector = dict(selector)
        self.filled = False
        self.pods: dict[str, None] = {}
        self.changed: dict[str, None] = {}
        """Those that came, went or were written since the last pass."""
        self.placed: list[str] = []
        """The names of those that have a place in endpoints, in order."""

    @property
    def clue(self) -> tuple[str, str]:
        """One of the labels that a pod must have."""
        return min(self.selector.items())

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.selector.items())

    def place(self, pods: Mapping[str, JsonObject | None]) -> None:
        """These are now as they are, or selected no more."""
        placed = self.placed
        for name, pod in pods.items():
            at = bisect_left(placed, name)
            was = at < len(placed) and placed[at] == name
            now = pod is not None and in_endpoints(pod, while_terminating=True)
            if now and not was:
                placed.insert(at, name)
            elif was and not now:
                del placed[at]


class ServicePods:
    """The selections of all Services that have a selector."""

    def __init__(self) -> None:
        self._selections: dict[ObjectKey, ServiceSelection] = {}
        self._clues: dict[tuple[str, str, str], dict[ObjectKey, None]] = {}
        self._services_of: dict[ObjectKey, dict[ObjectKey, None]] = {}
        """By pod, the Services that have it."""
        self._times = TriggerTimes()

    def __bool__(self) -> bool:
        return bool(self._selections)

    def observe_service(self, change: Change) -> ObjectKey:
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if change.type is DELETED:
            self._select(key, {})
            self._times.forget(key)
        else:
            self._select(key, change.object["spec"].get("selector") or {})
        return key

    def observe_pod(self, change: Change) -> Iterable[ObjectKey]:
        """The Services whose endpoints may change with a pod."""
        record = change.record
        pod = ObjectKey(record.namespace, record.name)
        before = self._services_of.pop(pod, {})
        now = {} if change.type is DELETED else self._selecting(pod.namespace, record.labels)
        for key in before:
            if key not in now:
                del self._selections[key].pods[pod.name]
                self._selections[key].changed.setdefault(pod.name)
        for key in now:
            self._selections[key].pods.setdefault(pod.name)
            self._selections[key].changed.setdefault(pod.name)
        if now:
            self._services_of[pod] = now
        if not before and not now:
            return ()
        if change.type is ADDED or change.type is DELETED or changes_endpoints(change):
            return (*before, *(key for key in now if key not in before))
        return (
            *(key for key in before if key not in now),
            *(key for key in now if key not in before),
        )

    def look(
        self, key: ObjectKey, service: JsonObject, reader: Reader
    ) -> tuple[list[JsonObject], str]:
        """A pass over a Service: its pods that have a place in endpoints, by name, and since when.

        The time is that of what the pass is about, as an annotation says it; it may be empty.
        """
        selection, is_new = self._selections[key], False
        if not selection.filled:
            self._fill(key, selection, reader)
            is_new = True
        changed = {
            name: reader.find(ObjectRef(POD, name, key.namespace))
            if name in selection.pods
            else None
            for name in selection.changed
        }
        selection.changed = {}
        selection.place(changed)
        changed_at = self._times.changed_at(key, service, changed, are_all=is_new)
        found = (reader.find(ObjectRef(POD, name, key.namespace)) for name in selection.placed)
        return [pod for pod in found if pod is not None], changed_at

    def _select(self, key: ObjectKey, selector: Mapping[str, str]) -> None:
        known = self._selections.get(key)
        if known is not None:
            if known.selector == selector:
                return
            for name in known.pods:
                services = self._services_of[ObjectKey(key.namespace, name)]
                del services[key]
                if not services:
                    del self._services_of[ObjectKey(key.namespace, name)]
            del self._clues[key.namespace, *known.clue][key]
            del self._selections[key]
        if selector:
            selection = self._selections[key] = ServiceSelection(selector)
            self._clues.setdefault((key.namespace, *selection.clue), {}).setdefault(key)

    def _selecting(self, namespace: str, labels: Mapping[str, str]) -> dict[ObjectKey, None]:
        """Services that count their pods already and select these labels."""
        found: dict[ObjectKey, None] = {}
        for label in labels.items():
            for key in self._clues.get((namespace, *label), ()):
                selection = self._selections[key]
                if selection.filled and selection.matches(labels):
                    found.setdefault(key)
        return found

    def _fill(self, key: ObjectKey, selection: ServiceSelection, reader: Reader) -> None:
        labels = from_labels(selection.selector)
        for pod in reader.list(POD, namespace=key.namespace, labels=labels):
            name = pod["metadata"]["name"]
            selection.pods.setdefault(name)
            selection.changed.setdefault(name)
            self._services_of.setdefault(ObjectKey(key.namespace, name), {}).setdefault(key)
        selection.filled = True


class TriggerTimes:
    """By Service, the times at which it and its pods were last seen to have changed."""

    def __init__(self) -> None:
        self._seen: dict[ObjectKey, dict[str, int]] = {}

    def forget(self, key: ObjectKey) -> None:
        self._seen.pop(key, None)

    def changed_at(
        self,
        key: ObjectKey,
        service: JsonObject,
        changed: Mapping[str, JsonObject | None],
        *,
        are_all: bool,
    ) -> str:
        """The earliest change since the last pass; for a new Service, when it was created.

        ``changed`` are pods that are new, have changed, or are gone; ``are_all`` says that there
        are no others.
        """
        before = self._seen.get(key)
        times = self._seen[key] = {} if before is None or are_all else before
        new = []
        for name, pod in changed.items():
            since, known = 0 if pod is None else ready_since(pod), (before or {}).get(name, 0)
            if since:
                times[name] = since
            else:
                times.pop(name, None)
            if since > known:
                new.append(since)
        if before is None:
            created: str = service["metadata"]["creationTimestamp"]
            return created
        return format_time(min(new)) if new else ""


def ready_since(pod: JsonObject) -> int:
    """Since when a pod is ready, or not ready; 0 if it does not say."""
    since = 0
    for condition in pod["status"].get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("lastTransitionTime"):
            since = parse_time(condition["lastTransitionTime"])
    return since


def changes_endpoints(change: Change) -> bool:
    """Whether a pod can now be reached in another way than before: addresses, health, deletion."""
    before = change.previous_object
    return before is None or _reach(before) != _reach(change.object)


def _reach(pod: JsonObject) -> tuple[object, ...]:
    view, status = Pod(pod), pod["status"]
    return (view.is_deleting, view.is_ready, status.get("podIP"), status.get("podIPs"))


def in_endpoints(pod: JsonObject, *, while_terminating: bool) -> bool:
    """Whether a pod has a place behind a Service."""
    status = pod["status"]
    if status.get("phase") in ("Succeeded", "Failed") or not (
        status.get("podIP") or status.get("podIPs")
    ):
        return False
    return while_terminating or not Pod(pod).is_deleting


def target_of(pod: JsonObject) -> JsonObject:
    names = {name: pod["metadata"][name] for name in ("namespace", "name", "uid")}
    return {"kind": "Pod", **names}


def hostname_of(pod: JsonObject, service: JsonObject) -> str:
    """The name that a pod has inside the domain of its Service, if it asked for one there."""
    spec = pod["spec"]
    inside = spec.get("subdomain") == service["metadata"]["name"]
    return str(spec.get("hostname") or "") if inside else ""


def ports_of(service: JsonObject, pod: JsonObject) -> list[JsonObject]:
    """The ports of a Service with the numbers that they have in a pod, without those it lacks."""
    ports = []
    for port in service["spec"].get("ports") or ():
        number = _number(port, pod)
        if number is not None:
            found = {"name": port.get("name", ""), "protocol": port["protocol"], "port": number}
            if port.get("appProtocol") is not None:
                found["appProtocol"] = port["appProtocol"]
            ports.append(found)
    return ports


def _number(service_port: JsonObject, pod: JsonObject) -> int | None:
    target = service_port["targetPort"]
    if isinstance(target, int):
        return target
    spec = pod["spec"]
    sidecars = (
        each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    )
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("name") == target and port["protocol"] == service_port["protocol"]:
                number: int = port["containerPort"]
                return number
    return None


def is_headless(service: JsonObject) -> bool:
    return service["spec"].get("clusterIP") in (None, "", "None")


def with_time(annotations: Mapping[str, str], changed_at: str) -> dict[str, str]:
    """Annotations that tell when the change happened which led to this write, if it is known."""
    kept = {name: value for name, value in annotations.items() if name != LAST_CHANGE}
    return {**kept, LAST_CHANGE: changed_at} if changed_at else kept
