"""The timeline as KEP-140 shows it: one view of the log, written and read.

An event has exactly one body, named by ``operation``::

    ObjectCreated     Create          create          {operation, result}
    ObjectPatched     Patch           patch           {operation, result}
    ObjectDeleted     Delete          delete          {operation}
    Done              Done            done            {operation}
    Advanced          Advance         advance         {operation}, an extension
    OperationOutcome  Outcome         outcome         {operation, state, ...}, an extension
    PodScheduled      PodScheduled    podScheduled    PodResult
    PodUnscheduled    PodUnscheduled  podUnscheduled  PodResult
    PodPreempted      PodPreempted    podPreempted    PodResult

Bodies are KEP-140's; ``operation`` is the type name of its first draft. ``scheduleResult`` is
bounded: at most `ATTEMPTS_LISTED` attempts, with a ``cut`` marker where something was left out.
Facts of other kinds are not part of the view. `event_of` shows a fact, `line_of` is the line of the
fact that an event shows, as far as the event tells: no profile, no reason, no uid of what is gone.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import orjson

from kubescene.actors import Role
from kubescene.clock import ScenarioStep, format_micro_time, parse_time
from kubescene.timeline.facts import Advanced, Done, Fact, OperationOutcome
from kubescene.timeline.lines import NOTHING, line_type
from kubescene.timeline.object_facts import ObjectCreated, ObjectDeleted, ObjectPatched, ObjectState
from kubescene.timeline.pod_facts import (
    PodAttempt,
    PodFact,
    PodPreempted,
    PodScheduled,
    PodUnscheduled,
)
from kubescene.timeline.schedule_results import ScheduleResult

ATTEMPTS_LISTED = 3
PASSED = "passed"
DEFAULT_NAMESPACE = "default"
UNTOLD_STEP = ScenarioStep(0, 0)


class KepEvent(msgspec.Struct, frozen=True, gc=False):
    """One event, encoded."""

    step: ScenarioStep
    operation: str
    data: bytes

    def to_dict(self) -> dict[str, Any]:
        decoded: dict[str, Any] = orjson.loads(self.data)
        return decoded


# -- the shapes --------------------------------------------------------------------------------


class KepShape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What KEP-140 describes; members that are empty are left out."""


class KepStep(KepShape, frozen=True, kw_only=True):
    major: int
    minor: int


class KepOperation(KepShape, frozen=True, kw_only=True):
    """An operation, and the object that it left."""

    operation: msgspec.Raw
    result: msgspec.Raw = NOTHING


class KepOutcome(KepShape, frozen=True, kw_only=True):
    """What came of an operation of some type, or of a part of it."""

    operation: str
    state: str
    subject: str = ""
    message: str = ""


class CutNodes(KepShape, frozen=True, kw_only=True):
    """How many nodes there were, and how many are listed."""

    candidate_nodes: int
    feasible_nodes: int
    listed: int


class CutAttempts(KepShape, frozen=True, kw_only=True):
    attempts: int
    listed: int


class PluginResults(KepShape, frozen=True, kw_only=True):
    """By node and plugin: what Filter said, and the scores."""

    filter: dict[str, dict[str, str]]
    score: dict[str, dict[str, Any]]


class AttemptResult(KepShape, frozen=True, kw_only=True):
    """``ScenarioPodScheduleResult``."""

    step: KepStep
    all_candidate_nodes: tuple[str, ...] | None = None
    all_filtered_nodes: tuple[str, ...] | None = None
    plugin_results: PluginResults | None = None
    cut: CutNodes | None = None

    @property
    def counted(self) -> tuple[int, int]:
        """How many nodes were looked at, and how many fitted."""
        if self.cut is not None:
            return self.cut.candidate_nodes, self.cut.feasible_nodes
        return len(self.all_candidate_nodes or ()), len(self.all_filtered_nodes or ())


NO_RESULT = AttemptResult(step=KepStep(major=0, minor=0))


class PodResult(KepShape, frozen=True, kw_only=True):
    pod: msgspec.Raw
    created_at: KepStep | None = None
    bound_to: str = ""
    bound_at: KepStep | None = None
    message: str = ""
    preempted_by: str = ""
    preempted_at: KepStep | None = None
    schedule_result: list[AttemptResult] | None
    cut: CutAttempts | None = None

    @property
    def last(self) -> AttemptResult:
        """The result of this attempt; those before it stand before it."""
        return self.schedule_result[-1] if self.schedule_result else NO_RESULT


