"""Looking whether expectations hold, when a scenario comes to its end.

A few hundred facts at a time, then one table or expectation after the other: a server has others to
answer meanwhile. Only those tables are made that an expression asks for.
"""

from collections.abc import Sequence

from kubescene.cel import DEFAULT_COST, EvaluationError, Program
from kubescene.results.expectations.compiling import Compiled, compiled
from kubescene.results.expectations.findings import Findings
from kubescene.results.expectations.variables import types_with
from kubescene.results.measures.own import OwnFunction
from kubescene.scenario.expectations import Ending, Expectation
from kubescene.timeline import Outcome, TimelineLog

COST_PER_ROW = 100
"""Work that an expression may do for each row of the tables that it asks for, beside the limit that
every expression has: looking once at each of 100,000 pods is fine, at each pair of them is not."""
HINTS = {"no such overload": ": one of its values is null, or of another type than expected"}
"""What to look for, where the language itself says little."""
SHOWN = 1000
"""Characters of a message."""


class ResultEvaluation:
    """Expectations about what a log says. Holds no closures: it is copied with the world."""

    def __init__(
        self,
        expectations: tuple[Expectation, ...],
        log: TimelineLog,
        ending: Ending,
        own: Sequence[OwnFunction] = (),
    ) -> None:
        names = types_with(own)
        self._expected = tuple(compiled(each, names) for each in expectations)
        self._findings = Findings(log, ending, own)
        self._outcomes: list[Outcome] = []

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return tuple(self._outcomes)

    def go_on(self) -> bool:
        if self._findings.read_on():
            return True
        rest = self._expected[len(self._outcomes) :]
        if rest and not self._findings.prepare(rest[0].program.names):
            self._outcomes.append(self._outcome(rest[0]))
        return len(self._outcomes) < len(self._expected)

    def _outcome(self, each: Compiled) -> Outcome:
        expected = each.expectation
        error = ""
        try:
            if self._value(each.program) is True:
                return Outcome(expected.name, expected.expression, True)
        except EvaluationError as problem:
            error = f"{problem}{HINTS.get(str(problem), '')}"
        return Outcome(expected.name, expected.expression, False, self._message(each), error)

    def _message(self, each: Compiled) -> str:
        """What the author wants to be told; what Kubernetes says where they are silent."""
        if each.message is not None:
            try:
                value = str(self._value(each.message)).strip()
            except EvaluationError:
                value = ""  # As in Kubernetes: then the plain message is told.
            if value:
                return value if len(value) <= SHOWN else f"{value[: SHOWN - 3]}..."
        expected = each.expectation
        return expected.message or f"failed expression: {expected.expression.strip()}"

    def _value(self, program: Program) -> object:
        values = self._findings.values(program.names)
        rows = sum(len(value) for value in values.values() if isinstance(value, list | dict))
        return program.evaluate(values, DEFAULT_COST + COST_PER_ROW * rows)
