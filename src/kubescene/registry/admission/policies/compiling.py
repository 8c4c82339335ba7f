"""The expressions of policies: which names they may use, and what has to come of them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from kubescene.bounded import KEPT
from kubescene.cel.checking import MESSAGES
from kubescene.cel.errors import CompileError
from kubescene.cel.functions import Library
from kubescene.cel.programs import Program, compile_expression
from kubescene.cel.types import (
    BOOL,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_of,
)
from kubescene.types import JsonObject

TRUTH = (BOOL,)
TEXT = (STRING,)
TEXT_OR_NONE = (STRING, NULL)
OBJECT = (Type("Object"),)
JSON_PATCH = (list_of(Type("JSONPatch")),)
PATCHING = Library()


@PATCHING.function("jsonpatch.escapeKey", STRING, (STRING,))
def escape_key(key: str) -> str:
    """A name as a step of the path of a JSON patch."""
    return key.replace("~", "~0").replace("/", "~1")


_TEXTS = list_of(STRING)
_LABELS = map_of(STRING, STRING)


def _of_texts(name: str, *fields: str) -> Type:
    return object_of(name, dict.fromkeys(fields, STRING))


_KIND = _of_texts("kubernetes.GroupVersionKind", "group", "version", "kind")
_RESOURCE = _of_texts("kubernetes.GroupVersionResource", "group", "version", "resource")
_USER = object_of(
    "kubernetes.UserInfo",
    {"username": STRING, "uid": STRING, "groups": _TEXTS, "extra": map_of(STRING, _TEXTS)},
)
REQUEST = object_of(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
)
_CONDITION = object_of(
    "kubernetes.NamespaceCondition",
    {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
)
NAMESPACE = object_of(
    "kubernetes.Namespace",
    {
        "metadata": object_of(
            "kubernetes.NamespaceMetadata",
            {
                **dict.fromkeys(("name", "generateName", "namespace", "UID"), STRING),
                "labels": _LABELS,
                "annotations": _LABELS,
                "creationTimestamp": TIMESTAMP,
                "deletionGracePeriodSeconds": INT,
                "deletionTimestamp": TIMESTAMP,
                "generation": INT,
                "resourceVersion": STRING,
                "finalizers": _TEXTS,
            },
        ),
        "spec": object_of("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": object_of(
            "kubernetes.NamespaceStatus", {"conditions": list_of(_CONDITION), "phase": STRING}
        ),
    },
)
VARIABLES = "variables"
_COMMON: Mapping[str, Type] = {
    "object": DYN,
    "oldObject": DYN,
    "namespaceObject": NAMESPACE,
    "request": REQUEST,
}

Names: TypeAlias = tuple[tuple[str, Type], ...]


class Expression(Struct, frozen=True):
    """A text and its program, or what is wrong with it."""

    text: str
    program: Program | None
    fault: str = ""


@lru_cache(maxsize=KEPT)
def compiled(text: str, wanted: tuple[Type, ...], names: Names) -> Expression:
    """An expression whose value has one of these types; without any, of whatever type."""
    patches = wanted in (OBJECT, JSON_PATCH)
    library, messages = (PATCHING, tuple(MESSAGES)) if patches else (None, ())
    try:
        program = compile_expression(
            text, dict(names), may_mix=False, library=library, messages=messages
        )
    except CompileError as error:
        return Expression(text, None, f"compilation failed: {error}")
    if wanted and program.result not in wanted:
        types = [_shown(each) for each in wanted]
        choice = types[0] if len(types) == 1 else f"one of [{' '.join(types)}]"
        fault = f"must evaluate to {choice} but got {_shown(program.result)}"
        return Expression(text, None, fault)
    return Expression(text, program)


def _shown(of: Type) -> str:
    return "null_type" if of == NULL else str(of)


class Vocabulary:
    """The names that the expressions of one policy may use. Variables come one by one."""

    def __init__(self, spec: JsonObject) -> None:
        known = dict(_COMMON)
        if spec.get("paramKind") is not None:
            known["params"] = DYN
        self.plain: Names = tuple(known.items())
        self._variables: dict[str, Type] = {}

    @property
    def names(self) -> Names:
        """With the variables that were added by now."""
        made = object_of("kubernetes.variables", self._variables)
        return (*self.plain, (VARIABLES, made))

    def add(self, name: str, text: str) -> Expression:
        """One more variable: those after it may use it, even if it cannot be compiled."""
        expression = compiled(text, (), self.names)
        program = expression.program
        self._variables[name] = DYN if program is None else _declared(program.result)
        return expression


def _declared(of: Type) -> Type:
    """The type by which others see a variable; of objects nothing is known."""
    if of.name in ("list", "map"):
        return Type(of.name, tuple(map(_declared, of.parts)))
    return DYN if of.fields is not None or of.parts or of.name not in _PLAIN else of


_PLAIN = frozenset(
    (
        *("any", "bool", "bytes", "double", "int", "null", "string", "uint"),
        *("google.protobuf.Duration", "google.protobuf.Timestamp"),
    )
)
