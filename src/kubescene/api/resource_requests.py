"""How much a pod asks for, by the arithmetic of kube-scheduler.

Containers add up; init containers run before them and only raise the floor, except sidecars
(``restartPolicy: Always``), which keep running and add up as well. Requests of the pod itself
replace those of its containers, and overhead comes on top. Sums are taken exactly, in nano-units,
and rounded up once at the end: cpu to thousandths, everything else to whole units. [R-1, S-5]

Scoring uses a second sum in which a container that asks for no cpu or memory counts as asking for
100m or 200Mi, so that pods without requests do not all pile up on one node. [R-2]

The quality-of-service class of a pod follows from its cpu and memory requests and limits.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from kubescene.api import quantity
from kubescene.api.quantity import MAX_INT64, Quantity, parse
from kubescene.bounded import KEPT
from kubescene.types import ReadOnlyObject

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024


_NANO = 10**9
_MILLI = 10**6
_BASIC = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
_DEFAULTS = {CPU: DEFAULT_MILLI_CPU * _MILLI, MEMORY: DEFAULT_MEMORY * _NANO}

_Amount = TypeVar("_Amount", int, Quantity)

Nanos: TypeAlias = dict[str, int]
"""Exact amounts by resource name, in nano-units."""

Amounts: TypeAlias = dict[str, int]
"""Rounded amounts by resource name: cpu in thousandths, the rest in whole units."""


def is_scalar(name: str) -> bool:
    """Resources that are counted beside the basic ones; any other name is ignored. [R-5]"""
    if name.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in name and ("kubernetes.io/" in name or not name.startswith("requests."))


def is_extended(name: str) -> bool:
    """A resource that Kubernetes itself knows nothing about, such as ``example.com/gpu``."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_counted(name: str) -> bool:
    return name in _BASIC or is_scalar(name)


def rounded(amounts: Mapping[str, int]) -> Amounts:
    """The counted resources among exact amounts, in the units of the scheduler."""
    return {name: _units(name, nanos) for name, nanos in amounts.items() if is_counted(name)}


def node_allocatable(node: ReadOnlyObject) -> Amounts:
    """What a node offers, its number of pods included: one answer for all that offer the same."""
    return _offered(*((node.get("status") or {}).get("allocatable") or {}).items())


@lru_cache(KEPT)
def _offered(*amounts_listed: tuple[str, str | int | float]) -> Amounts:
    listed = dict(amounts_listed)
    amounts = rounded(_nanos(listed))
    amounts[PODS] = parse(listed[PODS]).value() if PODS in listed else 0
    return amounts


def pod_requests(pod: ReadOnlyObject) -> Amounts:
    """What the pod takes from a node."""
    return rounded(_total(pod))


def exact_requests(pod: ReadOnlyObject) -> Nanos:
    """What the pod takes from a node, of every resource it names, before rounding."""
    return _total(pod)


def nonzero_requests(pod: ReadOnlyObject) -> tuple[int, int]:
    """Cpu and memory as scoring counts them for pods on a node. [R-3]"""
    total = _total(pod)
    defaults = _DEFAULTS
    if has_pod_level_requests(pod):
        defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in total}
    assumed = rounded(_total(pod, defaults=defaults)) if defaults else rounded(total)
    return assumed.get(CPU, 0), assumed.get(MEMORY, 0)


def scoring_requests(pod: ReadOnlyObject) -> Amounts:
    """The pod as NodeResourcesFit scores it: with defaults, blind to pod-level requests. [R-7]"""
    return rounded(_total(pod, defaults=_DEFAULTS, pod_level=False))


def names_its_requests(spec: ReadOnlyObject) -> bool:
    """Whether no default plays a part: every container says how much cpu and memory it asks for.

    Then scoring counts what the pod requests. Pods that request something themselves are left out.
    """
    containers = spec.get("containers") or ()
    if not containers or spec.get("resources"):
        return False
    for container in (*containers, *(spec.get("initContainers") or ())):
        asked = (container.get("resources") or {}).get("requests") or {}
        if CPU not in asked or MEMORY not in asked:
            return False
    return True


def resized(status: ReadOnlyObject) -> bool:
    """Whether a status reports resources, which then count beside those of the spec. [R-4]"""
    return "resources" in status or any("resources" in each for each in _statuses(status))


def _total(
    pod: ReadOnlyObject, *, defaults: Mapping[str, int] | None = None, pod_level: bool = True
) -> Nanos:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    total = _containers_total(spec, status, defaults or {})
    if pod_level and has_pod_level_requests(pod):
        total.update(_pod_level(spec, status))
    _add(total, _nanos(spec.get("overhead") or {}))
    return total


