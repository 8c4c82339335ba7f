"""From what somebody wrote to structs; what is wrong is said in our words, with what was meant."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from kubescene.errors import TrafficError
from kubescene.flows.units import decode

T = TypeVar("T")
MOST_SHOWN = 60
"""So many characters of a text that stands where a number belongs."""
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")

_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")

_NO_WORD = re.compile(r"Invalid enum value '(?P<word>.*)'")

_NO_TYPE = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")

_KINDS = {
    "int": "a whole number",
    "float": "a finite number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "nothing",
}


def converted(document: Mapping[str, Any], kind: type[T], prefix: str) -> T:
    """A decoded object as a struct; raises `TrafficError` with the way to the field."""
    try:
        return msgspec.convert(document, kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise fault_of(error, kind, prefix, document) from error


def fault_of(
    error: msgspec.ValidationError, kind: type, prefix: str, document: Any = None
) -> TrafficError:
    """`explained` as an error."""
    path, what = explained(error, kind, prefix, document)
    return TrafficError(what, path=path)


def explained(
    error: msgspec.ValidationError, kind: type, prefix: str, document: Any = None
) -> tuple[str, str]:
    """What msgspec says of a document: the way to the field, and what is wrong in our words."""
    found = _PLACE.match(str(error))
    assert found is not None
    what, path = found["what"], (found["path"] or "").replace("[...]", "[]")
    if unknown := _UNKNOWN.match(what):
        name = unknown["name"]
        what = _hinted("there is no such field", field_hint(kind, path, name))
        path = ".".join(filter(None, (path, name)))
    elif missing := _MISSING.match(what):
        what = "is required"
        path = ".".join(filter(None, (path, missing["name"])))
    elif wrong := _NO_TYPE.match(what):
        what = f"must be {_wanted(wrong['wanted'])}, not {_got(wrong['got'])}"
        if wrong["got"] == "str" and "[" not in path and (text := _text_at(document, path)):
            what += f" ({text[:MOST_SHOWN]!r})"
    elif word := _NO_WORD.match(what):
        what = _hinted(what, word_hint(kind, path, word["word"]))
    return ".".join(filter(None, (prefix, path))), what


def _text_at(document: Any, path: str) -> str:
    """What was written: .nan and .inf, say, come as text."""
    for step in path.split("."):
        document = document.get(step) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""


def _wanted(kinds: str) -> str:
    return " or ".join(_KINDS.get(each, each) for each in kinds.split(" | ") if each != "null")


def _got(kind: str) -> str:
    return "a fraction" if kind == "float" else _KINDS.get(kind, kind)


def _hinted(what: str, hint: str) -> str:
    return f"{what}: {hint}" if hint else what


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
