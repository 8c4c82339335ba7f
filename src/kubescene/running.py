"""`kubescene.run`: one scenario from file to results.

Puts a cluster, the recorders and the engine together, plays the scenario and hands back a `Run`.
`play` is the same for other processes: a `RunRequest` and a `RunResult` are plain data.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from kubescene.actors import Actor
from kubescene.api.copies import own_copy
from kubescene.api.options import LASTING
from kubescene.api.records import Record
from kubescene.client.verbs import AnyObject, built
from kubescene.cluster import Cluster, ClusterOptions, builtin_controllers
from kubescene.control.loops import ControllerFactory
from kubescene.controllers.authoring import controller_from
from kubescene.controllers.registrations import ControllerRegistrations, Registration
from kubescene.errors import ApiError, ScenarioError
from kubescene.remedies import Remedies
from kubescene.results.explaining import Attempts, attempts_of
from kubescene.results.explanations import ExplanationFile, ExplanationMemory, Explanations
from kubescene.results.output import OutputDirectory
from kubescene.results.summary import ExpectationOutcome, Summary, folded
from kubescene.scenario.controllers import check_schedulers
from kubescene.scenario.engine import Engine
from kubescene.scenario.expectations import Ending, Expectation, Hearing
from kubescene.scenario.faults import tolerated
from kubescene.scenario.listing import OperationList, operations_of
from kubescene.scenario.loading import load_scenario
from kubescene.scenario.object_files import ScenarioFolder
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.simulation import Simulation, parse_simulation
from kubescene.scenario.spec import ScenarioSpec
from kubescene.scenario.strictness import Fault
from kubescene.scenario.taking import taken_over
from kubescene.scenario.unsimulated import Cast, unsimulated
from kubescene.scheduler import SchedulerOptions, configuration
from kubescene.scheduler.configuration.sources import SchedulerSource, scheduler_options
from kubescene.scheduler.extenders.background import at_once
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from kubescene.timeline import Instrument, Timeline, TimelineLog, TimelineRecorder
from kubescene.timeline.explanations import ExplanationRecorder, Line, Sink
from kubescene.timeline.files import Header
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.results.comparison import Comparison
    from kubescene.results.measures.own import OwnFunction
    from kubescene.results.tables import Table

USER = Actor("kubescene-run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is to be played, as data: it can be sent to another process.

    ``controllers`` and ``reconcilers`` (classes with `reconcile`, see `kubescene.controllers`) join
    the built-in ones; one of the same name takes its place. ``full_status``
    puts the whole timeline into the Scenario that is written to ``out``, too. ``scheduler`` says
    with which profiles and plugins pods are placed; if it comes of a KubeSchedulerConfiguration,
    that wins over ``spec.simulation.schedulerConfig``. ``folder`` is where ``objectFrom``
    reads; a scenario file has its own. ``source`` is that file: results never overwrite it. With
    ``strict``, what nobody acts on is a fault instead of a warning. ``shortcuts`` are what is only
    faster, and may be left out. ``explained`` are the pods
    whose explanations are kept, all if it is None. ``measures`` are functions of a run that
    expectations may name as ``measures.FUNCTION``.
    """

    scenario: JsonObject
    out: Path | None = None
    seed: int | None = None
    controllers: Mapping[str, ControllerFactory] = field(default_factory=dict)
    reconcilers: Sequence[type] = ()
    results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP
    full_status: bool = False
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    folder: Path | None = None
    source: Path | None = None
    strict: bool = False
    explained: frozenset[str] | None = None
    measures: "Sequence[OwnFunction]" = ()
    shortcuts: Shortcuts = ALL


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

    def explain(self, pod: str) -> Attempts:
        """The attempts at ``NAMESPACE/NAME`` (or a name in ``default``), node by node."""
        return attempts_of(self.log, self.explanations, pod)

    def compare(self, other: object, **options: Any) -> "Comparison":
        """This run beside another one; see `kubescene.results.compare`."""
        from kubescene.results.comparison import compare

        return compare(self, other, **options)

    def __repr__(self) -> str:
        name, bound = self.summary.scenario, self.summary.placements_total
        facts = len(self.log)
        return f"<{type(self).__name__} {name}: {self.phase}, {facts} facts, {bound} bound>"

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run(RunResult):
    """A result together with the world as the run left it."""

    cluster: Cluster

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a Run holds a living cluster: send its `result` to other processes")

    def remedies(self, pod: str) -> Remedies:
        """What it would take to place a pod that waits in the end: the cheapest change first."""
        return self.cluster.remedies(pod)

    @property
    def result(self) -> RunResult:
        """The same without the world."""
        return RunResult(**{part.name: getattr(self, part.name) for part in fields(RunResult)})


