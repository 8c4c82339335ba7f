"""What is combined with what: scenarios, configurations of the scheduler, settings, seeds.

Everything is read and checked before the first run: a mistake in the last file is told at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from kubescene.autoscalers.available import PluginSource
from kubescene.client.verbs import AnyObject
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.experiments.settings import Setting, combined, with_settings
from kubescene.results.measures.own import OwnFunction
from kubescene.runs.examination import expectation_faults
from kubescene.runs.requests import RunRequest, folder_of, read
from kubescene.runs.staging import cluster_options
from kubescene.scenario.expectations import expectations_of
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.validation.faults import Fault
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.scheduler import SchedulerOptions
from kubescene.scheduler.configuration.sources import SchedulerSource, scheduler_options
from kubescene.types import JsonObject

OWN = "own"
"""The configuration of a scenario itself: its ``schedulerConfig``, or the default."""

ScenarioSource: TypeAlias = str | Path | AnyObject
Scenarios: TypeAlias = ScenarioSource | Sequence[ScenarioSource] | Mapping[str, ScenarioSource]
Configurations: TypeAlias = (
    SchedulerSource | Sequence[SchedulerSource | None] | Mapping[str, SchedulerSource | None] | None
)
Seeds: TypeAlias = int | Iterable[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One row of the table: everything but the seed. ``request`` is the run without it."""

    scenario: str
    configuration: str
    settings: tuple[Setting, ...]
    request: RunRequest

    @property
    def settings_text(self) -> str:
        return " ".join(map(str, self.settings))

    def __str__(self) -> str:
        parts = (self.scenario, self.configuration, self.settings_text)
        return ", ".join(part for part in parts if part and part != OWN)


def combinations(
    scenarios: Scenarios,
    configurations: Configurations,
    settings: Mapping[str, Sequence[Any]],
    *,
    reconcilers: Sequence[type] = (),
    strict: bool = False,
    own: Sequence[OwnFunction] = (),
    autoscalers: Sequence[PluginSource] = (),
    autoscaler_processes: Sequence[str] = (),
) -> list[Combination]:
    """All combinations, scenario by scenario, in the order in which they are given."""
    choices = list(combined(settings))
    return of_choices(
        scenarios,
        configurations,
        choices,
        reconcilers=reconcilers,
        strict=strict,
        own=own,
        autoscalers=autoscalers,
        autoscaler_processes=autoscaler_processes,
    )


def of_choices(
    scenarios: Scenarios,
    configurations: Configurations,
    choices: Sequence[tuple[Setting, ...]],
    *,
    reconcilers: Sequence[type] = (),
    strict: bool = False,
    own: Sequence[OwnFunction] = (),
    autoscalers: Sequence[PluginSource] = (),
    autoscaler_processes: Sequence[str] = (),
) -> list[Combination]:
    """The same of choices of settings that somebody else has made."""
    schedulers = dict(labelled_configurations(configurations))
    found = []
    for label, source in labelled_scenarios(scenarios):
        document, folder = read(source), folder_of(source)
        for chosen in choices:
            scenario = with_settings(document, chosen) if chosen else document
            check(label, scenario, chosen, folder, own)
            for name, scheduler in schedulers.items():
                request = RunRequest(
                    scenario=scenario,
                    reconcilers=reconcilers,
                    scheduler=scheduler,
                    folder=folder,
                    source=Path(source) if isinstance(source, str | Path) else None,
                    strict=strict,
                    measures=tuple(own),
                    autoscalers=autoscalers,
                    autoscaler_processes=autoscaler_processes,
                )
                cluster_options(scenario, None, scheduler)  # Whether they fit together.
                found.append(
                    Combination(
                        scenario=label, configuration=name, settings=chosen, request=request
                    )
                )
    return found


def check(
    label: str,
    scenario: JsonObject,
    settings: tuple[Setting, ...],
    folder: Path | None,
    own: Sequence[OwnFunction],
) -> None:
    """Raise the first fault of a scenario, as settings have made it."""
    place = None if folder is None else ScenarioFolder(folder)
    faults = chain(find_faults(scenario, place), expected_in_vain(scenario, own))
    for fault in faults:
        among = f" (with {' '.join(map(str, settings))})" if settings else ""
        raise ScenarioError(f"{fault.error}{among}", where=label, path=fault.path)


def expected_in_vain(scenario: JsonObject, own: Sequence[OwnFunction]) -> Iterator[Fault]:
    """Expectations of a scenario without other faults that could not be looked at in the end."""
    yield from expectation_faults(expectations_of(scenario.get("spec") or {}), own)


def labelled_scenarios(given: Scenarios) -> Iterator[tuple[str, ScenarioSource]]:
    """Scenarios by the names of their rows: the path of a file, the name of an object."""
    if is_named(given):
        assert isinstance(given, Mapping)
        yield from given.items()
        return
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    named = [(_label(each), each) for each in several]
    check_unique([label for label, _ in named], [each for _, each in named], "scenario")
    yield from named


def is_named(given: Any) -> bool:
    """Whether it is a mapping of names rather than an object of Kubernetes."""
    return isinstance(given, Mapping) and "kind" not in given and "apiVersion" not in given


def _label(source: Any) -> str:
    if isinstance(source, str | Path):
        return str(source)
    name = read(source)["metadata"]["name"]
    return str(name)


def labelled_configurations(given: Configurations) -> Iterator[tuple[str, SchedulerOptions]]:
    """Options by the names of their rows: the path of a file, ``own`` for the scenario's."""
    if is_named(given):
        assert isinstance(given, Mapping)
        for name, source in given.items():
            yield str(name), scheduler_options(source)
        return
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    labels = [_configuration_label(each, number) for number, each in enumerate(several, 1)]
    check_unique(labels, several, "configuration")
    for label, source in zip(labels, several, strict=True):
        yield label, scheduler_options(source)


def _configuration_label(source: Any, number: int) -> str:
    if source is None:
        return OWN
    return str(source) if isinstance(source, str | Path) else f"configuration {number}"


def check_unique(labels: Sequence[str], sources: Sequence[Any], what: str) -> None:
    if not labels:
        raise ConfigurationError(f"there is no {what}: name at least one")
    seen: set[str] = set()
    for label, source in zip(labels, sources, strict=True):
        # The same file by another path is the same file.
        known = str(Path(source).resolve()) if isinstance(source, str | Path) else label
        if known in seen or label in seen:
            raise ConfigurationError(
                f"the {what} {label} is given twice: leave one away, or name them yourself"
            )
        seen |= {known, label}


def seeds_of(given: Seeds) -> list[int | None]:
    """The seeds to play: 1 to N for a number; None is the scenario's own."""
    if given is None:
        return [None]
    if isinstance(given, int):
        if given < 1:
            raise ConfigurationError(f"seeds must be at least 1, not {given}: so many are played")
        return list(range(1, given + 1))
    listed = list(given)
    if not listed:
        raise ConfigurationError("there is no seed: name at least one")
    for seed in listed:
        if type(seed) is not int or not -(2**63) <= seed < 2**63:
            raise ConfigurationError(f"a seed must be a whole number of 64 bits, not {seed!r}")
        if listed.count(seed) > 1:
            raise ConfigurationError(f"the seed {seed} is given twice: it would count double")
    return [*listed]
