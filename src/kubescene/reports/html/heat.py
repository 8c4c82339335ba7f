"""The heat map: how much is asked of what nodes offer, at most in every major step and at its end.

A step of the ledger names the nodes that changed in it, so one pass over the steps keeps a level
for each node and writes it down column by column.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.reports.amounts import natural, percent, told_amount
from kubescene.reports.html.contents import ABSENT, LEVELS_PER_PERCENT, MOST, Heat, MarkView
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import Peak, StepEntry, StepNodeUse, Totals

CELLS = 1_500_000
"""So many are kept, in bytes; of a longer run, not every step has its column."""
COLUMNS = 400
FEWEST_COLUMNS = 8
RESOURCES = 5


def heat_of(ledger: Ledger) -> Heat:
    """All nodes that ever were, by name."""
    names = sorted({node.name for node in ledger.nodes}, key=natural)
    resources = resources_of(ledger)
    columns = columns_of(ledger.steps, cells=len(names) * len(resources))
    levels = [Levels(resource, names, len(columns)) for resource in resources]
    marks = Marks(names)
    for column, steps in enumerate(binned(ledger.steps, columns)):
        for step in steps:
            marks.enter(step, column)
            for each in levels:
                each.enter(step)
        for each in levels:
            each.close(column)
    differ = any(each.peaks != each.ends for each in levels)
    return Heat(
        columns=columns,
        resources=resources,
        nodes=tuple(names),
        levels=tuple(bytes(each.peaks) for each in levels),
        ends=tuple(bytes(each.ends) for each in levels) if differ else (),
        allocatable=tuple(offered(ledger, resource, names) for resource in resources),
        whole=tuple(tuple(each.whole) for each in levels),
        whole_ends=tuple(tuple(each.whole_ends) for each in levels) if differ else (),
        marks=tuple(marks.found(len(columns))),
    )


def binned(steps: Sequence[StepEntry], columns: Sequence[int]) -> Iterator[list[StepEntry]]:
    """The steps that belong to each column: those since the column before."""
    place = 0
    for last in columns:
        inside = []
        while place < len(steps) and steps[place].major <= last:
            inside.append(steps[place])
            place += 1
        yield inside


class Levels:
    """The cells of one resource, row by row."""

    def __init__(self, resource: str, names: Sequence[str], columns: int) -> None:
        self.peaks = bytearray(len(names) * columns)
        self.ends = bytearray(len(names) * columns)
        self.whole: list[int] = []
        self.whole_ends: list[int] = []
        self._resource, self._columns = resource, columns
        self._places = {name: place for place, name in enumerate(names)}
        self._now = bytearray([ABSENT]) * len(names)
        self._highest: dict[int, int] = {}
        """In the current column, where a node was fuller than at its end."""
        self._whole = NONE_OF_IT
        self._last = Totals()

    def enter(self, step: StepEntry) -> None:
        """What a step changed."""
        resource = self._resource
        for name, use in step.nodes.items():
            place = self._places[name]
            if self._now[place] != ABSENT and self._in_column:
                self._reach(place, self._now[place])
            self._now[place] = ABSENT if use is None else level_of(use, resource)
        for name, peak in step.peaks.items():
            self._reach(self._places[name], level_of(peak, resource))
        self._whole = max(self._whole, tenths(step.peak, resource))
        self._last = step.totals
        self._in_column = True

    _in_column = False

    def _reach(self, place: int, level: int) -> None:
        self._highest[place] = max(level, self._highest.get(place, 0))

    def close(self, column: int) -> None:
        """All steps of a column were entered."""
        at = slice(column, None, self._columns)
        self.ends[at] = self._now
        highest = bytearray(self._now)
        for place, level in self._highest.items():
            now = highest[place]
            highest[place] = level if now == ABSENT else max(level, now)
        self.peaks[at] = highest
        self.whole.append(self._whole)
        self.whole_ends.append(tenths(self._last, self._resource))
        self._highest, self._whole, self._in_column = {}, NONE_OF_IT, False


class Marks:
    """What keeps pods away from nodes, as spans of columns."""

    def __init__(self, names: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._open: dict[int, tuple[int, str]] = {}
        self._found: list[MarkView] = []

    def enter(self, step: StepEntry, column: int) -> None:
        for name, use in step.nodes.items():
            place, text = self._places[name], use.marks if use is not None else ""
            first, before = self._open.get(place, (column, ""))
            if text == before:
                continue
            if before and first < column:
                self._found.append(MarkView(place, first, column - 1, before))
            self._open.pop(place, None)
            if text:
                self._open[place] = column, text

    def found(self, columns: int) -> list[MarkView]:
        """All of them, by node."""
        last = (MarkView(place, at, columns - 1, text) for place, (at, text) in self._open.items())
        return sorted([*self._found, *last], key=lambda mark: (mark.node, mark.first))


NONE_OF_IT = -1
"""The share of a cluster that offers nothing."""


def tenths(use: Peak | Totals, resource: str) -> int:
    """Tenths of a percent of what the cluster offers."""
    whole = use.allocatable.get(resource, 0)
    return round(1000 * use.requested.get(resource, 0) / whole) if whole else NONE_OF_IT


def resources_of(ledger: Ledger) -> tuple[str, ...]:
    """Those that are shown: the usual ones, then what else was asked for."""
    if not ledger.nodes:
        return ()
    asked = {name for step in ledger.steps for name, sum_ in step.peak.requested.items() if sum_}
    offered = {name for node in ledger.nodes for name in node.allocatable if "/" in name}
    others = sorted((asked | offered) - {CPU, MEMORY, PODS})
    return (CPU, MEMORY, PODS, *others)[:RESOURCES]


def columns_of(steps: Sequence[StepEntry], *, cells: int) -> tuple[int, ...]:
    """The major steps that have a column; every so many, and always the last."""
    majors = sorted({step.major for step in steps})
    room = min(COLUMNS, max(FEWEST_COLUMNS, CELLS // max(cells, 1)))
    every = -(-len(majors) // room) if majors else 1
    return tuple(majors[::-1][::every][::-1])


def level_of(use: StepNodeUse, resource: str) -> int:
    return level_of_amounts(use.requested.get(resource, 0), use.allocatable.get(resource, 0))


@lru_cache(maxsize=4096)  # nodes of one kind pass through the same few amounts
def level_of_amounts(asked: int, offered: int) -> int:
    return level(percent(asked, offered))


def level(share: float) -> int:
    """Rounded, but what is more than all is never shown as all."""
    full = 100 * LEVELS_PER_PERCENT
    rounded = round(share * LEVELS_PER_PERCENT)
    return min(full + 1 if share > 100 and rounded == full else rounded, MOST)


def offered(ledger: Ledger, resource: str, names: Sequence[str]) -> tuple[str, ...]:
    """What each node offers at its end; one word for all if it is the same everywhere."""
    known = {node.name: node.use.allocatable.get(resource, 0) for node in ledger.nodes}
    if len(set(known.values())) == 1:
        names = names[:1]
    return tuple(told_amount(resource, known[name]) for name in names)
