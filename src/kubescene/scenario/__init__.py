"""KEP-140's Scenario: what happens, step by step, and the engine that plays it.

`build` writes scenarios, `loading` reads them, `spec` is their normalised form, `engine` turns the
crank, `resource` is the live object that watchers see.
"""

from kubescene.scenario.build import ScenarioBuilder
from kubescene.scenario.engine import Engine
from kubescene.scenario.phases import ScenarioPhase, StepPhase
from kubescene.scenario.reading.files import load_scenario
from kubescene.scenario.spec import ScenarioSpec, parse_spec

__all__ = [
    "Engine",
    "ScenarioBuilder",
    "ScenarioPhase",
    "ScenarioSpec",
    "StepPhase",
    "load_scenario",
    "parse_spec",
]
