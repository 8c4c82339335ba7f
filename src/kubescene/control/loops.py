"""Control loops: the one interface through which the engine turns every controller's crank.

A controller never runs by itself. The engine calls `run_once`; the controller does one bounded
piece of work (a scheduler: one pod; a reconciler: one key) and says how it went. It is done when
nothing is queued: exact, without waiting or polling.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import Scheme
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Streams
from kubescene.control.timers import Timers
from kubescene.instruments import Instruments
from kubescene.recording import SILENT, Recorder
from kubescene.shortcuts import ALL, Shortcuts
from kubescene.usage.registry import UsageRegistry


class Progress(NamedTuple):
    """How a loop went.

    ``wrote``: at least one write was accepted. ``more``: work is left that needs no waiting. It is
    the last word about the loop: what woke the controller meanwhile is part of the answer.
    ``waits``: the loop is not over, since another program does it; ask again, nothing was spent.
    """

    wrote: bool
    more: bool
    waits: bool = False


IDLE = Progress(wrote=False, more=False)
_WENT = (IDLE, Progress(False, True), Progress(True, False), Progress(True, True))
WAITING = Progress(wrote=False, more=True, waits=True)


def went(*, wrote: bool, more: bool) -> Progress:
    """How a loop went that is over: one of four answers, made once."""
    return _WENT[2 * wrote + more]


class Controller(Protocol):
    """One controller. Made anew for every scenario by its `ControllerFactory`."""

    @property
    def name(self) -> str: ...

    def run_once(self) -> Progress:
        """Do one piece of work on the engine thread and return without waiting.

        An exception ends the run. What has to happen later goes into the context's timers; that
        is how time-driven controllers work.
        """
        ...


@runtime_checkable
class StepAware(Protocol):
    """A controller that wants to know when a new step of the scenario begins."""

    def begin_step(self) -> None:
        """Make due what is retried once per step. Must not write."""
        ...


@runtime_checkable
class Retrying(Protocol):
    """A controller that keeps what was refused, to try it again."""

    def retry_refused(self) -> None:
        """Make it due: the reason may have gone. Must not write."""
        ...


@runtime_checkable
class Releasing(Protocol):
    """A controller that holds much, and whose parts know each other."""

    def release(self) -> None:
        """It is let go and never turned again: forget what is large.

        Parts that know each other stay until the garbage collector comes, which should find little.
        """
        ...


@runtime_checkable
class Concluding(Protocol):
    """A controller that holds what is not of this world: code of others, and their processes."""

    def conclude(self) -> None:
        """A run is over: give that back. Whoever turns it all the same lets it begin anew."""
        ...


NOBODY = Actor("controller")
"""Who a controller is that somebody turns by hand."""


def nothing() -> None:
    """The wake of a controller that somebody turns by hand, as tests do."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What a controller is given: a client of its own, and the world's time and chance.

    ``wake`` says that there is something to do. Whatever a watch of ``client`` or a timer of
    ``timers`` delivers does so by itself; a controller that knows better which changes mean work
    watches with ``quiet=True`` and calls ``wake`` when they do. ``recorder`` takes what people
    should read under "Events"; it is silent in most worlds. ``actor`` is who the controller is,
    ``shortcuts`` what may be only faster, ``usage`` is who says what pods do.
    """

    client: Client
    clock: Clock
    timers: Timers
    streams: Streams
    instruments: Instruments
    scheme: Scheme = field(default_factory=builtin_scheme)
    wake: Callable[[], None] = nothing
    recorder: Recorder = SILENT
    actor: Actor = NOBODY
    shortcuts: Shortcuts = ALL
    usage: UsageRegistry = field(default_factory=UsageRegistry)

    def tell(self, fact: Struct) -> None:
        """A fact of the controller's own: a struct of plain data, named by its class.

        It stands in the timeline with id, step, time and the controller's name. It is no write.
        """
        self.instruments.tell(self.actor, fact)


ControllerFactory: TypeAlias = Callable[[ControllerContext], Controller]
"""Starts a controller: it sets up its watches here, so it sees everything from the first object."""
