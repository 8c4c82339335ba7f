"""From the text of an expression to its tokens."""

import re
from enum import Enum
from typing import Any, NamedTuple

from kubescene.cel.errors import CompileError
from kubescene.cel.values import MAX_INT, MAX_UINT, UInt

_PATTERN = re.compile(
    r"""
    (?P<blank>(?:[\t\n\f\r\ ]|//[^\n]*)++)
  | (?P<float>[0-9]++\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++
        |\.[0-9]++(?:[eE][+-]?[0-9]++)?)
  | (?P<int>0[xX][0-9a-fA-F]++[uU]?|[0-9]++[uU]?)
  | (?P<string>[rRbB]{0,2}(?:\"\"\"|'''|"|'))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*+)
  | (?P<quoted>`[A-Za-z0-9_.\-/\ ]++`)
  | (?P<sign>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII,
)
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
"""Names with which no expression may begin. Fields may have them: pods have a ``namespace``."""
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    **{char: char for char in "\"'`?\\"},
}
_WIDTHS = {"x": 2, "X": 2, "u": 4, "U": 8}


class TokenKind(Enum):
    """What a token is."""

    NAME = "IDENTIFIER"
    QUOTED_NAME = "ESC_IDENTIFIER"
    VALUE = "value"
    SIGN = "sign"
    END = "<EOF>"


class Token(NamedTuple):
    """A piece of the text; ``value`` is that of a literal."""

    kind: TokenKind
    text: str
    offset: int
    value: Any = None


def tokens_of(source: str) -> list[Token]:
    """All tokens, the last of which is the end."""
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _PATTERN.match(source, at)
        if match is None:
            text = f"Syntax error: token recognition error at: '{source[at]}'"
            raise CompileError(text, source, at)
        if match.lastgroup == "string":
            token, at = _string(source, at, match.group())
            found.append(token)
            continue
        if match.lastgroup != "blank":
            found.append(_token(source, at, match.lastgroup or "", match.group()))
        at = match.end()
    return [*found, Token(TokenKind.END, "<EOF>", len(source))]


def _token(source: str, at: int, group: str, text: str) -> Token:
    if group == "float":
        return Token(TokenKind.VALUE, text, at, float(text))
    if group == "int":
        return Token(TokenKind.VALUE, text, at, _integer(source, at, text))
    if group == "quoted":
        return Token(TokenKind.QUOTED_NAME, text[1:-1], at)
    if group == "name":
        if text in _CONSTANTS:
            return Token(TokenKind.VALUE, text, at, _CONSTANTS[text])
        return Token(TokenKind.SIGN if text == "in" else TokenKind.NAME, text, at)
    return Token(TokenKind.SIGN, text, at)


_CONSTANTS = {"true": True, "false": False, "null": None}


def _integer(source: str, at: int, text: str) -> int:
    unsigned = text[-1] in "uU"
    digits = text[:-1] if unsigned else text
    number = int(digits, 16) if digits[:2] in ("0x", "0X") else int(digits)
    if unsigned:
        if number > MAX_UINT:
            raise CompileError("invalid uint literal", source, at)
        return UInt(number)
    # One more than the largest is fine behind a minus sign; the parser sees to it.
    if number > MAX_INT + 1:
        raise CompileError("invalid int literal", source, at)
    return number


def _string(source: str, at: int, opening: str) -> tuple[Token, int]:
    prefix = opening.rstrip("\"'").lower()
    quote = opening[len(prefix) :]
    if prefix in ("rr", "bb"):
        raise CompileError("Syntax error: invalid string prefix", source, at)
    start = at + len(opening)
    end = _closing(source, at, start, quote, raw="r" in prefix)
    body = source[start:end]
    value: str | bytes
    if "b" in prefix:
        value = body.encode() if "r" in prefix else _bytes(source, start, body)
    else:
        value = body if "r" in prefix else _text(source, start, body)
    return Token(TokenKind.VALUE, source[at : end + len(quote)], at, value), end + len(quote)


def _closing(source: str, at: int, start: int, quote: str, *, raw: bool) -> int:
    """Where the closing quote stands."""
    position = start
    while position < len(source):
        if source.startswith(quote, position):
            return position
        if source[position] == "\n" and len(quote) == 1:
            break
        position += 2 if source[position] == "\\" and not raw else 1
    text = f"Syntax error: token recognition error at: '{source[at:]}'"
    raise CompileError(text, source, at)


def _text(source: str, start: int, body: str) -> str:
    return "".join(
        chr(each) if isinstance(each, int) else each for each in _parts(source, start, body)
    )


def _bytes(source: str, start: int, body: str) -> bytes:
    parts = _parts(source, start, body)
    return b"".join(
        bytes([each]) if isinstance(each, int) and each < 256 else _encoded(each) for each in parts
    )


def _encoded(part: str | int) -> bytes:
    return (chr(part) if isinstance(part, int) else part).encode()


def _parts(source: str, start: int, body: str) -> list[str | int]:
    """Plain text, and the numbers of characters that were written as escapes."""
    parts: list[str | int] = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            end = body.find("\\", at)
            end = len(body) if end < 0 else end
            parts.append(body[at:end])
            at = end
            continue
        part, length = _escape(source, start + at, body[at + 1 : at + 11])
        parts.append(part)
        at += length
    return parts


def _escape(source: str, at: int, rest: str) -> tuple[str | int, int]:
    char = rest[:1]
    if char in _SIMPLE:
        return _SIMPLE[char], 2
    if char in _WIDTHS:
        digits, base, length = rest[1 : 1 + _WIDTHS[char]], 16, 2 + _WIDTHS[char]
    else:
        digits, base, length = rest[:3], 8, 4
    try:
        number = int(digits, base)
    except ValueError:
        number = -1
    wrong = number < 0 or len(digits) != length - (2 if base == 16 else 1) or number > 0x10FFFF
    if wrong or not digits.isalnum() or 0xD800 <= number < 0xE000 or (base == 8 and number > 255):
        raise CompileError("Syntax error: invalid escape sequence", source, at)
    return number, length
