"""The scalar types of the API, and what kube-apiserver says about a value that is none.

Each letter of `FieldType.shape` has a reader here. A reader returns the complaint about a value:
empty if the value is fine, a `Mismatch` if its JSON type is wrong (the caller knows where it
stands and completes the sentence), or a whole sentence if the type is right and the text is not.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kubescene.api import quantity

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)

_RFC3339 = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO = "2006-01-02T15:04:05.000000Z07:00"
# Go also takes one-digit hours and a decimal comma, and stores them in proper form. Objects are
# stored as they came here, so what is not RFC 3339 is refused.
_DATE_TIME = tuple(
    (layout, re.compile(pattern, re.ASCII))
    for layout, pattern in (
        ("2006", r"\d{4}"),
        ("-", "-"),
        ("01", r"\d{2}"),
        ("-", "-"),
        ("02", r"\d{2}"),
        ("T", "T"),
        ("15", r"\d{2}"),
        (":", ":"),
        ("04", r"\d{2}"),
        (":", ":"),
        ("05", r"\d{2}"),
    )
)
_FRACTION = ("", re.compile(r"(\.\d+)?", re.ASCII))
_MICROSECONDS = (".000000", re.compile(r"\.\d{6}", re.ASCII))
_ZONE = ("Z07:00", re.compile(r"Z|[+-]\d{2}:\d{2}", re.ASCII))
_RANGES = {
    "01": ("month", 1, 12),
    "15": ("hour", 0, 23),
    "04": ("minute", 0, 59),
    "05": ("second", 0, 59),
}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Mismatch(str):
    """A JSON value of the wrong type: how Go names the value, and the type it should have had."""

    __slots__ = ("go_type",)
    go_type: str

    def __new__(cls, described: str, go_type: str) -> "Mismatch":
        made = super().__new__(cls, described)
        made.go_type = go_type
        return made


def described(value: Any) -> str:
    """The JSON type of a value as Go's decoder names it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def string(value: Any) -> str:
    return "" if type(value) is str else _no_text(value)


def boolean(value: Any) -> str:
    return "" if type(value) is bool else Mismatch(described(value), "bool")


def int32(value: Any) -> str:
    return _integer(value, INT32, "int32")


def int64(value: Any) -> str:
    return _integer(value, INT64, "int64")


def double(value: Any) -> str:
    return "" if type(value) in (int, float) else Mismatch(described(value), "float64")


def int_or_string(value: Any) -> str:
    return "" if type(value) is str else int32(value)


def anything(value: Any) -> str:
    return ""


def amount(value: Any) -> str:
    """A Quantity: a number or a text in its grammar."""
    if type(value) not in (str, int, float):
        value = ""
    try:
        quantity.parse(value)
    except quantity.QuantityError as error:
        return str(error)
    return ""


def encoded_bytes(value: Any) -> str:
    """Base64 with padding, line breaks allowed; Go takes a list of small numbers, too."""
    if type(value) is list:
        return next(filter(None, map(_byte, value)), "")
    if type(value) is not str:
        return Mismatch(described(value), "[]uint8")
    if _BASE64.fullmatch(value):
        return ""
    position = _corrupt_at(value)
    return "" if position is None else f"illegal base64 data at input byte {position}"


def time(value: Any) -> str:
    """RFC 3339 with any fraction of a second, or none."""
    return _instant(value, micro=False) if type(value) is str else _no_text(value)


def micro_time(value: Any) -> str:
    """RFC 3339 with exactly six digits of a second's fraction."""
    return _instant(value, micro=True) if type(value) is str else _no_text(value)


READERS: dict[str, Callable[[Any], str]] = {
    "s": string,
    "y": encoded_bytes,
    "i": int32,
    "l": int64,
    "f": double,
    "b": boolean,
    "q": amount,
    "x": int_or_string,
    "t": time,
    "m": micro_time,
    "a": anything,
}

GO_TYPES = {
    "s": "string",
    "y": "[]uint8",
    "i": "int32",
    "l": "int64",
    "f": "float64",
    "b": "bool",
    "q": "resource.Quantity",
    "x": "intstr.IntOrString",
    "t": "v1.Time",
    "m": "v1.MicroTime",
    "a": "interface {}",
}


def _byte(value: Any) -> str:
    return "" if value is None else _integer(value, (0, 255), "uint8")


def _corrupt_at(text: str) -> int | None:
    """Where Go's decoder gives up; None if only line breaks made the text look odd."""
    digits = 0
    for position, character in enumerate(text):
        if character in "\r\n":
            continue
        if character == "=":
            return _bad_padding(text, position, digits % 4)
        if not (character.isascii() and (character.isalnum() or character in "+/")):
            return position
        digits += 1
    return None if digits % 4 == 0 else len(text) - digits % 4


def _bad_padding(text: str, position: int, digits: int) -> int | None:
    """Padding belongs after two or three digits of four, and nothing after it."""
    if digits < 2:
        return position
    rest = text[position + 1 :].lstrip("\r\n")
    if digits == 2 and not rest.startswith("="):
        return len(text) - len(rest) - (1 if rest else 0)
    rest = rest[3 - digits :].lstrip("\r\n")
    return len(text) - len(rest) if rest else None


def _integer(value: Any, bounds: tuple[int, int], go_type: str) -> str:
    if type(value) is int and bounds[0] <= value <= bounds[1]:
        return ""
    if type(value) in (int, float):
        return Mismatch(f"number {value}", go_type)
    return Mismatch(described(value), go_type)


def _no_text(value: Any) -> str:
    return Mismatch(described(value), "string")


@lru_cache(maxsize=4096)
def _instant(value: str, *, micro: bool) -> str:
    """Read element by element, as Go does, so that the first complaint is the same."""
    layout = _RFC3339_MICRO if micro else _RFC3339
    fraction = _MICROSECONDS if micro else _FRACTION
    position = 0
    read: dict[str, str] = {}
    for element, pattern in (*_DATE_TIME, fraction, _ZONE):
        found = pattern.match(value, position)
        if found is None:
            rest = value[position:]
            return f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as "{element}"'
        if wrong := _out_of_range(element, found[0]):
            return f'parsing time "{value}": {wrong} out of range'
        read[element] = found[0]
        position = found.end()
    return _after_reading(value, position, read)


def _out_of_range(element: str, text: str) -> str:
    """What is out of range; empty if nothing is. Offsets may be as large as 24:60."""
    if element == "Z07:00" and text != "Z":
        if int(text[1:3]) > 24:
            return "time zone offset hour"
        return "time zone offset minute" if int(text[4:6]) > 60 else ""
    name, low, high = _RANGES.get(element, ("", 0, 0))
    return name if name and not low <= int(text) <= high else ""


def _after_reading(value: str, position: int, read: dict[str, str]) -> str:
    if rest := value[position:]:
        return f'parsing time "{value}": extra text: "{rest}"'
    year, month = int(read["2006"]), int(read["01"])
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= int(read["02"]) <= _MONTH_DAYS[month - 1] + leap:
        return f'parsing time "{value}": day out of range'
    return ""
