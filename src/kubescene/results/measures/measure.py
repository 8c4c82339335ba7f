"""What a measure is: a name, one sentence, a formula, a unit, and a function of the ledger.

A measure without a value (no node, no pod, no time) is None, never 0 or NaN.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.results.ledger import Ledger

Number: TypeAlias = int | float
Value: TypeAlias = Number | None

RESOURCE = "RESOURCE"
SHARE = "share"


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """``of`` gives its value for a ledger."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Ledger], Value]

    def values(self, ledger: Ledger) -> Iterator["Measured"]:
        """Its one value."""
        yield Measured(self.name, self.of(ledger), self.meaning, self.name)


class ResourceMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of every resource that nodes offer; in ``name``, RESOURCE stands for it."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Ledger, list[str]], Mapping[str, Value]]

    def values(self, ledger: Ledger) -> Iterator["Measured"]:
        """One value per resource."""
        for resource, value in self.of(ledger, resources(ledger)).items():
            name, exact = (self.name.replace(RESOURCE, each) for each in (word(resource), resource))
            yield Measured(name, value, self.meaning.replace(RESOURCE, resource), exact)


class Measured(NamedTuple):
    """One value, under the name that it has in this run.

    ``exact`` has the resource as it is written, for where two of them become the same word.
    """

    name: str
    value: Value
    meaning: str
    exact: str


AnyMeasure: TypeAlias = Measure | ResourceMeasure


def resources(ledger: Ledger) -> list[str]:
    """What nodes ever offered in this run; cpu, memory and pods in any case."""
    return sorted(ledger.totals.allocatable.keys() | {CPU, MEMORY, PODS})


def word(resource: str) -> str:
    """A resource's name as part of an identifier: ``example.com/gpu`` is ``example_com_gpu``."""
    return re.sub(r"\W", "_", resource)


def share(part: Number, whole: Number) -> float | None:
    """A part of a whole; of nothing there is none."""
    return part / whole if whole else None


def shares(parts: Mapping[str, int], wholes: Mapping[str, int]) -> dict[str, float | None]:
    """The same for every resource of the whole."""
    return {name: share(parts.get(name, 0), whole) for name, whole in wholes.items()}
