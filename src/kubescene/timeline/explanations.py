"""The side file of explanations: every attempt, every node and plugin, in compact columns.

One JSON line per attempt. Node names are written once per node list: a line ``{"nodes": [...]}``
stands before the first attempt that refers to it, and later indexes point into the newest such
line.
"""

from collections.abc import Sequence
from enum import StrEnum

from kubescene.api.encoding import encode
from kubescene.clock import ScenarioStep
from kubescene.timeline.attempts import SchedulingAttempt
from kubescene.timeline.instruments import Instrument, StepPhaseChange

AUTO_FULL_NODES = 200
"""``Auto`` explains every attempt up to this many nodes, beyond it only failures."""


class Explain(StrEnum):
    """How much a scheduler explains."""

    AUTO = "Auto"
    FULL = "Full"
    FAILURES = "Failures"
    OFF = "Off"

    def wanted(self, *, failed: bool, nodes: int) -> bool:
        if self is Explain.AUTO:
            return failed or nodes <= AUTO_FULL_NODES
        return self is Explain.FULL or (self is Explain.FAILURES and failed)


class ExplanationRecorder(Instrument):
    """Collects the lines of ``explanations.jsonl``."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._step = ScenarioStep(0, 0)
        self._nodes: Sequence[str] | None = None

    def phase_changed(self, change: StepPhaseChange) -> None:
        self._step = change.step

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        explanation = attempt.explanation
        if explanation is None:
            return
        if explanation.nodes is not self._nodes:
            self._nodes = explanation.nodes
            self.lines.append(encode({"nodes": list(explanation.nodes)}))
        outcome = {"node": attempt.node} if attempt.node else {"message": attempt.message}
        self.lines.append(
            encode(
                {
                    "pod": f"{attempt.pod.namespace}/{attempt.pod.name}",
                    "step": self._step.to_dict(),
                    **outcome,
                    **explanation.to_dict(),
                }
            )
        )
