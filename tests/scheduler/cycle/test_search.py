import pytest

from kubescene.scheduler.cycle.search import nodes_to_find


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        (0, 0),
        (50, 50),
        (99, 99),
        (100, 100),
        (200, 100),
        (250, 120),
        (500, 230),
        (1000, 420),
        (2000, 680),
        (3000, 780),
        (5000, 500),
        (5625, 281),
        (6000, 300),
        (15000, 750),
    ],
)
def test_c_7_large_clusters_are_sampled(nodes: int, wanted: int) -> None:
    assert nodes_to_find(nodes) == wanted


@pytest.mark.parametrize(
    ("percentage", "wanted"), [(1, 100), (10, 500), (100, 5000)], ids=["lifted", "ten", "all"]
)
def test_a_profile_sets_the_percentage(percentage: int, wanted: int) -> None:
    assert nodes_to_find(5000, percentage) == wanted
