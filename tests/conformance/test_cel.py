"""The conformance tests of the expression language (cel.dev/expr), as far as we have it.

``data/cel.txt`` names the tests that do not end as the specification says: what is not there
(messages, enums, `math.*`), and where Kubernetes is not as the
specification. All others must pass.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from conformance.published import Message, check_pinned, folder, read_message
from kubescene.cel import DYN, CelError, Type, compile_expression
from kubescene.cel.types import BOOL, BYTES, DOUBLE, INT, STRING, UINT, list_of, map_of
from kubescene.cel.values import NANOS, Duration, Timestamp, TypeValue, UInt, equal

PRIMITIVES = {
    "BOOL": BOOL,
    "INT64": INT,
    "UINT64": UINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BYTES": BYTES,
}
FEWEST = 1_430
"""At least so many pass."""


class UnreadableError(Exception):
    """A value of a kind that is not there."""


def test_the_conformance_tests_end_as_they_are_known_to() -> None:
    outcomes = {name: passes(case) for name, case in cases(folder("cel"))}
    missed = {name for name, passed in outcomes.items() if not passed}
    check_pinned("cel.txt", outcomes, missed)
    assert len(outcomes) - len(missed) >= FEWEST


def cases(where: Path) -> Iterator[tuple[str, Message]]:
    for path in sorted(where.glob("*.textproto")):
        for section in read_message(path.read_text()).get("section", ()):
            for case in section.get("test", ()):
                names = (path.stem, text(section["name"][0]), text(case["name"][0]))
                yield "/".join(names), case


def text(value: bytes) -> str:
    return value.decode()


def passes(case: Message) -> bool:
    """Whether a test ends as it should; what fails in any way is an error."""
    try:
        wanted = expected(case)
        names, values = environment(case)
    except UnreadableError:
        return False
    try:
        program = compile_expression(text(case["expr"][0]), names)
        found = program.evaluate(values)
    except CelError:
        return wanted is FAILURE
    except Exception:
        return False
    return wanted is not FAILURE and type(found) is type(wanted) and alike(found, wanted)


FAILURE = object()


def expected(case: Message) -> Any:
    if "eval_error" in case or "any_eval_errors" in case:
        return FAILURE
    if "value" in case:
        return value_of(case["value"][0])
    if "typed_result" in case:
        result = case["typed_result"][0].get("result")
        if result is None:
            raise UnreadableError
        return value_of(result[0])
    return True


def alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return equal(left, right)


def environment(case: Message) -> tuple[dict[str, Type], dict[str, Any]]:
    names: dict[str, Type] = {}
    for each in case.get("type_env", ()):
        if "ident" not in each:
            raise UnreadableError
        names[text(each["name"][0])] = type_of(each["ident"][0]["type"][0])
    values = {}
    for each in case.get("bindings", ()):
        held = each["value"][0]
        if "value" not in held:
            raise UnreadableError
        values[text(each["key"][0])] = value_of(held["value"][0])
    return {**dict.fromkeys(values, DYN), **names}, values


def type_of(written: Message) -> Type:
    if "primitive" in written:
        return PRIMITIVES[written["primitive"][0]]
    if "list_type" in written:
        parts = written["list_type"][0].get("elem_type")
        return list_of(type_of(parts[0]) if parts else DYN)
    if "map_type" in written:
        both = written["map_type"][0]
        return map_of(type_of(both["key_type"][0]), type_of(both["value_type"][0]))
    return DYN


def value_of(written: Message) -> Any:
    [(kind, values)] = written.items()
    value = values[0]
    if kind == "list_value":
        return [value_of(each) for each in value.get("values", ())]
    if kind == "map_value":
        pairs = value.get("entries", ())
        return {value_of(each["key"][0]): value_of(each["value"][0]) for each in pairs}
    if kind == "object_value":
        return message_of(value)
    reader = READERS.get(kind)
    if reader is None:
        raise UnreadableError(kind)
    return reader(value)


READERS: dict[str, Callable[[Any], Any]] = {
    "int64_value": lambda word: int(word, 0),
    "uint64_value": lambda word: UInt(int(word, 0)),
    "double_value": float,
    "bool_value": lambda word: word == "true",
    "string_value": text,
    "bytes_value": bytes,
    "null_value": lambda word: None,
    "type_value": lambda word: TypeValue(text(word)),
}


def message_of(value: Message) -> Any:
    [(kind, [inner])] = value.items()
    name = kind.rpartition("/")[2]
    if name not in ("google.protobuf.Duration", "google.protobuf.Timestamp"):
        raise UnreadableError(name)
    nanos = int(inner.get("seconds", ["0"])[0]) * NANOS + int(inner.get("nanos", ["0"])[0])
    return Duration(nanos) if name.endswith("Duration") else Timestamp(nanos)
