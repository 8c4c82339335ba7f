import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.scheduler.cycle.best_node import SMALL, pick, pick_small


def heap_winner(totals: list[int]) -> int:
    """The top of a binary max-heap built bottom-up, as Go's container/heap builds it."""
    heap = list(enumerate(totals))
    for start in reversed(range(len(heap) // 2)):
        parent = start
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][1] > heap[child][1]:
                child += 1
            if heap[child][1] <= heap[parent][1]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0][0]


@pytest.mark.parametrize(
    ("totals", "winner"),
    [
        ([1, 5, 10, 10], 3),
        ([10, 10, 10], 0),
        ([9, 10, 10], 1),
        ([5, 7, 9, 9, 9], 3),
        ([5, 5, 9, 5, 5, 9, 9], 2),
        ([7], 0),
    ],
)
def test_ties_are_broken_as_the_heap_does(totals: list[int], winner: int) -> None:
    assert pick(np.array(totals, dtype=np.int64)) == winner
    assert heap_winner(totals) == winner


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=70))
def test_any_list_has_the_winner_of_the_heap(totals: list[int]) -> None:
    assert pick(np.array(totals, dtype=np.int64)) == heap_winner(totals)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from([0, 1, 700, SMALL - 2, SMALL - 1]), min_size=1, max_size=70))
def test_small_totals_are_picked_alike(totals: list[int]) -> None:
    assert pick_small(np.array(totals, dtype=np.int64)) == heap_winner(totals)