class Litter:
    """How much the runs of this process have left behind since somebody looked."""

    MOST = 20_000

    def __init__(self) -> None:
        self.facts = 0

    def sweep(self) -> None:
        """Let go of worlds that nobody holds any more, if it is worth it."""
        if self.facts >= self.MOST:
            self.facts = 0
            gc.collect()

    def put_by(self) -> None:
        """Have what a long run has left counted as old without looking through it.

        Most of it is in use, since the run has just ended; `sweep` looks before the next one.
        """
        if self.facts >= self.MOST and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()


LITTER = Litter()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector look less often while a scenario plays.

    A run makes many short-lived objects without cycles; looking for cycles among them costs a
    tenth of its time. The worlds of earlier runs are cycles: they go before there are too many.
    """
    LITTER.sweep()
    before = gc.get_threshold()
    gc.set_threshold(50_000, 50, 50)
    try:
        yield
    finally:
        LITTER.put_by()
        gc.set_threshold(*before)


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
    explained: frozenset[str] | None = None,
    measures: "Sequence[OwnFunction]" = (),
    plain: bool = False,
) -> Run:
    """Play a scenario: a file, an object, or a builder.

    A scenario that fails is a `Run` whose phase is ``Failed``; a scenario that cannot be read
    raises `ScenarioError`. With ``out``, the results are also written there. ``scheduler`` may also
    be a KubeSchedulerConfiguration: a file, or an object. ``plain`` plays without anything that is
    only faster, to the same bytes. What the other arguments mean is said at
    `RunRequest`.
    """
    document, listed = _read(scenario)
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
        explained=explained,
        measures=tuple(measures),
        shortcuts=PLAIN if plain else ALL,
    )
    return _played(request, instruments, listed)


@rare_collections()
def play(request: RunRequest) -> RunResult:
    """The same, data in and data out: what a pool of processes is given to do."""
    own = replace(request, scenario=own_copy(request.scenario))
    return _played(own, ()).result


def staged(
    request: RunRequest,
    log: TimelineLog,
    instruments: Iterable[Instrument],
    *,
    keeps_explanations: bool = False,
    listed: OperationList | None = None,
) -> tuple[Cluster, Engine]:
    """A scenario in a world of its own, before its first moment; what happens goes to the log.

    ``listed`` are its operations, if somebody has looked at them already.
    """
    scenario = without_status(with_seed(request.scenario, request.seed))
    options = cluster_options(scenario, request.seed, request.scheduler)
    options = replace(options, shortcuts=request.shortcuts)
    controllers = registrations(options, request)
    cluster = Cluster(options, controllers=controllers)
    recorder = TimelineRecorder(
        cluster.clock, log, role_of=cluster.registry.role_of, puts_off=keeps_explanations
    )
    cluster.observe(recorder, *instruments)
    played = with_scheduler(scenario, request.scheduler, options.scheduler)
    live = ScenarioResource(cluster.store, stored(played, cluster))
    folder = None if request.folder is None else ScenarioFolder(request.folder)
    examine = partial(
        examined,
        controllers=tuple(controllers),
        scheduler=options.scheduler,
        strict=request.strict,
        own=request.measures,
    )
    judge = partial(hearing, own=request.measures)
    results = request.results
    engine = Engine(cluster, live, recorder, results, folder, examine, judge, listed=listed)
    return cluster, engine


def _played(
    request: RunRequest,
    instruments: Iterable[Instrument],
    listed: OperationList | None = None,
) -> Run:
    check_measures(request.measures)
    name = request.scenario["metadata"]["name"]
    seed = cluster_options(request.scenario, request.seed, request.scheduler).seed
    log = TimelineLog()
    output = None
    if request.out is not None:
        header = Header(scenario=name, seed=seed)
        output = OutputDirectory(request.out, header, inputs=inputs_of(request))
        log.follow(output.record)
    explanations, explain = explanations_of(output)
    if request.explained is not None:
        explain = partial(explain_only, request.explained, explain)
    onlookers = () if output is None else (output,)
    try:
        cluster, engine = staged(
            request,
            log,
            (*onlookers, ExplanationRecorder(explain), *instruments),
            keeps_explanations=output is None and request.explained is None,
            listed=listed,
        )
        phase = engine.run()
        live = engine.scenario
        assert isinstance(live, ScenarioResource)
        fold = folded(log)
        summary = fold.finish(name, seed=seed)
        if output is not None:
            shown = request.full_status and request.results.publishes(phase)
            events = Timeline(log).events if shown else None
            output.finish(live.header(), events, summary, fold.ledger)
    finally:
        LITTER.facts += len(log)
        if output is not None:
            output.close()
    return Run(
        phase=phase,
        message=live.message,
        bad_input=engine.bad_input,
        summary=summary,
        log=log,
        explanations=explanations,
        record=live.record,
        failed_at=engine.failed_at,
        cluster=cluster,
    )


def stored(scenario: JsonObject, cluster: Cluster) -> Record:
    """The Scenario in the world; what the API refuses about its metadata is its author's fault."""
    try:
        return cluster.client(USER).create(scenario, options=LASTING)
    except ApiError as error:
        raise ScenarioError(error.message, where="scenario", path=("metadata",)) from error


