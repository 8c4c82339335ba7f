"""Schedules in cron's language, as the library behind CronJobs reads them, and when they are due.

Instants are nanoseconds. A schedule is read in a time zone: a local time that does not exist when
clocks go forward is passed over, one that comes twice is due twice.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from msgspec import Struct

from kubescene.durations import SECOND, parse_signed_duration

YEARS_AHEAD = 5
"""A schedule that is due in none of them (31 February) is never due."""
_YEARLY, _MONTHLY, _WEEKLY = "0 0 1 1 *", "0 0 1 * *", "0 0 * * 0"
_DAILY, _HOURLY = "0 0 * * *", "0 * * * *"
_DESCRIPTORS = {
    "@yearly": _YEARLY,
    "@annually": _YEARLY,
    "@monthly": _MONTHLY,
    "@weekly": _WEEKLY,
    "@daily": _DAILY,
    "@midnight": _DAILY,
    "@hourly": _HOURLY,
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_LARGEST_INT = (1 << 63) - 1


class CronField(Struct, frozen=True):
    """The values of one field; ``is_any`` if it was written as a plain star."""

    values: frozenset[int]
    is_any: bool = False


class CronSchedule(Struct, frozen=True):
    """When something is due: by five fields in a zone, or ``every`` so many nanoseconds."""

    fields: tuple[CronField, ...] = ()
    zone: str = ""
    every: int = 0

    def next(self, after: int) -> int | None:
        """The first instant after this one at which it is due."""
        if self.every:
            return (after + self.every) // SECOND * SECOND
        zone = zone_named(self.zone) if self.zone else UTC
        begin = datetime.fromtimestamp(after // SECOND + 1, zone)
        found = self._search(begin)
        return None if found is None else int(found.timestamp()) * SECOND

    def _search(self, begin: datetime) -> datetime | None:
        """Pass over months, days, hours and minutes that do not fit, each as a whole."""
        minutes, hours, _, months, _ = self.fields
        at = begin
        if at.second:
            at = _later(at.replace(second=0), timedelta(minutes=1))
        while at.year <= begin.year + YEARS_AHEAD:
            if at.month not in months.values:
                at = _midnight(at.year + at.month // 12, at.month % 12 + 1, 1, at.tzinfo)
            elif not self._fits_day(at):
                day = at.date() + timedelta(days=1)
                at = _midnight(day.year, day.month, day.day, at.tzinfo)
            elif at.hour not in hours.values:
                at = _later(at.replace(minute=0), timedelta(hours=1))
            elif at.minute not in minutes.values:
                at = _later(at, timedelta(minutes=1))
            else:
                return at
        return None

    def _fits_day(self, at: datetime) -> bool:
        """By day of the month and of the week: both if one of them is any, else either."""
        days, weekdays = self.fields[2], self.fields[4]
        fits = at.day in days.values, at.isoweekday() % 7 in weekdays.values
        return all(fits) if days.is_any or weekdays.is_any else any(fits)


def _later(at: datetime, by: timedelta) -> datetime:
    """So much later by any clock, whatever the local one says."""
    return (at.astimezone(UTC) + by).astimezone(at.tzinfo)


def _midnight(year: int, month: int, day: int, zone: tzinfo | None) -> datetime:
    """The beginning of a day, which in some zones and years is not at midnight."""
    local = datetime(year, month, day, tzinfo=zone)
    return local.astimezone(UTC).astimezone(zone)


@lru_cache(256)
def parse_schedule(schedule: str) -> CronSchedule:
    """Raises ValueError with the words of the cron library if the text is no schedule."""
    text, zone = schedule, ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, _, text = text.partition(" ")
        zone, text = prefix.partition("=")[2], text.strip()
        if zone not in ("", "Local") and not is_known_zone(zone):
            raise ValueError(f"provided bad location {zone}: unknown time zone {zone}")
    zone = "" if zone in ("Local", "UTC") else zone
    if text.startswith("@every "):
        return CronSchedule(every=_parse_every(text))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{shown}]")
    parsed = [_parse_field(field, *by) for field, by in zip(fields, _FIELDS, strict=True)]
    return CronSchedule(tuple(parsed), zone)


def _parse_every(text: str) -> int:
    """At least a second, and whole seconds."""
    try:
        duration = parse_signed_duration(text.removeprefix("@every "))
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: {error}") from None
    return max(duration, SECOND) // SECOND * SECOND


def _parse_field(field: str, low: int, high: int, names: dict[str, int]) -> CronField:
    values: set[int] = set()
    is_any = False
    for expression in filter(None, field.split(",")):
        found, is_star = _parse_range(expression, low, high, names)
        values.update(found)
        is_any = is_any or is_star
    return CronField(frozenset(values), is_any)


def _parse_range(expression: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    bounds, *steps = expression.split("/")
    ends = bounds.split("-")
    is_star = ends[0] in ("*", "?")
    if is_star:
        start, end = low, high
    else:
        start = _parse_end(ends[0], names)
        end = _parse_end(ends[1], names) if len(ends) == 2 else start
        if len(ends) > 2:
            raise ValueError(f"too many hyphens: {expression}")
    step = 1
    if len(steps) == 1:
        step = _parse_number(steps[0])
        end = high if len(ends) == 1 else end
    elif steps:
        raise ValueError(f"too many slashes: {expression}")
    if start < low:
        raise ValueError(f"beginning of range ({start}) below minimum ({low}): {expression}")
    if end > high:
        raise ValueError(f"end of range ({end}) above maximum ({high}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step), is_star and step == 1


def _parse_end(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    return _parse_number(text) if named is None else named


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        )
    if len(text.lstrip("+-0")) > len(str(_LARGEST_INT)) or abs(int(text)) > _LARGEST_INT:
        raise ValueError(
            f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range'
        )
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def zone_named(name: str) -> tzinfo:
    """A time zone; raises what `zoneinfo` raises if there is none of that name."""
    # Only schedules with a zone of their own pay for the data of zones.
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def is_known_zone(zone: str) -> bool:
    try:
        zone_named(zone)
    except (LookupError, ValueError, OSError):
        return False
    return True
