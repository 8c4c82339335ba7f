"""Checksums of clusters: equal for equal clusters, and for no others."""

from kubescene.results.comparison.histories import checksum


def test_pods_that_change_places_change_the_sum() -> None:
    """Hashes of tuples would not do: more than one swap in three leaves their sum as it was."""
    for number in range(200):
        first, second = f"default/a-{number}", f"default/b-{number}"
        here = checksum(first, "n") + checksum(second, "m")
        there = checksum(first, "m") + checksum(second, "n")
        assert here != there


def test_names_are_kept_apart() -> None:
    assert checksum("a", "bc") != checksum("ab", "c")
