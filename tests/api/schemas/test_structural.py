"""Structural schemas: pruning, nulls, defaults and validation of custom resources.

Expected texts are those of kube-apiserver v1.36, whose validator is kube-openapi's.
"""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.schemas import formats
from kubescene.api.schemas.patterns import matches
from kubescene.api.schemas.schema_validation import validate_schema
from kubescene.api.schemas.structural import (
    MAX_DEPTH,
    check_embedded,
    check_lists,
    compile_schema,
    complaint_about_size,
    defaulted,
    pruned,
    unknown_fields,
    without_nulls,
)
from kubescene.api.schemas.structural_rules import check_schemas
from kubescene.api.validation.field_errors import ErrorList
from kubescene.errors import BadRequestError

STRING = {"type": "string"}
PRESERVE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def spec_schema(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }


def complaints_of(schema: dict[str, Any]) -> list[str]:
    """What a definition with this schema is told."""
    errors = ErrorList()
    versions = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
    check_schemas({"versions": versions}, errors)
    return [error.message for error in errors]


def messages(value: Any, schema: dict[str, Any], **options: Any) -> list[str]:
    return [error.message for error in validate_schema(value, schema, **options)]


@pytest.mark.parametrize(
    ("schema", "given_spec", "kept"),
    [
        pytest.param(spec_schema(a=STRING), {"a": "x", "b": 1}, {"a": "x"}, id="unknown field"),
        pytest.param(
            spec_schema(a={"type": "object", "properties": {"x": STRING}}),
            {"a": {"x": "1", "y": "2"}},
            {"a": {"x": "1"}},
            id="nested",
        ),
        pytest.param(
            spec_schema(
                a={"type": "array", "items": {"type": "object", "properties": {"x": STRING}}}
            ),
            {"a": [{"x": "1"}, {"y": "2"}]},
            {"a": [{"x": "1"}, {}]},
            id="items",
        ),
        pytest.param(
            spec_schema(
                a={
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"x": STRING}},
                }
            ),
            {"a": {"any": {"x": "1", "y": "2"}}},
            {"a": {"any": {"x": "1"}}},
            id="additional properties",
        ),
        pytest.param(
            spec_schema(a={"type": "object", "additionalProperties": True}),
            {"a": {"any": {"x": "1"}, "other": 2}},
            {"a": {"any": {}, "other": 2}},
            id="additional properties true keeps keys, not what is in them",
        ),
        pytest.param(
            spec_schema(a=PRESERVE),
            {"a": {"any": {"x": [1]}}},
            {"a": {"any": {"x": [1]}}},
            id="open",
        ),
        pytest.param(
            spec_schema(
                a={
                    **PRESERVE,
                    "properties": {"in": {"type": "object", "properties": {"x": STRING}}},
                }
            ),
            {"a": {"free": 1, "in": {"x": "1", "y": 2}}},
            {"a": {"free": 1, "in": {"x": "1"}}},
            id="pruning starts again below an open object",
        ),
        pytest.param(
            spec_schema(a={"type": "object", "x-kubernetes-embedded-resource": True}),
            {
                "a": {
                    "apiVersion": "v1",
                    "kind": "X",
                    "metadata": {"name": "n", "bad": 1},
                    "spec": {},
                }
            },
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}}},
            id="embedded resource",
        ),
    ],
)
def test_pruning(schema: dict[str, Any], given_spec: Any, kept: Any) -> None:
    obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "spec": given_spec}
    root = compile_schema(schema)
    done = pruned(obj, root)
    assert done["spec"] == kept
    assert pruned(done, root) is done


def test_pruning_keeps_type_and_metadata_and_drops_other_roots() -> None:
    obj = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "data": 1}
    assert pruned(obj, compile_schema({"type": "object"})) == {
        "apiVersion": "g/v1",
        "kind": "K",
        "metadata": {"name": "n"},
    }


