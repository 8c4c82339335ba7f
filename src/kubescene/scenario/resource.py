"""The live Scenario object in the store.

The spec is its author's, the status is the engine's. A phase write takes the record as it is now,
with whatever its author has changed meanwhile, and replaces the status alone.

Spec, step status and result are separate parts that are joined only when somebody reads the object,
and the result is a log that only grows plus the length that belongs to this revision: a phase
change costs the same at the first step and after a million events.
"""

from typing import SupportsBytes

import orjson

from kubescene.api.encoding import encode
from kubescene.api.kinds import SCENARIO
from kubescene.api.parts import Payload
from kubescene.api.records import Record
from kubescene.clock import ScenarioStep
from kubescene.errors import ScenarioGoneError
from kubescene.scenario.phases import SCHEDULER_STATUS, ScenarioPhase, StepPhase
from kubescene.store import Store
from kubescene.store.store import replaced
from kubescene.types import JsonObject
from kubescene.version import __version__

NO_TIMELINE = b"{}"
RESULT_OPENS = b',"scenarioResult":{"simulatorVersion":"%s","timeline":' % __version__.encode()
RESULT_CLOSES = b"}}}"


class ScenarioResource:
    """Writes the status of one stored Scenario."""

    def __init__(self, store: Store, record: Record) -> None:
        self._store = store
        self._record = record
        self._take_over(record)
        self.phase = ScenarioPhase.PENDING
        self.message = ""
        self.step = ScenarioStep(0, 0)
        self.step_phase: StepPhase | None = None
        self.controller = ""
        self.timeline: SupportsBytes = NO_TIMELINE

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def exists(self) -> bool:
        return self._current() is not None

    @property
    def object(self) -> JsonObject:
        """The Scenario as its author last wrote it, without status."""
        current = self._current()
        if current is not None and current is not self._record and not self._is_mine(current):
            self._take_over(current)
        return {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": self._metadata,
            "spec": self._author_spec,
        }

    def write(self) -> None:
        """Make the current status visible as a new revision, if anybody may be looking."""
        record: Record = self._record
        if self._store.defer_payload(record, self._payload, phase=self.phase):
            return
        current = self._current()
        if current is None:
            raise ScenarioGoneError(f"scenario {self.name!r} was deleted while it was played")
        if not self._is_mine(current):
            self._take_over(current)
        if not self._store.defer_payload(current, self._payload, phase=self.phase):
            current = self._store.update_payload(current, self._payload, phase=self.phase)
        self._record = current

    def _current(self) -> Record | None:
        """The stored object; None if it is gone, even if another one has its name."""
        record: Record = self._record
        found = self._store.get(record.resource, record.namespace, record.name)
        return found if found is not None and found.uid == record.uid else None

    def _is_mine(self, record: Record) -> bool:
        """Whether the engine wrote it: then the spec is the one that is known."""
        payload = record.payload
        return isinstance(payload, tuple) and any(part is self._spec for part in payload)

    @property
    def data(self) -> bytes:
        """The whole object as JSON, without its revision."""
        return self.record.unversioned_data

    @property
    def record(self) -> Record:
        """The object as it is stored, or was when it was deleted."""
        last = self._record
        return self._current() or replaced(last, last.revision, self._payload, self.phase)

    def header(self) -> JsonObject:
        """The object without its timeline, however long that is."""
        result = {"simulatorVersion": __version__}
        return {**self.object, "status": {**self._status(), "scenarioResult": result}}

    def _take_over(self, record: Record) -> None:
        """Go on from a record that somebody else wrote."""
        obj = self._store.decoded(record)
        self._record = record
        self._metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        self._author_spec: JsonObject = obj.get("spec") or {}
        head = {"apiVersion": SCENARIO.api_version, "kind": SCENARIO.kind}
        self._head = orjson.dumps(head)[:-1] + b',"metadata":{"resourceVersion":"'
        self._tail = b'",' + orjson.dumps(self._metadata)[1:]
        self._spec = b',"spec":' + orjson.dumps(self._author_spec) + b',"status":'

    def _payload(self, revision: int) -> Payload:
        status = StatusPart(self.phase, self.message, self.step, self.step_phase, self.controller)
        revision_text = str(revision).encode()
        spec = (self._head, revision_text, self._tail, self._spec)
        return (*spec, status, RESULT_OPENS, self.timeline, RESULT_CLOSES)

    def _status(self) -> JsonObject:
        return status_of(self.phase, self.message, self.step, self.step_phase, self.controller)


class StatusPart:
    """``status`` up to its result, encoded when somebody reads it."""

    __slots__ = ("_state",)

    def __init__(
        self,
        phase: ScenarioPhase,
        message: str,
        step: ScenarioStep,
        step_phase: StepPhase | None,
        controller: str,
    ) -> None:
        self._state = (phase, message, step, step_phase, controller)

    def __bytes__(self) -> bytes:
        return encode(status_of(*self._state))[:-1]


def status_of(
    phase: ScenarioPhase,
    message: str,
    step: ScenarioStep,
    step_phase: StepPhase | None,
    controller: str,
) -> JsonObject:
    """``status`` without its result."""
    status: JsonObject = {"phase": str(phase)}
    if message:
        status["message"] = message
    if step_phase is not None:
        status["schedulerStatus"] = SCHEDULER_STATUS[step_phase]
        status["stepStatus"] = {
            "step": step.to_dict(),
            "phase": str(step_phase),
            "runningSimulationController": controller,
        }
    return status
