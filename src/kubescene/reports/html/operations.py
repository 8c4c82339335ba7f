"""What a scenario asked for in each step, in words."""

from typing import Any

from kubescene.reports.words import counted
from kubescene.types import JsonObject

LISTED = 4


def operations_by_step(spec: JsonObject | None) -> dict[int, tuple[str, ...]]:
    """A few operations of every step; the last line says how many more there are."""
    steps: dict[int, list[Any]] = {}
    for operation in (spec or {}).get("operations") or ():
        steps.setdefault(operation["step"], []).append(operation)
    return {step: tuple(told(operations)) for step, operations in steps.items()}


def told(operations: list[Any]) -> list[str]:
    lines = [told_operation(each) for each in operations[:LISTED]]
    left = len(operations) - LISTED
    return [*lines, f"and {counted(left, 'more operation')}"] if left > 0 else lines


def told_operation(operation: JsonObject) -> str:
    """``create 9 × Pod web-$(INDEX)``; an operation of another kind by its name alone."""
    kind = next((name for name in operation if name.endswith("Operation")), "")
    body = operation.get(kind) or {}
    verb = kind.removesuffix("Operation")
    if kind == "createOperation":
        made = body.get("object") or {}
        count = f"{body['count']} × " if body.get("count", 1) != 1 else ""
        return f"{verb} {count}{named(made, made.get('metadata') or {})}".rstrip()
    if kind == "advanceOperation":
        return f"let time pass: {body.get('duration', '')}".rstrip(": ")
    if kind == "doneOperation":
        return "done"
    return f"{verb} {named(body.get('typeMeta') or {}, body.get('objectMeta') or {})}".rstrip()


def named(kind: JsonObject, metadata: JsonObject) -> str:
    name = metadata.get("name") or metadata.get("generateName") or ""
    namespace = metadata.get("namespace", "")
    place = f"{namespace}/" if namespace and namespace != "default" else ""
    return f"{kind.get('kind', '')} {place}{name}".strip()
