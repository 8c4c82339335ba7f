"""The side file of explanations: every attempt, every node and plugin, in compact columns.

The first line names the schema; then comes one JSON line per attempt. Node names are written once
per node list: a line ``{"nodes": [...]}`` stands before the first attempt that refers to it, and
later indexes point into the newest such line. How columns are made short is said in `compacting`;
version 1 wrote all of them out, which readers of version 2 understand. An attempt of which only an
extender, a wait or a traceback is told has a line without nodes and plugins.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import orjson

from kubescene.api.text.encoding import encode
from kubescene.clock import ScenarioStep
from kubescene.errors import RecorderError
from kubescene.instruments import Instrument, StepPhaseChange
from kubescene.instruments.attempts import SchedulingAttempt, as_rows
from kubescene.instruments.score_columns import columns_encoded
from kubescene.timeline.compacting import compacted

SCHEMA = "kubescene.dev/explanations"
VERSION = 2
READ_VERSIONS = (1, 2)
FIRST_LINES = {each: encode({"schema": SCHEMA, "version": each}) for each in READ_VERSIONS}
FIRST_LINE = FIRST_LINES[VERSION]


class WrittenAttempt(NamedTuple):
    """The line about an attempt, made when somebody reads it.

    What it refers to is never changed: rows and columns of the attempt's own.
    """

    step: ScenarioStep
    attempt: SchedulingAttempt

    def __bytes__(self) -> bytes:
        attempt, explanation = self.attempt, self.attempt.explanation
        outcome = {"node": attempt.node} if attempt.node else {"message": attempt.message}
        row = {"pod": name_of(attempt), "step": self.step.to_dict(), **outcome}
        if explanation is not None:
            extended = bool(attempt.extenders)
            row.update(compacted(explanation, extended=extended))
        if attempt.preemption is not None:
            row["preemption"] = orjson.Fragment(msgspec.json.encode(attempt.preemption))
        if attempt.extenders:
            row["extenders"] = as_rows(attempt.extenders)
        if attempt.waits:
            row["waits"] = as_rows(attempt.waits)
        if attempt.traceback:
            row["traceback"] = attempt.traceback
        return columns_encoded(row)


Line: TypeAlias = bytes | WrittenAttempt
Sink: TypeAlias = Callable[[str, Line], None]
"""Takes a line and the pod it is about, which is empty for a list of nodes."""


def name_of(attempt: SchedulingAttempt) -> str:
    return f"{attempt.pod.namespace}/{attempt.pod.name}"


class ExplanationRecorder(Instrument):
    """Hands every line to ``sink`` as it comes and keeps none."""

    in_lane = True

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._step = ScenarioStep(0, 0)
        self._nodes: Sequence[str] | None = None

    def phase_changed(self, change: StepPhaseChange) -> None:
        self._step = change.step

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        explanation = attempt.explanation
        if explanation is None and not (attempt.traceback or attempt.extenders or attempt.waits):
            return
        if explanation is not None and explanation.nodes is not self._nodes:
            self._nodes = explanation.nodes
            self._write("", encode({"nodes": list(explanation.nodes)}))
        self._write(name_of(attempt), WrittenAttempt(self._step, attempt))

    def _write(self, pod: str, line: Line) -> None:
        try:
            self._sink(pod, line)
        except OSError as error:
            raise RecorderError(
                f"the explanations could not be written at step {self._step}: {error}"
            ) from error
