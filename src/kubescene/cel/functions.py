"""Functions and methods by name: what an expression may call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubescene.cel.types import DYN, Type
from kubescene.cel.values import Value


@dataclass(frozen=True, slots=True)
class Function:
    """What a name stands for: the call, how many arguments it takes, and the type of its result.

    The target of a method is an argument like the others.
    """

    call: Callable[..., Value]
    result: Type
    least: int
    most: int


class Library:
    """Functions and methods under construction; a name is defined once."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.methods: dict[str, Function] = {}

    def function(
        self, name: str, result: Type = DYN, arguments: int = 1, most: int = 0
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Let a Python function be a function of the language."""
        return _Definition(self.functions, name, result, arguments, most or arguments)

    def method(
        self, name: str, result: Type = DYN, arguments: int = 1, most: int = 0
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Let a Python function be a method; ``arguments`` counts the target."""
        return _Definition(self.methods, name, result, arguments, most or arguments)


@dataclass(frozen=True, slots=True)
class _Definition:
    table: dict[str, Function]
    name: str
    result: Type
    least: int
    most: int

    def __call__(self, call: Callable[..., Value]) -> Callable[..., Value]:
        if self.name in self.table:
            raise ValueError(f"{self.name} is defined twice")
        self.table[self.name] = Function(call, self.result, self.least, self.most)
        return call


def together(*tables: Mapping[str, Function]) -> dict[str, Function]:
    """Several tables in one; libraries that share a name share its definition."""
    made: dict[str, Function] = {}
    for table in tables:
        for name, function in table.items():
            if name in made and made[name] != function:
                raise ValueError(f"{name} is defined in two libraries")
            made[name] = function
    return made
