"""``kubescene run --interactive``: a scenario played by hand, forwards and back.

Every command that plays leaves a copy of the world behind, so ``back`` is exact: controllers,
queues, time and chance are what they were.
"""

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from kubescene.api.text.reading import ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.cluster import ClusterWorld
from kubescene.errors import ApiError, KubesceneError, ScenarioError
from kubescene.reports.explaining import print_attempt
from kubescene.results.explaining import attempts_of
from kubescene.results.explanations import ExplanationMemory
from kubescene.results.summary import outcome, summarize
from kubescene.runs.requests import RunRequest
from kubescene.runs.sinks import MemorySink
from kubescene.runs.staging import stage
from kubescene.scenario.engine import Engine
from kubescene.scenario.phases import ScenarioPhase, StepPhase
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import assigned_ids, operations_of
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.timeline import Outcome, TimelineLog
from kubescene.timeline.explanations import ExplanationRecorder

HELP = """\
minor (n, step)   play to the next minor step
major (N, next)   play to the end of the major step
end (e)           play to the end
state (s, status) where the scenario stands, and which pods wait
explain POD (x)   why a pod was placed, or not
add OPERATION     add an operation, as YAML in one line: {step: 4, createOperation: {object: ...}}
back (b)          undo the last command that played or added
quit (q)
"""
SHORT = {
    "n": "minor",
    "step": "minor",
    "N": "major",
    "next": "major",
    "e": "end",
    "s": "state",
    "status": "state",
    "x": "explain",
    "b": "back",
}
AT_REST = (StepPhase.CONTROLLER_RUNNING, StepPhase.FINISHED)
PODS_SHOWN = 10


@dataclass(slots=True)
class Scene:
    """A world in the middle of a scenario, with what was explained so far."""

    cluster: ClusterWorld
    engine: Engine
    log: TimelineLog
    memory: ExplanationMemory

    def copy(self) -> "Scene":
        """The same once more; both can be played on."""
        scene = deepcopy(self)
        # Onlookers stay with the original: the copy explains to its own memory.
        scene.cluster.observe(ExplanationRecorder(scene.memory.explain))
        return scene


