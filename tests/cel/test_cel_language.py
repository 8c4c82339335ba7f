"""The language: what expressions are worth, in tables after those of the CEL specification."""

import math
import re
from contextlib import suppress
from typing import Any

import pytest

from kubescene.cel import (
    BOOL,
    DYN,
    INT,
    STRING,
    CompileError,
    CostExceededError,
    EvaluationError,
    compile_expression,
    list_of,
    map_of,
)
from kubescene.cel.values import NONE, Duration, Optional, Timestamp, UInt

NAMES = {
    "x": DYN,
    "n": INT,
    "s": STRING,
    "flag": BOOL,
    "items": list_of(INT),
    "labels": map_of(STRING, STRING),
}
VALUES: dict[str, Any] = {
    "x": {"a": {"b": 3}},
    "n": 7,
    "s": "héllo",
    "flag": True,
    "items": [1, 2, 3],
    "labels": {"app": "web", "tier": "front"},
}


def value(expression: str) -> Any:
    return compile_expression(expression, NAMES).evaluate(VALUES)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("7u / 2u", 3),
        ("1.0 / 4.0", 0.25),
        ("1.0 / 0.0 > 1e308", True),
        ("0x1F + 1", 32),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615u", 2**64 - 1),
        ("--3", 3),
        ("!!flag", True),
        ("'a' + \"b\"", "ab"),
        ("'\\u00e9\\x41\\n'", "éA\n"),
        ("r'\\n'", "\\n"),
        ("b'\\xff' + b'a'", b"\xffa"),
        ("'''multi\nline'''", "multi\nline"),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("{'a': 1}['a']", 1),
        ("{'a': 1}.a", 1),
        ("x.a.b", 3),
        ("x['a']['b']", 3),
        ("dyn(1) == 1.0", True),
        ("dyn(1) == 1u", True),
        ("dyn(1) == 'a'", False),
        ("dyn(true) == 1", False),
        ("[1, 'a', null] == [1.0, 'a', null]", True),
        ("dyn({'a': [1]}) == {'a': [1u]}", True),
        ("1 < 2u && 2.5 > 2", True),
        ("'B' < 'a'", True),
        ("2 in items", True),
        ("'app' in labels", True),
        ("dyn(1) in {true: 'x'}", False),
        ("flag ? 'yes' : 'no'", "yes"),
        ("size('héllo')", 5),
        ("s.size() + size(items)", 8),
        ("type(1) == int && type([]) == list && type(null) == null_type", True),
        ("int('42') + int(3.9)", 45),
        ("string(1.5) + string(true) + string(7u)", "1.5true7"),
        ("double('2.5')", 2.5),
        ("uint(3)", 3),
        ("bool('true')", True),
        ("bytes('é').size()", 2),
        ("'foobar'.contains('oba')", True),
        ("'foobar'.startsWith('foo') && 'foobar'.endsWith('bar')", True),
        ("'foo123'.matches('^[a-z]+\\\\d{3}$')", True),
        ("duration('1h30m') == duration('5400s')", True),
        ("string(duration('-1.5s'))", "-1.5s"),
        ("timestamp('2024-02-29T12:00:00Z') + duration('24h')", None),
        ("timestamp('2024-02-29T12:00:00Z').getMonth()", 1),
        ("timestamp('2024-02-29T23:30:00Z').getDate('+01:00')", 1),
        ("duration('90m').getHours()", 1),
        ("has(x.a) && !has(x.c)", True),
        ("items.all(i, i > 0)", True),
        ("items.exists(i, i > 2)", True),
        ("items.exists_one(i, i > 1)", False),
        ("items.map(i, i * 2)", [2, 4, 6]),
        ("items.map(i, i > 1, i * 2)", [4, 6]),
        ("items.filter(i, i % 2 == 1)", [1, 3]),
        ("labels.all(k, labels[k] != '')", True),
        ("[[1], [2]].exists(l, l.exists(i, i == 2))", True),
        ("cel.bind(y, n + 1, y * y)", 64),
        ("// a comment\n1", 1),
    ],
)
def test_values(expression: str, expected: object) -> None:
    found = value(expression)
    if expected is None:
        assert isinstance(found, Timestamp)
    else:
        assert found == expected
        assert type(found) is type(expected) or isinstance(found, UInt)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && false", False),
        ("true || 1 / 0 == 1", True),
        ("1 / 0 == 1 || true", True),
        ("items.all(i, i / (i - 1) < 0)", False),
        ("items.exists(i, 6 / (i - 1) == 6)", True),
    ],
)
def test_one_side_may_decide_though_the_other_has_no_value(expression: str, expected: bool) -> None:
    assert value(expression) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775807 - 2", "integer overflow"),
        ("0u - 1u", "unsigned integer overflow"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("x.nope", "no such key: nope"),
        ("labels['nope']", "no such key: nope"),
        ("items[3]", "index out of bounds: 3"),
        ("items[-1]", "index out of bounds: -1"),
        ("dyn('a') + 1", "no such overload"),
        ("dyn('a') < 1", "no such overload"),
        ("dyn(1) && true", "no such overload"),
        ("1 / 0 == 1 && true", "division by zero"),
        ("items.all(i, 1 / (i - 1) < 10)", "division by zero"),
        ("{'a': 1, 'a': 2}", "Failed with repeated key a"),
        ("'a'.matches('(')", "error parsing regexp: missing closing ): `(`"),
        ("int('x')", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("optional.none().value()", "optional.none() dereference"),
    ],
)
def test_values_that_do_not_exist(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as error:
        value(expression)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("expression", "problem", "offset"),
    [
        ("1 +", "Syntax error: mismatched input '<EOF>' expecting", 3),
        ("1 2", "Syntax error: extraneous input '2' expecting <EOF>", 2),
        ("(1", "Syntax error: mismatched input '<EOF>' expecting ')'", 2),
        ("'open", "Syntax error: token recognition error at: ''open'", 0),
        ("a # b", "Syntax error: token recognition error at: '#'", 2),
        ("nobody", "undeclared reference to 'nobody' (in container '')", 0),
        ("n + nothing(1)", "undeclared reference to 'nothing' (in container '')", 11),
        ("n.missing()", "undeclared reference to 'missing' (in container '')", 9),
        ("n == s", "found no matching overload for '_==_' applied to '(int, string)'", 2),
        ("n + s", "found no matching overload for '_+_' applied to '(int, string)'", 2),
        ("n && flag", "found no matching overload for '_&&_' applied to '(int, bool)'", 2),
        ("items.all(i, i)", "expected type 'bool' but found 'int'", 13),
        ("n.all(i, true)", "expression of type 'int' cannot be range of a comprehension", 0),
        ("s.field", "type 'string' does not support field selection", 1),
        ("has(n)", "invalid argument to has() macro", 4),
        ("items.map(1, 2)", "argument must be a simple name", 10),
        ("9223372036854775808", "invalid int literal", 0),
        ("for", "reserved identifier: for", 0),
        ("'\\q'", "Syntax error: invalid escape sequence", 1),
    ],
)
def test_what_cannot_be_compiled_says_where(expression: str, problem: str, offset: int) -> None:
    with pytest.raises(CompileError) as error:
        compile_expression(expression, NAMES)
    assert error.value.problem.startswith(problem)
    assert error.value.offset == offset


