"""Compiled expressions."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from kubescene.api.schemas import patterns
from kubescene.cel.checking import Checker
from kubescene.cel.costs import CostMeter
from kubescene.cel.estimates import Estimator
from kubescene.cel.extensions import EXTENSIONS, FORMATS
from kubescene.cel.functions import Library, together
from kubescene.cel.kubernetes import KUBERNETES
from kubescene.cel.nodes import Element, FunctionCall, IndexAccess, Literal, Name, Scope, SyntaxNode
from kubescene.cel.parsing import parse
from kubescene.cel.sizes import SizeAt
from kubescene.cel.standard import STANDARD
from kubescene.cel.types import TYPE_NAMES, Type
from kubescene.cel.values import TypeValue, Value

DEFAULT_COST = 1_000_000
"""How much an evaluation may do; the limit that Kubernetes has for device selectors."""

_LIBRARIES = (STANDARD, EXTENSIONS, KUBERNETES, FORMATS)
_FUNCTIONS = together(*(each.functions for each in _LIBRARIES))
_METHODS = together(*(each.methods for each in _LIBRARIES))
_TYPES: Mapping[str, Value] = {name: TypeValue(name) for name in TYPE_NAMES}


class Program:
    """An expression that was checked. Immutable; copies of a world share it.

    ``names`` are those that it asks for: others need no value.
    """

    __slots__ = ("names", "result", "root", "source")

    def __init__(self, source: str, root: SyntaxNode, result: Type, names: frozenset[str]) -> None:
        self.source = source
        self.result = result
        self.names = names
        self.root = root

    def evaluate(self, names: Mapping[str, Value], cost: int = DEFAULT_COST) -> Value:
        """The value of the expression; raises `EvaluationError` if it has none."""
        return self.root.evaluate(self.scope(names, cost))

    def scope(self, names: Mapping[str, Value], cost: int = DEFAULT_COST) -> Scope:
        """What its parts are evaluated with."""
        meter = CostMeter(cost)
        return Scope(names, meter, Scope(_TYPES, meter))

    def __copy__(self) -> "Program":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Program":
        return self

    def __repr__(self) -> str:
        return f"<Program {self.source}>"


def compile_expression(
    source: str,
    names: Mapping[str, Type],
    *,
    may_mix: bool = True,
    library: Library | None = None,
    messages: Collection[str] = (),
) -> Program:
    """Check an expression that may use these names; raises `CompileError`.

    Kubernetes does not let lists and maps mix types (``may_mix``), which it looks at last.
    ``library`` has functions and methods that are known here only, ``messages`` are the types of
    which it may build values.
    """
    functions, methods = _FUNCTIONS, _METHODS
    if library is not None:
        functions = together(functions, library.functions)
        methods = together(methods, library.methods)
    root = parse(source, functions, methods, messages)
    checker = Checker(source, functions, methods, names)
    result = checker.type_of(root, names)
    if not may_mix:
        Checker(source, functions, methods, names, may_mix=False).type_of(root, names)
    return Program(source, root, result, frozenset(checker.used.intersection(names)))


def worst_cost(program: Program, names: Mapping[str, Type], size_at: SizeAt) -> int:
    """What evaluating it could cost at most, see `estimates`."""
    checker = Checker(program.source, _FUNCTIONS, _METHODS, names)
    return Estimator(checker, size_at).guess(program.root, names).cost


def unreadable_pattern(program: Program) -> str:
    """What is wrong with a pattern that is written out and searched for; empty if nothing is."""
    for node in parts_of(program.root):
        if isinstance(node, FunctionCall) and node.name in ("find", "findAll"):
            pattern = node.arguments[1]
            if isinstance(pattern, Literal) and (problem := patterns.problem(pattern.value)):
                return problem
    return ""


def keys_of(program: Program, name: str) -> Iterator[tuple[int, str]]:
    """The texts by which ``name`` is indexed (``name["key"]``), each with its place."""
    for node in parts_of(program.root):
        if isinstance(node, IndexAccess) and isinstance(node.operand, Name):
            key = node.key
            if node.operand.name == name and isinstance(key, Literal) and type(key.value) is str:
                yield key.offset, key.value


def parts_of(part: object) -> Iterator[SyntaxNode]:
    """An expression and everything in it."""
    if isinstance(part, SyntaxNode):
        yield part
    if isinstance(part, SyntaxNode | Element):
        for each in fields(part):
            yield from parts_of(getattr(part, each.name))
    elif isinstance(part, tuple):
        for each in part:
            yield from parts_of(each)
