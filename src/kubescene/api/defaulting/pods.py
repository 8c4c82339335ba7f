"""Defaults of Pod and of the pod templates in workloads.

A template gets what its `PodSpec` is due. A pod gets more: requests follow limits, service links
are on, host ports follow container ports on the host network. That difference keeps templates
(and their hash) the same when a newer server adds a default.

A container that states a limit but no request asks for the limit. When a pod states resources of
its own, what it leaves open follows from its containers: the pod's request is what the
containers need together, and only where none of them asks for the resource it is the
pod's limit. Huge pages cannot be overcommitted, so there the pod's limit comes first.

Pods are defaulted more often than anything else: changes are collected in one dict, and optional
parts are looked into only when they are there.
"""

from typing import Any

from kubescene.api.defaulting.images import pull_policy
from kubescene.api.defaulting.resources import default_resources, resource_list
from kubescene.api.defaulting.sharing import (
    Defaulter,
    filled,
    filled_unset,
    mapped,
    merged,
    within,
    within_each,
)
from kubescene.api.defaulting.volumes import default_field_ref, default_resource_ref, default_volume
from kubescene.api.resource_requests import needed_together
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_GRACE_SECONDS = 30
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HTTP_GET = {"path": "/", "scheme": "HTTP"}
_HUGE_PAGES = "hugepages-"
_OLD_INIT_CONTAINERS = frozenset(
    f"pod.{stage}.kubernetes.io/init-container{part}"
    for stage in ("alpha", "beta")
    for part in ("s", "-statuses")
)


def default_pod(pod: JsonObject) -> JsonObject:
    """A pod as the server stores it before admission."""
    spec = pod.get("spec") or {}
    changes: JsonObject = {}
    done = default_pod_spec(_pod_only(spec))
    if done is not spec:
        changes["spec"] = done
    metadata = pod.get("metadata")
    if metadata and metadata.get("annotations"):
        kept = _without_old_annotations(metadata)
        if kept is not metadata:
            changes["metadata"] = kept
    status = pod.get("status")
    if status:
        synced = default_pod_status(status)
        if synced is not status:
            changes["status"] = synced
    return {**pod, **changes} if changes else pod


def default_pod_metadata(pod: JsonObject) -> JsonObject:
    """A pod all of which is as the server stores it, but perhaps its metadata."""
    return within(pod, "metadata", _without_old_annotations)


def default_template(template: JsonObject) -> JsonObject:
    """The pod template of a workload."""
    spec = template.get("spec") or {}
    done = default_pod_spec(spec)
    changes: JsonObject = {} if done is spec else {"spec": done}
    if template.get("metadata") is None:
        changes["metadata"] = {}
    return within(merged(template, changes), "metadata", _without_old_annotations)


def default_pod_spec(spec: JsonObject) -> JsonObject:
    """What pods and templates have in common."""
    changes: JsonObject = {}
    get = spec.get
    if not get("restartPolicy"):
        changes["restartPolicy"] = "Always"
    if not get("dnsPolicy"):
        changes["dnsPolicy"] = "ClusterFirst"
    if not get("schedulerName"):
        changes["schedulerName"] = "default-scheduler"
    if get("terminationGracePeriodSeconds") is None:
        changes["terminationGracePeriodSeconds"] = _GRACE_SECONDS
    if get("securityContext") is None:
        changes["securityContext"] = {}
    account = get("serviceAccountName") or get("serviceAccount")
    if account:
        _name_account(spec, account, changes)
    for key, default in _PARTS:
        part = get(key)
        if part:
            done = default(part)
            if done is not part:
                changes[key] = done
    return {**spec, **changes} if changes else spec


