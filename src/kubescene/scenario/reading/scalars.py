"""Where the characters of a YAML text value stand in its file.

YAML writes one text in many ways. Each is tried as far as it is simple: the file's own lines must
give the value back, otherwise nobody says where in it something is.
"""

from collections.abc import Iterator
from typing import Any

Place = tuple[int, int]
"""Line and column, from one."""
Character = tuple[str, Place]

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t", " ": " "}


def place_in_scalar(text: bytes, node: Any, offset: int) -> Place | None:
    """The place of a character of a scalar node, or of its end; None if it is hard to tell."""
    lines = text.decode(errors="replace").splitlines()
    characters = list(_characters(lines, node))
    if "".join(each for each, _ in characters) != node.value.rstrip("\n"):
        return None
    if offset < len(characters):
        return characters[offset][1]
    if not characters:
        return None
    line, column = characters[-1][1]
    return line, column + 1


def _characters(lines: list[str], node: Any) -> Iterator[Character]:
    first, last = node.start_mark.line, node.end_mark.line
    if node.style in ("|", ">"):
        block = _indented(lines, first + 1, last)
        return _joined(block, "\n" if node.style == "|" else " ")
    flow = _trimmed(lines, node)
    if not node.style:
        return _joined(flow, " ")
    return _unescaped(_joined(flow, " "), node.style)


def _indented(lines: list[str], first: int, end: int) -> Iterator[list[Character]]:
    """The lines of a block, without the indentation of the first."""
    body = lines[first:end] if end > first else lines[first : first + 1]
    while body and not body[-1].strip():
        body.pop()
    indent = next((len(each) - len(each.lstrip()) for each in body if each.strip()), 0)
    for number, line in enumerate(body, first):
        yield _placed(line[indent:], number, indent)


def _trimmed(lines: list[str], node: Any) -> Iterator[list[Character]]:
    """The lines of a plain or quoted text, without quotes and the blanks around each line."""
    quote = 1 if node.style else 0
    start, end = node.start_mark, node.end_mark
    for number in range(start.line, end.line + 1):
        begin = start.column + quote if number == start.line else 0
        stop = end.column - quote if number == end.line else None
        line = lines[number][begin:stop]
        indent = 0 if number == start.line else len(line) - len(line.lstrip())
        shown = line[indent:] if number == end.line else line[indent:].rstrip()
        yield _placed(shown, number, begin + indent)


def _placed(line: str, number: int, column: int) -> list[Character]:
    return [(each, (number + 1, column + at + 1)) for at, each in enumerate(line)]


def _joined(lines: Iterator[list[Character]], by: str) -> Iterator[Character]:
    before: Place | None = None
    for line in lines:
        if before is not None:
            yield by, before
        yield from line
        before = (line[-1][1][0], line[-1][1][1] + 1) if line else before


def _unescaped(characters: Iterator[Character], quote: str) -> Iterator[Character]:
    escape = "\\" if quote == '"' else "'"
    for each, place in characters:
        if each != escape:
            yield each, place
            continue
        escaped, _ = next(characters, ("", place))
        yield ESCAPES.get(escaped, "\0") if quote == '"' else "'", place
