"""When a schedule is due: against a search minute by minute, and where clocks are changed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.cron import parse_schedule
from kubescene.clock import SECOND, format_time, parse_time

BEGIN = parse_time("2026-01-30T23:58:30Z")


def due(schedule: str, after: int, times: int = 3) -> list[str]:
    found = []
    for _ in range(times):
        instant = parse_schedule(schedule).next(after)
        assert instant is not None
        found.append(format_time(instant))
        after = instant
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-01-30T23:59:00Z"),
        ("0 0 * * *", "2026-01-31T00:00:00Z"),
        ("@hourly", "2026-01-31T00:00:00Z"),
        ("30 4 1,15 * 5", "2026-02-01T04:30:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 12 * * sun", "2026-02-01T12:00:00Z"),
        ("*/20 8-10 * 6 *", "2026-06-01T08:00:00Z"),
        ("@every 90s", "2026-01-31T00:00:00Z"),
    ],
)
def test_the_next_time(schedule: str, expected: str) -> None:
    assert due(schedule, BEGIN, 1) == [expected]


def test_day_of_month_or_day_of_week() -> None:
    """Where both are given either is enough; a star in one of them means the other alone."""
    assert due("0 0 13 * 5", BEGIN, 3) == [
        "2026-02-06T00:00:00Z",
        "2026-02-13T00:00:00Z",
        "2026-02-20T00:00:00Z",
    ]
    assert due("0 0 13 * *", BEGIN, 1) == ["2026-02-13T00:00:00Z"]
    assert due("0 0 * * 5", BEGIN, 1) == ["2026-02-06T00:00:00Z"]
    # A star with a step is no star.
    assert due("0 0 */12 * 5", BEGIN, 2) == ["2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z"]


def test_a_day_that_never_comes() -> None:
    assert parse_schedule("0 0 30 2 *").next(BEGIN) is None


def test_a_local_time_that_does_not_exist_is_passed_over() -> None:
    after = parse_time("2026-03-28T12:00:00Z")
    assert due("TZ=Europe/Berlin 30 2 * * *", after, 2) == [
        "2026-03-30T00:30:00Z",
        "2026-03-31T00:30:00Z",
    ]


def test_a_local_time_that_comes_twice_is_due_twice() -> None:
    after = parse_time("2026-10-24T12:00:00Z")
    assert due("TZ=Europe/Berlin 30 2 * * *", after, 3) == [
        "2026-10-25T00:30:00Z",
        "2026-10-25T01:30:00Z",
        "2026-10-26T01:30:00Z",
    ]


FIELDS = st.tuples(
    st.sampled_from(["*", "0", "*/7", "5-50/15", "1,2,59"]),
    st.sampled_from(["*", "3", "*/6", "22-23"]),
    st.sampled_from(["*", "1", "31", "*/10", "10-12"]),
    st.sampled_from(["*", "2", "*/5", "jan-mar"]),
    st.sampled_from(["*", "0", "mon-fri", "6"]),
).map(" ".join)


def fits(schedule: str, at: datetime) -> bool:
    minutes, hours, days, months, weekdays = parse_schedule(schedule).fields
    day, weekday = at.day in days.values, (at.weekday() + 1) % 7 in weekdays.values
    by_day = day and weekday if days.is_any or weekdays.is_any else day or weekday
    return (
        by_day
        and at.month in months.values
        and at.hour in hours.values
        and at.minute in minutes.values
    )


@given(FIELDS, st.integers(0, 365 * 24 * 3600), st.sampled_from(["UTC", "America/New_York"]))
def test_nothing_that_is_due_is_passed_over(schedule: str, seconds: int, zone: str) -> None:
    begin = parse_time("2026-01-01T00:00:00Z") + seconds * SECOND
    found = parse_schedule(f"TZ={zone} {schedule}").next(begin)
    at = datetime.fromtimestamp(begin // SECOND, UTC).replace(second=0) + timedelta(minutes=1)
    for _ in range(3 * 24 * 60):
        local = at.astimezone(ZoneInfo(zone))
        if fits(schedule, local):
            assert found == int(at.timestamp()) * SECOND
            return
        at += timedelta(minutes=1)
    assert found is None or found >= int(at.timestamp()) * SECOND
