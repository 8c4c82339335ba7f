"""Binding conditions: devices that have to be made ready before a pod may be bound."""

from kubescene.clock.timestamps import parse_time
from kubescene.scheduler.devices.named_claims import allocation_of
from kubescene.types import ReadOnlyObject


class BindingFailedError(Exception):
    """A device says that it cannot be made ready."""


def needs_binding(claim: ReadOnlyObject) -> bool:
    """Whether a device of the claim has to be made ready."""
    return any(each.get("bindingConditions") for each in _results(claim))


def is_ready(claim: ReadOnlyObject) -> bool:
    """Whether all devices of an allocated claim are ready; raises `BindingFailedError`."""
    if allocation_of(claim) is None:
        return False
    for result in _results(claim):
        if not result.get("bindingConditions"):
            continue
        conditions = _conditions(claim, result)
        if conditions is None:
            return False
        for name in result.get("bindingFailureConditions") or ():
            failed = conditions.get(name)
            if failed is not None and failed.get("status") == "True":
                raise BindingFailedError(_failure(claim, failed))
        if any(not _holds(conditions.get(name)) for name in result["bindingConditions"]):
            return False
    return True


def is_overdue(claim: ReadOnlyObject, timeout: int, now: int) -> bool:
    """Whether the devices of a claim have had more time than they may take."""
    since = (allocation_of(claim) or {}).get("allocationTimestamp")
    if since is None or not needs_binding(claim):
        return False
    return parse_time(since) + timeout < now


def _results(claim: ReadOnlyObject) -> tuple[ReadOnlyObject, ...]:
    return tuple(((allocation_of(claim) or {}).get("devices") or {}).get("results") or ())


def _conditions(claim: ReadOnlyObject, result: ReadOnlyObject) -> dict[str, ReadOnlyObject] | None:
    """What the driver says about a device of the claim; None if it says nothing yet."""
    for each in (claim.get("status") or {}).get("devices") or ():
        if all(each.get(part) == result.get(part) for part in ("driver", "pool", "device")):
            return {it.get("type", ""): it for it in each.get("conditions") or ()}
    return None


def _holds(condition: ReadOnlyObject | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _failure(claim: ReadOnlyObject, condition: ReadOnlyObject) -> str:
    reason, message = condition.get("reason") or "", condition.get("message") or ""
    name = claim["metadata"]["name"]
    return f'device binding failed: claim={name}, reason={reason}, message="{message}"'
