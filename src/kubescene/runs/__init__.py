"""A run: one scenario played in one world, with all that is told of it.

::

    worlds       what runs, servers and programs outside need of a world
    requests     what is to be played, as data
    examination  what is said of a scenario before it is played, and of its result in the end
    staging      world, engine, log, explanations and account put together: a `StagedRun`
    sinks        where facts and explanations go while it plays: memory, a directory
    local        `kubescene.run` and `play`: staged, played, handed back

Whoever plays a scenario stages it here: the library and the command line by `local`, a server by
`kubescene.live`, one that plays at a real API server by `kubescene.remote`.
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.runs.local import Run, RunResult, play, run
    from kubescene.runs.requests import RunRequest

__all__ = ["Run", "RunRequest", "RunResult", "play", "run"]

_HOMES = {
    "Run": "local",
    "RunRequest": "requests",
    "RunResult": "local",
    "play": "local",
    "run": "local",
}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
