"""The one thread that owns every write of a served world.

Whoever wants something written (or registered atomically with the history, as a watch is) submits a
command: a callable that runs on this thread, one at a time, in the order of arrival. Its result
goes back to the submitter at once; then the crank gives the controllers their turns, one round
after the other, until they have come to rest. A command that arrives meanwhile runs between two
rounds, so a large rollout delays writers by one round and readers not at all. What a scenario
plays comes moment by moment in place of those rounds.

What is due later (pod start delays, requeues) lies in the cluster's event queue; the thread sleeps
until then as the world's clock measures it, or until the next command. On a virtual clock nothing
becomes due by itself: time moves when somebody says so.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from enum import Enum
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, get_ident
from typing import Any, NamedTuple, Protocol, TypeVar

from kubescene.clock import SECOND, WallClock
from kubescene.control import LivelockError, ServingCrank
from kubescene.errors import ConflictError, InternalError
from kubescene.runs.worlds import ServedWorld
from kubescene.scheduler import SchedulerOptions
from kubescene.store.journals import Acknowledge

T = TypeVar("T")

LONGEST_SLEEP_S = 3600.0
SHORTEST_SLEEP_S = 1e-6
STALLED_S = 1.0
"""How long controllers that never come to rest are left alone."""
OUTSIDE_S = 0.001
"""How often one looks what a program outside does, if it says nothing."""
RETRY_EVERY = 5 * SECOND
"""How often controllers try again what was refused, by the server's clock."""
ANSWERED_AT_ONCE = 16
"""Commands that came together are answered together, since they wait for the same disk."""
CLEARED_AT_ONCE = 500
"""Objects that go in one piece when a world is reset: some 30 milliseconds."""
SHUTTING_DOWN = "the server is shutting down"

_log = logging.getLogger(__name__)


class EngineStoppedError(RuntimeError):
    """The server is shutting down and takes no more commands."""


class Director(Protocol):
    """Who has something to play by itself: the Scenarios of the world. For this thread only."""

    @property
    def holds_world(self) -> bool:
        """Whether nothing moves but what is played."""
        ...

    def begin(self) -> None:
        """The thread has taken the world over."""
        ...

    def look(self) -> bool:
        """A command was run; whether it freed the world, whose own controllers begin anew."""
        ...

    def moments(self) -> Iterator[object] | None:
        """What is to be played now, if anything is."""
        ...

    def free_world(self) -> None:
        """Somebody wants to move the world; raises an `ApiError` if it belongs to a scenario."""
        ...

    def fail_current(self) -> None:
        """Somebody changes what a scenario that is under way stands on: it has failed."""
        ...

    def define(self) -> None:
        """The world was emptied: make what has to be there."""
        ...


class Nobody:
    """Directs a world without scenarios."""

    holds_world = False

    def begin(self) -> None:
        """Nothing to do."""

    def look(self) -> bool:
        return False

    def moments(self) -> Iterator[object] | None:
        return None

    def free_world(self) -> None:
        """It always is."""

    def fail_current(self) -> None:
        """Nothing to do."""

    def define(self) -> None:
        """Nothing to do."""


class EngineRest(Enum):
    """What the thread waits for beside the next command, which ends every rest."""

    NOTHING = "nothing: there may be more to do at once"
    LAST_LOOK = "nothing: what was played is over; if nothing else is to be played, it is frozen"
    OTHERS = "what a program outside does in its turn"
    HELD = "somebody who lets go on what is played"
    DUE = "whatever is due next, or may be tried again"
    STALLED = "some time: controllers never come to rest"
    FROZEN = "nothing but a command"


SLEEPS = {
    EngineRest.NOTHING: 0.0,
    EngineRest.LAST_LOOK: 0.0,
    EngineRest.OTHERS: OUTSIDE_S,
    EngineRest.HELD: LONGEST_SLEEP_S,
    EngineRest.STALLED: STALLED_S,
    EngineRest.FROZEN: LONGEST_SLEEP_S,
}


class Command(NamedTuple):
    """Something to be run on the engine thread, and how to say that it never will be."""

    run: Callable[[], None]
    refuse: Callable[[Exception], None]


class CurrentPlay(NamedTuple):
    """What is played, and who hears of its end: exactly once, however it ends.

    The promise stands here and not in the body of a generator: one that was never begun runs none
    of its body when it is closed.
    """

    moments: Iterator[object]
    ended: Callable[[Exception | None], None] | None = None
    freezes: bool = False
    """Whether the world rests afterwards until the next command."""

    def end(self, error: Exception | None = None) -> None:
        """It is over; nothing more of it is played."""
        if isinstance(self.moments, Generator):
            try:
                self.moments.close()
            except Exception:
                _log.exception("what was played could not be put away; the server goes on")
        if self.ended is not None:
            self.ended(error)


