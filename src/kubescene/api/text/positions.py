"""Where the parts of a YAML file stand: a way through the document as line and column.

Only asked when something is wrong, so the file is read once more, for its marks alone. A way may
end with a number inside a text, such as an expression: the place of that character.
"""

from collections.abc import Iterator
from typing import Any

Step = str | int
MAX_BYTES = 32 * 1024 * 1024
"""Larger files are too slow to look into: their faults are named without a line."""

Place = tuple[int, int]
"""Line and column, from one."""
Character = tuple[str, Place]

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t", " ": " "}


class Places:
    """The marks of one YAML (or JSON) text that could be read."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._root: Any = None

    def find(self, path: tuple[Step, ...]) -> tuple[int, int] | None:
        """Line and column, from one, of the deepest part on the way that exists."""
        if len(self._text) > MAX_BYTES:
            return None
        if self._root is None:
            self._root = compose(self._text)
        node, mark = self._root, self._root.start_mark
        for step in path:
            if node.id == "scalar" and isinstance(step, int):
                return place_in_scalar(self._text, node, step) or _counted(mark)
            found = _member(node, step)
            if found is None:
                break
            mark, node = found
        return _counted(mark)

    def name(self, source: str, path: tuple[Step, ...]) -> str:
        """``FILE:LINE:COLUMN``, as far as it is known."""
        place = self.find(path) if path else None
        return f"{source}:{place[0]}:{place[1]}" if place else source


def compose(text: bytes) -> Any:
    """The first document that holds something, as nodes with marks."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [each for each in yaml.compose_all(text, Loader=loader) if each is not None]
    return next(each for each in documents if each.tag != "tag:yaml.org,2002:null")


def _counted(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _member(node: Any, step: Step) -> tuple[Any, Any] | None:
    """Mark and node of a member: a member of an object begins where its name does."""
    if isinstance(step, int):
        items = node.value if node.id == "sequence" else ()
        return (items[step].start_mark, items[step]) if step < len(items) else None
    if node.id != "mapping":
        return None
    for key, value in node.value:
        if key.value == step:
            return key.start_mark, value
    return None


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
