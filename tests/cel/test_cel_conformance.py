"""Rows after the published cases of the language and of Kubernetes: one table per subject."""

from typing import Any

import pytest

from kubescene.cel import (
    BOOL,
    DYN,
    CompileError,
    EvaluationError,
    compile_expression,
)

NAMES = {"o": DYN}


def value(expression: str, o: Any = None) -> Any:
    return compile_expression(expression, NAMES).evaluate({"o": o})


def refused(expression: str) -> str:
    """Why an expression does not compile."""
    with pytest.raises(CompileError) as error:
        compile_expression(expression, NAMES)
    return error.value.problem


# -- names -------------------------------------------------------------------------------------

RESERVED = (
    *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
    *("loop", "package", "namespace", "return", "var", "void", "while"),
)


@pytest.mark.parametrize("word", RESERVED)
def test_a_field_may_have_a_reserved_name(word: str) -> None:
    assert value(f"o.{word} == 1 && has(o.{word}) && o.?{word}.hasValue()", {word: 1}) is True


@pytest.mark.parametrize("word", RESERVED)
@pytest.mark.parametrize("expression", ["{}", ".{}", "{}()", "{}.field", "[1].all({}, true)"])
def test_an_expression_may_not_begin_with_a_reserved_name(word: str, expression: str) -> None:
    assert refused(expression.format(word)) == f"reserved identifier: {word}"


def test_pods_can_be_asked_for_their_namespace() -> None:
    program = compile_expression('pods.all(p, p.namespace == "default")', {"pods": DYN})
    assert program.result == BOOL
    assert program.evaluate({"pods": [{"namespace": "default"}]}) is True


# -- types of arguments ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "function", "types"),
    [
        ("quantity('1') >= quantity('2')", "_>=_", "kubernetes.Quantity, kubernetes.Quantity"),
        ("[0] < [1]", "_<_", "list(int), list(int)"),
        ("null < null", "_<_", "null, null"),
        ("'a'.startsWith(1)", "startsWith", "string, int"),
        ("quantity('1').isGreaterThan('1Gi')", "isGreaterThan", "kubernetes.Quantity, string"),
        ("quantity('1').compareTo(semver('1.0.0'))", "compareTo", None),
        ("'a'.charAt(1.5)", "charAt", "string, double"),
        ("[1, 2].join(',')", "join", "list(int), string"),
        ("size(1)", "size", "int"),
        ("'ab'.reverse()", "reverse", "string"),
        ("duration('1s').getHours('UTC')", "getHours", None),
        ("timestamp(1.5)", "timestamp", "double"),
    ],
)
def test_arguments_of_a_wrong_type_do_not_compile(
    expression: str, function: str, types: str | None
) -> None:
    found = refused(expression)
    assert found.startswith(f"found no matching overload for '{function}' applied to '(")
    assert types is None or found.endswith(f"'({types})'")


def test_a_type_that_is_not_known_is_left_to_the_run() -> None:
    assert value("'abc'.startsWith(o) && o < 'b'", "a") is True
    with pytest.raises(EvaluationError, match="no such overload"):
        value("'abc'.startsWith(o)", 1)


def test_lists_are_reversed_and_keep_their_type() -> None:
    assert value("[1, 2].reverse()") == [2, 1]
    assert refused("[1, 2].reverse()[0] == 'a'").endswith("applied to '(int, string)'")


def test_the_sign_of_a_quantity_is_a_function() -> None:
    assert [value(f"sign(quantity('{text}'))") for text in ("-5m", "0", "1Gi")] == [-1, 0, 1]
    assert refused("quantity('1').sign()") == "undeclared reference to 'sign' (in container '')"
