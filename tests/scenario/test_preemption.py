"""Preemption in a whole scenario: who leaves when, and how the timeline tells it."""

from typing import Any

import kubescene
from kubescene.runs.local import RunResult
from kubescene.testing import make_node, make_pod, make_priority_class
from kubescene.timeline import PodPreempted, PodScheduled, PodUnscheduled


def full_cluster(**kubelet: str) -> kubescene.ScenarioBuilder:
    """Three nodes of four cpus, each with four pods of low priority; then two pods that need three
    cpus each.
    """
    built = kubescene.ScenarioBuilder("preemption")
    if kubelet:
        built.settings(kubelet=kubelet)
    built.create(make_priority_class("high", 1_000))
    built.create(make_node("node-$(INDEX)").cpu("4").memory("32Gi"), count=3).step(2)
    built.create(make_pod("low-$(INDEX)").cpu("900m"), count=12).step(3)
    return built.create(make_pod("high-$(INDEX)").cpu("3").priority_class("high"), count=2)


def facts(run: RunResult, *kinds: type) -> list[Any]:
    return [fact for fact in run.log if isinstance(fact, kinds)]


def test_pods_of_high_priority_take_the_place_of_others() -> None:
    run = kubescene.run(full_cluster().done())
    bound = {fact.name: fact.node for fact in facts(run, PodScheduled)}
    assert {"high-0", "high-1"} <= bound.keys()
    assert bound["high-0"] != bound["high-1"]
    preempted = facts(run, PodPreempted)
    assert len(preempted) == 6
    for fact in preempted:
        assert bound[fact.preempted_by.removeprefix("default/")] == fact.node == bound[fact.name]


def test_the_timeline_tells_of_victims_as_steps() -> None:
    """What counts: the deletion of a victim is a minor step, told as delete and podPreempted."""
    run = kubescene.run(full_cluster().done())
    lines = [line for line in run.timeline if line["step"]["major"] == 3]
    told = [line["operation"] for line in lines if line["actor"] == "kube-scheduler"]
    assert told[:7] == ["PodUnscheduled", *["Delete", "PodPreempted"] * 3]
    (first, *_) = [line["podPreempted"] for line in lines if "podPreempted" in line]
    assert first["preemptedBy"] == "default/high-0"
    assert first["preemptedAt"]["major"] == 3
    assert first["preemptedAt"]["minor"] > 0


def test_a_failed_attempt_tells_how_room_was_made() -> None:
    run = kubescene.run(full_cluster().done())
    (attempt, *_) = facts(run, PodUnscheduled)
    record = attempt.preemption
    assert record.node == attempt.nominated
    assert len(record.victims) == 3
    assert [each.node for each in record.tried] == ["node-0", "node-1", "node-2"]
    assert record.criterion


def test_victims_are_given_their_time() -> None:
    run = kubescene.run(full_cluster(terminateDelay="20s").advance("1m").done())
    moments: dict[tuple[type, str], int] = {}
    for fact in facts(run, PodPreempted, PodScheduled):
        moments.setdefault((type(fact), fact.name), fact.time)
    begun = max(at for (kind, _), at in moments.items() if kind is PodPreempted)
    for name in ("high-0", "high-1"):
        assert moments[PodScheduled, name] == begun + 20 * 10**9


def test_victims_that_take_too_long_leave_the_preemptor_nominated() -> None:
    run = kubescene.run(full_cluster(terminateDelay="20s").advance("19s").done())
    bound = {fact.name for fact in facts(run, PodScheduled)}
    assert not {"high-0", "high-1"} & bound
    status = run.cluster.get("pods", "high-0")["status"]
    assert status["nominatedNodeName"] == facts(run, PodUnscheduled)[0].nominated


def test_the_same_scenario_tells_the_same_story() -> None:
    first, second = (list(kubescene.run(full_cluster().done()).timeline) for _ in range(2))
    assert first == second
