"""``createOptions``, ``patchOptions`` and ``deleteOptions`` of operations.

They are passed through to the API. Unknown fields in an operation's object are a fault unless
``fieldValidation`` says otherwise: in a rehearsal a typo dropped in silence is a wrong answer.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.errors import ScenarioError

_TYPE_META = ("apiVersion", "kind")
FIELD_VALIDATION = ("Strict", "Warn", "Ignore")
PROPAGATION_POLICIES = ("Background", "Foreground", "Orphan")


def check_members(given: Any, allowed: Collection[str], where: str) -> Mapping[str, Any]:
    """An object that has no other members than these; a misspelt one is named."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ScenarioError("must be an object", where=where)
    if unknown := sorted(str(name) for name in given if name not in allowed):
        raise ScenarioError(
            f"unknown fields: {', '.join(unknown)}; known are: {', '.join(allowed)}", where=where
        )
    return given


def write_options(given: Any, where: str, *, patch: bool = False) -> WriteOptions:
    """``metav1.CreateOptions`` or ``metav1.PatchOptions``."""
    allowed = ["fieldManager", "fieldValidation", *_TYPE_META, *(["force"] if patch else [])]
    options = check_members(_without_dry_run(given, where), allowed, where)
    manager, validation = options.get("fieldManager", ""), options.get("fieldValidation", "Strict")
    if not isinstance(manager, str):
        raise ScenarioError("fieldManager must be text", where=where)
    if validation not in FIELD_VALIDATION:
        raise ScenarioError(
            f"fieldValidation must be one of {', '.join(FIELD_VALIDATION)}", where=where
        )
    return WriteOptions(
        field_manager=manager,
        force=options.get("force") is True,
        strict=validation == "Strict",
    )


def delete_options(given: Any, where: str) -> DeleteOptions:
    """``metav1.DeleteOptions``."""
    allowed = ("gracePeriodSeconds", "preconditions", "propagationPolicy", *_TYPE_META)
    options = check_members(_without_dry_run(given, where), allowed, where)
    place = f"{where}.preconditions"
    known = ("uid", "resourceVersion")
    preconditions = check_members(options.get("preconditions"), known, place)
    if not all(isinstance(value, str) for value in preconditions.values()):
        raise ScenarioError("uid and resourceVersion must be text", where=place)
    policy = options.get("propagationPolicy") or ""
    if policy and policy not in PROPAGATION_POLICIES:
        choices = ", ".join(PROPAGATION_POLICIES)
        raise ScenarioError(f"propagationPolicy must be one of {choices}", where=where)
    return DeleteOptions(
        grace_period_s=_grace(options.get("gracePeriodSeconds"), where),
        uid=preconditions.get("uid", ""),
        resource_version=preconditions.get("resourceVersion", ""),
        propagation_policy=policy,
    )


def _grace(given: Any, where: str) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ScenarioError(
            f"gracePeriodSeconds must be a whole number of at least 0, not {given!r}", where=where
        )
    return given


def _without_dry_run(given: Any, where: str) -> Any:
    if isinstance(given, Mapping) and "dryRun" in given:
        if given["dryRun"]:
            raise ScenarioError("dryRun makes no sense in a scenario: remove it", where=where)
        return {name: value for name, value in given.items() if name != "dryRun"}
    return given
