"""Runs in a store, from the command line: kept, listed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from kubescene.cli.terminals import aligned
from kubescene.errors import ConfigurationError, TrafficError
from kubescene.traffic import Phase, TrafficResult, TrafficRun
from kubescene.traffic.results import verdict_of
from kubescene.traffic.store import RunStore, StoredRun

Keep = Callable[[TrafficResult], object]


@contextmanager
def keeping(
    path: Path | None,
    asked: TrafficRun,
    autoscalers: Sequence[str] = (),
    *,
    repeats: int | None = None,
) -> Iterator[Keep]:
    """Write down that a run begins, what becomes of it, and why it could not be simulated."""
    if path is None:
        yield _nowhere
        return
    with opened(path) as store:
        id = store.begin(asked, autoscalers, repeats=repeats)
        Console(stderr=True).print(f"run {id} of {path}", highlight=False, markup=False)
        try:
            yield lambda result: store.end(id, result)
        except BaseException as error:
            store.fail(id, str(error) or repr(error))
            raise


def _nowhere(result: TrafficResult) -> None:
    del result


@contextmanager
def opened(path: Path, *, must_exist: bool = False) -> Iterator[RunStore]:
    """A store; one that is only read must be there."""
    if must_exist and not path.is_file():
        raise TrafficError("there is no such file", source=str(path))
    store = RunStore(path)
    try:
        yield store
    finally:
        store.close()


def opened_run(run: Path) -> TrafficResult:
    """A run in a directory, or one that a data directory has by its id."""
    from kubescene.cli.origins import catalogued

    found = None if run.is_dir() else catalogued(str(run))
    if found is None:
        return TrafficResult.load(run)
    runs, id = found
    result = runs.open(id)
    if not isinstance(result, TrafficResult):
        raise ConfigurationError(f"{id} is the run of a scenario: kubescene report {run}")
    return result


def table_of(runs: Sequence[StoredRun]) -> str:
    """One line for each."""
    rows = [["ID", "NAME", "CREATED", "SEED", "VERDICT", "REPEATS", "REQUESTS", "FAILED", "P95"]]
    for each in runs:
        told = each.summary or {}
        rows.append(
            [
                str(each.id),
                each.name,
                each.created,
                str(each.seed),
                verdict_told(each),
                str(each.repeats or ""),
                str(told.get("requests", "")),
                str(told.get("failed", "")),
                all_p95(told),
            ]
        )
    return aligned(rows, left=(1, 2, 4))


def verdict_told(run: StoredRun) -> str:
    """What the objective says; of a run that did not come to its end, the phase."""
    told = run.summary or {}
    if run.phase != Phase.SUCCEEDED or "sloMinutes" not in told:
        return run.phase
    return verdict_of(told["minutes"], told["sloMinutes"])


def all_p95(told: Mapping[str, Any]) -> str:
    """Failures counted at their time-outs; nothing for runs of versions that did not know it."""
    found = told.get("allResponseP95S")
    return "" if found is None else f"{found:.3f}s"
