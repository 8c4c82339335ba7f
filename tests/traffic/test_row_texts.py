"""Rows of text from columns say what their values do, whatever the length of each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.traffic.skenario.replies import MOST, Texts, laid, numbers

EDGES = [0, *(10**digits + by for digits in range(1, 16) for by in (-1, 0)), MOST - 1]
NAMES = [b"a", b"the longest of them, by far and by intention", b""]
Row = tuple[int, int, int]


def check(rows: list[Row]) -> None:
    first, names, last = (np.array(column) for column in zip(*rows, strict=True))
    pieces = (numbers(first, b"<"), Texts(NAMES).chosen(names), numbers(last, b"; and then "))
    expected = [b"%d<%s%d; and then " % (one, NAMES[name], other) for one, name, other in rows]
    assert bytes(laid(b"opening ", pieces)) == b"opening " + b"".join(expected)


@given(st.lists(st.tuples(st.integers(0, MOST - 1), st.integers(0, 2), st.integers(0, 9999))))
def test_pieces_of_all_lengths_stand_side_by_side(rows: list[Row]) -> None:
    check([(0, 0, 0), *rows])


@pytest.mark.parametrize("edge", EDGES)
def test_numbers_have_as_many_digits_as_they_need(edge: int) -> None:
    check([(edge, 1, 1), (1, 2, edge), (edge, 2, edge), (0, 0, 0)])


@pytest.mark.parametrize("number", [-1, MOST, 1 << 62])
def test_numbers_that_would_be_cut_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="are not from 0 to"):
        numbers(np.array([5, number]), b"")
