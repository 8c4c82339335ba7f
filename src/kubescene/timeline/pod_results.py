"""The ``PodResult`` of KEP-140's first draft: a pod, where and when it was bound, and why.

``scheduleResult`` is bounded: at most `ATTEMPTS_LISTED` attempts and `NODES_LISTED` nodes each,
with a ``cut`` marker where something was left out. The whole matrix is in the run's side file.
"""

from dataclasses import dataclass, field
from typing import Any

import orjson

from kubescene.api.encoding import encode
from kubescene.api.kinds import POD
from kubescene.api.records import cut_revision
from kubescene.clock import ScenarioStep
from kubescene.timeline.attempts import Explanation, SchedulingAttempt
from kubescene.timeline.instruments import ObjectWrite

ATTEMPTS_LISTED = 3
NODES_LISTED = 16
PASSED = "passed"


@dataclass(slots=True)
class PodHistory:
    """What the recorder remembers of a pod between its attempts."""

    created_at: ScenarioStep
    bound_at: ScenarioStep | None = None
    attempts: int = 0
    results: list[orjson.Fragment] = field(default_factory=list)


class PodHistories:
    """Histories by uid. Attempts are kept until the pod is bound, its steps as long as it runs."""

    def __init__(self) -> None:
        self._by_uid: dict[str, PodHistory] = {}

    def observe(self, write: ObjectWrite, step: ScenarioStep) -> None:
        if write.gvk != POD:
            return
        if write.verb == "create" and not write.subresource:
            self._by_uid[write.record.uid] = PodHistory(step)
        elif write.verb == "bind":
            self._of(write.record.uid, step).bound_at = step
        elif write.verb == "delete" and not write.record.node:
            self._by_uid.pop(write.record.uid, None)

    def attempted(self, attempt: SchedulingAttempt, step: ScenarioStep) -> dict[str, Any]:
        """Note the attempt and return the PodResult for its event."""
        history = self._of(attempt.pod.uid, step)
        history.attempts += 1
        encoded = encode(schedule_result(attempt, step))
        history.results = [*history.results, orjson.Fragment(encoded)][-ATTEMPTS_LISTED:]
        result = pod_result(attempt, history)
        if attempt.node:
            # Told in full; what remains is remembered for a preemption.
            history.results = []
        return result

    def _of(self, uid: str, step: ScenarioStep) -> PodHistory:
        history = self._by_uid.get(uid)
        if history is None:
            history = self._by_uid[uid] = PodHistory(step)
        return history


def pod_result(attempt: SchedulingAttempt, history: PodHistory) -> dict[str, Any]:
    result: dict[str, Any] = {
        "pod": orjson.Fragment(cut_revision(attempt.pod.data)),
        "createdAt": history.created_at.to_dict(),
    }
    if attempt.node:
        result["boundTo"] = attempt.node
    if history.bound_at is not None:
        result["boundAt"] = history.bound_at.to_dict()
    if attempt.message:
        result["message"] = attempt.message
    result["scheduleResult"] = history.results
    if history.attempts > len(history.results):
        result["cut"] = {"attempts": history.attempts, "listed": len(history.results)}
    return result


def schedule_result(attempt: SchedulingAttempt, step: ScenarioStep) -> dict[str, Any]:
    """``ScenarioPodScheduleResult`` of one attempt."""
    result: dict[str, Any] = {"step": step.to_dict()}
    explanation = attempt.explanation
    if explanation is None:
        result["cut"] = {
            "candidateNodes": attempt.evaluated,
            "feasibleNodes": attempt.feasible,
            "listed": 0,
        }
        return result
    listed = listed_nodes(explanation, attempt.node)
    names = explanation.nodes
    feasible = list(explanation.feasible[:NODES_LISTED])
    result["allCandidateNodes"] = [names[index] for index in listed]
    result["allFilteredNodes"] = [names[index] for index in feasible]
    result["pluginResults"] = {
        "filter": filter_results(explanation, listed),
        "score": score_results(explanation, listed),
    }
    if len(explanation.examined) > len(listed):
        result["cut"] = {
            "candidateNodes": len(explanation.examined),
            "feasibleNodes": len(explanation.feasible),
            "listed": len(listed),
        }
    return result


def listed_nodes(explanation: Explanation, chosen: str) -> list[int]:
    """The first nodes examined, the chosen one always among them."""
    listed = [int(index) for index in explanation.examined[:NODES_LISTED]]
    if chosen:
        chosen_index = next(i for i in explanation.feasible if explanation.nodes[i] == chosen)
        if chosen_index not in listed:
            listed[-1] = int(chosen_index)
    return listed


def filter_results(explanation: Explanation, listed: list[int]) -> dict[str, dict[str, str]]:
    """Per node: each filter plugin up to the first that said no."""
    rejected: dict[int, tuple[str, str]] = {}
    wanted = set(listed)
    for group in explanation.filters:
        for index in group.nodes:
            if index in wanted:
                rejected[int(index)] = (group.plugin, ", ".join(group.reasons))
    results = {}
    for index in listed:
        verdicts: dict[str, str] = {}
        plugin_that_rejected, reasons = rejected.get(index, ("", ""))
        for plugin in explanation.filter_plugins:
            if plugin == plugin_that_rejected:
                break
            verdicts[plugin] = PASSED
        if plugin_that_rejected:
            verdicts[plugin_that_rejected] = reasons
        results[explanation.nodes[index]] = verdicts
    return results


def score_results(explanation: Explanation, listed: list[int]) -> dict[str, dict[str, Any]]:
    """Per scored node: raw, normalised and weighted score of each plugin."""
    position = {int(index): place for place, index in enumerate(explanation.scored)}
    results = {}
    for index in listed:
        place = position.get(index)
        if place is not None:
            results[explanation.nodes[index]] = {
                column.plugin: {
                    "rawScore": int(column.raw[place]),
                    "normalizedScore": int(column.normalized[place]),
                    "finalScore": int(column.normalized[place]) * column.weight,
                }
                for column in explanation.scores
            }
    return results
