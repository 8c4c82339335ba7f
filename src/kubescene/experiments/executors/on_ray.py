"""Jobs on Ray: a cluster of machines, or this one.

``RAY_ADDRESS`` says which cluster, as with everything that uses Ray; without it, one is started on
this machine for as long as the jobs take. Every machine needs the same version of Kubescene, the
plugins, and the files that scenarios read (``objectFrom``), at the same paths.
"""

import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.experiments.executors.interface import Function, JobDone, attempted, told


class OnRay:
    """At most ``jobs`` tasks at a time. A task whose worker dies is tried once more by Ray."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._ray = ray_module()
        self._running: dict[Any, int] = {}
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            self._connect()

    def _connect(self) -> None:
        address = os.environ.get("RAY_ADDRESS")
        quiet = {"log_to_driver": False, "logging_level": "error"}
        mine = {} if address else {"num_cpus": self._jobs, "include_dashboard": False}
        try:
            self._ray.init(address=address, **mine, **quiet)
        except Exception as error:
            where = f"at {address}" if address else "on this machine"
            raise ConfigurationError(f"there is no Ray {where}: {told(error)}") from error

    def each(self, function: Function, arguments: Sequence[Any]) -> Iterator[JobDone]:
        task = self._ray.remote(num_cpus=1, max_retries=1)(called)
        waiting = iter(enumerate(arguments))
        while True:
            while len(self._running) < self._jobs and (following := next(waiting, None)):
                index, argument = following
                try:
                    data = pickle.dumps((index, function, argument))
                except Exception as error:
                    yield JobDone(index, error=f"cannot be sent to Ray ({told(error)})")
                else:
                    self._running[task.remote(list(sys.path), data)] = index
            if not self._running:
                return
            finished, _ = self._ray.wait(list(self._running), num_returns=1)
            yield self._done(finished[0])

    def _done(self, reference: Any) -> JobDone:
        index = self._running.pop(reference)
        try:
            found: JobDone = pickle.loads(self._ray.get(reference))
        except Exception as error:
            return JobDone(index, error=f"Ray: {told(error)}")
        return found

    def cancel(self) -> None:
        for reference in self._running:
            with suppress(Exception):  # It may have ended meanwhile, and Ray with it.
                self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._is_ours and self._ray.is_initialized():
            self._ray.shutdown()


def called(path: list[str], data: bytes) -> bytes:
    """What a task does: jobs are unpacked once plugins can be found as they were here."""
    sys.path.extend(each for each in path if each not in sys.path)
    index, function, argument = pickle.loads(data)
    return pickle.dumps(attempted(index, function, argument))


def ray_module() -> Any:
    """Ray, which comes with an extra."""
    try:
        import ray
    except ImportError:
        raise ConfigurationError(
            "the executor 'ray' needs Ray: pip install 'kubescene[ray]'"
        ) from None
    return ray
