"""What can be said about an expression before it runs: names, fields, and types as far as known.

Lighter than the checker of cel-go: where a type is open, the value decides at run time.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kubescene.cel.errors import CompileError
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
from kubescene.cel.values import UInt

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

_OF_THE_SAME = frozenset(("distinct", "reverse", "slice", "sort"))
"""Methods of a list that give a list of the same type."""

_ONE_OF_IT = frozenset(("sum", "min", "max"))
"""Methods of a list that give a value of the type of its elements."""

Names = Mapping[str, Type]


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
        return optional_of(found) if node.is_optional else found

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
            if not fits(left, right):
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

    def _refuse_mixed(self, types: list[Type], nodes: list[SyntaxNode]) -> None:
        """Elements of one list or map are of one type, unless they may mix."""
        if self._may_mix:
            return
        for found, node in zip(types[1:], nodes[1:], strict=True):
            if not alike(types[0], found):
                raise self._error(f"expected type '{types[0]}' but found '{found}'", node)

    def _element(self, element: Element, names: Names) -> Type:
        found = self.type_of(element.value, names)
        if element.is_optional and found.name == "optional_type":
            return found.parts[0]
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
        if not function.takes(types):
            raise self._no_overload(node.name, node, *types)
        if node.name in ("value", "orValue") and node.is_method and types[0].parts:
            return types[0].parts[0]
        if node.name == "optional.of":
            return optional_of(types[0])
        if node.is_method and node.name in _ONE_OF_IT and types[0].name == "list":
            return types[0].parts[0]
        if node.is_method and node.name in ("first", "last") and types[0].name == "list":
            return optional_of(types[0].parts[0])
        if node.is_method and node.name in _OF_THE_SAME and types[0].name == "list":
            return types[0]
        return function.result_of(types)

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
        listed = ", ".join(map(str, types))
        return self._error(
            f"found no matching overload for '{function}' applied to '({listed})'", node
        )

    def _error(self, problem: str, node: SyntaxNode) -> CompileError:
        return CompileError(problem, self._source, node.offset)


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
