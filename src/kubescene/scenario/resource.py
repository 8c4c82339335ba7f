"""The live Scenario object in the store.

The spec is its author's, the status is the engine's. A phase write takes the record as it is now,
with whatever its author has changed meanwhile, and replaces the status alone.

Spec, step status and result are separate parts that are joined only when somebody reads the object,
and the result is a log that only grows plus the length that belongs to this revision: a phase
change costs the same at the first step and after a million events.
"""

from collections.abc import Sized
from typing import Any, NamedTuple, SupportsBytes

import orjson
from msgspec import to_builtins

from kubescene.api.kinds import SCENARIO
from kubescene.api.records import Composite, Payload, Record
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.text.encoding import encode
from kubescene.clock import ScenarioStep
from kubescene.errors import ScenarioGoneError
from kubescene.scenario.edits import IgnoredOperation
from kubescene.scenario.outside import OutsideStatus
from kubescene.scenario.phases import DRAFT_STEP_PHASE, SCHEDULER_STATUS, ScenarioPhase, StepPhase
from kubescene.store import Store
from kubescene.timeline import Outcome
from kubescene.timeline.views import KepTimeline
from kubescene.types import JsonObject
from kubescene.version import __version__

NO_TIMELINE = b"{}"
HEAD = orjson.dumps({"apiVersion": SCENARIO.api_version, "kind": SCENARIO.kind})[:-1]
OPENS = HEAD + b',"metadata":{"resourceVersion":"'
STATUS_OPENS = b',"status":'
RESULT_OPENS = b',"scenarioResult":{"simulatorVersion":"%s","timeline":' % __version__.encode()
RESULT_CLOSES = b"}}}"
LARGE_TIMELINE = 1000
"""From so many facts on, joining the object takes longer than an event loop should be held."""


class ToldStatus:
    """What the engine says of a Scenario until it is written, wherever that is."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.phase = ScenarioPhase.PENDING
        self.message = ""
        self.step = ScenarioStep(0, 0)
        self.step_phase: StepPhase | None = None
        self.controller = ""
        self.ignored: tuple[IgnoredOperation, ...] = ()
        self.expectations: tuple[Outcome, ...] = ()
        self.outside: tuple[OutsideStatus, ...] = ()
        self.timeline: SupportsBytes = NO_TIMELINE
        self._is_draft = False
        """Whether its author wrote it in the form of the KEP's drafts, with ``events``."""

    def recall(self, status: JsonObject) -> None:
        """Go on from what an earlier engine has said: how far it came, and what happened."""
        said = status.get("stepStatus")
        if isinstance(said, dict) and (step := step_in(said)) is not None:
            self.step, self.step_phase = step, as_step_phase(said.get("phase"))
            self.controller = str(said.get("runningSimulationController") or "")
        result = status.get("scenarioResult")
        timeline = result.get("timeline") if isinstance(result, dict) else None
        self.timeline = orjson.dumps(timeline) if isinstance(timeline, dict) else NO_TIMELINE

    @property
    def is_unseen(self) -> bool:
        """Whether nobody looks at it for now; nobody knows where it is somebody else's."""
        return False

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def uid(self) -> str:
        return self._record.uid

    def _state(self) -> "ScenarioState":
        return ScenarioState(
            self.phase,
            self.message,
            self.step,
            self.step_phase,
            self.controller,
            self.ignored,
            self.expectations,
            self.outside,
            self._is_draft,
        )

    def _status(self) -> JsonObject:
        return status_of(self._state())


class ScenarioResource(ToldStatus):
    """Writes the status of one stored Scenario."""

    def __init__(self, store: Store, record: Record) -> None:
        super().__init__(record)
        self._store = store
        self._deferred: Rebuilt | None = None
        self._author_spec: JsonObject = {}
        self._take_over(record)

    @property
    def is_unseen(self) -> bool:
        return self._deferred is not None and self._deferred.waits

    @property
    def exists(self) -> bool:
        return self._store.is_newest(self._record) or self._current() is not None

    @property
    def object(self) -> JsonObject:
        """The Scenario as its author last wrote it, without status."""
        if not self._store.is_newest(self._record):
            current = self._current()
            if current is not None and not self.is_mine(current):
                self._take_over(current)
        return {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": self._metadata,
            "spec": self._author_spec,
        }

    def write(self) -> None:
        """Make the current status visible as a new revision, if anybody may be looking."""
        deferred = self._deferred
        if deferred is not None and deferred.waits:
            deferred.phase = self.phase
        elif not self._defer(self._record):
            self._write()

    def _write(self) -> None:
        current = self._current()
        if current is None:
            raise ScenarioGoneError(f"scenario {self.name!r} was deleted while it was played")
        if not self.is_mine(current):
            self._take_over(current)
        if not self._defer(current):
            current = self._store.put(current.resource, self._rebuilt(current))
        self._record = current

    def _defer(self, record: Record) -> bool:
        """Let the status be written when somebody reads it; False if somebody does already."""
        draft = self._rebuilt(record)
        self._deferred = draft if self._store.defer(draft) else None
        return self._deferred is not None

    def _rebuilt(self, record: Record) -> Rebuilt:
        return Rebuilt(record, self._payload, self.phase)

    def _current(self) -> Record | None:
        """The stored object; None if it is gone, even if another one has its name."""
        record: Record = self._record
        found = self._store.get(record.resource, record.namespace, record.name)
        return found if found is not None and found.uid == record.uid else None

    def is_mine(self, record: Record) -> bool:
        """Whether the engine wrote it: then the spec is the one that is known."""
        return record.holds(self._spec)

    @property
    def data(self) -> bytes:
        """The whole object as JSON, without its revision."""
        return self.record.unversioned_data

    @property
    def record(self) -> Record:
        """The object as it is stored, or was when it was deleted."""
        last = self._record
        return self._current() or self._rebuilt(last).at(last.revision)

    def header(self) -> JsonObject:
        """The object without its timeline, however long that is, and who wrote which field when."""
        return headed(self.object, self._status())

    def _take_over(self, record: Record) -> None:
        """Go on from a record that somebody else wrote."""
        obj = self._store.decoded(record)
        self._record = record
        self._metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        spec: JsonObject = obj.get("spec") or {}
        if spec != self._author_spec:
            self._author_spec = spec
            self._is_draft = bool(spec.get("events"))
        self._tail = tail_of(self._metadata)
        self._spec = encoded_spec(record) or spec_of(self._author_spec)

    def _payload(self, revision: int) -> Payload:
        # Parts that stay the same are the same objects: the history counts only the others.
        return ScenarioPayload(
            (
                OPENS,
                str(revision).encode(),
                self._tail,
                self._spec,
                StatusPart(self._state()),
                RESULT_OPENS,
                self.timeline,
                RESULT_CLOSES,
            )
        )


