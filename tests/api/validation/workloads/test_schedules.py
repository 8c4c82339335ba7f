"""Schedules of CronJobs: what the cron library of Kubernetes takes."""

import re

import pytest

from kubescene.api.cron import parse_schedule


@pytest.mark.parametrize(
    "schedule",
    [
        "*/5 * * * *",
        "@daily",
        "@every 0",
        "@every +1.5h",
        "@every -1s",
        "TZ=Europe/Berlin * * * * *",
        "CRON_TZ=UTC @hourly",
    ],
)
def test_schedules_are_taken(schedule: str) -> None:
    parse_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (
            "TZ=Nope/Zone * * * * *",
            "provided bad location Nope/Zone: unknown time zone Nope/Zone",
        ),
        (
            "@every 10000000h",
            'failed to parse duration @every 10000000h: time: invalid duration "10000000h"',
        ),
        (
            "9223372036854775808 * * * *",
            "failed to parse int from 9223372036854775808: "
            'strconv.Atoi: parsing "9223372036854775808": value out of range',
        ),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
    ],
)
def test_what_is_no_schedule_is_refused_in_the_words_of_the_library(
    schedule: str, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_schedule(schedule)
