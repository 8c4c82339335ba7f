"""How field errors read, and the refusal they add up to."""

import pytest

from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.api.validation import ErrorType, FieldError, raise_if_invalid
from kubescene.api.validation.field_errors import OMITTED, ErrorList, quote
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.errors import InvalidError

POD = ResourceType(GroupVersionKind("", "v1", "Pod"), "pods", namespaced=True)
DEPLOYMENT = ResourceType(
    GroupVersionKind("apps", "v1", "Deployment"), "deployments", namespaced=True
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FieldError(ErrorType.REQUIRED, "a.b"), "a.b: Required value"),
        (FieldError(ErrorType.REQUIRED, "a", "", "why"), "a: Required value: why"),
        (FieldError(ErrorType.INVALID, "a", "x", "why"), 'a: Invalid value: "x": why'),
        (FieldError(ErrorType.INVALID, "a", -1, "why"), "a: Invalid value: -1: why"),
        (FieldError(ErrorType.INVALID, "a", True, "why"), "a: Invalid value: true: why"),
        (FieldError(ErrorType.INVALID, "a", None, "why"), "a: Invalid value: null: why"),
        (FieldError(ErrorType.INVALID, "a", OMITTED, "why"), "a: Invalid value: why"),
        (
            FieldError(ErrorType.INVALID, "a", {"k": ["<é>"]}, "why"),
            'a: Invalid value: {"k":["\\u003cé\\u003e"]}: why',
        ),
        (FieldError(ErrorType.DUPLICATE, "a", "x"), 'a: Duplicate value: "x"'),
        (FieldError(ErrorType.NOT_FOUND, "a", "x"), 'a: Not found: "x"'),
        (FieldError(ErrorType.FORBIDDEN, "a", "", "why"), "a: Forbidden: why"),
        (FieldError(ErrorType.INTERNAL, "a", "", "why"), "a: Internal error: why"),
        (FieldError(ErrorType.TYPE_INVALID, "a", 1, "why"), "a: Invalid value: 1: why"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_message_has_the_form_of_the_server(error: FieldError, message: str) -> None:
    assert error.message == message


@pytest.mark.parametrize(
    ("note", "message"),
    [
        (lambda errors: errors.too_long(SPEC, 5), "spec: Too long: may not be more than 5 bytes"),
        (lambda errors: errors.too_long(SPEC, 1), "spec: Too long: may not be more than 1 byte"),
        (
            lambda errors: errors.too_many(SPEC, 7, 1),
            "spec: Too many: 7: must have at most 1 item",
        ),
        (
            lambda errors: errors.not_supported(SPEC, "X", ("A", "B")),
            'spec: Unsupported value: "X": supported values: "A", "B"',
        ),
    ],
    ids=["bytes", "byte", "items", "choice"],
)
def test_collected_errors_read_like_the_servers(note, message: str) -> None:  # type: ignore[no-untyped-def]  # a lambda per row
    errors = ErrorList()
    note(errors)
    assert [error.message for error in errors] == [message]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain", '"plain"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("a\n\t\x00", '"a\\n\\t\\x00"'),
        ("é\x85", '"é\\u0085"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
    ids=["plain", "quotes", "control", "latin", "astral"],
)
def test_strings_are_quoted_as_go_does(text: str, quoted: str) -> None:
    assert quote(text) == quoted


def test_path_spells_fields_items_and_keys() -> None:
    path = SPEC.child("containers").index(2).child("resources").child("limits").key("e.com/gpu")
    assert str(path) == "spec.containers[2].resources.limits[e.com/gpu]"


def test_no_errors_means_no_refusal() -> None:
    raise_if_invalid([], POD, "x")


def test_one_error_stands_alone_in_the_message() -> None:
    error = FieldError(ErrorType.REQUIRED, "spec.containers")
    with pytest.raises(InvalidError) as refusal:
        raise_if_invalid([error], POD, "x")
    assert refusal.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Pod "x" is invalid: spec.containers: Required value',
        "reason": "Invalid",
        "details": {
            "name": "x",
            "kind": "Pod",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value",
                    "field": "spec.containers",
                }
            ],
        },
        "code": 422,
    }


def test_several_errors_are_listed_once_each() -> None:
    errors = ErrorList()
    for name in ("a", "b", "a"):
        errors.required(Path(name))
    with pytest.raises(InvalidError) as refusal:
        raise_if_invalid(errors, DEPLOYMENT, "x")
    assert refusal.value.message == (
        'Deployment.apps "x" is invalid: [a: Required value, b: Required value]'
    )
    assert refusal.value.group == "apps"
    assert len(refusal.value.causes) == 3
