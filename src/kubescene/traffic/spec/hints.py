"""What somebody may have meant who wrote a field or a word that does not exist."""

from collections.abc import Sequence
from difflib import get_close_matches
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec


def field_hint(kind: type, path: str, name: str) -> str:
    """For an unknown field ``name`` of the object at ``path``, such as ``spec.traffic``."""
    owner = type_at(kind, path)
    if not _is(owner, msgspec.Struct):
        return ""
    return _hint(name, [each.encode_name for each in msgspec.structs.fields(owner)])


def word_hint(kind: type, path: str, word: str) -> str:
    """For a word at ``path`` that is none of those that can stand there."""
    owner = type_at(kind, path)
    return _hint(word, [each.value for each in owner]) if _is(owner, Enum) else ""


def type_at(kind: Any, path: str) -> Any:
    """The type of a field; None where the path leads nowhere."""
    for step in filter(None, path.split(".")):
        if not _is(kind, msgspec.Struct):
            return None
        fields = {each.encode_name: each.type for each in msgspec.structs.fields(kind)}
        kind, _ = bare_type(fields.get(step.partition("[")[0]))
    return kind


def bare_type(kind: Any) -> tuple[Any, bool]:
    """The type without "or nothing" and without the list around it; whether there was one."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not NoneType)
    if get_origin(kind) is tuple:
        return get_args(kind)[0], True
    return kind, False


def _is(kind: Any, base: type) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _hint(word: str, known: Sequence[str]) -> str:
    # Case is what is most often wrong in camelCase.
    folded = {each.lower(): each for each in known}
    meant = get_close_matches(word.lower(), list(folded), 1)
    return f"did you mean {folded[meant[0]]}?" if meant else f"known are {', '.join(known)}"
