"""When a pod that is deleted frees its room: the log tells it, or nobody could know."""

import kubescene
from kubescene.clock import SECOND
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Fact, ObjectDeleted, PodEnded
from kubescene.timeline.log import from_lines


def deleting(pause: str = "1m", **kubelet: str) -> ScenarioBuilder:
    return (
        ScenarioBuilder("end")
        .settings(kubelet=kubelet)
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .advance(pause)
        .done()
    )


def endings(scenario: ScenarioBuilder) -> list[tuple[str, int]]:
    facts: list[Fact] = [
        fact for fact in kubescene.run(scenario).log if isinstance(fact, ObjectDeleted | PodEnded)
    ]
    return [(type(fact).__name__, (fact.time - facts[0].time) // SECOND) for fact in facts]


def test_a_deleted_pod_ends_when_its_kubelet_lets_it_go() -> None:
    told = [("ObjectDeleted", 0), ("PodEnded", 20)]
    assert endings(deleting(terminateDelay="20s")) == told


def test_without_delays_it_ends_at_once() -> None:
    assert endings(deleting()) == [("ObjectDeleted", 0), ("PodEnded", 0)]


def test_one_that_is_still_there_has_not_ended() -> None:
    assert endings(deleting("19s", terminateDelay="20s")) == [("ObjectDeleted", 0)]


def test_one_that_waits_is_removed_with_its_deletion() -> None:
    scenario = ScenarioBuilder("wait").create(make_pod("a")).step(2)
    run = kubescene.run(scenario.delete("v1", "Pod", "a", namespace="default").done())
    (deleted,) = (fact for fact in run.log if isinstance(fact, ObjectDeleted))
    assert not deleted.marked
    assert not [fact for fact in run.log if isinstance(fact, PodEnded)]


def test_a_pod_that_a_finalizer_holds_ends_once_its_kubelet_has_stopped_it() -> None:
    held = make_pod("a").cpu("1").build()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    scenario = (
        ScenarioBuilder("held")
        .create(make_node("n").cpu("4"), held)
        .step(2)
        .delete("v1", "Pod", "a", namespace="default")
        .step(3)
        .patch("v1", "Pod", "a", {"metadata": {"finalizers": None}}, namespace="default")
        .done()
    )
    (ended,) = (fact for fact in kubescene.run(scenario).log if isinstance(fact, PodEnded))
    assert ended.step.major == 2


def test_lines_keep_what_was_marked() -> None:
    log = kubescene.run(deleting()).log
    make, arguments = log.__reduce__()
    assert make is from_lines
    (deleted,) = (fact for fact in make(*arguments) if isinstance(fact, ObjectDeleted))
    assert deleted.marked