def default_pod_status(status: JsonObject) -> JsonObject:
    """``podIP`` and ``podIPs`` agree; where they differ, the old single field wins."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if addresses and not address:
        status = {**status, "podIP": addresses[0].get("ip")}
    elif address and (not addresses or addresses[0].get("ip") != address):
        status = {**status, "podIPs": [{"ip": address}]}
    for key in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        status = within_each(status, key, _container_status)
    status = within(status, "allocatedResources", resource_list)
    return within(status, "resources", default_resources)


def _pod_only(spec: JsonObject) -> JsonObject:
    changes: JsonObject = {}
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        changes["terminationGracePeriodSeconds"] = 1
    if spec.get("enableServiceLinks") is None:
        changes["enableServiceLinks"] = True
    on_host = spec.get("hostNetwork")
    for key in ("containers", "initContainers"):
        containers = spec.get(key)
        if containers:
            done = mapped(containers, _on_host_network if on_host else requests_from_limits)
            if done is not containers:
                changes[key] = done
    spec = {**spec, **changes} if changes else spec
    return default_pod_resources(spec) if spec.get("resources") else spec


def _on_host_network(container: JsonObject) -> JsonObject:
    return within_each(requests_from_limits(container), "ports", _host_port)


def _host_port(port: JsonObject) -> JsonObject:
    if port.get("hostPort") or not port.get("containerPort"):
        return port
    return {**port, "hostPort": port["containerPort"]}


def _name_account(spec: JsonObject, account: str, changes: JsonObject) -> None:
    """The old name of the field goes along with the new one, which wins."""
    for key in ("serviceAccountName", "serviceAccount"):
        if spec.get(key) != account:
            changes[key] = account


def _container_status(status: JsonObject) -> JsonObject:
    status = filled_unset(status, {"state": {}, "lastState": {}})
    status = within(status, "allocatedResources", resource_list)
    return within(status, "resources", default_resources)


def _without_old_annotations(metadata: JsonObject) -> JsonObject:
    """Init containers were annotations once; those are dropped, lest old kubelets obey them."""
    annotations = metadata.get("annotations")
    if not annotations or _OLD_INIT_CONTAINERS.isdisjoint(annotations):
        return metadata
    kept = {key: text for key, text in annotations.items() if key not in _OLD_INIT_CONTAINERS}
    return {**metadata, "annotations": kept}


def _containers(containers: list[Any]) -> list[Any]:
    return mapped(containers, default_container)


_PARTS = (
    ("containers", _containers),
    ("initContainers", _containers),
    ("ephemeralContainers", _containers),
    ("volumes", lambda volumes: mapped(volumes, default_volume)),
    ("overhead", resource_list),
    ("resources", default_resources),
)


def default_container(container: JsonObject) -> JsonObject:
    """A container with its defaults, except those that only pods (not templates) get."""
    changes: JsonObject = {}
    get = container.get
    if not get("imagePullPolicy"):
        changes["imagePullPolicy"] = pull_policy(get("image") or "")
    if not get("terminationMessagePath"):
        changes["terminationMessagePath"] = "/dev/termination-log"
    if not get("terminationMessagePolicy"):
        changes["terminationMessagePolicy"] = "File"
    if get("resources") is None:
        changes["resources"] = {}
    for key, default in _CONTAINER_PARTS:
        part = get(key)
        if part:
            done = default(part)
            if done is not part:
                changes[key] = done
    return {**container, **changes} if changes else container


def _port(port: JsonObject) -> JsonObject:
    return port if port.get("protocol") else {**port, "protocol": "TCP"}


def _env(variable: JsonObject) -> JsonObject:
    source = variable.get("valueFrom")
    return within(variable, "valueFrom", _env_source) if source else variable


def _env_source(source: JsonObject) -> JsonObject:
    source = within(source, "fieldRef", default_field_ref)
    source = within(source, "resourceFieldRef", default_resource_ref)
    return within(source, "fileKeyRef", lambda ref: filled_unset(ref, {"optional": False}))


def _probe(probe: JsonObject) -> JsonObject:
    probe = within(filled(probe, _PROBE), "httpGet", _http_get)
    return within(probe, "grpc", lambda grpc: filled_unset(grpc, {"service": ""}))


def _http_get(action: JsonObject) -> JsonObject:
    return filled(action, _HTTP_GET)


def _lifecycle(lifecycle: JsonObject) -> JsonObject:
    for hook in ("postStart", "preStop"):
        lifecycle = within(lifecycle, hook, lambda handler: within(handler, "httpGet", _http_get))
    return lifecycle


_CONTAINER_PARTS = (
    ("resources", default_resources),
    ("ports", lambda ports: mapped(ports, _port)),
    ("env", lambda variables: mapped(variables, _env)),
    ("livenessProbe", _probe),
    ("readinessProbe", _probe),
    ("startupProbe", _probe),
    ("lifecycle", _lifecycle),
)


def requests_from_limits(container: JsonObject) -> JsonObject:
    """A container that asks for its limits where it does not say otherwise."""
    resources = container.get("resources")
    limits = resources.get("limits") if resources else None
    if not resources or not limits:
        return container
    requests = resources.get("requests") or {}
    if limits.keys() <= requests.keys():
        return container
    missing = {name: amount for name, amount in limits.items() if name not in requests}
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}


def default_pod_resources(spec: JsonObject) -> JsonObject:
    """The spec with its own (pod-level) limits and requests completed."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return spec
    limits = _huge_page_limits(spec, limits, requests)
    if limits:
        requests = _pod_requests(spec, limits, requests)
    wanted = {"limits": limits, "requests": requests}
    missing = {side: it for side, it in wanted.items() if it and it != resources.get(side)}
    return {**spec, "resources": {**resources, **missing}} if missing else spec


def _huge_page_limits(spec: JsonObject, limits: JsonObject, requests: JsonObject) -> JsonObject:
    needed = {
        name: str(amount)
        for name, amount in needed_together(spec, "limits").items()
        if name.startswith(_HUGE_PAGES) and name not in limits and name not in requests
    }
    return {**limits, **needed}


def _pod_requests(spec: JsonObject, limits: JsonObject, requests: JsonObject) -> JsonObject:
    needed = {
        name: str(amount)
        for name, amount in needed_together(spec, "requests").items()
        if name in {"cpu", "memory"}
    }
    allowed = {name: amount for name, amount in limits.items() if _is_pod_level(name)}
    return {**allowed, **needed, **requests}


def _is_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith(_HUGE_PAGES)


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "Pod"): default_pod,
}
OF_METADATA: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "Pod"): default_pod_metadata,
}
