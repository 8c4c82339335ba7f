"""Macros: calls whose arguments are not values but parts of the expression."""

from collections.abc import Callable, Mapping
from typing import Protocol

from kubescene.cel.errors import CompileError
from kubescene.cel.nodes import (
    Bind,
    ExistsOne,
    Filter,
    Has,
    Name,
    Node,
    OptionalMap,
    Quantifier,
    Select,
    Transform,
)


class Complaining(Protocol):
    """Who can say where in the text a problem is."""

    def error(self, problem: str, offset: int) -> CompileError: ...


def _variable(parser: Complaining, node: Node) -> str:
    if isinstance(node, Name):
        return node.name
    raise parser.error("argument must be a simple name", node.offset)


def _has(parser: Complaining, offset: int, field: Node) -> Node:
    if isinstance(field, Select) and not field.is_optional:
        return Has(offset, field.operand, field.field)
    raise parser.error("invalid argument to has() macro", field.offset)


def _all(parser: Complaining, offset: int, target: Node, name: Node, predicate: Node) -> Node:
    return Quantifier(offset, target, _variable(parser, name), False, predicate)


def _exists(parser: Complaining, offset: int, target: Node, name: Node, predicate: Node) -> Node:
    return Quantifier(offset, target, _variable(parser, name), True, predicate)


def _exists_one(parser: Complaining, offset: int, target: Node, name: Node, holds: Node) -> Node:
    return ExistsOne(offset, target, _variable(parser, name), holds)


def _filter(parser: Complaining, offset: int, target: Node, name: Node, predicate: Node) -> Node:
    return Filter(offset, target, _variable(parser, name), predicate)


def _map(parser: Complaining, offset: int, target: Node, name: Node, transform: Node) -> Node:
    return Transform(offset, target, _variable(parser, name), None, transform)


def _map_some(
    parser: Complaining, offset: int, target: Node, name: Node, predicate: Node, transform: Node
) -> Node:
    return Transform(offset, target, _variable(parser, name), predicate, transform)


def _bind(parser: Complaining, offset: int, name: Node, value: Node, result: Node) -> Node:
    return Bind(offset, _variable(parser, name), value, result)


def _opt_map(parser: Complaining, offset: int, target: Node, name: Node, result: Node) -> Node:
    return OptionalMap(offset, target, _variable(parser, name), result, False)


def _opt_flat_map(parser: Complaining, offset: int, target: Node, name: Node, made: Node) -> Node:
    return OptionalMap(offset, target, _variable(parser, name), made, True)


Making = Callable[..., Node]

GLOBAL_MACROS: Mapping[tuple[str, int], Making] = {("has", 1): _has, ("cel.bind", 3): _bind}
METHOD_MACROS: Mapping[tuple[str, int], Making] = {
    ("all", 2): _all,
    ("exists", 2): _exists,
    ("exists_one", 2): _exists_one,
    ("existsOne", 2): _exists_one,
    ("filter", 2): _filter,
    ("map", 2): _map,
    ("map", 3): _map_some,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
}
"""By name and number of arguments."""
