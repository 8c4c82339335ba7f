"""The standard library: conversions, sizes, strings, regular expressions, time."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from kubescene.api.schemas import patterns
from kubescene.cel.errors import EvaluationError, no_such_overload
from kubescene.cel.functions import Library, each
from kubescene.cel.operators import moment, signed, span, unsigned
from kubescene.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    list_of,
    map_of,
)
from kubescene.cel.values import (
    NANOS,
    Cidr,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    is_list,
    is_number,
    type_name,
)
from kubescene.durations import parse_signed_duration

STANDARD = Library()

SIZED = each(STRING, BYTES, list_of(), map_of())
MOMENTS = ((TIMESTAMP,), (TIMESTAMP, STRING))

_DECIMAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_HEXADECIMAL = re.compile(
    r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]+", re.ASCII | re.IGNORECASE
)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)",
    re.ASCII,
)
_LARGE = 6
"""Doubles with more digits than this in front of the point have an exponent."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d{1,2})", re.ASCII)


@STANDARD.function("size", INT, *SIZED)
@STANDARD.method("size", INT, *SIZED)
def size(value: Value) -> int:
    if isinstance(value, str | bytes | Mapping) or is_list(value):
        return len(value)
    raise no_such_overload()


@STANDARD.function("type", TYPE, (DYN,))
def type_of(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


@STANDARD.function("dyn", DYN, (DYN,))
def dyn(value: Value) -> Value:
    return value


# -- conversions -------------------------------------------------------------------------------


@STANDARD.function("int", INT, *each(INT, UINT, DOUBLE, STRING, TIMESTAMP, DURATION))
def to_int(value: Value) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
            raise EvaluationError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
        return signed(int(value))
    if isinstance(value, float):
        return _truncated(value)
    if isinstance(value, Timestamp):
        return value.nanos // NANOS
    if isinstance(value, Duration):
        return value.nanos
    if is_number(value):
        return signed(int(value))
    raise no_such_overload()


@STANDARD.function("uint", UINT, *each(UINT, INT, DOUBLE, STRING))
def to_uint(value: Value) -> UInt:
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+", value, re.ASCII):
            raise EvaluationError(f'strconv.ParseUint: parsing "{value}": invalid syntax')
        return unsigned(int(value))
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise EvaluationError("unsigned integer overflow")
        return unsigned(int(value))
    if is_number(value):
        return unsigned(int(value))
    raise no_such_overload()


@STANDARD.function("double", DOUBLE, *each(DOUBLE, INT, UINT, STRING))
def to_double(value: Value) -> float:
    if isinstance(value, str):
        return _read_double(value)
    if is_number(value):
        return float(value)
    raise no_such_overload()


@STANDARD.function("bool", BOOL, *each(BOOL, STRING))
def to_bool(value: Value) -> bool:
    if type(value) is bool:
        return value
    if isinstance(value, str):
        if value in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if value in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        raise EvaluationError(f'strconv.ParseBool: parsing "{value}": invalid syntax')
    raise no_such_overload()


@STANDARD.function(
    "string", STRING, *each(STRING, BOOL, INT, UINT, DOUBLE, BYTES, TIMESTAMP, DURATION, IP, CIDR)
)
def to_string(value: Value) -> str:
    if isinstance(value, str):
        return value
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            text = "invalid UTF-8 in bytes, cannot convert to string"
            raise EvaluationError(text) from None
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, IPv4Address | IPv6Address | Cidr):
        return str(value)
    raise no_such_overload()


