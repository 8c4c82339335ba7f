"""Rules of a job about which failures count and when it is a success."""

from kubescene.api.validation.field_errors import ErrorList, quote
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import NOT_NEGATIVE
from kubescene.api.validation.names import label_key, size
from kubescene.types import JsonObject

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_MAX_CONDITIONS = 20
_MAX_INDEXES_SIZE = 64 * 1024


def _listed(values: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(map(quote, values)) + "]"


def check_pod_failure_policy(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    rules, at = spec["podFailurePolicy"].get("rules") or (), path.child("rules")
    if len(rules) > _MAX_RULES:
        errors.too_many(at, len(rules), _MAX_RULES)
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {
        container.get("name")
        for field in ("containers", "initContainers")
        for container in pod.get(field) or ()
    }
    for position, rule in enumerate(rules):
        _check_action(rule.get("action", ""), spec, errors, at.index(position).child("action"))
        _check_rule(rule, names, errors, at.index(position))


def _check_action(action: str, spec: JsonObject, errors: ErrorList, path: Path) -> None:
    if not action:
        errors.required(path, _listed(_ACTIONS))
    elif action not in _ACTIONS:
        errors.not_supported(path, action, _ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.invalid(path, action, "requires the backoffLimitPerIndex to be set")


def _check_rule(rule: JsonObject, names: set[str | None], errors: ErrorList, path: Path) -> None:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if codes is not None:
        _check_exit_codes(codes, names, errors, path.child("onExitCodes"))
    if conditions:
        _check_conditions(conditions, errors, path.child("onPodConditions"))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.invalid_without_value(path, detail)
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.invalid_without_value(path, detail)


def _check_conditions(conditions: list[JsonObject], errors: ErrorList, path: Path) -> None:
    if len(conditions) > _MAX_CONDITIONS:
        errors.too_many(path, len(conditions), _MAX_CONDITIONS)
    for position, pattern in enumerate(conditions):
        at, kind = path.index(position), pattern.get("type", "")
        errors.invalid_each(at.child("type"), kind, label_key(kind))
        status = pattern.get("status", "")
        if not status:
            errors.required(at.child("status"), _listed(_STATUSES))
        elif status not in _STATUSES:
            errors.not_supported(at.child("status"), status, _STATUSES)


def _check_exit_codes(
    codes: JsonObject, names: set[str | None], errors: ErrorList, path: Path
) -> None:
    operator = codes.get("operator", "")
    if not operator:
        errors.required(path.child("operator"), _listed(_OPERATORS))
    elif operator not in _OPERATORS:
        errors.not_supported(path.child("operator"), operator, _OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in names:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.invalid(path.child("containerName"), name, detail)
    values, at = codes.get("values") or [], path.child("values")
    if not values:
        errors.invalid(at, codes.get("values"), "at least one value is required")
    elif len(values) > _MAX_EXIT_CODES:
        errors.too_many(at, len(values), _MAX_EXIT_CODES)
    _check_code_values(values, operator, errors, at)


def _check_code_values(values: list[int], operator: str, errors: ErrorList, path: Path) -> None:
    for position, code in enumerate(values):
        if operator == "In" and code == 0:
            errors.invalid(path.index(position), code, "must not be 0 for the In operator")
        if code in values[:position]:
            errors.duplicate(path.index(position), code)
    if sorted(values) != values:
        errors.invalid(path, values, "must be ordered")


def check_success_policy(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    rules, at = spec["successPolicy"].get("rules") or (), path.child("rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.required(at, detail)
    if len(rules) > _MAX_RULES:
        errors.too_many(at, len(rules), _MAX_RULES)
    for position, rule in enumerate(rules):
        _check_success_rule(rule, spec.get("completions") or 0, errors, at.index(position))


def _check_success_rule(rule: JsonObject, completions: int, errors: ErrorList, path: Path) -> None:
    count, indexes, total = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    if count is None and indexes is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.required(path, detail)
    if indexes is not None:
        total = _check_indexes(indexes, completions, errors, path.child("succeededIndexes"))
    if count is None:
        return
    at, limit = path.child("succeededCount"), "must be less than or equal to"
    if count < 0:
        errors.invalid(at, count, NOT_NEGATIVE)
    if count > completions:
        errors.invalid(at, count, f"{limit} {completions} (the number of specified completions)")
    if indexes is not None and count > total:
        what = "the number of indexes in the specified succeededIndexes field"
        errors.invalid(at, count, f"{limit} {total} ({what})")


def _check_indexes(indexes: str, completions: int, errors: ErrorList, path: Path) -> int:
    if size(indexes) > _MAX_INDEXES_SIZE:
        errors.too_long(path, _MAX_INDEXES_SIZE)
    try:
        return count_indexes(indexes, completions)
    except ValueError as error:
        errors.invalid(path, indexes, f"error parsing succeededIndexes: {error}")
        return 0


def count_indexes(indexes: str, completions: int) -> int:
    """How many indexes a text like ``1,3-5`` names; ValueError says what is wrong with it."""
    total, last = 0, -1
    for interval in indexes.split(",") if indexes else ():
        low, high = _parse_interval(interval, completions)
        if total and last >= low:
            raise ValueError(f"non-increasing order, previous: {last}, current: {low}")
        total, last = total + high - low + 1, high
    return total


def _parse_interval(interval: str, completions: int) -> tuple[int, int]:
    parts = interval.split("-")
    if len(parts) > 2:
        raise ValueError(
            f"the fragment {quote(interval)} violates the requirement that an index interval "
            "can have at most two parts separated by '-'"
        )
    numbers = []
    for part in parts:
        if not (part.isascii() and part.isdigit()):
            raise ValueError(f"cannot convert string to integer for index: {quote(part)}")
        if int(part) >= completions:
            raise ValueError(f"too large index: {quote(part)}")
        numbers.append(int(part))
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        raise ValueError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]
