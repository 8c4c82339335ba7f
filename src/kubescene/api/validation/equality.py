"""Whether two pieces of an object mean the same.

Absent, null and empty are one and the same, as they are once decoded by the server. So are a
missing field and its zero, except where absence has a meaning of its own. Quantities are equal
when their amounts are.
"""

import difflib
import json
from typing import Any

from kubescene.api.quantity import QuantityError, parse

# Fields that the API keeps apart from their zero (pointers, in the server's words).
_OPTIONAL = frozenset(
    {
        "activeDeadlineSeconds",
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "backoffLimit",
        "backoffLimitPerIndex",
        "completions",
        "defaultMode",
        "enableServiceLinks",
        "fsGroup",
        "hostUsers",
        "hostnameOverride",
        "immutable",
        "maxFailedIndexes",
        "mode",
        "optional",
        "parallelism",
        "preemptionPolicy",
        "priority",
        "privileged",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "runtimeClassName",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "storageClassName",
        "suspend",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "volumeAttributesClassName",
    }
)
_AMOUNTS = frozenset({"requests", "limits", "overhead", "capacity", "allocatable"})
_AMOUNT_FIELDS = frozenset({"sizeLimit", "divisor"})
# Maps from any text to any text: every entry counts.
_MAPS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector", "options"})
# Structs that are always there for the server, written down or not. Others are optional: an empty
# emptyDir is not the same as none.
_STRUCTS = frozenset(
    {"", "metadata", "resources", "securityContext", "spec", "strategy", "updateStrategy"}
)


def same(new: Any, old: Any, field: str = "") -> bool:
    """Deep equality by meaning; ``field`` is the name under which the values were found."""
    if new == old:
        return True
    if isinstance(new, dict) or isinstance(old, dict):
        return _same_map(new, old, field)
    if isinstance(new, list) or isinstance(old, list):
        return _same_list(new or [], old or [])
    if field in _AMOUNT_FIELDS:
        return _same_amount(new, old)
    return field not in _OPTIONAL and not new and not old


def _same_map(new: Any, old: Any, field: str) -> bool:
    if field in _MAPS:
        return not new and not old
    absent = new is None or old is None
    new, old = new or {}, old or {}
    if field in _AMOUNTS:
        return new.keys() == old.keys() and all(_same_amount(new[key], old[key]) for key in new)
    if absent and field not in _STRUCTS:
        return False
    return all(same(new.get(key), old.get(key), key) for key in new.keys() | old.keys())


def _same_list(new: Any, old: Any) -> bool:
    return len(new) == len(old) and all(map(same, new, old))


def _same_amount(new: Any, old: Any) -> bool:
    try:
        return parse(new or "0") == parse(old or "0")
    except QuantityError:
        return False


def show_difference(old: Any, new: Any) -> str:
    """A unified diff of two values as JSON, as it is appended to refusals of an update."""
    before, after = (
        json.dumps(value, indent=1, sort_keys=True).splitlines(keepends=True)
        for value in (old, new)
    )
    return "".join(list(difflib.unified_diff(before, after, n=3))[2:]) + "\n"
