"""How much an expression could do at most, known before it runs: cel-go's estimate.

Costs are those of `costs`, with sizes instead of values: what a variable may hold at most says
whoever declares it (`SizeAt`, asked with a path such as ``device, attributes, @values``), literals
have the size that they have, and what nobody knows may be of any size. A part with several ways to
go counts as the dearest of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubescene.cel.checking import Checker, Names
from kubescene.cel.nodes import (
    BinaryOperation,
    Bind,
    Conditional,
    ExistsOne,
    Filter,
    FunctionCall,
    Has,
    IndexAccess,
    ListLiteral,
    Literal,
    Logic,
    Macro,
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
from kubescene.cel.sizes import (
    ONE,
    Guess,
    SizeAt,
    SizeEstimate,
    bounded,
    of_call,
    sorted_size,
    tenths,
    union_of,
)
from kubescene.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    FORMAT,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
)

LIST, MAP = 10, 30
_SCALARS = (BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT)
_AT_ONCE = {QUANTITY: 1, SEMVER: 1, IP: 1, CIDR: 1, FORMAT: 7}
"""Types whose values are compared in one go, whatever their size."""


class Estimator:
    """Walks through an expression once."""

    def __init__(self, checker: Checker, size_at: SizeAt) -> None:
        self._checker = checker
        self._size_at = size_at
        self._known: dict[str, list[Guess]] = {}
        """What is known of the names that macros bind."""

    def guess(self, node: SyntaxNode, names: Names) -> Guess:
        found: Guess = _RULES[type(node)](self, node, names)
        return found

    # -- leaves and selections ---------------------------------------------------------------

    def _made(self, node: SyntaxNode, names: Names, cost: int, **known: Any) -> Guess:
        """With the size that the place or the type says, unless it is known."""
        found = Guess(bounded(cost), self._checker.type_of(node, names), **known)
        return found if found.size is not None else found._replace(size=self._default(found))

    def _default(self, guess: Guess) -> SizeEstimate | None:
        if guess.path and (most := self._size_at(guess.path)) is not None:
            return SizeEstimate(0, most)
        kind = guess.type
        while kind.name == "optional_type" and kind.parts:
            kind = kind.parts[0]
        return ONE if kind in _SCALARS else None

    def _literal(self, node: Literal, names: Names) -> Guess:
        value = node.value
        size = len(value) if isinstance(value, str | bytes) else 1
        return self._made(node, names, 0, size=SizeEstimate(size, size))

    def _name(self, node: Name, names: Names) -> Guess:
        bound = None if node.is_absolute else self._known.get(node.name)
        if not bound:
            return self._made(node, names, 1, path=(node.name,))
        known = bound[-1]
        parts = {"elements": known.elements, "keys": known.keys}
        found = self._made(node, names, 1, path=known.path, **parts)
        return found if found.size is not None else found._replace(size=known.size)

    def _select(self, node: Select, names: Names) -> Guess:
        operand = self.guess(node.operand, names)
        if node.is_optional or operand.type.name == "optional_type":
            return self._made(node, names, operand.cost + 1)
        cost = operand.cost + (not operand.type.is_open)
        return self._made(node, names, cost, path=(*operand.path, node.field))

    def _has(self, node: Has, names: Names) -> Guess:
        return self._made(node, names, self.guess(node.operand, names).cost)

    def _index(self, node: IndexAccess, names: Names) -> Guess:
        operand, key = self.guess(node.operand, names), self.guess(node.key, names)
        cost = operand.cost + key.cost + 1
        if node.is_optional or operand.type.name == "optional_type":
            return self._made(node, names, cost)
        step = "@items" if operand.type.name == "list" else "@values"
        return self._made(node, names, cost, path=(*operand.path, step), size=operand.elements)

    # -- operators ---------------------------------------------------------------------------

    def _operation(self, node: BinaryOperation, names: Names) -> Guess:
        left, right = self.guess(node.left, names), self.guess(node.right, names)
        sides = left.cost + right.cost
        if node.operator == "+":
            return self._sum(node, names, left, right)
        if node.operator in ("==", "!="):
            of_one = left.type == right.type and node.operator == "=="
            at_once = _AT_ONCE.get(left.type) if of_one else None
            least = tenths(min(left.sized.high, right.sized.high))
            return self._made(node, names, sides + (least if at_once is None else at_once))
        if node.operator in ("<", "<=", ">", ">="):
            texts = any(each.type in (STRING, BYTES) or each.type.is_open for each in (left, right))
            least = min(left.sized.high, right.sized.high)
            return self._made(node, names, sides + (tenths(least) if texts else 1))
        if node.operator == "in":
            many = 1 if right.type.name == "map" else right.sized.high
            return self._made(node, names, sides + (max(1, many) if right.type.is_open else many))
        return self._made(node, names, sides + 1)

    def _sum(self, node: BinaryOperation, names: Names, left: Guess, right: Guess) -> Guess:
        both, sides = left.sized.plus(right.sized), left.cost + right.cost
        kinds = {each.type for each in (left, right) if not each.type.is_open}
        names_of = {each.name for each in kinds}
        if names_of and not names_of & {"string", "bytes", "list"}:
            return self._made(node, names, sides + 1)
        elements = None
        if left.elements is not None and right.elements is not None:
            elements = left.elements.union(right.elements)
        cost = 1 if names_of == {"list"} else max(1 if not names_of else 0, tenths(both.high))
        return self._made(node, names, sides + cost, size=both, elements=elements)

    def _negation(self, node: Negation, names: Names) -> Guess:
        return self._made(node, names, 1 + self.guess(node.operand, names).cost)

    def _logic(self, node: Logic, names: Names) -> Guess:
        cost = self.guess(node.left, names).cost + self.guess(node.right, names).cost
        return self._made(node, names, cost)

    def _conditional(self, node: Conditional, names: Names) -> Guess:
        condition = self.guess(node.condition, names)
        then, otherwise = self.guess(node.then, names), self.guess(node.otherwise, names)
        elements = None
        if then.elements is not None and otherwise.elements is not None:
            elements = then.elements.union(otherwise.elements)
        cost = condition.cost + max(then.cost, otherwise.cost)
        size = then.sized.union(otherwise.sized)
        return self._made(node, names, cost, size=size, elements=elements)

    def _list(self, node: ListLiteral, names: Names) -> Guess:
        parts = [self.guess(each.value, names) for each in node.elements]
        size = SizeEstimate(len(parts), len(parts))
        elements = union_of([each.sized for each in parts])
        cost = LIST + sum(each.cost for each in parts)
        return self._made(node, names, cost, size=size, elements=elements)

    def _map(self, node: MapLiteral, names: Names) -> Guess:
        keys = [self.guess(each.key, names) for each in node.elements if each.key is not None]
        values = [self.guess(each.value, names) for each in node.elements]
        size = SizeEstimate(len(values), len(values))
        elements = union_of([each.sized for each in values])
        named = union_of([each.sized for each in keys])
        cost = MAP + sum(each.cost for each in (*keys, *values))
        return self._made(node, names, cost, size=size, elements=elements, keys=named)

    # -- calls -------------------------------------------------------------------------------

    def _call(self, node: FunctionCall, names: Names) -> Guess:
        arguments = [self.guess(each, names) for each in node.arguments]
        below = sum(each.cost for each in arguments)
        if node.name == "dyn":
            [only] = arguments
            return only._replace(cost=bounded(below + 1), type=DYN)
        cost, size = of_call(node, arguments, self._size_at)
        return self._made(node, names, below + cost, size=size)

    # -- macros ------------------------------------------------------------------------------

    def _loop(
        self, node: Macro, names: Names, parts: Sequence[SyntaxNode | None]
    ) -> tuple[Guess, list[Guess]]:
        """The range, and what each part of the body costs for one element."""
        over = self.guess(node.range, names)
        inside = self._checker.inside(node, names)
        is_list = over.type.name == "list"
        items = "@items", over.elements
        steps = [items if is_list else ("@keys", over.keys)]
        if node.second:
            steps = [("@index", ONE), items] if is_list else [*steps, ("@values", over.elements)]
        bound = [name for name in (node.name, node.second) if name]
        for name, (step, size) in zip(bound, steps, strict=True):
            element = Guess(0, inside[name], size, path=(*over.path, step))
            self._known.setdefault(name, []).append(element)
        found = [self.guess(each, inside) for each in parts if each is not None]
        for name in bound:
            self._known[name].pop()
        return over, found

    def _looped(self, node: SyntaxNode, names: Names, over: Guess, each: int, once: int) -> Guess:
        return self._made(node, names, over.cost + once + over.sized.high * each)

    def _quantifier(self, node: Quantifier, names: Names) -> Guess:
        over, [predicate] = self._loop(node, names, [node.predicate])
        return self._looped(node, names, over, predicate.cost + (4 if node.decisive else 3), 1)

    def _exists_one(self, node: ExistsOne, names: Names) -> Guess:
        over, [predicate] = self._loop(node, names, [node.predicate])
        return self._looped(node, names, over, predicate.cost + 2, 2)

    def _filter(self, node: Filter, names: Names) -> Guess:
        over, [predicate] = self._loop(node, names, [node.predicate])
        made = self._looped(node, names, over, predicate.cost + LIST + 3, LIST + 1)
        return made._replace(size=over.sized, elements=over.elements)

    def _transform(self, node: Transform, names: Names) -> Guess:
        over, found = self._loop(node, names, [node.predicate, node.transform])
        cost = sum(each.cost for each in found) + LIST + 2
        made = self._looped(node, names, over, cost, LIST + 1)
        return made._replace(size=over.sized, elements=SizeEstimate(0, found[-1].sized.high))

    def _transform_map(self, node: TransformMap, names: Names) -> Guess:
        over, found = self._loop(node, names, [node.predicate, node.transform])
        cost = sum(each.cost for each in found) + node.step
        made = self._looped(node, names, over, cost, MAP + 1)
        entries = found[-1].sized.high if node.makes_entries else 1
        return made._replace(size=SizeEstimate(0, bounded(over.sized.high * entries)))

    def _sort(self, node: SortBy, names: Names) -> Guess:
        over, [key] = self._loop(node, names, [node.key])
        sorting, size = sorted_size(over.sized, key.type)
        once = bounded(2 * LIST + 3 + sorting)
        made = self._looped(node, names, over, key.cost + LIST + 2, once)
        return made._replace(size=size, elements=over.elements)

    def _bind(self, node: Bind, names: Names) -> Guess:
        value = self.guess(node.value, names)
        result = self._bound(node.name, value, node.result, names)
        return result._replace(cost=bounded(LIST + value.cost + result.cost))

    def _bound(self, name: str, value: Guess, body: SyntaxNode, names: Names) -> Guess:
        self._known.setdefault(name, []).append(value)
        result = self.guess(body, {**names, name: value.type})
        self._known[name].pop()
        return result

    def _optional_map(self, node: OptionalMap, names: Names) -> Guess:
        target = self.guess(node.target, names)
        inner = target.type.parts[0] if target.type.name == "optional_type" else DYN
        value = Guess(0, inner)
        result = self._bound(
            node.name, value._replace(size=self._default(value)), node.result, names
        )
        cost = 2 * (target.cost + 1) + LIST + result.cost + (not node.flat)
        return self._made(node, names, cost)


_RULES: Mapping[type[SyntaxNode], Callable[[Estimator, Any, Names], Guess]] = {
    Literal: Estimator._literal,
    Name: Estimator._name,
    Select: Estimator._select,
    Has: Estimator._has,
    IndexAccess: Estimator._index,
    BinaryOperation: Estimator._operation,
    Negation: Estimator._negation,
    Logic: Estimator._logic,
    Conditional: Estimator._conditional,
    ListLiteral: Estimator._list,
    MapLiteral: Estimator._map,
    FunctionCall: Estimator._call,
    Quantifier: Estimator._quantifier,
    ExistsOne: Estimator._exists_one,
    Filter: Estimator._filter,
    Transform: Estimator._transform,
    TransformMap: Estimator._transform_map,
    SortBy: Estimator._sort,
    Bind: Estimator._bind,
    OptionalMap: Estimator._optional_map,
}
