"""Values against the OpenAPI schema of a CustomResourceDefinition, in kube-apiserver's words.

Every keyword adds its complaint to a `Complaints`, which also counts what fitted: when none of
several alternatives (anyOf, oneOf) fits, the complaints of the one that fits best are shown. On an
update, complaints about a part that did not change are dropped, so that a stricter schema does
not lock old objects (ratcheting).
"""

from collections.abc import Callable, Iterator
from decimal import Decimal

from msgspec import Struct

from kubescene.api.schemas import formats
from kubescene.api.schemas.correlation import NO_OLD, is_unchanged, old_item, same
from kubescene.api.schemas.patterns import matches
from kubescene.api.validation.field_errors import ErrorType, FieldError, quote
from kubescene.types import JsonObject, JsonValue

_NOWHERE = "<nil>"
_INT_BITS = {"int32": 31, "int64": 63}
_GO_SMALL, _GO_LARGE = 4, 6
"""Exponents beyond which Go prints numbers in scientific notation."""
_MAX_FLOAT32 = 3.4028234663852886e38


class Finding(Struct, frozen=True):
    """One complaint. ``path`` None: about the object as a whole."""

    type: ErrorType
    path: str | None
    value: JsonValue
    text: str
    detail: str


class Complaints:
    """Complaints in order, each text once, and how many checks were made."""

    __slots__ = ("found", "matches")

    def __init__(self) -> None:
        self.found: dict[str, Finding] = {}
        self.matches = 0

    def add(
        self,
        kind: ErrorType,
        path: str | None,
        value: JsonValue,
        text: str,
        detail: str | None = None,
    ) -> None:
        shown = text if detail is None else detail
        self.found.setdefault(text, Finding(kind, path, value, text, shown))

    def merge(self, other: "Complaints") -> None:
        for text, finding in other.found.items():
            self.found.setdefault(text, finding)
        self.matches += other.matches


def validate_schema(
    value: JsonValue, schema: JsonObject, *, old: JsonValue = NO_OLD, below: str = ""
) -> list[FieldError]:
    """What is wrong with a value; ``below`` is the field that the value is, if not the object."""
    findings = _validate(value, schema, "", old)
    return [_field_error(finding, below) for finding in findings.found.values()]


def _field_error(finding: Finding, below: str) -> FieldError:
    path = (finding.path or "").removeprefix(".")
    steps = [step for step in (below, path) if step]
    return FieldError(finding.type, ".".join(steps) or _NOWHERE, finding.value, finding.detail)


def _validate(value: JsonValue, schema: JsonObject, path: str, old: JsonValue) -> Complaints:
    findings = Complaints()
    for check in _CHECKS if value is not None else _NULL_CHECKS:
        check(value, schema, path, old, findings)
        findings.matches += 1
    if findings.found and old is not NO_OLD and is_unchanged(value, old, schema):
        findings.found.clear()
    return findings


# -- types ---------------------------------------------------------------------------------

_TYPE_NAMES: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}


def _types(schema: JsonObject) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _format(schema: JsonObject) -> str:
    """The format, if it is one that fits the type."""
    name, types = schema.get("format") or "", _types(schema)
    kind = types[0] if len(types) == 1 else ""
    if kind in ("", "string"):
        return name if formats.is_known(name) else ""
    if kind == "integer":
        return name if name in _INT_BITS else ""
    return name if kind == "number" and name in ("float", "double") else ""


