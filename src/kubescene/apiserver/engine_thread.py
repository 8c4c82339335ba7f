"""The one thread that owns every write of a served world.

Whoever wants something written (or registered atomically with the history, as a watch is) submits a
command: a callable that runs on this thread, one at a time, in the order of arrival. Its result
goes back to the submitter at once; then the controllers get their turns, one round after the
other, until they have come to rest. A command that arrives meanwhile runs between two rounds, so
a large rollout delays writers by one round and readers not at all.

What is due later (pod start delays, requeues) lies in the cluster's event queue; the thread sleeps
until then, or until the next command.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from kubescene.actors import Role
from kubescene.clock import SECOND
from kubescene.cluster import Cluster
from kubescene.control.settling import ROUNDS_PER_OBJECT

T = TypeVar("T")

MAX_ROUNDS = 10_000
LONGEST_SLEEP_S = 3600.0

_log = logging.getLogger(__name__)


class EngineStoppedError(RuntimeError):
    """The server is shutting down and takes no more commands."""


class EngineThread:
    """Runs commands and controllers of one cluster. Nobody else may write to it any more."""

    def __init__(self, cluster: Cluster, *, controllers: bool = True) -> None:
        self.cluster = cluster
        self._with_controllers = controllers
        self._commands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="kubescene-engine", daemon=True)
        self._stopped = False
        self._ending = Lock()
        self._rounds = 0

    def start(self) -> None:
        """Take the store over and begin; what is there already is settled first."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what was submitted, then end. Waits until the thread is gone."""
        with self._ending:
            if not self._stopped:
                self._stopped = True
                self._commands.put(None)
        if self._thread.ident is not None:
            self._thread.join()

    async def submit(self, command: Callable[[], T]) -> T:
        """Run ``command`` on the engine thread and give its result to this coroutine."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = command()
            except Exception as error:
                _answer(loop, _fail, future, error)
            else:
                _answer(loop, _fulfil, future, result)

        if not self._put(run):
            raise EngineStoppedError("the server is shutting down")
        return await future

    def post(self, command: Callable[[], None]) -> None:
        """Run ``command`` some time, if the engine still runs; nobody waits for it."""

        def run() -> None:
            try:
                command()
            except Exception:
                _log.exception("a command that nobody waits for failed; the server goes on")

        self._put(run)

    def call(self, command: Callable[[], T]) -> T:
        """The same for a plain thread: blocks until the command has run."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(command())
            except Exception as error:
                future.set_exception(error)

        if not self._put(run):
            raise EngineStoppedError("the server is shutting down")
        return future.result()

    def _put(self, run: Callable[[], None]) -> bool:
        """Whether the command will run: nothing may follow the mark of the end."""
        with self._ending:
            if not self._stopped:
                self._commands.put(run)
            return not self._stopped

    def serve_pending(self) -> None:
        """Run commands that wait now. A long command calls this to let others in between."""
        for _ in range(self._commands.qsize()):
            try:
                command = self._next(0)
            except StopIteration:
                self._commands.put(None)
                return
            if command is not None:
                command()

    # -- on the engine thread ----------------------------------------------------------------

    def _run(self) -> None:
        self.cluster.store.own()
        self._start_controllers()
        busy = self._with_controllers
        while True:
            try:
                command = self._next(0 if busy else self._idle_s())
            except StopIteration:
                self._finish()
                return
            if command is not None:
                command()
                busy, self._rounds = self._with_controllers, 0
            elif busy:
                busy = self._round()
            else:
                busy = self._run_due()

    def reset(self) -> None:
        """An empty cluster with controllers that know nothing of the old one. A command."""
        self.cluster.reset()
        self._start_controllers()

    def _start_controllers(self) -> None:
        if self._with_controllers and not self.cluster.controllers:
            self.cluster.start(list(self.cluster.registrations), Role.PRESIMULATION)

    def _finish(self) -> None:
        """Run what was submitted while the end was being announced: somebody waits for it."""
        while not self._commands.empty():
            command = self._commands.get()
            if command is not None:
                command()

    def _next(self, timeout_s: float) -> Callable[[], None] | None:
        """The next command; None if none came in time. StopIteration ends the thread."""
        try:
            command = self._commands.get(block=timeout_s > 0, timeout=timeout_s or None)
        except Empty:
            return None
        if command is None:
            raise StopIteration
        return command

    def _idle_s(self) -> float:
        due = self.cluster.event_queue.peek()
        if due is None:
            return LONGEST_SLEEP_S
        # Zero would mean "busy": an event that is due runs in the next turn all the same.
        return min(max((due - self.cluster.clock.now()) / SECOND, 1e-6), LONGEST_SLEEP_S)

    def _run_due(self) -> bool:
        try:
            ran = self.cluster.event_queue.run_due()
        except Exception:
            _log.exception("something that was due failed; the server goes on")
            return True
        self._rounds = 0
        return ran > 0 and self._with_controllers

    def _round(self) -> bool:
        """One turn for every controller; whether another round is needed."""
        busy = False
        for controller in self.cluster.controllers:
            try:
                progress = controller.run_once()
            except Exception:
                _log.exception("controller %s failed; the server goes on", controller.name)
                continue
            busy = busy or progress.wrote or progress.more
        self._rounds += 1
        return busy and not self._is_livelocked()

    def _is_livelocked(self) -> bool:
        if self._rounds <= MAX_ROUNDS + ROUNDS_PER_OBJECT * self.cluster.object_count:
            return False
        _log.error(
            "the controllers did not come to rest after %d rounds: they wait for the next change",
            self._rounds,
        )
        return True


def _answer(loop: asyncio.AbstractEventLoop, answer: Callable[..., None], *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(answer, *arguments)
    except RuntimeError:
        # The loop was closed while the command ran: nobody is left to hear the answer.
        _log.debug("the answer of a command came after the end of its event loop")


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
