"""Faults: what is wrong with a scenario, each with its place.

`Fault` is a value, so that all of them can be listed. `misfits` compares a value with the table of
fields: unknown members, wrong types, values outside their range, a field in two spellings.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from kubescene.errors import ScenarioError
from kubescene.scenario.fields.table import Field, FieldType

Step = str | int
NEARLY = 0.75
"""How alike a word must be to be what was meant: ``operations`` is not ``generation``."""
TYPES: dict[FieldType, tuple[type, ...]] = {
    FieldType.TEXT: (str,),
    FieldType.WHOLE: (int,),
    FieldType.FLAG: (bool,),
    FieldType.OBJECT: (Mapping,),
    FieldType.LIST: (list, tuple),
    FieldType.AMOUNT: (str, int, float, Mapping),
}
WORDS = {
    FieldType.TEXT: "text",
    FieldType.WHOLE: "a whole number",
    FieldType.FLAG: "true or false",
    FieldType.OBJECT: "an object",
    FieldType.LIST: "a list",
    FieldType.AMOUNT: "an amount or a distribution",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the way to it from the top of the document, and what is wrong there.

    ``of_name``: the member should not be there at all, so its name is what to look at.
    ``unknown``: it is a field that nobody knows, which an operation may admit. ``where`` is set
    where words say more than the way.
    """

    path: tuple[Step, ...]
    message: str
    of_name: bool = False
    unknown: bool = False
    where: str = ""

    def under(self, *steps: Step) -> "Fault":
        return replace(self, path=(*steps, *self.path))

    @property
    def error(self) -> ScenarioError:
        return ScenarioError(self.message, where=self.where or spelled(self.path), path=self.path)


def is_of_unknown_kind(fault: Fault) -> bool:
    """Whether it says that nobody has registered a kind, by now."""
    return fault.path[-1:] == ("kind",) and fault.message.startswith("no kind ")


def spelled(path: tuple[Step, ...]) -> str:
    """A way through a document as people write it: ``spec.operations[0].step``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def misfits(value: Any, field: Field) -> Iterator[Fault]:
    """What does not fit; nothing is said of what is absent or null."""
    if value is None:
        return
    if not _is_of_type(value, field):
        yield Fault((), f"must be {expected(field)}, not {shown(value)}")
    elif field.choices and value not in field.choices:
        yield Fault((), f"must be one of {', '.join(field.choices)}, not {shown(value)}")
    elif field.type is FieldType.WHOLE:
        if not (field.least or -(2**63)) <= value <= (field.most or 2**63 - 1):
            yield Fault((), f"must be {expected(field)}, not {shown(value)}")
    elif field.items is not None:
        for index, item in enumerate(value):
            yield from (fault.under(index) for fault in misfits(item, field.items))
            if item is None:
                yield Fault((index,), f"must be {expected(field.items)}, not null")
    elif field.is_map:
        yield from _untexts(value)
    elif field.type is FieldType.OBJECT:
        yield from _members(value, field)


def _is_of_type(value: Any, field: Field) -> bool:
    if field.type is FieldType.WHOLE and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[field.type])


def expected(field: Field) -> str:
    """The type of a field in words, with its range."""
    words = WORDS[field.type]
    if field.least is not None and field.most is not None:
        return f"{words} from {field.least} to {field.most}"
    return words if field.least is None else f"{words} of at least {field.least}"


def shown(value: Any) -> str:
    """A value for a message: short, on one line."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _untexts(value: Mapping[str, Any]) -> Iterator[Fault]:
    for name, each in value.items():
        if not isinstance(each, str):
            yield Fault((name,), f"must be text, not {shown(each)}: put it in quotes")


def _members(value: Mapping[str, Any], field: Field) -> Iterator[Fault]:
    spellings: dict[str, str] = {}
    for name, each in value.items():
        member = field.member(name)
        if member is None:
            if not field.open:
                yield Fault((name,), _unknown(name, field), of_name=True, unknown=True)
            continue
        if member.name in spellings:
            first = spellings[member.name]
            yield Fault((name,), f"{first} and {name} are one field: keep one", of_name=True)
        spellings[member.name] = name
        yield from (fault.under(name) for fault in misfits(each, member))
    for member in field.fields:
        spelling = spellings.get(member.name)
        if member.required and (spelling is None or value[spelling] in (None, "")):
            yield Fault((), f"needs {member.name}")


def _unknown(name: Any, field: Field) -> str:
    if (why := dict(field.refused).get(name)) is not None:
        return f"{name} cannot be set here: {why}"
    known = [spelling for each in field.fields for spelling in (each.name, *each.also)]
    meant = get_close_matches(str(name), known, 1, NEARLY)
    hint = f"did you mean {meant[0]}" if meant else f"known are: {', '.join(known)}"
    return f"unknown field {str(name)!r}: {hint}{'?' if meant else ''}"