def test_unknown_fields_are_named_by_path() -> None:
    schema = spec_schema(
        list={"type": "array", "items": {"type": "object", "properties": {"x": STRING}}}
    )
    obj = {
        "metadata": {"name": "n", "lables": {}},
        "spec": {"b": 1, "list": [{"x": "1"}, {"y": 1}]},
        "z": 1,
    }
    assert unknown_fields(obj, compile_schema(schema)) == [
        "metadata.lables",
        "spec.b",
        "spec.list[1].y",
        "z",
    ]


def test_metadata_of_embedded_resource_must_be_typed() -> None:
    schema = spec_schema(a={"type": "object", "x-kubernetes-embedded-resource": True})
    obj = {"spec": {"a": {"metadata": {"labels": {"a": 1}}}}}
    with pytest.raises(BadRequestError, match="cannot unmarshal number"):
        pruned(obj, compile_schema(schema))


@pytest.mark.parametrize(
    ("schema", "before", "after"),
    [
        pytest.param({"a": STRING}, {"a": None}, {}, id="dropped"),
        pytest.param({"a": {**STRING, "nullable": True}}, {"a": None}, {"a": None}, id="nullable"),
        pytest.param(
            {"a": {**STRING, "default": "d"}}, {"a": None}, {"a": "d"}, id="default instead"
        ),
        pytest.param(
            {"a": {**STRING, "nullable": True, "default": "d"}},
            {"a": None},
            {"a": None},
            id="nullable wins over default",
        ),
        pytest.param({"a": {**STRING, "default": "d"}}, {}, {"a": "d"}, id="absent"),
        pytest.param(
            {"a": {**STRING, "default": "d"}}, {"a": ""}, {"a": ""}, id="empty is not absent"
        ),
        pytest.param(
            {"a": {"type": "object", "properties": {"b": {"type": "integer", "default": 3}}}},
            {},
            {},
            id="no default inside an absent object",
        ),
        pytest.param(
            {
                "a": {
                    "type": "object",
                    "default": {},
                    "properties": {"b": {"type": "integer", "default": 3}},
                }
            },
            {},
            {"a": {"b": 3}},
            id="defaults inside a default",
        ),
        pytest.param(
            {
                "a": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"b": {"type": "integer", "default": 3}},
                    },
                }
            },
            {"a": [{}, {"b": 1}]},
            {"a": [{"b": 3}, {"b": 1}]},
            id="items",
        ),
        pytest.param(
            {"a": {"type": "object", "additionalProperties": {**STRING, "default": "d"}}},
            {"a": {"k": None, "l": "x"}},
            {"a": {"k": "d", "l": "x"}},
            id="additional properties",
        ),
    ],
)
def test_nulls_and_defaults(schema: dict[str, Any], before: Any, after: Any) -> None:
    root = compile_schema({"type": "object", "properties": schema})
    assert defaulted(without_nulls(before, root), root) == after


