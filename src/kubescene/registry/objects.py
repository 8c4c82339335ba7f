"""Small copy-on-write steps on objects. Inputs are never changed."""

from collections.abc import Mapping
from typing import Any

from kubescene.types import JsonObject


def with_metadata(obj: JsonObject, **changes: Any) -> JsonObject:
    """A copy whose metadata has these members; a value of None removes the member."""
    metadata = {**obj.get("metadata", {}), **changes}
    return {**obj, "metadata": {k: v for k, v in metadata.items() if v is not None}}


def with_part(obj: JsonObject, part: str, value: Any) -> JsonObject:
    """A copy whose top-level ``part`` is ``value``; None removes it."""
    if value is None:
        return {k: v for k, v in obj.items() if k != part}
    return {**obj, part: value}


def set_condition(
    conditions: list[JsonObject], condition: Mapping[str, Any], now: str
) -> list[JsonObject]:
    """The conditions with one replaced or added; the transition time moves only with ``status``."""
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            same = old.get("status") == condition["status"]
            time = old.get("lastTransitionTime", now) if same else now
            updated = {**condition, "lastTransitionTime": time}
            return [*conditions[:index], updated, *conditions[index + 1 :]]
    return [*conditions, {**condition, "lastTransitionTime": now}]
