"""When a CronJob runs: five cron fields or a descriptor, and a time zone."""

import re
import zoneinfo

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.durations import parse_signed_duration

_DESCRIPTORS = frozenset(
    {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
)
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
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def check_schedule(
    schedule: str, errors: ErrorList, path: Path, *, zone: str | None, tolerate_zone: bool
) -> None:
    """A schedule in cron's language; a zone inside it is only tolerated, not welcome."""
    try:
        parse_schedule(schedule)
    except ValueError as error:
        errors.invalid(path, schedule, str(error))
    if "TZ" not in schedule:
        return
    if not tolerate_zone:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.invalid(path, schedule, detail)
    elif zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.invalid(path, schedule, detail)


def parse_schedule(schedule: str) -> None:
    """Raise ValueError with the words of the cron library if the text is no schedule."""
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefix, _, text = text.partition(" ")
        zone, text = prefix.partition("=")[2], text.strip()
        if zone not in ("", "Local") and not _is_known(zone):
            raise ValueError(f"provided bad location {zone}: unknown time zone {zone}")
    if text.startswith("@"):
        _parse_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{shown}]")
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, field.split(",")):
            _parse_range(expression, low, high, names)


def _parse_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith("@every "):
        raise ValueError(f"unrecognized descriptor: {text}")
    duration = text.removeprefix("@every ")
    try:
        parse_signed_duration(duration)
    except ValueError as error:
        raise ValueError(f"failed to parse duration {text}: {error}") from None


def _parse_range(expression: str, low: int, high: int, names: dict[str, int]) -> None:
    bounds, *steps = expression.split("/")
    ends = bounds.split("-")
    if ends[0] in ("*", "?"):
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


def check_time_zone(zone: str, errors: ErrorList, path: Path) -> None:
    """A zone of the IANA database."""
    if not zone:
        errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            errors.invalid(path, zone, f"unknown time zone {zone}")
    if zone.lower() == "local":
        errors.invalid(
            path,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        )
    elif not _is_known(zone):
        errors.invalid(path, zone, f"unknown time zone {zone}")


def _is_known(zone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
