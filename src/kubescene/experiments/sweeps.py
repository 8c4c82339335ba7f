"""A TrafficRun under every combination of some settings, with one or many seeds.

Each run is a job for an executor, data in and data out, so it does not matter who simulates it nor
how many at a time: rows come in the order of the combinations, with the same bytes. With a
directory, runs that succeeded leave markers there and are not simulated again.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from kubescene.autoscalers import AutoscalerPlugin
from kubescene.autoscalers.references import load_autoscaler, started
from kubescene.errors import KubesceneError, TrafficError
from kubescene.experiments.combinations import Seeds, seeds_of
from kubescene.experiments.digests import code_of
from kubescene.experiments.estimates import Estimate, estimate
from kubescene.experiments.executors import ExecutorName, executor_for
from kubescene.experiments.executors.interface import Executor
from kubescene.experiments.markers import Markers
from kubescene.experiments.resuming import RunWatcher, Task, completed
from kubescene.traffic.measures import TrafficSummary
from kubescene.traffic.runs import run
from kubescene.traffic.spec.files import embedded
from kubescene.traffic.spec.loading import load_run, to_object
from kubescene.version import __version__

MOST_RUNS = 10_000
REFUSED, SUCCEEDED = "Refused", "Succeeded"
SEED = "spec.seed"


class SweepCase(msgspec.Struct, frozen=True):
    """One combination of settings of a file; ``seed`` is None for that of the file."""

    file: str
    settings: tuple[str, ...]
    autoscalers: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    """Commands of autoscalers; each case has processes of its own."""
    seed: int | None = None

    @property
    def named(self) -> dict[str, str]:
        """The value of each setting by its path."""
        return dict(each.split("=", 1) for each in self.settings)

    def told(self) -> dict[str, Any]:
        """Which run it is, for people."""
        return {"settings": self.named, "seed": self.seed}

    def load(self) -> Any:
        seed = () if self.seed is None else (f"{SEED}={self.seed}",)
        return load_run(self.file, (*self.settings, *seed))

    def __str__(self) -> str:
        seed = () if self.seed is None else (f"seed {self.seed}",)
        return " ".join((*self.settings, *seed))


class SweepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a case. ``phase`` is ``Refused`` for one that could not be simulated."""

    settings: dict[str, str]
    phase: str
    message: str = ""
    summary: TrafficSummary | None = None

    @property
    def is_fine(self) -> bool:
        return self.phase == SUCCEEDED

    @property
    def measures(self) -> dict[str, int | float | None]:
        """By their names in files."""
        return {} if self.summary is None else msgspec.to_builtins(self.summary)


class SweepRow(msgspec.Struct, frozen=True, kw_only=True):
    """All seeds of one combination; ``runs`` of them succeeded. Measures are means over those."""

    settings: dict[str, str]
    runs: int
    failed: int
    measures: dict[str, Estimate]


class SweepResult:
    """The outcomes in the order of the cases, whichever was simulated first."""

    def __init__(self, cases: Sequence[SweepCase], outcomes: Sequence[SweepOutcome]) -> None:
        self.cases = list(cases)
        self.outcomes = list(outcomes)

    @property
    def has_seeds(self) -> bool:
        return any(each.seed is not None for each in self.cases)

    @property
    def failed(self) -> list[tuple[SweepCase, SweepOutcome]]:
        both = zip(self.cases, self.outcomes, strict=True)
        return [(case, each) for case, each in both if not each.is_fine]

    @property
    def rows(self) -> list[SweepRow]:
        together: dict[tuple[str, ...], list[SweepOutcome]] = {}
        for case, outcome in zip(self.cases, self.outcomes, strict=True):
            together.setdefault(case.settings, []).append(outcome)
        return [row_of(several) for several in together.values()]


def row_of(outcomes: Sequence[SweepOutcome]) -> SweepRow:
    fine = [told(each.measures) for each in outcomes if each.is_fine]
    names = dict.fromkeys(name for each in fine for name in each)
    return SweepRow(
        settings=outcomes[0].settings,
        runs=len(fine),
        failed=len(outcomes) - len(fine),
        measures={name: estimate([each[name] for each in fine if name in each]) for name in names},
    )


def told(measures: Mapping[str, int | float | None]) -> dict[str, int | float]:
    """Without times that nobody had: no time at all would look short."""
    served = bool(measures.get("succeeded"))
    return {
        name: each
        for name, each in measures.items()
        if each is not None and (served or not name.startswith("response"))
    }


def cases(
    file: str | Path,
    settings: Sequence[str],
    autoscalers: Sequence[str] = (),
    processes: Sequence[str] = (),
    seeds: Seeds = None,
) -> list[SweepCase]:
    """All combinations, the last setting changing fastest, each with every seed."""
    ways = [alternatives(each) for each in settings]
    names = [each.partition("=")[0] for each in settings]
    if len(set(names)) < len(names):
        raise TrafficError("a field is given twice: write its values as one list", source="--set")
    if seeds is not None and SEED in names:
        raise TrafficError(f"{SEED} is set: use either that or --seeds, --seed", source="--set")
    played = seeds_of(seeds)
    count = len(played)
    for way in ways:
        count *= len(way)
    if count > MOST_RUNS:
        raise TrafficError(f"{count} combinations are more than {MOST_RUNS}", source="--set")
    code = tuple(autoscalers), tuple(processes)
    return [SweepCase(str(file), each, *code, seed) for each in product(*ways) for seed in played]


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


def sweep(
    asked: Sequence[SweepCase],
    jobs: int | None = None,
    *,
    executor: Executor | ExecutorName | None = None,
    out: Path | None = None,
    watcher: RunWatcher | None = None,
) -> SweepResult:
    """Simulate all, so many at a time; those that succeeded leave a marker in ``out``."""
    executor = executor_for(executor, jobs, len(asked))
    tasks = [Task(each, None if out is None else key_of(each), each.told()) for each in asked]
    found = completed(simulate, tasks, executor, Markers(out, SweepOutcome), failure_of, watcher)
    return SweepResult(asked, found)


def failure_of(case: SweepCase, error: str) -> SweepOutcome:
    return SweepOutcome(settings=case.named, phase="Failed", message=error)


def key_of(case: SweepCase) -> str | None:
    """A digest of all that the outcome depends on; None for a case that cannot be read."""
    try:
        run = to_object(embedded(case.load(), Path(case.file).parent))
        code = [code_of(type(load_autoscaler(each))) for each in case.autoscalers]
    except KubesceneError:
        return None
    described = [__version__, run, case.named, code, case.processes]
    return hashlib.sha256(msgspec.json.encode(described, order="sorted")).hexdigest()


def simulate(case: SweepCase) -> SweepOutcome:
    """One case, in whatever process this is. Whatever goes wrong is its outcome."""
    settings = case.named
    plugins: list[AutoscalerPlugin] = []
    try:
        asked = case.load()
        plugins += map(load_autoscaler, case.autoscalers)
        plugins += started(case.processes)
        result = run(asked, plugins, folder=Path(case.file).parent)
    except KubesceneError as error:
        return SweepOutcome(settings=settings, phase=REFUSED, message=str(error))
    except MemoryError:
        return SweepOutcome(settings=settings, phase="Failed", message="there is not enough memory")
    finally:
        for each in plugins:
            each.close()
    return SweepOutcome(
        settings=settings, phase=result.phase, message=result.message, summary=result.summary
    )
