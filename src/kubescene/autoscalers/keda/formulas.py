"""Formulas of scaling modifiers, in the language expr, as far as numbers need it.

Numbers (whole ones and others are different kinds), names of triggers, arithmetic, comparisons,
``and or not ?: ??``, lists, ranges, and functions of numbers and lists, with predicates such as
``count([a, b], {# > 1})``. A formula is read once and evaluated often; nothing of it is ever run by
Python. What is not known here is told by name. Answers are equal to recorded ones of expr.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from math import ceil, copysign, floor, inf, isfinite, nan, pow
from typing import Any, NamedTuple, TypeAlias

from kubescene.autoscalers.exact_math import power

LONGEST = 10_000
DEEPEST = 64
LONGEST_RANGE = 100_000
_LARGEST_POWER = 1 << 20
Value: TypeAlias = Any
"""None, a bool, an int, a float, or a list of them."""
Names: TypeAlias = Mapping[str, Value]
Node: TypeAlias = Callable[[Names], Value]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d[\d_]*)(?:\.(?!\.)\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<sign>\*\*|\?\?|\?:|\|\||&&|==|!=|<=|>=|\.\.|[-+*/%^<>!?:,()\[\]{}#;=]))"
)
_END = ("end", "")


class FormulaError(ValueError):
    """A formula that cannot be read, or has no value."""


class _Binary(NamedTuple):
    precedence: int
    is_right: bool = False


_BINARY: Mapping[str, _Binary] = {
    "||": _Binary(10),
    "or": _Binary(10),
    "&&": _Binary(15),
    "and": _Binary(15),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), _Binary(20)),
    "..": _Binary(25),
    **dict.fromkeys(("+", "-"), _Binary(30)),
    **dict.fromkeys(("*", "/", "%"), _Binary(60)),
    **dict.fromkeys(("**", "^"), _Binary(100, is_right=True)),
    "??": _Binary(500),
}
_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_UNARY: Mapping[str, int] = {"not": 50, "!": 50, "-": 90, "+": 90}


class Formula(NamedTuple):
    """A formula that was read. ``names`` are the triggers that it knows."""

    text: str
    names: frozenset[str]
    node: Node

    def evaluate(self, values: Names) -> float | None:
        """A number; None if nothing was left to it (``??``). Raises `FormulaError`."""
        try:
            found = self.node(values)
        except (TypeError, KeyError, OverflowError, ZeroDivisionError, RecursionError) as error:
            raise FormulaError(f"formula {self.text!r}: {error}") from error
        if found is None and "??" in self.text:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise FormulaError(f"formula {self.text!r}: {_shown(found)} is no number")
        if not isfinite(found):
            raise FormulaError(f"formula {self.text!r}: {found} is no finite number")
        return float(found)


def read_formula(text: str, names: frozenset[str]) -> Formula:
    """Raises `FormulaError` with what is wrong, and where."""
    if len(text) > LONGEST:
        raise FormulaError(f"a formula may have {LONGEST} characters, this has {len(text)}")
    return Formula(text, names, _Reader(text, names).whole())


class _Reader:
    """Tokens to functions, by the precedence of operators."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._text = text
        self._names = set(names)
        self._tokens = self._split()
        self._place = 0
        self._depth = 0

    def _split(self) -> list[tuple[str, str]]:
        tokens, at = list[tuple[str, str]](), 0
        end = len(self._text.rstrip())
        while at < end:
            found = _TOKEN.match(self._text, at)
            if found is None:
                rest = self._text[at:].lstrip()
                raise FormulaError(f"formula {self._text!r}: {rest[:20]!r} cannot be read")
            kind = str(found.lastgroup)
            tokens.append((kind, found.group(kind)))
            at = found.end()
        return [*tokens, _END]

    # -- tokens ------------------------------------------------------------------------------------

    def _fault(self, what: str) -> FormulaError:
        return FormulaError(f"formula {self._text!r}: {what}")

    @property
    def _now(self) -> tuple[str, str]:
        return self._tokens[self._place]

    def _is(self, text: str) -> bool:
        return self._now == ("sign", text)

    def _take(self) -> tuple[str, str]:
        token = self._now
        self._place += 1
        return token

    def _takes(self, text: str) -> bool:
        if self._is(text):
            self._place += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            found = self._now[1] or "the end"
            raise self._fault(f"{text!r} is expected, found {found!r}")

    # -- expressions -------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self._sequence()
        if self._now != _END:
            raise self._fault(f"{self._now[1]!r} is not expected")
        return node

    def _sequence(self) -> Node:
        if self._now == ("name", "let"):
            return self._let()
        return self._expression(0)

    def _let(self) -> Node:
        self._take()
        kind, name = self._take()
        if kind != "name":
            raise self._fault("let needs a name")
        if name in self._names:
            raise self._fault(f"{name} is there already")
        self._expect("=")
        value = self._expression(0)
        self._expect(";")
        self._names.add(name)
        rest = self._sequence()
        self._names.discard(name)
        return lambda names: rest({**names, name: value(names)})

    def _expression(self, precedence: int) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._fault(f"more than {DEEPEST} levels")
        node = self._primary()
        last = ""
        while (operator := self._operator()) and operator[1].precedence >= precedence:
            sign, binary = operator
            if last == "??" and sign != "??":
                raise self._fault(f"?? and {sign} cannot be mixed: write parentheses")
            self._take_operator(sign)
            if sign in _COMPARISONS:
                node = self._comparison(node, sign, binary.precedence)
            else:
                right = self._expression(binary.precedence + (not binary.is_right))
                node = _joined(sign.removeprefix("not "), node, right)
                if sign == "not in":
                    node = _negated(node)
            last = sign
        if precedence == 0:
            node = self._conditional(node)
        self._depth -= 1
        return node

    def _operator(self) -> tuple[str, _Binary] | None:
        kind, text = self._now
        if (kind, text) == ("name", "not") and self._tokens[self._place + 1] == ("name", "in"):
            return "not in", _BINARY["in"]
        is_word = kind == "name" and text in ("or", "and", "in")
        if (kind == "sign" or is_word) and text in _BINARY:
            return text, _BINARY[text]
        return None

    def _take_operator(self, sign: str) -> None:
        self._place += 1 + (sign == "not in")

    def _comparison(self, left: Node, sign: str, precedence: int) -> Node:
        """``a < b < c`` is ``a < b and b < c``."""
        right = self._expression(precedence + 1)
        node = _joined(sign, left, right)
        while (operator := self._operator()) and operator[0] in _COMPARISONS:
            self._take_operator(operator[0])
            left, right = right, self._expression(precedence + 1)
            node = _joined("&&", node, _joined(operator[0], left, right))
        return node

    def _conditional(self, node: Node) -> Node:
        while self._is("?") or self._is("?:"):
            if self._takes("?:"):
                other = self._expression(0)
                node = _either(node, node, other)
                continue
            self._take()
            if self._takes(":"):
                node = _either(node, node, self._expression(0))
                continue
            first = self._expression(0)
            self._expect(":")
            node = _either(node, first, self._expression(0))
        return node

    def _primary(self) -> Node:
        kind, text = self._take()
        if (kind in ("sign", "name")) and text in _UNARY:
            operand = self._expression(_UNARY[text])
            return _negated(operand) if text in ("not", "!") else _signed(text, operand)
        if kind == "number":
            return _constant(_number(text))
        if kind == "name":
            return self._name(text)
        if text == "(":
            node = self._sequence()
            self._expect(")")
            return node
        if text == "[":
            parts = self._list("]")
            return lambda names: [part(names) for part in parts]
        if text == "#" and "#" in self._names:
            return _named("#")
        raise self._fault(f"{text or 'the end'!r} is not expected")

    def _name(self, text: str) -> Node:
        if text in ("true", "false"):
            return _constant(text == "true")
        if text == "nil":
            return _constant(None)
        if self._takes("("):
            return self._call(text)
        if text not in self._names:
            known = ", ".join(sorted(self._names)) or "no trigger has a name"
            raise self._fault(f"unknown name {text} (there is: {known})")
        return _named(text)

    def _list(self, end: str) -> list[Node]:
        parts = list[Node]()
        while not self._takes(end):
            if parts:
                self._expect(",")
                if self._takes(end):
                    break
            parts.append(self._expression(0))
        return parts

    def _call(self, name: str) -> Node:
        if name in _WITH_PREDICATE:
            return self._with_predicate(name)
        function = _FUNCTIONS.get(name)
        if function is None:
            known = ", ".join(sorted([*_FUNCTIONS, *_WITH_PREDICATE]))
            raise self._fault(f"the function {name} is not known here; there is: {known}")
        parts = self._list(")")
        if not parts:
            raise self._fault(f"{name} needs an argument")
        return lambda names: function([part(names) for part in parts])

    def _with_predicate(self, name: str) -> Node:
        function = _WITH_PREDICATE[name]
        start = self._place
        if name == "sum" and self._takes("["):
            # The sum of a list that stands there is added up from its end.
            parts = self._list("]")
            if parts and self._takes(")"):
                return lambda names: _total([part(names) for part in reversed(parts)])
            self._place = start
        items = self._expression(0)
        test: Node | None = None
        if self._takes(","):
            is_block = self._takes("{")
            is_inner = "#" in self._names
            self._names.add("#")
            test = self._expression(0)
            if not is_inner:
                self._names.discard("#")
            if is_block:
                self._expect("}")
        elif name not in ("count", "sum"):
            raise self._fault(f"{name} needs a predicate")
        self._expect(")")
        return lambda names: function(_items(items(names)), _each(test, names))


