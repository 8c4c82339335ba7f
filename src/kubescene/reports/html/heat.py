"""The heat map: what nodes offer and what is asked of them at the end of every major step.

A step of the ledger names the nodes that changed in it, so one pass over the steps keeps a level
for each node and writes it down column by column.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.reports.html.amounts import natural, percent, told_amount
from kubescene.reports.html.contents import ABSENT, LEVELS_PER_PERCENT, MOST, Heat
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeUse, StepEntry, Totals

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
    shown = frozenset(columns)
    places = {name: place for place, name in enumerate(names)}
    current = [bytearray([ABSENT]) * len(names) for _ in resources]
    levels = [bytearray(len(names) * len(columns)) for _ in resources]
    whole: list[list[int]] = [[] for _ in resources]
    column = 0
    for step in ledger.steps:
        note(step, resources, places, current)
        if step.major in shown:
            for number, resource in enumerate(resources):
                levels[number][column :: len(columns)] = current[number]
                whole[number].append(level_of_all(step.totals, resource))
            column += 1
    return Heat(
        columns=columns,
        resources=resources,
        nodes=tuple(names),
        levels=tuple(map(bytes, levels)),
        allocatable=tuple(offered(ledger, resource, names) for resource in resources),
        whole=tuple(map(tuple, whole)),
    )


def resources_of(ledger: Ledger) -> tuple[str, ...]:
    """Those that are shown: the usual ones, then what else was asked for."""
    if not ledger.nodes:
        return ()
    asked = {name for step in ledger.steps for name, sum_ in step.totals.requested.items() if sum_}
    others = sorted(asked - {CPU, MEMORY, PODS})
    return (CPU, MEMORY, PODS, *others)[:RESOURCES]


def columns_of(steps: Sequence[StepEntry], *, cells: int) -> tuple[int, ...]:
    """The major steps that have a column; every so many, and always the last."""
    majors = sorted({step.major for step in steps})
    room = min(COLUMNS, max(FEWEST_COLUMNS, CELLS // max(cells, 1)))
    every = -(-len(majors) // room) if majors else 1
    return tuple(majors[::-1][::every][::-1])


def note(
    step: StepEntry,
    resources: Iterable[str],
    places: dict[str, int],
    current: list[bytearray],
) -> None:
    """What a step changed."""
    for number, resource in enumerate(resources):
        levels = current[number]
        for name, use in step.nodes.items():
            levels[places[name]] = ABSENT if use is None else level_of(use, resource)


def level_of(use: NodeUse | Totals, resource: str) -> int:
    return level_of_amounts(use.requested.get(resource, 0), use.allocatable.get(resource, 0))


@lru_cache(maxsize=4096)  # nodes of one kind pass through the same few amounts
def level_of_amounts(asked: int, offered: int) -> int:
    return level(percent(asked, offered))


def level_of_all(totals: Totals, resource: str) -> int:
    return level_of(totals, resource) if totals.nodes else ABSENT


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
