"""Messages and services from ``.proto`` files, read when they are first needed.

The files in ``protos`` are the one source, for us and for whoever writes a plugin in another
language. They are read here, as far as they use the language, instead of being compiled: generated
code is tied to the version of protobuf that generated it.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kubescene.autoscalers.process import grpc_extra  # noqa: F401 - names the extra if it is missing

# isort: split
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.unknown_fields import UnknownFieldSet

_TOKEN = re.compile(r'\s+|//[^\n]*|(?P<token>"[^"]*"|[\w.]+|[{}()=;])')
_SCALARS = {"int32": 5, "int64": 3, "uint32": 13, "bool": 8, "string": 9, "bytes": 12}
_MESSAGE, _ENUM = 11, 14
_OPTIONAL, _REPEATED = 1, 3


class Method(NamedTuple):
    """One call of a service: where it is, what it takes and what it answers."""

    path: str
    request: type[Any]
    response: type[Any]
    streams: bool


@cache
def methods(file: str, service: str) -> dict[str, Method]:
    """The calls of a service by name, such as ``methods("health", "Health")``."""
    proto = parsed(file)
    pool = _pool(file)
    found = pool.FindServiceByName(f"{proto.package}.{service}")
    return {
        each.name: Method(
            f"/{found.full_name}/{each.name}",
            message_factory.GetMessageClass(each.input_type),
            message_factory.GetMessageClass(each.output_type),
            each.server_streaming,
        )
        for each in found.methods
    }


@cache
def message(file: str, name: str) -> type[Any]:
    """The class of a message."""
    proto = parsed(file)
    found = _pool(file).FindMessageTypeByName(f"{proto.package}.{name}")
    made: type[Any] = message_factory.GetMessageClass(found)
    return made


def unknown_numbers(got: Any) -> list[int]:
    """The numbers of fields that a message has and its definition does not, or not so."""
    return [each.field_number for each in UnknownFieldSet(got)]


@cache
def _pool(file: str) -> Any:
    # One of our own: other packages bring messages of the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(parsed(file))
    return pool


@cache
def parsed(file: str) -> Any:
    """A file of ``protos`` as a FileDescriptorProto."""
    text = files(__package__).joinpath("protos", f"{file}.proto").read_text(encoding="utf-8")
    return _ProtoReader(text).file(f"{file}.proto")


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"cannot read {text[place : place + 20]!r}")
        if found["token"]:
            yield found["token"]
        place = found.end()


class _ProtoReader:
    """Reads proto3: messages, enums and oneofs, services; of options only ``go_package``."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0

    def file(self, name: str) -> Any:
        made = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3")
        while self._place < len(self._tokens):
            self._declaration(made)
        _qualify(made)
        return made

    def _declaration(self, made: Any) -> None:
        match self._next():
            case "syntax":
                self._skip("=", '"proto3"', ";")
            case "package":
                made.package = self._next()
                self._skip(";")
            case "option":
                self._skip("go_package", "=")
                made.options.go_package = self._next().strip('"')
                self._skip(";")
            case "service":
                self._service(made.service.add(name=self._next()))
            case "enum":
                self._enum(made.enum_type.add(name=self._next()))
            case "message":
                self._message(made.message_type.add(name=self._next()))
            case other:
                raise ValueError(f"{made.name}: cannot read {other!r}")

    def _service(self, made: Any) -> None:
        for _ in self._block("rpc"):
            method = made.method.add(name=self._next())
            self._skip("(")
            method.input_type = self._next()
            self._skip(")", "returns", "(")
            if self._peek() == "stream":
                method.server_streaming = bool(self._next())
            method.output_type = self._next()
            self._skip(")", ";")

    def _enum(self, made: Any) -> None:
        for name in self._block():
            self._skip("=")
            made.value.add(name=name, number=int(self._next()))
            self._skip(";")

    def _message(self, made: Any) -> None:
        for first in self._block():
            if first == "enum":
                self._enum(made.enum_type.add(name=self._next()))
            elif first == "oneof":
                made.oneof_decl.add(name=self._next())
                for kind in self._block():
                    field = self._field(made, kind)
                    field.oneof_index = len(made.oneof_decl) - 1
            elif first == "repeated":
                self._field(made, self._next()).label = _REPEATED
            else:
                self._field(made, first)

    def _field(self, made: Any, kind: str) -> Any:
        field = made.field.add(name=self._next(), label=_OPTIONAL)
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
        self._skip("=")
        field.number = int(self._next())
        self._skip(";")
        return field

    def _block(self, expected: str | None = None) -> Iterator[str]:
        """The first word of each entry between braces."""
        self._skip("{")
        while (first := self._next()) != "}":
            if expected not in (None, first):
                raise ValueError(f"expected {expected}, not {first!r}")
            yield first

    def _peek(self) -> str:
        return self._tokens[self._place]

    def _next(self) -> str:
        self._place += 1
        return self._tokens[self._place - 1]

    def _skip(self, *expected: str) -> None:
        for each in expected:
            if (token := self._next()) != each:
                raise ValueError(f"expected {each!r}, not {token!r}")


def _qualify(made: Any) -> None:
    """Give every name its package, and say which of them are enums."""
    outer = {each.name for each in made.enum_type}
    for message in made.message_type:
        inner = {each.name for each in message.enum_type}
        for field in message.field:
            if field.type_name:
                enum = field.type_name in inner | outer
                within = f"{message.name}." if field.type_name in inner else ""
                field.type = _ENUM if enum else _MESSAGE
                field.type_name = f".{made.package}.{within}{field.type_name}"
    for service in made.service:
        for method in service.method:
            method.input_type = f".{made.package}.{method.input_type}"
            method.output_type = f".{made.package}.{method.output_type}"
