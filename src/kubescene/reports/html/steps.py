"""What happened, step by step; of a very long run, several steps are one."""

from collections.abc import Sequence

from kubescene.reports.amounts import seconds, told_duration
from kubescene.reports.html.contents import StepView
from kubescene.reports.html.heat import binned
from kubescene.reports.words import counted
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import StepEntry
from kubescene.results.sources import RunSource
from kubescene.results.specs import sound_spec
from kubescene.types import JsonObject


def steps_of(source: RunSource, columns: Sequence[int]) -> tuple[StepView, ...]:
    """One for each column, which stands for the steps since the column before."""
    ledger, asked = source.ledger, operations_by_step(sound_spec(source))
    return tuple(
        told_step(
            entries, [each for entry in entries for each in asked.get(entry.major, ())], ledger
        )
        for entries in binned(ledger.steps, columns)
    )


def told_step(entries: Sequence[StepEntry], asked: Sequence[str], ledger: Ledger) -> StepView:
    last = entries[-1]
    passed = last.ended_time - (ledger.started_time or 0)
    return StepView(
        first=entries[0].major,
        step=last.major,
        time=f"+{told_duration(seconds(passed))}" if ledger.duration else "",
        minor=sum(each.minor for each in entries),
        operations=sum(each.operations for each in entries),
        writes=sum(each.controller_writes for each in entries),
        bound=sum(each.scheduled for each in entries),
        unschedulable=last.unschedulable,
        failed=sum(each.failed_attempts for each in entries),
        deleted=sum(each.deleted for each in entries),
        preempted=sum(each.preempted for each in entries),
        waiting=last.pending,
        nodes=last.totals.nodes,
        what=tuple(shortened(asked)),
    )


LISTED = 4


def operations_by_step(spec: JsonObject | None) -> dict[int, list[str]]:
    """The operations of every step, in words."""
    steps: dict[int, list[str]] = {}
    for operation in (spec or {}).get("operations") or ():
        steps.setdefault(operation["step"], []).append(told_operation(operation))
    return steps


def shortened(lines: Sequence[str]) -> list[str]:
    """A few of them; the last line says how many more there are, if one would not be enough."""
    left = len(lines) - LISTED
    return [*lines[:LISTED], f"and {counted(left, 'more operation')}"] if left > 1 else [*lines]


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