def _containers_total(
    spec: ReadOnlyObject, status: ReadOnlyObject, defaults: Mapping[str, int]
) -> Nanos:
    reported = {each.get("name", ""): each for each in _statuses(status) if each.get("resources")}
    infeasible = _resize_infeasible(status)
    return _together(
        spec,
        lambda container, stays: _container(
            container, reported if stays else {}, infeasible, defaults
        ),
    )


def needed_together(spec: ReadOnlyObject, side: str) -> dict[str, Quantity]:
    """What the containers state on one side, ``limits`` or ``requests``, taken together."""

    def stated(container: ReadOnlyObject, stays: bool) -> dict[str, Quantity]:
        del stays
        amounts = (container.get("resources") or {}).get(side) or {}
        return {name: parse(amount) for name, amount in amounts.items()}

    return _together(spec, stated)


def _together(
    spec: ReadOnlyObject, asked: Callable[[ReadOnlyObject, bool], dict[str, _Amount]]
) -> dict[str, _Amount]:
    """The most that containers need at any moment: all that stay (regular ones and sidecars), or
    an init container beside the sidecars started before it."""
    total: dict[str, _Amount] = {}
    for container in spec.get("containers") or ():
        _add(total, asked(container, True))
    sidecars: dict[str, _Amount] = {}
    floor: dict[str, _Amount] = {}
    for container in spec.get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"
        amounts = asked(container, stays)
        if stays:
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(floor, sidecars)
        else:
            _add(amounts, sidecars)
            _raise(floor, amounts)
    _raise(total, floor)
    return total


def _container(
    container: ReadOnlyObject,
    reported: Mapping[str, ReadOnlyObject],
    infeasible: bool,
    defaults: Mapping[str, int],
) -> Nanos:
    asked = _nanos((container.get("resources") or {}).get("requests") or {})
    if status := reported.get(container.get("name", "")):
        if infeasible:
            asked = {}
        _raise(asked, _nanos(status["resources"].get("requests") or {}))
        _raise(asked, _nanos(status.get("allocatedResources") or {}))
    for name, amount in defaults.items():
        asked.setdefault(name, amount)
    return asked


def _pod_level(spec: ReadOnlyObject, status: ReadOnlyObject) -> Nanos:
    asked = _nanos(spec["resources"].get("requests") or {})
    if reported := status.get("resources"):
        if _resize_infeasible(status):
            asked = {}
        _raise(asked, _nanos(reported.get("requests") or {}))
        _raise(asked, _nanos(status.get("allocatedResources") or {}))
    return {name: amount for name, amount in asked.items() if _settable_on_pod(name)}


def has_pod_level_requests(pod: ReadOnlyObject) -> bool:
    """Whether the pod itself asks for something that can be asked for by pods."""
    requests = ((pod.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return any(_settable_on_pod(name) for name in requests)


def _settable_on_pod(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _resize_infeasible(status: ReadOnlyObject) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _statuses(status: ReadOnlyObject) -> Iterable[Mapping[str, Any]]:
    yield from status.get("containerStatuses") or ()
    yield from status.get("initContainerStatuses") or ()


def _nanos(listed: ReadOnlyObject) -> Nanos:
    return {name: parse(amount).nanos for name, amount in listed.items()}


def _add(total: dict[str, _Amount], more: Mapping[str, _Amount]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, _Amount], floor: Mapping[str, _Amount]) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _units(name: str, nanos: int) -> int:
    return min(-(-nanos // (_MILLI if name == CPU else _NANO)), MAX_INT64)


_COMPUTE = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort; pod-level resources win where they are set."""
    parts = [spec["resources"]] if spec.get("resources") else _container_resources(spec)
    requests = [_positive(part.get("requests")) for part in parts]
    limits = [_positive(part.get("limits")) for part in parts]
    if not any(requests) and not any(limits):
        return "BestEffort"
    for asked, limited in zip(requests, limits, strict=True):
        if set(limited) != set(_COMPUTE) or any(
            name in asked and asked[name] != limited[name] for name in _COMPUTE
        ):
            return "Burstable"
    return "Guaranteed"


def _container_resources(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    return [container.get("resources") or {} for container in containers]


def _positive(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    values = (
        (name, quantity.milli_value(amounts[name]))
        for name in _COMPUTE
        if amounts and name in amounts
    )
    return {name: value for name, value in values if value > 0}
