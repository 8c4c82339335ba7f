"""Defaults of Service, its endpoints, NetworkPolicy and IngressClass.

Cluster IPs, node ports and IP families are not defaults: the server allocates them on creation.
"""

from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    mapped,
    within,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_TCP = {"protocol": "TCP"}
_AFFINITY_SECONDS = 10800
_INSIDE = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})


def default_service(service: JsonObject) -> JsonObject:
    """A Service: a cluster IP, no session affinity, target ports equal to its ports."""
    service = into(service, "spec", _service_spec)
    if service["spec"]["type"] != "LoadBalancer":
        return service
    return at(service, ("status", "loadBalancer"), _load_balancer)


def default_endpoints(endpoints: JsonObject) -> JsonObject:
    """Ports are TCP."""
    return within_each(endpoints, "subsets", lambda subset: within_each(subset, "ports", _tcp))


def default_endpoint_slice(endpoint_slice: JsonObject) -> JsonObject:
    """Ports are TCP and unnamed."""
    endpoint_slice = within_each(endpoint_slice, "endpoints", _endpoint)
    return within_each(endpoint_slice, "ports", _slice_port)


def default_network_policy(policy: JsonObject) -> JsonObject:
    """A policy isolates ingress, and egress if it has rules for that."""
    return into(policy, "spec", _policy_spec)


def default_ingress_class(ingress_class: JsonObject) -> JsonObject:
    """Parameters are cluster-scoped."""
    return at(
        ingress_class, ("spec", "parameters"), lambda it: filled_unset(it, {"scope": "Cluster"})
    )


def _service_spec(spec: JsonObject) -> JsonObject:
    spec = filled(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    spec = within_each(_affinity(spec), "ports", _service_port)
    kind = spec["type"]
    if kind in {"NodePort", "LoadBalancer"} or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec = filled(spec, {"externalTrafficPolicy": "Cluster"})
    if kind in _INSIDE:
        spec = filled_unset(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        spec = filled_unset(spec, {"allocateLoadBalancerNodePorts": True})
    return spec


def _affinity(spec: JsonObject) -> JsonObject:
    """The timeout belongs to affinity by client IP; without affinity its settings vanish."""
    affinity, config = spec["sessionAffinity"], spec.get("sessionAffinityConfig")
    if affinity == "None" and config is not None:
        return {key: value for key, value in spec.items() if key != "sessionAffinityConfig"}
    if affinity != "ClientIP":
        return spec
    if ((config or {}).get("clientIP") or {}).get("timeoutSeconds") is not None:
        return spec
    return {**spec, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}}


def _service_port(port: JsonObject) -> JsonObject:
    return filled(_tcp(port), {"targetPort": port.get("port") or 0})


def _load_balancer(status: JsonObject) -> JsonObject:
    return within_each(status, "ingress", _load_balancer_ingress)


def _load_balancer_ingress(ingress: JsonObject) -> JsonObject:
    return filled_unset(ingress, {"ipMode": "VIP"}) if ingress.get("ip") else ingress


def _tcp(port: JsonObject) -> JsonObject:
    return filled(port, _TCP)


def _endpoint(endpoint: JsonObject) -> JsonObject:
    return filled_unset(endpoint, {"conditions": {}})


def _slice_port(port: JsonObject) -> JsonObject:
    return filled_unset(port, {"name": "", "protocol": "TCP"})


def _policy_spec(spec: JsonObject) -> JsonObject:
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    spec = filled(spec, {"policyTypes": types})
    for direction in ("ingress", "egress"):
        spec = within(spec, direction, lambda rules: mapped(rules, _policy_rule))
    return spec


def _policy_rule(rule: JsonObject) -> JsonObject:
    return within_each(rule, "ports", lambda port: filled_unset(port, _TCP))


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "Endpoints"): default_endpoints,
    GroupVersionKind("", "v1", "Service"): default_service,
    GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice"): default_endpoint_slice,
    GroupVersionKind("networking.k8s.io", "v1", "IngressClass"): default_ingress_class,
    GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy"): default_network_policy,
}
