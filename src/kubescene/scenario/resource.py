"""The live Scenario object in the store.

Spec, step status and result are separate fragments that are joined only when somebody reads the
object, so a phase change costs the same at the first step and after a million events.
"""

from collections.abc import Iterable

import orjson

from kubescene.api.encoding import encode
from kubescene.api.kinds import SCENARIO
from kubescene.api.records import Payload, Record
from kubescene.clock import ScenarioStep
from kubescene.scenario.phases import SCHEDULER_STATUS, ScenarioPhase, StepPhase
from kubescene.store import Store
from kubescene.timeline import TimelineEvent
from kubescene.types import JsonObject
from kubescene.version import __version__


class ScenarioResource:
    """Writes the status of one stored Scenario."""

    def __init__(self, store: Store, record: Record) -> None:
        self._store = store
        self._record = record
        obj = store.decoded(record)
        metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        self._metadata = metadata
        self._author_spec: JsonObject = obj.get("spec") or {}
        head = {"apiVersion": SCENARIO.api_version, "kind": SCENARIO.kind}
        self._head = orjson.dumps(head)[:-1] + b',"metadata":{"resourceVersion":"'
        self._tail = b'",' + orjson.dumps(metadata)[1:]
        self._spec = b',"spec":' + orjson.dumps(self._author_spec)
        self._results: list[tuple[bytes, ...]] = []
        self.phase = ScenarioPhase.PENDING
        self.message = ""
        self.step = ScenarioStep(0, 0)
        self.step_phase: StepPhase | None = None
        self.controller = ""

    @property
    def name(self) -> str:
        return self._record.name

    def write(self) -> None:
        """Make the current state visible as a new revision."""
        self._record = self._store.update_payload(self._record, self._payload, phase=self.phase)

    def add_result(self, major: int, events: Iterable[TimelineEvent]) -> None:
        """Publish the events of a major step with the next `write`."""
        opening = f'{"," if self._results else ""}"{major}":['.encode()
        lines = [part for event in events for part in (b",", event.data)]
        self._results.append((opening, *lines[1:], b"]"))

    @property
    def data(self) -> bytes:
        """The whole object as JSON, without its revision."""
        return self._record.unversioned_data

    def header(self) -> JsonObject:
        """The object without its timeline, however long that is."""
        result = {"simulatorVersion": __version__}
        return {
            "apiVersion": SCENARIO.api_version,
            "kind": SCENARIO.kind,
            "metadata": self._metadata,
            "spec": self._author_spec,
            "status": {**self._status(), "scenarioResult": result},
        }

    def _payload(self, revision: int) -> Payload:
        return (
            self._head,
            str(revision).encode(),
            self._tail,
            self._spec,
            b',"status":',
            encode(self._status())[:-1],
            b',"scenarioResult":{"simulatorVersion":"' + __version__.encode() + b'","timeline":{',
            *self._results,
            b"}}}}",
        )

    def _status(self) -> JsonObject:
        status: JsonObject = {"phase": str(self.phase)}
        if self.message:
            status["message"] = self.message
        if self.step_phase is not None:
            status["schedulerStatus"] = SCHEDULER_STATUS[self.step_phase]
            status["stepStatus"] = {
                "step": self.step.to_dict(),
                "phase": str(self.step_phase),
                "runningSimulationController": self.controller,
            }
        return status
