"""Facts of users: what a controller or plugin tells, checked and made a line.

The author's class is the kind, its fields are the members. What is told has to come back from a
file exactly as it was, without the author's code, so it must be plain data: what JSON has, and what
becomes that (enums, times, tuples). Sets and mappings are written in the order of their keys.
"""

import re
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from kubescene.errors import RecorderError
from kubescene.timeline.facts import ENVELOPE, CustomFact, Envelope, is_built_in

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
LARGEST = 1 << 63


class _Author(NamedTuple):
    """Where a type of facts comes from; one that is loaded again is the same."""

    module: str
    name: str


class CustomKinds:
    """The kinds of one log: a name stands for one type of facts."""

    def __init__(self) -> None:
        self._authors: dict[str, _Author] = {}

    def fact(self, told: object, stamp: Callable[[str], Envelope]) -> CustomFact:
        """What was told, with the envelope that ``stamp`` gives; `RecorderError` if it is no fact.

        The envelope is asked for last: what is refused leaves no trace.
        """
        kind = self._kind(told)
        text = encoded(told, kind)
        seen = stamp(kind)
        envelope = msgspec.json.encode(seen)
        line = envelope[:-1] + (b"}" if text == b"{}" else b"," + text[1:])
        return CustomFact(
            id=seen.id,
            step=seen.step,
            time=seen.time,
            actor=seen.actor,
            role=seen.role,
            kind=kind,
            line=line,
        )

    def _kind(self, told: object) -> str:
        made = type(told)
        kind = made.__name__
        if not isinstance(told, msgspec.Struct):
            raise refusal(kind, "it is no msgspec.Struct; declare one with the fields to be told")
        if is_built_in(kind):
            raise refusal(kind, "Kubescene has a fact of that name; name the class otherwise")
        if NAME.fullmatch(kind) is None:
            raise refusal(kind, "a name has letters, digits and _ only, and begins with a letter")
        author = _Author(made.__module__, made.__qualname__)
        known = self._authors.setdefault(kind, author)
        if known != author:
            raise refusal(
                kind,
                f"{known.module}.{known.name} is told by that name already, this is "
                f"{author.module}.{author.name}; name one of the classes otherwise",
            )
        return kind


def encoded(told: msgspec.Struct | object, kind: str) -> bytes:
    """A struct as a JSON object."""
    try:
        plain = msgspec.to_builtins(told, str_keys=True, order="deterministic")
        text = msgspec.json.encode(plain)
    except (TypeError, ValueError, RecursionError) as error:
        why = "it refers to itself" if isinstance(error, RecursionError) else str(error)
        raise refusal(kind, f"it is not plain data: {why}") from error
    if not isinstance(plain, dict):
        raise refusal(kind, "it is a list (array_like); its members need their names")
    for name, value in plain.items():
        if name in ENVELOPE:
            raise refusal(kind, f"every fact has {name!r} of its own; name the field otherwise")
        check(value, name, kind)
    return text


def check(value: Any, place: str, kind: str) -> None:
    """Whether a value comes back from JSON as it is."""
    if isinstance(value, float):
        if not isfinite(value):
            raise refusal(kind, f"{place} is {value}, which JSON has no number for")
    elif isinstance(value, int):
        if not -LARGEST <= value < LARGEST:
            raise refusal(kind, f"{place} needs more than 64 bits; tell it as a text")
    elif isinstance(value, dict):
        for name, each in value.items():
            check(each, f"{place}.{name}", kind)
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            check(each, f"{place}[{number}]", kind)


def refusal(kind: str, why: str) -> RecorderError:
    return RecorderError(f"the fact {kind} cannot be told: {why}")
