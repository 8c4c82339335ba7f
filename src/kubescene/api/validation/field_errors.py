"""Field errors: their kinds, their texts, and the refusal they add up to.

A validator is handed an `ErrorList` and notes on it what it dislikes. Texts have the form that
kube-apiserver gives them, because people compare them and programs match on them.
"""

import json
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from kubescene.api.scheme import ResourceType
from kubescene.api.validation.field_paths import Path
from kubescene.errors import InvalidError, StatusCause


class ErrorType(Enum):
    """What is wrong with a field: the cause reason on the wire, and its words in a message."""

    NOT_FOUND = ("FieldValueNotFound", "Not found")
    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TOO_FEW = ("FieldValueTooFew", "Too few")
    TOO_SHORT = ("FieldValueTooShort", "Too short")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "Internal error")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


_WITHOUT_VALUE = frozenset(
    {
        ErrorType.REQUIRED,
        ErrorType.FORBIDDEN,
        ErrorType.TOO_LONG,
        ErrorType.TOO_SHORT,
        ErrorType.INTERNAL,
    }
)


OMITTED: Final = object()
"""Stands for a value that is too large or too obvious to show."""


class FieldError(Struct, frozen=True):
    """One thing wrong with one field."""

    type: ErrorType
    field: str
    bad_value: Any = None
    detail: str = ""

    @property
    def body(self) -> str:
        """The message without the field, as a Status cause carries it."""
        text = self.type.words
        if self.type not in _WITHOUT_VALUE and self.bad_value is not OMITTED:
            text = f"{text}: {_show(self.bad_value)}"
        return f"{text}: {self.detail}" if self.detail else text

    @property
    def message(self) -> str:
        return f"{self.field}: {self.body}"

    def to_cause(self) -> StatusCause:
        return StatusCause(reason=self.type.reason, message=self.body, field=self.field)


class ErrorList(list[FieldError]):
    """Collects field errors; one method per kind of error."""

    def required(self, path: Path, detail: str = "") -> None:
        self.append(FieldError(ErrorType.REQUIRED, str(path), "", detail))

    def invalid(self, path: Path, value: Any, detail: str) -> None:
        self.append(FieldError(ErrorType.INVALID, str(path), value, detail))

    def invalid_each(self, path: Path, value: Any, details: Iterable[str]) -> None:
        """One error per detail, all about the same value."""
        for detail in details:
            self.append(FieldError(ErrorType.INVALID, str(path), value, detail))

    def invalid_without_value(self, path: Path, detail: str) -> None:
        self.append(FieldError(ErrorType.INVALID, str(path), OMITTED, detail))

    def not_supported(self, path: Path, value: Any, supported: Iterable[str]) -> None:
        detail = "supported values: " + ", ".join(map(quote, supported))
        self.append(FieldError(ErrorType.NOT_SUPPORTED, str(path), value, detail))

    def duplicate(self, path: Path, value: Any, detail: str = "") -> None:
        self.append(FieldError(ErrorType.DUPLICATE, str(path), value, detail))

    def forbidden(self, path: Path, detail: str) -> None:
        self.append(FieldError(ErrorType.FORBIDDEN, str(path), "", detail))

    def not_found(self, path: Path, value: Any, detail: str = "") -> None:
        self.append(FieldError(ErrorType.NOT_FOUND, str(path), value, detail))

    def too_long(self, path: Path, limit: int) -> None:
        unit = "byte" if limit == 1 else "bytes"
        detail = f"may not be more than {limit} {unit}"
        self.append(FieldError(ErrorType.TOO_LONG, str(path), "<value omitted>", detail))

    def too_many(self, path: Path, actual: int, limit: int) -> None:
        unit = "item" if limit == 1 else "items"
        detail = f"must have at most {limit} {unit}"
        self.append(FieldError(ErrorType.TOO_MANY, str(path), actual, detail))

    def internal(self, path: Path, detail: str) -> None:
        self.append(FieldError(ErrorType.INTERNAL, str(path), "", detail))


def quote(text: str) -> str:
    """The text in double quotes, with Go's escapes."""
    return '"' + "".join(map(_escape, text)) + '"'


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _escape(character: str) -> str:
    if escape := _ESCAPES.get(character):
        return escape
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_HTML_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def _show(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_HTML_ESCAPES)


def raise_if_invalid(errors: Iterable[FieldError], resource_type: ResourceType, name: str) -> None:
    """Refuse the object ``name`` with all its field errors; do nothing if there are none."""
    found = list(errors)
    if not found:
        return
    group, kind = resource_type.gvk.group, resource_type.gvk.kind
    qualified = f"{kind}.{group}" if group else kind
    raise InvalidError(
        f"{qualified} {quote(name)} is invalid: {_aggregate(found)}",
        kind=kind,
        group=group,
        name=name,
        causes=[error.to_cause() for error in found],
    )


def _aggregate(errors: list[FieldError]) -> str:
    messages = list(dict.fromkeys(error.message for error in errors))
    return messages[0] if len(messages) == 1 else "[" + ", ".join(messages) + "]"
