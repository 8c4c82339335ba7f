"""Nodes emptied as ``kubectl drain`` does it, while virtual time passes; and what stops it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kubescene.actors import Actor
from kubescene.api.selectors.label_selectors import from_label_selector
from kubescene.cluster import ClusterWorld
from kubescene.durations import SECOND, format_duration, parse_duration
from kubescene.scenario.operations.drain_filters import (
    DAEMON_SET_FATAL,
    LOCAL_STORAGE_FATAL,
    UNMANAGED_FATAL,
    DrainFilters,
    DrainReason,
)
from kubescene.scenario.operations.drains import Drain
from kubescene.scenario.operations.undertakings import OperationContext, State
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable
from kubescene.what_if.selecting import selected
from kubescene.what_if.worlds import (
    SHOWN,
    controller_of,
    counted,
    key_of,
    waiting_pods,
    why_waiting,
)

ACTOR = Actor("what-if")
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
WHY = {
    UNMANAGED_FATAL: "no controller would make it again (--force deletes it all the same)",
    LOCAL_STORAGE_FATAL: "it has an emptyDir, whose data would be lost (--delete-emptydir-data)",
    DAEMON_SET_FATAL: "its DaemonSet is not in the snapshot",
}


class DrainFlags(NamedTuple):
    """As kubectl has them; pods of DaemonSets are always left alone."""

    force: bool = False
    delete_empty_dir_data: bool = False
    timeout: str = "10m"

    def body(self, names: Sequence[str]) -> JsonObject:
        return {
            "names": list(names),
            "ignoreDaemonSets": True,
            "force": self.force,
            "deleteEmptyDirData": self.delete_empty_dir_data,
            "timeout": self.timeout,
        }


class DrainTold(NamedTuple):
    state: State
    message: str
    subject: str


class Drained(NamedTuple):
    """What came of it: ``told`` as kubectl says it, how long it took, who was evicted."""

    told: list[DrainTold]
    took: int
    evicted: int

    @property
    def undrained(self) -> list[str]:
        """Nodes that are not drained."""
        lost = (State.REFUSED, State.TIMED_OUT)
        return [each.subject for each in self.told if each.state in lost]


def drained(world: ClusterWorld, names: Sequence[str], flags: DrainFlags) -> Drained:
    """Empty these nodes in this world, one after the other, for as long as that may take."""
    told: list[DrainTold] = []

    def tell(operation: Operation, state: State, message: str, subject: str = "") -> None:
        del operation
        told.append(DrainTold(state, message, subject))

    world.settle()
    begun = world.clock.now()
    body = flags.body(names)
    operation = Operation("drain", 0, 1, OperationKind.DRAIN, body)
    context = OperationContext(world.client(ACTOR), world.scheme, world.clock, world.streams, tell)
    drain = Drain(operation, context)
    limit = begun + (parse_duration(flags.timeout) + 1) * (len(names) + 1)
    while not _goes_on(world, drain) and world.clock.now() < limit:
        due = [each for each in (drain.due, world.event_queue.peek()) if each is not None]
        if not due:
            break
        world.advance_until(min(max(min(due), world.clock.now()), limit))
    if not drain.is_over:
        drain.tell_unfinished()
    return Drained(told, world.clock.now() - begun, drain.evicted)


def _goes_on(world: ClusterWorld, drain: Drain) -> bool:
    """Whether it is over once all has been done that can be done at this instant."""
    while True:
        revision = world.revision
        drain.go_on()
        world.settle()
        if drain.is_over or world.revision == revision:
            return drain.is_over


class Blocker(NamedTuple):
    """A pod that keeps its node from being drained, and why."""

    node: str
    pod: str
    why: str


def blockers(world: ClusterWorld, names: Sequence[str], flags: DrainFlags) -> list[Blocker]:
    """The pods that kubectl would not touch with these flags, or a budget never lets go."""
    client = world.client(ACTOR)
    filters, now = DrainFilters(flags.body(names), client), world.clock.now()
    budgets = DrainBudgets(world)
    found = []
    for name in names:
        for pod in client.on_node(name):
            verdict = filters.verdict(pod, now)
            if verdict.reason is DrainReason.ERROR:
                why = WHY.get(verdict.message, verdict.message)
            elif verdict.goes:
                why = budgets.why_never(pod)
            else:
                continue
            if why:
                found.append(Blocker(name, key_of(pod), why))
    return found


def reluctant(world: ClusterWorld, names: Sequence[str]) -> list[Blocker]:
    """Pods whose annotations forbid autoscalers what kubectl does all the same."""
    client, found = world.client(ACTOR), []
    for name in names:
        for pod in client.on_node(name):
            annotations = pod["metadata"].get("annotations") or {}
            if annotations.get(SAFE_TO_EVICT) == "false":
                found.append(Blocker(name, key_of(pod), f"{SAFE_TO_EVICT}=false"))
            elif annotations.get(DO_NOT_DISRUPT) == "true":
                found.append(Blocker(name, key_of(pod), f"{DO_NOT_DISRUPT}=true"))
    return found


class DrainBudgets:
    """PodDisruptionBudgets of a world, and the arithmetic of each."""

    def __init__(self, world: ClusterWorld) -> None:
        self._budgets = [
            (budget, from_label_selector(budget["spec"].get("selector")))
            for budget in world.list("poddisruptionbudgets")
            if budget["spec"].get("selector") is not None
        ]

    def of(self, pod: JsonObject) -> list[JsonObject]:
        labels = pod["metadata"].get("labels") or {}
        return [
            budget
            for budget, selector in self._budgets
            if budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
            and selector.matches(labels)
        ]

    def why_never(self, pod: JsonObject) -> str:
        """Why no eviction of the pod is ever allowed while all is well; empty if one is."""
        budgets = self.of(pod)
        if len(budgets) > 1:
            return f"{len(budgets)} budgets cover it, which the API refuses: {_names(budgets)}"
        for budget in budgets:
            status: dict[str, Any] = budget.get("status") or {}
            expected = int(status.get("expectedPods") or 0)
            if expected and int(status.get("desiredHealthy") or 0) >= expected:
                return f"budget {arithmetic(budget)}: it never allows one to go"
        return ""


def arithmetic(budget: JsonObject) -> str:
    """``ledger: minAvailable 2, 2 of 3 healthy, 0 may go``."""
    spec, status = budget["spec"], budget.get("status") or {}
    rule = "minAvailable" if "minAvailable" in spec else "maxUnavailable"
    healthy, expected = status.get("currentHealthy", 0), status.get("expectedPods", 0)
    return (
        f"{budget['metadata']['name']}: {rule} {spec.get(rule)}, {healthy} of {expected} healthy, "
        f"{status.get('disruptionsAllowed', 0)} may go"
    )


def _names(budgets: Sequence[JsonObject]) -> str:
    return ", ".join(budget["metadata"]["name"] for budget in budgets)


def still_there(world: ClusterWorld, names: Sequence[str]) -> list[Blocker]:
    """After a drain that gave up: the pods that it waited for, and the budgets that held them."""
    client, budgets = world.client(ACTOR), DrainBudgets(world)
    found = []
    for name in names:
        for pod in client.on_node(name):
            owner = controller_of(pod)
            if owner is not None and owner.get("kind") in ("DaemonSet", "Node"):
                continue
            if held := budgets.of(pod):
                why = f"budget {arithmetic(held[0])}; {_others(world, held[0])}"
                found.append(Blocker(name, key_of(pod), why))
    return found


def _others(world: ClusterWorld, budget: JsonObject) -> str:
    """Why those are not healthy again that went before it."""
    selector = from_label_selector(budget["spec"].get("selector"))
    waiting = [
        name
        for name, pod in waiting_pods(world).items()
        if pod["metadata"]["namespace"] == budget["metadata"]["namespace"]
        and selector.matches(pod["metadata"].get("labels") or {})
    ]
    return f"{waiting[0]} waits for a place" if waiting else "it was asked until the time-out"


def drain_answer(
    world: ClusterWorld, terms: Sequence[str], unknown: Sequence[str], flags: DrainFlags
) -> Answer:
    """Who is in the way, and what a drain with these flags does, in a world that may be changed."""
    nodes = selected(world.list("nodes"), terms)
    names = [node["metadata"]["name"] for node in nodes]
    waited = waiting_pods(world)
    blocking = blockers(world, names, flags)
    disliked = reluctant(world, names)
    done = drained(world, names, flags)
    undrained = done.undrained
    held = [each for each in still_there(world, undrained) if each.pod not in _pods(blocking)]
    blocking += held
    waiting = {k: pod for k, pod in waiting_pods(world).items() if k not in waited}
    told_of = {each.subject: each for each in done.told if each.subject in names}
    rows = [
        (name, "no" if name in undrained else "yes", sum(each.node == name for each in blocking))
        for name in names
    ]
    tables = [AnswerTable("Nodes", ("node", "drained", "pods in the way"), rows)]
    if blocking:
        tables.insert(
            0,
            AnswerTable(
                "Pods in the way", ("node", "pod", "why"), [tuple(each) for each in blocking]
            ),
        )
    refused = [(name, told_of[name].message) for name in undrained if name in told_of]
    if refused:
        tables.append(AnswerTable("What kubectl says", ("node", "message"), refused))
    if waiting:
        reasons = [(name, why_waiting(pod)) for name, pod in sorted(waiting.items())]
        tables.append(AnswerTable("Pods that wait", ("pod", "why"), reasons[:SHOWN]))
    if disliked:
        tables.append(
            AnswerTable(
                "Pods that autoscalers would not evict",
                ("node", "pod", "why"),
                [tuple(each) for each in disliked[:SHOWN]],
            )
        )
    took = format_duration(done.took) if done.took else "no time but that of the pods' ends"
    if undrained:
        sentence = (
            f"{len(undrained)} of {counted(len(names), 'node')} cannot be drained: "
            f"{counted(len(blocking), 'pod')} in the way; {counted(done.evicted, 'pod')} evicted."
        )
    else:
        sentence = (
            f"{counted(len(names), 'node')} drained in {took}: {counted(done.evicted, 'pod')} "
            f"evicted, {len(waiting)} of which find no other place."
        )
    return Answer(
        question=f"drain {' '.join(terms)}",
        unknown=[*unknown],
        sentence=sentence,
        tables=tables,
        measures={
            "nodes": len(names),
            "undrained": len(undrained),
            "blocking": len(blocking),
            "evicted": done.evicted,
            "pending": len(waiting),
            "seconds": done.took / SECOND,
        },
        closer=["--force and --delete-emptydir-data drain as kubectl does with them"],
    )


def _pods(blocking: Sequence[Blocker]) -> set[str]:
    return {each.pod for each in blocking}
