"""The parts of a compiled expression. Each knows how to find its value.

Nodes are immutable and hold nothing of the world, so programs are shared by all copies of one.
An `EvaluationError` stands for a value that does not exist; ``&&``, ``||``, ``all`` and ``exists``
can do without one of their values, as the language demands.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubescene.cel import costs
from kubescene.cel.costs import CostMeter
from kubescene.cel.errors import CostExceededError, EvaluationError, no_such_overload
from kubescene.cel.operators import OPERATORS, negate, sorted_by
from kubescene.cel.values import (
    NONE,
    Optional,
    TypedMap,
    Value,
    has_key,
    is_list,
    is_number,
    type_name,
)


class Scope:
    """The names that an expression may use where it stands."""

    __slots__ = ("_names", "_outer", "meter")

    def __init__(
        self, names: Mapping[str, Value], meter: CostMeter, outer: "Scope | None" = None
    ) -> None:
        self._names = names
        self._outer = outer
        self.meter = meter

    def value(self, name: str) -> Value:
        scope: Scope | None = self
        while scope is not None:
            if name in scope._names:
                return scope._names[name]
            scope = scope._outer
        raise EvaluationError(f"no such attribute(s): {name}")

    def outermost(self) -> "Scope":
        """Without the names that macros have given."""
        scope = self
        while scope._outer is not None and scope._outer._outer is not None:
            scope = scope._outer
        return scope

    def inner(self, name: str, value: Value) -> "Scope":
        return Scope({name: value}, self.meter, self)


class DefaultMap(dict[str, Value]):
    """A map in which every key can be selected; those it lacks have a default value."""

    __slots__ = ("default",)

    def __init__(self, values: Mapping[str, Value], default: Value) -> None:
        super().__init__(values)
        self.default = default


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A part of an expression; ``offset`` is where it stands in the text."""

    offset: int

    def evaluate(self, scope: Scope) -> Value:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Literal(SyntaxNode):
    value: Value

    def evaluate(self, scope: Scope) -> Value:
        return self.value


@dataclass(frozen=True, slots=True)
class Name(SyntaxNode):
    """A name; with a dot in front it is one of the world outside, whatever macros call so."""

    name: str
    is_absolute: bool = False

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(1)
        return (scope.outermost() if self.is_absolute else scope).value(self.name)


@dataclass(frozen=True, slots=True)
class Select(SyntaxNode):
    """``operand.field``; of something optional, the result is optional as well."""

    operand: SyntaxNode
    field: str
    is_optional: bool = False

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(_qualified(self.operand))
        return _taken(self.operand.evaluate(scope), self.field, self.is_optional)


@dataclass(frozen=True, slots=True)
class IndexAccess(SyntaxNode):
    """``operand[key]``"""

    operand: SyntaxNode
    key: SyntaxNode
    is_optional: bool = False

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(_qualified(self.operand))
        operand = self.operand.evaluate(scope)
        return _taken(operand, self.key.evaluate(scope), self.is_optional)


@dataclass(frozen=True, slots=True)
class Has(SyntaxNode):
    """``has(operand.field)``"""

    operand: SyntaxNode
    field: str

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(1)
        operand = self.operand.evaluate(scope)
        if isinstance(operand, Optional):
            return bool(operand.values) and _found(operand.value, self.field)
        return _found(operand, self.field)


@dataclass(frozen=True, slots=True)
class BinaryOperation(SyntaxNode):
    """An operator with two sides, both of which must have a value."""

    operator: str
    left: SyntaxNode
    right: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        try:
            left, right = self.left.evaluate(scope), self.right.evaluate(scope)
        except EvaluationError:
            scope.meter.charge(1)
            raise
        scope.meter.charge(costs.of_operation(self.operator, left, right))
        return OPERATORS[self.operator](left, right)


@dataclass(frozen=True, slots=True)
class Negation(SyntaxNode):
    """``!operand`` or ``-operand``"""

    operator: str
    operand: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(1)
        value = self.operand.evaluate(scope)
        if self.operator == "-":
            return negate(value)
        return not _truth(value)


