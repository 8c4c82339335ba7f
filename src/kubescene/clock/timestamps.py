"""Instants as Kubernetes writes them, exactly, without floating point.

Whatever cannot be read or written is a `ValueError` that says so in plain words: other notations,
days that no month has, times outside the years 1 to 9999.

A `ScenarioStep` is the scenario's own time: major steps made of minor steps (KEP-140).
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from kubescene.durations import MICROSECOND, SECOND


class ScenarioStep(NamedTuple):
    """Ordered like hours and minutes.

    Major: the user's operations. Minor: a controller's writes.
    """

    major: int
    minor: int

    def next_minor(self) -> "ScenarioStep":
        return ScenarioStep(self.major, self.minor + 1)

    def to_dict(self) -> dict[str, int]:
        return {"major": self.major, "minor": self.minor}

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
LAST_INSTANT = (_LAST_SECOND + 1) * SECOND - 1
"""The end of year 9999: time does not go on where no timestamp can say it."""


# Virtual time stands still within a step, so the same few instants are formatted over and over.
@lru_cache(maxsize=64)
def _calendar(second: int) -> str:
    if not _FIRST_SECOND <= second <= _LAST_SECOND:
        raise ValueError(f"{_outside(second)}, which no timestamp can say")
    return (_EPOCH + timedelta(seconds=second)).isoformat()[: len("1970-01-01T00:00:00")]


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


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
