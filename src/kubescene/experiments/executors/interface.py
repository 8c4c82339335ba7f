"""What an executor is, and the one that does jobs here, one after the other.

An executor knows functions and their arguments, not scenarios, so that everything that is data in
and data out can be done by it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

Function: TypeAlias = Callable[[Any], Any]
"""Of a module, so that it can be sent by its name."""


class JobDone(NamedTuple):
    """What came of one argument: its place among them, and a value or an error."""

    number: int
    value: Any = None
    error: str = ""


class Executor(Protocol):
    """Does jobs, several at a time and anywhere.

    Whatever becomes of one job, also if whoever does it dies, the others are done and each is told
    of once.
    """

    def each(self, function: Function, arguments: Sequence[Any]) -> Iterator[JobDone]:
        """Call the function with each argument; yields in the order in which they finish.

        Function, arguments and values are pickled.
        """
        ...

    def cancel(self) -> None:
        """Stop at once, whatever is being done, and let go of everything. May be called twice."""
        ...


class Here:
    """Does jobs in this process. Nothing is pickled, so also what only this process knows works."""

    def each(self, function: Function, arguments: Sequence[Any]) -> Iterator[JobDone]:
        for index, argument in enumerate(arguments):
            yield attempted(index, function, argument)

    def cancel(self) -> None:
        """Nothing goes on when nobody asks for the next."""


def attempted(index: int, function: Function, argument: Any) -> JobDone:
    """Call a function; what it raises becomes the error of this job alone."""
    try:
        return JobDone(index, function(argument))
    except Exception as error:
        return JobDone(index, error=told(error))


def told(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
