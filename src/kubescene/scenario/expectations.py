"""What a scenario expects of its result, as its author wrote it, and who looks whether it holds.

The engine knows neither the expression language nor the tables that expressions speak of: a `Judge`
does, and is asked when the scenario comes to its end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from kubescene.timeline import Outcome, TimelineLog


@dataclass(frozen=True, slots=True)
class Expectation:
    """One of ``spec.expectations``; what its author left out is empty."""

    name: str
    expression: str
    message: str = ""
    message_expression: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a scenario is about to end, or to pause: its phase, and when."""

    phase: str
    time: int


class Evaluation(Protocol):
    """Expectations that are being looked at. It is copied with the world, so it is no generator."""

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """One for each expectation, when all is evaluated."""
        ...

    def go_on(self) -> bool:
        """Do one bounded piece of work; whether there is more of it."""
        ...


Judge: TypeAlias = Callable[[tuple[Expectation, ...], TimelineLog, Ending], Evaluation]
"""Begins an evaluation of what happened in a scenario that is about to end."""


def expectations_of(spec: Mapping[str, Any]) -> tuple[Expectation, ...]:
    """The expectations of a spec without faults."""
    return tuple(
        Expectation(
            each["name"],
            each["expression"],
            each.get("message") or "",
            each.get("messageExpression") or "",
        )
        for each in spec.get("expectations") or ()
    )
