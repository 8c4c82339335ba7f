"""The updater's loop: pods whose size is wrong are evicted, or resized where they are."""

from collections.abc import Iterable, Mapping

from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupVersionKind
from kubescene.autoscalers.vertical.admission import admitted, resize_patches
from kubescene.autoscalers.vertical.controlling import Candidate, controlled_pods
from kubescene.autoscalers.vertical.evictions import ResizeAttempts
from kubescene.autoscalers.vertical.limits import (
    LimitRanges,
    containers_of,
    limit_ranges,
    resources_of,
)
from kubescene.autoscalers.vertical.objects import UPDATING_MODES, VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.autoscalers.vertical.targets import (
    WELL_KNOWN,
    TargetError,
    controller_of,
    selector_of,
    topmost_of,
)
from kubescene.autoscalers.vertical.updater import PodUpdate, update
from kubescene.client import ObjectRef
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.facts import SizesDecided
from kubescene.controllers.builtin.autoscaling.flags import VerticalSettings
from kubescene.controllers.builtin.autoscaling.vertical.objects import (
    Pods,
    WorkloadLookup,
    autoscalers,
    sizes,
)
from kubescene.errors import ApiError
from kubescene.recording import NORMAL, Notice, regarding
from kubescene.types import JsonObject, Nanoseconds

REPORTER = "vpa-updater"
LIMIT_RANGE = GroupVersionKind("", "v1", "LimitRange")
RESIZED_ANNOTATION = "vpaInPlaceUpdated"
ENDED = ("Succeeded", "Failed")


class Updating:
    """What the updater remembers: since when resizes are under way, and which were refused."""

    def __init__(self, context: ControllerContext, settings: VerticalSettings) -> None:
        self._context = context
        self._client = context.client
        self._options = UpdaterOptions(**settings.updater)
        self._workloads = WorkloadLookup(context.client)
        self._pods = Pods(context.client)
        self._attempts: dict[tuple[str, str], ResizeAttempts] = {}

    def forget(self, namespace: str, name: str) -> None:
        self._attempts.pop((namespace, name), None)

    def run(self, now: Nanoseconds) -> bool:
        objects: dict[tuple[str, str], JsonObject] = {}
        candidates: dict[str, list[Candidate]] = {}
        for obj, vpa in autoscalers(self._client):
            if vpa.update_mode not in UPDATING_MODES:
                continue
            try:
                selector = selector_of(vpa, self._workloads)
            except TargetError:
                continue
            objects[vpa.namespace, vpa.name] = obj
            candidates.setdefault(vpa.namespace, []).append(Candidate(vpa, selector))
        wrote = False
        for namespace, here in candidates.items():
            live = self._live(namespace)
            for vpa, pods in controlled_pods(live, here, self._topmost(namespace, live)):
                obj = objects[namespace, vpa.name]
                wrote = self._update(obj, vpa, pods, now) or wrote
        return wrote

    def _live(self, namespace: str) -> list[JsonObject]:
        """Pods that have a node, run, and are not on their way out."""
        return [
            record.decode()
            for record in self._pods.of(namespace)
            if record.node and record.phase not in ENDED and not record.deleting
        ]

    def _topmost(
        self, namespace: str, pods: Iterable[JsonObject]
    ) -> Mapping[tuple[str, str], tuple[str, str]]:
        owners = dict.fromkeys(owner for pod in pods if (owner := controller_of(pod)) is not None)
        return {
            (owner.kind, owner.name): topmost_of(owner, namespace, self._workloads)
            for owner in owners
        }

    def _update(
        self,
        obj: JsonObject,
        vpa: VerticalPodAutoscaler,
        pods: list[JsonObject],
        now: Nanoseconds,
    ) -> bool:
        ranges = limit_ranges(self._client.list(LIMIT_RANGE, namespace=vpa.namespace))
        hands = _Hands(self._context, obj, vpa, ranges)
        attempts = self._attempts.setdefault((vpa.namespace, vpa.name), ResizeAttempts())
        replicas = self._replicas(vpa.namespace, pods)
        done = update(vpa, pods, replicas, now, self._options, ranges, attempts, hands)
        hands.tell(done)
        return bool(done.evicted or done.resized)

    def _replicas(self, namespace: str, pods: Iterable[JsonObject]) -> dict[str, int]:
        """How many pods each controller should have; of a DaemonSet, how many are ready."""
        found: dict[str, int] = {}
        for owner in dict.fromkeys(controller_of(pod) for pod in pods):
            kind = None if owner is None else WELL_KNOWN.get(owner.kind)
            if owner is None or kind is None:
                continue
            workload = self._workloads.find(kind, owner.name, namespace)
            if workload is None:
                continue
            if owner.kind == "DaemonSet":
                count = (workload.get("status") or {}).get("numberReady")
            else:
                count = workload["spec"].get("replicas")
            if count:
                found[owner.name] = count
        return found


class _Hands:
    """Does what the loop decides about the pods of one VPA, and tells of it."""

    def __init__(
        self,
        context: ControllerContext,
        obj: JsonObject,
        vpa: VerticalPodAutoscaler,
        ranges: LimitRanges,
    ) -> None:
        self._context = context
        self._client = context.client
        self._obj = obj
        self._vpa = vpa
        self._ranges = ranges
        self._done: list[tuple[str, JsonObject]] = []

    def evict(self, pod: JsonObject) -> bool:
        try:
            self._client.evict(ObjectRef.to(_named(pod)))
        except ApiError:
            return False
        self._say(
            pod, "EvictedByVPA", "Pod was evicted by VPA Updater to apply resource recommendation."
        )
        name = pod["metadata"]["name"]
        told = f"VPA Updater evicted Pod {name} to apply resource recommendation."
        self._say(self._obj, "EvictedPod", told)
        self._done.append(("evicted", pod))
        return True

    def resize(self, pod: JsonObject) -> bool:
        patches = resize_patches(self._vpa, pod, self._ranges)
        ref = ObjectRef.to(_named(pod))
        try:
            self._client.patch(ref, patches, patch_type=PatchType.JSON, subresource="resize")
        except ApiError:
            return False
        try:
            noted = {"metadata": {"annotations": {RESIZED_ANNOTATION: "true"}}}
            self._client.patch(ref, noted, patch_type=PatchType.MERGE)
        except ApiError:  # as upstream: the resize counts all the same
            pass
        self._say(pod, "InPlaceResizedByVPA", "Pod was resized in place by VPA Updater.")
        self._done.append(("resized", pod))
        return True

    def tell(self, done: PodUpdate) -> None:
        """The facts, once the reasons are known."""
        target = self._vpa.spec.target_ref
        assert target is not None
        for action, pod in self._done:
            name = pod["metadata"]["name"]
            self._context.tell(
                SizesDecided(
                    self._vpa.namespace,
                    self._vpa.name,
                    f"{target.kind}/{target.name}",
                    name,
                    action,
                    sizes(pod, [resources_of(each["name"], pod) for each in containers_of(pod)]),
                    sizes(pod, admitted(self._vpa, pod, self._ranges).resources),
                    done.reasons.get(name, ""),
                )
            )

    def _say(self, obj: JsonObject, reason: str, message: str) -> None:
        if self._context.recorder.on:
            notice = Notice(regarding(_named(obj)), NORMAL, reason, message, REPORTER)
            self._context.recorder.tell(notice)


def _named(obj: JsonObject) -> JsonObject:
    """Pods are listed without saying what they are."""
    return obj if "kind" in obj else {"apiVersion": "v1", "kind": "Pod", **obj}