def examined(
    scenario: JsonObject,
    spec: ScenarioSpec,
    *,
    controllers: Iterable[str],
    scheduler: SchedulerOptions,
    strict: bool,
    own: "Sequence[OwnFunction]" = (),
) -> list[str]:
    """What a scenario says in vain, as warnings; raises `ScenarioError` if that is a fault.

    So are expectations that cannot be looked at in the end.
    """
    for fault in expectation_faults(spec.expectations, own):
        raise fault.error
    check_schedulers(spec, controllers, (each.scheduler_name for each in scheduler.profiles))
    for each in unsimulated(spec, Cast.of(spec, controllers, scheduler)) if strict else ():
        raise each.error
    return remarks(scenario, spec, controllers=controllers, scheduler=scheduler)


def remarks(
    scenario: JsonObject,
    spec: ScenarioSpec,
    *,
    controllers: Iterable[str],
    scheduler: SchedulerOptions,
) -> list[str]:
    """What a scenario says in vain."""
    unknown = [str(fault.error) for fault in tolerated(scenario)]
    return [*unknown, *map(str, unsimulated(spec, Cast.of(spec, controllers, scheduler)))]


def check_measures(own: "Sequence[OwnFunction]") -> None:
    """Raise `ConfigurationError` for what cannot be a measure, or has the name of one."""
    if own:
        from kubescene.results.expectations.variables import types_with

        types_with(own)


def expectation_faults(
    expectations: tuple[Expectation, ...], own: "Sequence[OwnFunction]" = ()
) -> list[Fault]:
    """What is wrong with expressions, found before a scenario is played."""
    if not expectations:
        return []
    # The expression language and the tables are loaded by those only who expect something.
    from kubescene.results.expectations import faults_of

    return list(faults_of(expectations, own))


def hearing(
    expectations: tuple[Expectation, ...],
    log: TimelineLog,
    ending: Ending,
    own: "Sequence[OwnFunction]" = (),
) -> Hearing:
    """The judge of the engine; ``own`` are measures that only a run of this process can have."""
    from kubescene.results.expectations import ResultHearing

    return ResultHearing(expectations, log, ending, own)


def inputs_of(request: RunRequest) -> list[Path]:
    """The files that a run reads, and so must not write."""
    _, operations = operations_of(request.scenario)
    creations = [each.get("createOperation") for each in operations if isinstance(each, dict)]
    names = [each.get("objectFrom") for each in creations if isinstance(each, dict)]
    files = [request.source] if request.source is not None else []
    if request.folder is not None:
        folder = ScenarioFolder(request.folder)
        inside = (name for name in names if isinstance(name, str) and folder.holds(name))
        files += [request.folder / name for name in inside]
    return files


