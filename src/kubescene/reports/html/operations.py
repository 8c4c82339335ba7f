"""What a scenario asked for in each step, in words."""

from collections.abc import Sequence

from kubescene.reports.words import counted
from kubescene.types import JsonObject

LISTED = 4


def operations_by_step(spec: JsonObject | None) -> dict[int, list[str]]:
    """The operations of every step, in words."""
    steps: dict[int, list[str]] = {}
    for operation in (spec or {}).get("operations") or ():
        steps.setdefault(operation["step"], []).append(told_operation(operation))
    return steps


def shortened(lines: Sequence[str]) -> list[str]:
    """A few of them; the last line says how many more there are."""
    left = len(lines) - LISTED
    return [*lines[:LISTED], f"and {counted(left, 'more operation')}"] if left > 0 else [*lines]


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
