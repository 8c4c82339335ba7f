"""What a run tells: read from the timeline alone, so that every kind of run is analysed alike."""

from typing import TYPE_CHECKING, Any

from kubescene.results.summary import (
    ExpectationOutcome,
    NodeUse,
    PendingPod,
    Placement,
    StepSummary,
    Summary,
    summarize,
)

if TYPE_CHECKING:
    from kubescene.results.comparison import Comparison, compare

__all__ = [
    "Comparison",
    "ExpectationOutcome",
    "NodeUse",
    "PendingPod",
    "Placement",
    "StepSummary",
    "Summary",
    "compare",
    "summarize",
]

_HOMES = {
    "Comparison": "comparison",
    "compare": "comparison",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: a plain run needs none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'kubescene.results' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"kubescene.results.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
