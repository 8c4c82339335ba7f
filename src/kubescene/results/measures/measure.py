"""What a measure is: a name, one sentence, a formula, a unit, and a function of the ledger.

A measure without a value (no node, no pod, no time) is None, never 0 or NaN.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.results.cost.bill import Bill
from kubescene.results.cost.prices import Prices
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.scaling import ToldRun

Number: TypeAlias = int | float
Value: TypeAlias = Number | None

RESOURCE, WORKLOAD = "RESOURCE", "WORKLOAD"
SHARE = "share"


Basis: TypeAlias = Callable[[ToldRun], Any]
"""What several measures look at is made of a run once."""


class Reading:
    """A run that several measures look at; what they share is worked out once."""

    def __init__(self, source: ToldRun, prices: Prices | None = None) -> None:
        self.source = source
        self.ledger = source.ledger
        self.bill = Bill(source.ledger, prices)
        self._known: dict[Basis, Any] = {}

    def made(self, basis: Basis) -> Any:
        """What ``basis`` makes of the run."""
        if basis not in self._known:
            self._known[basis] = basis(self.source)
        return self._known[basis]


def the_ledger(source: ToldRun) -> Ledger:
    """The basis of a measure that looks at nothing else."""
    return source.ledger


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """``of`` gives its value for what ``basis`` makes of a run: its ledger, if none is named."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Any], Value]
    basis: Basis = the_ledger

    def values(self, reading: Reading) -> Iterator["Measured"]:
        """Its one value."""
        yield Measured(self.name, self.of(reading.made(self.basis)), self.meaning, self.name)


class ResourceMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of every resource that nodes offer; in ``name``, RESOURCE stands for it."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Ledger, list[str]], Mapping[str, Value]]

    def values(self, reading: Reading) -> Iterator["Measured"]:
        """One value per resource."""
        ledger = reading.ledger
        for resource, value in self.of(ledger, resources(ledger)).items():
            name, exact = (self.name.replace(RESOURCE, each) for each in (word(resource), resource))
            yield Measured(name, value, self.meaning.replace(RESOURCE, resource), exact)


class WorkloadMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of every workload, or of what its ``meaning`` says.

    In ``name``, WORKLOAD stands for ``namespace_name``. ``of`` gives namespace, name and value of
    each, for what ``basis`` makes of a run.
    """

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Any], Iterable[tuple[str, str, Value]]]
    basis: Basis

    def values(self, reading: Reading) -> Iterator["Measured"]:
        """One value per workload."""
        for namespace, workload, value in self.of(reading.made(self.basis)):
            told = f"{namespace}/{workload}"
            name, exact = (self.name.replace(WORKLOAD, each) for each in (word(told), told))
            yield Measured(name, value, self.meaning.replace(WORKLOAD, told), exact)


class Measured(NamedTuple):
    """One value, under the name that it has in this run.

    ``exact`` has the resource or workload as it is written, for where two become the same word.
    """

    name: str
    value: Value
    meaning: str
    exact: str
    unit: str = ""
    """Where it is not that of the measure."""


class AnyMeasure(Protocol):
    """What all of them have."""

    @property
    def name(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def formula(self) -> str: ...
    @property
    def unit(self) -> str: ...
    def values(self, reading: Reading) -> Iterator[Measured]: ...


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


def highest(peaks: Iterable[tuple[Mapping[str, int], Mapping[str, int]]]) -> dict[str, Value]:
    """The highest share of every resource, of pairs of parts and wholes."""
    found: dict[str, Value] = {}
    for parts, wholes in peaks:
        for name, rate in shares(parts, wholes).items():
            before = found.get(name)
            if rate is not None and (before is None or rate > before):
                found[name] = rate
    return found
