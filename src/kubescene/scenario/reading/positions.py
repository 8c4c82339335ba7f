"""Where the parts of a scenario file stand: a way through the document as line and column.

Only asked when something is wrong, so the file is read once more, for its marks alone. A way may
end with a number inside a text, such as an expression: the place of that character.
"""

from typing import Any

from kubescene.scenario.reading.scalars import place_in_scalar
from kubescene.scenario.validation.faults import Step

MAX_BYTES = 32 * 1024 * 1024
"""Larger files are too slow to look into: their faults are named without a line."""


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
