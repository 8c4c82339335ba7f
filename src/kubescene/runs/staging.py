"""A run before its first moment: world, engine, log, explanations and account put together.

This is the only place that does it. `stage` makes a world of its own for a `RunRequest`; whoever
has a world and a Scenario that is stored there, as a server has, makes a `StagedRun` of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from msgspec import structs

from kubescene.actors import Actor
from kubescene.api.options import LASTING
from kubescene.api.records import Record
from kubescene.cluster import ClusterOptions, ClusterWorld, builtin_controllers
from kubescene.controllers.authoring import controller_from
from kubescene.controllers.registrations import ControllerRegistrations, Registration
from kubescene.errors import ApiError, ScenarioError
from kubescene.registry import Registry
from kubescene.results.summary import SummaryFold, folded
from kubescene.runs.examination import Examination, evaluation
from kubescene.runs.requests import RunRequest
from kubescene.runs.sinks import DirectorySink, MemorySink, Sink
from kubescene.runs.worlds import RunWorld
from kubescene.scenario.documents import with_scheduler, with_seed, without_status
from kubescene.scenario.engine import Engine, EngineMoment
from kubescene.scenario.phases import ResultsStrategy
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.simulation import Simulation, parse_simulation
from kubescene.scenario.world import LiveScenario, Stage, World
from kubescene.scheduler import SchedulerOptions
from kubescene.timeline import Instrument, TimelineLog, TimelineRecorder
from kubescene.timeline.explanations import ExplanationRecorder, Line
from kubescene.timeline.files import Header
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.snapshots import Snapshot

USER = Actor("kubescene-run")
CONFIGURATION: JsonObject = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
"""What an export of kube-scheduler-simulator may leave out of its configuration."""
W = TypeVar("W", bound=RunWorld)


class StoredScenario(LiveScenario, Protocol):
    """The Scenario object where it is stored: in our own store, or in an API server's."""

    @property
    def uid(self) -> str: ...

    def recall(self, status: JsonObject) -> None:
        """Go on from what an earlier engine has said."""
        ...

    def is_mine(self, record: Record) -> bool:
        """Whether the engine wrote it: then the spec is the one that is known."""
        ...

    def header(self) -> JsonObject:
        """The object without its timeline, however long that is."""
        ...


class Account:
    """What is told of a run: facts in a log, explanations in a sink, and what they come down to.

    With ``is_watched`` it is kept up to date while the scenario plays, and other threads may read.
    ``explained`` are the pods whose explanations are kept, all if it is None.
    """

    def __init__(
        self,
        cluster: RunWorld,
        sink: Sink | None = None,
        *,
        is_watched: bool = False,
        explained: frozenset[str] | None = None,
    ) -> None:
        self.sink = sink or MemorySink()
        self.log = TimelineLog()
        self._fold = SummaryFold() if is_watched else None
        # Explanations are kept, or written soon; other threads shall not wait for them.
        puts_off = not is_watched and (explained is None or isinstance(self.sink, DirectorySink))
        if self._fold is not None:
            self.log.follow(self._fold.add)
        self.recorder = TimelineRecorder(
            cluster.clock,
            self.log,
            role_of=cluster.registry.role_of,
            puts_off=puts_off,
        )
        self.onlookers: tuple[Instrument, ...] = (
            self.recorder,
            *self.sink.onlookers,
            ExplanationRecorder(explainer(self.sink, explained)),
        )

    @property
    def fold(self) -> SummaryFold:
        """All that has happened so far."""
        return folded(self.log) if self._fold is None else self._fold


class StagedRun(Generic[W]):
    """A Scenario in a world, and its account.

    ``options`` are those that the world has, or will begin anew with. The objects of ``snapshot``
    are there when it begins.
    """

    def __init__(
        self,
        cluster: W,
        scenario: StoredScenario,
        account: Account,
        *,
        options: ClusterOptions,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        request: RunRequest | None = None,
        stage: Stage | None = None,
        listed: OperationList | None = None,
        snapshot: "Snapshot | None" = None,
    ) -> None:
        self.cluster = cluster
        self.scenario = scenario
        self.account = account
        self.options = options
        self.log = account.log
        self.sink = account.sink
        self._is_kept = False
        own = () if request is None else request.measures
        self.examination = Examination(
            controllers=cluster.registrations,
            scheduler=options.scheduler,
            strict=request is not None and request.strict,
            thorough=request is not None and request.thorough,
            restores=snapshot is not None,
            own=own,
            autoscalers=options.autoscaler_plugins,
        )
        folder = None if request is None else request.folder
        self.engine = Engine(
            cluster,
            scenario,
            account.recorder,
            results,
            None if folder is None else ScenarioFolder(folder),
            self.examination,
            partial(evaluation, own=own),
            stage=stage,
            listed=listed,
            furnish=None if snapshot is None else partial(restored, cluster.registry, snapshot),
        )

    @property
    def name(self) -> str:
        return self.scenario.name

    def use(self, options: ClusterOptions) -> None:
        """The world will begin anew with other options than it was staged with."""
        self.options = options
        self.examination.scheduler = options.scheduler
        self.examination.autoscalers = options.autoscaler_plugins

    def play(self) -> Iterator[EngineMoment]:
        """Moment by moment; what happened is kept from the first on that its input allows."""
        for moment in self.engine.play():
            self.keep()
            yield moment

    def begin(self) -> None:
        """Read and examine the scenario."""
        next(self.engine.play(), None)
        self.keep()

    def keep(self) -> None:
        """After the first moment: let the sink begin, unless the input is bad."""
        if not (self._is_kept or self.engine.bad_input):
            self._is_kept = True
            self.sink.begin(Header(scenario=self.name, seed=self.options.seed), self.log)