class EngineThread:
    """Runs commands and controllers of one cluster. Nobody else may write to it any more."""

    def __init__(
        self, cluster: ServedWorld, *, controllers: bool = True, director: Director | None = None
    ) -> None:
        self.cluster = cluster
        # Extenders may call back: this thread must not wait for them.
        if cluster.scheduler_is_configurable:
            cluster.configure_scheduler(cluster.own_options.scheduler.in_background())
        self._director = director or Nobody()
        self._with_controllers = controllers
        self._commands: SimpleQueue[Command | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="kubescene-engine", daemon=True)
        self._stopped = False
        self._ending = Lock()
        self._begun = Event()
        self._server_clock = WallClock()
        self.crank = ServingCrank(
            cluster.event_queue, cluster.count_objects, clock=self._server_clock
        )
        self._patience = self.crank.patience()
        self._rest = EngineRest.NOTHING
        self._retry_at = 0
        self._played: CurrentPlay | None = None
        self._tell_over: Callable[[], None] = nothing
        self._heard = False
        """Whether commands were run of which the director knows nothing yet."""
        self._answers: list[Acknowledge] = []
        """What commands have come to, until it is told."""
        cluster.alarm.ring = self._nudge

    def start(self) -> None:
        """Take the store over and begin; what is there already is settled first.

        Returns when the world is ready for commands: whoever asks sees all that it has to offer.
        """
        self._thread.start()
        self._begun.wait()

    def stop(self, timeout_s: float | None = None) -> bool:
        """Finish what was submitted, then end; whether the thread is gone.

        Waits for that, at most ``timeout_s``: a controller that never returns cannot be stopped.
        """
        with self._ending:
            if not self._stopped:
                self._stopped = True
                self._commands.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    async def submit(self, command: Callable[[], T]) -> T:
        """Run ``command`` on the engine thread and give its result to this coroutine."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        refuse = partial(_answer, loop, _fail, future)
        if not self._put(Command(partial(self._run_for, loop, future, command), refuse)):
            raise EngineStoppedError(SHUTTING_DOWN)
        try:
            return await future
        finally:
            # An error knows where it was raised: what is there must not hold the error in turn.
            del future, refuse

    async def submit_moments(
        self, begin: Callable[[], Iterator[object]], *, freezes: bool = True
    ) -> None:
        """Play what ``begin`` returns, and give this coroutine its end."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        ended = partial(self._answer_end, loop, future)
        try:
            await self.submit(partial(self.play, _begun(begin), ended, freezes=freezes))
            await future
        finally:
            del future, ended

    def post(self, command: Callable[[], None]) -> None:
        """Run ``command`` some time, if the engine still runs; nobody waits for it."""

        def run() -> None:
            try:
                command()
            except Exception:
                _log.exception("a command that nobody waits for failed; the server goes on")

        self._put(Command(run, ignore))

    def call(self, command: Callable[[], T]) -> T:
        """The same for a plain thread: blocks until the command has run."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                result = command()
            except BaseException as error:
                future.set_exception(told(error))
                if not isinstance(error, Exception):
                    raise
            else:
                self.cluster.store.when_durable(partial(_settle, future, result))

        if not self._put(Command(run, future.set_exception)):
            raise EngineStoppedError(SHUTTING_DOWN)
        return future.result()

    def _put(self, command: "Command") -> bool:
        """Whether the command will run: nothing may follow the mark of the end."""
        with self._ending:
            if not self._stopped:
                self._commands.put(command)
            return not self._stopped

    def _nudge(self) -> None:
        """A controller was woken; if another thread did it, this one may be asleep."""
        if get_ident() != self._thread.ident:
            self._put(Command(nothing, ignore))

    def play(
        self,
        moments: Iterator[object],
        ended: Callable[[Exception | None], None] | None = None,
        *,
        freezes: bool = True,
    ) -> None:
        """Work through ``moments`` from now on, commands coming in between any two. A command.

        While they last nobody else turns the controllers: whoever makes the moments does. When they
        are over the world is left as it is until the next command, unless it ``freezes`` not; and
        ``ended`` is told how they ended, also if the thread ends before the first of them.
        """
        self._director.free_world()
        if self._played is not None:
            raise ConflictError("something is being played already: wait for its end")
        self._start_controllers()
        self._played = CurrentPlay(moments, ended, freezes=freezes)

    def when_over(self, tell: Callable[[], None]) -> None:
        """Have ``tell`` called on the running loop once no more commands are taken.

        Also if the thread ends by itself: those who wait there, and for no command, would never
        know.
        """
        self._tell_over = partial(_answer, asyncio.get_running_loop(), tell)
        if self._stopped:
            self._tell_over()

    @property
    def is_over(self) -> bool:
        """Whether no more commands are taken. Any thread may ask."""
        return self._stopped

    @property
    def is_playing(self) -> bool:
        return self._played is not None

    # -- on the engine thread ----------------------------------------------------------------

    def _run_for(
        self,
        loop: asyncio.AbstractEventLoop,
        future: "asyncio.Future[T]",
        command: Callable[[], T],
    ) -> None:
        """Run a command for somebody who waits on the loop, until what it wrote is durable."""
        try:
            result = command()
        except BaseException as error:
            _answer(loop, _fail, future, told(error))
            del future
            if not isinstance(error, Exception):
                raise
        else:
            self._answers.append(partial(_answer_kept, loop, future, result))

    def _give_answers(self) -> None:
        """Those who wait hear of it when all that was written until now is durable."""
        answers, self._answers = self._answers, []
        if answers:
            self.cluster.store.when_durable(partial(_answer_all, answers))

    def _answer_end(
        self,
        loop: asyncio.AbstractEventLoop,
        future: "asyncio.Future[None]",
        error: Exception | None,
    ) -> None:
        if error is None:
            self.cluster.store.when_durable(partial(_answer_kept, loop, future, None))
        else:
            _answer(loop, _fail, future, error)

    def _run(self) -> None:
        try:
            self.cluster.store.own()
            self._director.begin()
            self._begun.set()
            self._start_controllers()
            self._turn()
        except BaseException:
            _log.exception("the engine thread ends: nothing can be written any more")
        finally:
            self._begun.set()
            self._finish()

    def wait_for(self, future: "Future[T]") -> T:
        """Wait on this thread for what another one works at; commands are run meanwhile.

        Whoever waits is in the middle of something: others write, but nothing is played on.
        """
        future.add_done_callback(self._wake)
        while not future.done():
            command = self._commands.get()
            if command is None:
                self._commands.put(None)
                raise InternalError(SHUTTING_DOWN)
            command.run()
            self._heard = True
            self._give_answers()
        return future.result()

    def _wake(self, future: "Future[Any]") -> None:
        self._put(Command(nothing, ignore))

    def _turn(self) -> None:
        """Run commands, moments and rounds until the mark of the end."""
        while True:
            if len(self._answers) >= ANSWERED_AT_ONCE or self._commands.empty():
                self._give_answers()
            try:
                command = self._next(self._sleep_s())
            except StopIteration:
                return
            if command is None:
                self._rest = self._go_on()
                if self._heard:
                    self._heard = False
                    self._rest = EngineRest.NOTHING
                    self._look()
                if self._rest is not EngineRest.NOTHING:
                    # Nobody waits for what controllers write; it shall be kept all the same.
                    self.cluster.store.when_durable(ignore_outcome)
                continue
            self._rest = EngineRest.NOTHING
            command.run()
            self._look()
            self._patience = self.crank.patience()

    def _look(self) -> None:
        """A command was run: somebody may want to play, or have given the world back."""
        if self._director.look():
            self._start_controllers()

    def _go_on(self) -> EngineRest:
        """No command has come: one moment of what is played, or one round of the controllers."""
        if self._played is not None:
            return self._play_on(self._played)
        if (moments := self._director.moments()) is not None:
            # The director itself knows whether the world rests afterwards.
            self._played = CurrentPlay(moments)
            return EngineRest.NOTHING
        if self._rest in (EngineRest.LAST_LOOK, EngineRest.FROZEN) or self._director.holds_world:
            return EngineRest.FROZEN
        return self._round()

    def resetting(self) -> Iterator[None]:
        """Back to an empty cluster with controllers that know nothing of the old one. Moments.

        Most of what there is goes before, piece by piece: others have their turn in between.
        """
        while self.cluster.clear(CLEARED_AT_ONCE):
            yield
        with self.cluster.registry.custom.anew():
            self.cluster.reset()
            self._director.define()
        self._start_controllers()

    def configure_scheduler(self, options: SchedulerOptions) -> None:
        """Another scheduler in the place of the one that runs. A command.

        A scenario that is under way has failed; the world is everybody's again.
        """
        if self._played is not None and not self._director.holds_world:
            raise ConflictError("something is being played: wait for its end")
        if self._director.holds_world:
            # Before a scenario fails for it: options that are of no use change nothing.
            self.cluster.configure_scheduler(options)
        self._director.fail_current()
        self._end_played(ConflictError("the scheduler configuration was changed meanwhile"))
        self._director.free_world()
        self._start_controllers()
        self.cluster.configure_scheduler(options)

    def _start_controllers(self) -> None:
        if self._with_controllers and not self.cluster.slots:
            self.cluster.start(list(self.cluster.registrations))

    def _finish(self) -> None:
        """Nothing more is taken; whoever still waits for an answer hears that none will come."""
        with self._ending:
            self._stopped = True
        self._give_answers()
        self._end_played(EngineStoppedError(SHUTTING_DOWN))
        while not self._commands.empty():
            command = self._commands.get()
            if command is not None:
                command.refuse(EngineStoppedError(SHUTTING_DOWN))
        self._tell_over()

    def _next(self, timeout_s: float) -> "Command | None":
        """The next command; None if none came in time. StopIteration ends the thread."""
        try:
            command = self._commands.get(block=timeout_s > 0, timeout=timeout_s or None)
        except Empty:
            return None
        if command is None:
            raise StopIteration
        return command

    def _sleep_s(self) -> float:
        """How long to sleep if no command comes."""
        if (sleeps := SLEEPS.get(self._rest)) is not None:
            return sleeps
        waits = [self._server_clock.seconds_until(self._retry_at)]
        due = self.cluster.event_queue.peek()
        if due is not None and (wait := self.cluster.clock.seconds_until(due)) is not None:
            waits.append(wait)
        if (retry := self.crank.next_retry(self.cluster.slots)) is not None:
            waits.append(self._server_clock.seconds_until(retry))
        # Zero would mean "busy": what is due runs in the next turn all the same.
        return max(min(waits), SHORTEST_SLEEP_S)

    def _play_on(self, played: CurrentPlay) -> EngineRest:
        """One moment; if it is another program's turn, that one will send a command."""
        try:
            moment = next(played.moments)
            if getattr(moment, "is_held", False):
                return EngineRest.HELD
            return EngineRest.OTHERS if getattr(moment, "waits", False) else EngineRest.NOTHING
        except StopIteration:
            error = None
        except Exception as failure:
            error = failure
            if played.ended is None:
                _log.exception("what was played failed; the server goes on")
        self._played = None
        played.end(error)
        return EngineRest.LAST_LOOK if played.freezes else EngineRest.NOTHING

    def _end_played(self, error: Exception) -> None:
        """Whatever is played is over before its time."""
        played, self._played = self._played, None
        if played is not None:
            played.end(error)

    def _round(self) -> EngineRest:
        """One round of those controllers that have work."""
        rest = EngineRest.DUE
        self._retry_refused()
        try:
            if self.crank.round(self.cluster.slots, self._patience):
                return EngineRest.NOTHING
        except LivelockError as error:
            _log.error("%s; they wait for %g s, or for the next change", error, STALLED_S)
            rest = EngineRest.STALLED
        self._patience = self.crank.patience()
        return rest

    def _retry_refused(self) -> None:
        """A served world has no steps: what was refused is tried again from time to time."""
        if self._retry_at <= (now := self._server_clock.now()):
            self._retry_at = now + RETRY_EVERY
            for slot in self.cluster.slots:
                slot.retry()