class Session:
    """Commands, one a line, and what they show."""

    def __init__(self, request: RunRequest, console: Console) -> None:
        memory = MemorySink()
        run = stage(replace(request, shortcuts=request.shortcuts.one_by_one()), memory)
        self._scene = Scene(run.cluster, run.engine, run.log, memory.explanations)
        self._past: list[Scene] = []
        self._folder = request.folder
        self._console = console
        self._commands: dict[str, Callable[[str], None]] = {
            "minor": self._minor,
            "major": self._major,
            "end": self._end,
            "state": self._state,
            "explain": self._explain,
            "add": self._add,
            "back": self._back,
            "help": self._help,
        }

    @property
    def engine(self) -> Engine:
        return self._scene.engine

    def run(self, lines: Any) -> None:
        """Obey until the lines end, or one says ``quit``."""
        self._say("help shows the commands")
        self._state("")
        try:
            for line in lines:
                word, _, rest = line.strip().partition(" ")
                if word in ("quit", "q"):
                    return
                if word:
                    self._obey(SHORT.get(word, word), rest.strip())
        finally:
            for scene in (*self._past, self._scene):
                scene.cluster.conclude()

    def _obey(self, word: str, rest: str) -> None:
        command = self._commands.get(word)
        if command is None:
            self._say(f"there is no command {word!r}; help shows them")
            return
        try:
            command(rest)
        except KubesceneError as error:
            self._say(str(error))

    # -- playing -----------------------------------------------------------------------------

    def _minor(self, _: str) -> None:
        engine = self._before()
        step = engine.scenario.step
        for moment in engine.play():
            if moment.step != step and moment.phase in AT_REST:
                break
        self._where()

    def _major(self, _: str) -> None:
        # A step that is complete is left behind: to go on from a pause ends no step yet.
        is_complete = self.engine.is_between_steps or self.engine.is_over
        left = self.engine.scenario.step.major if is_complete else None
        engine = self._before()
        for moment in engine.play():
            if engine.is_between_steps and moment.step.major != left:
                break
        self._where()

    def _end(self, _: str) -> None:
        self._before().run()
        self._where()

    def _before(self) -> Engine:
        """The engine, after a copy was kept; nothing to play is told."""
        past = self._scene.copy()
        if self.engine.is_over and not self.engine.resume():
            raise ScenarioError("the scenario is over: add an operation, go back, or quit")
        self._past.append(past)
        return self.engine

    def _back(self, _: str) -> None:
        if not self._past:
            raise ScenarioError("there is nothing to undo")
        self._scene.cluster.conclude()
        self._scene = self._past.pop()
        self._where()

    def _add(self, text: str) -> None:
        """Add an operation; one that is faulty is refused, and nothing has changed."""
        scenario = self.engine.scenario.object
        name, items = operations_of(scenario)
        operation = one_document(text)
        spec = {**scenario["spec"], name: [*items, operation]}
        folder = None if self._folder is None else ScenarioFolder(self._folder)
        for fault in find_faults({**scenario, "spec": spec}, folder):
            raise fault.error
        if operation["step"] <= self.engine.scenario.step.major:
            major = self.engine.scenario.step.major
            raise ScenarioError(f"step {operation['step']} has passed: the scenario is at {major}")
        if self.engine.scenario.phase in (ScenarioPhase.SUCCEEDED, ScenarioPhase.FAILED):
            raise ScenarioError("the scenario has ended: go back before you add to it")
        self._past.append(self._scene.copy())
        patch = {"spec": {name: spec[name]}}
        try:
            self._scene.cluster.patch("scenarios", self.engine.scenario.name, patch)
        except ApiError:
            self._scene = self._past.pop()
            raise
        self._say(f"added as operation {assigned_ids(spec[name])[-1]!r}")

    # -- showing -----------------------------------------------------------------------------

    def _where(self) -> None:
        scenario = self.engine.scenario
        phase = scenario.step_phase or "not begun"
        who = f", {scenario.controller}" if scenario.controller else ""
        self._say(f"{scenario.phase} at step {scenario.step}: {phase}{who}")
        if scenario.message:
            self._say(scenario.message)
        for each in unmet(self.engine):
            self._say(f"expectation {each.name!r} does not hold: {outcome(each).why}")

    def _state(self, _: str) -> None:
        self._where()
        summary = summarize(self._scene.log, scenario="")
        bound = sum(node.pods for node in summary.nodes)
        self._say(f"{len(summary.nodes)} nodes, {bound} pods on them, {len(summary.pending)} wait")
        for pod in summary.pending[:PODS_SHOWN]:
            self._say(f"  {pod.pod}: {pod.message}")

    def _explain(self, pod: str) -> None:
        attempts = attempts_of(self._scene.log, self._scene.memory, pod)
        if not attempts:
            self._say(f"nobody has tried to place {pod!r} so far")
        for attempt in attempts:
            print_attempt(attempt, self._console)

    def _help(self, _: str) -> None:
        self._say(HELP.rstrip())

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)


def one_document(text: str) -> Any:
    """What a line of YAML holds."""
    try:
        documents = read_yaml(text)
    except ReadingError as error:
        raise ScenarioError(f"this is not YAML: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise ScenarioError("an operation is an object: {step: 4, doneOperation: {}}")
    for twice in documents[0].duplicates:
        raise ScenarioError(f"the key {twice.key!r} is given twice, at column {twice.column}")
    return documents[0].value


def play_by_hand(request: RunRequest) -> int:
    """Read commands from standard input; returns the exit code."""
    console = Console()
    session = Session(request, console)
    session.run(prompted() if sys.stdin.isatty() else sys.stdin)
    if session.engine.scenario.phase is ScenarioPhase.FAILED:
        return 1
    return 3 if unmet(session.engine) else 0


def unmet(engine: Engine) -> list[Outcome]:
    """The expectations that do not hold where the scenario stands."""
    return [each for each in engine.scenario.expectations if not each.holds]


def prompted() -> Any:
    """Lines that a person types, until they end."""
    while True:
        try:
            yield input("> ")
        except (EOFError, KeyboardInterrupt):
            return
