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
from kubescene.cel.values import TypeValue

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
        ("'a'.startsWith(1)", "startsWith", "string.(int)"),
        ("quantity('1').isGreaterThan('1Gi')", "isGreaterThan", "kubernetes.Quantity.(string)"),
        ("quantity('1').compareTo(semver('1.0.0'))", "compareTo", None),
        ("'a'.charAt(1.5)", "charAt", "string.(double)"),
        ("[1, 2].join(',')", "join", "list(int).(string)"),
        ("size(1)", "size", "int"),
        ("'ab'.reverse()", "reverse", "string.()"),
        ("duration('1s').getHours('UTC')", "getHours", None),
        ("timestamp(1.5)", "timestamp", "double"),
    ],
)
def test_arguments_of_a_wrong_type_do_not_compile(
    expression: str, function: str, types: str | None
) -> None:
    found = refused(expression)
    assert found.startswith(f"found no matching overload for '{function}' applied to '")
    assert types is None or found.endswith((f"'({types})'", f"'{types}'"))


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


# -- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("string(1e6)", "1e+06"),
        ("string(12345678.9)", "1.23456789e+07"),
        ("string(-123456.75)", "-123456.75"),
        ("string(100000.0)", "100000"),
        ("string(0.0001)", "0.0001"),
        ("string(-0.00001)", "-1e-05"),
        ("string(0.0)", "0"),
        ("string(-0.0)", "-0"),
        ("string(1.5e300)", "1.5e+300"),
        ("string(timestamp('0001-01-01T00:00:00Z'))", "0001-01-01T00:00:00Z"),
        ("string(timestamp('2024-02-29T01:02:03.50Z'))", "2024-02-29T01:02:03.5Z"),
        (r"'abc'.findAll('\\b')", ["", ""]),
        ("' x '.findAll('x*')", ["", "x", ""]),
        ("'aab'.findAll('a')", ["a", "a"]),
        ("'a'.lastIndexOf('a', 1)", -1),
        ("'aa'.lastIndexOf('a', 1)", 1),
        ("'a'.indexOf('a', 9)", -1),
        ("dyn(9223372036854775807) < 9223372036854775808.0", False),
        ("9223372036854775808.0 > dyn(9223372036854775807)", False),
        ("dyn(9223372036854775807) == 9223372036854775808.0", True),
        ("dyn(1) < 1.5 && 2u > dyn(1.5)", True),
        ("optional.ofNonZeroValue(duration('0s')).hasValue()", False),
        ("optional.ofNonZeroValue(duration('1s')).hasValue()", True),
        ("optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", False),
        ("optional.ofNonZeroValue(timestamp('1970-01-01T00:00:00Z')).hasValue()", True),
        ("isQuantity(' 1') || isQuantity('1 ')", False),
        ("double('0x1p-2')", 0.25),
        ("double('-.5e1')", -5.0),
        ("string(double('-inf'))", "-Inf"),
        ("duration('.5s') == duration('500ms')", True),
        ("duration('1\N{GREEK SMALL LETTER MU}s') == duration('1us')", True),
        ("timestamp('2024-02-29T23:30:00Z').getHours('')", 23),
        ("timestamp('2024-02-29T23:30:00Z').getMinutes('+5:45')", 15),
        ("timestamp('2024-02-29T23:30:00Z').getHours('-05:45')", 17),
        ("isSemver('18446744073709551616.0.0') || isSemver('1.0.0-18446744073709551616')", False),
        ("isSemver('18446744073709551615.0.0')", True),
        ("'%f %e'.format([0.0 / 0.0, 1.0 / 0.0])", "NaN Infinity"),
        ("'%s %f'.format([[-1.0 / 0.0], -1.0 / 0.0])", "[-Infinity] -Infinity"),
        ("'%.2f %.100f'.format([1e6, 1.0])", "1000000.00 1." + "0" * 100),
        ("'%s %s'.format([type(1), quantity('1')])", "int 1"),
        ("quantity('1.5Gi').isInteger()", False),
        ("quantity('1.0').isInteger()", False),
        ("quantity('1Ei').isInteger()", False),
        ("quantity('9223372036854775807').isInteger()", False),
        ("quantity('1000m').isInteger()", False),
        ("quantity('1.5k').isInteger()", True),
        ("quantity('50000000G').asInteger()", 50_000_000 * 10**9),
        ("quantity('1Gi').asInteger()", 2**30),
        ("quantity('1.5').add(quantity('0.5')).isInteger()", False),
        ("quantity('2').add(quantity('0.5')).isInteger()", False),
        ("quantity('0.5').add(quantity('2')).isInteger()", False),
        ("quantity('2').add(quantity('3')).isInteger()", True),
        ("quantity('1.5').sub(1).isInteger()", False),
        ("quantity('2').add(quantity('0.0')).asInteger()", 2),
        ("quantity('0.0').add(2).asInteger()", 2),
        ("quantity('0.0').sub(quantity('0.5')).isInteger()", False),
        ("quantity('2k').sub(1).asInteger()", 1999),
        ("{1: 'a', 2u: 'b', true: 0.0}.size()", 3),
        ("{1: 'a', true: 'b'}[1] + {1: 'a', true: 'b'}[true]", "ab"),
        ("{true: 'b', 1: 'a'} == {1.0 == 1.0: 'b', 1u: 'a'}", True),
        ("dyn({true: 1}) == {1: 1}", False),
        ("dyn({1: 1}) == {true: 1}", False),
        ("true in dyn({1: 1}) || 1 in dyn({true: 1})", False),
        ("1.0 in {true: 1, 1: 2}", True),
        ("{true: 1, 0: 2}.map(k, string(k))", ["true", "0"]),
        ("'%s'.format([{true: 1, 1: 2}])", "{1: 2, true: 1}"),
    ],
)
def test_values_of_the_tables(expression: str, expected: object) -> None:
    found = value(expression)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("double(' 1 ')", 'strconv.ParseFloat: parsing " 1 ": invalid syntax'),
        ("double('\u0661')", 'strconv.ParseFloat: parsing "\u0661": invalid syntax'),
        ("double('1_0')", 'strconv.ParseFloat: parsing "1_0": invalid syntax'),
        ("double('1e400')", 'strconv.ParseFloat: parsing "1e400": value out of range'),
        ("double('0x1p9999')", 'strconv.ParseFloat: parsing "0x1p9999": value out of range'),
        ("timestamp('2024-02-29t00:00:00z')", 'parsing time "2024-02-29t00:00:00z" as'),
        (r"'a'.matches('\\C')", r"error parsing regexp: invalid escape sequence: `\C`"),
        ("'a'.indexOf('a', -1)", "index out of range: -1"),
        (
            "'%f'.format([1])",
            "error during formatting: fixed-point clause can only be used on doubles, was given in",
        ),
        (
            "'%e'.format(['1'])",
            "error during formatting: scientific clause can only be used on doubles, was given str",
        ),
        (
            "'%d'.format([1.5])",
            "error during formatting: decimal clause can only be used on integers, was given dou",
        ),
        (
            "'%o'.format([true])",
            "error during formatting: octal clause can only be used on integers, was given bool",
        ),
        (
            "'%b'.format([1.0])",
            "error during formatting: only integers and bools can be formatted as binary, was giv",
        ),
        (
            "'%X'.format([1.0])",
            "error during formatting: only integers, byte buffers, and strings can be formatted",
        ),
        (
            "'%y'.format([1])",
            'could not parse formatting clause: unrecognized formatting clause "y"',
        ),
        ("'%.f'.format([1.0])", "could not parse formatting clause: error while parsing precision"),
        (f"'%.{'9' * 5000}f'.format([1.0])", "could not parse formatting clause: error while"),
        ("'%.101f'.format([1.0])", "could not parse formatting clause: error while parsing precis"),
        ("'%'.format([])", "index 0 out of range"),
        (
            "'%d'.format([1, 2])",
            "too many arguments supplied to string.format (expected 1, got 2)",
        ),
        ("quantity('1.5Gi').asInteger()", "cannot convert value to integer"),
        ("quantity('1.0').asInteger()", "cannot convert value to integer"),
        ("{1: 1, 1u: 2}", "Failed with repeated key 1"),
        ("{true: 1, true: 3}", "Failed with repeated key true"),
    ],
)
def test_tables_of_values_that_do_not_exist(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as error:
        value(expression)
    assert str(error.value).startswith(message)


def test_what_has_no_fields_lacks_them_all() -> None:
    assert value("has(o.a.b)", {"a": None}) is False
    assert value("has(dyn(1).x)") is False
    assert value("{'z': dyn(0)}.?z.?y.hasValue()") is False


# -- addresses, networks and URLs --------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cidr('10.0.0.0/8') == cidr('10.0.0.1/8')", False),
        ("cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')", True),
        ("string(cidr('10.0.0.1/8'))", "10.0.0.1/8"),
        ("string(cidr('10.0.0.1/8').ip()) + string(ip('::0:1'))", "10.0.0.1::1"),
        ("cidr('10.0.0.1/8').containsIP(ip('10.9.9.9'))", True),
        ("cidr('10.0.0.0/8').containsIP('::1')", False),
        ("cidr('10.0.0.1/8').containsCIDR('10.0.0.0/8')", True),
        ("cidr('10.0.0.0/16').containsCIDR(cidr('10.0.0.0/8'))", False),
        ("cidr('2001:db8::/32').containsCIDR('10.0.0.0/8')", False),
        ("ip('fe80::1').isLinkLocalUnicast() && ip('169.254.1.1').isLinkLocalUnicast()", True),
        ("ip('ff02::1').isLinkLocalMulticast() && ip('224.0.0.1').isLinkLocalMulticast()", True),
        ("ip('ff05::1').isLinkLocalMulticast() || ip('224.0.1.1').isLinkLocalMulticast()", False),
        ("url('https://u:p@[::1]:80/a?b=c&b=&d').getHost()", "[::1]:80"),
        ("url('https://u:p@[::1]:80/a').getHostname()", "::1"),
        ("url('https://[::1]').getPort()", ""),
        ("url('HTTP://h:8/').getScheme() + url('http://h:8').getPort()", "http8"),
        ("url('http://h/?b=c&b=&d+e=%20').getQuery()", {"b": ["c", ""], "d e": [" "]}),
        ("url('http://h/?a;b').getQuery()", {}),
        ("url('http://h/?%zz=1&c').getQuery()", {"c": [""]}),
        ("url('/a b').getEscapedPath()", "/a%20b"),
        ("url('/a%2Fb').getEscapedPath()", "/a%2Fb"),
        ("url('/(a)%2F b').getEscapedPath()", "/%28a%29/%20b"),
        ("url('/(a)').getEscapedPath()", "/(a)"),
        ("url('mailto:x@y').getEscapedPath()", ""),
    ],
)
def test_values_of_the_network(expression: str, expected: object) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.0/255.0.0.0", "10.0.0.0/08", "fe80::1%e/64", "::ffff:1.2.3.0/120"),
        *("10.0.0.0/33", "10.0.0.0/", "10.0.0.0", "10.0.0.0/+8", "10.0.0.0/8/8"),
    ],
)
def test_what_is_no_network(text: str) -> None:
    assert value("isCIDR(o)", text) is False


