"""The strategies of NodeResourcesFit on numbers of any size: 64 bits as in Go. [S-3, SC-3]"""

from ctypes import c_int64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.scheduler.plugins.node_resources_fit import make_checks
from kubescene.scheduler.plugins.scoring_strategies import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    ScoringStrategy,
)

STRATEGIES = [
    LeastAllocated(),
    MostAllocated(),
    RequestedToCapacityRatio([(0, 0), (100, 10)]),
]
SIZES = st.sampled_from([10, 10**6, 1 << 40, 1 << 56, (1 << 63) - 1])
NUMBERS = SIZES.flatmap(lambda most: st.integers(1, most))


def share(part: int, whole: int) -> int:
    """Go's ``part * 100 / whole``."""
    product = c_int64(part * 100).value
    return abs(product) // whole * (1 if product >= 0 else -1)


@pytest.mark.parametrize(
    ("strategy", "rating"),
    [
        (
            STRATEGIES[0],
            lambda used, offered: 0 if used > offered else share(offered - used, offered),
        ),
        (STRATEGIES[1], lambda used, offered: share(min(used, offered), offered)),
        (
            STRATEGIES[2],
            lambda used, offered: 100 if used > offered else max(share(used, offered), 0),
        ),
    ],
)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_sc_3_one_node_and_many_are_rated_as_go_does(
    strategy: ScoringStrategy, rating: object, pairs: list[tuple[int, int]]
) -> None:
    assert callable(rating)
    expected = [rating(*pair) for pair in pairs]
    used, offered = np.array(pairs, dtype=np.int64).T.copy()
    assert [strategy.rate(*pair) for pair in pairs] == expected
    assert strategy.rate_nodes(used, offered).tolist() == expected


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_s_3_averages_are_rounded_towards_zero(strategy: ScoringStrategy) -> None:
    totals = np.array([-3, -2, 3, 0], dtype=np.int64)
    assert [strategy.average(total, 2) for total in totals.tolist()] == [-1, -1, 1, 0]
    assert strategy.average_nodes(totals, 2).tolist() == [-1, -1, 1, 0]


def test_a_pod_that_asks_for_too_many_resources_is_told_so() -> None:
    many = {f"example.com/r{at:02}": 1 for at in range(46)}
    reasons = make_checks(many).reasons((1 << 48) - 1)
    assert reasons[0] == "Too many pods"
    assert reasons[-1] == "Insufficient example.com/r45"
    with pytest.raises(ValueError, match="46 resources, not for 47"):
        make_checks({**many, "cpu": 1})
