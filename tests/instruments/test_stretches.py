"""Indexes that stand next to each other are told by where they begin and end."""

import copy
import pickle
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.instruments.stretches import Stretches
from kubescene.timeline.compacting import runs


@st.composite
def searches(draw: st.DrawFn) -> list[int]:
    """Indexes of a search that has left some out, in its order."""
    total = draw(st.integers(1, 30))
    start, size = draw(st.integers(0, total - 1)), draw(st.integers(1, total))
    gaps = draw(st.sets(st.integers(0, size - 1)))
    return [(start + place) % total for place in range(size) if place not in gaps]


def stretches(rows: list[int]) -> Stretches:
    """The same in few words."""
    pairs = [each if isinstance(each, list) else [each, each] for each in runs(rows)]
    return Stretches(bound for pair in pairs for bound in pair)


@given(searches(), st.integers(0, 40))
def test_they_are_the_sequence_that_they_stand_for(rows: list[int], count: int) -> None:
    told = stretches(rows)
    assert (list(told), len(told), told.tolist()) == (rows, len(rows), rows)
    assert told.head(count) == rows[:count] == told[:count]
    assert [told[at] for at in range(len(rows))] == rows


@given(searches())
def test_their_runs_are_those_of_the_indexes(rows: list[int]) -> None:
    told = stretches(rows)
    assert told.runs() == runs(told) == runs(rows)


@given(searches())
def test_an_index_is_found_where_it_stands(rows: list[int]) -> None:
    told, places = stretches(rows), {index: place for place, index in enumerate(rows)}
    assert [told.place_of(index) for index in range(31)] == [*map(places.get, range(31))]


@given(searches())
def test_they_hold_what_they_stand_for(rows: list[int]) -> None:
    told = stretches(rows)
    assert [index for index in range(31) if index in told] == sorted(rows)


@pytest.mark.parametrize(
    ("start", "size", "told"),
    [
        (2, 3, [[2, 4]]),
        (3, 1, [3]),
        (3, 2, [[3, 4]]),
        (3, 3, [[3, 4], 0]),
        (2, 5, [[2, 4], [0, 1]]),
    ],
)
def test_a_search_goes_on_with_the_first_index(start: int, size: int, told: list[object]) -> None:
    assert Stretches.around(start, size, 5).runs() == told


@given(st.lists(st.integers(0, 60), min_size=0, max_size=60))
def test_few_and_many_indexes_have_the_same_runs(indexes: list[int]) -> None:
    # So many are looked through as an array, of which these are the end.
    many = [*range(100, 200), *indexes]
    assert runs(array("i", indexes)) == runs(indexes)
    assert runs(np.array(many))[1:] == runs(indexes)  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_tell_the_same(copied: "type[list[int]]") -> None:
    assert list(copied(Stretches([3, 3, 5, 5, 0, 0]))) == [3, 5, 0]
