"""What all parts of one play share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubescene.control import Patience
from kubescene.scenario.engine.gate import StepGate
from kubescene.scenario.engine.participants import Participants
from kubescene.scenario.engine.script import Script
from kubescene.scenario.engine.telling import Telling
from kubescene.scenario.phases import ResultsStrategy
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.world import LiveScenario, Stage, World
from kubescene.timeline import TimelineRecorder

Task = tuple[Callable[..., None], tuple[Any, ...]]


class Tasks(list[Task]):
    """The stack: the last task put there is the first to be done."""

    waits = False
    """Whether the task that was done last found that it is another program's turn."""

    def then(self, task: Callable[..., None], *arguments: Any) -> None:
        self.append((task, arguments))


@dataclass(frozen=True, slots=True)
class Play:
    """One scenario in one world: each part takes from it what it needs."""

    world: World
    scenario: LiveScenario
    recorder: TimelineRecorder
    stage: Stage | None
    script: Script
    participants: Participants
    telling: Telling
    gate: StepGate
    tasks: Tasks = field(default_factory=Tasks)

    def patience(self) -> Patience:
        """For one attempt to come to rest."""
        return self.world.crank.patience(self.script.spec.simulation.max_settle_rounds)


def make_play(
    world: World,
    scenario: LiveScenario,
    recorder: TimelineRecorder,
    stage: Stage | None,
    results: ResultsStrategy,
    folder: ScenarioFolder | None,
    listed: OperationList | None,
) -> Play:
    script = Script(scenario, folder, listed)
    participants = Participants(world, stage)
    telling = Telling(world, scenario, recorder, results)
    gate = StepGate(scenario, script, participants, telling)
    return Play(world, scenario, recorder, stage, script, participants, telling, gate)
