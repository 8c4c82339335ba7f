"""One more node, of a shape that exists: an empty twin of some node."""

from collections.abc import Hashable, Iterator

import orjson

from kubescene.remedies.remedy import NODE_COST, Edit, Remedy, RemedyKind, fresh
from kubescene.remedies.trials import Trials
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.types import JsonObject

HOSTNAME = "kubernetes.io/hostname"
SHAPES_TRIED = 20


def nodes(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """The shape of most nodes first."""
    del reasons
    names = {node.name for node in trials.nodes}
    for first, count in shapes(trials)[:SHAPES_TRIED]:
        twin = twin_of(first, names)
        with trials.node(twin):
            found = trials.place()
        if found:
            name = twin["metadata"]["name"]
            alike = f" and {count - 1} others" if count > 1 else ""
            text = f"add a node like {first.name}{alike} (tried as {name})"
            edit = Edit("create", "Node", name, object=as_created(twin))
            yield Remedy(RemedyKind.NODE, trials.key, text, NODE_COST, found, (edit,))


def shapes(trials: Trials) -> list[tuple[NodeInfo, int]]:
    """The first node of each shape, and how many have it."""
    found: dict[Hashable, list[NodeInfo]] = {}
    for node in trials.nodes:
        if node.record is not None:
            found.setdefault(shape(node), []).append(node)
    groups = sorted(found.values(), key=len, reverse=True)
    return [(group[0], len(group)) for group in groups]


def shape(node: NodeInfo) -> Hashable:
    """What nodes have in common that are as good as each other while they are empty."""
    labels = {key: value for key, value in node.labels.items() if key != HOSTNAME}
    told = (labels, node.allocatable, list(node.taints), node.unschedulable, sorted(node.features))
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS)


def twin_of(node: NodeInfo, taken: set[str]) -> JsonObject:
    """An empty node of the same shape under a name that nobody has."""
    assert node.record is not None
    obj, number = node.record.decode(), 1
    while (name := f"{node.name}-twin-{number}") in taken:
        number += 1
    metadata = {**obj["metadata"], "name": name, "uid": f"twin-of-{obj['metadata'].get('uid', '')}"}
    if HOSTNAME in node.labels:
        metadata["labels"] = {**node.labels, HOSTNAME: name}
    return {**obj, "metadata": metadata}


def as_created(twin: JsonObject) -> JsonObject:
    """A node is created with its status: nobody else would report its capacity."""
    status = {name: twin["status"][name] for name in twin.get("status") or {}}
    return {**fresh(twin), "status": status}
