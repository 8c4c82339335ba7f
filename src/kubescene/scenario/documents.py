"""Changes of a Scenario document that do not touch the one that was given."""

from typing import Any

from kubescene.errors import ScenarioError
from kubescene.scheduler import SchedulerOptions, configuration
from kubescene.types import JsonObject


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