class ScenarioPayload(Composite):
    """The parts of a Scenario; its timeline is the large one."""

    @property
    def is_large(self) -> bool:
        timeline = self[6]
        return isinstance(timeline, Sized) and len(timeline) > LARGE_TIMELINE

    @property
    def left_size(self) -> int:
        timeline = self[6]
        return timeline.packed_size if isinstance(timeline, KepTimeline) else 0

    @property
    def outline(self) -> bytes:
        opens, revision, tail, spec, status = map(bytes_of, self[:5])
        return b"".join((opens, revision, tail, spec, status, b"}}"))

    @property
    def essence(self) -> bytes:
        opens, revision, tail, _, status = map(bytes_of, self[:5])
        return b"".join((opens, revision, tail, STATUS_OPENS, status, b"}}"))

    def succeed(self, obj: JsonObject, revision: int) -> "ScenarioPayload | None":
        if obj.get("status") != orjson.loads(self.essence)["status"]:
            return None
        metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        author = (tail_of(metadata), spec_of(obj.get("spec") or {}))
        return ScenarioPayload((self[0], str(revision).encode(), *author, *self[4:]))


def headed(scenario: JsonObject, status: JsonObject) -> JsonObject:
    """A Scenario as results show it: no timeline, and nothing of who wrote a field and when."""
    metadata = {k: v for k, v in scenario["metadata"].items() if k != "managedFields"}
    result = {"simulatorVersion": __version__}
    return {**scenario, "metadata": metadata, "status": {**status, "scenarioResult": result}}


def tail_of(metadata: JsonObject) -> bytes:
    """Metadata after the revision."""
    return b'",' + orjson.dumps(metadata)[1:]


def spec_of(spec: JsonObject) -> bytes:
    """The spec, up to where the status begins."""
    return b',"spec":' + orjson.dumps(spec) + STATUS_OPENS


def encoded_spec(record: Record) -> bytes:
    """The same, if the store has it encoded already: a spec may be large."""
    spec = record.spec_key
    return b"" if spec is None else spec + STATUS_OPENS


def step_in(said: JsonObject) -> ScenarioStep | None:
    """The step of a ``stepStatus`` that anybody may have written."""
    step = said.get("step")
    numbers = [step.get("major"), step.get("minor")] if isinstance(step, dict) else []
    known = [each for each in numbers if isinstance(each, int) and not isinstance(each, bool)]
    return ScenarioStep(*known) if len(known) == 2 else None


def as_step_phase(said: object) -> StepPhase:
    return next((phase for phase in StepPhase if phase == said), StepPhase.OPERATING)


def bytes_of(part: Any) -> bytes:
    """A part as it is, or as it encodes itself."""
    return part if type(part) is bytes else bytes(part)


class ScenarioState(NamedTuple):
    """What the engine says in ``status`` beside its result."""

    phase: ScenarioPhase
    message: str
    step: ScenarioStep
    step_phase: StepPhase | None
    controller: str
    ignored: tuple[IgnoredOperation, ...]
    expectations: tuple[Outcome, ...]
    outside: tuple[OutsideStatus, ...] = ()
    is_draft: bool = False


class StatusPart:
    """``status`` up to its result, encoded when somebody reads it."""

    __slots__ = ("_state",)

    def __init__(self, state: ScenarioState) -> None:
        self._state = state

    def __bytes__(self) -> bytes:
        return encode(status_of(self._state))[:-1]


def status_of(state: ScenarioState) -> JsonObject:
    """``status`` without its result."""
    status: JsonObject = {"phase": str(state.phase)}
    if state.message:
        status["message"] = state.message
    if state.step_phase is not None:
        status["schedulerStatus"] = SCHEDULER_STATUS[state.step_phase]
        status["stepStatus"] = {
            "step": state.step.to_dict(),
            "current": str(state.step),
            "phase": str(state.step_phase),
            "runningSimulationController": state.controller,
        }
        if state.is_draft:
            status["step"] = state.step.major
            status["stepPhase"] = DRAFT_STEP_PHASE[state.step_phase]
    if state.ignored:
        status["ignoredOperations"] = [each._asdict() for each in state.ignored]
    if state.expectations:
        status["expectations"] = to_builtins(state.expectations)
    if state.outside:
        status["outside"] = [each.to_dict() for each in state.outside]
    return status
