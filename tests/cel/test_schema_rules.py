"""What rules of schemas see, what they may cost, and what is refused before it runs.

Figures and refusals are those of k8s.io/apiextensions-apiserver v0.36.3, asked with the cases of
its own tests.
"""

from typing import Any

import pytest

from kubescene.cel.errors import EvaluationError
from kubescene.cel.schema_rules import RULES, SchemaRule, rules_of
from kubescene.cel.schema_values import value_of

WORD, WHOLE = {"type": "string"}, {"type": "integer"}
FIELDS = {"if": WORD, "a-b": WORD, "n": WHOLE, "o": {"type": "object", "properties": {"s": WORD}}}


def rule(text: str, **properties: Any) -> SchemaRule:
    schema = {"type": "object", "properties": properties or FIELDS, RULES: [{"rule": text}]}
    node = rules_of(schema)
    assert node is not None
    return node.rules[0]


def holds(text: str, obj: dict[str, Any], **properties: Any) -> Any:
    schema = {"type": "object", "properties": properties or FIELDS}
    found = rule(text, **properties)
    assert found.program is not None, found.problem
    return found.program.evaluate({"self": value_of(obj, schema)})


@pytest.mark.parametrize(
    "text",
    [
        "self.if == 'x'",
        "self.__if__ == 'x'",
        "has(self.if)",
        "self.a__dash__b == 'y'",
        "self.?o.?s.orValue('none') == 'z'",
        "self.?o.?s == optional.of('z')",
        "self.?o.?s.optMap(v, v == 'z').orValue(false)",
        "['a', ?optional.none(), 'c'] == ['a', 'c']",
        "{?'k': optional.none(), 'l': 'v'} == {'l': 'v'}",
        "url('https://a/?k=1&k=2#end').getQuery() == {'k': ['1', '2']}",
    ],
)
def test_what_holds_there_holds_here(text: str) -> None:
    assert holds(text, {"if": "x", "a-b": "y", "n": 1, "o": {"s": "z"}}) is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("timestamp('1000-00-00T00:00:00Z') == timestamp(0)", "1:11: invalid timestamp argument"),
        ("duration('1us') < duration('1nns')", "1:28: invalid duration argument"),
        ("self.if.matches('x++')", "1:17: invalid matches argument"),
        ("self.if.find(')') == ''", "program instantiation failed: error parsing regexp"),
        ("['a'].sum() == 'c'", "found no matching overload for 'sum' applied to 'list(string).()'"),
        ("[[1]].min() == [1]", "'min' applied to 'list(list(int)).()'"),
        ("self.n == null", "found no matching overload for '_==_' applied to '(int, null)'"),
        ("self.n", "cel expression must evaluate to a bool"),
        (" == ".join(["self.n"] * 300), "max recursion depth exceeded"),
    ],
)
def test_what_cannot_be_right_is_refused_before_it_runs(text: str, problem: str) -> None:
    assert problem in rule(text).problem


@pytest.mark.parametrize("sign", ["&&", "||"])
def test_conditions_may_be_as_many_as_one_likes(sign: str) -> None:
    assert holds(f" {sign} ".join(["self.n > 0"] * 3000), {"n": 1}) is True


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("[4, 3, 2, 1].sort() == [1, 2, 3, 4]", 64),
        ("['d', 'a', 'b', 'c'].sort() == ['a', 'b', 'c', 'd']", 66),
        ("[-2, 5, -2, 1, 1, 5, -2, 1].distinct() == [-2, 5, 1]", 160),
        ("[1].reverse() == [1]", 33),
        ("[1,2,3,4].slice(1, 3) == [2, 3]", 34),
        ("[1,2,3,4].slice(3, 0) != [1,2]", 2**64 - 1),
        ("lists.range(4) == [0,1,2,3]", 26),
        ("dyn([1,2,3,4]).flatten() == [1,2,3,4]", 37),
        ("[[1],[2],[3,4]].flatten(-1) == [1,2,3,4]", 62),
        ("[-3, 1, -5, -2, 4].sortBy(e, -(e * e)) == [-5, 4, -3, -2, 1]", 185),
        ("optional.ofNonZeroValue(0) == optional.none()", 3),
    ],
)
def test_lists_are_estimated_as_there(text: str, cost: int) -> None:
    assert rule(text).cost == cost


def test_who_asks_for_what_a_schema_does_not_allow_is_told_so() -> None:
    numbers = {"l": {"type": "array", "items": WHOLE}}
    for text in ("has(self.l)", "self.l.size() > 0"):
        with pytest.raises(EvaluationError, match="invalid data, expected an array"):
            holds(text, {"l": "text"}, **numbers)
    with pytest.raises(EvaluationError, match="got null for schema with nullable=false"):
        holds("self.l[0] > 0", {"l": [None]}, **numbers)


@pytest.mark.parametrize("text", ["[1].slice(self.e, 1) == []", "lists.range(self.e) == []"])
def test_a_number_that_is_none_is_refused_as_an_argument(text: str) -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        holds(text, {"e": "text"}, e={"x-kubernetes-int-or-string": True})


def test_a_field_that_is_null_is_as_good_as_absent() -> None:
    assert holds("has(self.a)", {"a": None}, a={**WORD, "nullable": True}) is False


@pytest.mark.parametrize(
    ("kind", "other", "is_equal", "together"),
    [
        ("atomic", ["b", "a"], False, 4),
        ("set", ["b", "a"], True, 2),
        ("set", ["b", "c"], False, 3),
    ],
)
def test_lists_are_compared_and_added_as_their_type_says(
    kind: str, other: list[str], is_equal: bool, together: int
) -> None:
    words = {"type": "array", "items": WORD, "x-kubernetes-list-type": kind}
    both = {"a": ["a", "b"], "b": other}
    assert holds("self.a == self.b", both, a=words, b=words) is is_equal
    assert holds(f"(self.a + self.b).size() == {together}", both, a=words, b=words) is True


def test_keyed_lists_are_merged() -> None:
    item = {"type": "object", "properties": {"k": WORD, "v": WHOLE}}
    keyed = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    schema = {"type": "object", "properties": {"l": keyed}}
    one, other = {"k": "a", "v": 1}, {"k": "b", "v": 2}
    before = value_of({"l": [one, other]}, schema)

    def said(text: str, *items: dict[str, Any]) -> Any:
        program = rule(text, l=keyed).program
        assert program is not None
        return program.evaluate({"self": value_of({"l": [*items]}, schema), "oldSelf": before})

    assert said("self.l == oldSelf.l", other, one) is True
    assert said("self.l == oldSelf.l", other, {**one, "v": 3}) is False
    assert said("(oldSelf.l + self.l).map(x, x.v) == [3, 2]", {**one, "v": 3}) is True
    assert said("oldSelf.l[0] in self.l", other, one) is True
