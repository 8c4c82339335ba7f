"""Checksums of clusters: equal for equal clusters, and for no others."""

from kubescene.clock import ScenarioStep
from kubescene.results.comparison.histories import RunHistory, checksum
from kubescene.results.ledger import Ledger
from kubescene.results.states import NO_ASK, PodState


def test_pods_that_change_places_change_the_sum() -> None:
    """Hashes of tuples would not do: more than one swap in three leaves their sum as it was."""
    for number in range(200):
        first, second = f"default/a-{number}", f"default/b-{number}"
        here = checksum(first, "n") + checksum(second, "m")
        there = checksum(first, "m") + checksum(second, "n")
        assert here != there


def test_names_are_kept_apart() -> None:
    assert checksum("a", "bc") != checksum("ab", "c")


def test_a_pod_is_bound_to_all_else_that_its_step_brings() -> None:
    """What came with a node in the same step is there before, what was bound in it is not."""
    ledger, step = Ledger(), ScenarioStep(2, 1)
    ledger.at(step, 0)
    ledger.pod_created("default", "placed", "1", PodState("n", "", NO_ASK))
    ledger.pod_created("default", "bound", "2", PodState("", "", NO_ASK))
    ledger.pod_bound("default", "bound", "n")
    ledger.close()
    history = RunHistory(ledger)
    assert history.before_binding(step).pods == checksum("default/placed", "n")
    both = checksum("default/placed", "n") + checksum("default/bound", "n")
    assert history.after(step).pods == both
    assert history.pods_before_binding(step) == history.before_binding(step).pods
