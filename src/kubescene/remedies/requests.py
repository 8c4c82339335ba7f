"""Asking for less: for each resource that is short, the smallest reduction that helps.

Who asks for less fits wherever it did before, so the smallest reduction is found by halving: first
among the amounts by which nodes fall short, then, if one unit less would do as well, below. The
units are those of the scheduler, thousandths of a cpu and whole units of everything else.
"""

from collections.abc import Callable, Iterator, Sequence

from kubescene.api.copies import own_copy
from kubescene.api.quantity import Quantity, parse
from kubescene.api.resource_requests import CPU, is_extended, pod_requests
from kubescene.remedies.remedy import Edit, Remedy, RemedyKind, replaced, request_cost
from kubescene.remedies.trials import Trials
from kubescene.types import JsonObject

_MILLI = 10**6
_UNIT = 10**9


def requests(trials: Trials, reasons: frozenset[str]) -> Iterator[Remedy]:
    """For every resource that some node has too little of."""
    for resource, whole in trials.info.requests.items():
        if whole > 0 and f"Insufficient {resource}" in reasons:
            remedy = smallest(trials, resource, whole)
            if remedy is not None:
                yield remedy


def smallest(trials: Trials, resource: str, whole: int) -> Remedy | None:
    """The smallest reduction of one resource; None if not even asking for nothing helps."""
    own = own_requests(trials.pod).get(resource, 0)
    if own <= 0 or not trials.place(reduced(trials.pod, resource, own)):
        return None
    less = smallest_reduction(trials, resource, whole, own)
    pod = reduced(trials.pod, resource, less)
    text = f"request {amount(resource, less)} {resource} less: "
    text += f"{amount(resource, whole - less)} instead of {amount(resource, whole)}"
    edit: Edit = replaced(pod)
    cost, node = request_cost(less, whole), trials.place(pod)
    return Remedy(RemedyKind.REQUEST, trials.key, text, cost, node, (edit,))


def smallest_reduction(trials: Trials, resource: str, whole: int, own: int) -> int:
    """Between 1 and ``own``, which is known to help."""

    def helps(less: int) -> bool:
        return bool(trials.place(reduced(trials.pod, resource, less)))

    short = sorted({whole - node.free(resource) for node in trials.nodes})
    known = [less for less in short if 0 < less < own]
    found = first(known, helps)
    high = known[found] if found < len(known) else own
    low = known[found - 1] if found else 0
    if high - 1 > low and helps(high - 1):
        between = range(low + 1, high - 1)
        high = low + 1 + first(between, helps)
    return high


def first(candidates: Sequence[int], helps: Callable[[int], bool]) -> int:
    """The place of the first candidate that helps, where all after it do; the length if none."""
    low, high = 0, len(candidates)
    while low < high:
        middle = (low + high) // 2
        if helps(candidates[middle]):
            high = middle
        else:
            low = middle + 1
    return low


def own_requests(pod: JsonObject) -> dict[str, int]:
    """What the pod's containers ask for, without overhead, which its author cannot change."""
    spec = {name: value for name, value in pod["spec"].items() if name != "overhead"}
    return pod_requests({"spec": spec})


def reduced(pod: JsonObject, resource: str, less: int) -> JsonObject:
    """The pod with its whole request smaller by an amount: the greatest containers give first."""
    pod = own_copy(pod)
    spec, step = pod["spec"], _MILLI if resource == CPU else _UNIT
    whole = spec.get("resources") or {}
    if resource in (whole.get("requests") or {}):
        lower(whole, resource, less * step)
        return pod
    target = (own_requests(pod)[resource] - less) * step
    running = [each for each in spec.get("initContainers") or () if is_sidecar(each)]
    running += spec["containers"]
    over = sum(asked(each, resource) for each in running) - target
    for container in sorted(running, key=lambda each: -asked(each, resource)):
        given = max(min(asked(container, resource), over), 0)
        lower(container.get("resources") or {}, resource, given)
        over -= given
    for container in spec.get("initContainers") or ():
        if not is_sidecar(container):
            above = asked(container, resource) - target
            lower(container.get("resources") or {}, resource, max(above, 0))
    return pod


def is_sidecar(container: JsonObject) -> bool:
    return container.get("restartPolicy") == "Always"


def asked(container: JsonObject, resource: str) -> int:
    """In nano-units."""
    requests = (container.get("resources") or {}).get("requests") or {}
    return parse(requests[resource]).nanos if resource in requests else 0


def lower(resources: JsonObject, resource: str, nanos: int) -> None:
    """Take something off a request, in place; where request and limit must agree, off both."""
    for name in ("requests", "limits"):
        amounts = resources.get(name) or {}
        if nanos and resource in amounts and (name == "requests" or must_agree(resource)):
            before = parse(amounts[resource])
            left = Quantity(before.nanos - nanos, before.format)
            if left:
                amounts[resource] = str(left)
            else:
                del amounts[resource]


def must_agree(resource: str) -> bool:
    return is_extended(resource) or resource.startswith("hugepages-")


def amount(resource: str, units: int) -> str:
    """An amount in the scheduler's units, as people write it."""
    if resource == CPU:
        return str(Quantity(units * _MILLI))
    binary = parse("1Ki").format
    return str(Quantity(units * _UNIT, binary if "/" not in resource else parse("1").format))
