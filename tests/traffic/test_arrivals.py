"""Patterns and arrivals: the vectors of the reference, laws, and that cutting does not show."""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kubescene.clock import SECOND, Stream
from kubescene.errors import TrafficError
from kubescene.flows import patterns
from kubescene.flows.arrivals import ONE, ArrivalWindow, SpacedArrivals, Spacing
from kubescene.flows.patterns import RatePoint
from kubescene.flows.sources import LONGEST_LINE, PackedError, unpacked_lines
from kubescene.traffic.spec.fields import TrafficSpec
from kubescene.traffic.spec.files import arrivals_of
from kubescene.traffic.spec.loading import spec_of


def arrived(
    windows: Iterator[ArrivalWindow], spacing: Spacing, until: int, state: int = 0
) -> list[int]:
    found: list[int] = (
        SpacedArrivals(windows, spacing, Stream(state), until).take(until, 10**9).tolist()
    )
    return found


SINE = [20, 26, 32, 36, 39, 40, 39, 36, 32, 26, 20, 14, 8, 4, 1, 0, 1, 4, 8, 14, 20, 26, 32, 36]
SINE += [39, 40, 39, 36, 32, 26]


def rates(windows: Iterator[ArrivalWindow]) -> list[int]:
    return [window.mass // ONE for window in windows]


def test_oracle_of_poisson_arrivals() -> None:
    found = arrived(patterns.constant(100, 2 * SECOND), Spacing.POISSON, 2 * SECOND)
    assert found[:3] == [1240781, 9645010, 45976138]
    assert (len(found), sum(found)) == (203, 199579047901)


def test_oracle_of_even_arrivals() -> None:
    found = arrived(patterns.constant(100, 2 * SECOND), Spacing.EVEN, 2 * SECOND)
    assert found == [5000000 + 10000000 * number for number in range(200)]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        pytest.param(patterns.ramp(1, 3), [1, 2, 3, 3, 2, 1, 0], id="5 ramp(1,3)"),
        pytest.param(patterns.ramp(2.5, 6), [2, 5, 5, 2, 0], id="5 ramp(2.5,6)"),
        pytest.param(
            patterns.sinusoidal(20, 20 * SECOND, 30 * SECOND),
            SINE,
            id="5 sinusoid(20,20s)",
        ),
        pytest.param(patterns.step(10, 10 * SECOND, 20 * SECOND), [10] * 10, id="5 step(10,10s)"),
    ],
)
def test_rates_of_the_original_patterns(
    windows: Iterator[ArrivalWindow], expected: list[int]
) -> None:
    assert rates(windows) == expected


def test_5_the_forms_ramp_lasts_101_seconds_and_has_2550_requests() -> None:
    assert [len(found := rates(patterns.ramp(1, 50))), sum(found)] == [101, 2550]