@dataclass(frozen=True, slots=True)
class Logic(SyntaxNode):
    """``&&`` and ``||``: one side may decide alone, even if the other one has no value."""

    decisive: bool
    left: SyntaxNode
    right: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        verdict = _Verdict(self.decisive)
        if verdict.reached(self.left, scope) or verdict.reached(self.right, scope):
            return self.decisive
        return verdict.otherwise()


@dataclass(frozen=True, slots=True)
class Conditional(SyntaxNode):
    condition: SyntaxNode
    then: SyntaxNode
    otherwise: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        chosen = self.then if _truth(self.condition.evaluate(scope)) else self.otherwise
        return chosen.evaluate(scope)


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a list or map; an optional one is left out if it has no value."""

    value: SyntaxNode
    key: SyntaxNode | None = None
    is_optional: bool = False

    def evaluated(self, scope: Scope) -> Iterator[Value]:
        value = self.value.evaluate(scope)
        if not self.is_optional:
            yield value
        elif isinstance(value, Optional):
            yield from value.values
        else:
            raise EvaluationError("cannot initialize optional list element from non-optional value")


@dataclass(frozen=True, slots=True)
class ListLiteral(SyntaxNode):
    elements: tuple[Element, ...]

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.LIST)
        return [value for element in self.elements for value in element.evaluated(scope)]


@dataclass(frozen=True, slots=True)
class MapLiteral(SyntaxNode):
    elements: tuple[Element, ...]

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.MAP)
        made: dict[tuple[bool, Any], Value] = {}
        for element in self.elements:
            assert element.key is not None
            key = element.key.evaluate(scope)
            if not isinstance(key, str | int):
                raise EvaluationError(f"unsupported key type: {type_name(key)}")
            if (type(key) is bool, key) in made:
                raise EvaluationError(f"Failed with repeated key {_shown(key)}")
            for value in element.evaluated(scope):
                made[type(key) is bool, key] = value
        return _map_of(made)


class BuiltMessage(dict[str, Value]):
    """A value of a named type; its members are those that were given."""

    __slots__ = ("of",)

    def __init__(self, of: str, members: Mapping[str, Value]) -> None:
        super().__init__(members)
        self.of = of


@dataclass(frozen=True, slots=True)
class MessageLiteral(SyntaxNode):
    """``Name{member: value}``, where the language is given types that can be built."""

    of: str
    members: tuple[Element, ...]

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.MESSAGE)
        made: dict[str, Value] = {}
        for member in self.members:
            assert isinstance(member.key, Literal)
            for value in member.evaluated(scope):
                made[member.key.value] = value
        return BuiltMessage(self.of, made)


@dataclass(frozen=True, slots=True)
class FunctionCall(SyntaxNode):
    """A function or method; the target of a method is its first argument."""

    name: str
    function: Callable[..., Value]
    arguments: tuple[SyntaxNode, ...]
    is_method: bool

    def evaluate(self, scope: Scope) -> Value:
        arguments = [each.evaluate(scope) for each in self.arguments]
        scope.meter.charge(costs.of_call(self.name, arguments))
        made = self.function(*arguments)
        scope.meter.charge(costs.of_result(self.name, made))
        return made


# -- macros: they bind a name and evaluate a part of the expression for it ---------------------


@dataclass(frozen=True, slots=True)
class Macro(SyntaxNode):
    """``range.macro(name, ...)``, or ``range.macro(name, second, ...)`` if there is a second name.

    One name stands for an element of a list or a key of a map; two for an index and its element, or
    for a key and its value.
    """

    range: SyntaxNode
    name: str
    second: str = field(default="", kw_only=True)

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """One scope per element of a list or key of a map."""
        over = self.range.evaluate(scope)
        for at, element in enumerate(_elements(over)):
            yield self.inner(scope, over, at, element)

    def inner(self, scope: Scope, over: Value, at: int, element: Value) -> Scope:
        """What the body sees of an element of the range."""
        if not self.second:
            return scope.inner(self.name, element)
        key, value = (at, element) if is_list(over) else (element, over[element])
        return scope.inner(self.name, key).inner(self.second, value)


@dataclass(frozen=True, slots=True)
class Quantifier(Macro):
    """``all`` is decided by the first false, ``exists`` by the first true."""

    decisive: bool
    predicate: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        verdict = _Verdict(self.decisive)
        step, decided = _QUANTIFIER_COSTS[self.decisive]
        scope.meter.charge(1)
        over = self.range.evaluate(scope)
        elements = _elements(over)
        for at, element in enumerate(elements):
            scope.meter.charge(step)
            if verdict.reached(self.predicate, self.inner(scope, over, at, element)):
                scope.meter.charge(decided if at + 1 < len(elements) else 0)
                return self.decisive
        return verdict.otherwise()


_QUANTIFIER_COSTS = {
    True: (costs.EXISTS_STEP, costs.EXISTS_DECIDED),
    False: (costs.ALL_STEP, costs.ALL_DECIDED),
}


@dataclass(frozen=True, slots=True)
class ExistsOne(Macro):
    predicate: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(2)
        found = 0
        for each in self.scopes(scope):
            holds = _truth(self.predicate.evaluate(each))
            scope.meter.charge(costs.COUNT_STEP if holds else costs.SKIPPED_STEP)
            found += holds
        return found == 1


@dataclass(frozen=True, slots=True)
class Filter(Macro):
    predicate: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.LIST + 1)
        found: list[Value] = []
        for each in self.scopes(scope):
            holds = _truth(self.predicate.evaluate(each))
            scope.meter.charge(costs.APPEND_STEP + 1 if holds else costs.SKIPPED_STEP)
            if holds:
                found.append(each.value(self.name))
        return found


@dataclass(frozen=True, slots=True)
class Transform(Macro):
    """``map`` and ``transformList``, perhaps of those only for which a predicate holds."""

    predicate: SyntaxNode | None
    transform: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.LIST + 1)
        made: list[Value] = []
        for each in self.scopes(scope):
            holds = self.predicate is None or _truth(self.predicate.evaluate(each))
            scope.meter.charge(costs.APPEND_STEP if holds else costs.SKIPPED_STEP)
            if holds:
                made.append(self.transform.evaluate(each))
        return made


@dataclass(frozen=True, slots=True)
class TransformMap(Macro):
    """``transformMap``, and ``transformMapEntry``, whose results are maps put into one."""

    predicate: SyntaxNode | None
    transform: SyntaxNode
    makes_entries: bool

    @property
    def step(self) -> int:
        """What it costs to put in what is made of one element."""
        return costs.MERGE_STEP if self.makes_entries else costs.INSERT_STEP

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.MAP + 1)
        made: dict[tuple[bool, Any], Value] = {}
        for each in self.scopes(scope):
            holds = self.predicate is None or _truth(self.predicate.evaluate(each))
            scope.meter.charge(self.step if holds else costs.SKIPPED_STEP)
            if holds:
                for key, value in self._entries(each).items():
                    if (type(key) is bool, key) in made:
                        raise EvaluationError(f"insert failed: key {_shown(key)} already exists")
                    made[type(key) is bool, key] = value
        return _map_of(made)

    def _entries(self, scope: Scope) -> Mapping[Any, Value]:
        value = self.transform.evaluate(scope)
        if not self.makes_entries:
            key = scope.value(self.name)
            return TypedMap({(type(key) is bool, key): value})
        if not isinstance(value, Mapping):
            raise no_such_overload()
        return value


@dataclass(frozen=True, slots=True)
class SortBy(Macro):
    """``sortBy``: the elements in the order of a key of each."""

    key: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        scopes = [*self.scopes(scope)]
        scope.meter.charge(costs.BIND + costs.LIST + 4 + costs.APPEND_STEP * len(scopes))
        keys = [self.key.evaluate(each) for each in scopes]
        return sorted_by([each.value(self.name) for each in scopes], keys)


@dataclass(frozen=True, slots=True)
class Bind(SyntaxNode):
    """``cel.bind(name, value, result)``"""

    name: str
    value: SyntaxNode
    result: SyntaxNode

    def evaluate(self, scope: Scope) -> Value:
        scope.meter.charge(costs.BIND)
        return self.result.evaluate(scope.inner(self.name, self.value.evaluate(scope)))


@dataclass(frozen=True, slots=True)
class OptionalMap(SyntaxNode):
    """``target.optMap(name, result)``; ``flat`` if the result is optional already."""

    target: SyntaxNode
    name: str
    result: SyntaxNode
    flat: bool

    def evaluate(self, scope: Scope) -> Value:
        left = scope.meter.left
        target = self.target.evaluate(scope)
        if not isinstance(target, Optional):
            raise no_such_overload()
        if not target.values:
            scope.meter.charge(2)
            return NONE
        # As upstream, the target is evaluated twice: is there a value, and which.
        scope.meter.charge(left - scope.meter.left + costs.BIND + 2 + (not self.flat))
        made = self.result.evaluate(scope.inner(self.name, target.value))
        return made if self.flat else Optional((made,))


class _Verdict:
    """Many truths of which one may decide; errors count only if none does."""

    __slots__ = ("_decisive", "_error")

    def __init__(self, decisive: bool) -> None:
        self._decisive = decisive
        self._error: EvaluationError | None = None

    def reached(self, node: SyntaxNode, scope: Scope) -> bool:
        scope.meter.charge(0)  # outside: whoever has used up all may not go on
        try:
            return _truth(node.evaluate(scope)) is self._decisive
        except CostExceededError:
            raise
        except EvaluationError as error:
            self._error = self._error or error
            return False

    def otherwise(self) -> bool:
        if self._error is not None:
            raise self._error
        return not self._decisive


def _qualified(operand: SyntaxNode) -> int:
    """What a selection costs: what is no name or selection itself has to become one first."""
    return 1 if isinstance(operand, Name | Select | IndexAccess) else 2


def _truth(value: Value) -> bool:
    if type(value) is bool:
        return value
    raise no_such_overload()


def _map_of(entries: Mapping[tuple[bool, Any], Value]) -> Value:
    if any(is_bool for is_bool, _ in entries):
        return TypedMap(entries)
    return {key: value for (_, key), value in entries.items()}


def _elements(value: Value) -> Sequence[Value]:
    if is_list(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, Mapping):
        return [*value]
    raise no_such_overload()


def _taken(operand: Value, key: Value, is_optional: bool) -> Value:
    if isinstance(operand, Optional):
        if not operand.values:
            return NONE
        operand, is_optional = operand.value, True
    if not is_optional:
        return _at(operand, key)
    return Optional((_at(operand, key),)) if _found(operand, key) else NONE


def _found(operand: Value, key: Value) -> bool:
    if isinstance(operand, DefaultMap):
        return True
    if isinstance(operand, Mapping):
        return has_key(operand, key)
    if is_list(operand) and is_number(key):
        return bool(key == int(key) and 0 <= key < len(operand))
    return False


def _at(operand: Value, key: Value) -> Value:
    if isinstance(operand, Mapping):
        if has_key(operand, key):
            return operand[key]
        if isinstance(operand, DefaultMap) and isinstance(key, str):
            return operand.default
        raise EvaluationError(f"no such key: {_shown(key)}")
    if operand is None:
        raise EvaluationError(f"no such key: {_shown(key)}")
    if not is_list(operand):
        raise no_such_overload()
    if not is_number(key) or key != int(key):
        raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
    if not 0 <= key < len(operand):
        raise EvaluationError(f"index out of bounds: {int(key)}")
    return operand[int(key)]


def _shown(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return str(key)
