"""What if nodes are lost: a zone, a pool, a machine?"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from kubescene.cluster import ClusterWorld
from kubescene.controllers.kubelet.heartbeats import ANNOTATION, STOPPED
from kubescene.durations import SECOND, format_duration
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.selecting import selected
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
    is_ready,
    key_of,
    node_of,
    pods_in,
    waiting_pods,
    why_waiting,
)


class LossTally:
    """How long each workload had fewer ready pods than before."""

    def __init__(
        self, before: Counter[TopmostOwner], affected: Sequence[TopmostOwner], now: int
    ) -> None:
        self._before = before
        self._affected = affected
        self._begun = now
        self._seen_at = now
        self._lacking: set[TopmostOwner] = set()
        self.unavailable: Counter[TopmostOwner] = Counter()
        self.back_at: dict[TopmostOwner, int] = {}
        """Since when each has had no fewer, if it has."""

    def look(self, ready: Counter[TopmostOwner] | None, now: int) -> None:
        """The state from now on; None if it has not changed."""
        for each in self._lacking:
            self.unavailable[each] += now - self._seen_at
        self._seen_at = now
        if ready is None:
            return
        lacking = {each for each in self._affected if ready[each] < self._before[each]}
        for each in self._lacking - lacking:
            self.back_at[each] = now - self._begun
        for each in lacking:
            self.back_at.pop(each, None)
        self._lacking = lacking

    @property
    def is_all_back(self) -> bool:
        return not self._lacking


class Loss(NamedTuple):
    """What came of it."""

    nodes: int
    there: list[JsonObject]
    """Pods that ran on these nodes, those of DaemonSets apart."""
    affected: Counter[TopmostOwner]
    """How many of them each workload had."""
    before: Counter[TopmostOwner]
    after: Counter[TopmostOwner]
    """Ready pods."""
    tally: LossTally
    waiting: dict[str, JsonObject]
    """Pods that wait for a place and did not before."""
    stuck: list[str]
    """Pods that stay Terminating on these nodes."""
    still: int
    """Pods that are on these nodes yet."""
    lasting: list[str]
    """Pods that nobody makes again."""

    def missing(self, workload: TopmostOwner) -> int:
        return self.before[workload] - self.after[workload]

    @property
    def unavailable(self) -> int:
        return sum(max(self.missing(each), 0) for each in self.affected)


def lose(
    world: ClusterWorld,
    terms: Sequence[str],
    unknown: Sequence[str],
    *,
    removed: bool,
    within: int,
) -> Answer:
    """The answer, in a world that may be changed."""
    loss = _lost(world, terms, removed=removed, within=within)
    how = "were removed" if removed else "fell silent"
    what = f"{counted(loss.nodes, 'node')} of {' and '.join(terms)} {how}"
    return Answer(
        question=f"lose {' '.join(terms)}{' --removed' if removed else ''}",
        unknown=[*unknown],
        sentence=_sentence(loss, what, within),
        tables=[*_tables(loss)],
        measures={
            "nodes": loss.nodes,
            "pods": len(loss.there),
            "pending": len(loss.waiting),
            "unavailable": loss.unavailable,
            "terminating": len(loss.stuck),
            "never_again": len(loss.lasting),
        },
        closer=_closer(loss, removed=removed),
    )


def _lost(world: ClusterWorld, terms: Sequence[str], *, removed: bool, within: int) -> Loss:
    """Take the nodes away, and look what becomes of their pods."""
    names = {node["metadata"]["name"] for node in selected(world.list("nodes"), terms)}
    owners, waited = TopmostOwners(world), waiting_pods(world)
    there = _running_on(world, names)
    affected = Counter(owners.of(pod) for pod in there)
    readiness = ReadyCounts(world)
    before = readiness.look()
    begun = world.clock.now()
    tally = LossTally(before, list(affected), begun)
    for name in sorted(names):
        if removed:
            world.delete("node", name)
        else:
            world.patch("node", name, {"metadata": {"annotations": {ANNOTATION: STOPPED}}})
    revision = -1
    for now in instants(world, begun + within):
        changed = world.revision != revision
        revision = world.revision
        tally.look(readiness.look() if changed else None, now)
    return Loss(
        nodes=len(names),
        there=there,
        affected=affected,
        before=before,
        after=readiness.look(),
        tally=tally,
        waiting={k: pod for k, pod in waiting_pods(world).items() if k not in waited},
        stuck=_terminating_on(world, names),
        still=len(_running_on(world, names)),
        lasting=sorted({key_of(pod) for pod in there if owners.of(pod).kind not in MADE_AGAIN}),
    )


def _running_on(world: ClusterWorld, names: Container[str]) -> list[JsonObject]:
    return [
        pod
        for pod in pods_in(world)
        if node_of(pod) in names and is_live(pod) and not is_daemon(pod)
    ]


def _terminating_on(world: ClusterWorld, names: Container[str]) -> list[str]:
    return sorted(
        key_of(pod)
        for pod in pods_in(world)
        if node_of(pod) in names and "deletionTimestamp" in pod["metadata"]
    )


def _tables(loss: Loss) -> Iterator[AnswerTable]:
    columns = "workload", "pods there", "ready before", "ready after", "back after", "lacking s"
    worst_first = sorted(loss.affected, key=lambda each: (-loss.missing(each), each))
    yield AnswerTable("Workloads", columns, [_row(loss, each) for each in worst_first])
    if loss.waiting:
        reasons = [(name, why_waiting(pod)) for name, pod in sorted(loss.waiting.items())]
        yield AnswerTable("Pods that wait", ("pod", "why"), reasons[:SHOWN])
    for title, pods in (
        ("Pods that stay Terminating", loss.stuck),
        ("Pods that nobody makes again", loss.lasting),
    ):
        if pods:
            yield AnswerTable(title, ("pod",), [(name,) for name in pods[:SHOWN]])


def _row(loss: Loss, workload: TopmostOwner) -> tuple[Cell, ...]:
    is_back = loss.missing(workload) <= 0
    return (
        str(workload),
        loss.affected[workload],
        loss.before[workload],
        loss.after[workload],
        _told(loss.tally.back_at.get(workload)) if is_back else "not back",
        round(loss.tally.unavailable[workload] / SECOND, 3),
    )


def _sentence(loss: Loss, what: str, within: int) -> str:
    if not loss.there:
        return f"If {what}, no workload would notice."
    if loss.unavailable == 0 and not loss.waiting:
        longest = max(loss.tally.back_at.values(), default=0)
        return (
            f"If {what}, all {counted(len(loss.there), 'pod')} there would be back after "
            f"{_told(longest)}."
        )
    return (
        f"If {what}, {loss.unavailable} of {sum(map(is_ready, loss.there))} ready pods there would "
        f"not be back after {format_duration(within)}: {len(loss.waiting)} wait for a place, "
        f"{len(loss.stuck)} stay Terminating, {len(loss.lasting)} have nobody who makes them again."
    )


def _told(duration: int | None) -> str:
    return "at once" if not duration else format_duration(duration)


def _closer(loss: Loss, *, removed: bool) -> list[str]:
    told = []
    if loss.waiting:
        told.append(f"kubescene what-if SNAPSHOT explain pod {min(loss.waiting)}")
    if not removed:
        told.append("with --removed the nodes are deleted, as a cloud does in the end")
    if loss.still:
        told.append(f"{counted(loss.still, 'pod')} on the lost nodes tolerate that: a longer --for")
    return told
