"""Scores looked up by count are those that are worked out node by node."""

import numpy as np
import pytest

from kubescene.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME
from kubescene.scheduler.plugins.pod_topology_spread.scoring import _Part, _rounded
from kubescene.scheduler.state.node_columns import LabelColumn

ZONE = "topology.kubernetes.io/zone"
ROWS = np.arange(300, dtype=np.intp)[::-1]


def made(key: str, column: LabelColumn, most: int, weight: float = 6.21) -> _Part:
    """A part over counts that differ from place to place, up to ``most``."""
    part = _Part.__new__(_Part)
    part.key, part._column, part._weight, part._offset = key, column, weight, 4.0
    places = ROWS.size if key == HOSTNAME else len(column.values)
    part._counts = (np.arange(places, dtype=np.int32) * 7919) % (most + 1)
    return part


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("most", [0, 1, 4, 100, 4095])
@pytest.mark.parametrize("key", [HOSTNAME, ZONE])
def test_sc_6_each_count_is_rated_once(key: str, most: int, bare: bool) -> None:
    part = made(key, LabelColumn([f"{row % 9}" for row in range(ROWS.size)]), most)
    scores = part.scores(ROWS, bare=bare)
    assert scores is not None
    assert scores.tolist() == _rounded(part.rate(ROWS, bare=bare)).tolist()


def test_sc_6_halves_are_rounded_up() -> None:
    part = made(HOSTNAME, LabelColumn(["a"] * ROWS.size), 50, weight=0.5)
    scores = part.scores(ROWS, bare=False)
    assert scores is not None
    assert scores.tolist() == _rounded(part.rate(ROWS, bare=False)).tolist()
    assert set(np.unique(scores)) == set(range(4, 30))


def test_sc_6_nodes_without_the_label_and_large_counts_are_worked_out_one_by_one() -> None:
    texts = [None if row == 3 else "a" for row in range(ROWS.size)]
    lacking = made(HOSTNAME, LabelColumn(texts), 4)
    assert lacking.scores(ROWS, bare=False) is None
    assert lacking.rate(ROWS, bare=False)[ROWS.tolist().index(3)] == 0.0
    many = made(HOSTNAME, LabelColumn(["a"] * ROWS.size), 4096)
    many._counts[7] = 4096
    assert many.scores(ROWS, bare=False) is None


def test_a_column_knows_whether_every_node_has_the_label() -> None:
    column = LabelColumn(["a", None, "b"])
    said = [column.is_complete]
    column.put(1, "c")
    said.append(column.is_complete)
    column.put(0, None)
    said.append(column.is_complete)
    column.move(np.array([1, 2], dtype=np.intp))
    said.append(column.is_complete)
    assert said == [False, True, False, True]
