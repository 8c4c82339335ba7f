"""Instants and durations as Kubernetes writes them, exactly, without floating point."""

import re
from datetime import UTC, datetime, timedelta

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND

_UNITS = {
    "ns": 1,
    "us": MICROSECOND,
    "µs": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": 60 * MINUTE,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_last_second: tuple[int, str] = (0, "1970-01-01T00:00:00")


def _calendar(second: int) -> str:
    # Virtual time stands still within a step, so the same second is formatted over and over.
    global _last_second  # noqa: PLW0603 - a one-entry cache of a pure function
    known, text = _last_second
    if known != second:
        text = (_EPOCH + timedelta(seconds=second)).isoformat()[: len("1970-01-01T00:00:00")]
        _last_second = (second, text)
    return text


def format_time(instant: int) -> str:
    """``metav1.Time``: whole seconds, UTC."""
    return _calendar(instant // SECOND) + "Z"


def format_micro_time(instant: int) -> str:
    """``metav1.MicroTime``: six digits, UTC."""
    second, rest = divmod(instant, SECOND)
    return f"{_calendar(second)}.{rest // MICROSECOND:06d}Z"


def parse_time(text: str) -> int:
    """An RFC 3339 instant with up to nine fractional digits."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-01-01T00:00:00Z")
    *fields, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(field) for field in fields)
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    offset = 0
    if zone not in "Zz":
        sign = -1 if zone[0] == "-" else 1
        offset = sign * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)
    delta = moment - _EPOCH
    seconds = delta.days * 86400 + delta.seconds - offset
    return seconds * SECOND + int((fraction or "").ljust(9, "0"))


def parse_duration(text: str) -> int:
    """A Go duration such as ``1h30m`` or ``250ms``, in nanoseconds; never negative."""
    if text == "0":
        return 0
    total, position = 0, 0
    for match in _DURATION.finditer(text):
        if match.start() != position:
            break
        number, unit = match.groups()
        whole, _, fraction = number.partition(".")
        scale = _UNITS[unit]
        total += int(whole) * scale
        if fraction:
            total += int(fraction) * scale // 10 ** len(fraction)
        position = match.end()
    if position == 0 or position != len(text):
        raise ValueError(f"{text!r} is not a duration such as 90s, 5m or 1h30m")
    return total


def format_duration(duration: int) -> str:
    """The shortest Go-like form: ``1h30m0s`` becomes ``1h30m``; zero is ``0s``."""
    if duration == 0:
        return "0s"
    sign, rest = ("-", -duration) if duration < 0 else ("", duration)
    parts = []
    for unit, scale in (("h", 60 * MINUTE), ("m", MINUTE)):
        count, rest = divmod(rest, scale)
        if count:
            parts.append(f"{count}{unit}")
    if rest:
        whole, fraction = divmod(rest, SECOND)
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        parts.append(f"{whole}{digits}s")
    return sign + "".join(parts)
