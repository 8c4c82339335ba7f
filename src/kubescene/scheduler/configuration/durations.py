"""Durations in a configuration: text in Go's form, which may be negative."""

from kubescene.clock import MILLISECOND, MINUTE, SECOND, parse_duration

HOUR = 60 * MINUTE


def nanoseconds(text: str) -> int:
    """The length of a duration that was decoded."""
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


def go_duration(length: int) -> str:
    """As Go prints a duration: every unit below the largest is shown, ``10m0s``."""
    sign, rest = ("-", -length) if length < 0 else ("", length)
    if rest < SECOND:
        return sign + _below_a_second(rest)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return f"{sign}{text}{_decimal(rest, SECOND)}s"


def _below_a_second(length: int) -> str:
    if length == 0:
        return "0s"
    for unit, scale in (("ms", MILLISECOND), ("µs", MILLISECOND // 1000)):
        if length >= scale:
            return f"{_decimal(length, scale)}{unit}"
    return f"{length}ns"


def _decimal(length: int, scale: int) -> str:
    whole, fraction = divmod(length, scale)
    digits = f"{fraction:0{len(str(scale)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