def stage(
    request: RunRequest,
    sink: Sink | None = None,
    instruments: Iterable[Instrument] = (),
    *,
    listed: OperationList | None = None,
) -> StagedRun[ClusterWorld]:
    """A scenario in a world of its own. ``listed`` are its operations, if somebody knows them."""
    scenario = without_status(with_seed(request.scenario, request.seed))
    if not request.shortcuts.alike_operations:
        listed = OperationList.of(scenario, alike=False)
    snapshot = snapshot_for(scenario, request)
    options = cluster_options(scenario, request.seed, request.scheduler, snapshot)
    options = replace(
        options,
        shortcuts=request.shortcuts,
        without=request.without,
        autoscaler_plugins=tuple(request.autoscalers),
    )
    cluster = ClusterWorld(options, controllers=registrations(options, request))
    account = Account(cluster, sink, explained=request.explained)
    cluster.observe(*account.onlookers, *instruments)
    played = with_scheduler(scenario, request.scheduler, options.scheduler)
    return StagedRun(
        cluster,
        ScenarioResource(cluster.store, stored(played, cluster)),
        account,
        options=options,
        results=request.results,
        request=request,
        listed=listed,
        snapshot=snapshot,
    )


def snapshot_for(scenario: JsonObject, request: RunRequest) -> "Snapshot | None":
    """What is there when it begins, if anything is; raises `ScenarioError`.

    Nobody who has none loads what reads them.
    """
    simulation = (scenario.get("spec") or {}).get("simulation")
    name = simulation.get("snapshot") if isinstance(simulation, dict) else None
    if request.snapshot is None and not (isinstance(name, str) and name and request.folder):
        return None  # what else it is, the engine says
    from kubescene.snapshots import read_snapshot

    if request.snapshot is not None:
        return read_snapshot(request.snapshot)
    assert isinstance(name, str)
    assert request.folder is not None
    try:
        return read_snapshot(ScenarioFolder(request.folder).file(name))
    except ScenarioError as error:
        path = ("spec", "simulation", "snapshot")
        raise ScenarioError(error.message, where=error.where, path=path) from error


def restored(registry: Registry, snapshot: "Snapshot") -> Sequence[str]:
    """Put it into the world; returns what is to be known of it, as warnings."""
    from kubescene.snapshots import restore

    refused = restore(registry, snapshot)
    return [f"snapshot: {each}" for each in (*snapshot.unknowns, *snapshot.told_left_out, *refused)]


def explainer(sink: Sink, pods: frozenset[str] | None) -> Callable[[str, Line], None]:
    """Where explanations go; only what concerns some pods, if they are named."""
    return sink.explain if pods is None else partial(explain_only, pods, sink.explain)


def explain_only(
    pods: frozenset[str], explain: Callable[[str, Line], None], pod: str, line: Line
) -> None:
    """Lists of nodes concern all pods."""
    if not pod or pod in pods:
        explain(pod, line)


def stored(scenario: JsonObject, cluster: World) -> Record:
    """The Scenario in the world; what the API refuses about its metadata is its author's fault."""
    try:
        return cluster.client(USER).create(scenario, options=LASTING)
    except ApiError as error:
        raise ScenarioError(error.message, where="scenario", path=("metadata",)) from error


def registrations(options: ClusterOptions, request: RunRequest) -> ControllerRegistrations:
    """The built-in controllers and the caller's own, which settle after them."""
    all_of_them = builtin_controllers(options)
    for name, factory in request.controllers.items():
        all_of_them.add(Registration(name, factory))
    for reconciler in request.reconcilers:
        all_of_them.add(controller_from(reconciler))
    return all_of_them


def cluster_options(
    scenario: JsonObject,
    seed: int | None,
    scheduler: SchedulerOptions | None = None,
    snapshot: "Snapshot | None" = None,
) -> ClusterOptions:
    """What ``spec.simulation`` asks of the cluster; a fault there is reported by the engine.

    A scheduler that has a configuration keeps it. A configuration of the scenario's own that names
    plugins which ``scheduler`` does not have is a `ScenarioError`.
    """
    try:
        simulation = parse_simulation((scenario.get("spec") or {}).get("simulation"))
    except ScenarioError:
        simulation = Simulation()
    if snapshot is not None:
        simulation = as_in(snapshot, simulation)
    return ClusterOptions(
        seed=simulation.seed if seed is None else seed,
        start=simulation.start,
        explain=simulation.explain,
        kubelet=simulation.kubelet,
        workloads=simulation.workloads,
        autoscaler=simulation.autoscaler,
        karpenter=simulation.karpenter,
        autoscaling=simulation.autoscaling,
        scheduler=simulation.scheduler_options((scheduler or SchedulerOptions()).at_once()),
    )


def as_in(snapshot: "Snapshot", simulation: Simulation) -> Simulation:
    """The settings with those that a snapshot brings, where the scenario says nothing."""
    if simulation.start is None and snapshot.taken_at is not None:
        simulation = structs.replace(simulation, start=snapshot.taken_at)
    config = snapshot.scheduler_config
    if simulation.scheduler_config is None and config is not None:
        simulation = structs.replace(simulation, scheduler_config=CONFIGURATION | config)
    return simulation
