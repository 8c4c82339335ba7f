"""Probes against a plain model that makes them one after the other."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from kubescene.controllers.kubelet.probes import (
    Answers,
    Flip,
    Schedule,
    failures,
    flips,
    schedule_of,
    stretches,
)

LONG = 400
times = st.integers(0, 60)
schedules = st.builds(
    Schedule,
    delay=times,
    period=st.integers(1, 12),
    failures=st.integers(1, 5),
    successes=st.integers(1, 4),
    grace=st.none(),
    silence=st.just(""),
)
answers = st.builds(
    Answers, pass_after=times, fail_after=st.none() | times, fail_for=st.none() | times
)


def passes(how: Answers, age: int) -> bool:
    fails = how.fail_after is not None and age >= how.fail_after
    if fails and how.fail_for is not None and how.fail_after is not None:
        fails = age < how.fail_after + how.fail_for
    return age >= how.pass_after and not fails


def made(schedule: Schedule, how: Answers, begun: int, since: int) -> Iterator[tuple[int, bool]]:
    """Every probe of a long time, and whether it passes."""
    at = max(begun + schedule.delay, since)
    while at <= LONG:
        yield at, passes(how, at - begun)
        at += schedule.period


def model(schedule: Schedule, how: Answers, begun: int, since: int, passed: bool) -> list[Flip]:
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
    schedule: Schedule, how: Answers, begun: int, since: int, passed: bool
) -> None:
    row = stretches(schedule, how, begun, since)
    found = [each for each in flips(schedule, row, passed=passed) if each.at <= LONG]
    assert found == model(schedule, how, begun, since, passed)


@given(schedules, answers, times, times, times, st.integers(0, LONG))
def test_probes_that_fail_are_those_of_the_plain_model(
    schedule: Schedule, how: Answers, begun: int, since: int, after: int, until: int
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
