"""Instants and durations as Kubernetes writes them: exact, both ways."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.clock import (
    LAST_INSTANT,
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    format_duration,
    format_micro_time,
    format_time,
    go_seconds,
    parse_duration,
    parse_time,
)
from kubescene.durations import parse_signed_duration

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
@given(st.integers(min_value=0, max_value=2**63 - 1))
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
    with pytest.raises(ValueError, match="is not an RFC 3339 time"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0000-01-01T00:00:00Z", "year 0 is out of range"),
        ("0001-01-01T00:00:00+00:01", "before year 1 in UTC"),
        ("9999-12-31T23:59:59-00:01", "after year 9999 in UTC"),
        ("2026-13-01T00:00:00Z", "month must be in 1..12"),
        ("2026-01-01T24:00:00Z", "hour must be in 0..23"),
        ("2026-01-01T00:00:60Z", "second must be in 0..59"),
        ("2026-01-01T00:00:00+24:00", "the offset"),
        ("2026-01-01T00:00:00-00:60", "the offset"),
    ],
)
def test_a_time_that_cannot_be_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        parse_time(text)
    assert str(refusal.value).startswith(repr(text))


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00Z"])
def test_the_first_and_the_last_time_come_back(text: str) -> None:
    instant = parse_time(text)
    assert parse_time(format_time(instant)) == instant // SECOND * SECOND
    assert format_micro_time(instant)[:26] == text.replace("Z", ".000000")[:26]


@pytest.mark.parametrize(
    ("instant", "why"),
    [
        (LAST_INSTANT + 1, "after year 9999"),
        (-62135596800 * SECOND - 1, "before year 1"),
        pytest.param(10**5000, "after year 9999", id="5,000 digits"),
        (-(10**30), "before year 1"),
    ],
)
def test_an_instant_that_no_timestamp_can_say_is_refused(instant: int, why: str) -> None:
    for form in (format_time, format_micro_time):
        with pytest.raises(ValueError, match=why):
            form(instant)


def reading(text: str) -> int | str:
    try:
        return parse_time(text)
    except ValueError as refusal:
        return str(refusal)


ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59)


@settings(deadline=None, max_examples=200)
@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), ZONES)
def test_offsets_agree_with_the_standard_library(moment: datetime, minutes: int) -> None:
    local = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_time(local.isoformat()) == nanoseconds(local)


@settings(deadline=None, max_examples=500)
@given(st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}(Z|[+-][0-9:]{5})", fullmatch=True))
def test_whatever_looks_like_a_time_is_one_or_is_refused(text: str) -> None:
    outcome = reading(text)
    if isinstance(outcome, str):
        assert "is not an RFC 3339 time" in outcome
    else:
        assert parse_time(format_time(outcome)) == outcome // SECOND * SECOND


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
        ("0000000000000000000000000000005s", 5 * SECOND),
        ("0.9999999999s", SECOND - 1),
        ("0." + "3" * 6000 + "h", 1_200_000_000_000 - 1),
        ("9223372036854775807ns", 2**63 - 1),
        (".5s", 500 * MILLISECOND),
        ("5.s", 5 * SECOND),
        ("+1s", SECOND),
        ("+0", 0),
        ("1\N{GREEK SMALL LETTER MU}s", MICROSECOND),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "5 s", "5m x", "1d", "٣s", ".s", "+", "+-1s", "s1"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", ["9223372036854775808ns", "2562048h", "1" * 6000 + "s", "9" * 19 + "h"]
)
def test_a_duration_beyond_292_years_is_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"is too long: durations end at 2562047h47m16\.854775807s"
    ):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-1.5h", -90 * MINUTE), ("+1s", SECOND), ("-0", 0), ("-9223372036854775808ns", -(2**63))],
)
def test_a_duration_may_have_a_sign_where_go_reads_it(text: str, expected: int) -> None:
    assert parse_signed_duration(text) == expected


@pytest.mark.parametrize("text", ["", "-", "--1s", "9223372036854775808ns", "1d", "-2562048h"])
def test_what_go_refuses_is_refused_in_its_words(text: str) -> None:
    with pytest.raises(ValueError, match=f'^time: invalid duration "{re.escape(text)}"$'):
        parse_signed_duration(text)


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


@pytest.mark.parametrize("text", ["1" * 100_000, "1." + "1" * 100_000, "1s" + "1" * 100_000])
def test_a_hundred_thousand_digits_without_a_unit_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0, 0),
        (30, 30 * SECOND),
        (9_223_372_036, 9_223_372_036 * SECOND),
        (9_223_372_037, 9_223_372_037 * SECOND - (1 << 64)),
        ((1 << 63) - 1, -SECOND),
    ],
)
def test_seconds_wrap_around_as_go_durations_do(seconds: int, duration: int) -> None:
    assert go_seconds(seconds) == duration
