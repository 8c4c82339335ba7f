"""Rows of text, written from columns without an object for any of them.

A row is a few *pieces*, each a value and the text behind it. All pieces get the same width, with
their text at the right end; what is in front of it is litter. They are laid side by side from the
last to the first, so that each covers the litter of the one behind it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kubescene.clock.batches import Integers

Items: TypeAlias = npt.NDArray[Any]
"""Texts of one width."""
MOST = 10**16
"""Numbers are less: nanoseconds of 115 days."""


class Piece(NamedTuple):
    """Of every row: a value that fills its item from the right, and a text behind it."""

    values: Items
    lengths: npt.NDArray[Any]
    """How much of each value counts."""
    after: bytes = b""

    @property
    def width(self) -> int:
        return self.values.itemsize + len(self.after)


class Texts:
    """Some texts to choose from."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        width = max(map(len, texts))
        self._items: Items = np.frombuffer(
            b"".join([each.rjust(width) for each in texts]), _item(width)
        )
        self._lengths = np.array(list(map(len, texts)))

    def chosen(self, places: Integers) -> Piece:
        return Piece(self._items.take(places), self._lengths.take(places))


def numbers(column: Integers, after: bytes) -> Piece:
    """Numbers from 0 to less than `MOST`, in decimal digits."""
    return Piece(_digits(column), _powers().searchsorted(column, side="right"), after)


def laid(opening: bytes, pieces: Sequence[Piece]) -> memoryview:
    """All rows, one behind the other, and a text in front of the first; there is one at least."""
    texts, lengths = _filled(pieces)
    width, ends = texts.itemsize, lengths.cumsum()
    start, size = width + len(opening), int(ends[-1])
    out = np.empty(start + size, dtype=np.uint8)
    anywhere: Items = np.ndarray(size + 1, texts.dtype, out, len(opening), (1,))
    anywhere[ends[::-1]] = texts[::-1]
    out[width:start] = np.frombuffer(opening, dtype=np.uint8)
    return out.data[width:]


def _filled(pieces: Sequence[Piece]) -> tuple[Items, Integers]:
    """All pieces in one width, and the length of each, row by row."""
    rows, width = len(pieces[0].values), max(each.width for each in pieces)
    texts: Items = np.empty((rows, len(pieces)), dtype=_item(width))
    lengths = np.empty((rows, len(pieces)), dtype=np.int64)
    for place, (values, counted, after) in enumerate(pieces):
        end = (place + 1) * width - len(after)
        _columns(texts, end - values.itemsize, values.itemsize)[:] = values
        if after:
            _columns(texts, end, len(after))[:] = np.frombuffer(after, _item(len(after)))
        np.add(counted, len(after), out=lengths[:, place])
    return texts.reshape(-1), lengths.reshape(-1)


def _columns(rows: Items, first: int, count: int) -> Items:
    """Some bytes of every row, from one on."""
    return np.ndarray(len(rows), _item(count), rows, first, rows.strides[:1])


def _digits(numbers: Integers) -> Items:
    """With zeros in front: four digits, or halves of eight, each in quarters of four."""
    most = numbers.max()
    if numbers.min() < 0 or most >= MOST:
        raise ValueError(f"numbers from {numbers.min()} to {most} are not from 0 to {MOST - 1}")
    if most < 10**4:
        return _four_digits().take(numbers).view(_item(4))
    upper = numbers // 10**8
    halves = np.empty((len(numbers), 2), dtype=np.uint32)
    halves[:, 0], halves[:, 1] = upper, numbers - upper * 10**8
    upper_four = halves // np.uint32(10**4)
    fours = np.empty((len(numbers), 2, 2), dtype=np.intp)
    fours[:, :, 0], fours[:, :, 1] = upper_four, halves - upper_four * np.uint32(10**4)
    return _four_digits().take(fours).reshape(-1).view(_item(16))


@cache
def _four_digits() -> npt.NDArray[np.uint32]:
    """The texts of 0000 to 9999, each as a number of four bytes."""
    digits = np.arange(10**4)[:, None] // [1000, 100, 10, 1] % 10 + ord("0")
    return digits.astype(np.uint8).view(np.uint32).reshape(-1)


@cache
def _powers() -> Integers:
    """From how many on a number has one digit more; 0 has one, too."""
    return np.array([0, *(10**each for each in range(1, 16))])


@cache
def _item(width: int) -> np.dtype[np.void]:
    return np.dtype((np.void, width))
