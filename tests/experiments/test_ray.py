"""A matrix on a Ray of this machine."""

import importlib.util

import pytest

from experiments.test_matrix import by_chance, failing, shown, small
from kubescene.experiments import matrix

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own.
]


def test_ray_plays_the_same() -> None:
    scenarios, configurations = [small(), failing()], {"dice": by_chance()}
    found = matrix(scenarios, configurations, seeds=2, jobs=1, executor="ray")
    assert shown(found) == shown(matrix(scenarios, configurations, seeds=2, jobs=1))
    assert [(row.runs, row.failed) for row in found.rows] == [(2, 0), (0, 2)]
