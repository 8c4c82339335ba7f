"""What if a descheduler evicted pods: who moves, where to, and what is gained?

Pods are chosen as the policies of the descheduler choose them (`descheduling`), evicted as it does,
through their budgets, made again by their controllers and placed by the scheduler, one after the
other: so what a dry run cannot tell is seen, where they come to be. A cycle follows the next every
five minutes, until nothing is chosen, a cycle has gained nothing, or all moves are made.
"""

from collections.abc import Container, Iterator, Sequence
from math import sqrt
from typing import NamedTuple

from kubescene.client import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.durations import parse_duration
from kubescene.errors import ApiError, ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.costs import an_hour, hourly, monthly
from kubescene.what_if.descheduling import (
    ChosenPod,
    Policy,
    Sight,
    Thresholds,
    by_node,
    is_above,
    policy_of,
)
from kubescene.what_if.draining import ACTOR
from kubescene.what_if.selecting import is_control_plane, selected
from kubescene.what_if.worlds import (
    MADE_AGAIN,
    PODS,
    SHOWN,
    NodeLoad,
    NodeLoads,
    TopmostOwners,
    controller_of,
    counted,
    is_daemon,
    is_live,
    key_of,
    node_of,
    percent,
    pods_in,
    waiting_pods,
    why_waiting,
)

CYCLE = parse_duration("5m")
DEFAULT_POLICY = "LowNodeUtilization"


class PodMove(NamedTuple):
    """A pod that went, and where its successor came to be; ``to`` is empty if it waits."""

    pod: str
    node: str
    to: str
    why: str
    scatter: float
    """How unlike the loads of nodes are afterwards."""


class Spread(NamedTuple):
    """How full nodes are."""

    scatter: float
    """The standard deviation of their fullest resource."""
    fullest: float
    over: int
    """Nodes that are overused."""
    empty: list[str]
    """Nodes on which nothing but DaemonSets runs."""
    waiting: int


class Balancing:
    """Cycles of a descheduler, in a world that may be changed."""

    def __init__(
        self,
        world: ClusterWorld,
        names: Sequence[str],
        policies: Sequence[Policy],
        thresholds: Thresholds,
        most: int,
    ) -> None:
        self.world = world
        self.moves: list[PodMove] = []
        self.refused: dict[str, str] = {}
        """Pods that could not be evicted, and why."""
        self.why = ""
        """Why it ended."""
        self.lost: list[str] = []
        """Pods that went and that nobody makes again."""
        self._owners = TopmostOwners(world)
        self._loads = NodeLoads(world)
        self._names = dict.fromkeys(names)
        self._policies = policies
        self._thresholds = thresholds
        self._most = most

    def play(self) -> None:
        while True:
            before, made = self.spread(), len(self.moves)
            self._cycle()
            if len(self.moves) == self._most:
                self.why = f"no more than {self._most} moves were asked for"
            elif len(self.moves) == made:
                self.why = "nothing more would be evicted"
            elif not is_better(self.spread(), before):
                self.why = "another cycle would gain nothing"
            else:
                self.world.advance_until(self.world.clock.now() + CYCLE)
                continue
            return

    def spread(self) -> Spread:
        loads = self._meant_loads()
        used = {
            node_of(pod)
            for pod in pods_in(self.world)
            if node_of(pod) and is_live(pod) and not is_daemon(pod)
        }
        return Spread(
            scatter_of(loads),
            max((each.fullest for each in loads), default=0.0),
            sum(is_above(each, self._thresholds.high) for each in loads),
            [name for name in self._names if name not in used],
            len(waiting_pods(self.world)),
        )

    def _cycle(self) -> None:
        for policy in self._policies:
            for choice in list(policy(self._sight())):
                if len(self.moves) == self._most:
                    return
                self._evict(choice)

    def _sight(self) -> Sight:
        world = self.world
        nodes = {node["metadata"]["name"]: node for node in world.list("nodes")}
        meant = {name: nodes[name] for name in self._names}
        pods = by_node([*pods_in(world)])
        loads = {load.name: load for load in self._meant_loads()}
        on = {name: pods.get(name, []) for name in meant}
        return Sight(meant, loads, on, self._thresholds)

    def _evict(self, choice: ChosenPod) -> None:
        pod, world = choice.pod, self.world
        there = {record.uid for record in world.store.list(PODS)}
        try:
            world.client(ACTOR).evict(ObjectRef.to(pod))
        except ApiError as error:
            self.refused.setdefault(key_of(pod), error.message)
            return
        world.settle()
        if self._owners.of(pod).kind not in MADE_AGAIN:
            self.lost.append(key_of(pod))
        to = self._successor_of(pod, there)
        move = PodMove(key_of(pod), node_of(pod), to, choice.why, scatter_of(self._meant_loads()))
        self.moves.append(move)

    def _successor_of(self, pod: JsonObject, there: Container[str]) -> str:
        """The node of the pod that was made in its place; empty if it waits, or nobody made one."""
        owner, store = controller_of(pod), self.world.store
        for record in store.list(PODS):
            if owner is not None and record.uid not in there and record.node:
                other = controller_of(store.decoded(record))
                if other is not None and other["uid"] == owner["uid"]:
                    return record.node
        return ""

    def _meant_loads(self) -> list[NodeLoad]:
        return [load for name, load in self._loads.look().items() if name in self._names]