class Event(KepShape, frozen=True, kw_only=True):
    id: str
    step: KepStep
    time: str
    actor: str = ""
    operation: str = ""
    create: KepOperation | None = None
    patch: KepOperation | None = None
    delete: KepOperation | None = None
    done: KepOperation | None = None
    advance: KepOperation | None = None
    pod_scheduled: PodResult | None = None
    pod_unscheduled: PodResult | None = None
    pod_preempted: PodResult | None = None
    outcome: KepOutcome | None = None


SHOWN: dict[type[Fact], str] = {
    ObjectCreated: "create",
    ObjectPatched: "patch",
    ObjectDeleted: "delete",
    Done: "done",
    Advanced: "advance",
    PodScheduled: "pod_scheduled",
    PodUnscheduled: "pod_unscheduled",
    PodPreempted: "pod_preempted",
    OperationOutcome: "outcome",
}
"""Where the body of an event stands that shows a fact."""
OPERATIONS = {body: "".join(map(str.capitalize, body.split("_"))) for body in SHOWN.values()}


# -- facts as events ---------------------------------------------------------------------------


def is_shown(fact: Fact) -> bool:
    """Whether the view has an event for facts of this kind."""
    return type(fact) in SHOWN


def event_of(fact: Fact) -> KepEvent:
    """The event that shows a fact; only for those that `is_shown`."""
    body = SHOWN[type(fact)]
    told: dict[str, Any] = {body: _body(fact)}
    event = Event(
        id=fact.id,
        step=_step(fact.step),
        time=format_micro_time(fact.time),
        actor=fact.actor,
        operation=OPERATIONS[body],
        **told,
    )
    return KepEvent(fact.step, event.operation, msgspec.json.encode(event))


def _body(fact: Any) -> KepOperation | PodResult | KepOutcome:
    match fact:
        case ObjectCreated():
            return KepOperation(operation=_asked(fact), result=_shown(fact.record))
        case ObjectPatched():
            return KepOperation(operation=_asked(fact), result=_shown(fact.record))
        case ObjectDeleted():
            return KepOperation(operation=_asked(fact))
        case PodAttempt():
            return _attempt(fact)
        case PodPreempted():
            at = _step(fact.step)
            return _pod_result(fact, preempted_by=fact.preempted_by, preempted_at=at)
        case OperationOutcome():
            return KepOutcome(
                operation=fact.operation,
                state=fact.state,
                subject=fact.subject,
                message=fact.message,
            )
        case _:
            return KepOperation(operation=fact.operation)


def _asked(fact: ObjectCreated | ObjectPatched | ObjectDeleted) -> msgspec.Raw:
    """The operation, or what it would have been had a controller not done it."""
    if fact.origin is not None:
        return msgspec.Raw(fact.origin.rendered)
    if isinstance(fact, ObjectCreated):
        return msgspec.Raw(msgspec.json.encode({"object": msgspec.Raw(fact.body)}))
    target = fact.target()
    if isinstance(fact, ObjectPatched):
        target |= {"patch": fact.patch.decode(), "patchType": fact.patch_type}
    return msgspec.Raw(msgspec.json.encode(target))


def _step(step: ScenarioStep) -> KepStep:
    return KepStep(major=step.major, minor=step.minor)


def _shown(record: ObjectState) -> msgspec.Raw:
    """The stored bytes without their revision, embedded as they are."""
    return msgspec.Raw(record.unversioned_data)


def _attempt(fact: PodAttempt) -> PodResult:
    listed = [_attempt_result(attempt) for attempt in _listed_attempts(fact)]
    cut = None
    if fact.attempt > len(listed):
        cut = CutAttempts(attempts=fact.attempt, listed=len(listed))
    return _pod_result(fact, message=fact.message, schedule_result=listed, cut=cut)


def _pod_result(fact: PodFact, **told: Any) -> PodResult:
    return PodResult(
        pod=_shown(fact.record),
        created_at=_step(fact.created_at),
        bound_to=fact.node,
        bound_at=None if fact.bound_at is None else _step(fact.bound_at),
        **{"schedule_result": [], **told},
    )


