"""ResourceQuota: what would use more than a quota of its namespace allows is refused.

What is used stands in the status of the quota. It is raised here with every write that uses more
(`raised`, carried out once the write is made) and lowered by the controller, which counts again
when something goes. A quota whose status is empty has not been counted yet and refuses nothing.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from kubescene.api.quantity import Quantity, parse
from kubescene.api.quotas import (
    CLAIMS,
    NONE,
    PODS,
    QUOTAS,
    SERVICES,
    Usage,
    concerning,
    is_in_scope,
    unstated,
    usage_of,
)
from kubescene.api.scheme import GroupResource
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.store import Store
from kubescene.types import JsonObject


class QuotaExceededError(Exception):
    """A quota does not allow it; the message says which, and why."""


class QuotaCharge(Struct, frozen=True):
    """What a quota would have used, by those names that a write changes."""

    quota: str
    used: JsonObject


class ResourceQuota:
    name = "ResourceQuota"
    reads = (QUOTAS,)
    is_quiet = True

    def admit(self, request: AdmissionRequest) -> JsonObject:
        return request.obj

    def validate(self, request: AdmissionRequest) -> None:
        if not request.store.count(QUOTAS):
            return
        kind, now = request.resource_type, request.clock.now()
        resource = kind.group_resource
        if not is_counted(request.verb, request.subresource, resource):
            return
        try:
            raised(request.obj, request.old, resource, request.store, now)
        except QuotaExceededError as error:
            raise request.forbidden(str(error)) from None


def is_counted(verb: str, subresource: str, resource: GroupResource) -> bool:
    """Whether a write can use more than before: creations, and changes of what is measured."""
    if verb == "create":
        return not subresource
    if verb != "update":
        return False
    return (
        subresource == "resize"
        if resource == PODS
        else (not subresource and resource in (CLAIMS, SERVICES))
    )


def raised(
    obj: JsonObject, old: JsonObject | None, resource: GroupResource, store: Store, now: int
) -> list[QuotaCharge]:
    """What quotas will have used when an object is written, quota by quota in order of names.

    ``old`` is what it replaces: only what comes on top is charged. Raises `QuotaExceededError`.
    """
    namespace = obj["metadata"].get("namespace", "")
    quotas = [*pertinent(obj, resource, namespace, store)] if namespace else []
    if not quotas:
        return []
    asked = usage_of(obj, resource, now)
    if negative := sorted(name for name, amount in asked.items() if amount < NONE):
        raise QuotaExceededError(f"quota usage is negative for resource(s): {','.join(negative)}")
    more = {name: amount for name, amount in asked.items() if amount}
    if old is not None:
        before = usage_of(old, resource, now)
        grown = {name: amount - before.get(name, NONE) for name, amount in asked.items()}
        grown = {name: amount for name, amount in grown.items() if amount > NONE}
    charges = []
    for quota in quotas:
        was_in = old is not None and is_in_scope(old, resource, quota.get("spec") or {})
        if charge := charged(quota, grown if was_in else more):
            charges.append(charge)
    return charges


def pertinent(
    obj: JsonObject, resource: GroupResource, namespace: str, store: Store
) -> Iterator[JsonObject]:
    """The quotas that measure an object; it has to state what they limit."""
    for quota in map(store.decoded, store.list(QUOTAS, namespace)):
        status = quota.get("status") or {}
        limited = concerning(status.get("hard") or (), resource)
        if not limited or not is_in_scope(obj, resource, quota.get("spec") or {}):
            continue
        name = quota["metadata"]["name"]
        if resource == PODS and (missing := unstated(obj, limited)):
            raise QuotaExceededError(f"failed quota: {name}: must specify {missing}")
        if any(each not in (status.get("used") or ()) for each in limited):
            names = ",".join(sorted(limited))
            raise QuotaExceededError(f"status unknown for quota: {name}, resources: {names}")
        yield quota


def charged(quota: JsonObject, more: Usage) -> QuotaCharge | None:
    """What a quota will have used; None if it measures nothing of it."""
    status = quota["status"]
    hard = {name: parse(amount) for name, amount in status["hard"].items()}
    used = {name: parse(amount) for name, amount in status["used"].items()}
    asked = {name: amount for name, amount in more.items() if name in hard}
    total = {name: used.get(name, NONE) + amount for name, amount in asked.items()}
    exceeded = [name for name in sorted(asked) if total[name] > hard[name]]
    name = quota["metadata"]["name"]
    if exceeded:
        raise QuotaExceededError(
            f"exceeded quota: {name}, requested: {shown(asked, exceeded)}, "
            f"used: {shown(used, exceeded)}, limited: {shown(hard, exceeded)}"
        )
    return QuotaCharge(name, {each: str(total[each]) for each in sorted(total)}) if total else None


def shown(amounts: Mapping[str, Quantity], names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)
