"""Validation rules of a schema (``x-kubernetes-validations``), compiled.

A `RuleNode` stands for a schema that has rules, or has some below it. Each rule sees ``self``, the
part of the object where it stands, and ``oldSelf``, what that was before a change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubescene.api.schemas.simple_paths import valid_field_path
from kubescene.cel.errors import CompileError
from kubescene.cel.programs import Program, compile_expression, unreadable_pattern, worst_cost
from kubescene.cel.schema_types import Declared, as_resource, declared, escaped
from kubescene.cel.types import BOOL, STRING, Type, optional_of
from kubescene.types import JsonObject

RULES = "x-kubernetes-validations"
ROOT = "selfType"
"""The name of the outermost type, as messages show it."""


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """One rule. Without a ``program`` it is empty, or wrong: ``problem`` says what is."""

    source: JsonObject
    program: Program | None = None
    problem: str = ""
    cost: int = 0
    message: Program | None = None
    message_problem: str = ""
    message_cost: int = 0
    field_path: str = ""

    @property
    def uses_old(self) -> bool:
        return self.program is not None and "oldSelf" in self.program.names

    @property
    def is_optional(self) -> bool:
        """Whether ``oldSelf`` is an optional value, which there is of new objects, too."""
        return bool(self.source.get("optionalOldSelf"))

    @property
    def told_as(self) -> str:
        """What stands for the rule in messages about it."""
        return (self.source.get("message") or self.source.get("rule") or "").strip()


@dataclass(frozen=True, slots=True)
class RuleNode:
    """A schema with its rules, and those below it that have any."""

    schema: JsonObject
    rules: tuple[SchemaRule, ...] = ()
    is_resource: bool = False
    properties: Mapping[str, "RuleNode"] = field(default_factory=dict)
    items: "RuleNode | None" = None
    additional: "RuleNode | None" = None

    @property
    def seen(self) -> JsonObject:
        """The schema by which rules see the object."""
        return as_resource(self.schema) if self.is_resource else self.schema


def compiled_rules(schema: JsonObject, kind: Declared) -> tuple[SchemaRule, ...]:
    """The rules that stand at a schema, whose type is ``kind``."""
    return tuple(_rule(source, schema, kind) for source in schema.get(RULES) or ())


def _rule(source: JsonObject, schema: JsonObject, kind: Declared) -> SchemaRule:
    text = source.get("rule") or ""
    if not text.strip():
        return SchemaRule(source)
    old = optional_of(kind.type) if source.get("optionalOldSelf") else kind.type
    names = {"self": kind.type, "oldSelf": old}
    program = _program(text, names, BOOL)
    if isinstance(program, str):
        wrong = "cel expression must evaluate to a bool"
        problem = program.replace("instantiation", "program instantiation", 1)
        return SchemaRule(source, problem=problem or wrong)
    cost = worst_cost(program, names, kind.size_at)
    found = SchemaRule(source, program, cost=cost, field_path=_shown_path(source, schema))
    words = source.get("messageExpression") or ""
    if not words:
        return found
    message = _program(words, names, STRING)
    if isinstance(message, str):
        wrong = "messageExpression must evaluate to a string"
        problem = f"messageExpression {message}" if message else wrong
        return replace(found, message_problem=problem)
    dear = worst_cost(message, names, kind.size_at)
    return replace(found, message=message, message_cost=dear)


def _shown_path(source: JsonObject, schema: JsonObject) -> str:
    try:
        found = valid_field_path(source.get("fieldPath") or "", schema)
    except ValueError:
        return ""
    return "" if found is None else found[0]


def _program(text: str, names: Mapping[str, Type], wanted: Type) -> Program | str:
    """The program, or why it is none; nothing if it is one of another type."""
    try:
        program = compile_expression(text, names, may_mix=False)
    except CompileError as error:
        return f"compilation failed: {error}"
    if problem := unreadable_pattern(program):
        return f"instantiation failed: {problem}"
    return program if program.result == wanted else ""


def rules_of(
    schema: JsonObject, *, is_resource: bool = False, kind: Declared | None = None
) -> RuleNode | None:
    """The rules of a schema and of everything below; None if there are none.

    ``kind`` is its type, if that is known from above.
    """
    kind = kind or declared(schema, ROOT, is_resource=is_resource)
    rules = () if kind is None else compiled_rules(schema, kind)
    found = {
        name: _rules_below(part, _member(kind, name))
        for name, part in (schema.get("properties") or {}).items()
    }
    properties = {name: node for name, node in found.items() if node is not None}
    inner = kind.elements if kind is not None else None
    items = _rules_below(schema.get("items"), inner)
    additional = _rules_below(schema.get("additionalProperties"), inner)
    if not (rules or properties or items or additional):
        return None
    return RuleNode(schema, rules, is_resource, properties, items, additional)


def _member(kind: Declared | None, name: str) -> Declared | None:
    selected = escaped(name)
    return None if kind is None or selected is None else kind.fields.get(selected)


def _rules_below(schema: Any, kind: Declared | None) -> RuleNode | None:
    if not isinstance(schema, dict):
        return None
    is_resource = bool(schema.get("x-kubernetes-embedded-resource"))
    return rules_of(schema, is_resource=is_resource, kind=kind)
