"""A Scenario object with its timeline: KEP-140's events, read as what they tell.

The events say less than the facts behind them. A deletion counts from when it was accepted, and
profiles and reasons of attempts are not known.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import orjson

from kubescene.clock import ScenarioStep, parse_duration, parse_time
from kubescene.errors import ConfigurationError
from kubescene.results import line_entries as lines
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict, qualified
from kubescene.results.ledger import Ledger
from kubescene.results.line_entries import Known, LineEntries
from kubescene.results.sources import AttemptTold, RunSource
from kubescene.timeline import CustomFact, Fact, Outcome
from kubescene.timeline.kep import PASSED
from kubescene.types import JsonObject

NO_TIMELINE = (
    "its status has no timeline: it has not been played, or its results strategy left it out; name "
    "the run directory, or the server that has played it"
)
EARLY = (
    "its events do not tell when a deleted pod had ended (terminateDelay): it counts as gone from "
    "its deletion on, and means over time come out too low; the run directory knows more"
)
UNTOLD = (
    "no event has made these nodes, which pods are on: {}; if they were there before the scenario "
    "(kubescene.dev/keep), the run directory, or the server that played it, has them"
)
SHOWN = 5
DEFAULT_NAMESPACE = "default"


class EventSource(RunSource):
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

    def attempts(self) -> Iterator[AttemptTold]:
        told = (each for event in self.events() for each in self._checked(event))
        return (each for each in told if isinstance(each, lines.PodScheduled))

    def _checked(self, event: JsonObject) -> list[Known]:
        try:
            return list(told_by(event))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._strange(event, error) from error

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
        bodies = (each.get("podScheduled") or each.get("podUnscheduled") for each in self.events())
        return [explained(name, body) for body in bodies if body and pod_named(body) == name]

    def _outcomes(self) -> tuple[Outcome, ...]:
        """What came of the expectations, which stands beside the timeline."""
        try:
            return msgspec.convert(self._status.get("expectations") or (), tuple[Outcome, ...])
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{self.place}: status.expectations: {error}") from error

    def _read(self) -> Ledger:
        entries = LineEntries()
        for event in self.events():
            for each in self._checked(event):
                try:
                    entries.add(each)
                except (msgspec.DecodeError, ValueError) as error:
                    raise self._strange(event, error) from error
        ledger = entries.ledger
        ledger.wait_until(self._time_passed())
        ledger.close()
        ledger.expectations = self._outcomes()
        ledger.end(self.phase, str(self._status.get("message", "")))
        return ledger


def told_by(event: JsonObject) -> Iterator[Known]:
    """What an event tells; nothing if it is of a kind that results know nothing of."""
    step = ScenarioStep(int(event["step"]["major"]), int(event["step"]["minor"]))
    when: tuple[str, ScenarioStep, int] = (event["id"], step, parse_time(event["time"]))
    if "create" in event:
        yield lines.ObjectCreated(*when, **stored(event["create"]["result"]))
    elif "patch" in event:
        yield lines.ObjectPatched(*when, **stored(event["patch"]["result"]))
    elif "delete" in event:
        yield lines.ObjectDeleted(*when, **target(event["delete"]["operation"]))
    elif "podScheduled" in event:
        yield lines.PodScheduled(*when, **attempted(event["podScheduled"]))
    elif "podUnscheduled" in event:
        yield lines.PodUnscheduled(*when, **attempted(event["podUnscheduled"]))
    elif "podPreempted" in event:
        yield lines.PodPreempted(*when, **preempted(event["podPreempted"]))
    elif "done" in event:
        yield lines.Done(*when)
    elif "advance" in event:
        yield lines.Advanced(*when)


def stored(obj: JsonObject) -> dict[str, Any]:
    """An object as it was stored."""
    metadata = obj["metadata"]
    return {
        "api_version": obj["apiVersion"],
        "kind": obj["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "object": msgspec.Raw(orjson.dumps(obj)),
    }


def target(operation: JsonObject) -> dict[str, Any]:
    """The object that an operation names."""
    kind, metadata = operation["typeMeta"], operation["objectMeta"]
    return {
        "api_version": kind["apiVersion"],
        "kind": kind["kind"],
        "namespace": metadata.get("namespace") or DEFAULT_NAMESPACE,
        "name": metadata["name"],
    }


def pod_named(body: JsonObject) -> str:
    return "/".join(named(body).values())


def named(body: JsonObject) -> dict[str, str]:
    metadata = body["pod"]["metadata"]
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    return {"namespace": namespace, "name": metadata["name"]}


def attempted(body: JsonObject) -> dict[str, Any]:
    """An attempt, as far as its event tells."""
    number = (body.get("cut") or {}).get("attempts") or len(body.get("scheduleResult") or ())
    evaluated, feasible = examined(last_result(body))
    return named(body) | {
        "node": body.get("boundTo", ""),
        "attempt": number,
        "evaluated": evaluated,
        "feasible": feasible,
        "message": body.get("message", ""),
    }


def preempted(body: JsonObject) -> dict[str, Any]:
    return named(body) | {"node": body["boundTo"], "preempted_by": body["preemptedBy"]}


def last_result(body: JsonObject) -> JsonObject:
    """``ScenarioPodScheduleResult`` of this attempt; those before it stand before it."""
    results = body.get("scheduleResult") or [{}]
    found: JsonObject = results[-1]
    return found


def examined(result: JsonObject) -> tuple[int, int]:
    """How many nodes were looked at, and how many fitted."""
    if cut := result.get("cut"):
        return cut["candidateNodes"], cut["feasibleNodes"]
    return len(result.get("allCandidateNodes", ())), len(result.get("allFilteredNodes", ()))


def explained(pod: str, body: JsonObject) -> ExplainedAttempt:
    """An attempt with what its event says of the nodes."""
    result = last_result(body)
    evaluated, feasible = examined(result)
    plugins = result.get("pluginResults") or {}
    scores = plugins.get("score") or {}
    names = tuple(next(iter(scores.values()), {}))
    step = result.get("step") or {"major": 0, "minor": 0}
    return ExplainedAttempt(
        pod=pod,
        step=f"{step['major']}.{step['minor']}",
        node=body.get("boundTo", ""),
        message=body.get("message", ""),
        plugins=names,
        verdicts=tuple(verdicts(plugins.get("filter") or {}, scores)),
        evaluated=evaluated,
        feasible=feasible,
        explained=bool(plugins),
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
