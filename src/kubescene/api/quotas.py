"""What ResourceQuotas count: which objects concern a quota, and how much each of them uses.

Pods, claims and services are measured in several ways; objects of every other kind are counted by
``count/<resource>``, and a few by their old names as well. Pure functions for those who count
(the controller) and those who refuse (admission).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from kubescene.api.quantity import Quantity, from_value, parse
from kubescene.api.resource_requests import exact_requests, is_extended, needed_together, qos_class
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.clock import SECOND, parse_time
from kubescene.types import JsonObject

QUOTA = GroupVersionKind("", "v1", "ResourceQuota")
QUOTAS = GroupResource("", "resourcequotas")
PODS = GroupResource("", "pods")
CLAIMS = GroupResource("", "persistentvolumeclaims")
SERVICES = GroupResource("", "services")
UNCOUNTED = frozenset({GroupResource("", "events"), GroupResource("events.k8s.io", "events")})

Usage: TypeAlias = Mapping[str, Quantity]
"""Amounts by the names that quotas have for them."""

ONE = from_value(1)
NONE = from_value(0)

_COUNT = "count/"
_OLD_NAMES = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
_STATED = frozenset(
    {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
"""What every container has to state as soon as a quota limits it."""
_OF_PODS = _STATED | {
    "pods",
    "ephemeral-storage",
    "limits.ephemeral-storage",
    "requests.ephemeral-storage",
}
_BASIC = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")
_REQUESTS = "requests."
_OF_CLAIMS = ("persistentvolumeclaims", "requests.storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OF_SERVICES = frozenset({"services", "services.loadbalancers", "services.nodeports"})


# -- which names concern which objects -------------------------------------------------------


def resource_of(name: str) -> GroupResource | None:
    """Whose objects are measured by a name; None if nobody's are."""
    if name.startswith(_COUNT):
        resource, _, group = name.removeprefix(_COUNT).partition(".")
        counted = GroupResource(group, resource)
        return None if counted in UNCOUNTED else counted
    if name in _OF_SERVICES:
        return SERVICES
    if name in _OF_CLAIMS or name.endswith(tuple(_OF_CLASS + each for each in _OF_CLAIMS)):
        return CLAIMS
    if name in _OLD_NAMES:
        return GroupResource("", name)
    extended = name.startswith(_REQUESTS) and is_extended(name.removeprefix(_REQUESTS))
    return PODS if name in _OF_PODS or name.startswith(_HUGE_PAGES) or extended else None


def concerning(names: Iterable[str], resource: GroupResource) -> list[str]:
    """Those names that measure objects of a resource."""
    return [name for name in names if resource_of(name) == resource]


# -- how much an object uses -----------------------------------------------------------------


def usage_of(obj: JsonObject, resource: GroupResource, now: int) -> Usage:
    """All that an object uses. ``now`` tells whether a pod should have gone by now."""
    count: dict[str, Quantity] = {f"{_COUNT}{resource}": ONE}
    if resource == PODS:
        return {**count, **compute_usage(obj)} if is_charged(obj, now) else count
    if resource == CLAIMS:
        return {**count, **claim_usage(obj)}
    if resource == SERVICES:
        return {**count, **service_usage(obj.get("spec") or {})}
    if not resource.group and resource.resource in _OLD_NAMES:
        count[resource.resource] = ONE
    return count