def _listed_attempts(fact: PodAttempt) -> list[PodAttempt]:
    """The newest attempts at the pod, this one last."""
    return list(islice(_back_from(fact), ATTEMPTS_LISTED))[::-1]


def _back_from(fact: PodAttempt) -> Iterator[PodAttempt]:
    attempt: PodAttempt | None = fact
    while attempt is not None:
        yield attempt
        attempt = attempt.previous


def _attempt_result(attempt: PodAttempt) -> AttemptResult:
    step, result = _step(attempt.step), attempt.result
    if result is None:
        return AttemptResult(step=step, cut=_cut(attempt.evaluated, attempt.feasible, 0))
    listed = len(result.candidates)
    return AttemptResult(
        step=step,
        all_candidate_nodes=result.candidates,
        all_filtered_nodes=result.filtered,
        plugin_results=PluginResults(filter=_filters(result), score=_scores(result)),
        cut=_cut(result.examined, result.feasible, listed) if result.is_cut else None,
    )


def _cut(candidates: int, feasible: int, listed: int) -> CutNodes:
    return CutNodes(candidate_nodes=candidates, feasible_nodes=feasible, listed=listed)


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


# -- events as lines of facts ------------------------------------------------------------------


class _KepMetadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""


class _KepObject(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    metadata: _KepMetadata


class _KepPod(msgspec.Struct, frozen=True):
    metadata: _KepMetadata


class _Type(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str


class _KepTarget(msgspec.Struct, frozen=True, rename="camel"):
    type_meta: _Type
    object_meta: _KepMetadata


def read_event(event: Any) -> Event:
    """An event that was decoded already; `msgspec.ValidationError` if it is none."""
    return msgspec.json.decode(orjson.dumps(event), type=Event)


def pod_named(result: PodResult) -> str:
    """Whose result it is."""
    pod = msgspec.json.decode(result.pod, type=_KepPod).metadata
    return f"{pod.namespace or DEFAULT_NAMESPACE}/{pod.name}"


def line_of(event: Event) -> Any | None:
    """The line of the fact that an event shows; None if it has no body that is known here."""
    for kind, name in SHOWN.items():
        body = getattr(event, name)
        if body is not None:
            return line_type(kind)(
                id=event.id,
                step=ScenarioStep(event.step.major, event.step.minor),
                time=parse_time(event.time),
                actor=event.actor,
                role=Role.ENGINE,
                **_members(kind, body),
            )
    return None


def _members(kind: type[Fact], body: Any) -> dict[str, Any]:
    if kind is ObjectDeleted:
        target = msgspec.json.decode(body.operation, type=_KepTarget)
        return {
            "api_version": target.type_meta.api_version,
            "kind": target.type_meta.kind,
            "namespace": target.object_meta.namespace or DEFAULT_NAMESPACE,
            "name": target.object_meta.name,
        }
    if kind in (ObjectCreated, ObjectPatched):
        obj = msgspec.json.decode(body.result, type=_KepObject)
        return {
            "api_version": obj.api_version,
            "kind": obj.kind,
            "namespace": obj.metadata.namespace,
            "name": obj.metadata.name,
            "uid": obj.metadata.uid,
            "object": body.result,
        }
    if kind in (Done, Advanced):
        return {"operation": body.operation}
    if kind is OperationOutcome:
        return msgspec.structs.asdict(body)
    return _pod_members(kind, body)


def _pod_members(kind: type[Fact], body: PodResult) -> dict[str, Any]:
    metadata = msgspec.json.decode(body.pod, type=_KepPod).metadata
    pod = {
        "namespace": metadata.namespace or DEFAULT_NAMESPACE,
        "name": metadata.name,
        "uid": metadata.uid,
        "node": body.bound_to,
        "created_at": UNTOLD_STEP,
    }
    if kind is PodPreempted:
        return {**pod, "preempted_by": body.preempted_by}
    evaluated, feasible = body.last.counted
    return {
        **pod,
        "profile": "",
        "attempt": body.cut.attempts if body.cut else len(body.schedule_result or ()),
        "evaluated": evaluated,
        "feasible": feasible,
        "message": body.message,
    }
