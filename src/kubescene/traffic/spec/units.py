"""Durations, CPU and memory as a TrafficRun writes them; integers everywhere else.

Each is an integer with a notation: nanoseconds as ``90s``, millicores as ``500m``, bytes as
``256Mi``. What cannot be read is a `ValueError` in plain words.
"""

from typing import Any

from kubescene.api import quantity
from kubescene.clock import format_duration, parse_duration


class Duration(int):
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
        return str(quantity.from_value(int(self), quantity.Format.BINARY_SI))


NEVER = Timeout(-1)


def decode(kind: type, written: Any) -> Any:
    """A value of one of these types from what stands in YAML."""
    if kind is Timeout and written == "never":
        return NEVER
    if kind in (Duration, Timeout):
        if not isinstance(written, str):
            raise ValueError(f"must be a duration such as 90s or 1h30m, not {written!r}")
        return kind(parse_duration(written))
    if kind in (Cpu, Memory):
        return kind(_amount(kind, written))
    raise NotImplementedError(kind)


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
    if isinstance(value, Duration | Timeout | Cpu | Memory):
        return str(value)
    raise NotImplementedError(type(value))


def plain(value: Any) -> int:
    """The number alone, which `decode_lenient` reads."""
    if isinstance(value, Duration | Timeout | Cpu | Memory):
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
