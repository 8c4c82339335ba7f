"""From what metrics.k8s.io says of pods to one value for each."""

from collections.abc import Iterable, Mapping

from kubescene.autoscalers.horizontal.grouping import Sample
from kubescene.autoscalers.horizontal.observing import PodMetrics


def resource_samples(
    items: Iterable[PodMetrics], resource: str, container: str = ""
) -> dict[str, Sample]:
    """Usage by pod, of one container or of all; pods that do not have it are left out."""
    samples: dict[str, Sample] = {}
    for item in items:
        value = _of_container(item, resource, container) if container else _of_pod(item, resource)
        if value is not None:
            samples[item.pod] = Sample(value, item.timestamp, item.window)
    return samples


def _of_pod(item: PodMetrics, resource: str) -> int | None:
    """The sum over containers; nothing if one of them has no value, or there is none."""
    total = 0
    for usage in item.containers.values():
        value = usage.get(resource)
        if value is None:
            return None
        total += value
    return total if item.containers else None


def _of_container(item: PodMetrics, resource: str, container: str) -> int | None:
    usage: Mapping[str, int] = item.containers.get(container) or {}
    return usage.get(resource)
