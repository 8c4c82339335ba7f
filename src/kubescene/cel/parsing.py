"""From tokens to nodes, by recursive descent. Macros become nodes of their own here."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import partial
from typing import Protocol

from kubescene.cel.errors import CompileError
from kubescene.cel.functions import Function
from kubescene.cel.lexing import RESERVED, Token, TokenKind, tokens_of
from kubescene.cel.nodes import (
    BinaryOperation,
    Bind,
    Conditional,
    Element,
    ExistsOne,
    Filter,
    FunctionCall,
    Has,
    IndexAccess,
    ListLiteral,
    Literal,
    Logic,
    MapLiteral,
    MessageLiteral,
    Name,
    Negation,
    OptionalMap,
    Quantifier,
    Select,
    SortBy,
    SyntaxNode,
    Transform,
    TransformMap,
)
from kubescene.cel.types import TYPE_NAMES
from kubescene.cel.values import MAX_INT, UInt

MOST_CHARACTERS = 100_000
DEEPEST = 60
"""How deep an expression may be nested; each level takes a dozen calls."""
DEEPEST_TREE = 256
"""How many operators and selections may stand upon each other; each takes a few calls."""

_RELATIONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "in"))
_NAMESPACES = frozenset(
    ("optional", "cel", "sets", "strings", "ip", "lists", "format", "jsonpatch")
)
_EXPECTED = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, "
    "BYTES, IDENTIFIER}"
)


def parse(
    source: str,
    functions: Mapping[str, Function],
    methods: Mapping[str, Function],
    messages: Collection[str] = (),
) -> SyntaxNode:
    """The expression, or a `CompileError`. ``messages`` are types that can be built."""
    if len(source) > MOST_CHARACTERS:
        sizes = f"size: {len(source)}, limit {MOST_CHARACTERS}"
        text = f"expression code point size exceeds limit: {sizes}"
        raise CompileError(text, source[:80], 0)
    return _Parser(source, functions, methods, messages).whole()


class _Parser:
    def __init__(
        self,
        source: str,
        functions: Mapping[str, Function],
        methods: Mapping[str, Function],
        messages: Collection[str],
    ) -> None:
        self._source = source
        self._messages = messages
        self._functions = functions
        self._methods = methods
        self._tokens = tokens_of(source)
        self._at = 0
        self._depth = 0

    def whole(self) -> SyntaxNode:
        node = self._expression()
        if self._token.kind is not TokenKind.END:
            raise self._unexpected("extraneous", "<EOF>")
        if len(self._tokens) > DEEPEST_TREE and _is_too_deep(node):
            raise self.error("max recursion depth exceeded", 0)
        return node

    # -- operators, from those that bind least ---------------------------------------------

    def _expression(self) -> SyntaxNode:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.error(f"expression recursion limit exceeded: {DEEPEST}", self._token.offset)
        node = self._disjunction()
        if sign := self._take("?"):
            then = self._disjunction()
            self._expect(":")
            node = Conditional(sign.offset, node, then, self._expression())
        self._depth -= 1
        return node

    def _disjunction(self) -> SyntaxNode:
        return self._logic("||", self._conjunction)

    def _conjunction(self) -> SyntaxNode:
        return self._logic("&&", self._relation)

    def _logic(self, sign: str, operand: Callable[[], SyntaxNode]) -> SyntaxNode:
        """However many there are: halves of them are joined, so that the tree stays flat."""
        nodes, offsets = [operand()], []
        while found := self._take(sign):
            offsets.append(found.offset)
            nodes.append(operand())
        return _balanced(nodes, offsets, decisive=sign == "||")

    def _relation(self) -> SyntaxNode:
        node = self._sum()
        while sign := self._take(*_RELATIONS):
            node = BinaryOperation(sign.offset, sign.text, node, self._sum())
        return node

    def _sum(self) -> SyntaxNode:
        node = self._product()
        while sign := self._take("+", "-"):
            node = BinaryOperation(sign.offset, sign.text, node, self._product())
        return node

    def _product(self) -> SyntaxNode:
        node = self._unary()
        while sign := self._take("*", "/", "%"):
            node = BinaryOperation(sign.offset, sign.text, node, self._unary())
        return node

    def _unary(self) -> SyntaxNode:
        """Signs in front of a value; two of a kind cancel each other."""
        sign = self._take("!", "-")
        if sign is None:
            return self._member()
        count = 1
        while self._take(sign.text):
            count += 1
        token = self._token
        if (
            sign.text == "-"
            and count % 2
            and token.kind is TokenKind.VALUE
            and _is_number(token.value)
        ):
            self._at += 1
            return self._suffixes(Literal(sign.offset, -token.value))
        operand = self._member()
        return Negation(sign.offset, sign.text, operand) if count % 2 else operand

    # -- what stands behind a value ----------------------------------------------------------

    def _member(self) -> SyntaxNode:
        return self._suffixes(self._primary())

    def _suffixes(self, node: SyntaxNode) -> SyntaxNode:
        while sign := self._take(".", "["):
            optional = self._take("?") is not None
            if sign.text == "[":
                node = IndexAccess(sign.offset, node, self._expression(), optional)
                self._expect("]")
            else:
                node = self._selection(sign, node, optional)
                if self._token.text == "{" and self._names_message(node):
                    node = self._message(node)
        return node

    def _names_message(self, node: SyntaxNode) -> bool:
        return bool(self._messages) and _dotted(node).partition(".")[0] in self._messages

    def _message(self, node: SyntaxNode) -> SyntaxNode:
        """A value of a type that can be built: ``Name{member: value}``."""
        opening = self._token
        self._expect("{")
        members: list[Element] = []
        while not self._take("}"):
            optional = self._take("?") is not None
            name = self._name(quoted=True)
            key = Literal(self._token.offset, name.text)
            self._expect(":")
            members.append(Element(self._expression(), key, optional))
            if not self._take(",") and self._token.text != "}":
                raise self._unexpected("mismatched", "{'}', ','}")
        return MessageLiteral(opening.offset, _dotted(node), tuple(members))

    def _selection(self, sign: Token, operand: SyntaxNode, optional: bool) -> SyntaxNode:
        name = self._name(quoted=True)
        opening = None if optional or name.kind is TokenKind.QUOTED_NAME else self._take("(")
        if opening is None:
            selected = Select(sign.offset, operand, name.text, optional)
            return _type_name(selected) or selected
        arguments = self._arguments()
        macro = METHOD_MACROS.get((name.text, len(arguments)))
        if isinstance(operand, Name) and operand.name in _NAMESPACES:
            whole = f"{operand.name}.{name.text}"
            is_method = macro is not None or name.text in self._methods
            # A variable may have the name of a library, and methods like any other.
            if (
                whole in self._functions
                or (whole, len(arguments)) in GLOBAL_MACROS
                or not is_method
            ):
                return self._global(opening, whole, arguments)
        if macro is not None:
            return macro(self, opening.offset, operand, *arguments)
        method = self._methods.get(name.text)
        known = (*self._methods, *(name for name, _ in METHOD_MACROS))
        self._check(method, name.text, opening, len(arguments) + 1, known)
        assert method is not None
        return FunctionCall(opening.offset, name.text, method.call, (operand, *arguments), True)

    def _global(self, opening: Token, name: str, arguments: list[SyntaxNode]) -> SyntaxNode:
        macro = GLOBAL_MACROS.get((name, len(arguments)))
        if macro is not None:
            return macro(self, opening.offset, *arguments)
        function = self._functions.get(name)
        known = (*self._functions, *(name for name, _ in GLOBAL_MACROS))
        self._check(function, name, opening, len(arguments), known)
        assert function is not None
        return FunctionCall(opening.offset, name, function.call, tuple(arguments), False)

    def _check(
        self,
        function: Function | None,
        name: str,
        opening: Token,
        count: int,
        known: tuple[str, ...],
    ) -> None:
        if function is None:
            text = f"undeclared reference to '{name}' (in container '')"
            raise CompileError(text, self._source, opening.offset, unknown=name, known=known)
        if count not in map(len, function.overloads):
            text = f"found no matching overload for '{name}' applied to {count} arguments"
            raise self.error(text, opening.offset)

    # -- values ------------------------------------------------------------------------------

    def _primary(self) -> SyntaxNode:
        token = self._token
        if token.kind is TokenKind.VALUE:
            self._at += 1
            if type(token.value) is int and token.value > MAX_INT:
                raise self.error("invalid int literal", token.offset)
            return Literal(token.offset, token.value)
        if self._take("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._take("["):
            return ListLiteral(token.offset, tuple(self._elements("]", keyed=False)))
        if self._take("{"):
            return MapLiteral(token.offset, tuple(self._elements("}", keyed=True)))
        absolute = self._take(".") is not None
        if self._token.kind is not TokenKind.NAME:
            raise self._unexpected("mismatched", _EXPECTED)
        name = self._name()
        if name.text in RESERVED:
            raise self.error(f"reserved identifier: {name.text}", name.offset)
        if opening := self._take("("):
            return self._global(opening, name.text, self._arguments())
        if self._token.text == "{" and name.text in self._messages:
            return self._message(Name(name.offset, name.text))
        if self._token.text == "{":
            text = f"undeclared reference to '{name.text}' (in container '')"
            raise self.error(text, self._token.offset)
        return Name(name.offset, name.text, absolute)

    def _elements(self, closing: str, *, keyed: bool) -> list[Element]:
        elements: list[Element] = []
        while not self._take(closing):
            optional = self._take("?") is not None
            key = self._expression() if keyed else None
            if keyed:
                self._expect(":")
            elements.append(Element(self._expression(), key, optional))
            if not self._take(",") and self._token.text != closing:
                raise self._unexpected("mismatched", f"{{'{closing}', ','}}")
        return elements

    def _arguments(self) -> list[SyntaxNode]:
        arguments: list[SyntaxNode] = []
        while not self._take(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._expression())
        return arguments

    # -- tokens ------------------------------------------------------------------------------

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> Token | None:
        token = self._tokens[self._at]
        if token.kind is not TokenKind.SIGN or token.text not in signs:
            return None
        self._at += 1
        return token

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            raise self._unexpected("mismatched", f"'{sign}'")

    def _name(self, *, quoted: bool = False) -> Token:
        token = self._token
        if token.kind is TokenKind.NAME or (quoted and token.kind is TokenKind.QUOTED_NAME):
            self._at += 1
            return token
        if quoted and token.text == "in":
            self._at += 1
            return token._replace(kind=TokenKind.NAME)
        raise self._unexpected("mismatched", "IDENTIFIER")

    def _unexpected(self, how: str, expected: str) -> CompileError:
        text = f"Syntax error: {how} input '{self._token.text}' expecting {expected}"
        return self.error(text, self._token.offset)

    def error(self, problem: str, offset: int) -> CompileError:
        return CompileError(problem, self._source, offset)


def _balanced(nodes: list[SyntaxNode], offsets: list[int], *, decisive: bool) -> SyntaxNode:
    if len(nodes) == 1:
        return nodes[0]
    half = (len(nodes) + 1) // 2
    left = _balanced(nodes[:half], offsets[: half - 1], decisive=decisive)
    right = _balanced(nodes[half:], offsets[half:], decisive=decisive)
    return Logic(offsets[half - 1], decisive, left, right)


def _is_too_deep(root: SyntaxNode) -> bool:
    """Looks without recursion, so that no expression can exhaust the stack."""
    waiting: list[tuple[object, int]] = [(root, 1)]
    while waiting:
        part, depth = waiting.pop()
        if depth > DEEPEST_TREE:
            return True
        if isinstance(part, tuple):
            waiting += [(each, depth) for each in part]
        elif isinstance(part, SyntaxNode | Element):
            below = depth + isinstance(part, SyntaxNode)
            waiting += [(getattr(part, each.name), below) for each in fields(part)]
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | UInt)


def _dotted(node: SyntaxNode) -> str:
    """A name with those that are selected of it, as it is written; empty of anything else."""
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Select) and not node.is_optional and (above := _dotted(node.operand)):
        return f"{above}.{node.field}"
    return ""


def _type_name(node: Select) -> Name | None:
    """A type whose name has dots in it, which goes before every field."""
    parts: list[str] = []
    part: SyntaxNode = node
    while isinstance(part, Select) and not part.is_optional:
        parts.append(part.field)
        part = part.operand
    if not isinstance(part, Name):
        return None
    name = ".".join((part.name, *reversed(parts)))
    return Name(part.offset, name) if name in TYPE_NAMES else None


class Complaining(Protocol):
    """Who can say where in the text a problem is."""

    def error(self, problem: str, offset: int) -> CompileError: ...


def _variable(parser: Complaining, node: SyntaxNode) -> str:
    if isinstance(node, Name) and not node.is_absolute:
        return node.name
    raise parser.error("argument must be a simple name", node.offset)


def _has(parser: Complaining, offset: int, field: SyntaxNode) -> SyntaxNode:
    if isinstance(field, Select) and not field.is_optional:
        return Has(offset, field.operand, field.field)
    raise parser.error("invalid argument to has() macro", field.offset)


def _bind(
    parser: Complaining, offset: int, name: SyntaxNode, value: SyntaxNode, result: SyntaxNode
) -> SyntaxNode:
    return Bind(offset, _variable(parser, name), value, result)


Making = Callable[..., SyntaxNode]


def _of_one(make: Making) -> Making:
    """A macro of one variable: ``make`` is given its name in place of the argument."""

    def macro(
        parser: Complaining, offset: int, target: SyntaxNode, name: SyntaxNode, *body: SyntaxNode
    ) -> SyntaxNode:
        return make(offset, target, _variable(parser, name), *body)

    return macro


def _of_two(make: Making) -> Making:
    """A macro of two variables: index or key, and value."""

    def macro(
        parser: Complaining,
        offset: int,
        target: SyntaxNode,
        first: SyntaxNode,
        second: SyntaxNode,
        *body: SyntaxNode,
    ) -> SyntaxNode:
        name, value = _variable(parser, first), _variable(parser, second)
        if name == value:
            raise parser.error(f"duplicate variable name: {name}", second.offset)
        return make(offset, target, name, *body, second=value)

    return macro


def _quantifier(
    offset: int,
    target: SyntaxNode,
    name: str,
    holds: SyntaxNode,
    *,
    decisive: bool,
    second: str = "",
) -> SyntaxNode:
    return Quantifier(offset, target, name, decisive, holds, second=second)


def _transform(
    offset: int, target: SyntaxNode, name: str, *body: SyntaxNode, second: str = ""
) -> SyntaxNode:
    """``body``: perhaps a predicate, and what is made."""
    predicate = body[0] if len(body) > 1 else None
    return Transform(offset, target, name, predicate, body[-1], second=second)


def _transform_map(
    offset: int, target: SyntaxNode, name: str, *body: SyntaxNode, makes_entries: bool, second: str
) -> SyntaxNode:
    predicate = body[0] if len(body) > 1 else None
    return TransformMap(offset, target, name, predicate, body[-1], makes_entries, second=second)


def _optional_map(
    offset: int, target: SyntaxNode, name: str, result: SyntaxNode, *, flat: bool
) -> SyntaxNode:
    return OptionalMap(offset, target, name, result, flat)


GLOBAL_MACROS: Mapping[tuple[str, int], Making] = {("has", 1): _has, ("cel.bind", 3): _bind}
METHOD_MACROS: Mapping[tuple[str, int], Making] = {
    ("all", 2): _of_one(partial(_quantifier, decisive=False)),
    ("exists", 2): _of_one(partial(_quantifier, decisive=True)),
    ("exists_one", 2): _of_one(ExistsOne),
    ("existsOne", 2): _of_one(ExistsOne),
    ("filter", 2): _of_one(Filter),
    ("map", 2): _of_one(_transform),
    ("map", 3): _of_one(_transform),
    ("sortBy", 2): _of_one(SortBy),
    ("optMap", 2): _of_one(partial(_optional_map, flat=False)),
    ("optFlatMap", 2): _of_one(partial(_optional_map, flat=True)),
    ("all", 3): _of_two(partial(_quantifier, decisive=False)),
    ("exists", 3): _of_two(partial(_quantifier, decisive=True)),
    ("exists_one", 3): _of_two(ExistsOne),
    ("existsOne", 3): _of_two(ExistsOne),
    ("transformList", 3): _of_two(_transform),
    ("transformList", 4): _of_two(_transform),
    ("transformMap", 3): _of_two(partial(_transform_map, makes_entries=False)),
    ("transformMap", 4): _of_two(partial(_transform_map, makes_entries=False)),
    ("transformMapEntry", 3): _of_two(partial(_transform_map, makes_entries=True)),
    ("transformMapEntry", 4): _of_two(partial(_transform_map, makes_entries=True)),
}
"""By name and number of arguments."""
