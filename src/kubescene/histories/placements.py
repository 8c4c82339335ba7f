"""Where pods were placed while a history went on: what a replay is compared with."""

from collections.abc import Iterator
from typing import NamedTuple

from kubescene.histories.history import RecordedEvent, RecordedHistory
from kubescene.types import JsonObject

ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
POOLS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "agentpool",
)
"""Labels that say which group of machines a node is of."""
BY_NAME = ("", "StatefulSet")
"""Pods of these owners have the same names wherever they are made."""


class RecordedPlace(NamedTuple):
    """A pod that got its node. ``group`` is what a pod of the same kind has in common with it.

    That is its own name, or the workload that makes it: other pods of that have other names.
    """

    group: str
    node: str


class RecordedPlaces:
    """The placements of a history, in their order; ``nodes`` are the labels of those that it had.

    Pods that had a node when it began, or that a node brought itself, are none of them. A pod may
    be heard of before the workload that made it, since every kind is watched apart: groups are
    told when all has been read.
    """

    def __init__(self, history: RecordedHistory) -> None:
        self._history = history
        self._owners: dict[str, tuple[str, str]] = {}
        """Of owners by uid: kind and name, and the uid of their own owner."""
        self._placed: set[str] = set()
        self.nodes: dict[str, dict[str, str]] = {}

    def __iter__(self) -> Iterator[RecordedPlace]:
        found: list[tuple[str, str, str, str]] = []
        for obj in self._history.objects:
            self._look(obj)
        for change in self._history.changes:
            obj = change.object
            if obj["kind"] == "Pod" and change.event is RecordedEvent.DELETE:
                self._placed.discard(_identity(obj))
            elif (node := self._look(obj)) and not _is_of_node(obj):
                found.append((_identity(obj), *_owner(obj), node))
        for identity, owner, uid, node in found:
            yield RecordedPlace(self._group(identity, owner, uid), node)

    def _look(self, obj: JsonObject) -> str | None:
        """The node that a pod has been given just now."""
        metadata, kind = obj["metadata"], obj["kind"]
        name, uid = metadata["name"], str(metadata.get("uid") or "")
        if kind == "Node":
            labels = metadata.get("labels") or {}
            self.nodes[name] = {str(key): str(value) for key, value in labels.items()}
        if kind != "Pod":
            if uid and kind in ("CronJob", "Deployment", "Job", "ReplicaSet"):
                self._owners[uid] = (f"{kind}/{name}", _owner(obj)[1])
            return None
        node = (obj.get("spec") or {}).get("nodeName")
        identity = _identity(obj)
        if not isinstance(node, str) or not node or identity in self._placed:
            return None
        self._placed.add(identity)
        return node

    def _group(self, identity: str, owner: str, uid: str) -> str:
        if owner.partition("/")[0] in BY_NAME:
            return identity
        seen: set[str] = set()
        while uid in self._owners and uid not in seen:  # a recording may say that it owns itself
            seen.add(uid)
            owner, uid = self._owners[uid]
        return f"{identity.partition('/')[0]}/{owner}"


def _identity(pod: JsonObject) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def _owner(obj: JsonObject) -> tuple[str, str]:
    """Kind and name of what controls it, and its uid; empty if nothing does."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return f"{owner.get('kind')}/{owner.get('name')}", str(owner.get("uid") or "")
    return "", ""


def _is_of_node(pod: JsonObject) -> bool:
    return _owner(pod)[0].startswith("Node/")


def label_of(labels: dict[str, str], names: tuple[str, ...]) -> str:
    return next((labels[name] for name in names if name in labels), "")
