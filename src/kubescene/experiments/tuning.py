"""Searching settings: the cheapest that keep what they must, and what a better one would cost.

Candidates are combinations of values on axes (`ranges`): all of them if they are few, else drawn,
or proposed by Optuna. Each is played with every seed, by the executors of a matrix, and leaves a
marker: the same search goes on where it was stopped.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from kubescene.autoscalers.available import PluginSource
from kubescene.errors import ConfigurationError
from kubescene.experiments.combinations import ScenarioSource, Seeds, of_choices, seeds_of
from kubescene.experiments.estimates import Estimate, estimate
from kubescene.experiments.executors import ExecutorName, executor_for
from kubescene.experiments.executors.interface import Executor
from kubescene.experiments.goals import Goal, TuningTrial, measure_named, value_of
from kubescene.experiments.measures import check_measures
from kubescene.experiments.playing import planned, runs_of
from kubescene.experiments.ranges import (
    Axis,
    Point,
    count_of,
    grid,
    random_points,
    settings_of,
)
from kubescene.experiments.results import MatrixRun
from kubescene.experiments.resuming import RunWatcher
from kubescene.results.cost.prices import Prices, read_prices
from kubescene.scheduler import SchedulerOptions

Search: TypeAlias = Literal["auto", "grid", "random", "optuna"]
TRIALS = 50
AT_ONCE = 4
"""So many proposals Optuna is asked for before it hears what came of them."""


class TuningResult:
    """All trials in the order in which they were tried."""

    def __init__(self, goal: Goal, trials: Sequence[TuningTrial], of: int, search: str) -> None:
        self.goal = goal
        self.trials = list(trials)
        self.combinations = of
        self.search = search

    def cost_of(self, trial: TuningTrial, name: str) -> float | None:
        """The mean of what is to be small."""
        found = trial.values.get(name)
        if found is None:
            return None
        return -found.mean if self._is_to_be_large(name) else found.mean

    def _is_to_be_large(self, name: str) -> bool:
        if name == self.goal.name:
            return self.goal.most
        relations = (each.relation for each in self.goal.conditions if each.name == name)
        return any(each.startswith(">") for each in relations)

    @property
    def best(self) -> TuningTrial | None:
        """The one that keeps all conditions at the least cost; the first of equal ones."""
        fine = [each for each in self.trials if each.is_feasible and self._key(each) is not None]
        return min(fine, key=lambda each: self._key(each) or 0.0, default=None)

    def _key(self, trial: TuningTrial) -> float | None:
        return self.cost_of(trial, self.goal.name)

    @property
    def frontier(self) -> list[TuningTrial]:
        """Those than which no other is better in one thing and not worse in any."""
        names = self.goal.names
        told: list[tuple[tuple[float, ...], TuningTrial]] = []
        for each in self.trials:
            found = (self.cost_of(each, name) for name in names)
            known = tuple(cost for cost in found if cost is not None)
            if each.runs and not each.failed and len(known) == len(names):
                told.append((known, each))
        kept: dict[tuple[float, ...], TuningTrial] = {}
        for costs, trial in told:
            if not any(_is_better(other, costs) for other, _ in told):
                kept.setdefault(costs, trial)
        return [kept[costs] for costs in sorted(kept)]


def _is_better(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


class Proposer(Protocol):
    """Says what to try next, and hears what came of it."""

    def propose(self, count: int) -> list[Point]:
        """At most so many; none: it has no more."""
        ...

    def hear(self, point: Point, trial: TuningTrial) -> None: ...


class ListedProposer:
    """A proposer that knows all of them beforehand."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._left = list(points)

    def propose(self, count: int) -> list[Point]:
        found, self._left = self._left[:count], self._left[count:]
        return found

    def hear(self, point: Point, trial: TuningTrial) -> None:
        """It does not learn."""


def tune(
    scenario: ScenarioSource,
    axes: Sequence[Axis],
    goal: Goal,
    *,
    trials: int = TRIALS,
    search: Search = "auto",
    search_seed: int = 0,
    seeds: Seeds = None,
    jobs: int | None = None,
    executor: Executor | ExecutorName | None = None,
    out: str | Path | None = None,
    prices: Prices | str | Path | None = None,
    scheduler: SchedulerOptions | None = None,
    reconcilers: Sequence[type] = (),
    autoscalers: Sequence[PluginSource] = (),
    autoscaler_processes: Sequence[str] = (),
    watcher: RunWatcher | None = None,
) -> TuningResult:
    """Try combinations of settings of a scenario; what is wrong with the input is raised first.

    ``auto`` plays all combinations if they are no more than ``trials``, and draws else.
    """
    if trials < 1:
        raise ConfigurationError(f"--trials {trials}: at least one has to be played")
    many, priced = count_of(axes), prices
    if isinstance(prices, str | Path):
        priced = read_prices(prices)
    assert not isinstance(priced, str | Path)
    if search == "auto":
        search = "grid" if many <= trials else "random"
    proposer = _proposer(search, axes, goal, trials, search_seed)
    whole = min(trials, many) if search != "grid" else many
    executor = executor_for(executor, jobs, whole * len(seeds_of(seeds)))
    found: list[TuningTrial] = []
    batch = AT_ONCE if search == "optuna" else whole
    while len(found) < whole and (points := proposer.propose(min(batch, whole - len(found)))):
        choices = [settings_of(axes, point) for point in points]
        several = of_choices(
            scenario,
            scheduler,
            choices,
            reconcilers=reconcilers,
            autoscalers=autoscalers,
            autoscaler_processes=autoscaler_processes,
        )
        measures = [measure_named(name)[0] for name in goal.names]
        check_measures(
            [*dict.fromkeys(measures)], (each.request.scenario for each in several), priced
        )
        runs = runs_of(list(planned(several, seeds_of(seeds), priced)), executor, out, watcher)
        each = len(runs) // len(points)
        for place, point in enumerate(points):
            own = runs[place * each : (place + 1) * each]
            trial = trial_of(axes, point, own, goal)
            proposer.hear(point, trial)
            found.append(trial)
    return TuningResult(goal, found, many, search)


def _proposer(search: str, axes: Sequence[Axis], goal: Goal, trials: int, seed: int) -> Proposer:
    if search == "grid":
        return ListedProposer([*grid(axes)])
    if search == "random":
        return ListedProposer(random_points(axes, trials, seed))
    from kubescene.experiments.on_optuna import OptunaProposer

    return OptunaProposer(axes, goal, seed)


def trial_of(
    axes: Sequence[Axis], point: Point, runs: Sequence[MatrixRun], goal: Goal
) -> TuningTrial:
    fine = [run for run in runs if not run.error]
    failed = [run for run in runs if run.error]
    return TuningTrial(
        settings={each.path: str(each).partition("=")[2] for each in settings_of(axes, point)},
        runs=len(fine),
        held=sum(all(c.holds(value_of(run, c.name)) for c in goal.conditions) for run in fine),
        failed=len(failed),
        error=failed[0].error if failed else "",
        values=dict(_estimates(fine, goal)),
    )


def _estimates(runs: Sequence[MatrixRun], goal: Goal) -> Iterator[tuple[str, Estimate]]:
    for name in goal.names:
        values = [value for run in runs if (value := value_of(run, name)) is not None]
        if values and len(values) == len(runs):
            yield name, estimate(values)


def told_settings(settings: Mapping[str, str], flag: str = "--set") -> str:
    """As a command line has them."""
    return " ".join(f"{flag} {path}={value}" for path, value in settings.items())
