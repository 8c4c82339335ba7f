"""Many runs of which some may be finished already: those are taken from their markers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kubescene.experiments.executors.interface import Executor, JobDone
from kubescene.experiments.markers import Markers

LOST = "the executor never told what became of it"


class RunWatcher(Protocol):
    """Who is told how far it is."""

    def begin(self, total: int, kept: int, damaged: Sequence[Path]) -> None:
        """Before the first run; ``kept`` of them were finished earlier."""
        ...

    def finished(self, *, failed: bool) -> None:
        """After each run that is played, in the order in which they finish."""
        ...


class RunStruct(Protocol):
    """What becomes of a run; only a fine one leaves a marker."""

    @property
    def is_fine(self) -> bool: ...


Job = TypeVar("Job")
Result = TypeVar("Result", bound=RunStruct)


class Task(NamedTuple, Generic[Job]):
    """A job, the key of its marker (None: it leaves none), and which run it is, for people."""

    job: Job
    key: str | None
    named: dict[str, Any]


def completed(
    work: Callable[[Job], Result],
    tasks: Sequence[Task[Job]],
    executor: Executor,
    markers: Markers[Any],
    failure: Callable[[Job, str], Result],
    watcher: RunWatcher | None = None,
) -> list[Result]:
    """The results of all in their order; ``failure`` makes the one of whoever says nothing itself.

    Whatever happens, the executor has ended afterwards.
    """
    found = [None if each.key is None else markers.find(each.key) for each in tasks]
    missing = [index for index, result in enumerate(found) if result is None]
    if watcher is not None:
        watcher.begin(len(tasks), len(tasks) - len(missing), markers.damaged)
    try:
        jobs = [tasks[index].job for index in missing]
        for done in executor.each(work, jobs) if jobs else ():
            index = missing[done.number]
            task = tasks[index]
            result = found[index] = _result(task, done, failure)
            if result.is_fine and task.key is not None:
                markers.keep(task.key, task.named, result)
            if watcher is not None:
                watcher.finished(failed=not result.is_fine)
    finally:
        executor.cancel()
    return [
        failure(task.job, LOST) if result is None else result
        for task, result in zip(tasks, found, strict=True)
    ]


def _result(task: Task[Job], done: JobDone, failure: Callable[[Job, str], Result]) -> Any:
    return failure(task.job, done.error) if done.error else done.value