# -- what it means ---------------------------------------------------------------------------------


def _constant(value: Value) -> Node:
    return lambda names: value


def _named(name: str) -> Node:
    return lambda names: names[name]


def _number(text: str) -> int | float:
    text = text.replace("_", "")
    return float(text) if any(each in text for each in ".eE") else int(text)


def _negated(operand: Node) -> Node:
    return lambda names: not _truth(operand(names))


def _signed(sign: str, operand: Node) -> Node:
    return lambda names: -_amount(operand(names)) if sign == "-" else _amount(operand(names))


def _either(test: Node, first: Node, second: Node) -> Node:
    return lambda names: first(names) if _truth(test(names)) else second(names)


def _joined(sign: str, left: Node, right: Node) -> Node:
    if sign in ("||", "or"):
        return lambda names: _truth(left(names)) or _truth(right(names))
    if sign in ("&&", "and"):
        return lambda names: _truth(left(names)) and _truth(right(names))
    if sign == "??":

        def either(names: Names) -> Value:
            found = left(names)
            return right(names) if found is None else found

        return either
    function = _OPERATIONS[sign]
    return lambda names: function(left(names), right(names))


def _amount(value: Value) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{_shown(value)} is no number")
    return value


def _truth(value: Value) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{_shown(value)} is neither true nor false")
    return value


