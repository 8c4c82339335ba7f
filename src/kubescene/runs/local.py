"""`kubescene.run`: one scenario from file to results, in this process.

`play` is the same for other processes: a `RunRequest` and a `RunResult` are plain data.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kubescene.api.copies import own_copy
from kubescene.api.records import Record
from kubescene.client.verbs import AnyObject
from kubescene.cluster import ClusterWorld
from kubescene.control.loops import ControllerFactory
from kubescene.garbage import rare_collections, uncollected
from kubescene.remedies import Remedies
from kubescene.results.explaining import ExplainedAttempts, attempts_of
from kubescene.results.explanations import Explanations
from kubescene.results.summary import ExpectationOutcome, Summary
from kubescene.runs.examination import check_measures
from kubescene.runs.requests import RunRequest, folder_of, inputs_of, read_listed
from kubescene.runs.sinks import DirectorySink, MemorySink, Sink
from kubescene.runs.staging import stage
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.resource import ScenarioResource
from kubescene.scheduler.configuration.sources import SchedulerSource, scheduler_options
from kubescene.shortcuts import ALL, PLAIN
from kubescene.timeline import Instrument, Timeline, TimelineLog
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource
    from kubescene.results.comparison import Comparison
    from kubescene.results.measures.own import OwnFunction
    from kubescene.results.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunResult:
    """What came of it, as data. ``log`` has the facts, ``timeline`` shows them as the KEP does."""

    phase: ScenarioPhase
    message: str
    bad_input: bool
    summary: Summary
    log: TimelineLog
    explanations: Explanations
    record: Record
    """The Scenario as it was stored last."""
    failed_at: tuple[str | int, ...] = ()
    """The way through the document to what failed, if it is a place there."""

    @property
    def ok(self) -> bool:
        return self.phase in (ScenarioPhase.SUCCEEDED, ScenarioPhase.PAUSED)

    @property
    def expectations(self) -> list[ExpectationOutcome]:
        """What came of ``spec.expectations``, in their order; none if the run failed."""
        return self.summary.expectations

    @property
    def scenario(self) -> JsonObject:
        """The Scenario object with its whole status, free of what differs between equal runs."""
        obj: JsonObject = orjson.loads(self.record.unversioned_data)
        return obj

    @property
    def timeline(self) -> Timeline:
        """The events as KEP-140 shows them."""
        return Timeline(self.log)

    @property
    def tables(self) -> Mapping[str, "Table[Any]"]:
        """Pods, nodes, steps, attempts, preemptions, utilisation and measures, by name."""
        from kubescene.results.tables import tables

        return tables(self)

    @property
    def measures(self) -> dict[str, float]:
        """The numbers that the run comes down to, by name."""
        from kubescene.results.measures import measures

        return measures(self)

    def report(self, path: str | Path) -> Path:
        """Write the run as one page that can be passed around."""
        from kubescene.reports.html import write_report

        return write_report(self, path)

    def explain(self, pod: str) -> ExplainedAttempts:
        """The attempts at ``NAMESPACE/NAME`` (or a name in ``default``), node by node."""
        return attempts_of(self.log, self.explanations, pod)

    def compare(self, other: object, **options: Any) -> "Comparison":
        """This run beside another one; see `kubescene.results.compare`."""
        from kubescene.results.comparison import compare

        return compare(self, other, **options)

    def __repr__(self) -> str:
        name, bound = self.summary.scenario, self.summary.pods_bound
        told = f"{self.phase}, {self.summary.verdict}" if self.summary.unmet else self.phase
        return f"<{type(self).__name__} {name}: {told}, {len(self.log)} facts, {bound} bound>"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run(RunResult):
    """A result together with the world as the run left it."""

    cluster: ClusterWorld

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a Run holds a living cluster: send its `result` to other processes")

    def remedies(self, pod: str) -> Remedies:
        """What it would take to place a pod that waits in the end: the cheapest change first."""
        return self.cluster.remedies(pod)

    @property
    def result(self) -> RunResult:
        """The same without the world."""
        return RunResult(**{part.name: getattr(self, part.name) for part in fields(RunResult)})


@rare_collections()
def run(
    scenario: str | Path | AnyObject,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    controllers: Mapping[str, ControllerFactory] | None = None,
    reconcilers: Sequence[type] = (),
    instruments: Iterable[Instrument] = (),
    results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
    full_status: bool = False,
    scheduler: SchedulerSource | None = None,
    folder: str | Path | None = None,
    source: Path | None = None,
    strict: bool = False,
    thorough: bool = False,
    explained: frozenset[str] | None = None,
    measures: "Sequence[OwnFunction]" = (),
    plain: bool = False,
    without: Iterable[str] = (),
    snapshot: str | Path | None = None,
    autoscalers: "Sequence[PluginSource]" = (),
    autoscaler_processes: Sequence[str] = (),
) -> Run:
    """Play a scenario: a file, an object, or a builder.

    A scenario that fails is a `Run` whose phase is ``Failed``; a scenario that cannot be read
    raises `ScenarioError`. With ``out``, the results are also written there. ``scheduler`` may also
    be a KubeSchedulerConfiguration: a file, or an object. ``plain`` plays without anything that is
    only faster, to the same bytes. What the other arguments mean is said at
    `RunRequest`.
    """
    document, listed = read_listed(scenario, alike=not plain)
    request = RunRequest(
        scenario=document,
        out=None if out is None else Path(out),
        seed=seed,
        controllers=controllers or {},
        reconcilers=reconcilers,
        results=results,
        full_status=full_status,
        scheduler=scheduler_options(scheduler),
        folder=folder_of(scenario) if folder is None else Path(folder),
        source=Path(scenario) if isinstance(scenario, str | Path) else source,
        strict=strict,
        thorough=thorough,
        explained=explained,
        measures=tuple(measures),
        shortcuts=PLAIN if plain else ALL,
        without=frozenset(without),
        snapshot=None if snapshot is None else Path(snapshot),
        autoscalers=tuple(autoscalers),
        autoscaler_processes=tuple(autoscaler_processes),
    )
    return _played(request, instruments, listed)


@rare_collections()
def play(request: RunRequest) -> RunResult:
    """The same, data in and data out: what a pool of processes is given to do."""
    own = replace(request, scenario=own_copy(request.scenario))
    return _played(own, ()).result


def _played(
    request: RunRequest,
    instruments: Iterable[Instrument],
    listed: OperationList | None = None,
) -> Run:
    check_measures(request.measures)
    if not request.autoscaler_processes:
        return _played_with(request, instruments, listed)
    from kubescene.autoscalers.references import running

    with running(request.autoscaler_processes) as processes:
        every = (*request.autoscalers, *processes)
        return _played_with(replace(request, autoscalers=every), instruments, listed)


def _played_with(
    request: RunRequest, instruments: Iterable[Instrument], listed: OperationList | None
) -> Run:
    sink = sink_of(request)
    run = stage(request, sink, instruments, listed=listed)
    engine = run.engine
    try:
        run.begin()
        phase = engine.run()
        with uncollected():  # it would find in use what the run has made
            fold = run.account.fold
            summary = fold.finish(run.name, seed=run.options.seed)
            if sink.is_open:
                shown = request.full_status and request.results.publishes(phase)
                events = Timeline(run.log).events if shown else None
                sink.finish(run.scenario.header(), events, summary, fold.ledger)
    finally:
        try:
            sink.close()
        finally:
            run.cluster.conclude()
    live = run.scenario
    assert isinstance(live, ScenarioResource)
    return Run(
        phase=phase,
        message=live.message,
        bad_input=engine.bad_input,
        summary=summary,
        log=run.log,
        explanations=sink.explanations,
        record=live.record,
        failed_at=engine.failed_at,
        cluster=run.cluster,
    )


def sink_of(request: RunRequest) -> Sink:
    """A directory, if one is named."""
    if request.out is None:
        return MemorySink()
    return DirectorySink(request.out, inputs=inputs_of(request))
