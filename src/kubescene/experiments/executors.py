"""Who has jobs done: the interface, and the one that does them here, one after the other.

An executor knows functions and their arguments, not scenarios, so that everything that is data in
and data out can be done by it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from kubescene.errors import ConfigurationError

Function: TypeAlias = Callable[[Any], Any]
"""Of a module, so that it can be sent by its name."""
ExecutorName: TypeAlias = Literal["processes", "ray"]


class Done(NamedTuple):
    """What came of one argument: its place among them, and a value or an error."""

    number: int
    value: Any = None
    error: str = ""


class Executor(Protocol):
    """Does jobs, several at a time and anywhere.

    Whatever becomes of one job, also if whoever does it dies, the others are done and each is told
    of once.
    """

    def each(self, function: Function, arguments: Sequence[Any]) -> Iterator[Done]:
        """Call the function with each argument; yields in the order in which they finish.

        Function, arguments and values are pickled.
        """
        ...

    def cancel(self) -> None:
        """Stop at once, whatever is being done, and let go of everything. May be called twice."""
        ...


class Here:
    """Does jobs in this process. Nothing is pickled, so also what only this process knows works."""

    def each(self, function: Function, arguments: Sequence[Any]) -> Iterator[Done]:
        for index, argument in enumerate(arguments):
            yield attempted(index, function, argument)

    def cancel(self) -> None:
        """Nothing goes on when nobody asks for the next."""


def attempted(index: int, function: Function, argument: Any) -> Done:
    """Call a function; what it raises becomes the error of this job alone."""
    try:
        return Done(index, function(argument))
    except Exception as error:
        return Done(index, error=told(error))


def told(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def executor_named(name: ExecutorName | None, jobs: int) -> Executor:
    """Processes if several jobs are done at a time, else this one; Ray if it is asked for."""
    if name == "ray":
        from kubescene.experiments.on_ray import OnRay

        return OnRay(jobs)
    if name is None and jobs == 1:
        return Here()
    from kubescene.experiments.processes import Processes

    return Processes(jobs)


def at_a_time(jobs: int | None, runs: int) -> int:
    """How many runs are played at once: not more than there are."""
    if jobs is not None and jobs < 1:
        raise ConfigurationError(f"jobs must be at least 1, not {jobs}")
    return min(processors() if jobs is None else jobs, runs)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
