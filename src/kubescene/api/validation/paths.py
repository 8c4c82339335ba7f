"""File paths inside pods: relative ones stay below where they start."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path


def check_no_backsteps(target: str, errors: ErrorList, path: Path) -> None:
    if ".." in target.split("/"):
        errors.invalid(path, target, "must not contain '..'")


def check_descending(target: str, errors: ErrorList, path: Path) -> None:
    """Relative, and never upwards."""
    if target.startswith("/"):
        errors.invalid(path, target, "must be a relative path")
    check_no_backsteps(target, errors, path)


def check_not_reserved(target: str, errors: ErrorList, path: Path) -> None:
    """Descending, and not one of the ``..name`` entries that kubelet keeps for itself."""
    check_descending(target, errors, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.invalid(path, target, "must not start with '..'")
