"""The formats that names, labels and other short strings must have.

Every rule takes a string and returns the complaints about it, none if it is fine. Rules are
pure and see the same strings again and again, hence the caches. Lengths count bytes.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

Complaints: TypeAlias = tuple[str, ...]
NameRule: TypeAlias = Callable[[str], Complaints]

_MANY = 8192

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_UNDERSCORE_LABEL = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DNS_UNDERSCORE_SUBDOMAIN = rf"{_DNS_UNDERSCORE_LABEL}(\.{_DNS_UNDERSCORE_LABEL})*"
_DNS_1035_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_KEY = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_LABEL_KEY})?"
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"
_PERCENT = r"[0-9]+%"
_HEADER = r"[-A-Za-z0-9]+"
_PORT_NAME = r"[-a-z0-9]+"

_is_dns_label = re.compile(_DNS_LABEL).fullmatch
_is_dns_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch
_is_dns_underscore_subdomain = re.compile(_DNS_UNDERSCORE_SUBDOMAIN).fullmatch
_is_dns_1035_label = re.compile(_DNS_1035_LABEL).fullmatch
_is_label_key = re.compile(_LABEL_KEY).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_port_name = re.compile(_PORT_NAME).fullmatch
_has_letter = re.compile(r"[a-z]").search

_ALPHANUMERIC_ENDS = "must start and end with an alphanumeric character"
_DNS_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', and {_ALPHANUMERIC_ENDS}"
)
_LABEL_KEY_TEXT = (
    f"must consist of alphanumeric characters, '-', '_' or '.', and {_ALPHANUMERIC_ENDS}"
)


def size(text: str) -> int:
    """Length in bytes."""
    return len(text) if text.isascii() else len(text.encode())


def pattern_complaint(text: str, pattern: str, *examples: str) -> str:
    """``text`` with examples and the pattern, in the words of Kubernetes."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def range_complaint(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


