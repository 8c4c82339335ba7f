"""A TrafficRun under every combination of some settings, in parallel processes.

Each run is data in and data out, so it does not matter which process simulates it, nor how many
there are: rows come in the order of the combinations, with the same bytes.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import msgspec

from kubescene.autoscalers import AutoscalerPlugin
from kubescene.autoscalers.loading import load_autoscaler, started
from kubescene.errors import KubesceneError, TrafficError
from kubescene.traffic.measures import Summary
from kubescene.traffic.runs import run
from kubescene.traffic.spec.loading import load_run

MOST_RUNS = 10_000
REFUSED = "Refused"
LOST = "its process ended, perhaps for want of memory"


class Case(msgspec.Struct, frozen=True):
    """One combination of settings of a file."""

    file: str
    settings: tuple[str, ...]
    autoscalers: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    """Commands of autoscalers; each case has processes of its own."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a case. ``phase`` is ``Refused`` for one that could not be simulated."""

    settings: dict[str, str]
    phase: str
    message: str = ""
    summary: Summary | None = None


def cases(
    file: str | Path,
    settings: Sequence[str],
    autoscalers: Sequence[str] = (),
    processes: Sequence[str] = (),
) -> list[Case]:
    """All combinations, the last setting changing fastest."""
    ways = [alternatives(each) for each in settings]
    names = [each.partition("=")[0] for each in settings]
    if len(set(names)) < len(names):
        raise TrafficError("a field is given twice: write its values as one list", source="--set")
    count = 1
    for way in ways:
        count *= len(way)
    if count > MOST_RUNS:
        raise TrafficError(f"{count} combinations are more than {MOST_RUNS}", source="--set")
    code = tuple(autoscalers), tuple(processes)
    return [Case(str(file), each, *code) for each in product(*ways)]


def alternatives(setting: str) -> list[str]:
    """``path=a,b`` as ``path=a`` and ``path=b``; commas inside brackets or quotes do not divide."""
    path, equals, text = setting.partition("=")
    if not path or not equals:
        raise TrafficError(f"{setting!r} must be written as path=a,b,c", source="--set")
    parts = list(_divided(text))
    if not all(parts):
        raise TrafficError(f"{setting!r} has a value that is empty", source="--set")
    return [f"{path}={part}" for part in parts]


def _divided(text: str) -> Iterator[str]:
    depth, quote, begin = 0, "", 0
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:index].strip()
            begin = index + 1
    yield text[begin:].strip()


def sweep(asked: Sequence[Case], jobs: int) -> Iterator[Outcome]:
    """Simulate all, so many at once; outcomes in the order of the cases."""
    if jobs == 1 or len(asked) == 1:
        yield from map(simulate, asked)
        return
    # Not forked: whoever sweeps may have threads.
    with ProcessPoolExecutor(min(jobs, len(asked)), mp_context=get_context("spawn")) as pool:
        doing = _submitted(pool, asked)
        for case, future in zip(asked, doing, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield _alone(case)


def _submitted(pool: ProcessPoolExecutor, asked: Iterable[Case]) -> list[Future[Outcome]]:
    """Each of them; a pool that breaks meanwhile breaks the rest, which are tried alone."""
    doing: list[Future[Outcome]] = []
    for case in asked:
        try:
            doing.append(pool.submit(simulate, case))
        except BrokenProcessPool as error:
            broken: Future[Outcome] = Future()
            broken.set_exception(error)
            doing.append(broken)
    return doing


def _alone(case: Case) -> Outcome:
    """One case in a process of its own: if that ends too, it was this one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(simulate, case).result()
        except BrokenProcessPool:
            return Outcome(settings=_settings(case), phase="Failed", message=LOST)


def simulate(case: Case) -> Outcome:
    """One case, in whatever process this is. Whatever goes wrong is its outcome."""
    settings = _settings(case)
    plugins: list[AutoscalerPlugin] = []
    try:
        asked = load_run(case.file, case.settings)
        plugins += map(load_autoscaler, case.autoscalers)
        plugins += started(case.processes)
        result = run(asked, plugins, folder=Path(case.file).parent)
    except KubesceneError as error:
        return Outcome(settings=settings, phase=REFUSED, message=str(error))
    except MemoryError:
        return Outcome(settings=settings, phase="Failed", message="there is not enough memory")
    finally:
        for each in plugins:
            each.close()
    return Outcome(
        settings=settings, phase=result.phase, message=result.message, summary=result.summary
    )


def _settings(case: Case) -> dict[str, str]:
    return dict(each.split("=", 1) for each in case.settings)