@STANDARD.function("bytes", BYTES, *each(BYTES, STRING))
def to_bytes(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise no_such_overload()


@STANDARD.function("duration", DURATION, *each(DURATION, INT, STRING))
def to_duration(value: Value) -> Duration:
    if isinstance(value, Duration):
        return value
    if type(value) is int:
        return span(value)
    try:
        return Duration(parse_signed_duration(_text(value)))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


@STANDARD.function("timestamp", TIMESTAMP, *each(TIMESTAMP, INT, STRING))
def to_timestamp(value: Value) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if type(value) is int:
        return moment(value * NANOS)
    if not isinstance(value, str):
        raise no_such_overload()
    match = _TIMESTAMP.fullmatch(value)
    try:
        if match is None:
            raise ValueError
        return _moment(match)
    except (ValueError, OverflowError):
        text = f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse'
        raise EvaluationError(text) from None


def _read_double(text: str) -> float:
    """As Go reads it: no blanks, digits of ASCII, and nothing that is too large."""
    fault = "invalid syntax"
    if _HEXADECIMAL.fullmatch(text) or _DECIMAL.fullmatch(text):
        try:
            found = float.fromhex(text) if "x" in text.lower() else float(text)
        except OverflowError:
            found = math.inf
        if not math.isinf(found) or "n" in text.lower():
            return found
        fault = "value out of range"
    raise EvaluationError(f'strconv.ParseFloat: parsing "{text}": {fault}')


def _truncated(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _moment(match: re.Match[str]) -> Timestamp:
    year, month, day, hour, minute, second = (int(match[at]) for at in range(1, 7))
    base = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    zone = match[8]
    shift = 0 if zone == "Z" else _minutes(zone)
    fraction = int((match[7] or "0").ljust(9, "0"))
    seconds = (base - _EPOCH) // timedelta(seconds=1) - shift * 60
    return moment(seconds * NANOS + fraction)


def _minutes(offset: str) -> int:
    minutes = int(offset[-5:-3]) * 60 + int(offset[-2:])
    return -minutes if offset[0] == "-" else minutes


def float_text(value: float) -> str:
    """A double as Go prints it in its shortest form."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    point = Decimal(text).adjusted() if value else 0
    if -5 < point < _LARGE:
        return text.removesuffix(".0") if "e" not in text else f"{Decimal(text):f}"
    sign, digits, _ = Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    fraction = f".{shown[1:]}" if shown[1:] else ""
    return f"{'-' * sign}{shown[0]}{fraction}e{'-' if point < 0 else '+'}{abs(point):02}"


def duration_text(value: Duration) -> str:
    """In seconds."""
    sign = "-" if value.nanos < 0 else ""
    seconds, nanos = divmod(abs(value.nanos), NANOS)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    return f"{sign}{seconds}{fraction}s"


def timestamp_text(value: Timestamp) -> str:
    seconds, nanos = divmod(value.nanos, NANOS)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    date = _EPOCH + timedelta(seconds=seconds)
    return f"{date.replace(tzinfo=None).isoformat()}{fraction}Z"


# -- text --------------------------------------------------------------------------------------


@STANDARD.method("contains", BOOL, (STRING, STRING))
def contains(text: Value, part: Value) -> bool:
    return _text(part) in _text(text)


@STANDARD.method("startsWith", BOOL, (STRING, STRING))
def starts_with(text: Value, part: Value) -> bool:
    return _text(text).startswith(_text(part))


@STANDARD.method("endsWith", BOOL, (STRING, STRING))
def ends_with(text: Value, part: Value) -> bool:
    return _text(text).endswith(_text(part))


@STANDARD.function("matches", BOOL, (STRING, STRING))
@STANDARD.method("matches", BOOL, (STRING, STRING))
def matches(text: Value, pattern: Value) -> bool:
    if problem := patterns.problem(_text(pattern)):
        raise EvaluationError(problem)
    return patterns.matches(pattern, _text(text))


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    raise no_such_overload()


# -- time --------------------------------------------------------------------------------------


class _Clock(NamedTuple):
    """A point in time as people in a place read it."""

    date: datetime
    nanos: int


def _read(value: Value, zone: Value) -> _Clock:
    if not isinstance(value, Timestamp):
        raise no_such_overload()
    seconds, nanos = divmod(value.nanos, NANOS)
    date = _EPOCH + timedelta(seconds=seconds)
    return _Clock(date + _shift(date, zone), nanos)


def _shift(date: datetime, zone: Value) -> timedelta:
    # Late: few expressions name a time zone.
    from zoneinfo import ZoneInfo

    if match := _OFFSET.fullmatch(_text(zone)):
        minutes = int(match[2]) * 60 + int(match[3])
        return timedelta(minutes=-minutes if match[1] == "-" else minutes)
    try:
        shift = date.astimezone(ZoneInfo(zone or "UTC")).utcoffset()
    except (LookupError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    return shift or timedelta()


@STANDARD.method("getFullYear", INT, *MOMENTS)
def full_year(value: Value, zone: Value = "UTC") -> int:
    return _read(value, zone).date.year


@STANDARD.method("getMonth", INT, *MOMENTS)
def month(value: Value, zone: Value = "UTC") -> int:
    return _read(value, zone).date.month - 1


@STANDARD.method("getDate", INT, *MOMENTS)
def date_of(value: Value, zone: Value = "UTC") -> int:
    return _read(value, zone).date.day


@STANDARD.method("getDayOfMonth", INT, *MOMENTS)
def day_of_month(value: Value, zone: Value = "UTC") -> int:
    return _read(value, zone).date.day - 1


@STANDARD.method("getDayOfWeek", INT, *MOMENTS)
def day_of_week(value: Value, zone: Value = "UTC") -> int:
    return _read(value, zone).date.isoweekday() % 7


@STANDARD.method("getDayOfYear", INT, *MOMENTS)
def day_of_year(value: Value, zone: Value = "UTC") -> int:
    return _read(value, zone).date.timetuple().tm_yday - 1


@STANDARD.method("getHours", INT, *MOMENTS, (DURATION,))
def hours(value: Value, zone: Value = "UTC") -> int:
    if isinstance(value, Duration):
        return _units(value, 3600 * NANOS)
    return _read(value, zone).date.hour


@STANDARD.method("getMinutes", INT, *MOMENTS, (DURATION,))
def minutes(value: Value, zone: Value = "UTC") -> int:
    if isinstance(value, Duration):
        return _units(value, 60 * NANOS)
    return _read(value, zone).date.minute


@STANDARD.method("getSeconds", INT, *MOMENTS, (DURATION,))
def seconds(value: Value, zone: Value = "UTC") -> int:
    if isinstance(value, Duration):
        return _units(value, NANOS)
    return _read(value, zone).date.second


@STANDARD.method("getMilliseconds", INT, *MOMENTS, (DURATION,))
def milliseconds(value: Value, zone: Value = "UTC") -> int:
    if isinstance(value, Duration):
        return _units(value, 1_000_000)
    return _read(value, zone).nanos // 1_000_000


def _units(value: Duration, unit: int) -> int:
    """Whole units, toward zero."""
    count = abs(value.nanos) // unit
    return -count if value.nanos < 0 else count
