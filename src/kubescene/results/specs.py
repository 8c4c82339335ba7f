"""The spec of a Scenario that was played, as far as those need it who tell what was asked for."""

from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.results.sources import RunSource
from kubescene.types import JsonObject

OPERATION = "Operation"
PARTS = ("object", "typeMeta", "objectMeta", "metadata")
"""Of an operation, and of the object in it: objects, where they are."""


def sound_spec(source: RunSource) -> JsonObject | None:
    """The spec of a run, if it is known; `ConfigurationError` for what was never played."""
    spec = source.spec
    if spec is not None and not _is_sound(spec):
        raise ConfigurationError(
            f"{source.place}: the spec of the Scenario beside it is damaged: play it again"
        )
    return spec


def _is_sound(spec: Any) -> bool:
    if not isinstance(spec, dict) or not isinstance(spec.get("simulation") or {}, dict):
        return False
    operations = spec.get("operations") or []
    return isinstance(operations, list) and all(map(_is_operation, operations))


def _is_operation(operation: Any) -> bool:
    if not isinstance(operation, dict) or not isinstance(operation.get("step"), int):
        return False
    bodies = [body for name, body in operation.items() if name.endswith(OPERATION)]
    return all(_holds_objects(body) for body in bodies)


def _holds_objects(body: Any) -> bool:
    return isinstance(body, dict) and all(
        isinstance(body[name], dict) and _holds_objects(body[name])
        for name in PARTS
        if body.get(name) is not None
    )
