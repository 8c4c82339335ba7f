"""Rows after the published cases of the language and of Kubernetes: one table per subject."""

from typing import Any

import pytest

from kubescene.cel import (
    BOOL,
    DYN,
    CompileError,
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