VALIDATION_CASES = [
    pytest.param(
        spec_schema(replicas={"type": "integer"}),
        {"replicas": "x"},
        'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: '
        '"string"',
        id="type",
    ),
    pytest.param(
        spec_schema(a=STRING),
        {"a": None},
        'spec.a: Invalid value: "null": spec.a in body must be of type string: "null"',
        id="null",
    ),
    pytest.param(
        spec_schema(a={"x-kubernetes-int-or-string": True}),
        {"a": True},
        'spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: '
        '"boolean"',
        id="int or string",
    ),
    pytest.param(
        {**spec_schema(), "required": ["spec"]},
        None,
        "spec: Required value",
        id="required at the root",
    ),
    pytest.param(
        {"type": "object", "properties": {"spec": {"type": "object", "required": ["a"]}}},
        {},
        "spec.a: Required value",
        id="required",
    ),
    pytest.param(
        spec_schema(a={**STRING, "enum": ["x", "y"]}),
        {"a": "z"},
        'spec.a: Unsupported value: "z": supported values: "x", "y"',
        id="enum",
    ),
    pytest.param(
        spec_schema(a={"type": "integer", "minimum": 1}),
        {"a": 0},
        "spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1",
        id="minimum",
    ),
    pytest.param(
        spec_schema(a={"type": "integer", "maximum": 5, "exclusiveMaximum": True}),
        {"a": 5},
        "spec.a: Invalid value: 5: spec.a in body should be less than 5",
        id="exclusive maximum",
    ),
    pytest.param(
        spec_schema(a={"type": "number", "maximum": 0.5}),
        {"a": 0.75},
        "spec.a: Invalid value: 0.75: spec.a in body should be less than or equal to 0.5",
        id="maximum of a fraction",
    ),
    pytest.param(
        spec_schema(a={"type": "integer", "multipleOf": 3}),
        {"a": 4},
        "spec.a: Invalid value: 4: spec.a in body should be a multiple of 3",
        id="multiple",
    ),
    pytest.param(
        spec_schema(a={"type": "integer", "format": "int32"}),
        {"a": 2**31},
        '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in '
        "spec.a",
        id="int32",
    ),
    pytest.param(
        spec_schema(a={**STRING, "pattern": "^[a-z]+$"}),
        {"a": "A"},
        "spec.a: Invalid value: \"A\": spec.a in body should match '^[a-z]+$'",
        id="pattern",
    ),
    pytest.param(
        spec_schema(a={**STRING, "minLength": 3}),
        {"a": "ab"},
        'spec.a: Invalid value: "ab": spec.a in body should be at least 3 chars long',
        id="min length",
    ),
    pytest.param(
        spec_schema(a={**STRING, "maxLength": 1}),
        {"a": "ab"},
        "spec.a: Too long: may not be more than 1 byte",
        id="max length",
    ),
    pytest.param(
        spec_schema(a={**STRING, "format": "date-time"}),
        {"a": "yesterday"},
        'spec.a: Invalid value: "yesterday": spec.a in body must be of type date-time: "yesterday"',
        id="format",
    ),
    pytest.param(
        spec_schema(a={"type": "array", "items": STRING, "minItems": 1}),
        {"a": []},
        "spec.a: Invalid value: 0: spec.a in body should have at least 1 items",
        id="min items",
    ),
    pytest.param(
        spec_schema(a={"type": "array", "items": STRING, "maxItems": 1}),
        {"a": ["x", "y"]},
        "spec.a: Too many: 2: must have at most 1 item",
        id="max items",
    ),
    pytest.param(
        spec_schema(a={"type": "array", "items": {"type": "object", "required": ["n"]}}),
        {"a": [{"n": 1}, {}]},
        "spec.a[1].n: Required value",
        id="required in an item",
    ),
    pytest.param(
        spec_schema(a={"type": "object", "additionalProperties": STRING, "maxProperties": 1}),
        {"a": {"x": "1", "y": "2"}},
        "spec.a: Too many: 2: must have at most 1 item",
        id="max properties",
    ),
    pytest.param(
        spec_schema(a={"type": "object", "additionalProperties": STRING}),
        {"a": {"x": 1}},
        'spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer"',
        id="additional property",
    ),
]


def test_a_fraction_is_no_integer_and_fits_none() -> None:
    type_fault, range_fault = messages({"spec": {"a": 1.5}}, spec_schema(a={"type": "integer"}))
    assert type_fault.endswith('spec.a in body must be of type integer: "number"')
    assert range_fault.endswith("Checked value must be of type integer (default format) in spec.a")


