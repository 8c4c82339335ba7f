"""String formats that a custom schema may ask for, by the names that kube-apiserver knows.

A format nobody knows is ignored, as there. Hyphens in a format's name do not matter.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import TypeAlias

from kubescene.api.schemas import patterns
from kubescene.api.schemas.urls import parse_url

Check: TypeAlias = Callable[[str], bool]


def is_known(name: str) -> bool:
    return _plain(name) in _CHECKS


def satisfies(name: str, text: str) -> bool:
    """Whether a text has a known format."""
    return _CHECKS[_plain(name)](text)


def _plain(name: str) -> str:
    return name.replace("-", "")


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(parse: Callable[[str], object]) -> Check:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOST_LABEL = r"[a-zA-Z0-9_]([-_a-zA-Z0-9]{0,61}[a-zA-Z0-9_])?"
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d([^\n]\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION = (
    r"\A[+-]?(0|(\d+(\.\d*)?|\.\d+)\s*"
    r"(ns|nano|nanos|us|µs|μs|micro|micros|ms|milli|millis|s|sec|secs|second|seconds|"
    r"m|min|mins|minute|minutes|h|hr|hour|hours|d|day|days|w|wk|week|weeks)\s*)+\z"
)
"""For RE2: a zero may stand alone or begin a number, and Python would try both at every digit."""
_NOT_DIGITS = re.compile(r"[^0-9]+", re.ASCII)
_CREDIT_CARD = re.compile(
    r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|"
    r"(?:2131|1800|35\d{3})\d{11}",
    re.ASCII,
)
_MAX_SHORT_NAME = 63
_MAX_LONG_NAME = 253
_ISBN10_DIGITS = 10


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    # To Python there is no year 0; it would be a leap year.
    return _parses(date.fromisoformat)(text.replace("0000-", "2000-") if text < "0001" else text)


def _is_date_time(text: str) -> bool:
    day, *rest = text.lower().split("t")
    return bool(rest) and _is_date(day) and _TIME.fullmatch(rest[0]) is not None


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        return False


def _is_uri(text: str) -> bool:
    return parse_url(text) is not None


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal():
        return False
    return _parses(lambda _: ipaddress.ip_network(f"{address}/{bits}", strict=False))(text)


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    weighted = sum(weight * value for weight, value in enumerate(values, start=1))
    return weighted % (_ISBN10_DIGITS + 1) == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = _NOT_DIGITS.sub("", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * 2 if place % 2 else int(digit)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def _short_name(text: str) -> bool:
    return len(text) <= _MAX_SHORT_NAME and _matches(_LABEL)(text)


def _long_name(text: str) -> bool:
    return len(text) <= _MAX_LONG_NAME and _matches(rf"{_LABEL}(\.{_LABEL})*")(text)


_CHECKS: dict[str, Check] = {
    "bsonobjectid": _matches(r"[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _matches(r"[^@\s<>]+@[^@\s<>]+|[^<>]*<[^@\s<>]+@[^@\s<>]+>"),
    "hostname": lambda text: (
        0 < len(text) <= _MAX_LONG_NAME + 2
        and _matches(rf"{_HOST_LABEL}(\.{_HOST_LABEL})*\.?")(text)
    ),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _is_cidr,
    "mac": _matches(
        r"([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2})|([0-9a-fA-F]{2}[:-]){7}([0-9a-fA-F]{2})|"
        r"([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}|([0-9a-fA-F]{4}\.){3}[0-9a-fA-F]{4}"
    ),
    "uuid": _matches(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid3": _matches(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid4": _matches(
        r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
    ),
    "uuid5": _matches(
        r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
    ),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(
        r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
        r"\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)"
    ),
    "byte": _is_base64,
    "password": lambda _: True,
    "date": _is_date,
    "duration": lambda text: patterns.matches(_DURATION, text),
    "datetime": _is_date_time,
    "k8sshortname": _short_name,
    "k8slongname": _long_name,
}
