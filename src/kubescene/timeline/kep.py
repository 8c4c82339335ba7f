"""The timeline as KEP-140 shows it: one view of the log.

An event has exactly one body, named by ``operation``::

    ObjectCreated   Create          create          {operation, result}
    ObjectPatched   Patch           patch           {operation, result}
    ObjectDeleted   Delete          delete          {operation}
    Done            Done            done            {operation}
    Advanced        Advance         advance         {operation}, an extension
    PodScheduled    PodScheduled    podScheduled    PodResult
    PodUnscheduled  PodUnscheduled  podUnscheduled  PodResult
    PodPreempted    PodPreempted    podPreempted    PodResult

Bodies are KEP-140's; ``operation`` is the type name of its first draft. ``scheduleResult`` is
bounded: at most `ATTEMPTS_LISTED` attempts, with a ``cut`` marker where something was left out.
Facts of other kinds are not part of the view; a package that wants its own to be registers a
function with `body_of`.
"""

from collections.abc import Iterator
from functools import singledispatch
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import orjson

from kubescene.api.text.encoding import encode
from kubescene.clock import ScenarioStep, format_micro_time
from kubescene.timeline.facts import Advanced, Done, Fact
from kubescene.timeline.object_facts import ObjectCreated, ObjectDeleted, ObjectPatched, ObjectState
from kubescene.timeline.pod_facts import PodAttempt, PodFact, PodPreempted
from kubescene.timeline.schedule_results import ScheduleResult

ATTEMPTS_LISTED = 3
PASSED = "passed"


class Body(NamedTuple):
    """The draft's operation type, the name of the body's field, and the body."""

    operation: str
    field: str
    value: dict[str, Any]


class KepEvent(msgspec.Struct, frozen=True, gc=False):
    """One event, encoded."""

    step: ScenarioStep
    operation: str
    data: bytes

    def to_dict(self) -> dict[str, Any]:
        decoded: dict[str, Any] = orjson.loads(self.data)
        return decoded


def is_shown(fact: Fact) -> bool:
    """Whether the view has an event for facts of this kind."""
    return body_of.dispatch(type(fact)) is not body_of.dispatch(object)


def event_of(fact: Fact) -> KepEvent:
    """The event that shows a fact; only for those that `is_shown`."""
    body = body_of(fact)
    event = {
        "id": fact.id,
        "step": fact.step.to_dict(),
        "time": format_micro_time(fact.time),
        "actor": fact.actor,
        "operation": body.operation,
        body.field: body.value,
    }
    return KepEvent(fact.step, body.operation, encode(event))


@singledispatch
def body_of(fact: Fact) -> Body:
    """What the event of a fact holds."""
    raise TypeError(f"KEP-140 has no event for a {type(fact).__name__}")


@body_of.register
def _(fact: ObjectCreated) -> Body:
    operation = _asked(fact) or {"object": orjson.Fragment(fact.body)}
    return Body("Create", "create", {"operation": operation, "result": _shown(fact.record)})


@body_of.register
def _(fact: ObjectPatched) -> Body:
    operation = _asked(fact) or {
        **fact.target(),
        "patch": fact.patch.decode(),
        "patchType": fact.patch_type,
    }
    return Body("Patch", "patch", {"operation": operation, "result": _shown(fact.record)})


@body_of.register
def _(fact: ObjectDeleted) -> Body:
    return Body("Delete", "delete", {"operation": _asked(fact) or fact.target()})


@body_of.register
def _(fact: Done) -> Body:
    return Body("Done", "done", {"operation": orjson.Fragment(bytes(fact.operation))})


@body_of.register
def _(fact: Advanced) -> Body:
    return Body("Advance", "advance", {"operation": orjson.Fragment(bytes(fact.operation))})


@body_of.register
def _(fact: PodAttempt) -> Body:
    result = _pod_result(fact)
    if fact.message:
        result["message"] = fact.message
    listed = [_schedule_result(attempt) for attempt in _listed_attempts(fact)]
    result["scheduleResult"] = listed
    if fact.attempt > len(listed):
        result["cut"] = {"attempts": fact.attempt, "listed": len(listed)}
    if fact.node:
        return Body("PodScheduled", "podScheduled", result)
    return Body("PodUnscheduled", "podUnscheduled", result)


@body_of.register
def _(fact: PodPreempted) -> Body:
    result = _pod_result(fact)
    result |= {"preemptedBy": fact.preempted_by, "preemptedAt": fact.step.to_dict()}
    return Body("PodPreempted", "podPreempted", result | {"scheduleResult": []})


def _asked(fact: ObjectCreated | ObjectPatched | ObjectDeleted) -> Any:
    return orjson.Fragment(fact.origin.rendered) if fact.origin is not None else None


def _shown(record: ObjectState) -> orjson.Fragment:
    """The stored bytes without their revision, embedded as they are."""
    return orjson.Fragment(record.unversioned_data)


def _pod_result(fact: PodFact) -> dict[str, Any]:
    result: dict[str, Any] = {
        "pod": _shown(fact.record),
        "createdAt": fact.created_at.to_dict(),
    }
    if fact.node:
        result["boundTo"] = fact.node
    if fact.bound_at is not None:
        result["boundAt"] = fact.bound_at.to_dict()
    return result


def _listed_attempts(fact: PodAttempt) -> list[PodAttempt]:
    """The newest attempts at the pod, this one last."""
    return list(islice(_back_from(fact), ATTEMPTS_LISTED))[::-1]


def _back_from(fact: PodAttempt) -> Iterator[PodAttempt]:
    attempt: PodAttempt | None = fact
    while attempt is not None:
        yield attempt
        attempt = attempt.previous


def _schedule_result(attempt: PodAttempt) -> dict[str, Any]:
    """``ScenarioPodScheduleResult`` of one attempt."""
    shown: dict[str, Any] = {"step": attempt.step.to_dict()}
    result = attempt.result
    if result is None:
        return shown | {"cut": _cut(attempt.evaluated, attempt.feasible, 0)}
    shown["allCandidateNodes"] = result.candidates
    shown["allFilteredNodes"] = result.filtered
    shown["pluginResults"] = {"filter": _filters(result), "score": _scores(result)}
    if result.is_cut:
        shown["cut"] = _cut(result.examined, result.feasible, len(result.candidates))
    return shown


def _cut(candidates: int, feasible: int, listed: int) -> dict[str, int]:
    return {"candidateNodes": candidates, "feasibleNodes": feasible, "listed": listed}


def _filters(result: ScheduleResult) -> dict[str, dict[str, str]]:
    """Per node: each filter plugin up to the first that said no."""
    refused = {rejection.place: rejection for rejection in result.rejections}
    passed = dict.fromkeys(result.filter_plugins, PASSED)
    verdicts = {}
    for place, node in enumerate(result.candidates):
        rejection = refused.get(place)
        if rejection is None or not rejection.plugin:
            verdicts[node] = passed
            continue
        plugins = result.filter_plugins
        before = plugins.index(rejection.plugin) if rejection.plugin in plugins else len(plugins)
        verdicts[node] = dict.fromkeys(plugins[:before], PASSED)
        verdicts[node][rejection.plugin] = rejection.reasons
    return verdicts


def _scores(result: ScheduleResult) -> dict[str, dict[str, Any]]:
    """Per scored node: raw, normalised and weighted score of each plugin."""
    return {
        result.candidates[place]: {
            each.plugin: {
                "rawScore": each.raw[row],
                "normalizedScore": each.normalized[row],
                "finalScore": each.normalized[row] * each.weight,
            }
            for each in result.scores
        }
        for row, place in enumerate(result.scored)
    }
