"""What is only faster about writing explanations down (`Shortcuts.explanation_texts`).

Most plugins give all pods of a class the same scores, so the text of a line is the same over and
over but for a few places: a form, and what fills it in. Without it the columns are encoded one by
one, to the same bytes.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from kubescene.bounded import BoundedDict
from kubescene.instruments.score_columns import PackedScores, SharedScores, columns_encoded

MOST_FORMS = 256
"""Classes of pods whose forms are remembered."""
_MARK = b"\0"
"""No JSON text has such a byte: inside of strings it is escaped."""


def blank(number: int) -> orjson.Fragment:
    """Stands for a value in what the text of a form is encoded from."""
    return orjson.Fragment(b"%b%d%b" % (_MARK, number, _MARK))


class TextForm:
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


class ScoreTexts:
    """The scores of an attempt as a line of the side file has them, by plugin."""

    def __init__(self) -> None:
        self._forms: BoundedDict[int, tuple[SharedScores, TextForm]] = BoundedDict(MOST_FORMS)
        """By identity, with what keeps it."""

    def of(self, scores: PackedScores) -> bytes:
        shared = scores.shared
        known = self._forms.get(id(shared))
        if known is None:
            known = self._forms[id(shared)] = (shared, form_of(shared))
        return known[1].filled(list(map(_line_text, scores.own)))


def form_of(shared: SharedScores) -> TextForm:
    """What all attempts of a class say, with a blank for each line of own scores."""
    rows = zip(shared.columns, shared.told, strict=True)
    return TextForm(
        columns_encoded(
            {
                one.plugin: told or {"weight": one.weight, "raw": blank(line or 0)}
                for (one, line), told in rows
            }
        )
    )


def _line_text(line: Any) -> bytes:
    """The encoding of `values` for a line of scores, a byte each; none of them is below 0."""
    data: bytes = line.tobytes()
    if data[0] == data[-1] and data == data[:1] * len(data):
        return b"%d" % data[0]
    return columns_encoded(line)
