"""Random cases, recorded here and now with the real kube-controller-manager, and played by ours."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from golden.random_cases import FAMILIES, random_case
from golden.recorder import differences, real_controllers, recorded
from kubescene.testing.goldens.workload_views import COMBINED
from kubescene.types import JsonObject
from real_programs import require_program
from remote.api_servers import RealServer

SEEDS = (101,)
AT_A_TIME = 5
CHANCE = (COMBINED, "the object has been modified")
"""What is said of events that were combined, and of writes that met others."""


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    require_program("kube-controller-manager")
    with real_controllers(tmp_path_factory.mktemp("real-controllers")) as server:
        yield server


def test_random_cases_end_alike(controllers: RealServer) -> None:
    cases = [random_case(family, seed) for family in FAMILIES for seed in SEEDS]
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        unequal = [*threads.map(partial(unlike, server=controllers), cases)]
    assert not [told for each in unequal for told in each]


def unlike(case: JsonObject, server: RealServer) -> list[str]:
    """How ours differs from the real ones; whoever differs is recorded again, since chance may be
    at work: what differs from two recordings that agree is a difference."""
    first = recorded(case, server)
    told = [str(each) for each in differences(first)]
    if not told or any(each in str(first) for each in CHANCE):
        return []
    second = recorded(case, server, attempt=1)
    agree = [each["see"] for each in first["steps"]] == [each["see"] for each in second["steps"]]
    return told if agree and differences(second) else []


def test_the_same_seed_makes_the_same_case() -> None:
    for family in FAMILIES:
        assert random_case(family, 7) == random_case(family, 7) != random_case(family, 8)
