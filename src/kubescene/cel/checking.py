"""What can be said about an expression before it runs: names, fields, and types as far as known.

Lighter than the checker of cel-go: where a type is open, the value decides at run time.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kubescene.api.schemas import patterns
from kubescene.cel.errors import CompileError, EvaluationError
from kubescene.cel.functions import Function
from kubescene.cel.nodes import (
    BinaryOperation,
    Bind,
    Conditional,
    Element,
    ExistsOne,
    Filter,
    FunctionCall,
    Has,
    IndexAccess,
    ListLiteral,
    Literal,
    Logic,
    MapLiteral,
    MessageLiteral,
    Name,
    Negation,
    OptionalMap,
    Quantifier,
    Select,
    SortBy,
    SyntaxNode,
    Transform,
    TransformMap,
)
from kubescene.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    TYPE_NAMES,
    UINT,
    Type,
    alike,
    fits,
    joined,
    list_of,
    map_of,
    optional_of,
)
from kubescene.cel.values import UInt, Value

_LITERALS: Mapping[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_NUMBERS = (INT, UINT, DOUBLE)
_ORDERED = (*_NUMBERS, BOOL, STRING, BYTES, DURATION, TIMESTAMP)
_SUMS: Mapping[str, Mapping[tuple[Type, Type], Type]] = {
    "+": {
        (STRING, STRING): STRING,
        (BYTES, BYTES): BYTES,
        (DURATION, DURATION): DURATION,
        (TIMESTAMP, DURATION): TIMESTAMP,
        (DURATION, TIMESTAMP): TIMESTAMP,
    },
    "-": {
        (DURATION, DURATION): DURATION,
        (TIMESTAMP, DURATION): TIMESTAMP,
        (TIMESTAMP, TIMESTAMP): DURATION,
    },
}

_NOTHING = Type("dyn", (DYN,))
"""The type of an optional element of which nothing is known: it fits in any list."""

_OF_THE_SAME = frozenset(("distinct", "reverse", "slice", "sort"))
"""Methods of a list that give a list of the same type."""

_ONE_OF_IT = frozenset(("sum", "min", "max"))
"""Methods of a list that give a value of the type of its elements."""

Names = Mapping[str, Type]

MESSAGES: Mapping[str, Mapping[str, Type] | None] = {
    "Object": None,
    "JSONPatch": {"op": STRING, "path": STRING, "from": STRING, "value": DYN},
}
"""What patches of Kubernetes are written with, and their members; None if any will do."""


class Checker:
    """Finds the type of an expression, or what is wrong with it."""

    def __init__(
        self,
        source: str,
        functions: Mapping[str, Function],
        methods: Mapping[str, Function],
        names: Names,
        *,
        may_mix: bool = True,
    ) -> None:
        self._source = source
        self._names = names
        self._functions = functions
        self._methods = methods
        self._may_mix = may_mix
        self.used: set[str] = set()
        """Names that the expression refers to, its own among them."""

    def type_of(self, node: SyntaxNode, names: Names) -> Type:
        """The type of a part that sees these names."""
        return _RULES[type(node)](self, node, names)

    def _literal(self, node: Literal, names: Names) -> Type:
        return _LITERALS[type(node.value)]

    def _name(self, node: Name, names: Names) -> Type:
        if node.is_absolute:
            names = self._names
        if node.name in names:
            self.used.add(node.name)
            return names[node.name]
        if node.name in TYPE_NAMES:
            return TYPE
        problem = f"undeclared reference to '{node.name}' (in container '')"
        raise CompileError(
            problem, self._source, node.offset, unknown=node.name, known=tuple(names)
        )

    def _select(self, node: Select, names: Names) -> Type:
        operand = self.type_of(node.operand, names)
        found = self._field(operand, node.field, node)
        wraps = node.is_optional and operand.name != "optional_type"
        return optional_of(found) if wraps else found

    def _field(self, operand: Type, field: str, node: SyntaxNode) -> Type:
        if operand.name == "optional_type":
            inner = self._field(operand.parts[0], field, node)
            return optional_of(inner)
        if operand.fields is not None:
            found = operand.field(field)
            if found is None:
                known = tuple(name for name, _ in operand.fields)
                problem = f"undefined field '{field}'"
                raise CompileError(problem, self._source, node.offset, unknown=field, known=known)
            return found
        if operand.name == "map":
            return operand.parts[1]
        if operand.is_open:
            return DYN
        raise self._error(f"type '{operand}' does not support field selection", node)

    def _has(self, node: Has, names: Names) -> Type:
        self._field(self.type_of(node.operand, names), node.field, node)
        return BOOL

    def _index(self, node: IndexAccess, names: Names) -> Type:
        operand, key = self.type_of(node.operand, names), self.type_of(node.key, names)
        optional = node.is_optional
        if operand.name == "optional_type":
            operand, optional = operand.parts[0], True
        if operand.name == "map" and fits(operand.parts[0], key):
            found = operand.parts[1]
        elif operand.name == "list" and (key == INT or key.is_open):
            found = operand.parts[0]
        elif operand.is_open:
            found = DYN
        else:
            raise self._no_overload("_[_]", node, operand, key)
        return optional_of(found) if optional else found

    def _operation(self, node: BinaryOperation, names: Names) -> Type:
        left, right = self.type_of(node.left, names), self.type_of(node.right, names)
        if node.operator in ("==", "!="):
            if not fits(left, right) or not (self._may_mix or _may_be_null(left, right)):
                raise self._no_overload(f"_{node.operator}_", node, left, right)
            return BOOL
        if node.operator == "in":
            return self._membership(node, left, right)
        if node.operator in ("<", "<=", ">", ">="):
            numbers = left in _NUMBERS and right in _NUMBERS
            ordered = all(each.is_open or each in _ORDERED for each in (left, right))
            if not ordered or not (numbers or fits(left, right)):
                raise self._no_overload(f"_{node.operator}_", node, left, right)
            return BOOL
        return self._arithmetic(node, left, right)

    def _membership(self, node: BinaryOperation, left: Type, right: Type) -> Type:
        if right.is_open or (right.name in ("list", "map") and fits(left, right.parts[0])):
            return BOOL
        raise self._no_overload("@in", node, left, right)

    def _arithmetic(self, node: BinaryOperation, left: Type, right: Type) -> Type:
        if left.is_open or right.is_open:
            return self._beside_open(node.operator, right if left.is_open else left)
        if left == right and left in _NUMBERS and (left, node.operator) != (DOUBLE, "%"):
            return left
        if node.operator == "+" and left.name == right.name == "list":
            if not fits(left, right):
                raise self._no_overload("_+_", node, left, right)
            return left if left == right else list_of()
        found = _SUMS.get(node.operator, {}).get((left, right))
        if found is None:
            raise self._no_overload(f"_{node.operator}_", node, left, right)
        return found

    def _beside_open(self, operator: str, known: Type) -> Type:
        """What comes of an operator if one side can be anything."""
        texts = operator == "+" and (known in (STRING, BYTES) or known.name == "list")
        return known if texts or known in _NUMBERS else DYN

    def _negation(self, node: Negation, names: Names) -> Type:
        operand = self.type_of(node.operand, names)
        wanted = (BOOL,) if node.operator == "!" else (INT, DOUBLE, DURATION)
        if not operand.is_open and operand not in wanted:
            raise self._no_overload(f"{node.operator}_", node, operand)
        return BOOL if node.operator == "!" else operand

    def _logic(self, node: Logic, names: Names) -> Type:
        left, right = self.type_of(node.left, names), self.type_of(node.right, names)
        if not (fits(left, BOOL) and fits(right, BOOL)):
            raise self._no_overload("_||_" if node.decisive else "_&&_", node, left, right)
        return BOOL

    def _conditional(self, node: Conditional, names: Names) -> Type:
        condition = self.type_of(node.condition, names)
        then, otherwise = self.type_of(node.then, names), self.type_of(node.otherwise, names)
        if not fits(condition, BOOL) or not fits(then, otherwise):
            raise self._no_overload("_?_:_", node, condition, then, otherwise)
        for branch, other in ((node.then, otherwise), (node.otherwise, then)):
            if isinstance(branch, ListLiteral) and not branch.elements and other.name == "list":
                return other
        return joined([then, otherwise])

    def _list(self, node: ListLiteral, names: Names) -> Type:
        types = [self._element(each, names) for each in node.elements]
        self._refuse_mixed(types, [each.value for each in node.elements])
        return list_of(joined(types))

    def _map(self, node: MapLiteral, names: Names) -> Type:
        places = [each.key for each in node.elements if each.key is not None]
        keys = [self.type_of(each, names) for each in places]
        values = [self._element(each, names) for each in node.elements]
        self._refuse_mixed(keys, places)
        self._refuse_mixed(values, [each.value for each in node.elements])
        return map_of(joined(keys), joined(values))

    def _message(self, node: MessageLiteral, names: Names) -> Type:
        """Members of a type that says what they are; others may have any."""
        known = MESSAGES[node.of.partition(".")[0]]
        for member in node.members:
            assert isinstance(member.key, Literal)
            name, found = member.key.value, self._element(member, names)
            wanted = DYN if known is None else known.get(name)
            if wanted is None or not fits(wanted, found):
                shown = "" if wanted is None else wanted
                text = f"expected type of field '{name}' is '{shown}' but provided type is"
                raise self._error(f"{text} '{found}'", member.key)
        return Type(node.of)

    def _refuse_mixed(self, types: list[Type], nodes: list[SyntaxNode]) -> None:
        """Elements of one list or map are of one type, unless they may mix."""
        if self._may_mix or not types:
            return
        first = next((each for each in types if each != _NOTHING), types[0])
        for found, node in zip(types, nodes, strict=True):
            if found != _NOTHING and not alike(first, found):
                raise self._error(f"expected type '{first}' but found '{found}'", node)

    def _element(self, element: Element, names: Names) -> Type:
        found = self.type_of(element.value, names)
        if element.is_optional and found.name == "optional_type":
            return _NOTHING if found.parts[0] == DYN else found.parts[0]
        return found

    def _arguments(self, node: FunctionCall, names: Names) -> list[Type]:
        """Their types; lists and maps that are to be printed may mix theirs."""
        outside, self._may_mix = self._may_mix, self._may_mix or node.name == "format"
        types = [self.type_of(each, names) for each in node.arguments]
        self._may_mix = outside
        return types

    def _call(self, node: FunctionCall, names: Names) -> Type:
        types = self._arguments(node, names)
        function = (self._methods if node.is_method else self._functions)[node.name]
        if not function.takes(types) or not (self._may_mix or _has_order(node, types)):
            raise self._no_overload(node.name, node, *types)
        if not self._may_mix:
            self._check_literals(node)
        if node.name in ("value", "orValue") and node.is_method and types[0].parts:
            return types[0].parts[0]
        if node.name in ("optional.of", "optional.ofNonZeroValue"):
            return optional_of(types[0])
        if node.is_method and node.name in _ONE_OF_IT and types[0].name == "list":
            return types[0].parts[0]
        if node.is_method and node.name in ("first", "last") and types[0].name == "list":
            return optional_of(types[0].parts[0])
        if node.is_method and node.name in _OF_THE_SAME and types[0].name == "list":
            return types[0]
        return function.result_of(types)

    def _check_literals(self, node: FunctionCall) -> None:
        """What is written out and can never be read is refused before it runs."""
        at = _READ_ARGUMENTS.get(node.name)
        if at is None or at >= len(node.arguments):
            return
        argument = node.arguments[at]
        if not isinstance(argument, Literal):
            return
        if node.name == "matches":
            is_wrong = bool(patterns.problem(argument.value))
        else:
            is_wrong = _fails(node.function, argument.value)
        if is_wrong:
            raise self._error(f"invalid {node.name} argument", argument)

    def _quantifier(self, node: Quantifier | ExistsOne, names: Names) -> Type:
        self._predicate(node.predicate, self.inside(node, names))
        return BOOL

    def _filter(self, node: Filter, names: Names) -> Type:
        inside = self.inside(node, names)
        self._predicate(node.predicate, inside)
        return list_of(inside[node.name])

    def _transform(self, node: Transform, names: Names) -> Type:
        inside = self.inside(node, names)
        if node.predicate is not None:
            self._predicate(node.predicate, inside)
        return list_of(self.type_of(node.transform, inside))

    def _transform_map(self, node: TransformMap, names: Names) -> Type:
        inside = self.inside(node, names)
        if node.predicate is not None:
            self._predicate(node.predicate, inside)
        made = self.type_of(node.transform, inside)
        if not node.makes_entries:
            return map_of(inside[node.name], made)
        if made.name != "map" and not made.is_open:
            raise self._no_overload("cel.@mapInsert", node, map_of(DYN, DYN), made)
        return made

    def _sort(self, node: SortBy, names: Names) -> Type:
        inside = self.inside(node, names)
        key = self.type_of(node.key, inside)
        if not key.is_open and key not in _ORDERED:
            raise self._no_overload("sortBy", node, list_of(inside[node.name]), list_of(key))
        return list_of(inside[node.name])

    def _predicate(self, node: SyntaxNode, names: Names) -> None:
        found = self.type_of(node, names)
        if not fits(found, BOOL):
            raise self._error(f"expected type 'bool' but found '{found}'", node)

    def inside(self, node: Any, names: Names) -> Names:
        """The names that a macro's body sees."""
        over = self.type_of(node.range, names)
        if over.name not in ("list", "map") and not over.is_open:
            text = f"expression of type '{over}' cannot be range of a comprehension"
            raise self._error(f"{text} (must be list, map, or dynamic)", node.range)
        first, last = (over.parts[0], over.parts[-1]) if over.parts else (DYN, DYN)
        if not node.second:
            return {**names, node.name: first}
        return {**names, node.name: INT if over.name == "list" else first, node.second: last}

    def _bind(self, node: Bind, names: Names) -> Type:
        return self.type_of(node.result, {**names, node.name: self.type_of(node.value, names)})

    def _optional_map(self, node: OptionalMap, names: Names) -> Type:
        target = self.type_of(node.target, names)
        inner = target.parts[0] if target.name == "optional_type" else DYN
        made = self.type_of(node.result, {**names, node.name: inner})
        return made if node.flat else optional_of(made)

    def _no_overload(self, function: str, node: SyntaxNode, *types: Type) -> CompileError:
        is_method = isinstance(node, FunctionCall) and node.is_method
        target = f"{types[0]}." if is_method else ""
        listed = f"{target}({', '.join(map(str, types[is_method:]))})"
        return self._error(
            f"found no matching overload for '{function}' applied to '{listed}'", node
        )

    def _error(self, problem: str, node: SyntaxNode) -> CompileError:
        return CompileError(problem, self._source, node.offset)


