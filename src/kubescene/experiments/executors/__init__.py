"""Who has jobs done: this process, processes of this machine, or Ray.

`interface` says what an executor is. Which one is taken depends on what was asked for; Ray and
processes are loaded by those who need them.
"""

import os
from typing import Literal, TypeAlias

from kubescene.errors import ConfigurationError
from kubescene.experiments.executors.interface import Executor, Here

ExecutorName: TypeAlias = Literal["processes", "ray"]


def executor_for(wanted: Executor | ExecutorName | None, jobs: int | None, runs: int) -> Executor:
    """The one that is wanted, for as many runs, or the one of that name.

    Without a name: processes if several ``jobs`` are done at a time, else this process. By default
    there are as many jobs as processors.
    """
    if wanted is not None and not isinstance(wanted, str):
        return wanted
    if jobs is not None and jobs < 1:
        raise ConfigurationError(f"jobs must be at least 1, not {jobs}")
    at_once = min(processors() if jobs is None else jobs, runs)
    if wanted == "ray":
        from kubescene.experiments.executors.on_ray import OnRay

        return OnRay(at_once)
    if wanted is None and at_once == 1:
        return Here()
    from kubescene.experiments.executors.processes import Processes

    return Processes(at_once)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
