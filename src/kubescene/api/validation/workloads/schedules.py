"""When a CronJob runs: five cron fields or a descriptor, and a time zone."""

import re

from kubescene.api.cron import is_known_zone, parse_schedule
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path

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
    elif not is_known_zone(zone):
        errors.invalid(path, zone, f"unknown time zone {zone}")