@pytest.mark.parametrize(("schema", "spec", "message"), VALIDATION_CASES)
def test_validation_messages(schema: dict[str, Any], spec: Any, message: str) -> None:
    obj = {} if spec is None else {"spec": spec}
    assert messages(obj, schema) == [message]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"type": "integer"}, 1.0, id="whole number"),
        pytest.param({"type": "number"}, 1, id="integer for a number"),
        pytest.param({"type": "string", "nullable": True}, None, id="nullable"),
        pytest.param({"x-kubernetes-int-or-string": True}, "50%", id="int or string"),
        pytest.param({"type": "string", "format": "unheard-of"}, "x", id="unknown format"),
        pytest.param({"type": "integer", "enum": [1, 2]}, 2, id="enum of numbers"),
        pytest.param({"type": "string", "pattern": "[[:alpha:]]+"}, "abc", id="RE2 class"),
    ],
)
def test_valid_values(schema: dict[str, Any], value: Any) -> None:
    assert messages({"a": value}, {"type": "object", "properties": {"a": schema}}) == []


def test_alternatives_show_the_best_failure() -> None:
    schema = spec_schema(
        a={"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
        b={"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
    )
    assert messages({"spec": {"a": {}, "b": "s"}}, schema) == [
        '<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). '
        "Found none valid",
        "spec.a.x: Required value",
        '<nil>: Invalid value: "": "spec.b" must validate at least one schema (anyOf)',
        'spec.b: Invalid value: "string": spec.b in body must be of type integer: "string"',
    ]


def test_one_of_refuses_two_fitting_alternatives() -> None:
    schema = spec_schema(a={"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]})
    assert messages({"spec": {"a": {"x": 1, "y": 1}}}, schema) == [
        '<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). '
        "Found 2 valid alternatives"
    ]


def test_not() -> None:
    schema = spec_schema(a={"type": "string", "not": {"enum": ["x"]}})
    assert messages({"spec": {"a": "x"}}, schema) == [
        '<nil>: Invalid value: "": "spec.a" must not validate the schema (not)'
    ]


def test_unchanged_values_are_not_refused_by_a_stricter_schema() -> None:
    schema = spec_schema(a={"type": "integer", "maximum": 5}, b={"type": "integer", "maximum": 5})
    old = {"spec": {"a": 9, "b": 1}}
    assert messages({"spec": {"a": 9, "b": 2}}, schema, old=old) == []
    assert messages({"spec": {"a": 8, "b": 1}}, schema, old=old) != []


def test_status_is_told_relative_to_itself() -> None:
    schema = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    assert messages({"replicas": "x"}, schema, below="status") == [
        'status.replicas: Invalid value: "string": replicas in body must be of type integer: '
        '"string"'
    ]


def list_messages(schema: dict[str, Any], items: list[Any]) -> list[str]:
    errors = ErrorList()
    check_lists({"spec": {"a": items}}, compile_schema(spec_schema(a=schema)), errors)
    return [error.message for error in errors]


def test_lists_of_type_set_have_unique_items() -> None:
    schema = {"type": "array", "x-kubernetes-list-type": "set", "items": {}}
    assert list_messages(schema, ["x", "y", "x", "x"]) == ['spec.a[2]: Duplicate value: "x"']
    assert list_messages(schema, [{"a": 1, "b": 2}, {"b": 2, "a": 1}]) == [
        'spec.a[1]: Duplicate value: {"b":2,"a":1}'
    ]


def test_lists_of_type_map_have_unique_keys() -> None:
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object"},
    }
    assert list_messages(schema, [{"name": "a", "v": 1}, {"name": "b"}, {"name": "a", "v": 2}]) == [
        'spec.a[2]: Duplicate value: {"name":"a"}'
    ]
    assert list_messages(schema, ["x"]) == [
        'spec.a[0]: Invalid value: "x": must be an object for an array of list-type map'
    ]


def test_embedded_resources_say_what_they_are() -> None:
    schema = spec_schema(a={**PRESERVE, "x-kubernetes-embedded-resource": True})
    errors = ErrorList()
    check_embedded({"spec": {"a": {"kind": ""}}}, compile_schema(schema), errors)
    assert [error.message for error in errors] == [
        "spec.a.apiVersion: Required value",
        'spec.a.kind: Invalid value: "": must not be empty',
    ]


def test_bottomless_schema_is_refused_without_recursion() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    assert str(MAX_DEPTH) in complaint_about_size(schema)
    assert complaint_about_size({"type": "object"}) == ""


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("a$", "a\n", False),
        (r"^\d+$", "٣", False),
        ("[[:digit:]]", "7", True),
        ("[$]", "$", True),
        (r"\$", "$", True),
        (r"(?i)ABC", "xabc", True),
        (r"^.$", "\U0001f600", True),
        (r"^\pL\z", "é", True),
        ("(", "anything", True),
    ],
)
def test_patterns_mean_what_they_mean_in_re2(pattern: str, text: str, fits: bool) -> None:
    assert matches(pattern, text) is fits


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "(a*)*b", "a{0,500}a{500}$"]
)
def test_no_pattern_backtracks(pattern: str) -> None:
    assert not matches(pattern, "a" * 100_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("+", "missing argument to repetition operator: `+`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a{2000}", "invalid repeat count: `{2000}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("((a{100}){100}){100}", "invalid repeat count: `{100}`"),
    ],
)
def test_what_is_no_pattern_is_told_in_the_words_of_go(pattern: str, problem: str) -> None:
    definition = spec_schema(a={"type": "string", "pattern": pattern})
    nested = spec_schema(a={"type": "string", "anyOf": [{"pattern": pattern}]})
    for schema in (definition, nested):
        [complaint] = complaints_of(schema)
        assert complaint.endswith(
            "must be a valid regular expression, but isn't: error parsing regexp: " + problem
        )


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00Z", "2026-01-01"),
        ("date-time", "2026-01-01t00:00:00.5+99:99", "2026-01-01T00:00:60Z"),
        ("date", "2026-02-28", "2026-02-30"),
        ("date", "0000-02-29", "0001-02-29"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "fe80::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uuid", "8b5e4b52-1c5f-4f7e-9a55-d4f6d2a6f5b7", "8b5e"),
        ("byte", "aGk=", "a"),
        ("byte", "QQ==", ""),
        ("hostname", "example.com", "-x"),
        ("uri", "https://example.com/x", "no spaces here"),
        ("uri", "*", "http://a b"),
        ("uri", "http://h/a b", "http://h/%zz"),
        ("duration", "1h30m", "soon"),
        ("mac", "00:1b:44:11:3a:b7", "00:1b"),
        ("isbn13", "978-0321751041", "978-0321751042"),
    ],
)
def test_formats(name: str, good: str, bad: str) -> None:
    assert formats.satisfies(name, good)
    assert not formats.satisfies(name, bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "y"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=12,
)
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "boolean"])},
        optional={"nullable": st.booleans(), "default": st.sampled_from(["x", 1, True])},
    )
    | st.just(PRESERVE),
    lambda inner: (
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            },
            optional={
                "x-kubernetes-preserve-unknown-fields": st.just(True),
                "default": st.just({}),
            },
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150)
@given(
    schema=st.dictionaries(st.sampled_from(["spec", "data"]), SCHEMAS, max_size=2),
    value=st.dictionaries(st.sampled_from(["spec", "data", "other"]), JSON, max_size=3),
)
def test_shaping_is_idempotent_and_leaves_its_input_alone(
    schema: dict[str, Any], value: dict[str, Any]
) -> None:
    root = compile_schema({"type": "object", "properties": schema})
    before = orjson.dumps(value)
    first = defaulted(without_nulls(pruned(value, root), root), root)
    validate_schema(first, root.schema)
    assert orjson.dumps(value) == before
    again = defaulted(without_nulls(pruned(copy.deepcopy(first), root), root), root)
    assert again == first
    assert unknown_fields(first, root) == []


@pytest.mark.parametrize("text", ["0" * 100_000 + "!", "0" * 100_000, "1" * 100_000 + " "])
def test_no_duration_backtracks(text: str) -> None:
    assert formats.satisfies("duration", text) is (set(text) == {"0"})
