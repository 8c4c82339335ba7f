"""The flags of a Kubernetes program, as its command line gives them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Flags: TypeAlias = Mapping[str, Sequence[str]]
"""Values by flag, in order."""
GATES = "feature-gates"
SWITCHES = frozenset({"leader-elect", "use-service-account-credentials"})
"""Flags that take no word after them: they are on, unless ``=false`` says otherwise."""


def flags_of(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Values by flag, in order: ``--name=value`` or ``--name value``; a switch may stand alone.

    What is no flag, such as the program itself, is left out.
    """
    flags: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or len(word) < 2:
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not equals:
            value = "true" if name in SWITCHES or not rest else rest.pop(0)
        flags.setdefault(name, []).append(value)
    return flags


def last(flags: Flags, name: str) -> str | None:
    """The value that counts."""
    values = flags.get(name)
    return values[-1] if values else None


def is_true(text: str | None) -> bool:
    return text is not None and text.lower() in ("1", "t", "true")


def gates_of(values: Iterable[str]) -> dict[str, bool]:
    """``--feature-gates``: several may be named at once, each perhaps with its component."""
    gates = {}
    for value in values:
        for part in filter(None, value.split(",")):
            name, _, given = part.partition("=")
            gates[name.rpartition(":")[2].strip()] = is_true(given.strip())
    return gates


def is_on(gates: Mapping[str, bool], name: str, *, default: bool) -> bool:
    """Whether a beta feature is on: by its own name, as all of its kind, or by itself."""
    return gates.get(name, gates.get("AllBeta", default))
