"""Many runs: scenarios x scheduler configurations x settings x seeds, played in parallel.

A run becomes a job that can be sent elsewhere (`jobs`), an executor has it played (`executors`),
what is finished leaves a marker (`markers`), and one table is made of all of them (`results`). How
a scenario is played is not known here: that is `kubescene.runs`.

>>> from kubescene.experiments import matrix
>>> matrix("scenario.yaml", ["a.yaml", "b.yaml"], seeds=10).frame()  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubescene.experiments.estimates import Estimate, estimate
    from kubescene.experiments.executors import Done, Executor
    from kubescene.experiments.playing import matrix
    from kubescene.experiments.results import MatrixResult, MatrixRow, MatrixRun

__all__ = [
    "Done",
    "Estimate",
    "Executor",
    "MatrixResult",
    "MatrixRow",
    "MatrixRun",
    "estimate",
    "matrix",
]

_HOMES = {
    "Done": "executors",
    "Estimate": "estimates",
    "Executor": "executors",
    "MatrixResult": "results",
    "MatrixRow": "results",
    "MatrixRun": "results",
    "estimate": "estimates",
    "matrix": "playing",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use, as in `kubescene.results`.
    if name not in _HOMES:
        raise AttributeError(f"module 'kubescene.experiments' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"kubescene.experiments.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
