"""Looking whether expectations hold, when a scenario comes to its end.

A few hundred facts at a time, then one table or expectation after the other: a server has others to
answer meanwhile. Only those tables are made that an expression asks for (`ResultVariables`).

Of an expression that does not hold, what it saw is told: ``9 <= 6`` of ``preemptions.size() <= 6``.
Of ``a && b`` that part which is false is told, of ``all`` the first element for which it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from kubescene.cel import DEFAULT_COST, EvaluationError, Program
from kubescene.cel.formatting import quoted, shown
from kubescene.cel.nodes import (
    BinaryOperation,
    Logic,
    Macro,
    Negation,
    Quantifier,
    Scope,
    SyntaxNode,
)
from kubescene.cel.programs import keys_of
from kubescene.cel.values import NANOS, Value
from kubescene.durations import format_duration
from kubescene.errors import ConfigurationError
from kubescene.results.entries import Entries
from kubescene.results.expectations.compiling import Compiled, compiled
from kubescene.results.expectations.variables import MEASURES, VARIABLES, types_with
from kubescene.results.explaining import ExplainedAttempt
from kubescene.results.ledger import Ledger
from kubescene.results.measures import measures
from kubescene.results.measures.own import OwnFunction
from kubescene.results.sources import LogSource
from kubescene.scenario.expectations import Ending, Expectation
from kubescene.timeline import PLAIN_MESSAGE, Outcome, TimelineLog

COST_PER_ROW = 100
"""Work that an expression may do for each row of the tables that it asks for, beside the limit that
every expression has: looking once at each of 100,000 pods is fine, at each pair of them is not."""
HINTS = {"no such overload": ": one of its values is null, or of another type than expected"}
"""What to look for, where the language itself says little."""
SHOWN = 1000
"""Characters of a message."""
PIECE = 500
"""Facts: a few milliseconds."""
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")
LONGEST_VALUE = 80
LONGEST_LIST = 8
SERIES = "series"
NAMED = ("name", "pod", "step")
"""Members by which a row of a table is told from others."""


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
        self._findings = ResultVariables(log, ending, own)
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
        error = found = ""
        try:
            if self._value(each.program) is True:
                return Outcome(expected.name, expected.expression, True)
            found = seen(each.program, *self._given(each.program))
        except EvaluationError as problem:
            error = f"{problem}{HINTS.get(str(problem), '')}{self._meant(each.program)}"
        message = self._message(each)
        return Outcome(expected.name, expected.expression, False, message, error, found)

    def _meant(self, program: Program) -> str:
        """What may have been meant by a key that is not there."""
        for name, values in self._findings.made(program.names).items():
            for _, key in keys_of(program, name) if isinstance(values, dict) else ():
                near = get_close_matches(key, map(str, values), 1, cutoff=0.8)
                if key not in values and near:
                    return f": did you mean {quoted(near[0])}?"
        return ""

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
        return expected.message or f"{PLAIN_MESSAGE}{expected.expression.strip()}"

    def _value(self, program: Program) -> object:
        return program.evaluate(*self._given(program))

    def _given(self, program: Program) -> tuple[dict[str, Any], int]:
        """The values that a program asks for, and how much it may do with them."""
        values = self._findings.values(program.names)
        rows = sum(map(rows_in, values.values()))
        return values, DEFAULT_COST + COST_PER_ROW * rows


def rows_in(value: Value) -> int:
    """Rows of a table, and those of series in it."""
    if isinstance(value, dict):
        series = (row[SERIES] for row in value.values() if isinstance(row, dict) and SERIES in row)
        return len(value) + sum(map(len, series))
    return len(value) if isinstance(value, list) else 0


class EndingRun(LogSource):
    """A run that is about to end: its last fact is not written yet."""

    def __init__(self, log: TimelineLog, ending: Ending) -> None:
        super().__init__(log)
        self._ending = ending
        self._read_so_far = Ledger()

    @property
    def phase(self) -> str:
        return self._ending.phase

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        raise ConfigurationError(
            "attempts are not explained while expectations are looked at: take such a measure of "
            "the run directory (kubescene results --measure)"
        )

    def _read(self) -> Ledger:
        return self._read_so_far

    def end(self, ledger: Ledger) -> None:
        """All is read. Time may have passed since the last fact."""
        ledger.wait_until(self._ending.time)
        ledger.close()
        self._read_so_far = ledger


class ResultVariables:
    """The variables of one evaluation; each is made when an expression asks for it."""

    def __init__(self, log: TimelineLog, ending: Ending, own: Sequence[OwnFunction] = ()) -> None:
        self._log = log
        self._own = own
        self._length = len(log)
        self._position = 0
        self._entries = Entries()
        self._run = EndingRun(log, ending)
        self._made: dict[str, Any] = {}
        self._missing: dict[str, str] = {}
        """Why there is none of a variable."""

    def read_on(self) -> bool:
        """Read some facts; whether there was something to read."""
        if self._position > self._length:
            return False
        until = min(self._position + PIECE, self._length)
        for fact in self._log.read(self._position, until):
            self._entries.add(fact)
        self._position = until
        if until == self._length:
            self._position += 1
            self._run.end(self._entries.ledger)
        return True

    def prepare(self, names: Iterable[str]) -> bool:
        """Make one of these variables; whether one was missing."""
        known = self._made.keys() | self._missing.keys()
        missing = next((name for name in sorted(names) if name not in known), None)
        if missing is not None:
            self._make(missing)
        return missing is not None

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        """What expressions need; raises `EvaluationError` where a measure could not be taken."""
        while self.prepare(names):
            pass
        for name in sorted(self._missing.keys() & names):
            raise EvaluationError(self._missing[name])
        return {name: self._made[name] for name in sorted(names)}

    def made(self, names: Iterable[str]) -> dict[str, Any]:
        """Of these variables, those that were made."""
        return {name: self._made[name] for name in sorted(names) if name in self._made}

    def _make(self, name: str) -> None:
        try:
            if name == MEASURES:
                self._made[name] = measures(self._run, own=self._own)
            else:
                self._made[name] = VARIABLES[name].make(self._run)
        except ConfigurationError as error:
            self._missing[name] = str(error)  # a measure of somebody's own went wrong


def seen(program: Program, values: Mapping[str, Value], cost: int) -> str:
    """In words; empty if the expression says it all, or if it has no value."""
    try:
        told = ", ".join(_seen(program.root, program.scope(values, cost)))
    except EvaluationError:
        return ""
    return "" if told == program.source.strip() else told


def _seen(node: SyntaxNode, scope: Scope) -> Iterator[str]:
    """What stands on both sides of comparisons that make a part false."""
    if isinstance(node, Logic) and not node.decisive:
        for part in (node.left, node.right):
            if part.evaluate(scope) is not True:
                yield from _seen(part, scope)
                return
    elif isinstance(node, Logic):
        yield from _seen(node.left, scope)
        yield from _seen(node.right, scope)
    elif isinstance(node, BinaryOperation) and node.operator in COMPARISONS:
        left, right = (_told(each.evaluate(scope)) for each in (node.left, node.right))
        yield f"{left} {node.operator} {right}"
    elif isinstance(node, Negation) and node.operator == "!":
        yield from (f"!({told})" for told in _seen(node.operand, scope))
    elif isinstance(node, Quantifier) and not node.decisive:
        yield from _first_other(node, node.predicate, scope)


def _first_other(macro: Macro, predicate: SyntaxNode, scope: Scope) -> Iterator[str]:
    """The first element for which it is not so."""
    for inner in macro.scopes(scope):
        if predicate.evaluate(inner) is not True:
            told = ", ".join(_seen(predicate, inner))
            named = _name_of(inner.value(macro.name))
            yield f"{macro.name} = {named}{f': {told}' if told else ''}"
            return


def _name_of(element: Value) -> str:
    """A row by its name, or by when it was; other values as they are."""
    if isinstance(element, dict):
        if "until_s" in element:
            since = format_duration(round(element["time_s"] * NANOS))
            return f"(step {element['step']}, +{since})"
        return next((_told(element[key]) for key in NAMED if key in element), "{...}")
    return _told(element)


def _told(value: Value) -> str:
    if isinstance(value, list | dict) and len(value) > LONGEST_LIST:
        return f"{{{len(value)} elements}}"
    text = quoted(value) if isinstance(value, str) else shown(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
