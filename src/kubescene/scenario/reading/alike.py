"""Pods, or nodes, that differ in nothing but their names: what they have in common is kept once.

A dump of a cluster, or a trace of jobs, names every one in an operation of its own; most of them
are like others. They are told apart once, when the scenario is read. From then on they share all
but their names, so that whoever looks at them need not look twice: the checks of the scenario, and
the registry, which is told so (`Blueprint`) exactly as it is for the instances of a counted create.
The label in which a node says which host it is counts as its name.
"""

import marshal

import orjson

from kubescene.api.records.templates import Blueprint, HostBlueprint, named, says_host
from kubescene.api.text.encoding import encode
from kubescene.types import JsonObject

KINDS = ("Pod", "Node")
_NAME = "\0"
"""Stands for the name of an object while its place in the text is looked for."""
_EXACT = 2
"""The last version of marshal's format that has no references: equal values, equal bytes."""


class SharedBody:
    """What alike objects have in common: everything but their names.

    Objects made by `named` share it, and nobody changes them: operations belong to the engine.
    """

    __slots__ = ("_around", "_blueprint", "_is_host", "body", "size", "times")

    def __init__(self, body: JsonObject, *, is_host: bool, size: int) -> None:
        self.body = body
        self.size = size
        """No one of them holds more values."""
        self.times = 0
        """How many objects there are."""
        self._is_host = is_host
        self._blueprint: Blueprint | None = None
        self._around: list[bytes] | None = None

    @property
    def blueprint(self) -> Blueprint | None:
        """What is promised to the registry; nothing if there is but one of them."""
        if self._blueprint is None and self.times > 1:
            self._blueprint = (HostBlueprint if self._is_host else Blueprint)(self.body)
        return self._blueprint

    @property
    def is_of_pods(self) -> bool:
        """Whether there are several of them, and they are pods."""
        return self.times > 1 and self.body["kind"] == "Pod"

    def named(self, name: str) -> JsonObject:
        """One of them."""
        return named(self.body, name, is_host=self._is_host)

    def asked(self, name: str) -> bytes:
        """The encoded body of the operation that creates one of them, and says nothing else."""
        if self._around is None:
            text = encode({"object": self.named(_NAME)})
            self._around = text.split(orjson.dumps(_NAME))
        if len(self._around) != (3 if self._is_host else 2):
            # Something else looks like the name.
            return encode({"object": self.named(name)})
        return orjson.dumps(name).join(self._around)


class SharedBodies:
    """Tells which objects are alike, by content: types and the order of members count.

    Where that is not ``wanted``, none is.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        self.wanted = wanted
        self._known: dict[tuple[bool, bytes], SharedBody] = {}

    def of(self, obj: JsonObject) -> SharedBody | None:
        """What an object has in common with others; None if it is of another kind, or odd."""
        if not self.wanted or not given_name(obj):
            return None
        is_host = says_host(obj)
        try:
            key = is_host, marshal.dumps(named(obj, "", is_host=is_host), _EXACT)
        except ValueError:
            return None
        shared = self._known.get(key)
        if shared is None:
            shared = self._known[key] = SharedBody(obj, is_host=is_host, size=len(key[1]))
        shared.times += 1
        return shared


def given_name(obj: JsonObject) -> str:
    """The name that a pod or a node is given; empty for anything else."""
    metadata = obj.get("metadata") if obj.get("kind") in KINDS else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def like(obj: JsonObject, shared: SharedBody | None) -> JsonObject:
    """The object, sharing what it has in common with others."""
    return obj if shared is None else shared.named(obj["metadata"]["name"])
