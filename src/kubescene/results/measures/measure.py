"""What a measure is: a name, one sentence, a formula, a unit, and a function of the ledger.

A measure without a value (no node, no pod, no time) is None, never 0 or NaN.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from kubescene.api.resource_requests import PODS
from kubescene.results.ledger import Ledger

Number: TypeAlias = int | float


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """``of`` gives its value for a ledger."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Ledger], Number | None]

    def values(self, ledger: Ledger) -> Iterator[tuple[str, Number | None]]:
        """The names under which it is given, with its values."""
        yield self.name, self.of(ledger)


class ResourceMeasure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of every resource that nodes offer or pods ask for; ``name`` has ``RESOURCE``."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Callable[[Ledger, str], Number | None]

    def values(self, ledger: Ledger) -> Iterator[tuple[str, Number | None]]:
        for resource in resources(ledger):
            yield self.name.replace("RESOURCE", word(resource)), self.of(ledger, resource)


AnyMeasure: TypeAlias = Measure | ResourceMeasure


def resources(ledger: Ledger) -> list[str]:
    """Whatever a node offers in this run, cpu and memory in any case."""
    offered = {name for node in ledger.nodes for name in node.allocatable}
    return sorted(offered | {"cpu", "memory", PODS})


def word(resource: str) -> str:
    """A resource's name as part of an identifier: ``example.com/gpu`` is ``example_com_gpu``."""
    return re.sub(r"\W", "_", resource)


def share(part: Number, whole: Number) -> float | None:
    """A part of a whole; of nothing there is none."""
    return part / whole if whole else None
