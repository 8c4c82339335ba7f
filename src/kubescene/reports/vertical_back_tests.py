"""A back-test of a vertical autoscaler: for people as lines, for programs as one document."""

from collections.abc import Iterator

import msgspec

from kubescene.autoscalers.vertical import BackTest
from kubescene.autoscalers.vertical.amounts import CPU, humanized, units_of
from kubescene.autoscalers.vertical.back_tests import BackTestSubject
from kubescene.autoscalers.vertical.recommendations import Recommendation
from kubescene.durations import SECOND, format_duration
from kubescene.reports.plots import bars
from kubescene.types import JsonObject


def lines(test: BackTest, every_pass: bool = False) -> Iterator[str]:
    """The target over time, how it would have served, and how the last one came about."""
    for subject in _subjects(test):
        yield from _subject_lines(test, subject)
    if every_pass:
        yield ""
        yield from map(_step_line, test.steps)
    yield ""
    yield from (test.steps[-1].explain() if test.steps else ())
    rejected = f", {test.rejected:,} samples refused" if test.rejected else ""
    yield f"{len(test.steps):,} recommendations{rejected}"


def document(test: BackTest) -> JsonObject:
    return {
        "rejected": test.rejected,
        "outcomes": [
            {**subject._asdict(), **msgspec.to_builtins(outcome)}
            for subject, outcome in test.outcomes.items()
        ],
        "recommendations": [
            {
                "time": each.time / SECOND,
                **each.to_status(),
                "containers": [container.to_dict() for container in each.containers],
            }
            for each in test.steps
        ],
    }


def _subjects(test: BackTest) -> list[BackTestSubject]:
    """What was ever recommended, by container and resource."""
    found = {
        BackTestSubject(each.container_name, resource)
        for step in test.steps
        for each in step.recommended
        for resource in each.target or {}
    }
    return sorted(found)


def _subject_lines(test: BackTest, subject: BackTestSubject) -> Iterator[str]:
    targets = [_target(step, subject) for step in test.steps]
    last = test.steps[-1].container(subject.container)
    bounds = ""
    if last is not None and last.lower_bound and last.upper_bound:
        low, high = (
            _amount(subject.resource, units_of(subject.resource, each[subject.resource]))
            for each in (last.lower_bound, last.upper_bound)
        )
        bounds = f", bounds {low} to {high}"
    shown = _amount(subject.resource, targets[-1])
    yield f"{subject.container} {subject.resource}: target {shown}{bounds}"
    yield f"  {bars(targets)}"
    if (outcome := test.outcomes.get(subject)) is not None:
        used, wanted = (
            _amount(subject.resource, round(mean))
            for mean in (outcome.mean_usage, outcome.mean_target)
        )
        yield (
            f"  {outcome.above:,} of {outcome.samples:,} samples above the target of their time; "
            f"mean usage {used}, mean target {wanted}"
        )


def _amount(resource: str, units: int) -> str:
    return f"{units}m" if resource == CPU else humanized(units)


def _target(step: Recommendation, subject: BackTestSubject) -> int:
    found = step.container(subject.container)
    if found is None or found.target is None or subject.resource not in found.target:
        return 0
    return units_of(subject.resource, found.target[subject.resource])


def _step_line(step: Recommendation) -> str:
    targets = (
        f"{each.container_name} {resource} {_amount(resource, units_of(resource, amount))}"
        for each in step.recommended
        for resource, amount in (each.target or {}).items()
    )
    return f"{format_duration(step.time):>10}  {', '.join(targets) or 'nothing yet'}"
