"""The CEL rules that a definition brings: whether they compile, and what they could cost at worst.

A rule is charged as often as its place can be in one object: as schemas above it bound that, or as
often as it fits a request. What one rule may cost, and all of a schema together, are Kubernetes'
limits. Looked at when all else in a definition is right.
"""

from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

from kubescene.api.schemas.structural_rules import schemas_of
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.inner_forms import VALIDATION_RULE, inner
from kubescene.cel.schema_rules import ROOT, RULES, SchemaRule, compiled_rules, rules_of
from kubescene.cel.schema_types import Declared, declared, escaped
from kubescene.cel.sizes import MOST
from kubescene.registry.rules.asking import default_errors
from kubescene.types import JsonObject

MOST_OF_A_RULE = 10_000_000
MOST_OF_A_SCHEMA = 100_000_000
TOLD_OF = 4
"""How many of the dearest rules are named when all together cost too much."""
_HINT = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared"
)


class _Place(Struct, frozen=True):
    """A schema within a definition.

    ``times`` is how often it can be in one object (None: nobody says), ``kind`` its type if a rule
    stands at it or above, ``unmatched`` the list above whose items nobody finds again.
    """

    schema: JsonObject
    path: Path
    times: int | None
    is_resource: bool
    kind: Declared | None = None
    unmatched: Path | None = None


def definition_rule_errors(definition: JsonObject, unchanged: Collection[str]) -> ErrorList:
    """What is wrong with the rules; versions whose schemas are ``unchanged`` may be too dear."""
    errors = ErrorList()
    spec = definition.get("spec") or {}
    names = [version.get("name", "") for version in spec.get("versions") or ()]
    for position, (schema, path) in enumerate(schemas_of(spec)):
        _check_defaults(schema, errors, path, is_resource=True)
        if not errors:
            _SchemaCosts(errors, forgiven=names[position] in unchanged).check(schema, path)
    return errors


def _check_defaults(
    schema: JsonObject, errors: ErrorList, path: Path, *, is_resource: bool
) -> None:
    """Defaults keep to the rules, as objects that they come to have to."""
    default = schema.get("default")
    if default is not None:
        node = rules_of(schema, is_resource=is_resource)
        if node is not None:
            errors += default_errors(default, node, str(path.child("default")))
    for part, where in _parts(schema, path):
        embedded = bool(part.get("x-kubernetes-embedded-resource"))
        _check_defaults(part, errors, where, is_resource=embedded)


def _parts(schema: JsonObject, path: Path) -> Iterator[tuple[JsonObject, Path]]:
    items = schema.get("items")
    if isinstance(items, dict):
        yield items, path.child("items")
    for name, part in (schema.get("properties") or {}).items():
        yield part, path.child("properties").key(name)


class _SchemaCosts:
    """The rules of one schema, and what they cost together."""

    def __init__(self, errors: ErrorList, *, forgiven: bool) -> None:
        self._errors = errors
        self._forgiven = forgiven
        self._total = 0
        self._dear: list[tuple[int, Path]] = []

    def check(self, schema: JsonObject, path: Path) -> None:
        self._walk(_Place(schema, path, 1, is_resource=True))
        if self._total <= MOST_OF_A_SCHEMA:
            return
        detail = (
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 "
            "schema"
        )
        dearest = sorted(self._dear, key=lambda each: -each[0])[:TOLD_OF]
        for _, where in dearest:
            self._errors.forbidden(where, detail)
        what = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
        self._errors.forbidden(path, _too_dear(what, self._total, MOST_OF_A_SCHEMA))

    def _walk(self, place: _Place) -> None:
        kind = place.kind
        if kind is None and place.schema.get(RULES):
            kind = declared(place.schema, ROOT, is_resource=place.is_resource)
        for below in _below(place, kind):
            self._walk(below)
        if not place.schema.get(RULES):
            return
        at = place.path.child(RULES)
        if kind is None:
            problem = "unable to convert structural schema to CEL declarations"
            text = "internal error: failed to construct type information for"
            self._errors.internal(at, f"{text} {RULES} rules: {problem}")
            return
        times = kind.most_in_a_request if place.times is None else place.times
        for position, rule in enumerate(compiled_rules(place.schema, kind)):
            self._check_rule(rule, times, at.index(position), place.unmatched)

    def _check_rule(self, rule: SchemaRule, times: int, path: Path, unmatched: Path | None) -> None:
        errors, shown = self._errors, inner(rule.source, VALIDATION_RULE)
        self._charge("estimated rule cost", min(rule.cost * times, MOST), path.child("rule"))
        if rule.problem:
            errors.invalid(path.child("rule"), shown, rule.problem)
        if rule.message_problem:
            errors.invalid(path.child("messageExpression"), shown, rule.message_problem)
        elif rule.message is not None:
            what, where = "estimated messageExpression cost", path.child("messageExpression")
            self._charge(what, rule.message_cost, where)
        if rule.uses_old and unmatched is not None:
            detail = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            errors.invalid(path.child("rule"), rule.source["rule"], f"{detail} {unmatched}")
        optional = rule.source.get("optionalOldSelf")
        if not rule.uses_old and optional is not None:
            detail = "may not be set if oldSelf is not used in rule"
            errors.invalid(path.child("optionalOldSelf"), optional, detail)

    def _charge(self, what: str, cost: int, path: Path) -> None:
        if cost > MOST_OF_A_RULE and not self._forgiven:
            self._errors.forbidden(path, _too_dear(what, cost, MOST_OF_A_RULE))
        self._total = min(self._total + cost, MOST)
        if cost >= MOST_OF_A_SCHEMA // 100:
            self._dear.append((cost, path))


def _below(place: _Place, kind: Declared | None) -> Iterator[_Place]:
    """What is in a schema, and how often."""
    schema, path, inner_kind = place.schema, place.path, kind.elements if kind else None
    others, items = schema.get("additionalProperties"), schema.get("items")
    many = _times(place.times, schema)
    if isinstance(others, dict):
        yield _placed(others, path.child("additionalProperties"), many, inner_kind, place.unmatched)
    for name, part in (schema.get("properties") or {}).items():
        found = None if kind is None else kind.fields.get(escaped(name) or "")
        yield _placed(part, path.child("properties").key(name), many, found, place.unmatched)
    if isinstance(items, dict):
        unmatched = place.unmatched
        if unmatched is None and schema.get("x-kubernetes-list-type") != "map":
            unmatched = path
        yield _placed(items, path.child("items"), many, inner_kind, unmatched)


def _placed(
    schema: JsonObject,
    path: Path,
    times: int | None,
    kind: Declared | None,
    unmatched: Path | None,
) -> _Place:
    is_resource = bool(schema.get("x-kubernetes-embedded-resource"))
    return _Place(schema, path, times, is_resource, kind, unmatched)


def _times(times: int | None, schema: JsonObject) -> int | None:
    """How often there can be what is in a schema that is there so many times."""
    most: Any = 1
    if schema.get("type") == "array":
        most = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    return None if times is None or most is None else min(times * max(0, most), MOST)


def _too_dear(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {shown} ({_HINT})"
