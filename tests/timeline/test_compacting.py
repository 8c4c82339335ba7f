"""Columns in few words, and back."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.instruments.attempts import Explanation, FilterGroup
from kubescene.instruments.score_columns import ScoreColumn, columns_encoded, values
from kubescene.timeline.compacting import compacted, runs, unfolded, written_out

INDEXES = st.lists(st.integers(0, 40), max_size=40)


@given(INDEXES)
def test_runs_come_back_as_they_were(indexes: list[int]) -> None:
    assert (
        unfolded(
            [each if isinstance(each, int) else (each[0], each[1]) for each in runs(indexes)], 41
        )
        == indexes
    )


@given(st.lists(st.integers(-3, 3), max_size=10))
def test_columns_come_back_as_they_were(column: list[int]) -> None:
    told: Any = orjson.loads(columns_encoded({"told": values(column)}))["told"]
    assert list(written_out(told, len(column))) == column


@pytest.mark.parametrize(
    ("indexes", "told"),
    [
        ([], []),
        ([7], [7]),
        ([7, 8], [[7, 8]]),
        ([3, 4, 5, 7, 0, 1], [[3, 5], 7, [0, 1]]),
        ([2, 1, 0], [2, 1, 0]),
        ([1, 1], [1, 1]),
    ],
    ids=["none", "one", "two", "round the corner", "descending", "twice"],
)
def test_neighbours_are_a_pair(indexes: list[int], told: list[Any]) -> None:
    assert runs(indexes) == told
    assert runs(np.array(indexes, dtype=np.int32).tolist()) == told


@pytest.mark.parametrize("indexes", [[5], [(0, 5)], [-1], [(3, 2)]], ids=str)
def test_an_index_that_is_no_node_is_refused(indexes: list[Any]) -> None:
    with pytest.raises(IndexError, match="among 5"):
        unfolded(indexes, 5)


def explanation(**scores: Any) -> Explanation:
    feasible = np.array([1, 2, 0], dtype=np.int32)
    raw: Any
    same: Any
    refused: Any
    raw, same, refused = (np.array(each) for each in ([5, 6, 5], [7, 7, 7], [3]))
    parts: Any = {
        "nodes": ("a", "b", "c", "d"),
        "examined": feasible,
        "feasible": feasible,
        "filters": (FilterGroup("Fit", 2, ("no room",), refused),),
        "filter_plugins": ("Fit",),
        "scored": feasible,
        "scores": (ScoreColumn("A", 2, raw, raw), ScoreColumn("B", 1, raw, same)),
        "totals": np.array([17, 19, 17]),
    }
    return Explanation(**parts | scores)


def told(explained: Explanation, *, extended: bool = False) -> Any:
    return orjson.loads(columns_encoded(compacted(explained, extended=extended)))


def test_what_follows_from_the_rest_is_left_out() -> None:
    assert told(explanation()) == {
        "feasible": [[1, 2], 0],
        "filters": [{"plugin": "Fit", "code": 2, "reasons": ["no room"], "nodes": [3]}],
        "scores": {
            "A": {"weight": 2, "raw": [5, 6, 5]},
            "B": {"weight": 1, "raw": [5, 6, 5], "normalized": 7},
        },
    }


def test_totals_are_told_where_extenders_had_a_say() -> None:
    assert told(explanation(), extended=True)["totals"] == [17, 19, 17]


def test_that_nothing_was_scored_is_told() -> None:
    assert told(explanation(scored=(), scores=(), totals=()))["scored"] == []
