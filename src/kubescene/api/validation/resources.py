"""Resource names and amounts: requests, limits, overhead, capacity."""

from collections.abc import Callable
from typing import TypeAlias

from kubescene.api.quantity import Quantity, QuantityError, parse
from kubescene.api.resource_requests import needed_together
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import NOT_NEGATIVE
from kubescene.api.validation.names import dns_label, label_key
from kubescene.types import JsonObject

ResourceNameCheck: TypeAlias = Callable[[str, ErrorList, Path], None]

ZERO = parse("0")

_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES = _CONTAINER_RESOURCES | {
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
}
_INTEGER_RESOURCES = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_QOS_RESOURCES = frozenset({"cpu", "memory"})


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Resources without a domain, or in Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    if is_native(name) or name.startswith("requests."):
        return False
    return not label_key("requests." + name)


def allows_overcommit(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def _resource_complaints(name: str) -> tuple[str, ...]:
    if complaints := label_key(name):
        return complaints
    if "/" in name or name in _STANDARD_RESOURCES or is_quota_huge_page(name):
        return ()
    return ("must be a standard resource type or fully qualified",)


def is_quota_huge_page(name: str) -> bool:
    return name.startswith(("hugepages-", "requests.hugepages-"))


def _container_resource_complaints(name: str) -> tuple[str, ...]:
    complaints = _resource_complaints(name)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_page(name):
            return (*complaints, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*complaints, "doesn't follow extended resource name standard")
    return complaints


def check_resource_name(name: str, errors: ErrorList, path: Path) -> None:
    """Any resource that Kubernetes knows or somebody vouches for with a domain."""
    errors.invalid_each(path, name, _resource_complaints(name))


def check_container_resource_name(name: str, errors: ErrorList, path: Path) -> None:
    errors.invalid_each(path, name, _container_resource_complaints(name))


def check_pod_resource_name(name: str, errors: ErrorList, path: Path) -> None:
    """Only cpu, memory and huge pages may be asked for by a pod as a whole."""
    if complaints := _resource_complaints(name):
        errors.invalid_each(path, name, complaints)
    elif name not in _QOS_RESOURCES and not is_huge_page(name):
        errors.not_supported(path, name, ("cpu", "hugepages-", "memory"))


def check_quantity(name: str, amount: Quantity, errors: ErrorList, path: Path) -> None:
    """Not negative, and whole where only whole things exist."""
    if amount < ZERO:
        errors.invalid(path, str(amount), NOT_NEGATIVE)
    whole = name in _INTEGER_RESOURCES or is_extended(name)
    if whole and amount.milli_value() % 1000:
        errors.invalid(path, str(amount), "must be an integer")


def _is_plain_amount(name: str, text: str | int) -> bool:
    """Nothing can be wrong with this amount of an ordinary container resource."""
    return name in _CONTAINER_RESOURCES and not parse(text) < ZERO


def check_requirements(
    requirements: JsonObject,
    errors: ErrorList,
    path: Path,
    *,
    claim_names: frozenset[str] = frozenset(),
    check_name: ResourceNameCheck = check_container_resource_name,
) -> None:
    """Names and amounts of requests and limits, and that requests stay within limits."""
    limits = requirements.get("limits") or {}
    requests = requirements.get("requests") or {}
    if limits:
        _check_amounts(limits, check_name, errors, path.child("limits"))
    if requests:
        _check_amounts(requests, check_name, errors, path.child("requests"))
        for name, amount in requests.items():
            _check_within_limit(name, amount, limits, errors, path)
    names = {*limits, *requests}
    if any(map(is_huge_page, names)) and not names & _QOS_RESOURCES:
        errors.forbidden(path, "HugePages require cpu or memory")
    if claims := requirements.get("claims"):
        _check_claims(claims, claim_names, errors, path.child("claims"))


def _check_amounts(
    amounts: JsonObject, check_name: ResourceNameCheck, errors: ErrorList, path: Path
) -> None:
    for name, text in amounts.items():
        if check_name is check_container_resource_name and _is_plain_amount(name, text):
            continue
        at, amount = path.key(name), parse(text)
        check_name(name, errors, at)
        check_quantity(name, amount, errors, at)
        if is_huge_page(name) and not _is_divisible(name, amount):
            errors.invalid(at, str(amount), f"{amount} is not positive integer multiple of {name}")


def _is_divisible(name: str, amount: Quantity) -> bool:
    try:
        page = parse(name.removeprefix("hugepages-"))
    except QuantityError:
        return False
    if page <= ZERO or page.milli_value() % 1000:
        return False
    return amount.value() % page.value() == 0


def _check_within_limit(
    name: str, text: str, limits: JsonObject, errors: ErrorList, path: Path
) -> None:
    limit_text = limits.get(name)
    if limit_text is None:
        if not allows_overcommit(name):
            errors.required(
                path.child("limits"), "Limit must be set for non overcommitable resources"
            )
        return
    if text == limit_text:
        return
    amount, limit = parse(text), parse(limit_text)
    if not allows_overcommit(name) and (amount < limit or amount > limit):
        detail = f"must be equal to {name} limit of {limit}"
        errors.invalid(path.child("requests"), str(amount), detail)
    elif amount > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
        errors.invalid(path.child("requests"), str(amount), detail)


def _check_claims(
    claims: list[JsonObject], claim_names: frozenset[str], errors: ErrorList, path: Path
) -> None:
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        name, request = claim.get("name", ""), claim.get("request", "")
        at = path.index(position)
        if not name:
            errors.required(at)
            continue
        if name in seen:
            errors.duplicate(at, name)
        else:
            _check_claim_request(name, request, seen, errors, at)
        if name not in claim_names:
            known = ": " + ", ".join(sorted(claim_names)) if claim_names else " which is empty"
            errors.not_found(
                at, name, f"must be one of the names in pod.spec.resourceClaims{known}"
            )


def _check_claim_request(
    name: str, request: str, seen: set[str], errors: ErrorList, path: Path
) -> None:
    key = f"{name}/{request}" if request else name
    if request:
        errors.invalid_each(path.child("request"), request, dns_label(request))
    if key in seen:
        errors.duplicate(path, key)
    elif not request:
        for other in sorted(seen):
            if other.partition("/")[0] == name:
                errors.duplicate(path, name)
    seen.add(key)


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
    for name, total in needed_together(spec, "requests").items():
        if name in requests and total > parse(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.invalid(path.key(name), str(parse(requests[name])), detail)


def _check_huge_page_limits(
    limits: JsonObject, spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    for name, total in needed_together(spec, "limits").items():
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
