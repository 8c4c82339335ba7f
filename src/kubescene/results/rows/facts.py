"""Facts that controllers and plugins of users told, whatever they are."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.results.rows.columns import Clockwork, row_of
from kubescene.results.sources import RunSource


class FactRow(msgspec.Struct, frozen=True, kw_only=True):
    """One fact: its name, when, who told it, and what its author's struct says."""

    fact: str
    step: str
    time_s: float
    actor: str
    fields: dict[str, Any]


def fact_rows(source: RunSource) -> Iterator[FactRow]:
    """All of them, in their order, read anew."""
    clock = Clockwork(source.ledger)
    for each in source.custom_facts():
        step, time_s = str(each.step), clock.seconds(each.time)
        yield row_of(FactRow, each, fact=each.kind, step=step, time_s=time_s)