def _check_type(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    del old
    types, wanted = _types(schema), _format(schema)
    if not types and not wanted:
        return
    if value is None:
        if types and not schema.get("nullable"):
            _wrong_type(path, ",".join(types), "null", findings)
        return
    kind, given = _TYPE_NAMES[type(value)]
    whole = kind == "number" and float(value).is_integer() and "integer" in types
    fits = kind in types or whole or (kind == "integer" and "number" in types)
    if wanted and kind not in ("string", "array") and not fits and given != wanted:
        _wrong_type(path, wanted, given, findings)
        return
    numeric = "number" in types or "integer" in types
    if not fits and (numeric or not wanted or kind not in ("string", "array")):
        _wrong_type(path, ",".join(types), kind, findings)


def _wrong_type(path: str, wanted: str, given: str, findings: Complaints) -> None:
    text = f"{path} in body must be of type {wanted}: {quote(given)}"
    findings.add(ErrorType.TYPE_INVALID, path, given, text)


# -- alternatives --------------------------------------------------------------------------


def _check_alternatives(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    if any_of := schema.get("anyOf"):
        _check_any(_attempts(value, any_of, path, old), path, findings)
    if one_of := schema.get("oneOf"):
        _check_one(list(_attempts(value, one_of, path, old)), path, findings)
    if all_of := schema.get("allOf"):
        _check_all(list(_attempts(value, all_of, path, old)), path, findings)
    excluded = schema.get("not")
    if excluded is not None and not _validate(value, excluded, path, old).found:
        _composite(f"{quote(path)} must not validate the schema (not)", findings)


def _attempts(
    value: JsonValue, schemas: list[JsonObject], path: str, old: JsonValue
) -> Iterator[Complaints]:
    return (_validate(value, schema, path, old) for schema in schemas)


def _check_any(attempts: Iterator[Complaints], path: str, findings: Complaints) -> None:
    best: Complaints | None = None
    for attempt in attempts:
        if not attempt.found:
            findings.matches += attempt.matches
            return
        if best is None or attempt.matches > best.matches:
            best = attempt
    _composite(f"{quote(path)} must validate at least one schema (anyOf)", findings)
    if best is not None:
        findings.merge(best)


def _check_one(attempts: list[Complaints], path: str, findings: Complaints) -> None:
    fitting = [attempt for attempt in attempts if not attempt.found]
    if len(fitting) == 1:
        findings.merge(fitting[0])
        return
    count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
    _composite(f"{quote(path)} must validate one and only one schema (oneOf). {count}", findings)
    if not fitting:
        findings.merge(max(attempts, key=lambda attempt: attempt.matches))


def _check_all(attempts: list[Complaints], path: str, findings: Complaints) -> None:
    for attempt in attempts:
        findings.merge(attempt)
    failed = sum(1 for attempt in attempts if attempt.found)
    if failed:
        none = ". None validated" if failed == len(attempts) else ""
        _composite(f"{quote(path)} must validate all the schemas (allOf){none}", findings)


def _composite(text: str, findings: Complaints) -> None:
    findings.add(ErrorType.INVALID, None, "", text)


# -- scalars -------------------------------------------------------------------------------


def _check_text(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    del old
    if type(value) is not str:
        return
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern = schema.get("pattern")
    if longest is not None and len(value) > longest:
        text = f"{path} in body should be at most {longest} chars long"
        unit = "byte" if longest == 1 else "bytes"
        detail = f"may not be more than {longest} {unit}"
        findings.add(ErrorType.TOO_LONG, path, value, text, detail)
    elif shortest is not None and len(value) < shortest:
        text = f"{path} in body should be at least {shortest} chars long"
        findings.add(ErrorType.INVALID, path, value, text)
    elif pattern and not matches(pattern, value):
        text = f"{path} in body should match '{pattern}'"
        findings.add(ErrorType.INVALID, path, value, text)
    wanted = _format(schema)
    if wanted and formats.is_known(wanted) and not formats.satisfies(wanted, value):
        text = f"{path} in body must be of type {wanted}: {quote(value)}"
        findings.add(ErrorType.TYPE_INVALID, path, value, text)


def _check_number(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    del old
    if type(value) not in (int, float):
        return
    _check_capacity(value, schema, path, findings)
    factor = schema.get("multipleOf")
    if factor and not _is_multiple(value, factor):
        text = f"{path} in body should be a multiple of {_bound(value, factor)}"
        findings.add(ErrorType.INVALID, path, value, text)
    for name, exclusive, word, breaks in _BOUNDS:
        limit = schema.get(name)
        if limit is None:
            continue
        strict = bool(schema.get(exclusive))
        bound = int(limit) if type(value) is int else float(limit)
        if breaks(value, bound) or (strict and value == bound):
            than = f"{word} than" if strict else f"{word} than or equal to"
            text = f"{path} in body should be {than} {_bound(value, limit)}"
            findings.add(ErrorType.INVALID, path, value, text)


_BOUNDS: tuple[tuple[str, str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "exclusiveMinimum", "greater", lambda value, bound: value < bound),
    ("maximum", "exclusiveMaximum", "less", lambda value, bound: value > bound),
)


def _check_capacity(value: float, schema: JsonObject, path: str, findings: Complaints) -> None:
    """Whether the value fits the machine type that type and format name."""
    types, wanted = _types(schema), _format(schema)
    if types == ("integer",):
        bits = _INT_BITS.get(wanted, 63)
        fits = float(value).is_integer() and -(2**bits) <= value < 2**bits
    else:
        fits = wanted != "float" or abs(value) <= _MAX_FLOAT32
    if not fits:
        kind = f"with format {wanted}" if wanted else "(default format)"
        _composite(f"Checked value must be of type {types[0]} {kind} in {path}", findings)


def _is_multiple(value: float, factor: float) -> bool:
    if type(value) is int and int(factor):
        return value % int(factor) == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return abs(quotient - round(quotient)) <= 1e-9 * max(1.0, abs(quotient))


def _bound(value: float, limit: float) -> str:
    """A limit as Go prints it: whole beside whole numbers, else with the fewest digits."""
    if type(value) is int:
        return str(int(limit))
    sign, digits, power = Decimal(repr(float(limit))).normalize().as_tuple()
    exponent = len(digits) + int(power) - 1
    if -_GO_SMALL <= exponent < _GO_LARGE:
        return repr(float(limit)).removesuffix(".0")
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{exponent:+03d}"


def _check_enum(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    del old
    allowed = schema.get("enum")
    if not allowed or (value is not None and any(same(value, it) for it in allowed)):
        return
    shown = [it if isinstance(it, str) else _json(it) for it in allowed]
    text = f"{path} in body should be one of [{' '.join(shown)}]"
    detail = "supported values: " + ", ".join(map(quote, shown))
    findings.add(ErrorType.NOT_SUPPORTED, path, value, text, detail)


# -- lists and objects ---------------------------------------------------------------------


def _check_list(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    if type(value) is not list:
        return
    items = schema.get("items")
    if isinstance(items, dict):
        for position, item in enumerate(value):
            before = old_item(item, schema, old)
            findings.merge(_validate(item, items, f"{path}[{position}]", before))
    fewest, most = schema.get("minItems"), schema.get("maxItems")
    if fewest is not None and len(value) < fewest:
        text = f"{path} in body should have at least {fewest} items"
        findings.add(ErrorType.INVALID, path, len(value), text)
    if most is not None and len(value) > most:
        _too_many(path, len(value), most, "items", findings)


def _too_many(path: str, count: int, most: int, what: str, findings: Complaints) -> None:
    text = f"{path} in body should have at most {most} {what}"
    unit = "item" if most == 1 else "items"
    findings.add(ErrorType.TOO_MANY, path, count, text, f"must have at most {most} {unit}")


def _check_object(
    value: JsonValue, schema: JsonObject, path: str, old: JsonValue, findings: Complaints
) -> None:
    if type(value) is not dict:
        return
    before: JsonObject = old if type(old) is dict else {}
    fewest, most = schema.get("minProperties"), schema.get("maxProperties")
    if fewest is not None and len(value) < fewest:
        text = f"{path} in body should have at least {fewest} properties"
        findings.add(ErrorType.INVALID, path, len(value), text)
    if most is not None and len(value) > most:
        _too_many(path, len(value), most, "properties", findings)
    _check_members(value, schema, path, before, findings)
    for name in schema.get("required") or ():
        if name not in value:
            where = f"{path}.{name}"
            findings.add(ErrorType.REQUIRED, where, "", f"{where} in body is required", "")


def _check_members(
    obj: JsonObject, schema: JsonObject, path: str, before: JsonObject, findings: Complaints
) -> None:
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for key, member in obj.items():
            if key not in properties:
                old = before.get(key, NO_OLD)
                findings.merge(_validate(member, others, f"{path}.{key}", old))
    for name, child in properties.items():
        if name in obj:
            where = f"{path}.{name}" if path else name
            findings.merge(_validate(obj[name], child, where, before.get(name, NO_OLD)))


def _json(value: JsonValue) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return FieldError(ErrorType.INVALID, "", value).body.partition(": ")[2]


_CHECKS = (
    _check_type,
    _check_alternatives,
    _check_text,
    _check_number,
    _check_list,
    _check_enum,
    _check_object,
)
_NULL_CHECKS = (_check_type, _check_enum)
