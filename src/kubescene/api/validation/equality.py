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
        "immutable",
        "maxFailedIndexes",
        "mode",
        "optional",
        "parallelism",
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


def same(new: Any, old: Any, field: str = "") -> bool:
    """Deep equality by meaning; ``field`` is the name under which the values were found."""
    if new == old:
        return True
    if isinstance(new, dict) or isinstance(old, dict):
        return _same_map(new or {}, old or {}, field)
    if isinstance(new, list) or isinstance(old, list):
        return _same_list(new or [], old or [])
    if field in _AMOUNT_FIELDS:
        return _same_amount(new, old)
    return field not in _OPTIONAL and not new and not old


def _same_map(new: Any, old: Any, field: str) -> bool:
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return False
    if field in _AMOUNTS:
        return new.keys() == old.keys() and all(_same_amount(new[key], old[key]) for key in new)
    if bool(new) != bool(old) and field not in ("", "matchLabels", "labels", "annotations"):
        # An empty struct behind a pointer is not the same as none: emptyDir, podAntiAffinity.
        filled = new or old
        return field in _PLAIN_STRUCTS and all(same(filled[key], None, key) for key in filled)
    return all(same(new.get(key), old.get(key), key) for key in new.keys() | old.keys())


_PLAIN_STRUCTS = frozenset({"resources", "metadata", "spec", "strategy", "updateStrategy", "data"})


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