@pytest.mark.parametrize("text", ["flag &&\n  nobody", "\n  nobody"])
def test_a_problem_is_shown_below_its_line(text: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_expression(text, NAMES)
    assert str(error.value) == (
        "ERROR: <input>:2:3: undeclared reference to 'nobody' (in container '')\n"
        " |   nobody\n"
        " | ..^"
    )


@pytest.mark.parametrize(
    ("text", "offset", "shown"),
    [
        ("", 0, "1:1: p\n | \n | ^"),
        ("ab", 4, "1:5: p\n | ab\n | ....^"),
        ("a\nb", 0, "1:1: p\n | a\n | ^"),
        ("a\nb", 1, "1:2: p\n | a\n | .^"),
        ("a\nb", 2, "2:1: p\n | b\n | ^"),
        ("a\n", 2, "2:1: p\n | \n | ^"),
        ("\na", 0, "1:1: p\n | \n | ^"),
        ("é x", 2, "1:3: p\n | é x\n | ．.^"),
        ("xéy", 1, "1:2: p\n | xéy\n | .＾"),
        ("xyé", 1, "1:2: p\n | xyé\n | .^"),
    ],
)
def test_the_place_of_a_problem_is_marked(text: str, offset: int, shown: str) -> None:
    """At the end, at the end of a line, and where letters are wide, as cel-go draws it."""
    assert str(CompileError("p", text, offset)) == f"ERROR: <input>:{shown}"


def test_a_mark_is_as_wide_as_what_it_marks() -> None:
    with pytest.raises(CompileError) as error:
        compile_expression('1 "\N{LATIN SMALL LETTER E WITH ACUTE}"', NAMES)
    assert str(error.value).endswith("\n | ..^")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("labels.?app", Optional(("web",))),
        ("labels.?nope", NONE),
        ("labels.?nope.orValue('none')", "none"),
        ("labels[?'app'].hasValue()", True),
        ("x.?a.b.orValue(0)", 3),
        ("x.?c.b.orValue(0)", 0),
        ("[?labels.?app, ?labels.?nope]", ["web"]),
        ("{?'a': labels.?nope, 'b': 1}", {"b": 1}),
        ("labels.?app.optMap(v, v + '!').orValue('')", "web!"),
        ("labels.?app.optFlatMap(v, optional.none()).hasValue()", False),
        ("labels.?nope.or(optional.of('z')).value()", "z"),
        ("optional.ofNonZeroValue(0).hasValue()", False),
    ],
)
def test_values_that_may_be_missing(expression: str, expected: object) -> None:
    assert value(expression) == expected