def is_charged(pod: JsonObject, now: int) -> bool:
    """Whether a pod uses more than its place in the store: not if it has ended or is overdue."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    overdue = overdue_from(pod)
    return overdue is None or now <= overdue


def overdue_from(pod: JsonObject) -> int | None:
    """After which instant a pod that is being deleted is not charged any more, though there."""
    metadata = pod["metadata"]
    since, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    return None if since is None or grace is None else parse_time(since) + int(grace) * SECOND


def compute_usage(pod: JsonObject) -> dict[str, Quantity]:
    spec = pod["spec"]
    stated = {**needed_together(spec, "requests"), **_of_pod_itself(spec, "requests")}
    requests = {
        name: Quantity(nanos, stated[name].format) if name in stated else Quantity(nanos)
        for name, nanos in exact_requests(pod).items()
    }
    limits = {**needed_together(spec, "limits"), **_of_pod_itself(spec, "limits")}
    for name, more in (spec.get("overhead") or {}).items():
        if limits.get(name):
            limits[name] += parse(more)
    return _stated_usage(requests, limits)


def _stated_usage(
    requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    used = {"pods": ONE}
    for name, amount in requests.items():
        if name in _BASIC or name.startswith("hugepages-"):
            used[name] = used[_REQUESTS + name] = amount
        elif is_extended(name):
            used[_REQUESTS + name] = amount
    for name in _BASIC:
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    return used


def _of_pod_itself(spec: JsonObject, side: str) -> dict[str, Quantity]:
    return _amounts((spec.get("resources") or {}).get(side))


def _amounts(listed: JsonObject | None) -> dict[str, Quantity]:
    return {name: parse(amount) for name, amount in (listed or {}).items()}


def claim_usage(claim: JsonObject) -> dict[str, Quantity]:
    spec, metadata = claim.get("spec") or {}, claim["metadata"]
    old_class = (metadata.get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    storage_class = old_class if old_class is not None else spec.get("storageClassName") or ""
    used = {"persistentvolumeclaims": ONE}
    asked = (spec.get("resources") or {}).get("requests") or {}
    if "storage" in asked:
        storage = parse(asked["storage"])
        allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
        if allocated is not None and parse(allocated) > storage:
            storage = parse(allocated)
        used["requests.storage"] = from_value(storage.value(), storage.format)
    if storage_class:
        used |= {f"{storage_class}{_OF_CLASS}{name}": amount for name, amount in used.items()}
    return used


def service_usage(spec: JsonObject) -> dict[str, Quantity]:
    ports, kind = spec.get("ports") or [], spec.get("type")
    node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(bool(port.get("nodePort")) for port in ports)
    return {
        "services": ONE,
        "services.nodeports": from_value(node_ports),
        "services.loadbalancers": ONE if kind == "LoadBalancer" else NONE,
    }


def unstated(pod: JsonObject, limited: Collection[str]) -> str:
    """Which containers fail to state what is limited; empty if all do, or the pod does itself."""
    spec = pod["spec"]
    if any(_of_pod_itself(spec, side) for side in ("requests", "limits")):
        return ""
    missing: dict[str, list[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        sides = (_amounts(resources.get(side)) for side in ("requests", "limits"))
        for name in _STATED.intersection(limited).difference(_stated_usage(*sides)):
            missing.setdefault(name, []).append(container["name"])
    texts = (f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
    return "; ".join(texts)


# -- scopes ----------------------------------------------------------------------------------


def is_in_scope(obj: JsonObject, resource: GroupResource, quota_spec: JsonObject) -> bool:
    """Whether an object is one of those that a quota is about."""
    selector = (quota_spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    scopes = [{"scopeName": name, "operator": "Exists"} for name in quota_spec.get("scopes") or ()]
    return all(_matches(obj, resource, each) for each in (*scopes, *selector))


def _matches(obj: JsonObject, resource: GroupResource, requirement: JsonObject) -> bool:
    scope, spec = requirement.get("scopeName"), obj.get("spec") or {}
    if resource == CLAIMS and scope == "VolumeAttributesClass":
        return _is_selected(_attributes_classes(obj), requirement)
    if resource != PODS:
        return False
    if scope == "PriorityClass":
        name = spec.get("priorityClassName")
        return _is_selected([name] if name else [], requirement)
    is_of_scope = _POD_SCOPES.get(str(scope))
    return is_of_scope is not None and is_of_scope(spec)


def _is_selected(names: Sequence[str], requirement: JsonObject) -> bool:
    """Whether one of the classes that an object names is wanted, or that it names none."""
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
        case "NotIn":
            return not names or any(name not in values for name in names)
    return False


def _attributes_classes(claim: JsonObject) -> list[str]:
    status = claim.get("status") or {}
    target = (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName")
    names = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        target,
    )
    return [name for name in names if name]


def _is_terminating(spec: JsonObject) -> bool:
    deadline = spec.get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _is_best_effort(spec: JsonObject) -> bool:
    return qos_class(spec) == "BestEffort"


def _looks_elsewhere(spec: JsonObject) -> bool:
    """Whether affinity or anti-affinity is about pods of other namespaces."""
    affinity = spec.get("affinity") or {}
    for part in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(part) or {}
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(each.get("podAffinityTerm") or {} for each in preferred)):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False


_POD_SCOPES: Mapping[str, Callable[[JsonObject], bool]] = {
    "Terminating": _is_terminating,
    "NotTerminating": lambda spec: not _is_terminating(spec),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda spec: not _is_best_effort(spec),
    "CrossNamespacePodAffinity": _looks_elsewhere,
}
