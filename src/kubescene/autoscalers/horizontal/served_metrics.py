"""The autoscaler of a run, and which metrics a world can serve it.

An autoscaler that asks for others is refused when it is created, by the field that does.
"""

from collections.abc import Sequence
from functools import lru_cache

from kubescene.autoscalers.horizontal.accepting import KIND, parsed
from kubescene.autoscalers.horizontal.autoscaler import HorizontalAutoscaler, Prepared, prepared
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.autoscalers.interfaces import HPA_V1, HPA_V2, HPA_V2BETA2, Autoscaler
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

CONTAINER = "container"
CONCURRENCY = "concurrent_requests"
RESOURCES = ("cpu", "memory")
MOST_KEPT = 16_384
"""Objects whose text is longer are read again each time."""

_VERSIONS = {
    HPA_V1: "autoscaling/v1",
    HPA_V2: "autoscaling/v2",
    HPA_V2BETA2: "autoscaling/v2beta2",
}


def created(
    autoscaler: Autoscaler, options: HorizontalOptions, resources: Sequence[str]
) -> HorizontalAutoscaler:
    """The autoscaler that an object asks for; ``resources`` are what the world measures."""
    if autoscaler.type not in _VERSIONS:
        known = ", ".join(_VERSIONS)
        raise ConfigurationError(f"type {autoscaler.type!r} is none of {known}")
    short = len(autoscaler.yaml) <= MOST_KEPT
    ready = (_prepared if short else _prepared.__wrapped__)(autoscaler, options)
    for number, metric in enumerate(ready.spec.metrics):
        _check_served(metric, resources, f"spec.metrics[{number}]")
    return HorizontalAutoscaler(ready, options)


@lru_cache(maxsize=64)
def _prepared(autoscaler: Autoscaler, options: HorizontalOptions) -> Prepared:
    """Kept, because a server or a sweep runs the same object many times."""
    return prepared(_completed(autoscaler), options)


def _completed(autoscaler: Autoscaler) -> JsonObject:
    """The object, with version, kind and name where they were left out: only the type matters."""
    obj = parsed(autoscaler.yaml)
    metadata = {"name": "hpa", **(obj.get("metadata") or {})}
    version = _VERSIONS[autoscaler.type]
    return {"apiVersion": version, "kind": KIND, **obj, "metadata": metadata}


def _check_served(metric: MetricSpec, resources: Sequence[str], path: str) -> None:
    if metric.type in ("Resource", "ContainerResource"):
        source = metric.type[0].lower() + metric.type[1:]
        if metric.name not in resources:
            raise ConfigurationError(
                f"{path}.{source}.name: {metric.name!r} is not measured here, only "
                f"{' and '.join(resources)}"
            )
        if metric.container not in ("", CONTAINER):
            raise ConfigurationError(
                f"{path}.{source}.container: pods have one container, {CONTAINER!r}, "
                f"not {metric.container!r}"
            )
    elif metric.type != "Pods":
        raise ConfigurationError(f"{path}.type: {metric.type} metrics are not measured here")
    elif metric.name != CONCURRENCY:
        raise ConfigurationError(
            f"{path}.pods.metric.name: {metric.name!r} is not measured here, only {CONCURRENCY!r}"
        )
