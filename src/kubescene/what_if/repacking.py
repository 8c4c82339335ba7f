"""What if nodes were of another size: how many of them would it take, and at what price?

The nodes that are meant are taken away with what belongs to them (pods of DaemonSets, static pods);
all other pods of theirs are placed anew on as few nodes of the new size as it takes. Daemons come
with every node, so their part is in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.cluster import ClusterWorld
from kubescene.results.cost.prices import INSTANCE_TYPE, Prices
from kubescene.snapshots.snapshot import Snapshot
from kubescene.types import JsonObject
from kubescene.what_if.answers import Answer, AnswerTable, Cell
from kubescene.what_if.costs import hourly, monthly
from kubescene.what_if.placing import as_waiting
from kubescene.what_if.selecting import labels_of, selected, zone_of
from kubescene.what_if.worlds import (
    HOSTNAME,
    SHOWN,
    counted,
    is_daemon,
    is_live,
    node_of,
    node_uses,
    percent,
    total_share,
    waiting_pods,
    why_waiting,
)

ZONE = "topology.kubernetes.io/zone"


class NewNode(NamedTuple):
    """What each new node offers, and the instance type that it is called."""

    offers: Mapping[str, str]
    type: str = ""


def repack(
    snapshot: Snapshot,
    world: ClusterWorld,
    settled: Callable[[Snapshot], ClusterWorld],
    terms: Sequence[str],
    unknown: Sequence[str],
    *,
    shape: NewNode,
    prices: Prices | None,
) -> Answer:
    """The least number of nodes with which no more pods wait than now."""
    old = selected(world.list("nodes"), terms)
    waited = set(waiting_pods(world))

    def with_nodes(count: int) -> ClusterWorld:
        return settled(replace(snapshot, objects=replaced(snapshot.objects, old, shape, count)))

    def fits(count: int) -> bool:
        return not set(waiting_pods(with_nodes(count))) - waited

    most = max(4 * len(old), 16)
    high = 1
    while high < most and not fits(high):
        high = min(high * 2, most)
    low = high // 2 if high > 1 else 0
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle
    best = with_nodes(high)
    waiting = {k: pod for k, pod in waiting_pods(best).items() if k not in waited}
    names = {node["metadata"]["name"] for node in old}
    before = [use for name, use in node_uses(world).items() if name in names]
    after = [use for name, use in node_uses(best).items() if name.startswith(PREFIX)]
    rows: list[tuple[Cell, ...]] = [
        (when, len(uses), percent(total_share(uses, CPU)), percent(total_share(uses, MEMORY)))
        for when, uses in (("now", before), ("then", after))
    ]
    measures: dict[str, int | float] = {
        "nodes_before": len(old),
        "nodes_after": high,
        "pending": len(waiting),
    }
    money = ""
    if prices is not None:
        now = hourly(prices, old)
        then = high * prices.of("a new node", {prices.label: shape.type})
        measures |= {"cost_before": float(now), "cost_after": float(then)}
        saved = monthly(now - then)
        money = f", {saved} {prices.currency} a month less"
    tables = [AnswerTable("Nodes", ("when", "nodes", "cpu", "memory"), rows)]
    size = ", ".join(f"{name} {amount}" for name, amount in shape.offers.items())
    if waiting:
        reasons: list[tuple[Cell, ...]] = [
            (name, why_waiting(pod)) for name, pod in sorted(waiting.items())[:SHOWN]
        ]
        tables.append(AnswerTable("Pods that wait", ("pod", "why"), reasons))
        sentence = (
            f"{counted(len(waiting), 'pod')} would wait with {high} nodes of {size}, and more were "
            "not tried."
        )
    else:
        sentence = f"{counted(high, 'node')} of {size} instead of {len(old)} would do{money}."
    return Answer(
        question=" ".join(["repack", *terms]),
        unknown=[
            *unknown,
            "what a new node keeps for itself: its size is taken for what it offers to pods",
            "another number between those that were tried: the least was found by halving",
        ],
        sentence=sentence,
        tables=tables,
        measures=measures,
        closer=[
            "kubescene what-if SNAPSHOT schedule says where pods go on the nodes that are there"
        ],
    )


PREFIX = "repacked-"


def replaced(
    objects: Sequence[JsonObject], old: Sequence[JsonObject], shape: NewNode, count: int
) -> list[JsonObject]:
    """The objects with so many new nodes in place of the old ones."""
    names = {node["metadata"]["name"] for node in old}
    kept = []
    for obj in objects:
        if obj.get("kind") == "Node" and obj["metadata"]["name"] in names:
            continue
        if obj.get("kind") == "Pod" and node_of(obj) in names and is_live(obj):
            if not is_daemon(obj):
                kept.append(as_waiting(obj))
            continue
        kept.append(obj)
    return [*kept, *new_nodes(old, shape, count)]


def new_nodes(old: Sequence[JsonObject], shape: NewNode, count: int) -> list[JsonObject]:
    """With the labels and taints that all old ones have, in their zones in turn."""
    common = dict(labels_of(old[0]).items())
    for node in old[1:]:
        own = labels_of(node)
        common = {key: value for key, value in common.items() if own.get(key) == value}
    taints = [
        each
        for each in old[0]["spec"].get("taints") or ()
        if all(each in (node["spec"].get("taints") or ()) for node in old)
    ]
    zones = sorted({zone_of(node) for node in old} - {""})
    made = []
    for number in range(count):
        name = f"{PREFIX}{number}"
        labels = {**common, HOSTNAME: name}
        if zones:
            labels[ZONE] = zones[number % len(zones)]
        if shape.type:
            labels[INSTANCE_TYPE] = shape.type
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "uid": name, "labels": labels},
                "spec": {"taints": taints} if taints else {},
                "status": {
                    "capacity": dict(shape.offers),
                    "allocatable": dict(shape.offers),
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
    return made