def _items(value: Value) -> list[Value]:
    if not isinstance(value, list):
        raise TypeError(f"{_shown(value)} is no list")
    return value


def _shown(value: Value) -> str:
    return (
        {None: "nil", True: "true", False: "false"}.get(value, str(value))
        if not isinstance(value, list)
        else f"[{', '.join(map(_shown, value))}]"
    )


def _divided(left: Value, right: Value) -> float:
    above, below = float(_amount(left)), float(_amount(right))
    if below:
        return above / below
    return nan if not above else copysign(inf, above) * copysign(1.0, below)


def _rest(left: Value, right: Value) -> int:
    for value in (left, right):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"% is of whole numbers, not of {_shown(value)}")
    if not right:
        raise TypeError("integer divide by zero")
    rest = abs(int(left)) % abs(int(right))
    return -rest if left < 0 else rest


def _power(left: float, right: float) -> float:
    base, exponent = float(left), float(right)
    if base > 0 and exponent.is_integer() and abs(exponent) < _LARGEST_POWER:
        return power(base, int(exponent))
    try:
        return pow(base, exponent)
    except OverflowError:
        return inf
    except ValueError:
        return nan if base else inf


def _range(left: Value, right: Value) -> list[Value]:
    for value in (left, right):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f".. is of whole numbers, not of {_shown(value)}")
    if right - left > LONGEST_RANGE:
        raise TypeError(f"a range of more than {LONGEST_RANGE}")
    return list(range(left, right + 1))


