"""Replays for ``kubescene bench``: which workloads, each in its own process, and how far it is."""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubescene.benchmarks import Workload, WorkloadResult, load_workloads, replay
from kubescene.errors import WorkloadError
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.timeline import Instrument

if TYPE_CHECKING:
    from rich.status import Status

REFRESH_EVERY = 500


def chosen(file: Path, wanted: str) -> list[Workload]:
    """The workloads of a file whose names contain a text, such as ``SchedulingBasic/500Nodes``."""
    workloads = load_workloads(file)
    found = [each for each in workloads if wanted in each.full_name]
    if not found:
        names = "\n  ".join(each.full_name for each in workloads) or "none"
        raise WorkloadError(
            f"no workload has {wanted!r} in its name; there are:\n  {names}", file=str(file)
        )
    return found


def replayed(workloads: Sequence[Workload]) -> list[WorkloadResult]:
    """Each in a process of its own, if there are several: memory and caches are its own then."""
    if len(workloads) == 1:
        return [replay_shown(workloads[0], "")]
    results = []
    for number, workload in enumerate(workloads, 1):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            place = f" ({number} of {len(workloads)})"
            results.append(pool.submit(replay_shown, workload, place).result())
    return results


def replay_shown(workload: Workload, place: str) -> WorkloadResult:
    """Replay, and say on standard error how far it is."""
    title = f"{workload.full_name}{place}"
    if not sys.stderr.isatty():
        sys.stderr.write(f"{title}\n")
        sys.stderr.flush()
    with _status(title) as status:
        return replay(workload, Reached(title, status))


def _status(title: str) -> AbstractContextManager[Any]:
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(title)


class Reached(Instrument):
    """Counts on a terminal; elsewhere nobody looks."""

    def __init__(self, title: str, status: "Status | None") -> None:
        self._title = title
        self._status = status
        self._attempts = self._bound = 0

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self._attempts += 1
        self._bound += bool(attempt.node)
        if self._status is not None and self._attempts % REFRESH_EVERY == 0:
            self._status.update(
                f"{self._title}: {self._bound:,} pods bound, {self._attempts:,} attempts"
            )
