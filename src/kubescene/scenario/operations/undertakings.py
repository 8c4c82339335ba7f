"""Operations that are not over at once: what they are given, and what the engine asks of them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kubescene.api.scheme import Scheme
from kubescene.client import Client
from kubescene.clock import Clock, Streams
from kubescene.scenario.spec import Operation

RETRY_S = 5
"""How long ``kubectl drain`` waits before it asks again for an eviction that was refused."""


class State(StrEnum):
    """What can be told of an operation, as people find it in results."""

    WARNING = "Warning"
    """It did something else, or less, than it seems to say."""
    WAITING = "Waiting"
    """A disruption budget refuses to let a pod go; it is tried again while time passes."""
    REFUSED = "Refused"
    """A node is not drained: its pods must not be touched, or cannot."""
    TIMED_OUT = "TimedOut"
    DRAINED = "Drained"
    COMPLETED = "Completed"
    INCOMPLETE = "Incomplete"
    """It is over, and some of it was not done."""
    UNFINISHED = "Unfinished"
    """The scenario pauses or is over before it."""


class Tell(Protocol):
    """Writes down what came of an operation, or of a part of it (a node, a pod)."""

    def __call__(
        self, operation: Operation, state: State, message: str, subject: str = ""
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The world as an operation reaches it."""

    client: Client
    scheme: Scheme
    clock: Clock
    streams: Streams
    tell: Tell


class Undertaking(Protocol):
    """An operation that goes on while virtual time passes.

    The engine asks it to go on whenever the world has come to rest and whenever it is due. What it
    does depends on the world and the instant alone, so it does not matter how time is cut.
    """

    @property
    def is_over(self) -> bool: ...

    @property
    def is_halfway(self) -> bool:
        """Whether it has more to do before anybody else has a turn: not too much at a time."""
        ...

    @property
    def due(self) -> int | None:
        """When it has something to do though nothing else happens; None: never."""
        ...

    def go_on(self) -> None:
        """Do what can be done now."""
        ...

    def tell_unfinished(self) -> None:
        """The scenario pauses or ends here: say what is left."""
        ...