@pytest.mark.parametrize("text", ["10.0.0.0/0", "10.0.0.1/32", "::/0", "2001:db8::/128"])
def test_what_is_a_network(text: str) -> None:
    assert value("isCIDR(o)", text) is True


@pytest.mark.parametrize(
    "text",
    [
        *(" http://h", "http://h\n", "http://h/%zz", "http://h\\x", "http://h#", "", ":x", "a/b"),
        *("http://h:x", "http://[::1", "http://a b/", "http://u^@h", "http://h%41"),
    ],
)
def test_what_is_no_url(text: str) -> None:
    assert value("isURL(o)", text) is False


@pytest.mark.parametrize(
    "text",
    ["http://h:99999/", "*", "/", "/a b", "http://h:", "x:y", "http://h/#", "http://\u00e9", "//a"],
)
def test_what_is_a_url(text: str) -> None:
    assert value("isURL(o)", text) is True


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("url('http://a')", "kubernetes.URL"),
        ("ip('1.1.1.1')", "net.IP"),
        ("ip('::1')", "net.IP"),
        ("cidr('::1/8')", "net.CIDR"),
    ],
)
def test_values_of_the_network_have_types_of_their_own(expression: str, name: str) -> None:
    assert value(f"type({expression})") == TypeValue(name)
    for wrong in ("size(dyn({}))", "'http' in dyn({})"):
        with pytest.raises(EvaluationError, match="no such overload"):
            value(wrong.format(expression))


