"""Formats that texts may be held against by name: ``format.dns1123Label().validate(text)``."""

from collections.abc import Callable, Mapping
from functools import partial

from kubescene.api.schemas import formats
from kubescene.api.schemas.urls import parse_url
from kubescene.api.validation import names
from kubescene.cel.errors import no_such_overload
from kubescene.cel.formatting import quoted
from kubescene.cel.functions import Library
from kubescene.cel.types import FORMAT, STRING, list_of, optional_of
from kubescene.cel.values import NONE, NamedFormat, Optional, Value

FORMATS = Library()

Check = Callable[[str], tuple[str, ...]]


def _prefix(rule: names.NameRule, text: str) -> tuple[str, ...]:
    """What a name may begin with: it may end with a dash."""
    return rule(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _of_schema(name: str, complaint: str, text: str) -> tuple[str, ...]:
    return () if formats.satisfies(name, text) else (complaint,)


def _uri(text: str) -> tuple[str, ...]:
    """One complaint for whatever is wrong, where Go has several."""
    return () if parse_url(text) else (f"parse {quoted(text)}: invalid URI for request",)


_CHECKS: Mapping[str, tuple[int, Check]] = {
    "dns1123Label": (30, names.dns_label),
    "dns1123Subdomain": (60, names.dns_subdomain),
    "dns1035Label": (30, names.dns_1035_label),
    "qualifiedName": (60, names.label_key),
    "dns1123LabelPrefix": (30, partial(_prefix, names.dns_label)),
    "dns1123SubdomainPrefix": (60, partial(_prefix, names.dns_subdomain)),
    "dns1035LabelPrefix": (30, partial(_prefix, names.dns_1035_label)),
    "labelValue": (40, names.label_value),
    "uri": (1103, _uri),
    "uuid": (72, partial(_of_schema, "uuid", "does not match the UUID format")),
    "byte": (84, partial(_of_schema, "byte", "invalid base64")),
    "date": (72, partial(_of_schema, "date", "invalid date")),
    "datetime": (72, partial(_of_schema, "datetime", "invalid datetime")),
}
"""The length of the pattern that Kubernetes reckons with, and the complaints about a text."""


@FORMATS.function("format.named", optional_of(FORMAT), (STRING,))
def named(name: Value) -> Optional:
    return Optional((_made(name),)) if name in _CHECKS else NONE


def _made(name: str) -> NamedFormat:
    return NamedFormat(name, _CHECKS[name][0])


for _name in _CHECKS:
    FORMATS.function(f"format.{_name}", FORMAT, ())(partial(_made, _name))


@FORMATS.method("validate", optional_of(list_of(STRING)), (FORMAT, STRING))
def validate(held: Value, text: Value) -> Optional:
    """What is wrong with a text, or none."""
    if not isinstance(held, NamedFormat) or not isinstance(text, str):
        raise no_such_overload()
    complaints = _CHECKS[held.name][1](text)
    return Optional(([*complaints],)) if complaints else NONE
