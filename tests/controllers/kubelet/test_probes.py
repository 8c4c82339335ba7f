"""Probes against a plain model that makes them one after the other."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from kubescene.controllers.kubelet.probes import (
    Flip,
    ProbeAnswers,
    ProbeSchedule,
    failures,
    flips,
    schedule_of,
    stretches,
)

LONG = 400
times = st.integers(0, 60)
schedules = st.builds(
    ProbeSchedule,
    delay=times,
    period=st.integers(1, 12),
    failures=st.integers(1, 5),
    successes=st.integers(1, 4),
    grace=st.none(),
    silence=st.just(""),
)
spells = st.lists(st.tuples(st.integers(0, 200), st.none() | times), max_size=4)
answers = st.builds(ProbeAnswers, pass_after=times, failing=st.builds(tuple, spells))


def passes(how: ProbeAnswers, age: int) -> bool:
    for after, long in how.failing:
        end = LONG if long is None else after + long
        if age in range(after, end + (long is None)):
            return False
    return age >= how.pass_after


def made(
    schedule: ProbeSchedule, how: ProbeAnswers, begun: int, since: int
) -> Iterator[tuple[int, bool]]:
    """Every probe of a long time, and whether it passes."""
    at = max(begun + schedule.delay, since)
    while at <= LONG:
        yield at, passes(how, at - begun)
        at += schedule.period


def model(
    schedule: ProbeSchedule, how: ProbeAnswers, begun: int, since: int, passed: bool
) -> list[Flip]:
    """A kubelet's worker: it counts answers in a row, and changes its mind at a threshold."""
    found, last, run = [], None, 0
    for at, result in made(schedule, how, begun, since):
        run = run + 1 if result is last else 1
        last = result
        if run < (schedule.successes if result else schedule.failures):
            continue
        if result is not passed:
            found.append(Flip(at, result))
            passed = result
    return found


@given(schedules, answers, times, times, st.booleans())
def test_a_kubelet_changes_its_mind_when_the_plain_model_does(
    schedule: ProbeSchedule, how: ProbeAnswers, begun: int, since: int, passed: bool
) -> None:
    row = stretches(schedule, how, begun, since)
    found = [each for each in flips(schedule, row, passed=passed) if each.at <= LONG]
    assert found == model(schedule, how, begun, since, passed)


@given(schedules, answers, times, times, times, st.integers(0, LONG))
def test_probes_that_fail_are_those_of_the_plain_model(
    schedule: ProbeSchedule, how: ProbeAnswers, begun: int, since: int, after: int, until: int
) -> None:
    row = stretches(schedule, how, begun, since)
    wanted = [
        at for at, result in made(schedule, how, begun, since) if not result and after < at <= until
    ]
    assert list(failures(schedule, row, after, until)) == wanted


def test_what_a_spec_leaves_open_is_what_kubernetes_fills_in() -> None:
    schedule = schedule_of({"livenessProbe": {"tcpSocket": {"port": 80}}}, "livenessProbe")
    assert schedule is not None
    assert (schedule.delay, schedule.period, schedule.failures, schedule.successes) == (
        0,
        10_000_000_000,
        3,
        1,
    )
    assert schedule_of({}, "livenessProbe") is None
