"""Facts: what happened, one struct for each kind of thing that can happen.

A fact has an envelope (id, step, time, who did it in which role) and what its kind adds. Writers
and readers use the same struct. A package of ours adds a kind by subclassing; nothing lists them
all. Controllers and plugins of users tell structs of their own, which become a `CustomFact`.

A log is written and read line by line: `LineWriter` and `LineReader` know what stood in the lines
before, so that a fact may refer to it (`lines`).

Facts are immutable, and what they refer to is too: a fork of a world shares those of its past.
Two facts are equal if they are the same one; to compare logs, compare their lines.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from kubescene.actors import Role
from kubescene.api.options import OperationOrigin
from kubescene.clock import ScenarioStep

GENERATED_ID = "@"
"""How the ids of facts begin that no operation asked for; operations may not use it."""

T = TypeVar("T")
DAMAGED = (msgspec.DecodeError, UnicodeDecodeError)
"""What a line with a wrong byte in it raises."""
_KINDS: dict[str, type["Fact"]] = {}


class FactObject(NamedTuple):
    """The object that a fact is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class Fact(
    msgspec.Struct,
    frozen=True,
    eq=False,
    gc=False,
    tag=True,
    tag_field="fact",
    rename="camel",
):
    """One thing that happened. ``time`` is virtual, in nanoseconds since 1970.

    ``gc=False`` is sound because a fact refers to older, immutable values only.
    """

    id: str
    step: ScenarioStep
    time: int
    actor: str
    role: Role

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name = cls.__name__
        if name in _KINDS:
            raise TypeError(f"there is a fact called {name} already: {_KINDS[name].__module__}")
        _KINDS[name] = cls

    @property
    def is_asked(self) -> bool:
        """Whether an operation asked for it, not a controller."""
        return not self.id.startswith(GENERATED_ID)

    def objects(self) -> Iterable[FactObject]:
        """The objects that it is about, for those who look for one."""
        return ()

    def to_line(self, writer: "LineWriter") -> bytes:
        """One line of JSON. Kinds whose fields are plain need not override this."""
        del writer
        return msgspec.json.encode(self)

    @classmethod
    def from_line(cls, line: bytes, reader: "LineReader") -> Self:
        """The inverse of `to_line`; raises `msgspec.DecodeError` for what is not one."""
        del reader
        return msgspec.json.decode(line, type=cls)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} at {self.step} by {self.actor}>"


class Done(Fact, frozen=True, kw_only=True):
    """A done operation was reached: the scenario succeeds when its step is complete."""

    operation: msgspec.Raw


class Advanced(Fact, frozen=True, kw_only=True):
    """An advance operation was reached: time passes once its step has come to rest."""

    operation: msgspec.Raw


class ScenarioEnded(Fact, frozen=True, kw_only=True):
    """The scenario succeeded, paused or failed. A paused one may go on."""

    phase: str
    message: str = ""


PLAIN_MESSAGE = "failed expression: "
"""Before the expression, where its author says nothing else."""


class Outcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What came of an expectation.

    One that does not hold has a ``message`` for people, and ``seen`` are the values that were found
    instead (``9 <= 6``); ``error`` says why its expression has no value, in which case it does not
    hold either.
    """

    name: str
    expression: str
    holds: bool
    message: str = ""
    error: str = ""
    seen: str = ""


class ExpectationsEvaluated(Fact, frozen=True, kw_only=True):
    """What the scenario expects of its result was looked at, in the order of its author.

    Just before the scenario ends. If it pauses and goes on, what is said at the next end counts.
    """

    outcomes: tuple[Outcome, ...]


class OperationsIgnored(Fact, frozen=True, kw_only=True):
    """Operations that are never played, by their ids, because their step has passed."""

    operations: tuple[str, ...]


class OperationOutcome(Fact, frozen=True, kw_only=True):
    """What came of an operation, beyond what it wrote: it waits, was refused, is complete.

    Its id is that of the operation, and ``operation`` the operation's type. ``subject`` is the part
    of it that is meant: the name of a node, ``namespace/name`` of a pod.
    """

    operation: str
    state: str
    subject: str = ""
    message: str = ""


class NotSimulated(Fact, frozen=True, kw_only=True):
    """What the scenario uses and nobody acts on, in words for people."""

    warnings: tuple[str, ...]


class CustomFact(Fact, frozen=True, kw_only=True):
    """A fact that somebody's controller or plugin told, by the line that it is.

    The same whether it was just told or read from a file, with or without its author's code; a kind
    that nobody here knows is one, too. Passed on byte for byte.
    """

    kind: str
    line: bytes

    @property
    def fields(self) -> dict[str, Any]:
        """What its author's struct said, as plain data."""
        found: dict[str, Any] = msgspec.json.decode(self.line)
        return {name: value for name, value in found.items() if name not in ENVELOPE}

    def read(self, kind: type[T]) -> T:
        """The author's struct; `msgspec.ValidationError` if it does not fit."""
        return msgspec.convert(self.fields, kind, strict=False)

    def objects(self) -> Iterable[FactObject]:
        """The object in its member ``about``, if that is an `About`."""
        try:
            about = msgspec.json.decode(self.line, type=_WithAbout).about
        except msgspec.ValidationError:
            return ()  # the author means something else by the word
        if about is None:
            return ()
        return (FactObject(about.api_version, about.kind, about.namespace, about.name, about.uid),)

    def to_line(self, writer: "LineWriter") -> bytes:
        del writer
        return self.line

    @classmethod
    def from_line(cls, line: bytes, reader: "LineReader") -> Self:
        del reader
        seen = msgspec.json.decode(line, type=Envelope)
        return cls(
            id=seen.id,
            step=seen.step,
            time=seen.time,
            actor=seen.actor,
            role=seen.role,
            kind=seen.fact,
            line=line.removesuffix(b"\n"),
        )

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id} at {self.step} by {self.actor}>"


class About(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which object a custom fact is about, in its member ``about``: the log finds it by that."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class _WithAbout(msgspec.Struct, frozen=True):
    about: About | None = None


class Envelope(msgspec.Struct, frozen=True):
    """What can be read of every line."""

    fact: str
    id: str
    step: ScenarioStep
    time: int
    actor: str
    role: Role


ENVELOPE = frozenset(Envelope.__struct_fields__)


def kind_of(name: str) -> type[Fact]:
    """The struct of a kind; `CustomFact` for those that nobody here has defined."""
    return _KINDS.get(name, CustomFact)


def is_built_in(name: str) -> bool:
    """Whether a kind of that name has a struct here, so that nobody else may use the name."""
    return name in _KINDS


def operation_of(origin: OperationOrigin) -> msgspec.Raw:
    return msgspec.Raw(origin.rendered)


class LineWriter:
    """Encodes facts in order and remembers which line holds what."""

    def __init__(self, position: int = 0) -> None:
        """From a fact on: what lines before it hold is written anew."""
        self.position = position
        self._places: dict[str, tuple[Any, int]] = {}

    def line(self, fact: Fact) -> bytes:
        data = fact.to_line(self)
        self.position += 1
        return data

    def note(self, slot: str, value: Any) -> None:
        """The line being written is now the newest that holds something under this name."""
        self._places[slot] = (value, self.position)

    def forget(self, slot: str) -> None:
        self._places.pop(slot, None)

    def place_of(self, slot: str, value: Any) -> int | None:
        """Where this very value stands, if the newest line with such a value has it."""
        held, position = self._places.get(slot, (None, 0))
        return position if held is value else None


class _Kind(msgspec.Struct, frozen=True):
    fact: str


_KIND = msgspec.json.Decoder(_Kind)


def kind_named(line: bytes) -> str:
    """Of which kind the fact of a line is."""
    return _KIND.decode(line).fact


F = TypeVar("F", bound=Fact)


class LineReader:
    """Decodes lines in order. ``facts`` are those of the lines before."""

    def __init__(self, facts: list[Fact]) -> None:
        self._facts = facts

    def read(self, line: bytes) -> Fact:
        """The fact of the next line; raises `msgspec.DecodeError` if it is damaged."""
        return kind_of(kind_named(line)).from_line(line, self)

    def fact(self, position: int, kind: type[F]) -> F:
        """An earlier fact that a line refers to."""
        found = self._facts[position] if 0 <= position < len(self._facts) else None
        if not isinstance(found, kind):
            raise msgspec.ValidationError(
                f"it refers to fact {position}, which is not a {kind.__name__} before it"
            )
        return found
