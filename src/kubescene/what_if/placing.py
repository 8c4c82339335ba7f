"""Where pods would go: all of them anew, with another configuration, or a single one, and why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.api.selectors import parse_labels
from kubescene.api.selectors.requirements import SelectorError
from kubescene.cluster import ClusterWorld
from kubescene.errors import ConfigurationError, NotFoundError
from kubescene.remedies import find_remedies
from kubescene.snapshots.snapshot import Snapshot
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.worlds import (
    SHOWN,
    controller_of,
    counted,
    is_daemon,
    is_live,
    node_of,
    node_uses,
    percent,
    placements,
    pods_in,
    waiting_pods,
    why_waiting,
)

OF_A_PLACE = ("hostIP", "hostIPs", "podIP", "podIPs", "startTime", "containerStatuses")
MOST_EXPLAINED = 12


class Placing(NamedTuple):
    """The cluster as it was; placed anew with its own configuration; and with another."""

    before: ClusterWorld
    mine: ClusterWorld
    other: ClusterWorld


def unplaced(snapshot: Snapshot, selector: str) -> tuple[Snapshot, int]:
    """The snapshot with these pods back in the queue, and how many they are.

    ``all``, or a label selector. Pods of DaemonSets and static pods stay where they are.
    """
    try:
        labels = None if selector == "all" else parse_labels(selector)
    except SelectorError as error:
        raise ConfigurationError(f"--unplace: {error}") from error
    objects, number = [], 0
    for obj in snapshot.objects:
        is_meant = obj.get("kind") == "Pod" and is_live(obj) and not is_daemon(obj)
        if is_meant and node_of(obj):
            own = obj["metadata"].get("labels") or {}
            if labels is None or labels.matches(own):
                number += 1
                objects.append(as_waiting(obj))
                continue
        objects.append(obj)
    return replace(snapshot, objects=objects), number


def as_waiting(pod: JsonObject) -> JsonObject:
    """The pod as it was before it had a place."""
    spec = {name: part for name, part in pod["spec"].items() if name != "nodeName"}
    status = {k: v for k, v in (pod.get("status") or {}).items() if k not in OF_A_PLACE}
    return {**pod, "spec": spec, "status": {**status, "phase": "Pending", "conditions": []}}


def schedule(worlds: Placing, unknown: Sequence[str], number: int, *, has_other: bool) -> Answer:
    """Before, anew, and anew with another configuration."""
    named = {"before": worlds.before, "anew": worlds.mine}
    if has_other:
        named["other"] = worlds.other
    reference = placements(worlds.mine if has_other else worlds.before)
    result = placements(worlds.other)
    moved = {
        name: (reference[name], node)
        for name, node in result.items()
        if name in reference and node != reference[name]
    }
    waiting = waiting_pods(worlds.other)
    waited = waiting_pods(worlds.mine if has_other else worlds.before)
    fresh = {name: pod for name, pod in waiting.items() if name not in waited}
    rows: list[tuple[Cell, ...]] = [_spread(name, world) for name, world in named.items()]
    tables = [
        AnswerTable(
            "Placements",
            ("placement", "nodes used", "empty nodes", "waiting", "fullest cpu", "fullest memory"),
            rows,
        )
    ]
    if moved:
        lines: list[tuple[Cell, ...]] = [
            (name, was or "-", now or "-") for name, (was, now) in sorted(moved.items())[:SHOWN]
        ]
        tables.append(AnswerTable("Pods elsewhere", ("pod", "from", "to"), lines))
    if fresh:
        reasons: list[tuple[Cell, ...]] = [
            (name, why_waiting(pod)) for name, pod in sorted(fresh.items())[:SHOWN]
        ]
        tables.append(AnswerTable("Pods that wait", ("pod", "why"), reasons))
    used = {name: row[1] for name, row in zip(named, rows, strict=True)}
    against = "the present configuration" if has_other else "where they are"
    sentence = (
        f"{counted(number, 'pod')} placed anew: {len(moved)} elsewhere than with {against}, on "
        f"{used['other' if has_other else 'anew']} nodes instead of "
        f"{used['anew' if has_other else 'before']}; {len(fresh)} more wait."
    )
    return Answer(
        question="schedule",
        unknown=[*unknown, "pods come back to the queue at once, in the order of their creation"],
        sentence=sentence,
        tables=tables,
        measures={
            "unplaced": number,
            "moved": len(moved),
            "pending": len(fresh),
            "nodes_used": int(used["other" if has_other else "anew"]),
        },
        closer=["kubescene run --from SNAPSHOT --scheduler-config A --scheduler-config B"]
        if has_other
        else [],
    )


def _spread(name: str, world: ClusterWorld) -> tuple[Cell, ...]:
    """Nodes on which more than DaemonSets run, and the fullest of them."""
    on = Counter(
        node_of(pod)
        for pod in pods_in(world)
        if node_of(pod) and is_live(pod) and not is_daemon(pod)
    )
    uses = node_uses(world).values()
    return (
        name,
        len(on),
        len(uses) - len(on),
        len(waiting_pods(world)),
        percent(max((each.share(CPU) for each in uses), default=0)),
        percent(max((each.share(MEMORY) for each in uses), default=0)),
    )


def explain(world: ClusterWorld, name: str, unknown: Sequence[str]) -> Answer:
    """Why a pod waits and what would help, in a world that may be changed."""
    namespace, _, short = name.rpartition("/")
    try:
        pod = world.get("pod", short, namespace or "default")
    except NotFoundError:
        raise ConfigurationError(
            f"there is no pod {namespace or 'default'}/{short} in the snapshot: say NAMESPACE/NAME"
        ) from None
    full = f"{namespace or 'default'}/{short}"
    question = f"explain pod {full}"
    if node := node_of(pod):
        owner = controller_of(pod)
        kept = f", kept by {owner['kind']} {owner['name']}" if owner else ", kept by nobody"
        return Answer(
            question=question,
            unknown=[*unknown],
            sentence=f"{full} is on {node}{kept}.",
            tables=[],
            measures={"pending": 0, "remedies": 0},
            closer=["kubescene what-if SNAPSHOT schedule says where pods would go today"],
        )
    remedies = find_remedies(world, full)
    why = why_waiting(pod)
    rows: list[tuple[Cell, ...]] = [(each.cost, each.text, each.node) for each in remedies]
    best = (
        f"; it would fit {remedies[0].node}: {remedies[0].text}"
        if remedies
        else ("; no single change was found that would place it")
    )
    return Answer(
        question=question,
        unknown=[*unknown],
        sentence=f"{full} waits: {why.rstrip('.')}{best}.",
        tables=[AnswerTable("What would place it", ("cost", "change", "then it fits"), rows)]
        if rows
        else [],
        measures={"pending": 1, "remedies": len(remedies)},
        closer=["each change was tried in a copy of the cluster, alone"] if rows else [],
    )
