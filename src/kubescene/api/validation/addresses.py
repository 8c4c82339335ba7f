"""IP addresses and CIDR blocks in the fields that have held them since the beginning."""

import ipaddress

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path

_NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def check_ip(address: str, errors: ErrorList, path: Path) -> None:
    """A valid address, without leading zeros and not IPv4 in IPv6 clothes."""
    parsed = _parse(address)
    if parsed is None:
        zeros = _parse(_without_zeros(address)) is not None
        errors.invalid(path, address, "must not have leading 0s" if zeros else _NOT_AN_IP)
    elif getattr(parsed, "ipv4_mapped", None) is not None:
        errors.invalid(path, address, "must not be an IPv4-mapped IPv6 address")


def check_cidr(block: str, errors: ErrorList, path: Path) -> None:
    """A valid network: no bits set beyond the prefix."""
    address, slash, prefix = block.partition("/")
    try:
        if not (slash and prefix.isascii() and prefix.isdigit()):
            raise ValueError
        interface = ipaddress.ip_interface(f"{_without_zeros(address)}/{int(prefix)}")
    except ValueError:
        errors.invalid(path, block, _NOT_A_CIDR)
        return
    if _parse(address) is None or prefix != str(int(prefix)):
        errors.invalid(path, block, "must not have leading 0s in IP or prefix length")
    elif getattr(interface.ip, "ipv4_mapped", None) is not None:
        errors.invalid(path, block, "must not have an IPv4-mapped IPv6 address")
    elif interface.ip != interface.network.network_address:
        errors.invalid(path, block, "must not have bits set beyond the prefix length")


def families(addresses: list[str]) -> set[int]:
    """IP versions among these addresses or blocks."""
    return {
        parsed.version
        for address in addresses
        if (parsed := _parse(_without_zeros(address.partition("/")[0])))
    }


def first_unreadable(addresses: list[str]) -> str:
    """Position and text of the first address that is none, empty if all can be read."""
    for position, address in enumerate(addresses):
        if _parse(_without_zeros(address)) is None:
            return f"[{position}]: {address}"
    return ""


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in address else ipaddress.ip_address(address)
    except ValueError:
        return None


def _without_zeros(address: str) -> str:
    if ":" in address:
        return address
    octets = address.split(".")
    return ".".join(octet.lstrip("0") or "0" if octet.isdigit() else octet for octet in octets)
