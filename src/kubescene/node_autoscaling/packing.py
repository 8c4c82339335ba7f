"""Packing: which pods find room on nodes that are there, or are on their way."""

from collections.abc import Callable, Iterable, Sequence

from kubescene.node_autoscaling.pods import KINDS_PER_CONTROLLER, SeenPod
from kubescene.node_autoscaling.snapshot import ClusterSnapshot


class Packing:
    """Remembers where pods fitted, from one loop to the next."""

    def __init__(self) -> None:
        self._hints: dict[str, str] = {}
        self._older: dict[str, str] = {}

    def leftover(self, snapshot: ClusterSnapshot, pods: Iterable[SeenPod]) -> list[SeenPod]:
        """The pods that fit nowhere, most important first; the others are placed."""
        ordered = sorted(pods, key=lambda pod: -pod.info.priority)
        placed = {pod.uid for pod in self.place_all(snapshot, ordered)}
        self.next_loop()
        return [pod for pod in ordered if pod.uid not in placed]

    def place_all(
        self,
        snapshot: ClusterSnapshot,
        pods: Sequence[SeenPod],
        among: Callable[[str], bool] | None = None,
        *,
        all_or_none: bool = False,
    ) -> list[SeenPod]:
        """The pods that found a place; ``all_or_none`` stops at the first that does not."""
        hopeless: dict[str, set[bytes]] = {}
        placed = []
        for pod in pods:
            node = self._hinted(snapshot, pod, among) or _anywhere(snapshot, pod, among, hopeless)
            if node:
                self._hints[pod.uid] = node
                placed.append(pod)
            elif all_or_none:
                break
        return placed

    def next_loop(self) -> None:
        """Forget where pods were placed before this loop."""
        self._older, self._hints = self._hints, {}

    def _hinted(
        self, snapshot: ClusterSnapshot, pod: SeenPod, among: Callable[[str], bool] | None
    ) -> str:
        node = self._hints.get(pod.uid) or self._older.get(pod.uid) or ""
        if node not in snapshot or (among is not None and not among(node)):
            return ""
        return node if snapshot.place(pod, node).ok else ""


def _anywhere(
    snapshot: ClusterSnapshot,
    pod: SeenPod,
    among: Callable[[str], bool] | None,
    hopeless: dict[str, set[bytes]],
) -> str:
    """Equal pods of a controller are not tried again after one that found no place."""
    uid = "" if pod.controller is None else pod.controller.uid
    known = hopeless.setdefault(uid, set())
    if uid and pod.likeness in known:
        return ""
    node = snapshot.place_anywhere(pod, among)
    if not node and uid and not pod.is_daemon and len(known) < KINDS_PER_CONTROLLER:
        known.add(pod.likeness)
    return node
