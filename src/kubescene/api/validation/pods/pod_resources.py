"""Resources that a pod asks for as a whole, against what its containers ask for."""

from collections.abc import Iterable

from kubescene.api.quantity import Quantity, parse
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.resources import (
    ZERO,
    check_pod_resource_name,
    check_requirements,
    is_huge_page,
)
from kubescene.types import JsonObject


def check_pod_resources(
    resources: JsonObject, spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    """The pod must ask for at least as much as its containers do together."""
    at = path.child("resources")
    if (spec.get("os") or {}).get("name") == "windows":
        errors.forbidden(at, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        errors.forbidden(at.child("claims"), "claims may not be set for Resources at pod-level")
    check_requirements(resources, errors, at, check_name=check_pod_resource_name)
    _check_requests(resources.get("requests") or {}, spec, errors, at.child("requests"))
    limits = resources.get("limits") or {}
    _check_huge_page_limits(limits, spec, errors, at.child("limits"))
    _check_container_limits(limits, spec, errors, at.child("containers"))


def _check_requests(requests: JsonObject, spec: JsonObject, errors: ErrorList, path: Path) -> None:
    for name, total in aggregate(spec, "requests").items():
        if name in requests and total > parse(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.invalid(path.key(name), str(parse(requests[name])), detail)


def _check_huge_page_limits(
    limits: JsonObject, spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    for name, total in aggregate(spec, "limits").items():
        if is_huge_page(name) and name in limits and total > parse(limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.invalid(path.key(name), str(parse(limits[name])), detail)


def _check_container_limits(
    limits: JsonObject, spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    for position, container in enumerate(spec.get("containers") or ()):
        own = (container.get("resources") or {}).get("limits") or {}
        for name, amount in own.items():
            if name in limits and parse(amount) > parse(limits[name]):
                errors.invalid(
                    path.index(position).key(name).child("limits"),
                    str(parse(amount)),
                    f"must be less than or equal to pod limits of {parse(limits[name])}",
                )


def aggregate(spec: JsonObject, kind: str) -> dict[str, Quantity]:
    """The most that containers need at any moment: all regular ones and sidecars together, or
    an init container with the sidecars started before it."""
    total = _sum(spec.get("containers") or (), kind)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        need = _sum((container,), kind)
        if container.get("restartPolicy") == "Always":
            _add(total, need)
            _add(sidecars, need)
            need = dict(sidecars)
        else:
            _add(need, sidecars)
        peak = _maximum(peak, need)
    return _maximum(total, peak)


def _sum(containers: Iterable[JsonObject], kind: str) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for container in containers:
        amounts = (container.get("resources") or {}).get(kind) or {}
        _add(total, {name: parse(amount) for name, amount in amounts.items()})
    return total


def _add(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _maximum(left: dict[str, Quantity], right: dict[str, Quantity]) -> dict[str, Quantity]:
    return {name: max(left.get(name, ZERO), right.get(name, ZERO)) for name in {**left, **right}}
