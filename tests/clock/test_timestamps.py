"""Instants and durations as Kubernetes writes them: exact, both ways."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.clock import (
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    format_duration,
    format_micro_time,
    format_time,
    parse_duration,
    parse_time,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANTS = st.datetimes(timezones=st.just(UTC))


def nanoseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * MICROSECOND


@settings(deadline=None, max_examples=200)
@given(INSTANTS)
def test_micro_times_come_back(moment: datetime) -> None:
    instant = nanoseconds(moment)
    assert parse_time(format_micro_time(instant)) == instant


@settings(deadline=None, max_examples=200)
@given(INSTANTS)
def test_times_agree_with_the_standard_library(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    text = format_time(nanoseconds(moment))
    assert text == whole.isoformat().replace("+00:00", "Z")
    assert parse_time(text) == nanoseconds(whole)


@settings(deadline=None, max_examples=200)
@given(st.integers(min_value=0, max_value=10**19))
def test_durations_come_back(duration: int) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="epoch"),
        pytest.param("1970-01-01t00:00:01z", SECOND, id="small letters"),
        pytest.param("1970-01-01T01:00:00+01:00", 0, id="east"),
        pytest.param("1969-12-31T23:30:00-00:30", 0, id="west"),
        pytest.param("1970-01-01T00:00:00.000000001Z", 1, id="nine digits"),
        pytest.param("1970-01-01T00:00:00.5Z", 500 * MILLISECOND, id="one digit"),
        pytest.param("0001-01-01T00:00:00Z", -62135596800 * SECOND, id="Go's zero time"),
    ],
)
def test_times_are_read_exactly(text: str, expected: int) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-01", "2026-01-01T00:00:00", "2026-02-30T00:00:00Z", "2026-01-01 00:00:00Z"],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|day"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("0s", 0),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("250ms", 250 * MILLISECOND),
        ("1us", MICROSECOND),
        ("1µs", MICROSECOND),
        ("7ns", 7),
        ("0.1s", 100 * MILLISECOND),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "5m x", "1d", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0s"),
        (90 * SECOND, "1m30s"),
        (90 * MINUTE, "1h30m"),
        (1500 * MILLISECOND, "1.5s"),
        (-SECOND, "-1s"),
    ],
)
def test_durations_are_written_short(duration: int, text: str) -> None:
    assert format_duration(duration) == text
