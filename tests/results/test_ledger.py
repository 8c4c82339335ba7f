"""The ledger by itself: entries in, the cluster out."""

import pytest

from kubescene.clock import SECOND, ScenarioStep
from kubescene.results.ledger import Ledger
from kubescene.results.states import NodeState, PodAsk, PodState


def asking(cpu: int) -> PodAsk:
    return PodAsk({"cpu": cpu})


def pod(cpu: int, node: str = "", phase: str = "Pending") -> PodState:
    return PodState(node, phase, asking(cpu))


def node(cpu: int) -> NodeState:
    return NodeState({"cpu": cpu, "pods": 110}, {})


@pytest.fixture
def ledger() -> Ledger:
    """A node of 4 cpu with a pod of 1, at step 1."""
    ledger = Ledger()
    ledger.at(ScenarioStep(1, 0), 0)
    ledger.node_written("n", node(4000))
    ledger.pod_created("default", "a", "uid-a", pod(1000))
    ledger.pod_bound("default", "a", "n")
    return ledger


def requested(ledger: Ledger) -> tuple[int, int]:
    return ledger.totals.requested.get("cpu", 0), ledger.totals.requested["pods"]


def test_a_bound_pod_takes_its_room(ledger: Ledger) -> None:
    assert requested(ledger) == (1000, 1)


def test_a_pod_is_bound_once(ledger: Ledger) -> None:
    ledger.pod_bound("default", "a", "n")
    ledger.pod_written("default", "a", "uid-a", pod(1000, "n", "Running"))
    assert requested(ledger) == (1000, 1)


def test_a_resized_pod_takes_what_it_asks_for_now(ledger: Ledger) -> None:
    ledger.pod_written("default", "a", "uid-a", pod(3000, "n"))
    assert requested(ledger) == (3000, 1)


def test_a_pod_that_waits_may_ask_for_something_else(ledger: Ledger) -> None:
    ledger.pod_created("default", "b", "uid-b", pod(500))
    ledger.pod_written("default", "b", "uid-b", pod(700))
    assert requested(ledger) == (1000, 1)
    ledger.pod_bound("default", "b", "n")
    assert requested(ledger) == (1700, 2)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_takes_nothing(ledger: Ledger, phase: str) -> None:
    ledger.pod_written("default", "a", "uid-a", pod(1000, "n", phase))
    assert requested(ledger) == (0, 0)
    ledger.pod_deleted("default", "a", marked=True)
    assert ledger.states["Finished"] == 1
    ledger.pod_ended("default", "a")
    assert requested(ledger) == (0, 0)
    assert ledger.states["Deleted"] == 1


def test_a_deletion_that_is_marked_twice_counts_once(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.pod_deleted("default", "a", marked=True)
    assert ledger.states["Terminating"] == 1
    assert requested(ledger) == (1000, 1)
    ledger.pod_ended("default", "a")
    ledger.pod_ended("default", "a")
    assert (ledger.states["Deleted"], requested(ledger)) == (1, (0, 0))


def test_a_pod_that_waits_and_is_held_takes_no_room(ledger: Ledger) -> None:
    ledger.pod_created("default", "b", "uid-b", pod(500))
    ledger.pod_deleted("default", "b", marked=True)
    assert (ledger.states["Terminating"], ledger.states["Pending"]) == (1, 0)
    assert requested(ledger) == (1000, 1)
    ledger.pod_ended("default", "b")
    assert requested(ledger) == (1000, 1)


def test_a_pod_that_goes_when_its_finalizer_does_is_not_a_new_one(ledger: Ledger) -> None:
    """The write that lets it go is told after its end."""
    ledger.pod_deleted("default", "a", marked=True)
    ledger.pod_ended("default", "a")
    ledger.pod_written("default", "a", "uid-a", pod(1000, "n"))
    assert len(ledger.pods) == 1
    assert requested(ledger) == (0, 0)


def test_another_pod_of_the_name_takes_the_place_of_the_first(ledger: Ledger) -> None:
    ledger.pod_created("default", "a", "uid-2", pod(2000, "n"))
    assert [each.state for each in ledger.pods] == ["Deleted", "Bound"]
    assert requested(ledger) == (2000, 1)


def test_pods_may_be_bound_to_a_node_that_comes_later() -> None:
    ledger = Ledger()
    ledger.at(ScenarioStep(1, 0), 0)
    ledger.pod_created("default", "early", "uid", pod(1000, "n"))
    assert requested(ledger) == (0, 0)
    ledger.node_written("n", node(4000))
    assert requested(ledger) == (1000, 1)


def test_a_node_may_offer_something_else(ledger: Ledger) -> None:
    ledger.node_written("n", node(2000))
    assert ledger.totals.allocatable["cpu"] == 2000
    ledger.node_removed("n")
    assert (ledger.totals.allocatable["cpu"], requested(ledger)) == (0, (0, 0))


def test_what_nobody_knows_changes_nothing(ledger: Ledger) -> None:
    ledger.pod_deleted("default", "stranger", marked=False)
    ledger.pod_ended("default", "stranger")
    ledger.pod_bound("default", "stranger", "n")
    ledger.node_removed("stranger")
    assert requested(ledger) == (1000, 1)
    assert sum(ledger.states.values()) == 1


def test_time_is_weighed_by_what_was_there(ledger: Ledger) -> None:
    ledger.at(ScenarioStep(1, 1), 10 * SECOND)
    ledger.pod_created("default", "b", "uid-b", pod(1000, "n"))
    ledger.at(ScenarioStep(2, 0), 30 * SECOND)
    ledger.close()
    assert ledger.requested_time["cpu"] == (10 * 1000 + 20 * 2000) * SECOND
    assert ledger.allocatable_time["cpu"] == 30 * 4000 * SECOND
    assert ledger.node_time == 30 * SECOND


def test_a_step_is_as_it_was_left(ledger: Ledger) -> None:
    ledger.at(ScenarioStep(2, 0), 5 * SECOND)
    ledger.pod_deleted("default", "a", marked=False)
    ledger.node_written("m", node(1000))
    ledger.close()
    first, second = ledger.steps
    assert (first.totals.requested["cpu"], second.totals.requested["cpu"]) == (1000, 0)
    assert (first.bound, second.bound, first.ended_time) == (1, 0, 5 * SECOND)
    assert (list(first.nodes), list(second.nodes)) == (["n"], ["n", "m"])


def test_a_ledger_that_was_closed_may_go_on(ledger: Ledger) -> None:
    """A scenario that paused goes on in the step that it paused in, or in a later one."""
    ledger.close()
    ledger.pod_deleted("default", "a", marked=False)
    ledger.close()
    (step,) = ledger.steps
    use = step.nodes["n"]
    assert use is not None
    assert (step.bound, use.requested["cpu"]) == (0, 0)


def test_a_scenario_that_goes_on_after_a_pause_has_not_ended(ledger: Ledger) -> None:
    ledger.end("Paused", "")
    ledger.close()
    assert ledger.phase == "Paused"
    ledger.at(ScenarioStep(2, 0), 0)
    assert ledger.phase == ""