def nothing() -> None:
    """The command of somebody who only wants the thread to look."""


def ignore(error: Exception) -> None:
    """Nobody waits for an answer."""


def ignore_outcome(error: Exception | None) -> None:
    """The same; what cannot be kept is logged by whoever keeps it."""


def told(error: BaseException) -> Exception:
    """What whoever waits hears of it: what ends this thread must not end theirs."""
    if isinstance(error, Exception):
        return error
    failure = RuntimeError(f"a command ended the engine with {type(error).__name__}")
    failure.__cause__ = error
    return failure


def _begun(begin: Callable[[], Iterator[object]]) -> Iterator[object]:
    """What ``begin`` returns, begun with its first moment: not before it may be played."""
    yield from begin()


def _answer(loop: asyncio.AbstractEventLoop, answer: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(answer, *arguments)
    except RuntimeError:
        # The loop was closed while the command ran: nobody is left to hear the answer.
        _log.debug("the answer of a command came after the end of its event loop")


def _answer_kept(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[T]",
    result: T,
    error: Exception | None,
) -> None:
    """What was written is durable, or nobody knows."""
    if error is None:
        _answer(loop, _fulfil, future, result)
    else:
        _answer(loop, _fail, future, error)


def _answer_all(answers: Iterable[Acknowledge], error: Exception | None) -> None:
    for answer in answers:
        answer(error)


def _settle(future: "Future[T]", result: T, error: Exception | None) -> None:
    """The same for a plain thread."""
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _fulfil(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if future.done():
        return
    if isinstance(error, StopIteration):
        # No future takes it, and whoever waits would wait for ever.
        failure = RuntimeError("a command ended with StopIteration")
        failure.__cause__ = error
        error = failure
    future.set_exception(error)
    if isinstance(error, EngineStoppedError):
        future.exception()  # whoever has left meanwhile need not be told, nor the log
