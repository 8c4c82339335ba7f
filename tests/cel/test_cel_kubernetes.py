"""What Kubernetes adds to the language, after the tables in its own documentation."""

from typing import Any

import pytest

from kubescene.cel import EvaluationError, Program, compile_expression
from kubescene.cel.device_selectors import DEVICE, compiled, is_too_complex


def value(expression: str) -> Any:
    return compile_expression(expression, {}).evaluate({})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("quantity('1.5Gi').compareTo(quantity('1536Mi'))", 0),
        ("quantity('50M').isGreaterThan(quantity('50Mi'))", False),
        ("quantity('50k').isLessThan(quantity('50M'))", True),
        ("sign(quantity('-5'))", -1),
        ("quantity('50k').asInteger()", 50_000),
        ("quantity('0.5').isInteger()", False),
        ("quantity('500m').asApproximateFloat()", 0.5),
        ("quantity('50k').add(quantity('20')) == quantity('50020')", True),
        ("quantity('50k').sub(20) == quantity('49980')", True),
        ("isQuantity('1Gi') && !isQuantity('1Gb')", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("semver('1.0.0-alpha').compareTo(semver('1.0.0'))", -1),
        ("semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))", True),
        ("semver('1.0.0-1').isLessThan(semver('1.0.0-a'))", True),
        ("semver('1.2.3+build').major() + semver('1.2.3').minor()", 3),
        ("isSemver('v1.0') || isSemver('01.0.0') || isSemver('1.0.0-01')", False),
        ("semver('v1.0', true) == semver('1.0.0')", True),
        ("[1, 2, 2].isSorted() && ![2, 1].isSorted()", True),
        ("[1, 3, 2].max() - [1, 3, 2].min() + [1, 3, 2].sum()", 8),
        ("[duration('1m'), duration('1s')].sum() == duration('61s')", True),
        ("[1, 2, 2, 3].indexOf(2) + [1, 2, 2, 3].lastIndexOf(2)", 3),
        ("'abc 123'.find('[0-9]+')", "123"),
        ("'a1 b2 c3'.findAll('[0-9]', 2)", ["1", "2"]),
        ("'hello'.charAt(4) + 'HeLLo'.lowerAscii() + 'a'.upperAscii()", "ohelloA"),
        ("'hello hello'.indexOf('he', 1)", 6),
        ("'hello hello'.replace('he', 'we', 1)", "wello hello"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", "cattaco"),
        ("'  x '.trim() + ['a', 'b'].join('-')", "xa-b"),
        ("'%s %d %.2f %x'.format(['a', 7, 1.0, 255])", "a 7 1.00 ff"),
        ("'%s'.format([[1, 'b', {'c': null}]])", "[1, b, {c: null}]"),
        ("'%s %s'.format([true, [false]])", "true [false]"),
        ("'%x %X'.format(['hi~', 'hi~'])", "68697e 68697E"),
        ("'%x %X'.format([b'hi~', b'hi~'])", "68697e 68697E"),
        ("sets.contains([1, 2, 3], [2]) && !sets.intersects([1], [2])", True),
        ("sets.equivalent([1, 2], [2, 1, 1])", True),
        ("isIP('192.168.0.1') && ip('::1').family() == 6 && ip('::1').isLoopback()", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", True),
        ("cidr('10.0.0.0/8').prefixLength()", 8),
        ("url('https://example.com:80/a?x=1').getHostname()", "example.com"),
        ("url('https://example.com:80/a?x=1').getPort()", "80"),
        ("url('https://example.com:80/a?x=1').getQuery()", {"x": ["1"]}),
        ("isURL('nothing')", False),
        ("format.named('dns1123Label').value() == format.dns1123Label()", True),
        ("format.named('nope').hasValue()", False),
        ("format.dns1123LabelPrefix().validate('web-').hasValue()", False),
        ("format.dns1123Label().validate('a.b').value()", ["must not contain dots"]),
        ("type(format.uri()) == type(format.uuid())", True),
        ("['10.0.0.1'].all(ip, ip.startsWith('10.') && ip.isCanonical(ip))", True),
        ("[[1]].all(lists, lists.all(x, x > 0))", True),
        ("['a'].all(format, format.size() == 1)", True),
    ],
)
def test_values(expression: str, expected: object) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("quantity('a')", "quantities must match the regular expression"),
        ("semver('1')", 'invalid semantic version "1"'),
        ("quantity('1').compareTo(dyn(semver('1.0.0')))", "no such overload"),
        ("[].min()", "min called on empty list"),
        ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ("format.uri() == dyn('uri')", "no such overload"),
        ("dyn(1).validate('a')", "no such overload"),
        ("ip('300.0.0.1')", 'IP Address "300.0.0.1" parse error'),
        ("'%d'.format(['a'])", "error during formatting: decimal clause"),
    ],
)
def test_values_that_do_not_exist(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as error:
        value(expression)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("[1, 2.0] == []", "1:5: expected type 'int' but found 'double'"),
        ("1 in [1, null]", "1:10: expected type 'int' but found 'null'"),
        ("[dyn(1), 2] == []", "1:10: expected type 'dyn' but found 'int'"),
        ("{'a': 1, 'b': 'c'} == {}", "1:15: expected type 'int' but found 'string'"),
        ("{1: 'a', true: 'b'} == {}", "1:10: expected type 'int' but found 'bool'"),
        ("[1, 2].map(x, [x, 'a']).size() == 2", "1:19: expected type 'int' but found 'string'"),
        ("'%d'.format([1]) == [1, 'a'][1]", "1:25: expected type 'int' but found 'string'"),
        (
            "device.driver in [device.attributes['a'].b, 'x']",
            "1:45: expected type 'any' but found 'string'",
        ),
    ],
)
def test_selectors_do_not_mix_types(expression: str, problem: str) -> None:
    said = compiled(expression)
    assert isinstance(said, str)
    assert f"ERROR: <input>:{problem}\n" in said
    # Expectations may: what they are about has types that are known only when it is there.
    compile_expression(expression, {"device": DEVICE})


@pytest.mark.parametrize(
    "expression",
    [
        "'%d %s'.format([1, 'a']) == ''",
        "'%s'.format([[1, 'a', {'a': 1, 'b': ['c', 2]}]]) == ''",
        "[[], [1]] == []",
        "[optional.none(), optional.of(1)].size() == 2",
        "[1, ?optional.of(2)] == []",
        "{'a': [1], 'b': []} == {}",
    ],
)
def test_what_is_formatted_or_of_one_type_is_taken(expression: str) -> None:
    program = compiled(expression)
    assert isinstance(program, Program)
    assert not is_too_complex(program)
