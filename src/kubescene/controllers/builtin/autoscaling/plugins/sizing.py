"""What becomes of a recommended size: who is resized, who is evicted, and what that says.

New pods get the target by admission (`kubescene.registry.admission`), which reads the status.
"""

from collections.abc import Iterable, Iterator, Mapping

from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.autoscalers.interfaces import (
    RecommendedPodResources,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.vertical.admission import admitted, resize_patches
from kubescene.autoscalers.vertical.amounts import as_quantity
from kubescene.autoscalers.vertical.limits import (
    LimitRanges,
    containers_of,
    declared_resources,
    limit_ranges,
)
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.autoscalers.vertical.plugged import as_vertical
from kubescene.autoscalers.vertical.updater import seed_rule
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.builtin.autoscaling.facts import SizesDecided
from kubescene.controllers.builtin.autoscaling.plugins.kinds import NAME
from kubescene.controllers.builtin.autoscaling.vertical.objects import sizes
from kubescene.controllers.reconcile import Evict, Patch, Write
from kubescene.recording import NORMAL, Notice, regarding
from kubescene.types import JsonObject

LIMIT_RANGE = GroupVersionKind("", "v1", "LimitRange")
LISTS = {"target": "target", "lowerBound": "lower_bound", "upperBound": "upper_bound"}


def recommendation_of(known: JsonObject, answer: Iterable[RecommendedPodResources]) -> JsonObject:
    """What the status says from now on; of a resource without an answer, what it has said."""
    lists: JsonObject = {name: dict(known.get(name) or {}) for name in LISTS}
    for each in answer:
        for name, field in LISTS.items():
            units = getattr(each, field)
            lists[name][each.resource_name] = str(as_quantity(each.resource_name, units))
    return lists


class SizedPods:
    """The pods of one object, when it has a recommendation for them."""

    def __init__(self, obj: JsonObject, pods: Mapping[str, Record], reader: Reader) -> None:
        self._obj = obj
        self._pods = pods
        self._reader = reader
        self.open: str = ""
        """Why the container of some pod is not known; empty if all are."""

    def writes(self, answer: VerticalRecommendationResponse, reason: str) -> Iterator[Write]:
        """Those who are resized come first, then those who go."""
        namespace = self._obj["metadata"]["namespace"]
        ranges = limit_ranges(self._reader.list(LIMIT_RANGE, namespace=namespace))
        evicted = self._outside() if answer.evict is None and answer.admit else answer.evict or ()
        for action, names in (("resized", answer.resize), ("evicted", evicted)):
            for pod, vpa in self._sized(names):
                yield from self._write(action, pod, vpa, ranges, reason)

    def _outside(self) -> list[str]:
        """An autoscaler that names nobody leaves it to the world: whoever is outside the bounds."""
        return [
            name for pod, vpa in self._sized(self._pods) for name in seed_rule(vpa, [pod]).evicted
        ]

    def _sized(self, names: Iterable[str]) -> Iterator[tuple[JsonObject, VerticalPodAutoscaler]]:
        """Those that are still there, each once, and what is recommended for them."""
        for name in dict.fromkeys(names):
            record = self._pods.get(name)
            if record is None:
                continue
            pod = {"apiVersion": "v1", "kind": "Pod", **record.decode()}
            try:
                vpa = as_vertical(self._obj, pod)
            except ValueError as error:
                self.open = self.open or str(error)
                continue
            if vpa is not None:
                yield pod, vpa

    def _write(
        self,
        action: str,
        pod: JsonObject,
        vpa: VerticalPodAutoscaler,
        ranges: LimitRanges,
        reason: str,
    ) -> Iterator[Write]:
        ref, gets = ObjectRef.to(pod), admitted(vpa, pod, ranges).resources
        has = list(map(declared_resources, containers_of(pod)))
        target = self._obj["spec"]["scaleTargetRef"]
        metadata = self._obj["metadata"]
        fact = SizesDecided(
            metadata["namespace"],
            metadata["name"],
            f"{target['kind']}/{target['name']}",
            ref.name,
            action,
            sizes(pod, has),
            sizes(pod, gets),
            reason,
        )
        told = f"Pod {ref.name} was {action}; reason: {reason or 'it was recommended'}"
        about = regarding(self._obj)
        if action == "evicted":
            yield Evict(ref, notice=Notice(about, NORMAL, "EvictedPod", told, NAME), fact=fact)
            return
        if any(_differ(old, new) for old, new in zip(has, gets, strict=True)):
            yield Patch(
                ref,
                resize_patches(vpa, pod, ranges),
                PatchType.JSON,
                "resize",
                Notice(about, NORMAL, "ResizedPod", told, NAME),
                fact=fact,
            )


def _differ(old: object, new: object) -> bool:
    """Whether what a container gets is not what it has."""
    return any(
        (getattr(old, name) or {}).get(resource) != amount
        for name in ("requests", "limits")
        for resource, amount in (getattr(new, name) or {}).items()
    )
