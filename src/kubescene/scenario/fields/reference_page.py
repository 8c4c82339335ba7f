"""The reference page of the Scenario, written from the table of fields."""

from collections.abc import Iterable, Iterator

from kubescene.scenario.fields.table import SCENARIO_FIELDS, Field, FieldType
from kubescene.scenario.validation.faults import expected

INTRODUCTION = """\
# The Scenario, field by field

<!-- Made from scenario/fields/table.py: pytest tests/scenario/test_schema.py --update -->

What a scenario file may hold. Everything that is not listed here is a fault, unless the options of
an operation say `fieldValidation: Warn` or `Ignore`. A field that is null counts as absent.
`kubescene validate FILE` lists all faults with line and column; `kubescene schema` prints the same
table as JSON Schema for editors. What a run writes is in
[the run directory](run-directory.md), what expressions may speak of in
[expectations](expectations.md).
"""

FILLED_IN = ("Set by the API", "Accepted empty", "As in Kubernetes; ")
"""How the meanings of fields begin that nobody writes by hand."""

STATUS = (
    (
        "phase",
        "`Pending`, `Running`, `Paused` (all played, none done), `Succeeded`, `Failed`",
    ),
    ("message", "why it failed: step, operation and fault"),
    ("stepStatus.step", "`major` and `minor`: where the scenario stands"),
    ("stepStatus.phase", "the phase of the step, see below"),
    ("stepStatus.runningSimulationController", "whose turn it is"),
    ("schedulerStatus", "the same in the words of the KEP's first draft"),
    (
        "step, stepPhase",
        "only of scenarios in the drafts' form (`events`): the major step, and the phase of the "
        "step in the words of the second draft (`OperatingEvents`, `OperatingEventsFinished`, "
        "`Scheduling`, `SchedulingFinished`, `Finished`)",
    ),
    ("ignoredOperations", "operations that are never played: too late, or after a done operation"),
    (
        "expectations",
        "what came of `spec.expectations`, at a pause and at the end: `name`, `expression`, "
        "`holds`, and where it does not hold `message` and `error`",
    ),
    (
        "outside",
        "how each of `spec.controllers.outside` was judged to have nothing left to do, at a pause "
        "and at the end: `name`, `kind`, `judgedBy`, `sameBytes` (whether another run will give "
        "the same), and if not `message`",
    ),
    ("scenarioResult.simulatorVersion", "the version of Kubescene"),
    ("scenarioResult.timeline", "what happened, by major step; in files only with `--full-status`"),
)
PHASES = (
    ("Operating", "the step's operations are carried out, then pre-simulation controllers react"),
    ("OperatingCompleted", "the first simulation controller that may have work is chosen"),
    ("ControllerRunning", "it runs one loop"),
    ("ControllerPaused", "it writes: minor step + 1, then pre-simulation controllers react"),
    ("ControllerCompleted", "it has nothing left to do"),
    ("Finished", "the step is at rest, its result is published"),
)


def reference_page() -> str:
    """The page in Markdown."""
    written = "Written by the engine; ignored on input."
    status = f"## status\n\n{written}\n\n{_table('field', STATUS)}"
    phases = f"## Phases of a step\n\n{_table('phase', PHASES)}"
    return "\n".join([INTRODUCTION, *_sections(SCENARIO_FIELDS, ""), status, phases])


def _table(head: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in rows)
    return f"| {head} | meaning |\n|---|---|\n{lines}"


def _sections(field: Field, path: str) -> Iterator[str]:
    """A table for an object with fields, then those of its members."""
    members = [member for member in field.fields if _is_told(member)]
    if members:
        title = f"## {path}" if path else "## Scenario"
        rows = "\n".join(_row(member) for member in members)
        head = "| field | type | meaning |\n|---|---|---|"
        yield f"{title}\n\n{field.about}\n\n{head}\n{rows}\n"
    for member in members:
        inner = member.items if member.items is not None else member
        name = f"{path}.{member.name}" if path else member.name
        if inner.fields and member.name not in ("events", "metadata", "object"):
            suffix = "[]" if member.items is not None else ""
            yield from _sections(inner, f"{name}{suffix}")


def _is_told(member: Field) -> bool:
    return not member.about.startswith(FILLED_IN)


def _row(field: Field) -> str:
    also = "".join(f", `{name}`" for name in field.also)
    kind = expected(field) if field.type is FieldType.WHOLE and field.least else str(field.type)
    kind = kind.replace("array", "list").replace("string", "text")
    needed = " **Required.**" if field.required else ""
    choices = (
        f" One of {', '.join(f'`{each}`' for each in field.choices)}." if field.choices else ""
    )
    default = f" Default: {field.default}." if field.default else ""
    return f"| `{field.name}`{also} | {kind} | {field.about}{choices}{default}{needed} |"
