"""Playing a matrix: what is missing is played, the rest is taken from its markers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from kubescene.autoscalers.available import PluginSource
from kubescene.experiments.combinations import (
    Combination,
    Configurations,
    Scenarios,
    Seeds,
    combinations,
    seeds_of,
)
from kubescene.experiments.digests import digest_of
from kubescene.experiments.executors import ExecutorName, executor_for
from kubescene.experiments.executors.interface import Executor
from kubescene.experiments.jobs import RunJob, RunOutcome, played
from kubescene.experiments.markers import Markers
from kubescene.experiments.measures import check_measures, chosen_measures
from kubescene.experiments.results import MatrixResult, MatrixRun
from kubescene.experiments.resuming import RunWatcher, Task, completed
from kubescene.results.cost.prices import Prices, read_prices
from kubescene.results.measures.own import OwnFunction


class Planned(NamedTuple):
    """A run with its key; the seed is that of its request."""

    combination: Combination
    job: RunJob
    key: str

    def run(self, outcome: RunOutcome) -> MatrixRun:
        return MatrixRun(
            scenario=self.combination.scenario,
            configuration=self.combination.configuration,
            settings=self.combination.settings_text,
            seed=self.job.request.seed,
            measures=outcome.measures,
            unmet=outcome.unmet,
            error=outcome.error,
        )

    def named(self) -> dict[str, Any]:
        """Which run it is, for people."""
        run = self.run(RunOutcome())
        return {
            each: getattr(run, each) for each in ("scenario", "configuration", "settings", "seed")
        }


def matrix(
    scenarios: Scenarios,
    configurations: Configurations = None,
    seeds: Seeds = None,
    *,
    settings: Mapping[str, Sequence[Any]] | None = None,
    measures: Sequence[str | OwnFunction] = (),
    jobs: int | None = None,
    executor: Executor | ExecutorName | None = None,
    out: str | Path | None = None,
    prices: Prices | str | Path | None = None,
    reconcilers: Sequence[type] = (),
    autoscalers: Sequence[PluginSource] = (),
    autoscaler_processes: Sequence[str] = (),
    strict: bool = False,
    watcher: RunWatcher | None = None,
) -> MatrixResult:
    """Play every scenario with every configuration, every choice of settings and every seed.

    Scenarios are files, objects or builders, configurations what ``kubescene.run`` takes as its
    ``scheduler`` (None: the scenario's own); mappings give them names. ``seeds`` is how many (1 to
    N), or which. ``settings`` are values by the path of a field, such as
    ``{"spec.operations.1.createOperation.count": [10, 20]}``. ``measures`` are those that tables
    show, all by default; functions of a run, or ``module:function``, are measures of one's own.

    ``jobs`` runs are played at a time, by default as many as there are processors; one is played
    in this process. With ``out``, finished runs leave a marker there, and are not played again.
    What is wrong with the input is raised before the first run; a run that fails is a `MatrixRun`
    with an error.
    """
    priced = read_prices(prices) if isinstance(prices, str | Path) else prices
    own, names = chosen_measures(measures)
    several = combinations(
        scenarios,
        configurations,
        settings or {},
        reconcilers=reconcilers,
        autoscalers=autoscalers,
        autoscaler_processes=autoscaler_processes,
        strict=strict,
        own=own,
    )
    check_measures(names, (each.request.scenario for each in several), priced, own)
    plan = list(planned(several, seeds_of(seeds), priced))
    executor = executor_for(executor, jobs, len(plan))
    return MatrixResult(runs_of(plan, executor, out, watcher), names)


def runs_of(
    plan: Sequence[Planned],
    executor: Executor,
    out: str | Path | None,
    watcher: RunWatcher | None,
) -> list[MatrixRun]:
    """Play what is missing of a plan."""
    outcomes = completed(
        played,
        [Task(each.job, each.key, each.named()) for each in plan],
        executor,
        Markers(None if out is None else Path(out), RunOutcome),
        failure_of,
        watcher,
    )
    return [each.run(outcome) for each, outcome in zip(plan, outcomes, strict=True)]


def planned(
    several: Sequence[Combination],
    seeds: Sequence[int | None],
    prices: Prices | None,
) -> Iterator[Planned]:
    """Every run, in the order of the table."""
    for combination in several:
        for seed in seeds:
            request = replace(combination.request, seed=seed)
            job = RunJob(request=request, prices=prices)
            yield Planned(combination, job, digest_of(job))


def failure_of(job: RunJob, error: str) -> RunOutcome:
    """Of a job that says nothing itself."""
    del job
    return RunOutcome(error=error)
