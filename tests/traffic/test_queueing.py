"""The CPU model of faithful mode: the table of the reference, row by row."""

import pytest

from kubescene.clock import SECOND
from kubescene.traffic.faithful.queueing import Admission, CpuRules, admit, power, waiting_time

RULES = CpuRules()
TABLE = {
    1: (500.0, 400, 843),
    2: (333.333, 600, 3_236_733),
    3: (142.857, 1399, 203_945_144),
    4: (23.256, 8599, 1_253_555_606),
}


def arrivals(count: int) -> list[Admission | None]:
    """Requests that come back to back to a replica of 1000 millicores."""
    occupied, found = 0.0, []
    for _ in range(count):
        got = admit(1000.0, occupied, 200, 200, RULES)
        occupied += got.use if got else 0.0
        found.append(got)
    return found


@pytest.mark.parametrize("row", TABLE, ids="3.5 row {}".format)
def test_rows_of_the_table(row: int) -> None:
    got = arrivals(row)[-1]
    use, base_ms, bound = TABLE[row]
    assert got is not None
    assert got.use == pytest.approx(use, abs=1e-3)
    assert (got.base // 1_000_000, got.delay_bound) == (base_ms, bound)


def test_3_5_row_5_finds_next_to_nothing() -> None:
    fifth = arrivals(5)[-1]
    assert fifth is not None
    assert fifth.use == pytest.approx(0.553, abs=1e-3)
    assert fifth.base == 361_400 * 1_000_000


def test_3_5_row_6_finds_nothing() -> None:
    assert arrivals(6)[-1] is None


def test_3_5_a_small_replica() -> None:
    empty, busy = admit(100.0, 0.0, 200, 200, RULES), admit(100.0, 60.0, 200, 200, RULES)
    assert empty is not None
    assert busy is not None
    assert empty.use == pytest.approx(90.909, abs=1e-3)
    assert empty.base == 2_200_000_000
    assert empty.base + empty.delay_bound < 2_300_000_000
    assert busy.base == 5_200_000_000
    assert busy.base + busy.delay_bound < 6 * SECOND


@pytest.mark.parametrize(
    ("share", "servers", "expected"),
    [
        pytest.param(0.95, 1, 18_999_999_999, id="3.5 W(0.95,1)"),
        pytest.param(0.958, 3, 7_337_661_046, id="3.5 W(0.958,3)"),
        pytest.param(0.96, 100, 145_779_230, id="3.5 W(0.96,100)"),
        pytest.param(2.0, 100, 145_779_230, id="3.5 clamp above"),
    ],
)
def test_the_waiting_time(share: float, servers: int, expected: int) -> None:
    assert waiting_time(SECOND, share, RULES._replace(servers=servers)) == expected


def test_3_5_the_clamp_below() -> None:
    assert waiting_time(SECOND, 0.0, RULES) == waiting_time(SECOND, 0.01, RULES)
    assert waiting_time(SECOND, -1.0, RULES) == waiting_time(SECOND, 0.01, RULES)


def test_3_5_without_io_one_request_takes_all() -> None:
    got = admit(1000.0, 0.0, 200, 0, RULES)
    assert got is not None
    assert got.use == 1000.0
    assert admit(1000.0, got.use, 200, 0, RULES) is None


def test_10_1_6_a_request_without_any_need_divides_nothing() -> None:
    got = admit(1000.0, 0.0, 0, 0, RULES)
    assert got == (0.0, 0, 1)


def test_the_power_is_rounded_correctly() -> None:
    assert power(0.5, 2.0) == 0.25
    assert power(0.5, 13.212670403551895) == pytest.approx(0.5**13.212670403551895, rel=1e-15)
