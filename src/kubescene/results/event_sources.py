"""A Scenario object with its timeline: KEP-140's events, read as what they tell.

The events say less than the facts behind them. A deletion counts from when it was accepted, and
profiles and reasons of attempts are not known.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubescene.clock import parse_duration, parse_time
from kubescene.errors import ConfigurationError
from kubescene.results.entries import Entries
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict, qualified
from kubescene.results.ledger import Ledger
from kubescene.results.sources import RunSource
from kubescene.timeline import (
    CustomFact,
    Fact,
    Outcome,
    PodAttempt,
    PodScheduled,
    PodUnscheduled,
)
from kubescene.timeline.kep import PASSED, PodResult, line_of, pod_named, read_event
from kubescene.timeline.lines import line_type
from kubescene.types import JsonObject

NO_TIMELINE = (
    "its status has no timeline: it has not been played, or its results strategy left it out; name "
    "the run directory, or the server that has played it"
)
EARLY = (
    "its events do not tell when a deleted pod had ended (terminateDelay): it counts as gone from "
    "its deletion on, and means over time come out too low; the run directory knows more"
)
ENDLESS = (
    "its events do not tell when pods ended by themselves (run times, activeDeadlineSeconds): they "
    "count as bound until they are deleted, and take room; the run directory knows more"
)
UNTOLD = (
    "no event has made these nodes, which pods are on: {}; if they were there before the scenario "
    "(kubescene.dev/keep), the run directory, or the server that played it, has them"
)
ENDING = (
    b'"kubescene.dev/run-time"',
    b'"kubescene.dev/oom-after"',
    b'"kubescene.dev/usage"',
    b'"kubescene.dev/containers"',
    b'"kubescene.dev/liveness-probe"',
    b'"kubescene.dev/startup-probe"',
    b'"activeDeadlineSeconds"',
)
"""What pods that end by themselves say, beside `spec.simulation.workloads`."""
SHOWN = 5


class ScenarioResultSource(RunSource):
    """``status.scenarioResult.timeline`` of a Scenario."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        metadata, status = scenario.get("metadata") or {}, scenario.get("status") or {}
        result = status.get("scenarioResult") or {}
        self.scenario = str(metadata.get("name", ""))
        self.place = f"scenario {self.scenario}"
        if scenario.get("kind") != "Scenario":
            raise ConfigurationError(f"a Scenario is expected, not a {scenario.get('kind')!r}")
        if not isinstance(result.get("timeline"), Mapping):
            raise ConfigurationError(f"{self.place}: {NO_TIMELINE}")
        self._status, self._timeline = status, result["timeline"]
        self._spec: JsonObject = dict(scenario.get("spec") or {})
        self.version = str(result.get("simulatorVersion", ""))
        self.seed = int((self._spec.get("simulation") or {}).get("seed") or 0)

    @property
    def phase(self) -> str:
        return str(self._status.get("phase", ""))

    @property
    def complete(self) -> bool:
        return self.phase in ("Succeeded", "Failed", "Paused")

    @property
    def warnings(self) -> tuple[str, ...]:
        found = [EARLY] if self._ends_pods_later() else []
        if self._ends_pods_unseen():
            found.append(ENDLESS)
        if strangers := self._strange_nodes():
            found.append(UNTOLD.format(", ".join(strangers[:SHOWN])))
        return tuple(f"{self.place}: {each}" for each in found)

    def _strange_nodes(self) -> list[str]:
        """Nodes that pods are on and that no event has made."""
        made = {node.name for node in self.ledger.nodes}
        return sorted({pod.node for pod in self.ledger.pods if pod.node} - made)

    def _ends_pods_later(self) -> bool:
        """Whether pods that were deleted took room for a while, which no event tells."""
        kubelet = (self._spec.get("simulation") or {}).get("kubelet") or {}
        delay = kubelet.get("terminateDelay")
        return bool(delay and parse_duration(delay)) and any("delete" in e for e in self.events())

    def _ends_pods_unseen(self) -> bool:
        """Whether pods may have ended without an event that tells it."""
        if (self._spec.get("simulation") or {}).get("workloads"):
            return True
        text = msgspec.json.encode(self._timeline)
        return any(each in text for each in ENDING)

    @property
    def spec(self) -> JsonObject | None:
        return self._spec

    def events(self) -> Iterator[JsonObject]:
        """KEP-140's events, in order."""
        for major in sorted(self._timeline, key=int):
            yield from self._timeline[major]

    def facts(self) -> Iterator[Fact]:
        raise ConfigurationError(
            f"{self.place} holds KEP-140's events, not facts: iterate over its events()"
        )

    def custom_facts(self) -> Iterator[CustomFact]:
        return iter(())  # KEP-140 has no events for them

    def attempts(self) -> Iterator[PodAttempt]:
        kinds = (line_type(PodScheduled), line_type(PodUnscheduled))
        return (line for _, line in self._lines() if isinstance(line, kinds))

    def _lines(self) -> Iterator[tuple[JsonObject, Any]]:
        """The events, with the lines of the facts that they show."""
        for event in self.events():
            try:
                line = line_of(read_event(event))
            except (TypeError, ValueError) as error:
                raise self._strange(event, error) from error
            if line is not None:
                yield event, line

    def _strange(self, event: Any, error: Exception) -> ConfigurationError:
        name = event.get("id") if isinstance(event, Mapping) else event
        why = f"{type(error).__name__}: {error}"
        return ConfigurationError(f"{self.place}: event {name!r} is not as KEP-140 has it: {why}")

    def _time_passed(self) -> int:
        """Until when, at least: time goes on after an advance, whether or not anything happens."""
        ends = (
            parse_time(event["time"]) + parse_duration(event["advance"]["operation"]["duration"])
            for event in self.events()
            if "advance" in event
        )
        return max(ends, default=0)

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        name = qualified(pod)
        events = map(read_event, self.events())
        bodies = (each.pod_scheduled or each.pod_unscheduled for each in events)
        return [explained(name, body) for body in bodies if body and pod_named(body) == name]

    def _outcomes(self) -> tuple[Outcome, ...]:
        """What came of the expectations, which stands beside the timeline."""
        try:
            return msgspec.convert(self._status.get("expectations") or (), tuple[Outcome, ...])
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{self.place}: status.expectations: {error}") from error

    def _read(self) -> Ledger:
        entries = Entries()
        for event, line in self._lines():
            try:
                entries.add(line)
            except (msgspec.DecodeError, ValueError) as error:
                raise self._strange(event, error) from error
        ledger = entries.ledger
        ledger.wait_until(self._time_passed())
        ledger.close()
        ledger.expectations = self._outcomes()
        ledger.end(self.phase, str(self._status.get("message", "")))
        return ledger


def explained(pod: str, body: PodResult) -> ExplainedAttempt:
    """An attempt with what its event says of the nodes."""
    result = body.last
    evaluated, feasible = result.counted
    plugins = result.plugin_results
    scores = {} if plugins is None else plugins.score
    return ExplainedAttempt(
        pod=pod,
        step=f"{result.step.major}.{result.step.minor}",
        node=body.bound_to,
        message=body.message,
        plugins=tuple(next(iter(scores.values()), {})),
        verdicts=() if plugins is None else tuple(verdicts(plugins.filter, scores)),
        evaluated=evaluated,
        feasible=feasible,
        explained=plugins is not None,
    )


def verdicts(filters: JsonObject, scores: JsonObject) -> list[NodeVerdict]:
    """The best first, then those without a score, then the rejected."""
    found = []
    for node, said in filters.items():
        plugin, why = next(((p, w) for p, w in said.items() if w != PASSED), ("", ""))
        given = tuple(each["finalScore"] for each in scores.get(node, {}).values())
        total = sum(given) if given else None
        found.append(NodeVerdict(node, plugin, why, given, total))
    return sorted(found, key=lambda each: (bool(each.rejected_by), -(each.total or 0)))
