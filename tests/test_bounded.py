"""A dict that holds at most so many entries."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from kubescene.bounded import BoundedDict


def filled(most: int, keys: str) -> BoundedDict[str, int]:
    kept: BoundedDict[str, int] = BoundedDict(most)
    for number, key in enumerate(keys):
        kept[key] = number
    return kept


def test_the_oldest_entry_goes_first() -> None:
    assert [*filled(2, "abc").items()] == [("b", 1), ("c", 2)]


def test_an_entry_that_is_there_takes_no_more_room() -> None:
    assert [*filled(2, "abab").items()] == [("a", 2), ("b", 3)]


def test_an_entry_that_was_moved_to_the_end_stays_longer() -> None:
    kept = filled(2, "ab")
    kept.move_to_end("a")
    kept["c"] = 2
    assert [*kept] == ["a", "c"]


@pytest.mark.parametrize("copied", [deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_is_as_full_and_as_large(copied: Callable[[Any], Any]) -> None:
    kept = filled(2, "ab")
    twin = copied(kept)
    assert twin == kept
    twin["c"] = 2
    assert ([*twin], [*kept]) == (["b", "c"], ["a", "b"])