_READ_ARGUMENTS = {"timestamp": 0, "duration": 0, "matches": 1}
_SUMMED = (*_NUMBERS, DURATION)


def _has_order(node: FunctionCall, types: list[Type]) -> bool:
    """Whether elements of a list can be added or compared, as ``sum``, ``min`` and ``max`` do."""
    if not node.is_method or node.name not in _ONE_OF_IT or not types[0].parts:
        return True
    element = types[0].parts[0]
    return element.is_open or element in (_SUMMED if node.name == "sum" else _ORDERED)


def _fails(function: Callable[..., Value], argument: Value) -> bool:
    try:
        function(argument)
    except EvaluationError:
        return True
    return False


def _may_be_null(left: Type, right: Type) -> bool:
    """Whether there is a sense in comparing them, if one of them is null."""
    if left == right or NULL not in (left, right):
        return True
    other = right if left == NULL else left
    return other not in _NEVER_NULL and other.name not in ("list", "map")


_NEVER_NULL = (*_NUMBERS, BOOL, STRING, BYTES, TYPE)

_RULES: Mapping[type[SyntaxNode], Callable[[Checker, Any, Names], Type]] = {
    Literal: Checker._literal,
    Name: Checker._name,
    Select: Checker._select,
    Has: Checker._has,
    IndexAccess: Checker._index,
    BinaryOperation: Checker._operation,
    Negation: Checker._negation,
    Logic: Checker._logic,
    Conditional: Checker._conditional,
    ListLiteral: Checker._list,
    MapLiteral: Checker._map,
    MessageLiteral: Checker._message,
    FunctionCall: Checker._call,
    Quantifier: Checker._quantifier,
    ExistsOne: Checker._quantifier,
    Filter: Checker._filter,
    Transform: Checker._transform,
    TransformMap: Checker._transform_map,
    SortBy: Checker._sort,
    Bind: Checker._bind,
    OptionalMap: Checker._optional_map,
}
