"""``kubescene validate``: all faults of a file, by the rules of a run."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kubescene.cli.components import autoscalers_named, controllers_named, measures_named
from kubescene.cli.files import ScenarioFile, complain, one_line, read_scenario
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.reports.words import counted
from kubescene.runs.examination import expectation_faults, remarks
from kubescene.runs.requests import RunRequest
from kubescene.runs.staging import cluster_options, registrations, snapshot_for, stored
from kubescene.scenario.documents import without_status
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.scenario.spec import ScenarioSpec, normalised
from kubescene.scenario.validation.objects import object_faults
from kubescene.scenario.validation.operations import OPTIONS
from kubescene.scenario.validation.registered import check_schedulers, missing_controllers
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.scenario.validation.unsimulated import Players, unsimulated
from kubescene.scheduler import SchedulerOptions
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.autoscalers import AutoscalerPlugin
    from kubescene.autoscalers.available import PluginSource
    from kubescene.results.measures.own import OwnFunction

BAD_INPUT = 2


class Brought(NamedTuple):
    """What a run would be given beside the file."""

    reconcilers: Sequence[type]
    measures: "Sequence[OwnFunction]"
    autoscalers: "Sequence[PluginSource]"


def validate_files(
    files: Iterable[Path],
    *,
    controllers: Sequence[str] = (),
    waiters: Sequence[str] = (),
    measures: Sequence[str] = (),
    autoscalers: Sequence[str] = (),
    autoscaler_processes: Sequence[str] = (),
    strict: bool = False,
) -> int:
    """Check each file; prints a line per file, or one per fault, and returns the exit code."""
    processes = processes_of(autoscaler_processes)
    try:
        own = [*autoscalers_named(autoscalers), *processes]
        brought = Brought(controllers_named(controllers), measures_named(measures), own)
        return validated(files, brought, waiters, strict=strict)
    finally:
        for each in processes:
            each.close()


def processes_of(commands: Sequence[str]) -> "list[AutoscalerPlugin]":
    """Those that say of themselves which objects they take."""
    if not commands:
        return []
    from kubescene.autoscalers.references import started

    return started(commands)


def validated(
    files: Iterable[Path], brought: Brought, waiters: Sequence[str], *, strict: bool
) -> int:
    code = 0
    for name in files:
        try:
            file = read_scenario(name)
            faults, warnings, spec = examine(file, brought, strict=strict)
            faults += [] if spec is None else waiter_errors(spec, waiters)
        except (ScenarioError, ConfigurationError) as error:
            complain([one_line(str(error))])
            code = BAD_INPUT
            continue
        complain(f"{file.name}: warning: {one_line(warning)}" for warning in warnings)
        if faults or spec is None:
            complain(file.line(fault) for fault in in_order(file, faults))
            code = BAD_INPUT
        else:
            amounts = counted(len(spec.operations), "operation"), counted(len(spec.by_step), "step")
            sys.stdout.write(f"{file.name}: fine, {' in '.join(amounts)}\n")
    return code


def examine(
    file: ScenarioFile, brought: Brought, *, strict: bool
) -> tuple[list[ScenarioError], list[str], ScenarioSpec | None]:
    """Faults, warnings, and the spec if it could be read."""
    faults = [fault.error for fault in find_faults(file.scenario, file.folder)]
    faults += metadata_errors(file)
    request = RunRequest(scenario=file.scenario, reconcilers=brought.reconcilers)
    registered = registrations(ClusterOptions(), request)
    if faults:
        rest = sound_part(file, faults)
        found = (fault.error for fault in object_faults(rest, registered, is_whole=False))
        faults += [*found, *controller_errors(rest, registered)]
        faults += expectation_errors(rest, brought.measures)
        return faults, [], None
    spec = normalised(file.scenario, file.folder)
    faults += snapshot_errors(file)
    faults += expectation_errors(spec, brought.measures)
    faults += [fault.error for fault in object_faults(spec, registered)]
    try:
        scheduler = cluster_options(file.scenario, None, request.scheduler).scheduler
    except ScenarioError as error:
        return [*faults, error, *controller_errors(spec, registered)], [], None
    faults += controller_errors(spec, registered, scheduler)
    if strict:
        players = Players.of(spec, registered, scheduler, brought.autoscalers)
        faults += [each.error for each in unsimulated(spec, players)]
        return faults, [], spec
    warnings = remarks(
        file.scenario,
        spec,
        controllers=registered,
        scheduler=scheduler,
        autoscalers=brought.autoscalers,
    )
    return faults, warnings, spec


def snapshot_errors(file: ScenarioFile) -> list[ScenarioError]:
    """Why the snapshot that it begins with cannot be read."""
    folder = None if file.path is None else file.path.parent
    try:
        snapshot_for(file.scenario, RunRequest(scenario=file.scenario, folder=folder))
    except ScenarioError as error:
        return [error]
    return []


def metadata_errors(file: ScenarioFile) -> list[ScenarioError]:
    """What the API would refuse about the Scenario itself: its name, its labels."""
    try:
        stored({**without_status(file.scenario), "spec": {}}, ClusterWorld())
    except ScenarioError as error:
        return [error]
    return []


def sound_part(file: ScenarioFile, faults: Sequence[ScenarioError]) -> ScenarioSpec:
    """What can be read of a scenario that has faults: its other operations, and who plays."""
    spec = file.scenario.get("spec") or {}
    listed, items = operations_of(file.scenario)
    wrong = {fault.path[:3] for fault in faults if not is_beside(fault.path)}
    bad = {path[2] for path in wrong if path[:2] == ("spec", listed) and len(path) == 3}
    sound: JsonObject = {}
    if ("spec", "controllers") not in {path[:2] for path in wrong}:
        sound["controllers"] = spec.get("controllers")
    if ("spec", "expectations") not in {path[:2] for path in wrong}:
        sound["expectations"] = spec.get("expectations")
    if not any(may_define(items[n]) for n in bad if isinstance(n, int)):
        sound[listed] = [done_at(n) if n in bad else item for n, item in enumerate(items)]
    return normalised({"spec": sound}, file.folder)


def is_beside(path: tuple[str | int, ...]) -> bool:
    """Whether a fault leaves the rest of its operation readable: in its id, or in an option."""
    return path[3:4] == ("id",) or (path[4:5] in {(each,) for each in OPTIONS} and len(path) > 5)


def may_define(operation: Any) -> bool:
    """Whether an operation may bring kinds that later ones use."""
    text = str(operation)
    return "CustomResourceDefinition" in text or "objectFrom" in text


def done_at(number: int) -> JsonObject:
    """Keeps the place of an operation that cannot be read."""
    return {"id": f"@{number}", "step": 1, "doneOperation": {}}


def expectation_errors(
    spec: ScenarioSpec, measures: "Sequence[OwnFunction]"
) -> list[ScenarioError]:
    return [fault.error for fault in expectation_faults(spec.expectations, measures)]


def controller_errors(
    spec: ScenarioSpec,
    registered: ControllerRegistrations,
    scheduler: SchedulerOptions | None = None,
) -> list[ScenarioError]:
    """What is wrong with who plays; the scheduler is left out if it cannot be read."""
    profiles = () if scheduler is None else scheduler.profiles
    if errors := list(missing_controllers(spec, registered)):
        return errors
    try:
        check_schedulers(spec, registered, (each.scheduler_name for each in profiles))
    except ScenarioError as error:
        return [error]
    return []


def waiter_errors(spec: ScenarioSpec, references: Sequence[str]) -> list[ScenarioError]:
    """Waiters that nobody brings along."""
    if not spec.outside and not references:
        return []
    from kubescene.cli.components import waiters_named
    from kubescene.outside.waiters import waiter_of

    brought, found = waiters_named(references), []
    for each in spec.outside:
        try:
            waiter_of(each, brought)
        except ScenarioError as error:
            found.append(error)
    return found


def in_order(file: ScenarioFile, faults: list[ScenarioError]) -> list[ScenarioError]:
    """The faults from the top of the file to its end."""
    return sorted(faults, key=lambda fault: file.places.find(fault.path) or (0, 0))
