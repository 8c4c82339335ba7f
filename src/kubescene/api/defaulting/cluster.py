"""Defaults of Namespace, Node, quotas and limits, Secret, PriorityClass and RuntimeClass."""

import base64

from kubescene.api.defaulting.resources import canonical_quantity, resource_list
from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    merged,
    within,
    within_each,
    without_false,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_NAME_LABEL = "kubernetes.io/metadata.name"
_LIMITS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def default_namespace(namespace: JsonObject) -> JsonObject:
    """A namespace carries its own name as a label, so that selectors can pick it, and is active."""
    name = (namespace.get("metadata") or {}).get("name")
    if name:
        namespace = into(namespace, "metadata", lambda meta: into(meta, "labels", _named(name)))
    return into(namespace, "status", lambda status: filled(status, {"phase": "Active"}))


def default_node(node: JsonObject) -> JsonObject:
    """All of a node's capacity is allocatable unless it says less."""
    return within(within(node, "spec", _node_spec), "status", _node_status)


def default_limit_range(limit_range: JsonObject) -> JsonObject:
    """Default limits follow from maxima, default requests from default limits, then minima."""
    return at(limit_range, ("spec",), lambda spec: within_each(spec, "limits", _limit))


def default_resource_quota(quota: JsonObject) -> JsonObject:
    """Quantities in canonical form."""
    for path in (("spec", "hard"), ("status", "hard"), ("status", "used")):
        quota = at(quota, path, resource_list)
    return quota


def default_secret(secret: JsonObject) -> JsonObject:
    """An opaque secret; ``stringData`` is a way of writing ``data`` that is never kept."""
    secret = filled(secret, {"type": "Opaque"})
    if "stringData" not in secret:
        return secret
    kept = {key: value for key, value in secret.items() if key != "stringData"}
    encoded = {key: _encoded(text) for key, text in (secret["stringData"] or {}).items()}
    return {**kept, "data": {**(secret.get("data") or {}), **encoded}} if encoded else kept


def default_priority_class(priority_class: JsonObject) -> JsonObject:
    """Pods of a class preempt lower ones unless it forbids that."""
    return filled_unset(priority_class, {"preemptionPolicy": "PreemptLowerPriority"})


def default_runtime_class(runtime_class: JsonObject) -> JsonObject:
    """The overhead in canonical form."""
    return at(runtime_class, ("overhead", "podFixed"), _canonical_list)


def _named(name: str) -> Defaulter:
    return lambda labels: (
        labels if labels.get(_NAME_LABEL) == name else {**labels, _NAME_LABEL: name}
    )


def _node_spec(spec: JsonObject) -> JsonObject:
    """``podCIDR`` and ``podCIDRs`` agree; where they differ, the old single field wins."""
    spec = without_false(spec, "unschedulable")
    cidr, cidrs = spec.get("podCIDR"), spec.get("podCIDRs")
    if cidrs and not cidr:
        return {**spec, "podCIDR": cidrs[0]}
    if cidr and (not cidrs or cidrs[0] != cidr):
        return {**spec, "podCIDRs": [cidr]}
    return spec


def _node_status(status: JsonObject) -> JsonObject:
    if status.get("capacity") is not None:
        status = within(status, "capacity", resource_list)
        status = filled_unset(status, {"allocatable": status["capacity"]})
    return within(status, "allocatable", resource_list)


def _limit(item: JsonObject) -> JsonObject:
    for key in _LIMITS:
        item = within(item, key, resource_list)
    if item.get("type") != "Container":
        return item
    limits = _completed(item.get("default"), item.get("max"))
    requests = _completed(_completed(item.get("defaultRequest"), limits), item.get("min"))
    wanted = {"default": limits, "defaultRequest": requests}
    return merged(item, {key: it for key, it in wanted.items() if it and it != item.get(key)})


def _completed(stated: JsonObject | None, fallback: JsonObject | None) -> JsonObject:
    return {**(fallback or {}), **(stated or {})}


def _encoded(text: str) -> str:
    return base64.b64encode((text or "").encode()).decode()


def _canonical_list(resources: JsonObject) -> JsonObject:
    done = {name: canonical_quantity(value) for name, value in resources.items()}
    return resources if done == resources else done


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "LimitRange"): default_limit_range,
    GroupVersionKind("", "v1", "Namespace"): default_namespace,
    GroupVersionKind("", "v1", "Node"): default_node,
    GroupVersionKind("", "v1", "ResourceQuota"): default_resource_quota,
    GroupVersionKind("", "v1", "Secret"): default_secret,
    GroupVersionKind("node.k8s.io", "v1", "RuntimeClass"): default_runtime_class,
    GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass"): default_priority_class,
}
OF_METADATA: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "Namespace"): default_namespace,
}
