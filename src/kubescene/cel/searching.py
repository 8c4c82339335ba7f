"""Looking into a compiled expression without evaluating it."""

from collections.abc import Iterator
from dataclasses import fields

from kubescene.cel.nodes import Element, Index, Literal, Name, Node
from kubescene.cel.programs import Program


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
