"""Label selectors: are they well formed, and do they match the labels they should?"""

from kubescene.api.selectors import SelectorError, from_label_selector
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import check_labels
from kubescene.api.validation.names import label_key, label_value
from kubescene.types import JsonObject

NOT_AN_OPERATOR = "not a valid selector operator"
VALUES_REQUIRED = "must be specified when `operator` is 'In' or 'NotIn'"
VALUES_FORBIDDEN = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def check_label_selector(selector: JsonObject | None, errors: ErrorList, path: Path) -> None:
    """Keys, operators and values of a label selector; none is fine."""
    if not selector:
        return
    if labels := selector.get("matchLabels"):
        check_labels(labels, errors, path.child("matchLabels"))
    for position, requirement in enumerate(selector.get("matchExpressions") or ()):
        _check_requirement(requirement, errors, path.child("matchExpressions").index(position))


def _check_requirement(requirement: JsonObject, errors: ErrorList, path: Path) -> None:
    operator = requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.required(path.child("values"), VALUES_REQUIRED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.forbidden(path.child("values"), VALUES_FORBIDDEN)
    else:
        errors.invalid(path.child("operator"), operator, NOT_AN_OPERATOR)
    key = requirement.get("key", "")
    errors.invalid_each(path.child("key"), key, label_key(key))
    for position, value in enumerate(values):
        if complaints := label_value(value):
            errors.invalid_each(path.child("values").index(position), value, complaints)


def is_empty(selector: JsonObject) -> bool:
    return not (selector.get("matchLabels") or selector.get("matchExpressions"))


def is_readable(selector: JsonObject | None) -> bool:
    """Whether the selector can be evaluated at all, however odd it is."""
    try:
        from_label_selector(selector)
    except SelectorError:
        return False
    return True


def matches(selector: JsonObject | None, labels: dict[str, str]) -> bool:
    """Whether a readable selector selects these labels. A missing one selects nothing."""
    return from_label_selector(selector).matches(labels)
