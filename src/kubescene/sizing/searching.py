"""The least machines that hold a scenario: by the cluster autoscaler, and by search.

The autoscaler plays first. From its run follows what is needed in sum, and so which mixes are worth
a try. They are tried in the order of their costs: the first that holds is the least there is. If
that takes too many tries, the search begins at the other end: with what an autoscaler left, it
takes machines away for as long as the scenario holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace as replaced

from kubescene.client.verbs import AnyObject
from kubescene.errors import ConfigurationError
from kubescene.experiments.executors import ExecutorName, executor_for
from kubescene.experiments.executors.interface import Executor
from kubescene.node_autoscaling.flags import EXPANDER_NAMES, Flags
from kubescene.results.cost.prices import Prices, read_prices
from kubescene.runs.requests import RunRequest, folder_of, read
from kubescene.scenario.reading.files import load_yaml, read_file
from kubescene.scheduler.configuration.sources import SchedulerSource, scheduler_options
from kubescene.sizing.groups import (
    MOST,
    Costs,
    Mix,
    Objective,
    SizedGroup,
    check_groups,
    groups_in,
)
from kubescene.sizing.mixes import CheapestMixes, Need, Rating, TooManyMixesError
from kubescene.sizing.probes import SizingTry, Tried, tried
from kubescene.sizing.scenarios import (
    SizedScenario,
    is_scenario,
    of_snapshot,
    own_flags,
    sized_scenario,
)
from kubescene.types import JsonObject

TRIES = 60
AT_ONCE = 4
"""So many are tried together, however many are played at a time: what is found does not depend on
it."""
UNTOLD = ("random", "priority")
"""Expanders that are only asked if the scenario does: by chance, or by priorities of its own."""
Groups: TypeAlias = str | Path | Sequence[JsonObject] | None


class SizingResult(Struct, frozen=True, kw_only=True):
    """What was found. Mixes are numbers of machines in the order of ``groups``."""

    groups: Sequence[SizedGroup]
    objective: Objective
    best: Mix | None
    """The least that holds; None if nothing does that was tried."""
    is_proven: bool
    """Whether nothing cheaper holds."""
    bound: Mix | None
    """The least that would satisfy the sums of what is asked for; None if nothing does."""
    needs: Sequence[Need]
    autoscaler: str
    """The expander of the scenario."""
    autoscaled: dict[str, Tried]
    """What the cluster autoscaler came to, by expander."""
    tries: dict[Mix, Tried]
    """Every mix that was played."""
    unknown: Sequence[str] = ()

    @property
    def costs(self) -> Costs:
        return Costs(self.groups, self.objective)


class Search:
    """Tries mixes, each once."""

    def __init__(
        self, scenario: SizedScenario, costs: Costs, executor: Executor, limit: int
    ) -> None:
        self._scenario = scenario
        self._costs = costs
        self._executor = executor
        self._limit = limit
        self.tries: dict[Mix, Tried] = {}
        self.best: Mix | None = None
        self.is_proven = False

    @property
    def left(self) -> int:
        return self._limit - len(self.tries)

    @property
    def rating(self) -> Rating | None:
        return None if self.best is None else self._costs.of(self.best)

    def play(self, requests: Sequence[RunRequest]) -> list[Tried]:
        """Play them; what became of each, in their order."""
        scenario = self._scenario
        jobs = [
            SizingTry(request=each, groups=scenario.groups, first=scenario.first)
            for each in requests
        ]
        done = {each.number: each for each in self._executor.each(tried, jobs)}
        return [
            done[at].value or Tried(error=done[at].error or "nothing came of it")
            for at in range(len(jobs))
        ]

    def holds(self, mixes: Iterable[Mix]) -> list[Mix]:
        """Those of these mixes that hold; the best of them is kept in mind."""
        asked = list(dict.fromkeys(mixes))
        new = [each for each in asked if each not in self.tries]
        played = self.play([self._scenario.with_mix(each) for each in new])
        self.tries |= dict(zip(new, played, strict=True))
        found = [each for each in asked if self.tries[each].holds]
        for each in found:
            if self.rating is None or self._costs.of(each) < self.rating:
                self.best = each
        return found

    def upwards(self, mixes: Iterator[tuple[Rating, Mix]], limit: int) -> None:
        """From the cheapest on, until one holds; it is proven if all cheaper ones were tried."""
        until, at_once = len(self.tries) + limit, 1
        while len(self.tries) < until:
            try:
                batch = [mix for _, mix in islice(mixes, at_once)]
            except TooManyMixesError:
                return
            at_once = AT_ONCE
            if not batch:
                self.is_proven = True
                return
            if self.holds(batch):
                self.is_proven = True
                return

    def downwards(self) -> None:
        """Take machines away, one by one, for as long as it holds; the dearest first."""
        groups = self._scenario.groups
        order = sorted(
            range(len(groups)), key=lambda at: [-vector[at] for vector in self._costs.vectors]
        )
        at = 0
        while self.best is not None and at < len(order) and self.left > 0:
            place, mix = order[at], self.best
            fewer = (*mix[:place], mix[place] - 1, *mix[place + 1 :])
            if mix[place] <= groups[place].least or not self.holds([fewer]):
                at += 1


def size(
    scenario: str | Path | AnyObject,
    *,
    groups: Groups = None,
    objective: Objective | None = None,
    prices: Prices | str | Path | None = None,
    scheduler: SchedulerSource | None = None,
    seed: int | None = None,
    tries: int = TRIES,
    jobs: int | None = None,
    executor: Executor | ExecutorName | None = None,
) -> SizingResult:
    """The least machines, or the least money, that hold a scenario or a snapshot.

    ``scenario`` is a file, an object or a builder, or the file of a snapshot. ``groups`` are
    NodeGroups, or a file of them, in place of all nodes that it has; without them its own
    NodeGroups are sized. What is least is their ``objective``: ``cost`` if all have prices, else
    ``nodes``. What is wrong with the input raises `KubesceneError`.
    """
    if tries < 1:
        raise ConfigurationError(f"--tries {tries}: at least one has to be played")
    priced = read_prices(prices) if isinstance(prices, str | Path) else prices
    listed = groups_in(Path(groups)) if isinstance(groups, str | Path) else groups
    with TemporaryDirectory(prefix="kubescene-size-") as folder:
        request, unknown = _request(scenario, Path(folder))
        options = request.scheduler if scheduler is None else scheduler_options(scheduler)
        request = replace(request, scheduler=options, seed=seed)
        sized = sized_scenario(request, listed, priced)
        chosen = check_groups(sized.groups, objective)
        costs = Costs(sized.groups, chosen)
        search = Search(sized, costs, executor_for(executor, jobs, tries), tries)
        found = _searched(sized, search, costs, chosen)
    return replaced(found, unknown=[*unknown, *_unbounded(sized.groups)])


def _request(scenario: str | Path | AnyObject, folder: Path) -> tuple[RunRequest, list[str]]:
    if isinstance(scenario, str | Path) and not _is_scenario_file(Path(scenario)):
        return of_snapshot(Path(scenario), folder)
    source = Path(scenario) if isinstance(scenario, str | Path) else None
    return RunRequest(scenario=read(scenario), folder=folder_of(scenario), source=source), []


def _is_scenario_file(path: Path) -> bool:
    if path.is_dir() or path.suffix == ".gz":
        return False
    return is_scenario(load_yaml(read_file(path), str(path)))


def _searched(
    sized: SizedScenario, search: Search, costs: Costs, objective: Objective
) -> SizingResult:
    own = str(own_flags(sized.request.scenario).get("expander") or Flags().expander)
    autoscaled = _autoscaled(sized, search, own)
    reference = next((each for each in autoscaled.values() if each.holds), autoscaled[own])
    bounds = [(each.least, each.most) for each in sized.groups]
    mixes = CheapestMixes(bounds, costs.vectors, reference.needs)
    bound = next((mix for _, mix in safely(mixes.within(None))), None)
    if bound is not None:
        search.upwards(mixes.within(None), max(1, search.left // 2))
    if bound is not None and not search.is_proven:
        ends = {each.mix for each in autoscaled.values() if each.holds}
        if any(search.holds([each]) for each in sorted(ends, key=costs.of)):
            search.downwards()
        if search.left > 0:
            cheaper = mixes.within(search.rating)
            search.upwards((each for each in cheaper if each[1] not in search.tries), search.left)
    proven = reference.holds and (search.is_proven or bound is None)
    if search.best is not None:
        # What was needed where nobody waits is what any other mix has to give, too.
        proven = search.is_proven and _same(search.tries[search.best].needs, reference.needs)
        search.holds(one_less(search.best, sized.groups))
    return SizingResult(
        groups=sized.groups,
        objective=objective,
        best=search.best,
        is_proven=proven,
        bound=bound,
        needs=reference.needs,
        autoscaler=own,
        autoscaled=autoscaled,
        tries=search.tries,
    )


def _autoscaled(sized: SizedScenario, search: Search, own: str) -> dict[str, Tried]:
    """What the cluster autoscaler comes to with the scenario's expander, and with others."""
    is_priced = all(each.price is not None for each in sized.groups)
    others = (each for each in EXPANDER_NAMES if each not in UNTOLD)
    names = dict.fromkeys([own, *(each for each in others if is_priced or each != "price")])
    played = search.play([sized.with_autoscaler(each) for each in names])
    found = dict(zip(names, played, strict=True))
    if found[own].error:
        raise ConfigurationError(
            f"the scenario fails with these groups: {found[own].error} (operations on nodes that "
            "the groups replace have to be left out)"
        )
    return found


def safely(mixes: Iterator[tuple[Rating, Mix]]) -> Iterator[tuple[Rating, Mix]]:
    """Those that come before there are too many."""
    with suppress(TooManyMixesError):
        yield from mixes


def one_less(mix: Mix, groups: Sequence[SizedGroup]) -> Iterator[Mix]:
    """The mixes without one machine of a group that may do without."""
    for at, group in enumerate(groups):
        if mix[at] > group.least:
            yield (*mix[:at], mix[at] - 1, *mix[at + 1 :])


def _same(one: Sequence[Need], other: Sequence[Need]) -> bool:
    return {each[:2] for each in one} == {each[:2] for each in other}


def _unbounded(groups: Sequence[SizedGroup]) -> list[str]:
    names = [each.name for each in groups if "max" not in each.object["spec"]]
    if not names:
        return []
    return [f"how many machines there can be of {', '.join(names)} (no max): {MOST:,} were allowed"]
