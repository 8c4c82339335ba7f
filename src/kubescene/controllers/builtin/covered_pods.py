"""The pods that one PodDisruptionBudget covers, counted pod by pod as changes arrive.

So a budget of ten thousand pods costs the same per change as one of ten.
"""

from msgspec import Struct

from kubescene.api.objects import Pod
from kubescene.api.selectors import LabelSelector
from kubescene.types import JsonObject


class CoveredPod(Struct, frozen=True):
    """What the counts need to know of a pod. ``owner`` refers to its controller, if it has one."""

    healthy: bool
    deleting: bool
    owner: JsonObject | None


def covered_pod(pod: JsonObject) -> CoveredPod:
    view = Pod(pod)
    healthy = view.is_ready and not view.is_deleting
    return CoveredPod(healthy, view.is_deleting, controller_of(pod))


def controller_of(obj: JsonObject) -> JsonObject | None:
    """The reference to the one that manages an object."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: JsonObject = reference
            return found
    return None


class CoveredPods:
    """Counts over the pods of one budget. Not ``filled``: those that were there before are not in.

    Whether a pod is covered is for the caller to find out, with ``selector``.
    """

    def __init__(self, selector: LabelSelector) -> None:
        self.selector = selector
        self.filled = False
        self.healthy = 0
        self._pods: dict[str, CoveredPod] = {}
        self._owners: dict[str, dict[str, None]] = {}

    def put(self, name: str, pod: CoveredPod) -> None:
        self.remove(name)
        self._pods[name] = pod
        self.healthy += pod.healthy
        if pod.owner is not None:
            self._owners.setdefault(pod.owner["uid"], {}).setdefault(name)

    def remove(self, name: str) -> None:
        pod = self._pods.pop(name, None)
        if pod is None:
            return
        self.healthy -= pod.healthy
        if pod.owner is not None:
            of_owner = self._owners[pod.owner["uid"]]
            del of_owner[name]
            if not of_owner:
                del self._owners[pod.owner["uid"]]

    def find(self, name: str) -> CoveredPod | None:
        return self._pods.get(name)

    def owners(self) -> list[tuple[JsonObject, str]]:
        """Each controller that has pods here, with the name of one of them."""
        found = []
        for names in self._owners.values():
            name = next(iter(names))
            owner = self._pods[name].owner
            assert owner is not None
            found.append((owner, name))
        return found

    def __len__(self) -> int:
        return len(self._pods)