def explanations_of(output: OutputDirectory | None) -> tuple[Explanations, Sink]:
    """Where explanations can be found afterwards, and where they go meanwhile."""
    if output is not None:
        return ExplanationFile(output.explanations_path), output.explain
    memory = ExplanationMemory()
    return memory, memory.explain


def explain_only(pods: frozenset[str], sink: Sink, pod: str, line: Line) -> None:
    """A sink for what concerns some pods; lists of nodes concern all."""
    if not pod or pod in pods:
        sink(pod, line)


def registrations(options: ClusterOptions, request: RunRequest) -> ControllerRegistrations:
    """The built-in controllers and the caller's own, which settle after them."""
    all_of_them = builtin_controllers(options)
    for name, factory in request.controllers.items():
        all_of_them.add(Registration(name, factory))
    for reconciler in request.reconcilers:
        all_of_them.add(controller_from(reconciler))
    return all_of_them


def read(scenario: str | Path | AnyObject) -> JsonObject:
    """The Scenario object, from wherever it comes."""
    return _read(scenario)[0]


def _read(scenario: str | Path | AnyObject) -> tuple[JsonObject, OperationList | None]:
    """The Scenario object, and its operations if they were looked at."""
    if isinstance(scenario, str) and "\n" in scenario:
        raise ScenarioError(
            "this is text, not the path of a file: parse it first", where="scenario"
        )
    if isinstance(scenario, str | Path):
        return load_scenario(scenario), None
    if not (isinstance(scenario, Mapping) or hasattr(scenario, "build")):
        found = type(scenario).__name__
        raise ScenarioError(f"a file, an object or a builder is expected, not {found}")
    return taken_over(built(scenario), "scenario")


def folder_of(scenario: object) -> Path | None:
    """The folder of a scenario file."""
    return Path(scenario).parent if isinstance(scenario, str | Path) else None


def cluster_options(
    scenario: JsonObject, seed: int | None, scheduler: SchedulerOptions | None = None
) -> ClusterOptions:
    """What ``spec.simulation`` asks of the cluster; a fault there is reported by the engine.

    A scheduler that has a configuration keeps it. A configuration of the scenario's own that names
    plugins which ``scheduler`` does not have is a `ScenarioError`.
    """
    try:
        simulation = parse_simulation((scenario.get("spec") or {}).get("simulation"))
    except ScenarioError:
        simulation = Simulation()
    return ClusterOptions(
        seed=simulation.seed if seed is None else seed,
        start=simulation.start,
        explain=simulation.explain,
        kubelet=simulation.kubelet,
        scheduler=simulation.scheduler_options(at_once(scheduler or SchedulerOptions())),
    )


def with_seed(scenario: JsonObject, seed: int | None) -> JsonObject:
    """The Scenario with the seed that it is played with, so that its result can be played again."""
    if seed is None:
        return scenario
    if not -(2**63) <= seed < 2**63:
        raise ScenarioError(f"a seed must be a whole number of 64 bits, not {seed}", where="seed")
    return with_simulation(scenario, seed=seed)


def with_scheduler(
    scenario: JsonObject, asked: SchedulerOptions, played: SchedulerOptions
) -> JsonObject:
    """The Scenario with the configuration that it is played with, where others asked for one.

    So its result can be played again, and whoever compares runs sees what it was played with.
    """
    if asked.configuration is None and asked.profiles == SchedulerOptions().profiles:
        return scenario
    return with_simulation(scenario, schedulerConfig=configuration.describe(played))


def with_simulation(scenario: JsonObject, **settings: Any) -> JsonObject:
    """The Scenario with other settings in ``spec.simulation``."""
    spec = scenario.get("spec")
    if not isinstance(spec, dict):
        return scenario
    simulation = spec.get("simulation")
    given = simulation if isinstance(simulation, dict) else {}
    return {**scenario, "spec": {**spec, "simulation": {**given, **settings}}}


def without_status(scenario: JsonObject) -> JsonObject:
    return {key: value for key, value in scenario.items() if key != "status"}
