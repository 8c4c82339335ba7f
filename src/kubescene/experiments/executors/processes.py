"""Jobs in processes of this machine.

A worker is a process with a pipe and does one job at a time. So when one dies (killed for its
memory, a plugin that crashes the interpreter), it is known whose job that was; the others do not
notice. The job is given to a new worker once more, since what killed the first may have come from
outside.

Workers are new interpreters rather than copies of this one: a copy of a process with threads is
unsafe, and results must not depend on what this process has done before.
"""

import os
import pickle
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, NamedTuple

from kubescene.experiments.executors.interface import Function, JobDone, attempted, told
from kubescene.garbage import take_charge

TRIES = 2
_CONTEXT = get_context("spawn")


class BegunJob(NamedTuple):
    """A job that somebody is at, and how often it was begun."""

    number: int
    argument: Any
    tries: int = 1


class Worker:
    """One process and the task that it is at."""

    def __init__(self, function: Function) -> None:
        self.pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=serve, args=(theirs, pickle.dumps(function)), name="kubescene-worker"
        )
        resource_tracker.ensure_running()  # It lets signals through again when it is begun.
        with unheard(signal.SIGINT):  # Until it listens for itself, so that Ctrl-C is no traceback.
            self._process.start()
        theirs.close()  # So that the pipe ends when the worker does.
        self.task: BegunJob | None = None

    def give(self, task: BegunJob) -> None:
        """Send a task; raises what pickling raises. A worker that died is noticed by `done`."""
        data = pickle.dumps((task.number, pickle.dumps(task.argument)))
        self.task = task
        with suppress(OSError):  # A pipe that has ended is what `done` tells of.
            self.pipe.send_bytes(data)

    def done(self) -> JobDone | None:
        """What it has to say; None if it died."""
        try:
            found: JobDone = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            return None
        self.task = None
        return found

    def end(self) -> int | None:
        """Stop it, whatever it does; returns its exit code."""
        self.pipe.close()
        self._process.kill()
        return self.joined()

    def joined(self) -> int | None:
        """Wait until it has ended."""
        self._process.join()
        return self._process.exitcode


class Processes:
    """As many workers as jobs may be done at a time, made when they are needed."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._workers: list[Worker] = []

    def each(self, function: Function, arguments: Sequence[Any]) -> Iterator[JobDone]:
        waiting = (BegunJob(index, argument) for index, argument in enumerate(arguments))
        for _ in range(min(self._jobs, len(arguments))):
            self._workers.append(Worker(function))
        for worker in list(self._workers):
            yield from self._employ(worker, waiting)
        while self._workers:
            by_pipe = {worker.pipe: worker for worker in self._workers}
            for pipe in wait(list(by_pipe)):
                assert isinstance(pipe, Connection)
                yield from self._heard(by_pipe[pipe], function, waiting)

    def _employ(self, worker: Worker, waiting: Iterator[BegunJob]) -> Iterator[JobDone]:
        """Give it the next task that can be sent, or let it go."""
        for task in waiting:
            try:
                worker.give(task)
            except Exception as error:
                yield JobDone(task.number, error=unsendable(error))
            else:
                return
        self._workers.remove(worker)
        worker.end()

    def _heard(
        self, worker: Worker, function: Function, waiting: Iterator[BegunJob]
    ) -> Iterator[JobDone]:
        found, task = worker.done(), worker.task
        if found is not None:
            yield found
            yield from self._employ(worker, waiting)
            return
        self._workers.remove(worker)
        code = worker.joined()
        follower = Worker(function)
        self._workers.append(follower)
        assert task is not None
        if task.tries < TRIES:
            follower.give(task._replace(tries=task.tries + 1))
            return
        yield JobDone(task.number, error=died(code))
        yield from self._employ(follower, waiting)

    def cancel(self) -> None:
        while self._workers:
            self._workers.pop().end()


def serve(pipe: Connection, function: bytes) -> None:
    """What a worker does: one job after the other, until nobody sends any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who sends.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    Thread(target=end_with_parent, daemon=True).start()
    take_charge()
    call: Function = pickle.loads(function)
    with suppress(EOFError, OSError):
        while True:
            index, argument = pickle.loads(pipe.recv_bytes())
            pipe.send_bytes(answer(call, index, argument))


@contextmanager
def unheard(number: signal.Signals) -> Iterator[None]:
    """A process that is started meanwhile does not get this signal until it says so."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Nobody waits any more for what this worker does, however the other process has ended."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def answer(call: Function, index: int, argument: bytes) -> bytes:
    """Do a job; that it cannot be read or its value not be sent is an answer, too."""
    try:
        return pickle.dumps(attempted(index, call, pickle.loads(argument)))
    except Exception as error:
        return pickle.dumps(JobDone(index, error=unsendable(error)))


def unsendable(error: Exception) -> str:
    return (
        f"cannot be sent to another process ({told(error)}): define its parts in a module, "
        "or use one job, which is done in this process"
    )


def died(code: int | None) -> str:
    """Why a worker ended, in words."""
    if code is not None and code < 0:
        name = next((each.name for each in signal.Signals if each == -code), str(-code))
        return f"the process that played it was killed twice ({name}): perhaps memory ran out"
    return (
        f"the process that played it ended twice with code {code}: see what it wrote; scripts that "
        "play many runs need `if __name__ == '__main__':`"
    )
