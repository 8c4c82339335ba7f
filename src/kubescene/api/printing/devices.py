"""Rows of dynamic resource allocation: claims, slices, taint rules, pool requests."""

from kubescene.api.printing.tables import (
    AGE,
    NAME,
    NONE,
    Cells,
    TableColumns,
    age,
    condition,
    dig,
    integer,
    is_true,
    name_of,
    since,
    text,
)
from kubescene.types import JsonObject, Nanoseconds

_COUNTS = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")


def claim_row(claim: JsonObject, now: Nanoseconds) -> Cells:
    return [name_of(claim), _claim_state(claim), age(claim, now)]


def _claim_state(claim: JsonObject) -> str:
    is_deleted = dig(claim, "metadata.deletionTimestamp") is not None
    is_allocated = dig(claim, "status.allocation") is not None
    states = ["deleted"] if is_deleted else []
    if is_allocated:
        states.append("allocated")
        if dig(claim, "status.reservedFor"):
            states.append("reserved")
    return ",".join(states) or "pending"


def slice_row(resource_slice: JsonObject, now: Nanoseconds) -> Cells:
    return [
        name_of(resource_slice),
        dig(resource_slice, "spec.nodeName", ""),
        dig(resource_slice, "spec.driver", ""),
        dig(resource_slice, "spec.pool.name", ""),
        age(resource_slice, now),
    ]


def taint_rule_row(rule: JsonObject, now: Nanoseconds) -> Cells:
    taint = dig(rule, "spec.taint", {})
    added = taint.get("timeAdded")
    return [
        name_of(rule),
        taint.get("key", ""),
        taint.get("value", ""),
        taint.get("effect", ""),
        since(added, now) if added else "",
        age(rule, now),
    ]


def pool_request_row(request: JsonObject, now: Nanoseconds) -> Cells:
    status = request.get("status")
    shown = status is not None and not is_true(request, "Failed")
    pools = dig(request, "status.pools", ())
    counts = [str(sum(pool.get(count) or 0 for pool in pools)) for count in _COUNTS]
    errors = str(sum(pool.get("validationError") is not None for pool in pools))
    return [
        name_of(request),
        dig(request, "spec.driver", ""),
        *([*counts, errors] if shown else ["-"] * 5),
        dig(request, "status.poolCount", 0),
        _request_status(request),
        _completed(request, now),
    ]


def _request_status(request: JsonObject) -> str:
    if not is_true(request, "Complete"):
        return "Failed" if is_true(request, "Failed") else "Pending"
    listed, total = len(dig(request, "status.pools", ())), dig(request, "status.poolCount", 0)
    return f"Complete ({listed}/{total} pools)" if total > listed else "Complete"


def _completed(request: JsonObject, now: Nanoseconds) -> str:
    complete = condition(request, "Complete")
    if complete is None or not is_true(request, "Complete"):
        return NONE
    return since(complete.get("lastTransitionTime"), now)


CLAIM = TableColumns(
    (
        NAME,
        text("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
        AGE,
    ),
    claim_row,
)
SLICE = TableColumns(
    (
        NAME,
        text("Node", "@resource.v1.ResourceSliceSpec.nodeName"),
        text("Driver", "@resource.v1.ResourceSliceSpec.driver"),
        text("Pool", "@resource.v1.ResourcePool.name"),
        AGE,
    ),
    slice_row,
)
TAINT_RULE = TableColumns(
    (
        NAME,
        text("Key", "@resource.v1.DeviceTaint.key"),
        text("Value", "@resource.v1.DeviceTaint.value"),
        text("Effect", "@resource.v1.DeviceTaint.effect"),
        text("TimeAdded", "@resource.v1.DeviceTaint.timeAdded"),
        AGE,
    ),
    taint_rule_row,
)
POOL_REQUEST = TableColumns(
    (
        NAME,
        text("Driver", "The driver to query pools for."),
        text("Total", "Total number of devices across all pools."),
        text("Available", "Number of available devices across all pools."),
        text("Allocated", "Number of allocated devices across all pools."),
        text("Unavailable", "Number of unavailable devices across all pools."),
        text("Errors", "Number of pools with validation errors."),
        integer("Pools", "Total number of matching pools."),
        text("Status", "Processing status."),
        text("Completed", "Time since the observation completed."),
    ),
    pool_request_row,
)
