"""Quantities, semantic versions, IP addresses and URLs."""

import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Never

from kubescene.api.quantity import MAX_INT64, MIN_INT64, Quantity, QuantityError, from_value, parse
from kubescene.api.schemas.urls import Url, parse_url
from kubescene.cel.errors import EvaluationError, no_such_overload
from kubescene.cel.functions import Library
from kubescene.cel.types import (
    BOOL,
    CIDR,
    DOUBLE,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    URL,
    list_of,
    map_of,
)
from kubescene.cel.values import MAX_UINT, Address, Cidr, Semver, Value

KUBERNETES = Library()

ORDERED = ((QUANTITY, QUANTITY), (SEMVER, SEMVER))

_LINK_LOCAL_MULTICAST = IPv4Network("224.0.0.0/24")
_UNIT = 10**9
_NUMBER = r"(0|[1-9][0-9]*)"
_MARKS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SEMVER = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_MARKS}))?(?:\+({_MARKS}))?", re.ASCII)


# -- quantities --------------------------------------------------------------------------------


@KUBERNETES.function("quantity", QUANTITY, (STRING,))
def quantity(text: Value) -> Quantity:
    try:
        return _parsed(_text(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


@KUBERNETES.function("isQuantity", BOOL, (STRING,))
def is_quantity(text: Value) -> bool:
    try:
        _parsed(_text(text))
    except QuantityError:
        return False
    return True


def _parsed(text: str) -> Quantity:
    """Blanks around a quantity are for JSON bodies only."""
    return parse(text if text == text.strip() else "blank")


@KUBERNETES.function("sign", INT, (QUANTITY,))
def sign(value: Value) -> int:
    nanos = _quantity(value).nanos
    return (nanos > 0) - (nanos < 0)


@KUBERNETES.method("isInteger", BOOL, (QUANTITY,))
def is_integer(value: Value) -> bool:
    held = _quantity(value)
    return held.is_written_whole and MIN_INT64 <= held.nanos // _UNIT <= MAX_INT64


@KUBERNETES.method("asInteger", INT, (QUANTITY,))
def as_integer(value: Value) -> int:
    if not is_integer(value):
        raise EvaluationError("cannot convert value to integer")
    return _quantity(value).nanos // _UNIT


@KUBERNETES.method("asApproximateFloat", DOUBLE, (QUANTITY,))
def as_float(value: Value) -> float:
    return _quantity(value).nanos / _UNIT


@KUBERNETES.method("add", QUANTITY, (QUANTITY, QUANTITY), (QUANTITY, INT))
def add_quantity(left: Value, right: Value) -> Quantity:
    one, other = _quantity(left), _as_quantity(right)
    return replace(one + other, is_written_whole=_is_sum_whole(one, other))


@KUBERNETES.method("sub", QUANTITY, (QUANTITY, QUANTITY), (QUANTITY, INT))
def subtract_quantity(left: Value, right: Value) -> Quantity:
    one, other = _quantity(left), _as_quantity(right)
    return replace(one - other, is_written_whole=_is_sum_whole(one, other))


def _is_sum_whole(left: Quantity, right: Quantity) -> bool:
    """A zero leaves the other side as it is."""
    if not left or not right:
        return (right or left).is_written_whole
    return left.is_written_whole and right.is_written_whole


def _quantity(value: Value) -> Quantity:
    if isinstance(value, Quantity):
        return value
    raise no_such_overload()


def _as_quantity(value: Value) -> Quantity:
    return from_value(value) if type(value) is int else _quantity(value)


# -- order, of quantities and of versions ------------------------------------------------------


@KUBERNETES.method("compareTo", INT, *ORDERED)
def compare_to(left: Value, right: Value) -> int:
    if isinstance(left, Semver) and isinstance(right, Semver):
        return (left.key > right.key) - (left.key < right.key)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return (left > right) - (left < right)
    raise no_such_overload()


@KUBERNETES.method("isGreaterThan", BOOL, *ORDERED)
def is_greater(left: Value, right: Value) -> bool:
    return bool(compare_to(left, right) > 0)


@KUBERNETES.method("isLessThan", BOOL, *ORDERED)
def is_less(left: Value, right: Value) -> bool:
    return bool(compare_to(left, right) < 0)


# -- semantic versions -------------------------------------------------------------------------


@KUBERNETES.function("semver", SEMVER, (STRING,), (STRING, BOOL))
def semver(text: Value, normalize: Value = False) -> Semver:
    found = parse_semver(_normalized(_text(text)) if normalize is True else _text(text))
    if found is None:
        raise EvaluationError(f'invalid semantic version "{text}"')
    return found


@KUBERNETES.function("isSemver", BOOL, (STRING,), (STRING, BOOL))
def is_semver(text: Value, normalize: Value = False) -> bool:
    return parse_semver(_normalized(_text(text)) if normalize is True else _text(text)) is not None


@KUBERNETES.method("major", INT, (SEMVER,))
def major(value: Value) -> int:
    return _semver(value).major


@KUBERNETES.method("minor", INT, (SEMVER,))
def minor(value: Value) -> int:
    return _semver(value).minor


@KUBERNETES.method("patch", INT, (SEMVER,))
def patch(value: Value) -> int:
    return _semver(value).patch


def parse_semver(text: str) -> Semver | None:
    """A version in its strict form, or None."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        return None
    marks = match[4].split(".") if match[4] else []
    if any(each.isdecimal() and len(each) > 1 and each[0] == "0" for each in marks):
        return None
    numbers = (match[1], match[2], match[3], *(each for each in marks if each.isdecimal()))
    if any(len(each) > 20 or int(each) > MAX_UINT for each in numbers):
        return None
    pre = tuple(int(each) if each.isdecimal() else each for each in marks)
    return Semver(int(match[1]), int(match[2]), int(match[3]), pre)


def _normalized(text: str) -> str:
    """Without a leading "v", with three numbers, without leading zeros."""
    core, mark, rest = _split_core(text.removeprefix("v"))
    numbers = [each.lstrip("0") or "0" if each.isdecimal() else each for each in core.split(".")]
    if len(numbers) > 3 or (len(numbers) < 3 and mark):
        return text
    return ".".join([*numbers, *["0"] * (3 - len(numbers))]) + mark + rest


def _split_core(text: str) -> tuple[str, str, str]:
    at = min((text.index(each) for each in "-+" if each in text), default=len(text))
    return text[:at], text[at : at + 1], text[at + 1 :]


def _semver(value: Value) -> Semver:
    if isinstance(value, Semver):
        return value
    raise no_such_overload()


# -- IP addresses and networks -----------------------------------------------------------------


@KUBERNETES.function("ip", IP, (STRING,))
def ip(text: Value) -> Address:
    found = _address(_text(text))
    if found is None:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string')
    return found


@KUBERNETES.function("isIP", BOOL, (STRING,))
def is_ip(text: Value) -> bool:
    return _address(_text(text)) is not None


@KUBERNETES.function("ip.isCanonical", BOOL, (STRING,))
def ip_is_canonical(text: Value) -> bool:
    return bool(str(ip(text)) == text)


@KUBERNETES.method("family", INT, (IP,))
def family(value: Value) -> int:
    return value.version if isinstance(value, Address) else _refuse()


@KUBERNETES.method("isUnspecified", BOOL, (IP,))
def is_unspecified(value: Value) -> bool:
    return value.is_unspecified if isinstance(value, Address) else _refuse()


@KUBERNETES.method("isLoopback", BOOL, (IP,))
def is_loopback(value: Value) -> bool:
    return value.is_loopback if isinstance(value, Address) else _refuse()


@KUBERNETES.method("isGlobalUnicast", BOOL, (IP,))
def is_global_unicast(value: Value) -> bool:
    if not isinstance(value, Address):
        raise no_such_overload()
    special = value.is_multicast or value.is_unspecified or value.is_loopback or value.is_link_local
    return not special and value != IPv4Address("255.255.255.255")


@KUBERNETES.method("isLinkLocalUnicast", BOOL, (IP,))
def is_link_local_unicast(value: Value) -> bool:
    return value.is_link_local if isinstance(value, Address) else _refuse()


@KUBERNETES.method("isLinkLocalMulticast", BOOL, (IP,))
def is_link_local_multicast(value: Value) -> bool:
    if isinstance(value, IPv6Address):
        return value.packed[0] == 0xFF and value.packed[1] & 0x0F == 2
    return value in _LINK_LOCAL_MULTICAST if isinstance(value, IPv4Address) else _refuse()


@KUBERNETES.function("cidr", CIDR, (STRING,))
def cidr(text: Value) -> Cidr:
    found = _cidr(_text(text))
    if found is None:
        raise EvaluationError(
            f'network address parse error during conversion from string: "{text}"'
        )
    return found


@KUBERNETES.function("isCIDR", BOOL, (STRING,))
def is_cidr(text: Value) -> bool:
    return _cidr(_text(text)) is not None


@KUBERNETES.method("containsIP", BOOL, (CIDR, IP), (CIDR, STRING))
def contains_ip(value: Value, address: Value) -> bool:
    inner = ip(address) if isinstance(address, str) else address
    return inner in _network(value) if isinstance(inner, Address) else _refuse()


@KUBERNETES.method("containsCIDR", BOOL, (CIDR, CIDR), (CIDR, STRING))
def contains_cidr(value: Value, other: Value) -> bool:
    outer = _network(value)
    inner = _network(cidr(other) if isinstance(other, str) else other)
    return inner.prefixlen >= outer.prefixlen and inner.network_address in outer


@KUBERNETES.method("prefixLength", INT, (CIDR,))
def prefix_length(value: Value) -> int:
    return _network(value).prefixlen


@KUBERNETES.method("ip", IP, (CIDR,))
def ip_of(value: Value) -> Address:
    return value.address if isinstance(value, Cidr) else _refuse()


@KUBERNETES.method("masked", CIDR, (CIDR,))
def masked(value: Value) -> Cidr:
    network = _network(value)
    return Cidr(network.network_address, network.prefixlen)


def _address(text: str) -> Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    mapped = isinstance(found, IPv6Address) and found.ipv4_mapped is not None
    return None if mapped or "%" in text else found


def _cidr(text: str) -> Cidr | None:
    written, _, length = text.partition("/")
    address = _address(written)
    if address is None or not re.fullmatch(_NUMBER, length) or len(length) > 3:
        return None
    return Cidr(address, int(length)) if int(length) <= address.max_prefixlen else None


def _network(value: Value) -> IPv4Network | IPv6Network:
    return value.network if isinstance(value, Cidr) else _refuse()


# -- URLs --------------------------------------------------------------------------------------


@KUBERNETES.function("url", URL, (STRING,))
def url(text: Value) -> Url:
    found = parse_url(_text(text))
    if found is None:
        raise EvaluationError(f'URL parse error during conversion from string: "{text}"')
    # As there: whether it is one is decided with its fragment, what it says is read without.
    return parse_url(text.partition("#")[0]) or found


@KUBERNETES.function("isURL", BOOL, (STRING,))
def is_url(text: Value) -> bool:
    return parse_url(_text(text)) is not None


@KUBERNETES.method("getScheme", STRING, (URL,))
def get_scheme(value: Value) -> str:
    return _url(value).scheme


@KUBERNETES.method("getHost", STRING, (URL,))
def get_host(value: Value) -> str:
    return _url(value).host


@KUBERNETES.method("getHostname", STRING, (URL,))
def get_hostname(value: Value) -> str:
    return _url(value).hostname


@KUBERNETES.method("getPort", STRING, (URL,))
def get_port(value: Value) -> str:
    return _url(value).port


@KUBERNETES.method("getEscapedPath", STRING, (URL,))
def get_escaped_path(value: Value) -> str:
    return _url(value).path


@KUBERNETES.method("getQuery", map_of(STRING, list_of(STRING)), (URL,))
def get_query(value: Value) -> dict[str, list[str]]:
    return _url(value).queries


def _url(value: Value) -> Url:
    return value if isinstance(value, Url) else _refuse()


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise no_such_overload()


def _refuse() -> Never:
    raise no_such_overload()
