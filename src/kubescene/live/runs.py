"""One scenario that is played in a served world, and who makes what is needed for it."""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any, Protocol

from kubescene.api.records import Record
from kubescene.clock import format_time
from kubescene.clock.clocks import DEFAULT_START
from kubescene.errors import ScenarioError
from kubescene.results.summary import OutsideOutcome, Summary
from kubescene.runs.sinks import Sink
from kubescene.runs.staging import Account, StagedRun, StoredScenario, cluster_options
from kubescene.runs.worlds import LendableWorld
from kubescene.scenario.documents import with_scheduler
from kubescene.scenario.engine import EngineMoment
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.simulation import SCHEDULER_CONFIG
from kubescene.scenario.world import Stage
from kubescene.scheduler import SchedulerOptions
from kubescene.timeline.explanations import FIRST_LINE
from kubescene.timeline.files import Header, TimelineWriter
from kubescene.timeline.views import KepTimeline
from kubescene.types import JsonObject

NO_EXTENDERS = (
    "this server calls only the extenders that it was started with; start it with "
    "--allow-extenders to bring others"
)


class LiveRun:
    """From its first moment until its Scenario is deleted."""

    def __init__(
        self,
        cluster: LendableWorld,
        scenario: StoredScenario,
        results: ResultsStrategy,
        stage: Stage | None = None,
        sink: Sink | None = None,
    ) -> None:
        self._cluster = cluster
        self._asked = SchedulerOptions()
        self._staged = StagedRun(
            cluster,
            scenario,
            Account(cluster, sink, is_watched=True),
            options=cluster.own_options,
            results=results,
            stage=stage,
        )
        self.scenario = scenario
        self.sink = self._staged.sink
        self.log = self._staged.log
        self.engine = self._staged.engine
        self.id = ""
        """In the catalogue of runs; empty if it is in none."""
        self.created = self.finished = ""
        """By the machine's clock."""

    @property
    def name(self) -> str:
        return self.scenario.name

    @property
    def uid(self) -> str:
        return self.scenario.uid

    @property
    def seed(self) -> int:
        return self._staged.options.seed

    @property
    def phase(self) -> ScenarioPhase:
        return self.scenario.phase

    def attach(self, *, allow_extenders: bool = False) -> None:
        """Get the world ready: the next to begin anew in it is this scenario.

        All is as in a run of its own, with the scheduler of the world that is served. So no Event
        objects are written either; they cost more than the rest of a placement.
        """
        self._cluster.observe(*self._staged.account.onlookers)
        scheduler = self._asked = self._cluster.own_options.scheduler
        try:
            if not allow_extenders and self._brings_extenders():
                raise ScenarioError(NO_EXTENDERS, where=f"{SCHEDULER_CONFIG}.extenders")
            plugins = self._cluster.own_options.autoscaler_plugins
            options = cluster_options(self.scenario.object, None, scheduler)
            options = replace(options, autoscaler_plugins=plugins)
        except ScenarioError as error:
            self.engine.bad_input = True
            self.engine.fail(str(error))
            return
        self._staged.use(options)
        self._cluster.lending.prepare(options)

    def play(self) -> Iterator[EngineMoment]:
        """Moment by moment; also those after a pause."""
        return self._staged.play()

    def _brings_extenders(self) -> bool:
        config: Any = self.scenario.object
        for name in ("spec", "simulation", "schedulerConfig"):
            config = config.get(name) if isinstance(config, dict) else None
        return isinstance(config, dict) and bool(config.get("extenders"))

    def detach(self) -> None:
        """What happens from now on is not part of it; it is kept without its controllers."""
        self.engine.leave()
        self._cluster.instruments.detach(*self._staged.account.onlookers)
        try:
            if self.sink.is_open:
                ledger = self._staged.account.fold.ledger
                self.sink.finish(self.result(), None, self.summary(), ledger)
        finally:
            try:
                self.sink.close()
            finally:
                self.log.close()
                if (timeline := self._timeline) is not None:
                    timeline.put_away()

    def pack(self) -> None:
        """Its records are dropped: let its Scenario keep the timeline without them.

        Any thread may do it, after the run has ended.
        """
        if (timeline := self._timeline) is not None:
            timeline.pack()

    @property
    def _timeline(self) -> KepTimeline | None:
        timeline = self.scenario.timeline
        return timeline if isinstance(timeline, KepTimeline) else None

    def result(self) -> JsonObject:
        """The Scenario as a run of its own would leave it: no timeline, created when time began.

        The scheduler configuration is that of who serves it.
        """
        options, header = self._staged.options, self.scenario.header()
        start = DEFAULT_START if options.start is None else options.start
        metadata = {**header["metadata"], "creationTimestamp": format_time(start)}
        created = {**header, "metadata": metadata}
        return with_scheduler(created, self._asked, options.scheduler)

    def summary(self) -> Summary:
        """The short account so far; one that was paused and goes on says so."""
        summary = self._staged.account.fold.finish(self.name, seed=self._staged.options.seed)
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
        return self._staged.account.fold.counts(step)

    def timeline_file(self) -> bytes:
        """What a run of its own would have written to ``timeline.jsonl``. Any thread may ask."""
        file = BytesIO()
        writer = TimelineWriter(file, Header(scenario=self.name, seed=self._staged.options.seed))
        for fact in self.log.read(0, len(self.log)):
            writer.write(fact)
        return file.getvalue()

    def explanations_file(self) -> bytes:
        """The same for ``explanations.jsonl``."""
        return b"".join(line + b"\n" for line in (FIRST_LINE, *self.sink.explanations))


class RunFactory(Protocol):
    """Makes what is needed of a stored Scenario, wherever the objects of a world are."""

    def run(self, record: Record) -> LiveRun:
        """It is its turn."""
        ...

    def waiting(self, record: Record) -> StoredScenario:
        """It is told why it is not played."""
        ...


class StoreRunFactory:
    """Scenarios in the store of the cluster itself."""

    def __init__(
        self, cluster: LendableWorld, results: ResultsStrategy, stage: Stage | None = None
    ) -> None:
        self._cluster = cluster
        self._results = results
        self._stage = stage

    def run(self, record: Record) -> LiveRun:
        return LiveRun(self._cluster, self.waiting(record), self._results, self._stage)

    def waiting(self, record: Record) -> StoredScenario:
        return ScenarioResource(self._cluster.store, record)
