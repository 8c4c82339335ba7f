"""One scenario that is played in a served world, with all that is kept of it."""

from io import BytesIO
from typing import Any, Protocol

from kubescene.api.records import Record
from kubescene.cluster import Cluster
from kubescene.errors import ScenarioError
from kubescene.results.explanations import ExplanationMemory
from kubescene.results.summary import OutsideOutcome, Summary, SummaryFold
from kubescene.running import cluster_options, examined, hearing, with_scheduler
from kubescene.scenario.engine import Engine
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase
from kubescene.scenario.simulation import SCHEDULER_CONFIG
from kubescene.scenario.spec import ScenarioSpec
from kubescene.scenario.world import LiveScenario, Stage
from kubescene.scheduler import SchedulerOptions
from kubescene.timeline import Instrument, TimelineLog, TimelineRecorder
from kubescene.timeline.explanations import FIRST_LINE, ExplanationRecorder, Line
from kubescene.timeline.files import Header, TimelineWriter
from kubescene.timeline.views import KepTimeline
from kubescene.types import JsonObject

NO_EXTENDERS = (
    "this server calls only the extenders that it was started with; start it with "
    "--allow-extenders to bring others"
)


class StoredScenario(LiveScenario, Protocol):
    """The Scenario object where it is stored: in our own store, or in an API server's."""

    @property
    def uid(self) -> str: ...

    def is_mine(self, record: Record) -> bool:
        """Whether the engine wrote it: then the spec is the one that is known."""
        ...

    def header(self) -> JsonObject:
        """The object without its timeline, however long that is."""
        ...


class LiveRun:
    """From its first moment until its Scenario is deleted."""

    def __init__(
        self,
        cluster: Cluster,
        scenario: StoredScenario,
        results: ResultsStrategy,
        stage: Stage | None = None,
    ) -> None:
        self._cluster = cluster
        self.scenario = scenario
        self._options = cluster.own_options
        self._asked = SchedulerOptions()
        self.log = TimelineLog()
        self._fold = SummaryFold()
        self.log.follow(self._fold.add)
        self.explanations = ExplanationMemory()
        recorder = TimelineRecorder(cluster.clock, self.log, role_of=cluster.registry.role_of)
        self._onlookers: tuple[Instrument, ...] = (
            recorder,
            ExplanationRecorder(self._explain),
        )
        self.engine = Engine(
            cluster,
            self.scenario,
            recorder,
            results,
            examine=self._examine,
            judge=hearing,
            stage=stage,
        )

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def uid(self) -> str:
        return self.scenario.uid

    @property
    def phase(self) -> ScenarioPhase:
        return self.scenario.phase

    def _explain(self, pod: str, line: Line) -> None:
        self.explanations.explain(pod, line)

    def attach(self, *, allow_extenders: bool = False) -> None:
        """Get the world ready: the next to begin anew in it is this scenario.

        All is as in a run of its own, with the scheduler of the world that is served. So no Event
        objects are written either; they cost more than the rest of a placement.
        """
        self._cluster.observe(*self._onlookers)
        scheduler = self._asked = self._cluster.own_options.scheduler
        try:
            if not allow_extenders and self._brings_extenders():
                raise ScenarioError(NO_EXTENDERS, where=f"{SCHEDULER_CONFIG}.extenders")
            options = cluster_options(self.scenario.object, None, scheduler)
        except ScenarioError as error:
            self.engine.bad_input = True
            self.engine.fail(str(error))
            return
        self._options = options
        self._cluster.lending.prepare(options)

    def _brings_extenders(self) -> bool:
        config: Any = self.scenario.object
        for name in ("spec", "simulation", "schedulerConfig"):
            config = config.get(name) if isinstance(config, dict) else None
        return isinstance(config, dict) and bool(config.get("extenders"))

    def _examine(self, scenario: JsonObject, spec: ScenarioSpec) -> list[str]:
        """What the scenario says in vain, as a run of its own would warn."""
        return examined(
            scenario,
            spec,
            controllers=tuple(self._cluster.registrations),
            scheduler=self._options.scheduler,
            strict=False,
        )

    def detach(self) -> None:
        """What happens from now on is not part of it."""
        self._cluster.instruments.detach(*self._onlookers)

    def pack(self) -> None:
        """Its records are dropped: let its Scenario keep the timeline without them.

        Any thread may do it, after the run has ended.
        """
        timeline = self.scenario.timeline
        if isinstance(timeline, KepTimeline):
            timeline.pack()

    def result(self) -> JsonObject:
        """The Scenario without its timeline, with the scheduler configuration of who serves it."""
        return with_scheduler(self.scenario.header(), self._asked, self._options.scheduler)

    def summary(self) -> Summary:
        """The short account so far; one that was paused and goes on says so."""
        summary = self._fold.finish(self.name, seed=self._options.seed)
        summary.phase, summary.message = str(self.phase), self.scenario.message
        if not self.scenario.expectations:
            summary.expectations = []
        summary.outside = [
            OutsideOutcome(each.name, each.kind, [*each.judged_by], each.same_bytes, each.message)
            for each in self.scenario.outside
        ]
        return summary

    def counts(self, step: int | None = None) -> dict[str, int]:
        """What was written, bound and tried in vain so far, or up to a major step."""
        return self._fold.counts(step)

    def timeline_file(self) -> bytes:
        """What a run of its own would have written to ``timeline.jsonl``. Any thread may ask."""
        file = BytesIO()
        writer = TimelineWriter(file, Header(scenario=self.name, seed=self._options.seed))
        for fact in self.log.read(0, len(self.log)):
            writer.write(fact)
        return file.getvalue()

    def explanations_file(self) -> bytes:
        """The same for ``explanations.jsonl``."""
        return b"".join(line + b"\n" for line in (FIRST_LINE, *self.explanations))
