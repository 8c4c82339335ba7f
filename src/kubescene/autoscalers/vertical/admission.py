"""What a pod gets when it is created: requests at the target, limits in proportion."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubescene.autoscalers.vertical.amounts import RESOURCES, proportional_limit
from kubescene.autoscalers.vertical.limits import (
    NO_LIMIT_RANGES,
    OBSERVED_CONTAINERS,
    Capped,
    ContainerResources,
    LimitRanges,
    amount_of,
    capped,
    containers_of,
    declared_resources,
    observed_text,
    resources_of,
)
from kubescene.autoscalers.vertical.objects import (
    NO_POLICY,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.types import JsonObject

UPDATES = "vpaUpdates"


class Admitted(NamedTuple):
    """What one pod gets, in the order of its containers, and what is to be said about it."""

    resources: tuple[ContainerResources, ...]
    notes: dict[str, list[str]]


def admitted(
    vpa: VerticalPodAutoscaler, pod: JsonObject, ranges: LimitRanges = NO_LIMIT_RANGES
) -> Admitted:
    """Requests and limits of a pod that is about to be created, the update mode aside.

    A container without a recommendation gets nothing.
    """
    fitted = capped(vpa, pod, ranges) if vpa.recommendations is not None else None
    notes = {name: list(said) for name, said in fitted.notes.items()} if fitted else {}
    default = ranges.container.default if ranges.container else None
    given = tuple(
        _given(container["name"], vpa, pod, fitted, default, notes)
        for container in containers_of(pod)
    )
    return Admitted(given, notes)


def resource_patches(
    vpa: VerticalPodAutoscaler, pod: JsonObject, ranges: LimitRanges = NO_LIMIT_RANGES
) -> list[JsonObject]:
    """The JSON patch that sets a new pod's resources and says so in an annotation.

    Items of the annotation are sorted, where upstream's order is that of a map.
    """
    made = admitted(vpa, pod, ranges)
    if vpa.update_mode == "Off":
        made = Admitted((ContainerResources(),) * len(made.resources), {})
    patches: list[JsonObject] = []
    updates = []
    for number, container in enumerate(containers_of(pod)):
        name = container["name"]
        own = list(_container_patches(number, resources_of(name, pod), made.resources[number]))
        if own:
            patches += own
            said = [*made.notes.get(name, ()), *_changed(made.resources[number])]
            updates.append(f"container {number}: " + ", ".join(sorted(said)))
    if updates:
        text = f"Pod resources updated by {vpa.name}: " + "; ".join(updates)
        patches.append(_annotation(UPDATES, text))
    return patches


def resize_patches(
    vpa: VerticalPodAutoscaler, pod: JsonObject, ranges: LimitRanges = NO_LIMIT_RANGES
) -> list[JsonObject]:
    """The JSON patch that the updater sends to a pod's ``resize`` subresource."""
    given = admitted(vpa, pod, ranges).resources
    return [
        patch
        for number, container in enumerate(containers_of(pod))
        for patch in _container_patches(number, declared_resources(container), given[number])
    ]


def pod_patches(
    vpa: VerticalPodAutoscaler, pod: JsonObject, ranges: LimitRanges = NO_LIMIT_RANGES
) -> list[JsonObject]:
    """All that admission changes on a pod: its resources, and the containers that it saw."""
    if vpa.update_mode == "Off":
        return []
    patches = resource_patches(vpa, pod, ranges)
    patches.append(_annotation(OBSERVED_CONTAINERS, observed_text(pod)))
    if (pod.get("metadata") or {}).get("annotations") is None:
        patches.insert(0, _add("/metadata/annotations", {}))
    return patches


def _given(
    name: str,
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    fitted: Capped | None,
    default: ResourceList | None,
    notes: dict[str, list[str]],
) -> ContainerResources:
    recommendation = fitted.of(name) if fitted else None
    if recommendation is None:
        return ContainerResources()
    target = recommendation.target
    # Upstream forgets the policy in mode Off, where nothing comes of it.
    policy = (vpa.policy_of(name) if vpa.update_mode != "Off" else None) or NO_POLICY
    if not policy.sets_limits:
        return ContainerResources(target)
    limits, said = _limits(resources_of(name, pod), target, default)
    if limits and said:
        notes.setdefault(name, []).extend(said)
    return ContainerResources(target, limits or None)


def _limits(
    has: ContainerResources, target: ResourceList | None, default: ResourceList | None
) -> tuple[ResourceList, list[str]]:
    limits, notes = ResourceList(), []
    for resource in RESOURCES:
        scaled = proportional_limit(
            resource,
            amount_of(has.limits, resource),
            amount_of(has.requests, resource),
            amount_of(target, resource),
            amount_of(default, resource),
        )
        if scaled.amount is not None:
            limits[resource] = scaled.amount
        if scaled.note:
            notes.append(scaled.note)
    return limits, notes


def _container_patches(
    number: int, has: ContainerResources, gets: ContainerResources
) -> Iterator[JsonObject]:
    below = f"/spec/containers/{number}/resources"
    if has.requests is None and has.limits is None:
        yield _add(below, {})
    for field, old, new in (
        ("requests", has.requests, gets.requests),
        ("limits", has.limits, gets.limits),
    ):
        if old is None and new:
            yield _add(f"{below}/{field}", {})
        for resource, amount in (new or {}).items():
            yield _add(f"{below}/{field}/{resource}", str(amount))


def _changed(gets: ContainerResources) -> Sequence[str]:
    requests = [f"{resource} request" for resource in gets.requests or ()]
    return requests + [f"{resource} limit" for resource in gets.limits or ()]


def _annotation(name: str, value: str) -> JsonObject:
    return _add("/metadata/annotations/" + name.replace("/", "~1"), value)


def _add(path: str, value: object) -> JsonObject:
    return {"op": "add", "path": path, "value": value}
