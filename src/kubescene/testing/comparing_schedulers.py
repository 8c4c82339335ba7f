"""Another kube-scheduler beside ours, decision by decision: the same scenario, played by both.

The other one is a program: the real kube-scheduler, or a build of one's own. It takes part in turns
(`kubescene.outside`), so that it decides about every pod in the same world as ours. Equal are
the order of decisions, the step, the node of every binding, the message of every failure, the
nomination, the victims and for whom they leave.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kubescene.actors import Actor
from kubescene.api.kinds import SCENARIO
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.cluster import SCHEDULER
from kubescene.errors import KubesceneError, ScenarioError
from kubescene.outside.settings import recommended_configuration
from kubescene.outside.supervision import Supervisor
from kubescene.runs.local import run
from kubescene.scenario.outside import (
    DEFAULT_SCHEDULER_NAME,
    OutsideController,
    OutsideKind,
)
from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.reading.files import load_scenario
from kubescene.timeline import TimelineLog
from kubescene.timeline.pod_facts import PodPreempted, PodScheduled, PodUnscheduled
from kubescene.types import JsonObject

SETTINGS = "{settings}"
USER = Actor("compare-with")
ENDS = (ScenarioPhase.SUCCEEDED, ScenarioPhase.PAUSED, ScenarioPhase.FAILED)


class ObservedDecision(NamedTuple):
    """What a scheduler did with a pod."""

    step: str
    what: str
    pod: str
    node: str = ""
    message: str = ""

    def __str__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{self.step} {self.pod} {self.what} {self.node}".rstrip() + said


@dataclass(frozen=True, slots=True)
class Differences:
    """How two runs of one scenario differ."""

    ours: Sequence[ObservedDecision]
    theirs: Sequence[ObservedDecision]

    def __bool__(self) -> bool:
        return list(self.ours) != list(self.theirs)

    def lines(self, most: int = 5) -> Iterator[str]:
        """The first of them, for people."""
        told = 0
        for index in range(max(len(self.ours), len(self.theirs))):
            ours, theirs = at(self.ours, index), at(self.theirs, index)
            if ours != theirs and told < most:
                told += 1
                yield f"decision {index + 1}"
                yield f"  ours   {ours or 'nothing more'}"
                yield f"  theirs {theirs or 'nothing more'}"


def at(decisions: Sequence[ObservedDecision], index: int) -> ObservedDecision | None:
    return decisions[index] if index < len(decisions) else None


def decisions_in(log: TimelineLog) -> list[ObservedDecision]:
    """All decisions about pods. A failure that says the same as the one before is told once.

    kube-scheduler writes nothing for such a failure, so nobody outside can see it.
    """
    found: list[ObservedDecision] = []
    last: dict[str, tuple[str, str]] = {}
    for fact in log.read(0, len(log)):
        step = str(fact.step)
        if isinstance(fact, PodScheduled):
            found.append(
                ObservedDecision(step, "is bound to", f"{fact.namespace}/{fact.name}", fact.node)
            )
        elif isinstance(fact, PodPreempted):
            found.append(
                ObservedDecision(
                    step,
                    "leaves",
                    f"{fact.namespace}/{fact.name}",
                    fact.node,
                    f"for {fact.preempted_by}",
                )
            )
        elif isinstance(fact, PodUnscheduled):
            said = (fact.message, fact.nominated)
            if last.get(fact.uid) != said:
                last[fact.uid] = said
                pod = f"{fact.namespace}/{fact.name}"
                found.append(ObservedDecision(step, "waits", pod, fact.nominated, fact.message))
    return found


def ours(scenario: JsonObject) -> list[ObservedDecision]:
    """The decisions of the scheduler of this package, with the settings that the other one needs.

    Backoffs say in which order pods are tried again.
    """
    simulation = scenario["spec"].get("simulation") or {}
    played = run(scenario, scheduler=recommended_configuration(simulation.get("schedulerConfig")))
    if not played.ok:
        raise ScenarioError(played.message, path=played.failed_at)
    return decisions_in(played.log)


class OtherScheduler:
    """A scheduler that runs outside."""

    def __init__(self, command: str, names: Sequence[str] = (DEFAULT_SCHEDULER_NAME,)) -> None:
        """``names``: those of its profiles."""
        declared = OutsideController(SCHEDULER, OutsideKind.SCHEDULER, tuple(names))
        self._server = Server(port=0, controllers=False)
        self._server.start()
        self._client = HttpClient(self._server.url, USER)
        self._supervisor = Supervisor(
            self._server.stage, self._server.engine.post, self._server.url
        )
        try:
            self._supervisor.start(declared, command)
        except BaseException:
            self.close()
            raise

    def play(self, scenario: JsonObject) -> list[ObservedDecision]:
        """Its decisions in a scenario that says nothing of programs outside."""
        made = self._client.create(outside_form(scenario))
        ref = ObjectRef(SCENARIO, made.name)
        for row in self._client.follow_row(ref):
            if row is not None and row.cells.get("Phase") in ENDS:
                break
        status = self._client.get(ref)["status"]
        if status["phase"] == ScenarioPhase.FAILED:
            raise ScenarioError(status.get("message", ""))
        decisions = self._server.engine.call(lambda: self._decisions(made.name))
        self._client.delete(ref)
        return decisions

    def _decisions(self, name: str) -> list[ObservedDecision]:
        played = self._server.scenarios.run_named(name)
        return [] if played is None else decisions_in(played.log)

    def close(self) -> None:
        self._client.close()
        self._supervisor.end()
        self._server.stop()

    def __enter__(self) -> "OtherScheduler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def outside_form(scenario: JsonObject) -> JsonObject:
    """The same scenario, its scheduler being a program outside."""
    spec = scenario["spec"]
    controllers = dict(spec.get("controllers") or {})
    controllers.setdefault("simulationControllers", {"enabled": [{"name": SCHEDULER}]})
    entry = {"name": SCHEDULER, "kind": str(OutsideKind.SCHEDULER)}
    controllers["outside"] = [{**entry, "schedulerNames": names_in(scenario)}]
    return {**scenario, "spec": {**spec, "controllers": controllers}}


def names_in(scenario: JsonObject) -> list[str]:
    """The names of the profiles that a scenario configures."""
    simulation = scenario["spec"].get("simulation") or {}
    config = simulation.get("schedulerConfig") or {}
    profiles: Sequence[JsonObject] = config.get("profiles") or ({},)
    return [each.get("schedulerName") or DEFAULT_SCHEDULER_NAME for each in profiles]


def command_of(binary: str) -> str:
    """A program alone gets the settings that it needs; a whole command has them."""
    return binary if SETTINGS in binary or " " in binary else f"{binary} {SETTINGS}"


def compare_with(
    binary: str, files: Sequence[Path], runs: int = 1
) -> Iterator[tuple[Path, Differences | KubesceneError]]:
    """Play each file with ours once and with the other ``runs`` times; how each run differs.

    What cannot be played is told in place of its differences, and the next file follows. The other
    one is started anew for each run: it remembers where it began to look for nodes.
    """
    command = command_of(binary)
    for file in files:
        try:
            scenario = load_scenario(file)
            here = ours(scenario)
        except KubesceneError as error:
            yield file, error
            continue
        for _ in range(runs):
            yield file, compared_once(command, scenario, here)


def compared_once(
    command: str, scenario: JsonObject, here: Sequence[ObservedDecision]
) -> Differences | KubesceneError:
    try:
        with OtherScheduler(command, names_in(scenario)) as other:
            return Differences(here, other.play(scenario))
    except KubesceneError as error:
        return error
