"""The validation rules of a custom kind, asked about an object.

Each may do so much, and all together so much more (`MOST_OF_A_RULE`, `MOST_OF_AN_OBJECT`: those of
Kubernetes); whoever runs out of it is refused. A rule without ``oldSelf`` that fails for a part
that a change leaves as it was is a warning (ratcheting).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from kubescene.api.schemas.correlation import NO_OLD, is_unchanged, old_item
from kubescene.api.validation.field_errors import OMITTED, ErrorType, FieldError, quote
from kubescene.cel.errors import CostExceededError, EvaluationError
from kubescene.cel.programs import Program
from kubescene.cel.schema_rules import RuleNode, SchemaRule
from kubescene.cel.schema_values import value_of
from kubescene.cel.values import NONE, Optional, Value
from kubescene.types import JsonObject, JsonValue

MOST_OF_A_RULE = 1_000_000
MOST_OF_AN_OBJECT = 10_000_000
LONGEST_MESSAGE = 5 * 1024

NO_FURTHER = "no further validation rules will be run"
NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
_BLOCKING = frozenset(
    {
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    }
)
_BY_REASON = {
    "FieldValueForbidden": ErrorType.FORBIDDEN,
    "FieldValueRequired": ErrorType.REQUIRED,
    "FieldValueDuplicate": ErrorType.DUPLICATE,
}
NOWHERE = "<nil>"


class _OutOfBudgetError(Exception):
    """Nothing more is asked."""


class AskedPart(Struct, frozen=True):
    """A part of the object, what it was before, and the closest part above that can be compared.

    Of a list without keys nobody knows what an item was before: then the list is compared. The
    version and kind of an object (``is_new``) are never what they were: it is shown in any version.
    """

    path: str
    now: JsonValue
    before: JsonValue
    schema: JsonObject
    compared: "AskedPart | None" = None
    is_new: bool = False

    @property
    def is_unchanged(self) -> bool:
        if self.is_new:
            return False
        if self.before is not NO_OLD:
            return is_unchanged(self.now, self.before, self.schema)
        return self.compared is not None and self.compared.is_unchanged

    def below(
        self, step: str, now: JsonValue, before: JsonValue, schema: JsonObject
    ) -> "AskedPart":
        compared = self if self.before is not NO_OLD else self.compared
        path = step.removeprefix(".") if not self.path else self.path + step
        is_new = self.is_new or (self.compared is None and step in (".apiVersion", ".kind"))
        return AskedPart(path, now, before, schema, compared, is_new)


def rule_errors(
    new: JsonObject,
    old: JsonObject | None,
    node: RuleNode,
    found: list[FieldError],
    warn: Callable[[str], None],
) -> list[FieldError]:
    """What the rules say against an object; ``found`` is what was found wrong with it before."""
    if any(error.type in _BLOCKING for error in found):
        return [FieldError(ErrorType.INVALID, NOWHERE, None, NOT_CHECKED)]
    before = NO_OLD if old is None else old
    return _asked(AskedPart("", new, before, node.schema), node, RuleWalk(warn))


def default_errors(default: JsonValue, node: RuleNode, path: str) -> list[FieldError]:
    """What the rules say against a default, for an object that has it already and for a new one."""
    for before in (default, NO_OLD):
        if errors := _asked(AskedPart(path, default, before, node.schema), node, RuleWalk(None)):
            return errors
    return []


def _asked(place: AskedPart, node: RuleNode, asking: "RuleWalk") -> list[FieldError]:
    with suppress(_OutOfBudgetError):
        asking.ask(place, node)
    return asking.errors


class RuleWalk:
    """One walk over an object; without ``warn`` nothing is forgiven for being as it was."""

    def __init__(self, warn: Callable[[str], None] | None) -> None:
        self.errors: list[FieldError] = []
        self._warn = warn
        self._left = MOST_OF_AN_OBJECT

    def ask(self, place: AskedPart, node: RuleNode) -> None:
        """The rules of a part, then those of what is in it."""
        if place.now is None:
            return
        if node.rules:
            self._ask_rules(place, node)
        for below, inner in _parts(place, node):
            self.ask(below, inner)

    def _ask_rules(self, place: AskedPart, node: RuleNode) -> None:
        kind = node.schema.get("type") or ""
        if self._left <= 0:
            raise self._stopped(place, kind, _spent("validation"))
        values = _Values(place, node.seen)
        for rule in node.rules:
            if rule.problem:
                detail = f"rule compile error: {rule.problem}"
                self.errors.append(_error(place.path, kind, detail))
            elif rule.program is not None and (values.has_old or _asks_of_new(rule)):
                self._ask_rule(rule, rule.program, place, kind, values)

    def _ask_rule(
        self, rule: SchemaRule, program: Program, place: AskedPart, kind: str, values: "_Values"
    ) -> None:
        try:
            holds = self._evaluated(program, values.names(rule))
        except CostExceededError as error:
            self._check_left(place, kind)
            detail = f"'{error}': {NO_FURTHER} due to call cost exceeds limit for rule"
            raise self._stopped(place, kind, f"{detail}: {rule.told_as}") from None
        except EvaluationError as error:
            self._check_left(place, kind)
            self.errors.append(_error(place.path, kind, _failure(error, rule)))
            return
        self._check_left(place, kind)
        if holds is not True:
            self._refuse(rule, place, kind, values)

    def _check_left(self, place: AskedPart, kind: str) -> None:
        if self._left < 0:
            raise self._stopped(place, kind, _spent("validation"))

    def _evaluated(self, program: Program, names: dict[str, Value]) -> Value:
        scope = program.scope(names, MOST_OF_A_RULE)
        try:
            return program.root.evaluate(scope)
        finally:
            self._left -= MOST_OF_A_RULE - scope.meter.left

    def _stopped(self, place: AskedPart, kind: str, detail: str) -> _OutOfBudgetError:
        self.errors.append(_error(place.path, kind, detail))
        return _OutOfBudgetError()

    def _refuse(self, rule: SchemaRule, place: AskedPart, kind: str, values: "_Values") -> None:
        path = _joined(place.path, rule.field_path)
        error, goes_on = self._complaint(rule, place, kind, values, path)
        if self._warn is not None and not rule.uses_old and place.is_unchanged:
            self._warn(error.message)
        else:
            self.errors.append(error)
        if not goes_on:
            raise _OutOfBudgetError

    def _complaint(
        self, rule: SchemaRule, place: AskedPart, kind: str, values: "_Values", path: str
    ) -> tuple[FieldError, bool]:
        """The error of a rule that does not hold, and whether there is budget for others."""
        detail = ""
        if rule.message is not None:
            try:
                detail = _message(self._evaluated(rule.message, values.names(rule)))
            except CostExceededError:
                words = f"{NO_FURTHER} due to call cost exceeds limit for messageExpression"
                expression = quote(rule.source["messageExpression"])
                return _error(path, kind, f"{words}: {expression}"), False
            except EvaluationError:
                pass  # the rule's message stands in
            if self._left < 0:
                return _error(path, kind, _spent("messageExpression evaluation")), False
        if not detail:
            given = rule.source.get("message")
            detail = rule.told_as if given else f"failed rule: {rule.told_as}"
        shown = OMITTED if kind in ("object", "array") else place.now
        reason = _BY_REASON.get(rule.source.get("reason") or "", ErrorType.INVALID)
        if reason is ErrorType.DUPLICATE:
            detail = ""
        return FieldError(reason, path or NOWHERE, shown, detail), True


class _Values:
    """What rules at a place see; made when the first one asks."""

    def __init__(self, place: AskedPart, schema: JsonObject) -> None:
        self._place = place
        self._schema = schema
        self.has_old = place.before is not NO_OLD and place.before is not None

    def names(self, rule: SchemaRule) -> dict[str, Value]:
        """The values of the names that a rule may use."""
        names = {"self": value_of(self._place.now, self._schema)}
        if not rule.uses_old:
            return names
        old = value_of(self._place.before, self._schema) if self.has_old else None
        if rule.is_optional:
            return {**names, "oldSelf": Optional((old,)) if self.has_old else NONE}
        return {**names, "oldSelf": old}


def _asks_of_new(rule: SchemaRule) -> bool:
    """Whether a rule has something to say about a part that was not there before."""
    return not rule.uses_old or rule.is_optional


def _parts(place: AskedPart, node: RuleNode) -> Iterator[tuple[AskedPart, RuleNode]]:
    """What is in a part and has rules."""
    now, before = place.now, place.before
    if isinstance(now, list) and node.items is not None:
        for position, item in enumerate(now):
            old = old_item(item, node.schema, before)
            yield place.below(f"[{position}]", item, old, node.items.schema), node.items
    elif isinstance(now, dict):
        was: Any = before if isinstance(before, dict) else {}
        for name, member in now.items():
            old = was.get(name, NO_OLD)
            if node.additional is not None:
                at = place.below(f"[{name}]", member, old, node.additional.schema)
                yield at, node.additional
            elif (inner := node.properties.get(name)) is not None:
                yield place.below(f".{name}", member, old, inner.schema), inner


def _message(made: Value) -> str:
    """What a messageExpression gave, if it is fit to be shown."""
    text = made.strip() if isinstance(made, str) else ""
    return "" if "\n" in text or len(text.encode()) > LONGEST_MESSAGE else text


def _failure(error: EvaluationError, rule: SchemaRule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        return (
            f"'{text}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.told_as}"
        )
    return f"{text} evaluating rule: {rule.told_as}"


def _spent(what: str) -> str:
    return f"{what} failed due to running out of cost budget, {NO_FURTHER}"


def _joined(path: str, more: str) -> str:
    return f"{path}.{more}" if path and more else path or more


def _error(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorType.INVALID, path or NOWHERE, value, detail)
