"""Indexes that stand next to each other are told by where they begin and end."""

import copy
import pickle
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.timeline.compacting import runs
from kubescene.timeline.stretches import Stretch


@st.composite
def stretches(draw: st.DrawFn) -> tuple[Stretch, list[int]]:
    """One, and the same written out."""
    total = draw(st.integers(1, 30))
    start, size = draw(st.integers(0, total - 1)), draw(st.integers(1, total))
    gaps = sorted(draw(st.sets(st.integers(0, size - 1))))
    rows = [(start + place) % total for place in range(size) if place not in gaps]
    return Stretch(start, size, total).without(gaps), rows


@given(stretches(), st.integers(0, 40))
def test_it_is_the_sequence_that_it_stands_for(made: tuple[Stretch, list[int]], count: int) -> None:
    stretch, rows = made
    assert (list(stretch), len(stretch), stretch.tolist()) == (rows, len(rows), rows)
    assert stretch.head(count) == rows[:count] == stretch[:count]
    assert [stretch[at] for at in range(len(rows))] == rows


@given(stretches())
def test_its_runs_are_those_of_the_indexes(made: tuple[Stretch, list[int]]) -> None:
    stretch, rows = made
    assert stretch.runs() == runs(stretch) == runs(rows)


@given(stretches())
def test_an_index_is_found_where_it_stands(made: tuple[Stretch, list[int]]) -> None:
    stretch, rows = made
    places = {index: place for place, index in enumerate(rows)}
    assert [stretch.place_of(index) for index in range(30)][: max(rows, default=0) + 1] == [
        places.get(index) for index in range(max(rows, default=0) + 1)
    ]


@given(st.lists(st.integers(0, 60), min_size=0, max_size=60))
def test_few_and_many_indexes_have_the_same_runs(indexes: list[int]) -> None:
    # So many are looked through as an array, of which these are the end.
    many = [*range(100, 200), *indexes]
    assert runs(array("i", indexes)) == runs(indexes)
    assert runs(np.array(many))[1:] == runs(indexes)  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_tell_the_same(copied: "type[list[int]]") -> None:
    assert list(copied(Stretch(3, 4, 6, [1]))) == [3, 5, 0]
