"""How many nodes can be removed, and why not one more?

Nodes go one after the other, the least asked of first: each is drained as kubectl does it, and
deleted; if a pod that had a place waits then, or the drain is refused, the node stays. All go in
one copy of the world; only after a failure it is made anew and those that went go again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.cluster import ClusterWorld
from kubescene.results.cost.prices import Prices
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.costs import an_hour, hourly, monthly
from kubescene.what_if.draining import DrainFlags, blockers, drained
from kubescene.what_if.selecting import is_control_plane, pool_of, selected
from kubescene.what_if.worlds import (
    NodeLoad,
    counted,
    node_uses,
    percent,
    total_share,
    waiting_pods,
    why_waiting,
)

CHECKPOINT = 16
"""After so many nodes a copy is kept, from which a failure goes on."""


class Stays(NamedTuple):
    node: str
    why: str


class Shrinking:
    """One attempt after the other, in copies of a world."""

    def __init__(self, world: ClusterWorld, flags: DrainFlags) -> None:
        self._flags = flags
        self._good = world.fork()
        self._since: list[str] = []
        """Nodes that went since that copy was made."""
        self.world = world.fork()
        self._waited = frozenset(waiting_pods(world))
        self.removed: list[str] = []
        self.evicted = 0

    def remove(self, name: str) -> str:
        """Why a node cannot go; empty if it went."""
        why, evicted = self._try(self.world, name)
        if why:
            self.world = self._good.fork()
            for each in self._since:
                self._try(self.world, each)
            return why
        self.removed.append(name)
        self._since.append(name)
        self.evicted += evicted
        if len(self._since) == CHECKPOINT:
            self._good, self._since = self.world.fork(), []
        return ""

    def _try(self, world: ClusterWorld, name: str) -> tuple[str, int]:
        found = blockers(world, [name], self._flags)
        if found:
            more = f" and {len(found) - 1} more pods" if len(found) > 1 else ""
            return f"{found[0].pod}{more}: {found[0].why}", 0
        done = drained(world, [name], self._flags)
        if done.undrained:
            return next(each.message for each in done.told if each.subject == name), 0
        world.delete("node", name)
        world.settle()
        for pod, obj in waiting_pods(world).items():
            if pod not in self._waited:
                return f"{pod} would wait: {why_waiting(obj)}", 0
        return "", done.evicted


class Shrunk(NamedTuple):
    """How far a world could be shrunk."""

    order: list[NodeLoad]
    """The nodes that were to go if they can, in the order in which they were tried."""
    gone: list[JsonObject]
    stays: list[Stays]
    limit: str
    """Why the others were not tried."""
    before: Mapping[str, NodeLoad]
    after: Mapping[str, NodeLoad]
    evicted: int

    @property
    def why(self) -> str:
        """Why not one more can go; empty if all went."""
        return self.stays[0].why if self.stays else self.limit


def shrunk(
    world: ClusterWorld, terms: Sequence[str], *, keep: float, flags: DrainFlags, tries: int
) -> Shrunk:
    """Remove one node after the other, in copies of the world."""
    by_name = {node["metadata"]["name"]: node for node in selected(world.list("nodes"), terms)}
    uses = node_uses(world)
    order = sorted(
        (uses[name] for name, node in by_name.items() if not is_control_plane(node)),
        key=lambda use: (use.fullest, use.name),
    )
    shrinking = Shrinking(world, flags)
    stays, limit = _one_by_one(shrinking, order, uses, keep, tries)
    gone = [by_name[name] for name in shrinking.removed]
    after = node_uses(shrinking.world)
    return Shrunk(order, gone, stays, limit, uses, after, shrinking.evicted)


def shrink(
    world: ClusterWorld,
    terms: Sequence[str],
    unknown: Sequence[str],
    *,
    keep: float,
    flags: DrainFlags,
    tries: int,
    prices: Prices | None,
) -> Answer:
    """The answer; the world is not changed."""
    it = shrunk(world, terms, keep=keep, flags=flags, tries=tries)
    saved, saving = ({}, "") if prices is None else _saved(it.gone, prices)
    end = f" The next one cannot go: {it.why}" if it.why else ""
    return Answer(
        question=" ".join(["shrink", *terms]),
        unknown=[
            *unknown,
            "nodes go in one order, the least asked of first: another may free more",
        ],
        sentence=f"{len(it.gone)} of {counted(len(it.order), 'node')} can be removed{saving}; "
        f"{counted(it.evicted, 'pod')} move.{end}",
        tables=[*_tables(it.gone, it.stays, it.before, it.after)],
        measures={
            "nodes": len(it.order),
            "removable": len(it.gone),
            "pending": 0,
            "evicted": it.evicted,
            **saved,
        },
        closer=[f"kubescene what-if SNAPSHOT drain node={it.stays[0].node}"] if it.stays else [],
    )


def _one_by_one(
    shrinking: Shrinking,
    order: Sequence[NodeLoad],
    uses: Mapping[str, NodeLoad],
    keep: float,
    tries: int,
) -> tuple[list[Stays], str]:
    """Remove nodes in their order: which had to stay, and why the others were not tried."""
    stays: list[Stays] = []
    left = dict(uses)
    for use in order:
        if len(stays) == tries:
            return stays, f"{tries} nodes could not go: --tries asks for more"
        kept = [each for name, each in left.items() if name != use.name]
        if (over := too_full(kept, uses.values(), keep)) is not None:
            return stays, over
        if why := shrinking.remove(use.name):
            stays.append(Stays(use.name, why))
        else:
            del left[use.name]
    return stays, ""


def _tables(
    gone: Sequence[JsonObject],
    stays: Sequence[Stays],
    before: Mapping[str, NodeLoad],
    after: Mapping[str, NodeLoad],
) -> Iterator[AnswerTable]:
    rows: list[tuple[Cell, ...]] = []
    for node in gone:
        use = before[node["metadata"]["name"]]
        rows.append((use.name, pool_of(node), percent(use.share(CPU)), percent(use.share(MEMORY))))
    yield AnswerTable("Nodes that can go", ("node", "pool", "cpu", "memory"), rows)
    if stays:
        yield AnswerTable("Nodes that stay", ("node", "why"), [tuple(each) for each in stays])
    shares: list[tuple[Cell, ...]] = [
        (resource, *(percent(total_share(uses.values(), resource)) for uses in (before, after)))
        for resource in (CPU, MEMORY)
    ]
    yield AnswerTable("Asked for of what is offered", ("resource", "now", "then"), shares)


def _saved(gone: Sequence[JsonObject], prices: Prices) -> tuple[dict[str, float], str]:
    """As a measure and in words."""
    saved = hourly(prices, gone)
    measures = {"saved_an_hour": an_hour(saved)}
    return measures, f", which saves {monthly(saved)} {prices.currency} a month"


def too_full(left: Iterable[NodeLoad], whole: Iterable[NodeLoad], keep: float) -> str | None:
    """Why no other node may go, if so much has to stay free; what is asked for stays the same."""
    for resource in (CPU, MEMORY):
        asked = sum(each.asked.get(resource, 0) for each in whole)
        offered = sum(each.offered.get(resource, 0) for each in left)
        if keep and asked > offered * (1 - keep):
            return f"then less than {percent(keep)} of {resource} would stay free"
    return None
