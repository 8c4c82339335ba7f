"""The reference page of expectations, written from the variables."""

from collections.abc import Iterator
from inspect import cleandoc

from kubescene.results.expectations.variables import ALL, ROW_TYPES, cel_type, columns
from kubescene.results.ledger_entries import STATES

INTRODUCTION = """\
# Expectations

<!-- Made from results/expectations: pytest tests/results/test_expectations_page.py --update -->

`spec.expectations` of a [Scenario](scenario.md) says what must hold of its result:

```yaml
expectations:
- name: every pod has a node
  expression: pending.size() == 0
  messageExpression: '"these wait: " + pending.map(p, p.name).join(", ")'
- name: nodes keep a tenth of their cpu
  expression: nodes.all(n, n.cpu_utilization <= 0.9)
  message: the nodes are too full for comfort
```

| field | meaning |
|---|---|
| `name` | its name in all that is said about it; unique |
| `expression` | true or false, in [CEL](https://cel.dev) with the extensions of Kubernetes |
| `message` | told where it does not hold; otherwise the expression is |
| `messageExpression` | a text in CEL; where it has no value, `message` is told |

**Before the run**, in `kubescene validate`, `kubescene run`, and where a Scenario is created or
changed in a served cluster (422), expressions are compiled: a misspelled name or column, types that
do not fit, and an expression that is not true or false are faults, with file, line and column.

**When the scenario ends**, or pauses, they are looked at. An expression that has no value (no such
key, division by zero, a null where a number is needed) does not hold, and says why. A scenario that
failed is expected nothing of. One that pauses is looked at there and, if it goes on, again at its
end: the last outcome counts. Expectations may be changed while a Scenario is paused; they are then
looked at anew.

An expectation that does not hold tells the values that were seen: `3 <= 2` of
`pending.size() <= 2`, of `a && b` those of the part that is false, of `all` the first element for
which it is.

**Where outcomes are**: `status.expectations`, `expectations` in `summary.json`, the fact
`ExpectationsEvaluated` in the timeline, the end of the summary in the terminal, `--junit FILE`,
`run.expectations` in Python. `kubescene run` exits with 3 if the run itself was fine and an
expectation does not hold.

## Over virtual time

`series`, and the `series` of each workload, are lists of what was: a row counts from its `time_s`
until its `until_s`, where the next one begins, and there is one wherever something changed or a
step began. So nothing is between two rows, and the macros of the language say what must hold when:

| | expression |
|---|---|
| always | `series.all(s, s.pods_pending < 5)` |
| eventually | `workloads["default/web"].series.exists(s, s.available == 3)` |
| at a time | `series.at(duration("10m")).nodes == 3` |
| at the end of a step | `series.at(2).pods_pending == 0` |
| from then on | `series.since(duration("1m")).all(s, s.pods_pending == 0)` |
| between | `series.since(2).until(duration("10m")).all(s, s.nodes_ready == 3)` |

A moment is a duration since the run began, the same in seconds (columns `..._s`), or the number of
a major step. `since` begins with what counted at that moment; a step begins with the first of its
operations and ends when its time has passed. `until` a duration leaves that instant out, `until` a
step has its end. The series of the cluster begins with the run, when nothing is there yet; that of
a workload with its creation, when none of its pods is ready. `full_s` is when it had all its pods
for the first time, which is where most promises begin:

```yaml
- name: the shop stays up
  expression: >-
    workloads["default/shop"].series.since(workloads["default/shop"].full_s)
    .all(s, s.available >= 3)
```

What does not hold is told with the instant of the first row for which it is false:
`s = (step 2, +2m5s): 2 >= 3`. A moment after the end of the run is an error, and so is `full_s` of
a workload that never had all its pods: the expectation does not hold. Values are those that count
until the next row; `pods_pending_peak`, `least_available` and the like are of any moment of it,
also of those that took no time.

**Work is limited**: a million units for each expression (the limit of Kubernetes for device
selectors) and 100 for each row of the tables that it asks for. Looking at every pod is fine however
many there are; looking at every pair of pods is not where there are thousands.

## Measures of your own

`kubescene run`, `validate` and `matrix` take `--measure MODULE:FUNCTION` (`measures=[function]` in
Python, `kubescene_measures` in the configuration of pytest): expressions may then speak of
`measures.FUNCTION`, and one that nobody has brought along is a fault. [How they are
written](../guides/results.md#measures-of-your-own). They are asked when the scenario ends: tables,
facts and ledger of the run are there, explanations of attempts are not. If one raises, or gives
what is no number, no expectation that uses `measures` holds, and each says why. A scenario file
names functions nowhere, and a server knows none: code is chosen by whoever starts the run.

## Values

A value that may be absent is null (marked ?): `n.cpu_utilization == null || n.cpu_utilization <
0.9`. Numbers with a point are compared with such: `p.pending_s == 0.0`. Times are seconds of
virtual time since the run began; cpu is in thousandths of a core, memory in bytes. The `state` of a
pod is one of LISTED.
"""


def reference_page() -> str:
    """The page in Markdown."""
    states = ", ".join(f"`{state}`" for state in STATES)
    return "\n".join([INTRODUCTION.replace("LISTED", states), *_variables(), *_rows()])


def _variables() -> Iterator[str]:
    lines = "".join(f"| `{each.name}` | {each.type} | {each.about} |\n" for each in ALL)
    yield f"## Variables\n\n| name | type | meaning |\n|---|---|---|\n{lines}"


def _rows() -> Iterator[str]:
    for type, row in ROW_TYPES.items():
        cells = ", ".join(
            f"`{each.encode_name}` {cel_type(each.type)}{_optional(each.type)}"
            for each in columns(row)
        )
        about = cleandoc(row.__doc__ or "").replace("``", "`")
        yield f"### {type.name}\n\n{about}\n\n{cells}\n"


def _optional(told: object) -> str:
    kinds = [type(each).__name__ for each in getattr(told, "types", ())]
    return "?" if "NoneType" in kinds else ""
