"""Addresses and ports as endpoints have them: their spelling, and the order of ports."""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address

from kubescene.types import JsonObject

IPV4 = "IPv4"
IPV6 = "IPv6"

_PRIME = 0x0000000001000000000000000000013B
_BASIS = 0x6C62272E07BB014262B821756295C58D


def spelled(address: str) -> tuple[str, str] | None:
    """An address in its usual spelling and its type; None if it is none."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return str(parsed), IPV6 if isinstance(parsed, IPv6Address) else IPV4


def pod_addresses(pod: JsonObject, address_type: str) -> list[str]:
    status = pod["status"]
    given = status.get("podIPs") or [{"ip": status.get("podIP") or ""}]
    found = (spelled(each.get("ip") or "") for each in given)
    return [each[0] for each in found if each is not None and each[1] == address_type]


def address_order(address: JsonObject) -> tuple[bytes, str]:
    """By address, then by the uid of the pod."""
    try:
        packed = ip_address(address["ip"]).packed.rjust(16, b"\0")
    except ValueError:
        packed = b""
    return packed, (address.get("targetRef") or {}).get("uid", "")


def slice_ports(ports: Iterable[JsonObject]) -> list[JsonObject]:
    """Ports of an EndpointSlice in the order in which they are written."""
    return sorted(ports, key=lambda port: _fnv128a(_dumped_slice_port(port)))


def subset_ports(ports: Iterable[JsonObject]) -> list[JsonObject]:
    """Ports of Endpoints in the order in which they are written."""
    return sorted(ports, key=lambda port: _fnv128a(_dumped_subset_port(port)))


# kube-controller-manager orders ports by a hash over how Go prints them, so it is part of what
# clients see.


def _dumped_slice_port(port: JsonObject) -> str:
    return (
        f"(v1.EndpointPort){{Name:(*string){port.get('name', '')} "
        f"Protocol:(*v1.Protocol){port.get('protocol', 'TCP')} "
        f"Port:(*int32){port.get('port', '<nil>')} "
        f"AppProtocol:(*string){port.get('appProtocol', '<nil>')}}}"
    )


def _dumped_subset_port(port: JsonObject) -> str:
    return (
        f"(v1.EndpointPort){{Name:(string){port.get('name', '')} Port:(int32){port['port']} "
        f"Protocol:(v1.Protocol){port.get('protocol', 'TCP')} "
        f"AppProtocol:(*string){port.get('appProtocol', '<nil>')}}}"
    )


def _fnv128a(text: str) -> int:
    value = _BASIS
    for byte in text.encode():
        value = (value ^ byte) * _PRIME % 2**128
    return value