def test_time_is_exact() -> None:
    assert value("timestamp('1969-12-31T23:59:59.999999999Z')") == Timestamp(-1)
    assert value("duration('1.000000001s')") == Duration(1_000_000_001)
    assert math.isnan(value("0.0 / 0.0"))
    assert value("dyn(0.0 / 0.0) == dyn(0.0 / 0.0)") is False


@pytest.mark.parametrize(
    "expression",
    [
        "[1,2,3,4,5,6,7,8,9,10]" + ".map(i, [1,2,3,4,5,6,7,8,9,10])" * 7,
        "s + " * 3 + "s",
        "(" * 50 + "1" + ")" * 50,
    ],
)
def test_an_expression_ends(expression: str) -> None:
    """Whatever it is, it comes to an end, with a value or without."""
    with suppress(CostExceededError, CompileError):
        value(expression)


def test_work_is_limited_and_nothing_absorbs_that() -> None:
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    body = "false"
    for name in "abcdefgh":
        body = f"{ten}.exists({name}, {body})"
    with pytest.raises(CostExceededError):
        value(f"true && ({body} || true)")


def test_deep_nesting_is_refused_not_fatal() -> None:
    with pytest.raises(CompileError, match="recursion limit"):
        compile_expression("(" * 5000 + "1" + ")" * 5000, NAMES)


# -- macros of two variables: an index and its element, or a key and its value ------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("items.all(i, v, v == i + 1)", True),
        ("items.exists(i, v, i == 2 && v == 3)", True),
        ("labels.exists(k, v, k == 'app' && v == 'front')", False),
        ("labels.existsOne(k, v, v.startsWith('f'))", True),
        ("items.exists_one(i, v, i == 1 || v == 3)", False),
        ("items.exists(i, v, 1 / (v - 1) == 1)", True),
        ("items.transformList(i, v, i * 10 + v)", [1, 12, 23]),
        ("labels.transformList(k, v, k != 'app', k + '=' + v)", ["tier=front"]),
        ("labels.transformMap(k, v, v.size())", {"app": 3, "tier": 5}),
        ("items.transformMap(i, v, i > 0, v)", {1: 2, 2: 3}),
        ("{true: 1, 1: 2}.transformMap(k, v, v * 2)[true]", 2),
        ("labels.transformMapEntry(k, v, {v: k})", {"web": "app", "front": "tier"}),
        ("items.transformMapEntry(i, v, v > 1, {v: i})", {2: 1, 3: 2}),
        ("items.all(i, v, items.exists(j, w, i == j && v == w))", True),
        ("x.all(k, v, k == 'a' && v.b == 3)", True),
    ],
)
def test_macros_of_two_variables(expression: str, expected: object) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("items.all(i, i, true)", "duplicate variable name: i"),
        ("items.all(i, v.a, true)", "argument must be a simple name"),
        ("items.all(i, v, v)", "expected type 'bool' but found 'int'"),
        ("items.all(i, v, i == 'a')", "no matching overload for '_==_'"),
        ("labels.transformMapEntry(k, v, k)", "no matching overload for 'cel.@mapInsert'"),
        ("n.all(i, v, true)", "cannot be range of a comprehension"),
    ],
)
def test_macros_of_two_variables_that_do_not_compile(expression: str, problem: str) -> None:
    with pytest.raises(CompileError, match=re.escape(problem)):
        value(expression)


def test_an_entry_is_made_once() -> None:
    with pytest.raises(EvaluationError, match="key 1 already exists"):
        value("items.transformMapEntry(i, v, {1: v})")
    with pytest.raises(EvaluationError, match="no such overload"):
        value("items.transformMapEntry(i, v, dyn(v))")
