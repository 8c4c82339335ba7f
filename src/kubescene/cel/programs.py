"""Compiled expressions."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from kubescene.cel.checking import Checker
from kubescene.cel.costs import Meter
from kubescene.cel.extensions import EXTENSIONS
from kubescene.cel.functions import together
from kubescene.cel.kubernetes import KUBERNETES
from kubescene.cel.nodes import Element, Index, Literal, Name, Node, Scope
from kubescene.cel.parsing import parse
from kubescene.cel.standard import STANDARD
from kubescene.cel.types import TYPE_NAMES, Type
from kubescene.cel.values import TypeValue, Value

DEFAULT_COST = 1_000_000
"""How much an evaluation may do; the limit that Kubernetes has for device selectors."""

_FUNCTIONS = together(STANDARD.functions, EXTENSIONS.functions, KUBERNETES.functions)
_METHODS = together(STANDARD.methods, EXTENSIONS.methods, KUBERNETES.methods)
_TYPES: Mapping[str, Value] = {name: TypeValue(name) for name in TYPE_NAMES}


class Program:
    """An expression that was checked. Immutable; copies of a world share it.

    ``names`` are those that it asks for: others need no value.
    """

    __slots__ = ("names", "result", "root", "source")

    def __init__(self, source: str, root: Node, result: Type, names: frozenset[str]) -> None:
        self.source = source
        self.result = result
        self.names = names
        self.root = root

    def evaluate(self, names: Mapping[str, Value], cost: int = DEFAULT_COST) -> Value:
        """The value of the expression; raises `EvaluationError` if it has none."""
        meter = Meter(cost)
        return self.root.evaluate(Scope(names, meter, Scope(_TYPES, meter)))

    def __copy__(self) -> "Program":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Program":
        return self

    def __repr__(self) -> str:
        return f"<Program {self.source}>"


def compile_expression(source: str, names: Mapping[str, Type]) -> Program:
    """Check an expression that may use these names; raises `CompileError`."""
    root = parse(source, _FUNCTIONS, _METHODS)
    checker = Checker(source, _FUNCTIONS, _METHODS, names)
    result = checker.type_of(root, names)
    return Program(source, root, result, frozenset(checker.used.intersection(names)))


def keys_of(program: Program, name: str) -> Iterator[tuple[int, str]]:
    """The texts by which ``name`` is indexed (``name["key"]``), each with its place."""
    for node in parts_of(program.root):
        if isinstance(node, Index) and isinstance(node.operand, Name):
            key = node.key
            if node.operand.name == name and isinstance(key, Literal) and type(key.value) is str:
                yield key.offset, key.value


def parts_of(part: object) -> Iterator[Node]:
    """An expression and everything in it."""
    if isinstance(part, Node):
        yield part
    if isinstance(part, Node | Element):
        for each in fields(part):
            yield from parts_of(getattr(part, each.name))
    elif isinstance(part, tuple):
        for each in part:
            yield from parts_of(each)