def test_5_uniform_spreads_whole_numbers_over_each_window() -> None:
    found = arrived(patterns.step(10, 10 * SECOND, 20 * SECOND), Spacing.UNIFORM, 20 * SECOND)
    assert [sum(each // SECOND == second for each in found) for second in range(10, 20)] == [
        10
    ] * 10
    assert found == sorted(found)
    assert len(set(found)) == 100


@pytest.mark.parametrize("spacing", Spacing)
@pytest.mark.parametrize("rps", [0.3, 7.0, 333.25, 5000.0])
def test_however_it_is_cut_the_arrivals_are_the_same(spacing: Spacing, rps: float) -> None:
    halt = 120 * SECOND
    whole = arrived(patterns.constant(rps, halt), spacing, halt, state=5)
    stream, source = (
        Stream(9),
        SpacedArrivals(patterns.constant(rps, halt), spacing, Stream(5), halt),
    )
    found: list[int] = []
    now = 0
    while now < halt:
        now = min(now + 1 + stream.below(7 * SECOND), halt)
        while len(piece := source.take(now, 1 + stream.below(900))):
            assert piece[-1] < now
            found += piece.tolist()
    assert found == whole


@pytest.mark.parametrize("spacing", Spacing)
def test_fractions_are_carried_on(spacing: Spacing) -> None:
    count = len(arrived(patterns.constant(0.4, 1000 * SECOND), spacing, 1000 * SECOND, state=1))
    assert abs(count - 400) <= (80 if spacing is Spacing.POISSON else 1)


def test_poisson_gaps_have_mean_and_variance_one() -> None:
    found = arrived(patterns.constant(1000, 200 * SECOND), Spacing.POISSON, 200 * SECOND, state=3)
    gaps = np.diff(np.array(found)) / (SECOND / 1000)
    assert abs(float(gaps.mean()) - 1) < 0.01
    assert abs(float(gaps.var()) - 1) < 0.03


def test_arrivals_are_in_their_windows_whatever_the_width() -> None:
    for width in (1, 999, SECOND, 40 * 3600 * SECOND):
        for spacing in Spacing:
            windows = patterns.uniform(1000, 17, width)
            found = arrived(windows, spacing, 1 << 60, state=2)
            assert found[0] >= 17
            assert found[-1] < 17 + width


def test_spikes_begin_and_end_where_they_say() -> None:
    shape = patterns.Spikes(0, 100, 10 * SECOND, SECOND // 2, 3 * SECOND + 5)
    found = arrived(patterns.spikes(shape, 20 * SECOND), Spacing.EVEN, 20 * SECOND)
    assert len(found) == 100
    for instant in found:
        assert (instant - 3 * SECOND - 5) % (10 * SECOND) < SECOND // 2


def test_the_noise_of_a_day_is_a_factor_of_the_rate() -> None:
    """Mean 1, the same deviation at noon and at night; added to the rate it was 0.5 there."""
    day = 1440 * SECOND
    shape = patterns.Diurnal(40.0, 0.8, day, day // 2, 0.15, SECOND)
    calm = [each.mass for each in patterns.diurnal(shape._replace(noise=0.0), 20 * day, Stream(1))]
    noisy = [each.mass for each in patterns.diurnal(shape, 20 * day, Stream(1))]
    factors = np.array(noisy) / np.array(calm)
    hour = np.arange(len(factors)) % 1440 // 60
    for chosen in (factors, factors[hour == 0], factors[hour == 12]):
        error = 0.15 / len(chosen) ** 0.5
        assert abs(chosen.mean() - 1) < 4 * error
        assert abs(chosen.std() - 0.15) < 4 * error / 2**0.5
    assert min(noisy) > 0, "no minute is without a request"


def test_a_day_is_highest_at_its_peak_and_noise_is_drawn_from_its_stream() -> None:
    day = patterns.Diurnal(1000, 0.5, 600 * SECOND, 200 * SECOND, 0, SECOND)
    found = rates(patterns.diurnal(day, 600 * SECOND, Stream(0)))
    assert (max(found), found.index(max(found)), found[500]) == (1500, 200, 500)
    noisy = day._replace(noise=0.1)
    first, again, other = (
        rates(patterns.diurnal(noisy, 600 * SECOND, Stream(state))) for state in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert abs(sum(first) / 600_000 - 1) < 0.02


def test_piecewise_as_steps_and_on_lines() -> None:
    points = [RatePoint(SECOND, 10), RatePoint(5 * SECOND, 20)]
    assert rates(patterns.piecewise(points, False, 7 * SECOND)) == [10] * 4 + [20, 20]
    assert [
        round(window.mass / ONE, 2) for window in patterns.piecewise(points, True, 7 * SECOND)
    ] == [11.25, 13.75, 16.25, 18.75, 20, 20]


def spec(**traffic: object) -> dict[str, object]:
    return {"duration": "60s", "traffic": traffic}


def test_rates_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time,rps\n0,5\n10.5,1\n")
    asked = spec_of(spec(pattern="piecewise", spacing="even", piecewise={"file": "rates.csv"}))
    assert arrivals_of(asked, tmp_path).expected == 102
    assert len(arrivals_of(asked, tmp_path).take(60 * SECOND, 10**6)) == 102


def packed(folder: Path, data: bytes) -> TrafficSpec:
    (folder / "rates.csv.gz").write_bytes(data)
    return spec_of(spec(pattern="piecewise", spacing="even", piecewise={"file": "rates.csv.gz"}))


def test_rates_from_a_packed_file(tmp_path: Path) -> None:
    asked = packed(tmp_path, gzip.compress("\ufefftime,rps\n0,5\n10.5,1\n".encode()))
    assert arrivals_of(asked, tmp_path).expected == 102


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(b"0,5\n9,5\n")[:-9], "it cannot be unpacked: .*: copy it again"),
        (b"0,5\n", "it cannot be unpacked: "),
        (gzip.compress(b"0" * LONGEST_LINE + b"0\n"), "it has a line of more than 1048576 bytes"),
    ],
)
def test_a_packed_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes, told: str) -> None:
    with pytest.raises(TrafficError, match=rf"rates\.csv\.gz cannot be read: {told}"):
        arrivals_of(packed(tmp_path, data), tmp_path)


def test_what_is_unpacked_is_bounded() -> None:
    data = gzip.compress(b"1,2\n" * 100)
    assert len(list(unpacked_lines(io.BytesIO(data), 400))) == 100
    with pytest.raises(PackedError, match="it holds more than 399 bytes"):
        list(unpacked_lines(io.BytesIO(data), 399))


def test_recorded_arrivals_are_replayed_in_order(tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text("arrived,path\n100.25,/a\n100.000000001,/b\n")
    replay = {"file": "seen.csv", "origin": "100s"}
    asked = spec_of(spec(pattern="replay", replay=replay))
    assert arrivals_of(asked, tmp_path).take(60 * SECOND, 9).tolist() == [1, 250000000]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("time,rps\n0,NaN\n", r"rates.csv:2: 'NaN' is not a number from 0"),
        ("NaN,1\n", r"rates.csv:1: time must be seconds from 0 to"),
        ("0,-1\n", r"rates.csv:1: '-1' is not a number from 0"),
        ("0,1\n0,2\n", r"rates.csv:2: its time must come after"),
        ("0,1\n1\n", r"rates.csv:2: a row needs two columns"),
        ("0,x\n", r"rates.csv:1: 'x' is not a number"),
        ("time,rps\n", r"piecewise.file: rates.csv has no rows"),
        ("rps,time\n1,2\n", r"rates.csv:1: the column time has to be the first"),
        ("12:00,five\n", r"rates.csv:1: time must be .* an RFC 3339 time, not '12:00'"),
        ("O,1\n", r"rates.csv:1: time must be seconds"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "rates.csv").write_text(text)
    asked = spec_of(spec(pattern="piecewise", piecewise={"file": "rates.csv"}))
    with pytest.raises(TrafficError, match=told):
        arrivals_of(asked, tmp_path)


@pytest.mark.parametrize(
    ("file", "told"), [("none.csv", "there is no file"), ("../x.csv", "outside the folder")]
)
def test_files_that_cannot_be_had(tmp_path: Path, file: str, told: str) -> None:
    asked = spec_of(spec(pattern="replay", replay={"file": file}))
    with pytest.raises(TrafficError, match=told):
        arrivals_of(asked, tmp_path)
    with pytest.raises(TrafficError, match="only in a TrafficRun that is one itself"):
        arrivals_of(asked, None)
