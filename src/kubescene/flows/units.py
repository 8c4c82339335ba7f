"""Durations, CPU and memory as a TrafficRun writes them; integers everywhere else.

Each is an integer with a notation: nanoseconds as ``90s``, millicores as ``500m``, bytes as
``256Mi``. What cannot be read is a `ValueError` in plain words.
"""

from decimal import Decimal, InvalidOperation
from typing import Any

from kubescene.api import quantity
from kubescene.clock import SECOND, format_duration, parse_duration
from kubescene.clock.timestamps import format_time, parse_time

MOST_SECONDS = (1 << 63) // SECOND
"""Later instants do not fit into 64 bits."""


class TrafficDuration(int):
    """Nanoseconds."""

    def __str__(self) -> str:
        return format_duration(self)


class Timeout(int):
    """Nanoseconds; ``never`` is -1."""

    def __str__(self) -> str:
        return "never" if self < 0 else format_duration(self)


class Cpu(int):
    """Millicores."""

    def __str__(self) -> str:
        return str(quantity.from_milli(int(self)))


class Memory(int):
    """Bytes."""

    def __str__(self) -> str:
        return str(quantity.from_value(int(self), quantity.QuantityFormat.BINARY_SI))


class Origin(int):
    """Nanoseconds: a duration, or an instant of the calendar (RFC 3339, or seconds since 1970)."""

    def __str__(self) -> str:
        if self < _CALENDAR:
            return format_duration(self)
        return f"{format_time(self)[:-1]}.{self % SECOND:09d}Z"


NEVER = Timeout(-1)
_CALENDAR = 365 * 86400 * SECOND
"""Longer durations than a year are instants of the calendar: runs are a month long at most."""


def decode(kind: type, written: Any) -> Any:
    """A value of one of these types from what stands in YAML."""
    if kind is Timeout and written == "never":
        return NEVER
    if kind in (TrafficDuration, Timeout):
        if not isinstance(written, str):
            raise ValueError(f"must be a duration such as 90s or 1h30m, not {written!r}")
        return kind(parse_duration(written))
    if kind is Origin:
        return Origin(instant_of(written))
    if kind in (Cpu, Memory):
        return kind(_amount(kind, written))
    raise NotImplementedError(kind)


def instant_of(written: Any) -> int:
    """Seconds, a duration such as ``90s``, or an RFC 3339 time; a `ValueError` for others."""
    told = (
        f"must be seconds from 0 to {MOST_SECONDS}, a duration or an RFC 3339 time, not {written!r}"
    )
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise ValueError(told)
    text = str(written).strip()
    try:
        if "T" in text.upper():
            return parse_time(text)
        if text[-1:].isalpha():
            return parse_duration(text)
        seconds = Decimal(text)
        if not 0 <= seconds < MOST_SECONDS:
            raise ValueError
        return int(seconds * SECOND)
    except (ValueError, InvalidOperation) as error:
        raise ValueError(told) from error


def decode_lenient(kind: type, written: Any) -> Any:
    """The same, and plain integers: what Python code may write."""
    if isinstance(written, int) and not isinstance(written, bool):
        if written < 0 and kind is not Timeout:
            raise ValueError(f"must not be negative: {written}")
        if written >= 1 << 63:
            raise ValueError(f"must fit into 64 bits: {written}")
        return kind(written)
    return decode(kind, written)


def encode(value: Any) -> Any:
    """The inverse of `decode`."""
    if isinstance(value, TrafficDuration | Timeout | Origin | Cpu | Memory):
        return str(value)
    raise NotImplementedError(type(value))


def plain(value: Any) -> int:
    """The number alone, which `decode_lenient` reads."""
    if isinstance(value, TrafficDuration | Timeout | Origin | Cpu | Memory):
        return int(value)
    raise NotImplementedError(type(value))


def _amount(kind: type, written: Any) -> int:
    example = "500m or 2" if kind is Cpu else "256Mi"
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise ValueError(f"must be a quantity such as {example}, not {written!r}")
    try:
        parsed = quantity.parse(written)
    except ValueError:
        raise ValueError(f"must be a quantity such as {example}, not {written!r}") from None
    amount = parsed.milli_value() if kind is Cpu else parsed.value()
    if amount < 0:
        raise ValueError(f"must not be negative: {written!r}")
    return amount
