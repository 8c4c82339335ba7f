"""JSON text that is the same over and over but for a few places: a form, and what fills it in."""

from collections.abc import Sequence

import orjson

_MARK = b"\0"
"""No JSON text has such a byte: inside of strings it is escaped."""


def blank(number: int) -> orjson.Fragment:
    """Stands for a value in what the text of a form is encoded from."""
    return orjson.Fragment(b"%b%d%b" % (_MARK, number, _MARK))


class Form:
    """A text with blanks. Immutable."""

    __slots__ = ("_blanks", "_parts")

    def __init__(self, text: bytes) -> None:
        self._parts = text.split(_MARK)
        self._blanks = [(at, int(self._parts[at])) for at in range(1, len(self._parts), 2)]

    def filled(self, values: Sequence[bytes]) -> bytes:
        """The text with the blanks filled in, each by the value of its number."""
        parts = self._parts.copy()
        for at, number in self._blanks:
            parts[at] = values[number]
        return b"".join(parts)