_DNS_SUBDOMAIN_COMPLAINT = pattern_complaint(_DNS_SUBDOMAIN_TEXT, _DNS_SUBDOMAIN, "example.com")
_DNS_UNDERSCORE_COMPLAINT = pattern_complaint(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'_', '-' or '.', and {_ALPHANUMERIC_ENDS}",
    _DNS_UNDERSCORE_SUBDOMAIN,
    "example.com",
)
_DNS_LABEL_COMPLAINT = pattern_complaint(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"and {_ALPHANUMERIC_ENDS}",
    _DNS_LABEL,
    "my-name",
    "123-abc",
)
_DNS_1035_COMPLAINT = pattern_complaint(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    _DNS_1035_LABEL,
    "my-name",
    "abc-123",
)
_LABEL_KEY_COMPLAINT = pattern_complaint(
    _LABEL_KEY_TEXT, _LABEL_KEY, "MyName", "my.name", "123-abc"
)
_LABEL_VALUE_COMPLAINT = pattern_complaint(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    f"'.', and {_ALPHANUMERIC_ENDS}",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY_COMPLAINT = pattern_complaint(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_PERCENT_COMPLAINT = pattern_complaint(
    "a valid percent string must be a numeric string followed by an ending '%'",
    _PERCENT,
    "1%",
    "93%",
)
_HEADER_COMPLAINT = pattern_complaint(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_RELAXED_ENV_COMPLAINT = (
    "a valid environment variable name must consist only of printable ASCII characters "
    "other than '='"
)


def dns_subdomain(value: str) -> Complaints:
    """RFC 1123 subdomain: what most names must be."""
    if size(value) <= 253 and _is_dns_subdomain(value):
        return ()
    too_long = ("must be no more than 253 characters",) if size(value) > 253 else ()
    return too_long if _is_dns_subdomain(value) else (*too_long, _DNS_SUBDOMAIN_COMPLAINT)


def long_name(value: str) -> Complaints:
    """A DNS subdomain in the newer words, which count bytes."""
    return tuple(
        complaint.replace("253 characters", "253 bytes") for complaint in dns_subdomain(value)
    )


def dns_label(value: str) -> Complaints:
    """RFC 1123 label: namespaces, containers, volumes."""
    if size(value) <= 63 and _is_dns_label(value):
        return ()
    complaints = []
    if size(value) > 63:
        complaints.append("must be no more than 63 characters")
    if not _is_dns_label(value):
        dotted = _is_dns_subdomain(value)
        complaints.append("must not contain dots" if dotted else _DNS_LABEL_COMPLAINT)
    return tuple(complaints)


def dns_1035_label(value: str) -> Complaints:
    """RFC 1035 label: services."""
    complaints = []
    if size(value) > 63:
        complaints.append("must be no more than 63 characters")
    if not _is_dns_1035_label(value):
        complaints.append(_DNS_1035_COMPLAINT)
    return tuple(complaints)


def dns_subdomain_with_underscore(value: str) -> Complaints:
    """A search path of a pod's DNS configuration."""
    complaints = []
    if size(value) > 253:
        complaints.append("must be no more than 253 characters")
    if not _is_dns_underscore_subdomain(value):
        complaints.append(_DNS_UNDERSCORE_COMPLAINT)
    return tuple(complaints)


def path_segment(value: str) -> Complaints:
    """Anything that can stand in a URL path: RBAC names."""
    if value in {".", ".."}:
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{bad}'" for bad in "/%" if bad in value)


@lru_cache(_MANY)
def label_key(value: str) -> Complaints:
    """A qualified name: ``name`` or ``prefix/name``."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_LABEL_KEY_COMPLAINT} with an optional DNS subdomain prefix "
            "and '/' (e.g. 'example.com/MyName')",
        )
    complaints = _prefix_complaints(prefix) if slash else []
    if not name:
        complaints.append("name part must be non-empty")
    elif size(name) > 63:
        complaints.append("name part must be no more than 63 bytes")
    if not _is_label_key(name):
        complaints.append(f"name part {_LABEL_KEY_COMPLAINT}")
    return tuple(complaints)


def _prefix_complaints(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    complaints = []
    if size(prefix) > 253:
        complaints.append("prefix part must be no more than 253 bytes")
    if not _is_dns_subdomain(prefix):
        complaints.append(f"prefix part {_DNS_SUBDOMAIN_COMPLAINT}")
    return complaints


def label_value(value: str) -> Complaints:
    if size(value) <= 63 and _is_label_value(value):
        return ()
    complaints = []
    if size(value) > 63:
        complaints.append("must be no more than 63 bytes")
    if not _is_label_value(value):
        complaints.append(_LABEL_VALUE_COMPLAINT)
    return tuple(complaints)


def config_key(value: str) -> Complaints:
    """A key of a ConfigMap or Secret."""
    complaints = []
    if size(value) > 253:
        complaints.append("must be no more than 253 characters")
    if not _is_config_key(value):
        complaints.append(_CONFIG_KEY_COMPLAINT)
    return (*complaints, *_climbing(value))


def _climbing(value: str) -> Complaints:
    if value in {".", ".."}:
        return (f"must not be '{value}'",)
    return ("must not start with '..'",) if value.startswith("..") else ()


def env_name(value: str) -> Complaints:
    """An environment variable: printable ASCII without ``=``."""
    if not value:
        return ("environment variable name must be non-empty",)
    fine = value.isascii() and value.isprintable() and "=" not in value
    return () if fine else (_RELAXED_ENV_COMPLAINT,)


def port_name(value: str) -> Complaints:
    """An IANA service name."""
    complaints = []
    if size(value) > 15:
        complaints.append("must be no more than 15 characters")
    if not _is_port_name(value):
        complaints.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(value):
        complaints.append("must contain at least one letter (a-z)")
    if "--" in value:
        complaints.append("must not contain consecutive hyphens")
    if value and "-" in (value[0], value[-1]):
        complaints.append("must not begin or end with a hyphen")
    return tuple(complaints)


_PORT_COMPLAINTS = (range_complaint(1, 65535),)


def port_number(value: int) -> Complaints:
    return () if 1 <= value <= 65535 else _PORT_COMPLAINTS


_ID_COMPLAINTS = (range_complaint(0, 2**31 - 1),)


def user_or_group_id(value: int) -> Complaints:
    return () if 0 <= value < 2**31 else _ID_COMPLAINTS


def percent(value: str) -> Complaints:
    return () if _is_percent(value) else (_PERCENT_COMPLAINT,)


def http_header(value: str) -> Complaints:
    return () if _is_header(value) else (_HEADER_COMPLAINT,)


def as_prefix(name: str) -> str:
    """A ``generateName`` as it would look with something behind it.

    Only a trailing dash becomes acceptable; as upstream, the character before it is not seen.
    """
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name
