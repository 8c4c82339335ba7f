"""Facts as lines of JSON, and lines as facts.

A line has the envelope of its fact, then the fields that its kind declares, in their order; fields
that may be empty are left out where they are. Kinds whose fields refer to something else
(`ReferringFact`) say how these are told: what is large stands in one line, and a later one refers
to it by its position (the first fact is 0), so that an operation of ten thousand instances and the
object behind a placement are written once.

`line_type` is the struct that a line is decoded into, derived from the same fields; what is large
stays text in it. Whoever needs no more than that (results) makes no facts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import attrgetter, or_
from types import UnionType
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, get_args

import msgspec

from kubescene.actors import Role
from kubescene.clock import ScenarioStep
from kubescene.struct_types import build
from kubescene.timeline.facts import ENVELOPE, GENERATED_ID, Fact, LineReader, LineWriter

NOTHING = msgspec.Raw()
Teller: TypeAlias = Callable[[Any, LineWriter, dict[str, Any]], None]
"""Adds to the members of a line what stands there for a field of its fact."""
_ENCODE = msgspec.json.Encoder().encode


class Line(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel"):
    """What every line says, whatever its kind adds."""

    id: str
    step: ScenarioStep
    time: int
    actor: str
    role: Role

    @property
    def is_asked(self) -> bool:
        """Whether an operation asked for it, not a controller."""
        return not self.id.startswith(GENERATED_ID)


class ReferringFact(Fact, frozen=True):
    """A fact of whose fields some are told in another way than as they are.

    ``refers`` names them and says how each is told, `referred` is the inverse. ``sparse`` are the
    others that are left out where they are empty although they have no default. What has the name
    of ``last`` stands at the end of the line, since it is the longest.
    """

    refers: ClassVar[Mapping[str, Teller]] = {}
    sparse: ClassVar[frozenset[str]] = frozenset()
    last: ClassVar[str] = "record"
    line: ClassVar[type[Line]] = Line
    """What its lines say instead of what it refers to."""

    @classmethod
    def referred(cls, line: Any, reader: LineReader) -> dict[str, Any]:
        """The fields that such members stand for."""
        raise NotImplementedError

    def to_line(self, writer: LineWriter) -> bytes:
        kind = type(self)
        members: dict[str, Any] = {"fact": kind.__name__}
        for keys, values, sparse, tell in _layout(kind).segments:
            members.update(zip(keys, values(self), strict=True))
            for key in sparse:
                if not members[key]:
                    del members[key]
            if tell is not None:
                tell(self, writer, members)
        return _ENCODE(members)

    @classmethod
    def from_line(cls, line: bytes, reader: LineReader) -> Self:
        seen = line_decoder(cls).decode(line)
        plain = {name: getattr(seen, name) for name in (*ENVELOPED, *_plain(cls))}
        return cls(**plain, **cls.referred(seen, reader))


ENVELOPED = tuple(Line.__struct_fields__)


class _Member(NamedTuple):
    """A field as its line has it, unless there is another way to ``tell`` it."""

    field: str
    key: str
    always: bool
    tell: Teller | None


class _LineSegment(NamedTuple):
    """Members that stand one after the other as they are, and one that is told after them.

    Those that are ``sparse`` are left out where they are empty.
    """

    keys: tuple[str, ...]
    values: Callable[[Fact], tuple[Any, ...]]
    sparse: tuple[str, ...]
    tell: Teller | None


class _LineLayout(NamedTuple):
    """The fields of a kind in the order of its lines, and how these are made of them."""

    members: tuple[_Member, ...]
    segments: tuple[_LineSegment, ...]


@cache
def _layout(kind: type[ReferringFact]) -> _LineLayout:
    members = [
        _Member(
            each.name,
            each.encode_name,
            each.required and each.name not in kind.sparse,
            kind.refers.get(each.name),
        )
        for each in msgspec.structs.fields(kind)
        if each.name not in ENVELOPE
    ]
    members.sort(key=lambda member: member.field == kind.last)
    return _LineLayout(tuple(members), tuple(_segments(members)))


def _segments(members: Iterable[_Member]) -> Iterator[_LineSegment]:
    """A line from its envelope to its end."""
    plain = [_Member(name, name, True, None) for name in ENVELOPED]
    for member in members:
        if member.tell is None:
            plain.append(member)
        else:
            yield _segment(plain, member.tell)
            plain = []
    if plain:
        yield _segment(plain, None)


def _segment(plain: Sequence[_Member], tell: Teller | None) -> _LineSegment:
    keys = tuple([each.key for each in plain])
    sparse = tuple([each.key for each in plain if not each.always])
    return _LineSegment(keys, _values([each.field for each in plain]), sparse, tell)


def _values(fields: Sequence[str]) -> Callable[[Fact], tuple[Any, ...]]:
    """Reads these fields of a fact."""
    if len(fields) > 1:
        return attrgetter(*fields)
    return lambda fact: tuple([getattr(fact, field) for field in fields])


@cache
def _plain(kind: type[ReferringFact]) -> tuple[str, ...]:
    return tuple(member.field for member in _layout(kind).members if member.tell is None)


def line_type(kind: type[Fact]) -> type[Any]:
    """What lines about such facts are decoded into: the fact itself, unless it refers."""
    if not issubclass(kind, ReferringFact):
        return kind
    known = _LINE_TYPES.get(kind)
    if known is None:
        known = _LINE_TYPES.setdefault(kind, _line_type(kind))
    return known


_LINE_TYPES: dict[type[ReferringFact], type[Any]] = {}
"""No cache that could be cleared: readers know these types by identity."""


def _line_type(kind: type[ReferringFact]) -> type[Any]:
    there = kind.line.__struct_fields__
    fields = [
        (each.name, each.type, msgspec.field(default=_default(each, kind), name=each.encode_name))
        if each.name in kind.sparse or not each.required
        else (each.name, each.type, msgspec.field(name=each.encode_name))
        for each in msgspec.structs.fields(kind)
        if each.name not in there and each.name not in kind.refers
    ]
    return msgspec.defstruct(
        kind.__name__,
        fields,
        bases=(kind.line,),
        module=kind.__module__,
        tag=kind.__name__,
        tag_field="fact",
        frozen=True,
        gc=False,
        kw_only=True,
    )


def build_line_types() -> None:
    """Make the types of all lines, before several threads read some (`struct_types`)."""
    kinds = ReferringFact.__subclasses__()
    for kind in kinds:
        if inner := kind.__subclasses__():
            kinds += inner
        else:
            build(line_type(kind))


def _default(field: msgspec.structs.FieldInfo, kind: type[ReferringFact]) -> Any:
    if not field.required:
        return field.default
    return None if isinstance(field.type, UnionType) and type(None) in get_args(field.type) else ""


@cache
def line_decoder(*kinds: type[Fact]) -> "msgspec.json.Decoder[Any]":
    """Decodes lines about facts of these kinds."""
    return msgspec.json.Decoder(reduce(or_, map(line_type, kinds)))
