"""Services: ports, type and what goes with it."""

from typing import Any

from kubescene.api.validation.addresses import check_cidr, check_ip
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.api.validation.inner_forms import SERVICE_PORT, inner
from kubescene.api.validation.metadata import (
    check_labels,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_label, dns_subdomain, label_key, port_number
from kubescene.api.validation.pods.containers import check_choice
from kubescene.api.validation.pods.probes import check_port
from kubescene.types import JsonObject

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_MAX_AFFINITY_S = 86400
_LOAD_BALANCERS_ONLY = "may only be used when `type` is 'LoadBalancer'"
_NOT_EXTERNAL_NAME = "may not be set for ExternalName services"
_PORTS = SPEC.child("ports")


def validate_service(service: JsonObject, errors: ErrorList) -> None:
    validate_metadata(service.get("metadata") or {}, errors, namespaced=True, name_rule=dns_label)
    _check_spec(service.get("spec") or {}, errors)


def validate_service_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _check_cluster_ip_change(spec, before, errors)
    both = spec.get("type") == before.get("type") == "LoadBalancer"
    if both and spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
        at = SPEC.child("loadBalancerClass")
        errors.invalid(at, spec.get("loadBalancerClass"), "may not change once set")
    _check_spec(spec, errors)


def _check_cluster_ip_change(spec: JsonObject, before: JsonObject, errors: ErrorList) -> None:
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return
    old, new = before.get("clusterIPs") or [], spec.get("clusterIPs") or []
    if old and new and old[0] != new[0]:
        errors.invalid(SPEC.child("clusterIPs").index(0), new, "may not change once set")
    elif old and not new:
        detail = "primary clusterIP can not be unset"
        errors.invalid(SPEC.child("clusterIPs").index(0), new or None, detail)


def _is_headless(spec: JsonObject) -> bool:
    return (spec.get("clusterIPs") or []) == ["None"]


def _check_spec(spec: JsonObject, errors: ErrorList) -> None:
    ports, kind = spec.get("ports") or [], spec.get("type", "")
    if not ports and not _is_headless(spec) and kind != "ExternalName":
        errors.required(_PORTS)
    _check_type(spec, kind, errors)
    names: set[str] = set()
    for position, port in enumerate(ports):
        _check_port(port, len(ports) > 1, names, errors, _PORTS.index(position))
    if selector := spec.get("selector"):
        check_labels(selector, errors, SPEC.child("selector"))
    _check_affinity(spec, errors)
    _check_cluster_ips(spec, kind, errors)
    for position, address in enumerate(spec.get("externalIPs") or ()):
        check_ip(address, errors, SPEC.child("externalIPs").index(position))
    check_choice(kind, _TYPES, errors, SPEC.child("type"))
    _check_port_collisions(ports, kind, errors)
    _check_load_balancer(spec, kind, errors)
    _check_traffic(spec, kind, errors)


def _check_type(spec: JsonObject, kind: str, errors: ErrorList) -> None:
    if kind in ("LoadBalancer", "NodePort") and _is_headless(spec):
        detail = f"may not be set to 'None' for {kind} services"
        errors.invalid(SPEC.child("clusterIPs").index(0), "None", detail)
    if kind != "ExternalName":
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            errors.forbidden(SPEC.child(field), _NOT_EXTERNAL_NAME)
    name = spec.get("externalName", "").removesuffix(".")
    if name:
        errors.invalid_each(SPEC.child("externalName"), name, dns_subdomain(name))
    else:
        errors.required(SPEC.child("externalName"))


def _check_port(
    port: JsonObject, named: bool, names: set[str], errors: ErrorList, path: Path
) -> None:
    if name := port.get("name"):
        errors.invalid_each(path.child("name"), name, dns_label(name))
        if name in names:
            errors.duplicate(path.child("name"), name)
        names.add(name)
    elif named:
        errors.required(path.child("name"))
    number = port.get("port", 0)
    errors.invalid_each(path.child("port"), number, port_number(number))
    check_choice(port.get("protocol", ""), _PROTOCOLS, errors, path.child("protocol"))
    check_port(port.get("targetPort", 0), errors, path.child("targetPort"))
    if (protocol := port.get("appProtocol")) is not None:
        errors.invalid_each(path.child("appProtocol"), protocol, label_key(protocol))


def _check_affinity(spec: JsonObject, errors: ErrorList) -> None:
    affinity, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    check_choice(affinity, _AFFINITIES, errors, SPEC.child("sessionAffinity"))
    at = SPEC.child("sessionAffinityConfig")
    if affinity == "None" and config is not None:
        errors.forbidden(at, "must not be set when session affinity is None")
    if affinity != "ClientIP":
        return
    timeout = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
    if config is None:
        errors.required(at, "when session affinity type is ClientIP")
    elif timeout is None:
        at = at.child("clientIP")
        at = at.child("timeoutSeconds") if config.get("clientIP") is not None else at
        errors.required(at, "when session affinity type is ClientIP")
    elif not 0 < timeout <= _MAX_AFFINITY_S:
        detail = f"must be greater than 0 and less than {_MAX_AFFINITY_S}"
        errors.invalid(at.child("clientIP").child("timeoutSeconds"), timeout, detail)


def _check_cluster_ips(spec: JsonObject, kind: str, errors: ErrorList) -> None:
    if kind == "ExternalName":
        return
    address, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    at = SPEC.child("clusterIPs")
    if address and not addresses:
        errors.required(at)
    elif address and addresses[0] != address:
        errors.invalid(at, addresses, "first value must match `clusterIP`")
    elif addresses and not address:
        errors.invalid(at, addresses, "must be empty when `clusterIP` is not specified")


def _check_port_collisions(ports: list[JsonObject], kind: str, errors: ErrorList) -> None:
    node_ports: set[tuple[Any, Any]] = set()
    seen: set[tuple[Any, Any]] = set()
    for position, port in enumerate(ports):
        if port.get("nodePort") and kind == "ClusterIP":
            detail = "may not be used when `type` is 'ClusterIP'"
            errors.forbidden(_PORTS.index(position).child("nodePort"), detail)
    for position, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if port.get("nodePort") and key in node_ports:
            errors.duplicate(_PORTS.index(position).child("nodePort"), port["nodePort"])
        node_ports.add(key)
    for position, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            collided = {"protocol": key[0], "port": key[1]}
            errors.duplicate(_PORTS.index(position), inner(collided, SERVICE_PORT))
        seen.add(key)


def _check_load_balancer(spec: JsonObject, kind: str, errors: ErrorList) -> None:
    balanced = kind == "LoadBalancer"
    if ranges := spec.get("loadBalancerSourceRanges"):
        at = SPEC.child("LoadBalancerSourceRanges")
        if not balanced:
            errors.forbidden(at, _LOAD_BALANCERS_ONLY)
        for position, block in enumerate(ranges):
            check_cidr(block.strip(), errors, at.index(position))
    allocates = spec.get("allocateLoadBalancerNodePorts")
    if allocates is not None and not balanced:
        errors.forbidden(SPEC.child("allocateLoadBalancerNodePorts"), _LOAD_BALANCERS_ONLY)
    if allocates is None and balanced:
        errors.required(Path("allocateLoadBalancerNodePorts"))
    if (name := spec.get("loadBalancerClass")) is not None:
        if balanced:
            errors.invalid_each(SPEC.child("loadBalancerClass"), name, label_key(name))
        else:
            errors.forbidden(SPEC.child("loadBalancerClass"), _LOAD_BALANCERS_ONLY)


def _check_traffic(spec: JsonObject, kind: str, errors: ErrorList) -> None:
    external = spec.get("externalTrafficPolicy", "")
    at = SPEC.child("externalTrafficPolicy")
    reachable = kind in ("LoadBalancer", "NodePort") or (
        kind == "ClusterIP" and bool(spec.get("externalIPs"))
    )
    if reachable:
        check_choice(external, _TRAFFIC_POLICIES, errors, at)
    elif external:
        errors.invalid(at, external, "may only be set for externally-accessible services")
    health = spec.get("healthCheckNodePort")
    if health and not (kind == "LoadBalancer" and external == "Local"):
        detail = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        errors.invalid(SPEC.child("healthCheckNodePort"), health, detail)
    internal = spec.get("internalTrafficPolicy")
    at = SPEC.child("internalTrafficPolicy")
    if internal is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        errors.required(at)
    elif internal is not None and internal not in _TRAFFIC_POLICIES:
        errors.not_supported(at, internal, _TRAFFIC_POLICIES)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.not_supported(SPEC.child("trafficDistribution"), distribution, _DISTRIBUTIONS)
