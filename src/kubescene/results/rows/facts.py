"""Facts that controllers and plugins of users told, whatever they are."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.results.rows.columns import Clockwork
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
        yield FactRow(
            fact=each.kind,
            step=str(each.step),
            time_s=clock.seconds(each.time),
            actor=each.actor,
            fields=each.fields,
        )
