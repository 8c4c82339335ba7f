"""What a search is for: a measure that is to be least or most, and what has to hold."""

import re
from typing import NamedTuple

import msgspec

from kubescene.errors import ConfigurationError
from kubescene.experiments.estimates import Estimate
from kubescene.experiments.results import MatrixRun
from kubescene.results.measures.measure import Number

_CONDITION = re.compile(
    r"\s*(?P<name>\w+)\s*(?P<relation><=|>=|<|>|==)\s*(?P<bound>-?\d+(?:\.\d+)?)\s*(?P<unit>ms|s|%)?\s*"
)
_MILLISECONDS = re.compile(r"(?P<served>served_)?(?P<percent>p50|p95|p99)_ms(?P<of>_\w+)?")
"""Columns of the table ``traffic``, beside the measures that say the same in seconds."""


class GoalCondition(NamedTuple):
    """What must hold in every run."""

    text: str
    name: str
    relation: str
    bound: float

    def holds(self, value: Number | None) -> bool:
        if value is None:
            return False
        return {
            "<": value < self.bound,
            "<=": value <= self.bound,
            ">": value > self.bound,
            ">=": value >= self.bound,
            "==": value == self.bound,
        }[self.relation]

    def excess(self, value: Number | None) -> float:
        """How far it is from holding; at most 0 if it does."""
        if value is None:
            return float("inf")
        apart = value - self.bound
        if self.relation == "==":
            return abs(apart)
        return apart if self.relation.startswith("<") else -apart


def parse_condition(text: str) -> GoalCondition:
    """``p99_ms < 300``, ``requests_failed <= 100``, ``response_p99_s < 300 ms``."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ConfigurationError(
            f"--subject-to {text!r} must be a measure, one of < <= > >= ==, and a number"
        )
    bound, name = float(found["bound"]), found["name"]
    unit = found["unit"]
    if unit == "%":
        bound /= 100
    if unit in ("ms", "s"):
        is_ms = _MILLISECONDS.fullmatch(name) is not None
        bound *= {("ms", False): 0.001, ("s", True): 1000}.get((unit, is_ms), 1)
    return GoalCondition(text.strip(), name, found["relation"], bound)


class Goal(NamedTuple):
    """What is to be least, or most, and what must hold."""

    name: str
    conditions: tuple[GoalCondition, ...] = ()
    most: bool = False

    @property
    def names(self) -> list[str]:
        """Of all measures that it speaks of, the goal first."""
        return [*dict.fromkeys((self.name, *(each.name for each in self.conditions)))]


def measure_named(name: str) -> tuple[str, float]:
    """The measure that a name stands for, and what to multiply it by."""
    found = _MILLISECONDS.fullmatch(name)
    if found is None:
        return name, 1
    return f"response_{found['served'] or ''}{found['percent']}_s{found['of'] or ''}", 1000


def value_of(run: MatrixRun, name: str) -> Number | None:
    measure, factor = measure_named(name)
    value = run.measures.get(measure)
    return value if value is None or factor == 1 else value * factor


class TuningTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A combination that was played. ``held`` of ``runs`` runs kept all conditions."""

    settings: dict[str, str]
    runs: int
    held: int
    failed: int
    error: str
    values: dict[str, Estimate]
    """Of the goal and of what conditions speak of; what has no value in any run is not there."""

    @property
    def is_feasible(self) -> bool:
        return self.runs > 0 and not self.failed and self.held == self.runs
