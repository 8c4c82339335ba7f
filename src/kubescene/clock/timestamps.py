"""Instants and durations as Kubernetes writes them, exactly, without floating point.

Whatever cannot be read or written is a `ValueError` that says so in plain words: other notations,
days that no month has, times outside the years 1 to 9999, durations longer than Go's (292 years).
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

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
_DURATION = re.compile(r"(\d+)(?:\.(\d+))?(ns|us|µs|ms|s|m|h)", re.ASCII)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
LAST_INSTANT = (_LAST_SECOND + 1) * SECOND - 1
"""The end of year 9999: time does not go on where no timestamp can say it."""
_LONGEST_DURATION = (1 << 63) - 1
_LONGEST_NUMBER = len(str(_LONGEST_DURATION))

_last_second: tuple[int, str] = (0, "1970-01-01T00:00:00")


def _calendar(second: int) -> str:
    # Virtual time stands still within a step, so the same second is formatted over and over.
    global _last_second  # noqa: PLW0603 - a one-entry cache of a pure function
    known, text = _last_second
    if known != second:
        if not _FIRST_SECOND <= second <= _LAST_SECOND:
            raise ValueError(f"{_outside(second)}, which no timestamp can say")
        text = (_EPOCH + timedelta(seconds=second)).isoformat()[: len("1970-01-01T00:00:00")]
        _last_second = (second, text)
    return text


@lru_cache(maxsize=16)
def format_time(instant: int) -> str:
    """``metav1.Time``: whole seconds, UTC."""
    return _calendar(instant // SECOND) + "Z"


def format_micro_time(instant: int) -> str:
    """``metav1.MicroTime``: six digits, UTC."""
    second, rest = divmod(instant, SECOND)
    return f"{_calendar(second)}.{rest // MICROSECOND:06d}Z"


@lru_cache(maxsize=1024)
def parse_time(text: str) -> int:
    """An RFC 3339 instant with up to nine fractional digits."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{_shown(text)} is not an RFC 3339 time such as 2026-01-01T00:00:00Z")
    *fields, fraction, zone = match.groups()
    year, month, day, hour, minute, second = (int(field) for field in fields)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        delta = moment - _EPOCH
        seconds = delta.days * 86400 + delta.seconds - _offset(zone)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an RFC 3339 time: {error}") from None
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise ValueError(f"{text!r} is not an RFC 3339 time: {_outside(seconds)} in UTC")
    return seconds * SECOND + int((fraction or "").ljust(9, "0"))


def _offset(zone: str) -> int:
    if zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(f"the offset {zone} is not between -23:59 and +23:59")
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)


def _outside(second: int) -> str:
    return f"it is {'before year 1' if second < 0 else 'after year 9999'}"


def parse_duration(text: str) -> int:
    """A Go duration such as ``1h30m`` or ``250ms``, in nanoseconds; never negative.

    Digits below a nanosecond are dropped, as Go drops them.
    """
    if text == "0":
        return 0
    total, position = 0, 0
    # Each match begins where the last one ended: a search would try thousands of digits anew.
    while match := _DURATION.match(text, position):
        whole, fraction, unit = match.groups()
        total += _part(whole, fraction, _UNITS[unit], text)
        position = match.end()
    if position == 0 or position != len(text):
        raise ValueError(f"{_shown(text)} is not a duration such as 90s, 5m or 1h30m")
    if total > _LONGEST_DURATION:
        raise _too_long(text)
    return total


def go_seconds(seconds: int) -> int:
    """So many seconds as a Go duration, in nanoseconds: beyond 292 years it wraps around."""
    return (seconds * SECOND + _LONGEST_DURATION + 1) % (1 << 64) - _LONGEST_DURATION - 1


def _part(whole: str, fraction: str | None, scale: int, text: str) -> int:
    whole = whole.lstrip("0")
    if len(whole) > _LONGEST_NUMBER:
        raise _too_long(text)
    # Of thousands of digits only the first can matter: an hour has 13 of them in nanoseconds.
    digits = (fraction or "")[:_LONGEST_NUMBER]
    below: int = int(digits or "0") * scale // 10 ** len(digits)
    return int(whole or "0") * scale + below


def _too_long(text: str) -> ValueError:
    longest = format_duration(_LONGEST_DURATION)
    return ValueError(f"{_shown(text)} is too long: durations end at {longest}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


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
