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
