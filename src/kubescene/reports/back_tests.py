"""Back-tests of autoscalers: for people as lines, for programs as one document."""

from collections.abc import Iterator

import msgspec

from kubescene.autoscalers.back_tests import BackTestRow, ReplicaBackTest, Why
from kubescene.autoscalers.vertical import VerticalBackTest
from kubescene.autoscalers.vertical.amounts import CPU, humanized, units_of
from kubescene.autoscalers.vertical.back_tests import BackTestSubject
from kubescene.autoscalers.vertical.recommendations import Recommendation
from kubescene.durations import SECOND, format_duration
from kubescene.reports.plots import bars
from kubescene.types import JsonObject


def replica_lines(test: ReplicaBackTest[Why], every_pass: bool = False) -> Iterator[str]:
    """The count over time, the passes that changed it (or all), and what it adds up to."""
    start, end = test.rows[0].time, test.rows[-1].time
    yield f"replicas, {test.lowest} to {test.highest} in {format_duration(end - start)}"
    yield f"  {bars([row.desired for row in test.rows])}"
    yield from _recorded_lines(test)
    yield ""
    for row in test.rows:
        if every_pass or row.desired != row.replicas or row.error:
            yield f"{format_duration(row.time - start):>10}  {row.explanation}{_error(row)}"
    hours = test.replica_seconds / 3600
    yield ""
    yield (
        f"{len(test.rows):,} passes, {test.rescales:,} rescales, {test.reversals:,} of them "
        f"against the one before, {hours:,.1f} replica hours"
    )
    yield from _beside_recorded(test)


def _recorded_lines(test: ReplicaBackTest[Why]) -> Iterator[str]:
    """What there was in fact, as far as it is known."""
    known = [row.recorded for row in test.rows if row.recorded is not None]
    if known:
        yield f"recorded, {min(known)} to {max(known)}"
        yield f"  {bars([row.recorded or 0 for row in test.rows])}"


def _beside_recorded(test: ReplicaBackTest[Why]) -> Iterator[str]:
    recorded = test.recorded_seconds
    if recorded is not None:
        share = f" ({test.replica_seconds / recorded:.0%} of them)" if recorded else ""
        yield (
            f"recorded: {recorded / 3600:,.1f} replica hours{share}; in {test.below_recorded:,} "
            "passes it wanted fewer replicas than there were"
        )


def replica_document(test: ReplicaBackTest[Why]) -> JsonObject:
    recorded = test.recorded_seconds
    beside = {"recordedSeconds": recorded, "belowRecorded": test.below_recorded}
    return {
        "lowest": test.lowest,
        "highest": test.highest,
        "rescales": test.rescales,
        "reversals": test.reversals,
        "replicaSeconds": test.replica_seconds,
        **({} if recorded is None else beside),
        "passes": [_row(row) for row in test.rows],
    }


def _row(row: BackTestRow[Why]) -> JsonObject:
    shown: JsonObject = {
        "time": row.time / SECOND,
        "replicas": row.replicas,
        "ready": row.ready,
        "desired": row.desired,
        "explanation": row.explanation.to_dict(),
    }
    if row.recorded is not None:
        shown["recorded"] = row.recorded
    return {**shown, "error": row.error} if row.error else shown


def _error(row: BackTestRow[Why]) -> str:
    return f" ({row.error})" if row.error else ""


def vertical_lines(test: VerticalBackTest, every_pass: bool = False) -> Iterator[str]:
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


def vertical_document(test: VerticalBackTest) -> JsonObject:
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


def _subjects(test: VerticalBackTest) -> list[BackTestSubject]:
    """What was ever recommended, by container and resource."""
    found = {
        BackTestSubject(each.container_name, resource)
        for step in test.steps
        for each in step.recommended
        for resource in each.target or {}
    }
    return sorted(found)


def _subject_lines(test: VerticalBackTest, subject: BackTestSubject) -> Iterator[str]:
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
        if outcome.requested is not None:
            requested = _amount(subject.resource, outcome.requested)
            yield f"  {outcome.above_request:,} of them above the {requested} that was requested"


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
