"""Functions and methods by name: what an expression may call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kubescene.cel.types import Type, fits
from kubescene.cel.values import Value

Overload = tuple[Type, ...]
"""The types of the arguments that a function takes together."""
Result = Type | Callable[[Sequence[Type]], Type]
"""The type of what a function gives, or how it follows from those of its arguments."""


@dataclass(frozen=True, slots=True)
class Function:
    """What a name stands for: the call, what it takes, and the type of its result.

    The target of a method is an argument like the others.
    """

    call: Callable[..., Value]
    result: Result
    overloads: tuple[Overload, ...]

    def result_of(self, types: Sequence[Type]) -> Type:
        """The type of its result for arguments of these types."""
        return self.result if isinstance(self.result, Type) else self.result(types)

    def takes(self, types: Sequence[Type]) -> bool:
        """Whether values of these types can be its arguments, as far as the types are known."""
        return any(
            len(types) == len(overload) and all(map(fits, overload, types))
            for overload in self.overloads
        )


class Library:
    """Functions and methods under construction; a name is defined once."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.methods: dict[str, Function] = {}

    def function(
        self, name: str, result: Result, *overloads: Overload
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Let a Python function be a function of the language."""
        return _Definition(self.functions, name, result, overloads)

    def method(
        self, name: str, result: Result, *overloads: Overload
    ) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
        """Let a Python function be a method; the first argument is the target."""
        return _Definition(self.methods, name, result, overloads)


@dataclass(frozen=True, slots=True)
class _Definition:
    table: dict[str, Function]
    name: str
    result: Result
    overloads: tuple[Overload, ...]

    def __call__(self, call: Callable[..., Value]) -> Callable[..., Value]:
        if self.name in self.table:
            raise ValueError(f"{self.name} is defined twice")
        self.table[self.name] = Function(call, self.result, self.overloads)
        return call


def each(*types: Type) -> tuple[Overload, ...]:
    """One argument of any of these types."""
    return tuple((one,) for one in types)


def together(*tables: Mapping[str, Function]) -> dict[str, Function]:
    """Several tables in one; libraries that share a name share its definition."""
    made: dict[str, Function] = {}
    for table in tables:
        for name, function in table.items():
            if name in made and made[name] != function:
                raise ValueError(f"{name} is defined in two libraries")
            made[name] = function
    return made