def _equal(left: Value, right: Value) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


_OPERATIONS: Mapping[str, Callable[[Value, Value], Value]] = {
    "+": lambda left, right: _amount(left) + _amount(right),
    "-": lambda left, right: _amount(left) - _amount(right),
    "*": lambda left, right: _amount(left) * _amount(right),
    "/": _divided,
    "%": _rest,
    "**": lambda left, right: _power(_amount(left), _amount(right)),
    "^": lambda left, right: _power(_amount(left), _amount(right)),
    "..": _range,
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: bool(_amount(left) < _amount(right)),
    "<=": lambda left, right: bool(_amount(left) <= _amount(right)),
    ">": lambda left, right: bool(_amount(left) > _amount(right)),
    ">=": lambda left, right: bool(_amount(left) >= _amount(right)),
    "in": lambda left, right: any(_equal(left, each) for each in _items(right)),
}


def _one(function: Callable[[Any], Value]) -> Callable[[list[Value]], Value]:
    def of(values: list[Value]) -> Value:
        if len(values) != 1:
            raise TypeError(f"one argument is expected, not {len(values)}")
        return function(values[0])

    return of


def _flat(values: Sequence[Value]) -> list[Any]:
    found = list[Any]()
    for each in values:
        found += _flat(each) if isinstance(each, list) else [_amount(each)]
    return found


def _rounded(value: Value) -> float:
    """Halves away from zero."""
    whole = float(_amount(value))
    return copysign(floor(abs(whole) + 0.5), whole) if abs(whole) < 2**52 else whole


def _extreme(values: list[Value], *, largest: bool) -> Value:
    found = _flat(values)
    if not found:
        raise TypeError("not of an empty list")
    best = found[0]
    for each in found[1:]:
        if each > best if largest else each < best:
            best = each
    return best


def _total(values: Sequence[Value]) -> Value:
    total: Any = 0
    for each in values:
        total += _amount(each)
    return total


def _mean(values: list[Value]) -> Value:
    found = _flat(values)
    return _total([float(each) for each in found]) / len(found) if found else 0


def _median(values: list[Value]) -> Value:
    found = sorted(float(each) for each in _flat(values))
    if not found:
        return 0
    half = len(found) // 2
    return found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2


_FUNCTIONS: Mapping[str, Callable[[list[Value]], Value]] = {
    "abs": _one(lambda value: abs(_amount(value))),
    "ceil": _one(lambda value: float(ceil(_amount(value)))),
    "floor": _one(lambda value: float(floor(_amount(value)))),
    "round": _one(_rounded),
    "int": _one(lambda value: int(_amount(value))),
    "float": _one(lambda value: float(_amount(value))),
    "len": _one(lambda value: len(_items(value))),
    "first": _one(lambda value: next(iter(_items(value)), None)),
    "last": _one(lambda value: next(reversed(_items(value)), None)),
    "max": lambda values: _extreme(values, largest=True),
    "min": lambda values: _extreme(values, largest=False),
    "mean": _mean,
    "median": _median,
}
Test: TypeAlias = Callable[[Value], Value]
_WITH_PREDICATE: Mapping[str, Callable[[list[Value], Test], Value]] = {
    "all": lambda items, test: all(_truth(test(each)) for each in items),
    "any": lambda items, test: any(_truth(test(each)) for each in items),
    "none": lambda items, test: not any(_truth(test(each)) for each in items),
    "one": lambda items, test: sum(_truth(test(each)) for each in items) == 1,
    "count": lambda items, test: sum(_truth(test(each)) for each in items),
    "filter": lambda items, test: [each for each in items if _truth(test(each))],
    "map": lambda items, test: [test(each) for each in items],
    "sum": lambda items, test: _total([test(each) for each in items]),
}


def _each(test: Node | None, names: Names) -> Test:
    if test is None:
        return lambda each: each
    return lambda each: test({**names, "#": each})
