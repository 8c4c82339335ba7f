"""Words for people."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

IN_PASSING = ("Drained", "Waiting")
"""Outcomes of parts of an operation, which its last outcome counts."""


class _HasState(Protocol):
    @property
    def state(self) -> str: ...


_Outcome = TypeVar("_Outcome", bound=_HasState)


def told_apart(outcomes: Iterable[_Outcome]) -> list[_Outcome]:
    """What came of operations; of the good news of each, the last alone."""
    return [each for each in outcomes if each.state not in IN_PASSING]


def counted(count: int, what: str) -> str:
    """``1 step``, ``2,000 steps``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
