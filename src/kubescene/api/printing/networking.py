"""Rows of services, endpoints, ingresses and their kin."""

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    TableColumns,
    age,
    dig,
    labels_text,
    name_of,
    selector_text,
    shortened,
    text,
    wide,
)
from kubescene.types import JsonObject, Nanoseconds

_SHOWN = 3
_DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"


def service_row(service: JsonObject, now: Nanoseconds) -> Cells:
    spec = dig(service, "spec", {})
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    return [
        name_of(service),
        spec.get("type", ""),
        addresses[0],
        _external_ip(service),
        ",".join(map(_service_port, spec.get("ports") or ())) or NONE,
        age(service, now),
        labels_text(spec.get("selector")),
    ]


def _external_ip(service: JsonObject) -> str:
    kind, listed = dig(service, "spec.type"), dig(service, "spec.externalIPs", [])
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(listed) or NONE
    if kind == "LoadBalancer":
        return ",".join([*_load_balancers(service), *listed]) or "<pending>"
    return str(dig(service, "spec.externalName", "")) if kind == "ExternalName" else UNKNOWN


def _load_balancers(obj: JsonObject) -> list[str]:
    ingresses = dig(obj, "status.loadBalancer.ingress", ())
    return sorted({i.get("ip") or i.get("hostname") or "" for i in ingresses} - {""})


def _service_port(port: JsonObject) -> str:
    number, node_port = port.get("port"), port.get("nodePort")
    shown = f"{number}:{node_port}" if node_port else f"{number}"
    return f"{shown}/{port.get('protocol', 'TCP')}"


def endpoints_row(endpoints: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(endpoints), _endpoints_text(endpoints), age(endpoints, now)]


def _endpoints_text(endpoints: JsonObject) -> str:
    subsets = endpoints.get("subsets")
    if not subsets:
        return NONE
    pairs = [pair for subset in subsets for pair in _subset_endpoints(subset)]
    return shortened(pairs, _SHOWN)


def _subset_endpoints(subset: JsonObject) -> list[str]:
    addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
    ports = subset.get("ports")
    if not ports:
        return addresses
    return [_host_and_port(ip, port.get("port", 0)) for port in ports for ip in addresses]


def _host_and_port(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def endpoint_slice_row(endpoint_slice: JsonObject, now: Nanoseconds) -> Cells:
    endpoints = endpoint_slice.get("endpoints") or ()
    addresses = [ip for endpoint in endpoints for ip in endpoint.get("addresses") or ()]
    ports = [_slice_port(port) for port in endpoint_slice.get("ports") or ()]
    return [
        name_of(endpoint_slice),
        endpoint_slice.get("addressType", ""),
        shortened(ports, _SHOWN) or UNSET,
        shortened(addresses, _SHOWN) or UNSET,
        age(endpoint_slice, now),
    ]


def _slice_port(port: JsonObject) -> str:
    number, name = port.get("port"), port.get("name")
    if number is not None:
        return str(number)
    return "*" if name is None else str(name)


def ingress_row(ingress: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(ingress),
        dig(ingress, "spec.ingressClassName", NONE),
        _hosts(dig(ingress, "spec.rules", ())),
        ",".join(_load_balancers(ingress)),
        "80, 443" if dig(ingress, "spec.tls") else "80",
        age(ingress, now),
    ]


def _hosts(rules: list[JsonObject]) -> str:
    """Hosts of the rules; rules count for "more" once three hosts are listed, hosts or not."""
    shown: list[str] = []
    for rule in rules:
        if len(shown) == _SHOWN:
            return f"{','.join(shown)} + {len(rules) - _SHOWN} more..."
        if host := rule.get("host"):
            shown.append(host)
    return ",".join(shown) or "*"


def ingress_class_row(ingress_class: JsonObject, now: Nanoseconds) -> Cells:
    name = name_of(ingress_class)
    if dig(ingress_class, "metadata.annotations", {}).get(_DEFAULT_INGRESS_CLASS) == "true":
        name += " (default)"
    controller = dig(ingress_class, "spec.controller", "")
    return [name, controller, _class_parameters(ingress_class), age(ingress_class, now)]


def _class_parameters(ingress_class: JsonObject) -> str:
    parameters = dig(ingress_class, "spec.parameters")
    if parameters is None:
        return NONE
    group = parameters.get("apiGroup")
    kind = parameters.get("kind", "") if group is None else f"{parameters.get('kind', '')}.{group}"
    return f"{kind}/{parameters.get('name', '')}"


def network_policy_row(policy: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(policy), selector_text(dig(policy, "spec.podSelector", {})), age(policy, now)]


def service_cidr_row(cidr: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(cidr), ",".join(dig(cidr, "spec.cidrs", ())), age(cidr, now)]


def ip_address_row(address: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(address), _parent(dig(address, "spec.parentRef"))]


def _parent(reference: JsonObject | None) -> str:
    if reference is None:
        return NONE
    resource, group = reference.get("resource", ""), reference.get("group")
    kind = (f"{resource}.{group}" if group else resource).lower()
    namespace = reference.get("namespace")
    place = f"{kind}/{namespace}" if namespace else kind
    return f"{place}/{reference.get('name', '')}"


SERVICE = TableColumns(
    (
        NAME,
        text("Type", "@core.v1.ServiceSpec.type"),
        text("Cluster-IP", "@core.v1.ServiceSpec.clusterIP"),
        text("External-IP", "@core.v1.ServiceSpec.externalIPs"),
        text("Port(s)", "@core.v1.ServiceSpec.ports"),
        AGE,
        wide("Selector", "@core.v1.ServiceSpec.selector"),
    ),
    service_row,
)
ENDPOINTS = TableColumns(
    (NAME, text("Endpoints", "@core.v1.Endpoints.subsets"), AGE), endpoints_row
)
ENDPOINT_SLICE = TableColumns(
    (
        NAME,
        text("AddressType", "@discovery.v1.EndpointSlice.addressType"),
        text("Ports", "@discovery.v1.EndpointSlice.ports"),
        text("Endpoints", "@discovery.v1.EndpointSlice.endpoints"),
        AGE,
    ),
    endpoint_slice_row,
)
INGRESS = TableColumns(
    (
        NAME,
        text(
            "Class",
            "The name of the IngressClass resource that should be used for additional "
            "configuration",
        ),
        text("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
        text("Address", "Address is a list containing ingress points for the load-balancer"),
        text("Ports", "Ports of TLS configurations that open"),
        AGE,
    ),
    ingress_row,
)
INGRESS_CLASS = TableColumns(
    (
        NAME,
        text("Controller", "Controller that is responsible for handling this class"),
        text("Parameters", "A reference to a resource with additional parameters"),
        AGE,
    ),
    ingress_class_row,
)
NETWORK_POLICY = TableColumns(
    (NAME, text("Pod-Selector", "@networking.v1.NetworkPolicySpec.podSelector"), AGE),
    network_policy_row,
)
SERVICE_CIDR = TableColumns(
    (NAME, text("CIDRs", "@networking.v1.ServiceCIDRSpec.cidrs"), AGE), service_cidr_row
)
IP_ADDRESS = TableColumns(
    (NAME, text("ParentRef", "@networking.v1.IPAddressSpec.parentRef")), ip_address_row
)