def is_better(now: Spread, before: Spread) -> bool:
    """Whether a cycle gained anything by any measure."""
    return (
        now.scatter < before.scatter
        or now.over < before.over
        or len(now.empty) > len(before.empty)
        or now.fullest < before.fullest
    )


def scatter_of(loads: Sequence[NodeLoad]) -> float:
    shares = [each.fullest for each in loads]
    if not shares:
        return 0.0
    mean = sum(shares) / len(shares)
    return sqrt(sum((each - mean) ** 2 for each in shares) / len(shares))


def balance(
    world: ClusterWorld,
    terms: Sequence[str],
    unknown: Sequence[str],
    *,
    policies: Sequence[str],
    thresholds: Thresholds,
    most: int,
    prices: Prices | None,
) -> Answer:
    """The answer, in a world that may be changed."""
    if not 0 <= thresholds.low <= thresholds.high <= 1:
        raise ConfigurationError("--thresholds: low and high are shares, low not above high: 20,50")
    used = [policy_of(each) for each in policies or (DEFAULT_POLICY,)]
    nodes = [each for each in selected(world.list("nodes"), terms) if not is_control_plane(each)]
    waited = waiting_pods(world)
    names = [node["metadata"]["name"] for node in nodes]
    playing = Balancing(world, names, used, thresholds, most)
    before = playing.spread()
    playing.play()
    after = playing.spread()
    waiting = {k: pod for k, pod in waiting_pods(world).items() if k not in waited}
    freed = [name for name in after.empty if name not in before.empty]
    of_freed = [node for node in nodes if node["metadata"]["name"] in freed]
    saved = None if prices is None else hourly(prices, of_freed)
    money = ""
    if prices is not None and saved is not None:
        money = f" Without the nodes that become empty: {monthly(saved)} {prices.currency} a month."
    elsewhere = sum(bool(each.to) and each.to != each.node for each in playing.moves)
    returned = sum(each.to == each.node for each in playing.moves)
    what = " and ".join(policies or (DEFAULT_POLICY,))
    return Answer(
        question=" ".join(["balance", *terms]),
        unknown=[*unknown, "usage: a descheduler goes by requests here, as it does by default"],
        sentence=(
            f"{what} would evict {counted(len(playing.moves), 'pod')}: {elsewhere} of them "
            f"elsewhere afterwards, {returned} where they were, {len(waiting)} waiting. The "
            f"scatter of nodes goes from {before.scatter:.1%} to {after.scatter:.1%}, "
            f"{counted(len(freed), 'node')} more without pods. It ends since {playing.why}.{money}"
        ),
        tables=[*_tables(playing, before, after, waiting)],
        measures={
            "nodes": len(nodes),
            "moves": len(playing.moves),
            "moved": elsewhere,
            "returned": returned,
            "refused": len(playing.refused),
            "never_again": len(playing.lost),
            "freed": len(freed),
            "scatter_before": round(before.scatter, 6),
            "scatter_after": round(after.scatter, 6),
            "pending": len(waiting),
            **({} if saved is None else {"saved_an_hour": an_hour(saved)}),
        },
        closer=_closer(playing, freed),
    )


def _tables(
    playing: Balancing,
    before: Spread,
    after: Spread,
    waiting: dict[str, JsonObject],
) -> Iterator[AnswerTable]:
    rows: list[tuple[Cell, ...]] = [
        (
            when,
            f"{each.scatter:.1%}",
            percent(each.fullest),
            each.over,
            len(each.empty),
            each.waiting,
        )
        for when, each in (("before", before), ("after", after))
    ]
    names = "when", "scatter", "fullest", "overused nodes", "empty nodes", "waiting"
    yield AnswerTable("Nodes", names, rows)
    if playing.moves:
        lines: list[tuple[Cell, ...]] = [
            (each.pod, each.node, each.to or "waits", f"{each.scatter:.1%}", each.why)
            for each in playing.moves[:SHOWN]
        ]
        columns = "pod", "from", "to", "scatter then", "why"
        yield AnswerTable("Moves, one after the other", columns, lines)
    if playing.refused:
        rows = [*sorted(playing.refused.items())[:SHOWN]]
        yield AnswerTable("Pods that may not go", ("pod", "why"), rows)
    if playing.lost:
        rows = [(each,) for each in playing.lost[:SHOWN]]
        yield AnswerTable("Pods that nobody makes again", ("pod",), rows)
    if waiting:
        rows = [(name, why_waiting(pod)) for name, pod in sorted(waiting.items())[:SHOWN]]
        yield AnswerTable("Pods that wait", ("pod", "why"), rows)


def _closer(playing: Balancing, freed: Sequence[str]) -> list[str]:
    told = []
    if any(each.to == each.node for each in playing.moves):
        told.append(
            "pods come back where the scheduler prefers it: --scheduler-config says what it prefers"
        )
    if freed:
        told.append("kubescene what-if SNAPSHOT shrink says whether empty nodes can go")
    return told or ["kubescene what-if SNAPSHOT schedule places all pods anew"]
