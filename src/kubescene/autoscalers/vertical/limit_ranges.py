"""LimitRanges of a namespace, as the vertical pod autoscaler combines them."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubescene.api.quantity import ZERO, Quantity, parse
from kubescene.autoscalers.vertical.amounts import RESOURCES
from kubescene.autoscalers.vertical.objects import ResourceList
from kubescene.types import JsonObject


class LimitRange(NamedTuple):
    """The bounds of one type, container or pod. A list that is None was not given."""

    min: ResourceList | None = None
    max: ResourceList | None = None
    default: ResourceList | None = None


class LimitRanges(NamedTuple):
    """What holds in a namespace; None: nothing does."""

    container: LimitRange | None = None
    pod: LimitRange | None = None


NO_LIMIT_RANGES = LimitRanges()


def limit_ranges(objects: Iterable[JsonObject]) -> LimitRanges:
    """All LimitRange objects of a namespace combined: lowest max, highest min, last default.

    Of equal amounts the last one stays, which matters for how it is written.
    """
    items = [item for obj in objects for item in (obj.get("spec") or {}).get("limits") or ()]
    return LimitRanges(_combined(items, "Container"), _combined(items, "Pod"))


def amount_of(amounts: ResourceList | None, resource: str) -> Quantity:
    """The amount of a resource; 0 where none is said."""
    return ZERO if amounts is None else amounts.get(resource, ZERO)


def resource_list(amounts: JsonObject | None) -> ResourceList | None:
    """A resource list of an API object; None stays None."""
    if amounts is None:
        return None
    return ResourceList((name, parse(amount)) for name, amount in amounts.items())


def _combined(items: Iterable[JsonObject], kind: str) -> LimitRange | None:
    result = LimitRange()
    for item in items:
        if item.get("type") == kind:
            result = LimitRange(
                _picked(result.min, resource_list(item.get("min")), _higher),
                _picked(result.max, resource_list(item.get("max")), _lower),
                result.default if item.get("default") is None else resource_list(item["default"]),
            )
    return None if result == LimitRange() else result


def _picked(
    known: ResourceList | None,
    given: ResourceList | None,
    pick: Callable[[Quantity, Quantity], Quantity],
) -> ResourceList | None:
    if given is None or known is None:
        return known if given is None else given
    for resource in RESOURCES:
        if resource in given:
            amount = given[resource]
            known[resource] = pick(known[resource], amount) if resource in known else amount
    return known


def _lower(known: Quantity, given: Quantity) -> Quantity:
    return known if known < given else given


def _higher(known: Quantity, given: Quantity) -> Quantity:
    return known if known > given else given
