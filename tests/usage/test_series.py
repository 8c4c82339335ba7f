"""Series: values between points, means over spans, and what a scrape has seen of them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.selectors import EVERYTHING
from kubescene.usage.measuring import MeasuredPod, Measurements
from kubescene.usage.series import MetricSeries, Points

SECOND = 10**9


@st.composite
def points(draw: st.DrawFn) -> Points:
    times = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=6)))
    values = draw(st.lists(st.integers(0, 10**6), min_size=len(times), max_size=len(times)))
    return Points(tuple(times), tuple(values), draw(st.booleans()))


def exact(series: Points, time: Fraction) -> Fraction:
    """The value at any instant from the definition, point by point."""
    place = max(at for at, each in enumerate(series.times) if each <= time)
    if not series.linear or place + 1 == len(series.times):
        return Fraction(series.values[place])
    begin, end = series.times[place : place + 2]
    first, last = series.values[place : place + 2]
    return first + (last - first) * (time - begin) / (end - begin)


@given(points(), st.integers(0, 80), st.integers(1, 40))
def test_a_mean_is_the_area_over_the_span(series: Points, start: int, length: int) -> None:
    """Between whole instants a series is a line or constant, so the middle of each is its mean."""
    end = start + length
    known = [second for second in range(start, end) if second >= series.times[0]]
    found = series.mean(start, end)
    if end < series.times[0]:
        assert found is None
        return
    if not known:
        assert found == series.at(end)
        return
    area = sum((exact(series, second + Fraction(1, 2)) for second in known), Fraction(0))
    assert found is not None
    # Values between points are rounded down before they are added.
    assert 0 <= area / len(known) - found < 2


@given(points(), st.integers(0, 80))
def test_a_value_is_that_of_the_line(series: Points, time: int) -> None:
    found = series.at(time)
    if time < series.times[0]:
        assert found is None
    else:
        assert found == exact(series, Fraction(time)) // 1


def declared(**fields: object) -> MetricSeries:
    given_points = Points((0, 60 * SECOND), (1000, 3001))
    base = {"metric": "", "resource": "cpu", "selector": EVERYTHING, **fields}
    return MetricSeries("s", points=given_points, begins=0, **base)  # type: ignore[arg-type]


def pod(name: str, since: int | None = 0) -> MeasuredPod:
    return MeasuredPod(name, {}, ("app", "other"), since)


def test_what_is_shared_adds_up_to_the_series() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    usage = Measurements([declared()], pods, 100 * SECOND).usage()
    assert [each["app"]["cpu"] for each in usage.values()] == [1001, 1000, 1000]


def test_pods_are_seen_from_the_first_scrape_after_they_got_ready() -> None:
    pods = [pod("old"), pod("young", 31 * SECOND), pod("unready", None)]
    assert [*Measurements([declared()], pods, 44 * SECOND).usage()] == ["old"]
    assert [*Measurements([declared()], pods, 45 * SECOND).usage()] == ["old", "young"]


def test_cpu_is_a_mean_and_memory_what_it_was() -> None:
    """The step is at 60 s, in the middle of the window of a scrape at 70 s."""
    seen = Measurements(
        [declared(per_pod=True), declared(per_pod=True, resource="memory", container="other")],
        [pod("a")],
        70 * SECOND,
        resolution=20 * SECOND,
    )
    assert seen.time == 60 * SECOND
    later = Measurements([declared(per_pod=True)], [pod("a")], 89 * SECOND, resolution=80 * SECOND)
    assert seen.usage() == {"a": {"app": {"cpu": 1000}, "other": {"memory": 3001}}}
    assert later.usage() == {"a": {"app": {"cpu": (60 * 1000 + 20 * 3001) // 80}}}


def test_several_series_of_one_pod_add_up() -> None:
    series = [declared(per_pod=True), declared(per_pod=True)]
    assert Measurements(series, [pod("a")], 15 * SECOND).usage() == {"a": {"app": {"cpu": 2000}}}
