"""Packing: pods that fit on nodes that are there, or are on their way, need no new node."""

from collections.abc import Iterable

from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject

KINDS_PER_CONTROLLER = 10


def likeness(pod: PodInfo) -> JsonObject:
    """What two pods of a controller must have in common to be treated alike."""
    obj = pod.object
    spec = {field: value for field, value in obj["spec"].items() if field != "nodeName"}
    return {"labels": obj["metadata"].get("labels") or {}, "spec": spec}


def controller_of(pod: PodInfo) -> tuple[str, str]:
    """Uid and kind of the controller; empty if the pod has none."""
    for each in pod.object["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return str(each["uid"]), str(each["kind"])
    return "", ""


class Packing:
    """Remembers where pods fitted in the last loop."""

    def __init__(self) -> None:
        self._hints: dict[str, str] = {}

    def leftover(self, snapshot: ClusterSnapshot, pods: Iterable[PodInfo]) -> list[PodInfo]:
        """The pods that fit nowhere; the others are placed in the snapshot."""
        ordered = sorted(pods, key=lambda pod: -pod.priority)
        hopeless: dict[str, list[JsonObject]] = {}
        hints: dict[str, str] = {}
        left = []
        for pod in ordered:
            node = self._hinted(snapshot, pod) or self._anywhere(snapshot, pod, hopeless)
            if node:
                hints[pod.uid] = node
            else:
                left.append(pod)
        self._hints = hints
        return left

    def _hinted(self, snapshot: ClusterSnapshot, pod: PodInfo) -> str:
        node = self._hints.get(pod.uid, "")
        return node if node in snapshot and snapshot.place(pod, node).ok else ""

    def _anywhere(
        self, snapshot: ClusterSnapshot, pod: PodInfo, hopeless: dict[str, list[JsonObject]]
    ) -> str:
        uid, kind = controller_of(pod)
        like = likeness(pod)
        if uid and like in hopeless.get(uid, ()):
            return ""
        node = snapshot.place_anywhere(pod)
        known = hopeless.setdefault(uid, [])
        if not node and uid and kind != "DaemonSet" and len(known) < KINDS_PER_CONTROLLER:
            known.append(like)
        return node
