"""Many runs: scenarios x scheduler configurations x settings x seeds, played in parallel.

A run becomes a job that can be sent elsewhere (`jobs`), an executor has it played (`executors`),
what is finished leaves a marker (`markers`), and one table is made of all of them (`results`). How
a scenario is played is not known here: that is `kubescene.runs`.

>>> from kubescene.experiments import matrix
>>> matrix("scenario.yaml", ["a.yaml", "b.yaml"], seeds=10).frame()  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.experiments.estimates import Estimate, estimate
    from kubescene.experiments.executors.interface import Executor, JobDone
    from kubescene.experiments.playing import matrix
    from kubescene.experiments.results import MatrixResult, MatrixRow, MatrixRun

__all__ = [
    "Estimate",
    "Executor",
    "JobDone",
    "MatrixResult",
    "MatrixRow",
    "MatrixRun",
    "estimate",
    "matrix",
]

_HOMES = {
    "JobDone": "executors.interface",
    "Estimate": "estimates",
    "Executor": "executors.interface",
    "MatrixResult": "results",
    "MatrixRow": "results",
    "MatrixRun": "results",
    "estimate": "estimates",
    "matrix": "playing",
}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
