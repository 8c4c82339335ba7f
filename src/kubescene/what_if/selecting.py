"""Which nodes are meant: ``zone=eu-1a``, ``pool=general``, ``node=n1``, or any label ``KEY=VALUE``.

Several that are given together must all hold.
"""

from collections.abc import Sequence

from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
POOLS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "kubescene.dev/node-group",
    "node.kubernetes.io/pool",
    "pool",
)
"""Labels by which clouds and autoscalers say of which pool a node is."""
WORDS = {"zone": ZONES, "pool": POOLS}
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


def labels_of(node: JsonObject) -> dict[str, str]:
    return node["metadata"].get("labels") or {}


def zone_of(node: JsonObject) -> str:
    return _first(node, ZONES)


def pool_of(node: JsonObject) -> str:
    return _first(node, POOLS)


def is_control_plane(node: JsonObject) -> bool:
    return any(label in labels_of(node) for label in CONTROL_PLANE)


def _first(node: JsonObject, keys: Sequence[str]) -> str:
    labels = labels_of(node)
    return next((str(labels[key]) for key in keys if key in labels), "")


def selected(nodes: Sequence[JsonObject], terms: Sequence[str]) -> list[JsonObject]:
    """The nodes that fit all terms; `ConfigurationError` if none does, with what there is."""
    found = list(nodes)
    for term in terms:
        key, equals, value = term.partition("=")
        if not equals or not key:
            raise ConfigurationError(f"{term!r} names no nodes: say zone=Z, pool=P, node=N or K=V")
        fitting = [node for node in found if _fits(node, key, value)]
        if not fitting:
            raise ConfigurationError(f"no node has {term}; there are: {_values(nodes, key)}")
        found = fitting
    return found


def _fits(node: JsonObject, key: str, value: str) -> bool:
    if key == "node":
        return bool(node["metadata"]["name"] == value)
    if key in WORDS:
        return any(labels_of(node).get(each) == value for each in WORDS[key])
    return labels_of(node).get(key) == value


def _values(nodes: Sequence[JsonObject], key: str) -> str:
    if key == "node":
        values = {str(node["metadata"]["name"]) for node in nodes}
    elif key in WORDS:
        values = {_first(node, WORDS[key]) for node in nodes}
    else:
        values = {labels_of(node).get(key, "") for node in nodes}
    known = sorted(filter(None, values))
    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"{', '.join(known[:20])}{more}" if known else f"none with a {key}"
