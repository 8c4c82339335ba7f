"""`kubescene.run`: one scenario from file to results.

Puts a cluster, the recorders and the engine together, plays the scenario and hands back a `Run`.
"""

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from kubescene.actors import Actor
from kubescene.client.verbs import AnyObject, plain
from kubescene.cluster import Cluster, ClusterOptions, builtin_controllers
from kubescene.control.loops import ControllerFactory
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import ScenarioError
from kubescene.results.explaining import ExplainedAttempt, attempts_of
from kubescene.results.explanations import ExplanationFile, ExplanationMemory, Explanations
from kubescene.results.output import OutputDirectory
from kubescene.results.summary import Summary, SummaryFold
from kubescene.scenario.engine import Engine
from kubescene.scenario.loading import check_identity, load_scenario
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.scenario.simulation import Simulation, parse_simulation
from kubescene.timeline import Instrument, Timeline, TimelineLog, TimelineRecorder
from kubescene.timeline.explanations import ExplanationRecorder, Sink
from kubescene.timeline.files import Header
from kubescene.types import JsonObject

USER = Actor("kubescene-run")


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run. ``log`` has its facts, ``timeline`` shows them as KEP-140's events."""

    phase: ScenarioPhase
    message: str
    log: TimelineLog
    explanations: Explanations
    summary: Summary
    bad_input: bool
    cluster: Cluster
    """The world as the run left it."""
    live: ScenarioResource

    @property
    def scenario(self) -> JsonObject:
        """The Scenario object with its whole status, free of what differs between equal runs."""
        obj: JsonObject = orjson.loads(self.live.data)
        return obj

    @property
    def ok(self) -> bool:
        return self.phase in (ScenarioPhase.SUCCEEDED, ScenarioPhase.PAUSED)

    @property
    def timeline(self) -> Timeline:
        """The events as KEP-140 shows them."""
        return Timeline(self.log)

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        """The attempts at ``NAMESPACE/NAME`` (or a name in ``default``), node by node."""
        return attempts_of(self.log, self.explanations, pod)

    def __repr__(self) -> str:
        bound = self.summary.placements_total
        return f"<Run {self.summary.scenario}: {self.phase}, {len(self.log)} facts, {bound} bound>"


def run(
    scenario: str | Path | AnyObject,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    controllers: Mapping[str, ControllerFactory] | None = None,
    instruments: Iterable[Instrument] = (),
    results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
    full_status: bool = False,
) -> Run:
    """Play a scenario: a file, an object, or a builder.

    A scenario that fails is a `Run` whose phase is ``Failed``; a scenario that cannot be read
    raises `ScenarioError`. With ``out``, the results are also written there.
    ``controllers`` join the built-in ones; one of the same name takes its place. ``full_status``
    puts the whole timeline into the Scenario that is written, too.
    """
    obj = read(scenario)
    options = cluster_options(obj, seed)
    log, fold = TimelineLog(), SummaryFold()
    log.follow(fold.add)
    output = None
    if out is not None:
        name = obj["metadata"]["name"]
        output = OutputDirectory(out, Header(scenario=name, seed=options.seed))
    explanations, explain = explanations_of(output)
    try:
        cluster = Cluster(
            options,
            controllers=registrations(options, controllers or {}),
        )
        recorder = TimelineRecorder(cluster.clock, log, role_of=cluster.registry.role_of)
        cluster.observe(recorder)
        if output is not None:
            log.follow(output.record)
            cluster.observe(output)
        cluster.observe(ExplanationRecorder(explain), *instruments)
        record = cluster.client(USER).create(without_status(obj))
        live = ScenarioResource(cluster.store, record)
        engine = Engine(cluster, live, recorder, results)
        with rare_collections():
            phase = engine.run()
        summary = fold.finish(record.name)
        if output is not None:
            events = Timeline(log).events if full_status else None
            output.finish(live.header(), events, summary)
    finally:
        if output is not None:
            output.close()
    return Run(
        phase=phase,
        message=live.message,
        log=log,
        explanations=explanations,
        summary=summary,
        bad_input=engine.bad_input,
        live=live,
        cluster=cluster,
    )


def explanations_of(output: OutputDirectory | None) -> tuple[Explanations, Sink]:
    """Where explanations can be found afterwards, and where they go meanwhile."""
    if output is not None:
        return ExplanationFile(output.explanations_path), output.explain
    memory = ExplanationMemory()
    return memory, memory.explain


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector look less often while a scenario plays.

    A run makes many short-lived objects without cycles; looking for cycles among them costs a
    tenth of its time.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def registrations(
    options: ClusterOptions, extra: Mapping[str, ControllerFactory]
) -> ControllerRegistrations:
    """The built-in controllers and the caller's own, which settle after them."""
    all_of_them = builtin_controllers(options)
    for name, factory in extra.items():
        add = all_of_them.replace if name in all_of_them else all_of_them.register
        add(name, factory)
    return all_of_them


def read(scenario: str | Path | AnyObject) -> JsonObject:
    """The Scenario object, from wherever it comes."""
    if isinstance(scenario, str | Path):
        return load_scenario(scenario)
    return check_identity(plain(scenario), "scenario")


def cluster_options(scenario: JsonObject, seed: int | None) -> ClusterOptions:
    """What ``spec.simulation`` asks of the cluster; a fault there is reported by the engine."""
    try:
        simulation = parse_simulation((scenario.get("spec") or {}).get("simulation"))
    except ScenarioError:
        simulation = Simulation()
    return ClusterOptions(
        seed=simulation.seed if seed is None else seed,
        start=simulation.start,
        explain=simulation.explain,
        kubelet=simulation.kubelet,
    )


def without_status(scenario: JsonObject) -> JsonObject:
    return {key: value for key, value in scenario.items() if key != "status"}
