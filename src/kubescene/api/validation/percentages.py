"""Values that are a count or a percentage: ``3`` or ``"25%"``."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import NOT_NEGATIVE
from kubescene.api.validation.names import percent


def check_int_or_percent(value: int | str, errors: ErrorList, path: Path) -> None:
    """Not negative, and if a text then a percentage."""
    if isinstance(value, str):
        errors.invalid_each(path, value, percent(value))
    elif value < 0:
        errors.invalid(path, value, NOT_NEGATIVE)


def check_percent_limit(value: int | str, errors: ErrorList, path: Path) -> None:
    if isinstance(value, str) and not percent(value) and number(value) > 100:
        errors.invalid(path, value, "must not be greater than 100%")


def number(value: int | str) -> int:
    """The count, or how many percent; text that is neither counts as zero."""
    if isinstance(value, int):
        return value
    text = value if percent(value) else value[:-1]
    try:
        return int(text)
    except ValueError:
        return 0
