"""What the rows of every table share: times since the run began, and columns by their names."""

from typing import Any, TypeVar

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.results.ledger import Ledger

SECOND = 10**9
R = TypeVar("R", bound=msgspec.Struct)


def row_of(kind: type[R], entry: Any, **columns: Any) -> R:
    """A row with these columns, and the others as the entry or fact has them by the same names."""
    for name in kind.__struct_fields__:
        if name not in columns:
            columns[name] = getattr(entry, name)
    return kind(**columns)


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
