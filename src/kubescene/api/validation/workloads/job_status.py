"""The status of a job: finishing is a one-way street.

Most rules are looked at only when a field they speak of changes, so that a status that went
wrong earlier does not block later, unrelated reports.
"""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import STATUS
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    check_not_negative,
    validate_metadata_update,
)
from kubescene.api.validation.workloads.failure_policies import count_indexes
from kubescene.types import JsonObject

_CONDITIONS = STATUS.child("conditions")
_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_FINAL = ("Failed", "Complete", "FailureTarget")
_CONTRADICTIONS = (
    ("Complete", "Failed"),
    ("Complete", "FailureTarget"),
    ("SuccessCriteriaMet", "Failed"),
    ("SuccessCriteriaMet", "FailureTarget"),
)
_PREREQUISITES = (("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet"))


def validate_job_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    now, before = new.get("status") or {}, old.get("status") or {}
    check_not_negative(now, _COUNTS, errors, STATUS)
    _check_uncounted(now, errors)
    if now.get("conditions") or before.get("conditions"):
        _check_conditions(_true_ones(now), _true_ones(before), errors)
    if now != before:
        _check_finished(new.get("spec") or {}, now, before, errors)
    _check_completion_time(now, before, errors)
    _check_indexes(new.get("spec") or {}, now, before, errors)
    _check_counters(new.get("spec") or {}, now, before, errors)
    _check_start_time(new.get("spec") or {}, now, before, errors)


def _true_ones(status: JsonObject) -> frozenset[str]:
    """The types of the conditions that are true."""
    return frozenset(
        [
            condition.get("type", "")
            for condition in status.get("conditions") or ()
            if condition.get("status") == "True"
        ]
    )


def _is_finished(status: JsonObject) -> bool:
    return not _true_ones(status).isdisjoint(("Complete", "Failed"))


def _check_uncounted(status: JsonObject, errors: ErrorList) -> None:
    uncounted = status.get("uncountedTerminatedPods") or {}
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for position, uid in enumerate(uncounted.get(field) or ()):
            at = STATUS.child("uncountedTerminatedPods").child(field).index(position)
            if not uid:
                errors.invalid(at, uid, "must not be empty")
            elif uid in seen:
                errors.duplicate(at, uid)
            seen.add(uid)


def _check_conditions(now: frozenset[str], before: frozenset[str], errors: ErrorList) -> None:
    """Of the conditions that are true, and those that were."""
    changed = now ^ before
    for first, second in _CONTRADICTIONS:
        always = first == "SuccessCriteriaMet"
        if now.issuperset((first, second)) and (always or first in changed or second in changed):
            detail = f"cannot set {first}=True and {second}=true conditions"
            errors.invalid_without_value(_CONDITIONS, detail)
    for kind, first in _PREREQUISITES:
        if kind in now and first not in now and not changed.isdisjoint((kind, first)):
            detail = f"cannot set {kind}=True condition without the {first}=true condition"
            errors.invalid_without_value(_CONDITIONS, detail)
    for kind in _FINAL:
        if kind in before and kind not in now:
            detail = f"cannot disable the terminal {kind}=True condition"
            errors.invalid_without_value(_CONDITIONS, detail)
    if "SuccessCriteriaMet" in before and "SuccessCriteriaMet" not in now:
        detail = "cannot disable the SuccessCriteriaMet=True condition"
        errors.invalid_without_value(_CONDITIONS, detail)


def _check_finished(
    spec: JsonObject, now: JsonObject, before: JsonObject, errors: ErrorList
) -> None:
    finished, turned = _is_finished(now), _is_finished(now) != _is_finished(before)

    def matters(field: str) -> bool:
        return finished and (turned or now.get(field) != before.get(field))

    for field in ("active", "terminating"):
        if matters(field) and (count := now.get(field) or 0) > 0:
            errors.invalid(STATUS.child(field), count, f"{field}>0 is invalid for finished job")
    never_ran = spec.get("suspend") is True and spec.get("completions") == 0
    if matters("startTime") and now.get("startTime") is None and not never_ran:
        errors.required(STATUS.child("startTime"), "startTime is required for finished job")
    uncounted = now.get("uncountedTerminatedPods") or {}
    if matters("uncountedTerminatedPods") and any(uncounted.values()):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        at = STATUS.child("uncountedTerminatedPods")
        errors.invalid(at, shown, "must be empty for finished job")
    ready, active = now.get("ready"), now.get("active", 0)
    moved = any(now.get(field) != before.get(field) for field in ("ready", "active"))
    if moved and ready is not None and ready > active:
        errors.invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active")


def _check_completion_time(now: JsonObject, before: JsonObject, errors: ErrorList) -> None:
    time, was, started = (
        now.get("completionTime"),
        before.get("completionTime"),
        now.get("startTime"),
    )
    complete, at = "Complete" in _true_ones(now), STATUS.child("completionTime")
    if time != was or complete != ("Complete" in _true_ones(before)):
        if time is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.invalid(at, time, detail)
        elif time is None and complete:
            errors.required(at, "completionTime is required for Complete jobs")
    moved = time != was or started != before.get("startTime")
    # RFC 3339 in UTC sorts by time.
    if moved and time is not None and started is not None and time < started:
        errors.invalid(at, time, "must be equal to or after `startTime`")
    if time is not None and was is not None and time != was:
        errors.invalid(at, time, IMMUTABLE)


def _check_indexes(
    spec: JsonObject, now: JsonObject, before: JsonObject, errors: ErrorList
) -> None:
    for field in ("completedIndexes", "failedIndexes"):
        indexes = now.get(field)
        if indexes == before.get(field) or indexes is None:
            continue
        at = STATUS.child(field)
        per_index = spec.get("backoffLimitPerIndex") is not None
        if spec.get("completions") is not None and (field == "completedIndexes" or per_index):
            try:
                count_indexes(indexes, spec["completions"])
            except ValueError as error:
                errors.invalid(at, indexes, f"error parsing {field}: {error}")
        if field == "failedIndexes" and not per_index:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            errors.invalid(at, indexes, detail)
        if field == "completedIndexes" and indexes and spec.get("completionMode") != "Indexed":
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            errors.invalid(at, indexes, detail)


def _check_counters(
    spec: JsonObject, now: JsonObject, before: JsonObject, errors: ErrorList
) -> None:
    elastic = spec.get("completionMode") == "Indexed" and (
        spec.get("completions") == spec.get("parallelism")
    )
    for field in ("failed", "succeeded"):
        scaled = field == "succeeded" and elastic
        if not scaled and (count := now.get(field, 0)) < before.get(field, 0):
            errors.invalid(STATUS.child(field), count, f"cannot decrease the {field} counter")


def _check_start_time(
    spec: JsonObject, now: JsonObject, before: JsonObject, errors: ErrorList
) -> None:
    started, was = now.get("startTime"), before.get("startTime")
    if was is None or started == was or spec.get("suspend"):
        return
    resumed = any(
        condition.get("type") == "Suspended" and condition.get("status") == "False"
        for condition in now.get("conditions") or ()
    )
    if not (resumed and "Suspended" in _true_ones(before)):
        detail = "field is immutable for unsuspended job once set"
        errors.invalid(STATUS.child("startTime"), started, detail)
