"""Keys waiting for a reconciler: each at most once, in order of arrival."""

import pytest

from kubescene.controllers.reconcile import ObjectKey
from kubescene.controllers.runtime import WorkQueue

A, B, C = (ObjectKey("default", name) for name in "abc")


def filled(*keys: ObjectKey) -> WorkQueue:
    queue = WorkQueue()
    for key in keys:
        queue.add(key)
    return queue


def test_keys_leave_in_the_order_they_came() -> None:
    queue = filled(B, A, C)
    assert [queue.pop() for _ in range(3)] == [B, A, C]


def test_a_key_that_comes_again_while_it_waits_keeps_its_place() -> None:
    assert list(filled(A, B, A)) == [A, B]


def test_a_key_that_comes_again_after_it_left_goes_to_the_end() -> None:
    queue = filled(A, B)
    queue.pop()
    queue.add(A)
    assert list(queue) == [B, A]


def test_the_queue_knows_its_length() -> None:
    queue = filled(A, B, B)
    assert len(queue) == 2
    assert queue
    queue.pop()
    queue.pop()
    assert not queue


def test_nothing_leaves_an_empty_queue() -> None:
    with pytest.raises(KeyError, match="no key is waiting"):
        WorkQueue().pop()
