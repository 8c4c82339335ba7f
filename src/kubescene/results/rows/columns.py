"""Columns that several tables have: when, and how much of what."""

from typing import Any, Protocol, TypeVar

import msgspec

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.clock import ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.states import Amounts

SECOND = 10**9
R = TypeVar("R", bound=msgspec.Struct)
NAMED = (CPU, MEMORY, PODS)
"""Resources that have columns of their own."""


def row_of(kind: type[R], entry: Any, **columns: Any) -> R:
    """A row with these columns, and the others as the entry or fact has them by the same names."""
    for name in kind.__struct_fields__:
        if name not in columns:
            columns[name] = getattr(entry, name)
    return kind(**columns)


class Use(Protocol):
    """What is offered, and what is asked for: of a node, or of all of them."""

    @property
    def requested(self) -> Amounts: ...
    @property
    def allocatable(self) -> Amounts: ...


class Clockwork:
    """Times of one run as seconds since its beginning."""

    def __init__(self, ledger: Ledger) -> None:
        self._began = ledger.started_time or 0

    def seconds(self, time: int) -> float:
        return (time - self._began) / SECOND

    def maybe(self, time: int | None) -> float | None:
        return None if time is None else self.seconds(time)


def text(step: ScenarioStep | None) -> str | None:
    return None if step is None else str(step)


def ratio(part: int, whole: int) -> float | None:
    """A share; of nothing there is none."""
    return part / whole if whole else None


def amounts(use: Use, share: str) -> dict[str, int | float | None]:
    """The columns for cpu and memory: requested, allocatable, and their ``share`` of each other."""
    found: dict[str, int | float | None] = {}
    for resource in (CPU, MEMORY):
        asked, offered = use.requested.get(resource, 0), use.allocatable.get(resource, 0)
        found[f"{resource}_requested"] = asked
        found[f"{resource}_allocatable"] = offered
        found[f"{resource}_{share}"] = ratio(asked, offered)
    return found


def others(amounts: Amounts) -> dict[str, int]:
    """What has no column of its own, by name."""
    return {name: amounts[name] for name in sorted(amounts) if name not in NAMED and amounts[name]}
