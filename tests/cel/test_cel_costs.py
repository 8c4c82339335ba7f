"""How much an evaluation costs: figures of the real thing, and none that are lower."""

import pytest

from kubescene.cel import DYN, INT, CostExceededError, compile_expression, list_of
from kubescene.cel.programs import worst_cost

NAMES = {"n": DYN, "r": DYN, "s": DYN}
VALUES = {"n": 7, "r": [1, 2, 3], "s": "x" * 95}


def cost_of(expression: str) -> int:
    """The least limit within which it can be evaluated."""
    program = compile_expression(expression, NAMES)
    low, high = 0, 10_000_000
    while low < high:
        middle = (low + high) // 2
        try:
            program.evaluate(VALUES, cost=middle)
            high = middle
        except CostExceededError:
            low = middle + 1
    return low


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("1", 0),
        ("n", 1),
        ("n + 1", 2),
        ("-n", 2),
        ("n == 1 && n == 2", 2),
        ("n > 1 ? n : 1", 3),
        ("[1, 2]", 10),
        ("{'a': n}['a']", 33),
        ("{'a': 1}", 30),
        ("r[0]", 2),
        ("1 in r", 4),
        ("1 in [1, 2, 3, 4]", 14),
        ("s == s", 12),
        ("s < 'a'", 2),
        ("s + s", 21),
        ("s.startsWith(s)", 12),
        ("s.contains(s)", 102),
        ("s.matches('a{1,9}')", 21),
        ("size(s)", 2),
        ("r.all(x, x > 0)", 17),
        ("r.exists(x, x > 5)", 20),
        ("r.exists_one(x, x > 2)", 13),
        ("r.map(x, x)", 51),
        ("r.map(x, x > 1, x)", 45),
        ("r.filter(x, x > 1)", 45),
        ("cel.bind(x, [1, 2], x)", 21),
        ("r.sortBy(x, x)", 64),
        ("r.sortBy(x, -x)", 67),
    ],
)
def test_costs_are_those_of_the_real_thing(expression: str, cost: int) -> None:
    assert cost_of(expression) == cost


def test_loops_within_loops_cost_what_they_cost_in_the_real_thing() -> None:
    program = compile_expression("r.all(x, r.all(y, x + y > -1))", NAMES)
    values = {"r": [*range(300)]}
    assert program.evaluate(values, cost=631_502) is True
    with pytest.raises(CostExceededError):
        program.evaluate(values, cost=631_501)


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(100000).distinct()",
        "sets.contains(lists.range(100000), lists.range(100000))",
        "sets.intersects(lists.range(100000), [0].map(x, -1) + lists.range(100000))",
        "sets.equivalent(lists.range(100000), lists.range(100000))",
    ],
)
def test_pairs_of_elements_are_paid_before_they_are_looked_at(expression: str) -> None:
    with pytest.raises(CostExceededError):
        compile_expression(expression, {}).evaluate({})


@pytest.mark.parametrize(
    ("expression", "cost", "folded", "worst"),
    [
        ("r.all(i, v, v > 0)", 17, 0, 17),
        ("r.all(i, v, v > 2)", 9, 0, 17),
        ("r.exists(i, v, v < 0)", 20, 0, 20),
        ("r.existsOne(i, v, v == 1)", 11, 2, 15),
        ("r.transformList(i, v, v)", 41, 10, 51),
        ("r.transformList(i, v, v > 1, v)", 34, 11, 57),
        ("r.transformMap(i, v, v)", 14, 30, 44),
        ("r.transformMap(i, v, v > 1, v)", 16, 31, 50),
        ("r.transformMapEntry(i, v, {v: i})", 104, 30, 134),
        ("r.transformMapEntry(i, v, v > 1, {v: i})", 76, 31, 140),
        ("r.transformMap(i, v, r.transformList(j, w, w + v))", 152, 60, 212),
    ],
)
def test_loops_of_two_variables(expression: str, cost: int, folded: int, worst: int) -> None:
    """As recorded of k8s.io/apiserver v0.36.3; what it folds (the first map) is paid here."""
    names = {"r": list_of(INT)}
    program = compile_expression(expression, names)
    assert cost_of(expression) == cost + folded
    assert worst_cost(program, names, lambda path: 3 if path == ("r",) else None) == worst


@pytest.mark.parametrize(
    ("expression", "cost", "worst"),
    [
        ("format.named('dns1123Label')", 1, 1),
        ("format.named(s)", 2, 2),
        ("format.dns1123Label().validate('a')", 9, 33),
        ("format.dns1123Label().validate(s)", 82, 322),
        ("format.dns1123Subdomain().validate(s)", 152, 322),
        ("format.labelValue().validate(s)", 102, 322),
        ("format.uri().validate(s)", 2762, 322),
        ("format.uuid().validate(s)", 182, 322),
        ("format.byte().validate(s)", 212, 322),
        ("format.datetime().validate(s)", 182, 322),
        ("format.uri() == format.uri()", 3, 9),
        ("format.uri() != format.uuid()", 3, 1844674407370955266),
    ],
)
def test_formats(expression: str, cost: int, worst: int) -> None:
    program = compile_expression(expression, NAMES)
    assert cost_of(expression) == cost
    assert worst_cost(program, NAMES, lambda path: 95 if path == ("s",) else None) == worst
