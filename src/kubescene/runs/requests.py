"""What is to be played, as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kubescene.client.verbs import AnyObject, built
from kubescene.control.loops import ControllerFactory
from kubescene.errors import ScenarioError
from kubescene.scenario.phases import ResultsStrategy
from kubescene.scenario.reading.files import load_scenario
from kubescene.scenario.reading.handed_over import taken_over
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList, operations_of
from kubescene.scenario.reading.samples import with_samples
from kubescene.scheduler import SchedulerOptions
from kubescene.shortcuts import ALL, Shortcuts
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource
    from kubescene.results.measures.own import OwnFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What is to be played, as data: it can be sent to another process.

    ``controllers`` and ``reconcilers`` (classes with `reconcile`, see `kubescene.controllers`) join
    the built-in ones; one of the same name takes its place. ``full_status``
    puts the whole timeline into the Scenario that is written to ``out``, too. ``scheduler`` says
    with which profiles and plugins pods are placed; if it comes of a KubeSchedulerConfiguration,
    that wins over ``spec.simulation.schedulerConfig``. ``folder`` is where ``objectFrom``
    reads; a scenario file has its own. ``source`` is that file: results never overwrite it. With
    ``strict``, what nobody acts on is a fault instead of a warning; with ``thorough``, objects that
    the API would refuse are faults before anything is played. ``shortcuts`` are what is only
    faster, and may be left out. ``without`` are built-in controllers that are not there.
    ``snapshot`` is a file with the objects that are there when it begins; it wins over
    ``spec.simulation.snapshot``. ``explained`` are the pods
    whose explanations are kept, all if it is None. ``measures`` are functions of a run that
    expectations may name as ``measures.FUNCTION``. ``autoscalers`` are classes that
    PluginAutoscalers may choose, ``autoscaler_processes`` commands of others; a process is started
    for the run, and ends with it.
    """

    scenario: JsonObject
    out: Path | None = None
    seed: int | None = None
    controllers: Mapping[str, ControllerFactory] = field(default_factory=dict)
    reconcilers: Sequence[type] = ()
    autoscalers: "Sequence[PluginSource]" = ()
    autoscaler_processes: Sequence[str] = ()
    results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP
    full_status: bool = False
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    folder: Path | None = None
    source: Path | None = None
    strict: bool = False
    thorough: bool = False
    explained: frozenset[str] | None = None
    measures: "Sequence[OwnFunction]" = ()
    shortcuts: Shortcuts = ALL
    without: frozenset[str] = frozenset()
    snapshot: Path | None = None


def read(scenario: str | Path | AnyObject) -> JsonObject:
    """The Scenario object, from wherever it comes."""
    return read_listed(scenario)[0]


def read_listed(
    scenario: str | Path | AnyObject, *, alike: bool = True
) -> tuple[JsonObject, OperationList | None]:
    """The Scenario object, and its operations if they were looked at (`taken_over`)."""
    if isinstance(scenario, str) and "\n" in scenario:
        raise ScenarioError(
            "this is text, not the path of a file: parse it first", where="scenario"
        )
    if isinstance(scenario, str | Path):
        return with_samples(load_scenario(scenario), ScenarioFolder(Path(scenario).parent)), None
    if not (isinstance(scenario, Mapping) or hasattr(scenario, "build")):
        found = type(scenario).__name__
        raise ScenarioError(f"a file, an object or a builder is expected, not {found}")
    return taken_over(built(scenario), "scenario", alike=alike)


def folder_of(scenario: object) -> Path | None:
    """The folder of a scenario file."""
    return Path(scenario).parent if isinstance(scenario, str | Path) else None


def inputs_of(request: RunRequest) -> list[Path]:
    """The files that a run reads, and so must not write."""
    _, operations = operations_of(request.scenario)
    creations = [each.get("createOperation") for each in operations if isinstance(each, dict)]
    names = [each.get("objectFrom") for each in creations if isinstance(each, dict)]
    files = [each for each in (request.source, request.snapshot) if each is not None]
    if request.folder is not None:
        folder = ScenarioFolder(request.folder)
        inside = (name for name in names if isinstance(name, str) and folder.holds(name))
        files += [request.folder / name for name in inside]
    return files
