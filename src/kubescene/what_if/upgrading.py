"""What if nodes are replaced, one after the other, as an upgrade of their pool does it?

With surge the new machine comes first: when it is ready the old one is drained and goes. Without,
the old one is drained and goes, and the new one takes its place. So many are on their way at once
as ``surge`` and ``unavailable`` say. A drain evicts, whatever keeps the pods, and asks budgets
again every five seconds; what is left when its time is over is deleted against them.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from fractions import Fraction
from typing import NamedTuple

from kubescene.api.kinds import POD
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.durations import SECOND, format_duration, parse_duration
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.scenario.operations.drains import Drain
from kubescene.scenario.operations.undertakings import OperationContext, State
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.costs import NodeCosts, costs_of, rounded
from kubescene.what_if.draining import ACTOR, DrainBudgets, arithmetic
from kubescene.what_if.losing import LossTally
from kubescene.what_if.selecting import is_control_plane, pool_of, selected
from kubescene.what_if.worlds import (
    MADE_AGAIN,
    SHOWN,
    ReadyCounts,
    TopmostOwner,
    TopmostOwners,
    counted,
    instants,
    is_daemon,
    is_live,
    key_of,
    node_of,
    pods_in,
    twin_of,
    waiting_pods,
    why_waiting,
)

AFTERWARDS = parse_duration("10m")
"""So long is looked on after the last node."""


class UpgradeFlags(NamedTuple):
    """``boot`` is from the order of a machine until its node is ready."""

    surge: int = 1
    unavailable: int = 0
    boot: str = "3m"
    timeout: str = "1h"

    def check(self) -> "UpgradeFlags":
        """Raises `ConfigurationError` for what would never end or makes no sense."""
        if self.surge < 0 or self.unavailable < 0 or not self.surge + self.unavailable:
            raise ConfigurationError(
                f"with --surge {self.surge} and --unavailable {self.unavailable} no node could "
                "ever be replaced: one of them must be above 0"
            )
        for option, text, least in (("--boot", self.boot, 0), ("--timeout", self.timeout, 1)):
            try:
                length = parse_duration(text)
            except ValueError as error:
                raise ConfigurationError(f"{option}: {error}") from error
            if length < least:
                raise ConfigurationError(f"{option} must be longer, such as 3m")
        return self


class UpgradePhase(Enum):
    BOOTING = auto()
    DRAINING = auto()
    DONE = auto()


class Wait(NamedTuple):
    """A pod that a budget did not let go at once."""

    pod: str
    node: str
    budget: str


class NodeReplacement:
    """One node on its way out, and the one that takes its place."""

    def __init__(self, upgrade: "Upgrade", node: JsonObject, *, is_surge: bool) -> None:
        self._upgrade = upgrade
        self._node = node
        self.name: str = node["metadata"]["name"]
        self.is_surge = is_surge
        self.begun = self.ended = upgrade.now
        self.due: int | None = None
        self.evicted = 0
        self.waited = 0
        """How long the drain took."""
        self.forced: list[str] = []
        """Pods that were deleted when the time of the drain was over."""
        self.overlap = 0
        """How long both machines were paid for."""
        self._drain: Drain | None = None
        self._drained_from = 0
        if is_surge:
            self._boot()
        else:
            self._begin_to_drain()

    def go_on(self) -> None:
        """Do what can be done now."""
        if (
            self.phase is UpgradePhase.BOOTING
            and self.due is not None
            and self.due <= self._upgrade.now
        ):
            self._upgrade.make(self._node)
            if self.is_surge:
                self._begin_to_drain()
            else:
                self._end()
        elif self.phase is UpgradePhase.DRAINING and self._drain is not None:
            self._drain.go_on()
            self.due = self._drain.due
            if self._drain.is_over:
                self._left()

    def _boot(self) -> None:
        self.phase = UpgradePhase.BOOTING
        self.due = self._upgrade.now + self._upgrade.boot

    def _begin_to_drain(self) -> None:
        self.phase = UpgradePhase.DRAINING
        self._drained_from = self._upgrade.now
        self._drain = self._upgrade.drain(self.name, against_budgets=False)
        self.due = self._upgrade.now

    def _left(self) -> None:
        """The drain is over: go on by force if it was not let, else give the node back."""
        drain = self._drain
        assert drain is not None
        self.evicted, drain.evicted = self.evicted + drain.evicted, 0
        remaining, now = self._upgrade.staying_on(self.name), self._upgrade.now
        if remaining and not self.forced:
            limit = self._drained_from + self._upgrade.timeout
            if now < limit:
                self.due = limit  # what was refused for good does not end the wait
                return
            self.forced = [key_of(pod) for pod in remaining]
            self._drain = self._upgrade.drain(self.name, against_budgets=True)
            self.due = now
            return
        self.waited = now - self._drained_from
        self._upgrade.world.delete("node", self.name)
        if self.is_surge:
            self.overlap = now - self.begun
            self._end()
        else:
            self._boot()

    def _end(self) -> None:
        self.phase, self.due, self.ended = UpgradePhase.DONE, None, self._upgrade.now


class Upgrade:
    """All replacements, in a world that may be changed; `play` lets time pass until the last."""

    def __init__(
        self, world: ClusterWorld, nodes: Sequence[JsonObject], flags: UpgradeFlags
    ) -> None:
        self.world = world
        self.boot = parse_duration(flags.boot)
        self.timeout = parse_duration(flags.timeout)
        self.done: list[NodeReplacement] = []
        self.is_going_on = True
        self.waits: dict[str, Wait] = {}
        self._flags = flags
        self._pending = deque(nodes)
        self._active: list[NodeReplacement] = []
        self._names = {node["metadata"]["name"] for node in world.list("nodes")}
        self._budgets = DrainBudgets(world)

    @property
    def now(self) -> int:
        return self.world.clock.now()

    def play(self) -> Iterator[int]:
        """Yields at every instant at which something happened, at rest, until all are replaced."""
        self.world.settle()
        while True:
            self._turn()
            yield self.now
            if not self._active and not self._pending:
                return
            due = [each.due for each in self._active if each.due is not None]
            if (event := self.world.event_queue.peek()) is not None:
                due.append(event)
            self.world.advance_until(max(min(due), self.now))

    def _turn(self) -> None:
        """Until nothing more can be done at this instant."""
        while True:
            revision, pending, phases = self.world.revision, len(self._pending), self._phases()
            for each in self._active:
                each.go_on()
            self.world.settle()
            self.done += [each for each in self._active if each.phase is UpgradePhase.DONE]
            self._active = [each for each in self._active if each.phase is not UpgradePhase.DONE]
            self._begin()
            before = revision, pending, phases
            if (self.world.revision, len(self._pending), self._phases()) == before:
                return

    def _phases(self) -> list[UpgradePhase]:
        return [each.phase for each in self._active]

    def _begin(self) -> None:
        for is_surge, most in ((True, self._flags.surge), (False, self._flags.unavailable)):
            free = most - sum(each.is_surge is is_surge for each in self._active)
            while free > 0 and self._pending:
                node = self._pending.popleft()
                self._active.append(NodeReplacement(self, node, is_surge=is_surge))
                free -= 1

    # -- what replacements ask for -----------------------------------------------------------------

    def drain(self, name: str, *, against_budgets: bool) -> Drain:
        body: JsonObject = {
            "names": [name],
            "ignoreDaemonSets": True,
            "force": True,
            "deleteEmptyDirData": True,
            "timeout": self._flags.timeout,
            "disableEviction": against_budgets,
        }
        operation = Operation(f"upgrade-{name}", 0, 1, OperationKind.DRAIN, body)
        world = self.world
        client = world.client(ACTOR)
        context = OperationContext(client, world.scheme, world.clock, world.streams, self._told)
        return Drain(operation, context)

    def staying_on(self, name: str) -> list[JsonObject]:
        """Pods that a drain should have moved."""
        pods = self.world.client(ACTOR).on_node(name)
        return [pod for pod in pods if is_live(pod) and not is_daemon(pod)]

    def make(self, node: JsonObject) -> None:
        """The new node: as the old one was, under another name."""
        name = node["metadata"]["name"]
        twin = f"{name}-new"
        while twin in self._names:
            twin += "-new"
        self._names.add(twin)
        self.world.create(twin_of(node, twin))
        for csi_node in self.world.list("csinodes"):
            if csi_node["metadata"]["name"] == name:
                self.world.create({**csi_node, "metadata": {"name": twin}})

    def _told(self, operation: Operation, state: State, message: str, subject: str = "") -> None:
        del message
        if state is not State.WAITING or subject in self.waits:
            return
        namespace, _, name = subject.rpartition("/")
        pod = self.world.client(ACTOR).find(ObjectRef(POD, name, namespace))
        held = [] if pod is None else self._budgets.of(pod)
        told = arithmetic(self._now_of(held[0])) if held else "-"
        self.waits[subject] = Wait(subject, operation.body["names"][0], told)

    def _now_of(self, budget: JsonObject) -> JsonObject:
        metadata = budget["metadata"]
        return self.world.get("poddisruptionbudget", metadata["name"], metadata["namespace"])


class Upgraded(NamedTuple):
    """What came of it."""

    took: int
    done: list[NodeReplacement]
    waits: list[Wait]
    before: Counter[TopmostOwner]
    after: Counter[TopmostOwner]
    least: dict[TopmostOwner, int]
    """The fewest ready pods of each workload at any instant."""
    tally: LossTally
    waiting: dict[str, JsonObject]
    lost: list[str]
    """Pods that nobody makes again."""

    @property
    def forced(self) -> list[str]:
        return [pod for each in self.done for pod in each.forced]

    @property
    def lacking(self) -> list[TopmostOwner]:
        """Who had fewer ready pods for a time, the longest first."""
        times = self.tally.unavailable
        found = [each for each in self.before if self.least[each] < self.before[each]]
        return sorted(found, key=lambda each: (-times[each], each))


def upgrade(
    world: ClusterWorld,
    terms: Sequence[str],
    unknown: Sequence[str],
    *,
    flags: UpgradeFlags,
    prices: Prices | None,
) -> Answer:
    """The answer, in a world that may be changed."""
    flags.check()
    meant = selected(world.list("nodes"), terms)
    nodes = meant if terms else [node for node in meant if not is_control_plane(node)]
    told = [*unknown, "what new nodes have that those they replace have not"]
    if len(nodes) < len(meant):
        told.append(f"{counted(len(meant) - len(nodes), 'node')} of the control plane stay")
    told.append("how long pods take to end: here they go at once")
    told.append(
        f"what your provider does when a drain is not over after {flags.timeout}: here the pods "
        "that are left are deleted (others stop the upgrade)"
    )
    costs = costs_of(prices, nodes)
    it = _upgraded(world, nodes, flags)
    return Answer(
        question=" ".join(["upgrade", *terms]),
        unknown=told,
        sentence=_sentence(it, terms, flags) + _money(it, costs),
        tables=[*_tables(it, nodes)],
        measures={
            "nodes": len(it.done),
            "seconds": it.took / SECOND,
            "evicted": sum(each.evicted for each in it.done),
            "waited": len(it.waits),
            "forced": len(it.forced),
            "lacking": len(it.lacking),
            "unavailable": sum(max(it.before[each] - it.after[each], 0) for each in it.before),
            "never_again": len(it.lost),
            "pending": len(it.waiting),
            **({} if prices is None else {"cost": rounded(_extra(it, costs))}),
        },
        closer=_closer(it),
    )


def _upgraded(world: ClusterWorld, nodes: Sequence[JsonObject], flags: UpgradeFlags) -> Upgraded:
    waited, owners, readiness = waiting_pods(world), TopmostOwners(world), ReadyCounts(world)
    names = {node["metadata"]["name"] for node in nodes}
    lost = sorted(
        key_of(pod)
        for pod in pods_in(world)
        if node_of(pod) in names and is_live(pod) and not is_daemon(pod)
        if owners.of(pod).kind not in MADE_AGAIN
    )
    before, begun = readiness.look(), world.clock.now()
    least = dict(before)
    tally = LossTally(before, list(before), begun)
    playing, revision, ready = Upgrade(world, nodes, flags), -1, before
    took = 0
    for now in _and_after(playing):
        if playing.is_going_on:
            took = now - begun
        elif tally.is_all_back and revision == world.revision:
            break
        changed = world.revision != revision
        if changed:
            ready = readiness.look()
            least = {each: min(count, ready[each]) for each, count in least.items()}
        tally.look(ready if changed else None, now)
        revision = world.revision
    return Upgraded(
        took=took,
        done=playing.done,
        waits=list(playing.waits.values()),
        before=before,
        after=ready,
        least=least,
        tally=tally,
        waiting={k: pod for k, pod in waiting_pods(world).items() if k not in waited},
        lost=lost,
    )


def _and_after(playing: "Upgrade") -> Iterator[int]:
    """The upgrade, and as long as pods that it moved may take to be ready again."""
    yield from playing.play()
    playing.is_going_on = False
    yield from instants(playing.world, playing.now + AFTERWARDS)


def _sentence(it: Upgraded, terms: Sequence[str], flags: UpgradeFlags) -> str:
    how = f"surge {flags.surge}, unavailable {flags.unavailable}, {flags.boot} to boot"
    of = f" of {' and '.join(terms)}" if terms else ""
    moved = counted(sum(each.evicted for each in it.done), "pod")
    worst = ""
    if it.lacking:
        first = it.lacking[0]
        seconds = format_duration(it.tally.unavailable[first])
        worst = f", the longest {first} ({seconds})" if it.tally.unavailable[first] else ""
    return (
        f"Replacing {counted(len(it.done), 'node')}{of} ({how}) takes {format_duration(it.took)}: "
        f"{moved} move, {len(it.waits)} wait for a budget, {len(it.forced)} are deleted against "
        f"one; {counted(len(it.lacking), 'workload')} {'has' if len(it.lacking) == 1 else 'have'} "
        f"fewer ready pods for a time{worst}; {len(it.waiting)} wait for a place in the end."
    )


def _extra(it: Upgraded, costs: NodeCosts) -> Fraction:
    """What machines cost while both are there."""
    return sum((costs.of(each.name, each.overlap) for each in it.done), Fraction(0))


def _money(it: Upgraded, costs: NodeCosts) -> str:
    if costs.prices is None:
        return ""
    return f" Machines beside those they replace cost {costs.told(_extra(it, costs))}."


def _tables(it: Upgraded, nodes: Sequence[JsonObject]) -> Iterator[AnswerTable]:
    pools = {node["metadata"]["name"]: pool_of(node) for node in nodes}
    slowest = sorted(it.done, key=lambda each: (each.begun - each.ended, each.begun))
    lines: list[tuple[Cell, ...]] = [
        (
            each.name,
            pools[each.name],
            format_duration(each.ended - each.begun),
            format_duration(each.waited) if each.waited else "at once",
            each.evicted,
            len(each.forced),
        )
        for each in slowest[:SHOWN]
    ]
    columns = "node", "pool", "took", "drained after", "pods moved", "by force"
    yield AnswerTable("Nodes, the slowest first", columns, lines)
    if it.lacking:
        rows: list[tuple[Cell, ...]] = [
            (
                str(each),
                it.before[each],
                it.least[each],
                it.after[each],
                round(it.tally.unavailable[each] / SECOND, 3),
            )
            for each in it.lacking[:SHOWN]
        ]
        names = "workload", "ready before", "ready at least", "ready after", "lacking s"
        yield AnswerTable("Workloads with fewer ready pods", names, rows)
    if it.waits:
        rows = [(each.pod, each.node, each.budget) for each in it.waits[:SHOWN]]
        yield AnswerTable("Pods that wait for a budget", ("pod", "node", "when first asked"), rows)
    for title, pods in (
        ("Pods deleted against a budget", it.forced),
        ("Pods that nobody makes again", it.lost),
    ):
        if pods:
            yield AnswerTable(title, ("pod",), [(name,) for name in pods[:SHOWN]])
    if it.waiting:
        rows = [(name, why_waiting(pod)) for name, pod in sorted(it.waiting.items())[:SHOWN]]
        yield AnswerTable("Pods that wait", ("pod", "why"), rows)


def _closer(it: Upgraded) -> list[str]:
    told = []
    if it.waits:
        told.append(f"kubescene what-if SNAPSHOT drain node={it.waits[0].node}")
    if it.waiting:
        told.append(f"kubescene what-if SNAPSHOT explain pod {min(it.waiting)}")
    return told or ["kubescene what-if SNAPSHOT drain NODES says which pods stand in the way"]
