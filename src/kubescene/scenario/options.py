"""``createOptions``, ``patchOptions`` and ``deleteOptions`` of operations, as the API takes them.

Unknown fields in an operation's object are a fault unless ``fieldValidation`` says otherwise: in a
rehearsal a typo dropped in silence is a wrong answer. That the options themselves are sound has
been checked when the scenario was read.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.api.options import DeleteOptions, WriteOptions


def write_options(given: Mapping[str, Any] | None) -> WriteOptions:
    """``metav1.CreateOptions`` or ``metav1.PatchOptions``."""
    options = given or {}
    return WriteOptions(
        field_manager=options.get("fieldManager") or "",
        force=options.get("force") is True,
        strict=(options.get("fieldValidation") or "Strict") == "Strict",
    )


def delete_options(given: Mapping[str, Any] | None) -> DeleteOptions:
    """``metav1.DeleteOptions``."""
    options = given or {}
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        grace_period_s=options.get("gracePeriodSeconds"),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        propagation_policy=options.get("propagationPolicy") or "",
    )