@pytest.mark.parametrize(
    "made", ["quantity('1')", "semver('1.0.0')", "ip('1.1.1.1')", "cidr('::/0')", "url('/a')"]
)
@pytest.mark.parametrize("operator", ["==", "!="])
def test_what_has_its_own_type_is_not_held_against_text(made: str, operator: str) -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        value(f"dyn({made}) {operator} '1.0.0'")
    assert value(f"dyn({made}) == null") is False
    assert value(f"dyn({made}) == dyn({made})") is True


# -- lists, optional values, names -------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("string(timestamp('2026-01-01T00:30:00+05:30'))", "2025-12-31T19:00:00Z"),
        ("string(timestamp('2026-01-01T00:30:00-01:00'))", "2026-01-01T01:30:00Z"),
        ("[3, 1, 2].sort()", [1, 2, 3]),
        ("['b', 'a'].sort()[0] + 'x'", "ax"),
        ("[{'n': 2, 'k': 'x'}, {'n': 1, 'k': 'y'}].sortBy(e, e.n).map(e, e.k)", ["y", "x"]),
        ("['aa', 'b', 'cc'].sortBy(e, size(e))", ["b", "aa", "cc"]),
        ("[1, 2.0, 1u, 2, 'a', 'a'].distinct()", [1, 2.0, "a"]),
        ("[1, [2, [3]]].flatten()", [1, 2, [3]]),
        ("[1, [2, [3]]].flatten(2)", [1, 2, 3]),
        ("[1, [2]].flatten(0)", [1, [2]]),
        ("[1, 2, 3].slice(1, 3) + [4].slice(1, 1)", [2, 3]),
        ("[1, 2].first().value() + [1, 2].last().value()", 3),
        ("[].first().hasValue() || [].last().hasValue()", False),
        ("lists.range(3) + lists.range(0) + lists.range(-1)", [0, 1, 2]),
        ("dyn([1, 2]).includes(2) && dyn('a').includes('a') && !dyn(1).includes(2)", True),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("[optional.of(1), optional.none(), optional.of(2)].unwrapOpt()", [1, 2]),
        ("type(optional.none()) == optional_type", True),
        ("type(ip('::1')) == net.IP && type(cidr('::/0')) == net.CIDR", True),
        ("type(duration('1s')) == google.protobuf.Duration", True),
        ("['c'].exists(o, .o == 'g' && o == 'c')", True),
    ],
)
def test_lists_and_names(expression: str, expected: object) -> None:
    assert value(expression, "g") == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[1, 'a'].sort()", "list elements must have the same type"),
        ("[[1], [2]].sort()", "list elements must be comparable"),
        ("[1].slice(-1, 1)", "cannot slice(-1, 1), negative indexes not supported"),
        ("[1].slice(1, 0)", "cannot slice(1, 0), start index must be less than or equal"),
        ("[1].slice(0, 2)", "cannot slice(0, 2), list is length 1"),
        ("[1].flatten(-1)", "level must be non-negative"),
        ("[1].unwrapOpt()", "no such overload"),
        ("lists.range(9223372036854775807)", "operation cancelled: actual cost limit exceeded"),
    ],
)
def test_lists_that_do_not_exist(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as error:
        value(expression)
    assert str(error.value).startswith(message)


def test_a_leading_dot_sees_no_name_of_a_macro() -> None:
    problem = "undeclared reference to 'y' (in container '')"
    assert refused("['c'].exists(y, .y == 'g')") == problem
    assert refused("['c'].exists(.y, true)") == "argument must be a simple name"


def test_a_list_is_sorted_only_by_what_has_an_order() -> None:
    assert refused("[1].sortBy(e, [e])").startswith("found no matching overload for 'sortBy'")


def test_numbers_that_no_double_can_hold_are_compared_nevertheless() -> None:
    assert value("o > 1.5 && o != 1.5", 10**400) is True
    assert value("o < 1.5 && !(o == 1.5)", -(10**400)) is True
