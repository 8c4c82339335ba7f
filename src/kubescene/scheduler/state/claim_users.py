"""Which nodes have pods that use a claim, or a disk of their own.

Kept by the `NodeTable` as pods come and go; pods without volumes cost nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kubescene.scheduler.state.change_log import ChangeLog, LogReader
from kubescene.scheduler.state.pods import PodInfo

DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Kinds of volumes that two pods of one node may not share as they like."""


class Move(NamedTuple):
    """A pod that uses volumes came to a node, or left it."""

    node: str
    pod: PodInfo
    change: int


class VolumeUsers:
    """Names of nodes, with the number of uses on each."""

    __slots__ = ("_claims", "_disks", "_log")

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], dict[str, int]] = {}
        self._disks: dict[str, int] = {}
        self._log: ChangeLog[Move] = ChangeLog()

    def count(self, node: str, pod: PodInfo, change: int) -> None:
        """A pod that uses volumes came to a node (1) or left it (-1)."""
        self._log.add(Move(node, pod, change))
        for volume in pod.signature.volumes:
            if (claim := volume.get("persistentVolumeClaim")) is not None:
                key = (pod.namespace, claim.get("claimName") or "")
                _add(self._claims.setdefault(key, {}), node, change)
                if not self._claims[key]:
                    del self._claims[key]
            elif any(kind in volume for kind in DISKS):
                _add(self._disks, node, change)

    def of_claim(self, namespace: str, name: str) -> Iterable[str]:
        return self._claims.get((namespace, name), ())

    def follow(self) -> LogReader[Move]:
        """Read where pods with volumes come and go."""
        return LogReader(self._log)

    def with_disks(self) -> Iterable[str]:
        return self._disks


def uses_claim(pod: PodInfo, name: str) -> bool:
    claims = (volume.get("persistentVolumeClaim") for volume in pod.signature.volumes)
    return any(claim is not None and claim.get("claimName") == name for claim in claims)


def _add(counts: dict[str, int], node: str, change: int) -> None:
    total = counts.get(node, 0) + change
    if total > 0:
        counts[node] = total
    else:
        counts.pop(node, None)
