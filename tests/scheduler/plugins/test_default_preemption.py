"""DefaultPreemption in a real cluster: who may, whom it costs, which node, what is written."""

from typing import Any

import numpy as np
import pytest

from kubescene.api.kinds import POD
from kubescene.client.interfaces import ObjectRef
from kubescene.errors import ForbiddenError
from kubescene.instruments.attempts import PreemptionRecord, SchedulingAttempt
from kubescene.scheduler import SchedulerOptions, default_profile
from kubescene.scheduler.framework.profile import Profile
from kubescene.scheduler.plugins.default_preemption import DefaultPreemption
from kubescene.scheduler.preemption.best_candidate import Criterion, choose, cost_of
from kubescene.scheduler.preemption.victims import by_importance
from kubescene.testing.builders import PodBuilder, make_node, make_pod, make_priority_class, merged
from kubescene.types import JsonObject
from scheduler.staging import Stage
from scheduler.storage import bound_claim, csi_node, storage_class, using, volume

PRIORITIES = {"negative": -10, "lowest": 1, "low": 5, "middle": 50, "high": 1_000, "top": 2_000}


def stage(**options: Any) -> Stage:
    world = Stage(**options)
    world.create(*(make_priority_class(name, value) for name, value in PRIORITIES.items()))
    return world


def low(name: str, node: str = "", cpu: str = "900m", priority: str = "low") -> PodBuilder:
    pod = make_pod(name).cpu(cpu).priority_class(priority)
    return pod.on(node) if node else pod


def high(name: str = "new", cpu: str = "3") -> PodBuilder:
    return make_pod(name).cpu(cpu).priority_class("high")


def started(world: Stage, name: str, second: int) -> None:
    """Say when a pod began to run."""
    at = f"2026-01-01T00:00:{second:02}Z"
    status = {"status": {"phase": "Running", "startTime": at}}
    world.client.patch(ObjectRef(POD, name, "default"), status, subresource="status")


def attempt(world: Stage, pod: PodBuilder | JsonObject) -> SchedulingAttempt:
    """Create a pod and attempt it once."""
    world.create(pod)
    before = len(world.attempts.made)
    world.scheduler.run_once()
    return world.attempts.made[before]


def test_what_is_kept_of_a_dry_run_is_not_for_pods_with_other_volumes() -> None:
    default = default_profile()
    points = {
        point: tuple(each for each in plugins if each.name != "NodeVolumeLimits")
        for point, plugins in default.points.items()
    }
    world = stage(profiles=(Profile(default.scheduler_name, points),))
    world.create(make_node("a").cpu("4").zone("x"), make_node("b").cpu("4").zone("y"))
    world.create(volume("vx", zone="x"), volume("vy", zone="y"))
    world.create(bound_claim("in-x", "vx"), bound_claim("in-y", "vy"))
    world.create(low("l1", "a", cpu="4"), low("l2", "b", cpu="4"))
    for name, claim, node in (("new-x", "in-x", "a"), ("new-y", "in-y", "b")):
        pod = merged(high(name).build(), {"spec": using(name, claim)["spec"]})
        pod["spec"]["containers"] = high(name).build()["spec"]["containers"]
        assert attempt(world, pod).nominated == node


def told(attempt: SchedulingAttempt) -> PreemptionRecord:
    assert attempt.preemption is not None
    return attempt.preemption


def terminating(world: Stage, *names: str) -> list[str]:
    return [name for name in names if "deletionTimestamp" in world.pod(name)["metadata"]]


def budget(name: str, app: str, allowed: int, disrupted: tuple[str, ...] = ()) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }


def protect(world: Stage, *budgets: JsonObject) -> None:
    """Create budgets as their controller would leave them."""
    for each in budgets:
        world.client.create(each)
        world.client.update(
            merged(world.client.get(ObjectRef.to(each)), each), subresource="status"
        )


# -- who may -------------------------------------------------------------------------------------


def test_pr_1_a_pod_that_must_not_preempt_does_not() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))
    never: JsonObject = make_priority_class("never", 1_000).build()
    never["preemptionPolicy"] = "Never"
    world.create(never)
    made = attempt(world, make_pod("new").cpu("3").priority_class("never"))
    assert made.message.endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert made.victims == ()
    assert terminating(world, "p") == []


def test_pr_1_who_waits_for_its_victims_asks_for_no_others() -> None:
    world = stage()
    world.nodes("a", "b")
    world.create(low("p", "a", "3"), low("q", "b", "3"))
    assert attempt(world, high()).nominated == "b"
    world.scheduler.queue.activate([world.scheduler.nominations.on("b")[0]])
    world.scheduler.run_once()
    made = world.attempts.made[-1]
    assert made.message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert world.pod("new")["status"]["nominatedNodeName"] == "b"
    assert terminating(world, "p", "q") == ["q"]


def test_pr_1_a_nominated_node_that_became_hopeless_is_given_up() -> None:
    world = stage()
    world.nodes("a", "b")
    world.create(low("p", "a", "3"), low("q", "b", "3"))
    assert attempt(world, high()).nominated == "b"
    taint = {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}}
    world.client.patch(ObjectRef.to(make_node("b").build()), taint)
    assert world.work()[0].nominated == "a"
    assert world.pod("new")["status"]["nominatedNodeName"] == "a"


# -- where, and how many nodes are tried -----------------------------------------------------------


def test_pr_2_nodes_that_no_removal_can_help_are_not_tried() -> None:
    world = stage()
    world.nodes("a", "b")
    world.create(make_node("tainted").cpu("8").memory("8Gi").taint("gpu"))
    world.create(make_node("small").cpu("1").memory("8Gi"))
    world.create(low("p", "a", "3"), low("q", "b", "3"), low("r", "tainted", "3"))
    record = told(attempt(world, high()))
    assert [each.node for each in record.tried] == ["a", "b"]


def test_m_7_without_candidates_every_node_says_why_and_the_nomination_ends() -> None:
    world = stage()
    world.nodes("a", "b", cpu="4")
    world.create(make_node("tainted").cpu("8").memory("8Gi").taint("gpu"))
    world.create(low("p", "a", "3", "high"), low("q", "b", "3", "high"), low("r", "b", "500m"))
    made = attempt(world, high())
    assert made.message == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: 1 Insufficient cpu, "
        "1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    assert told(made).message.startswith("0/3 nodes are available:")


@pytest.mark.parametrize(
    ("percentage", "absolute", "nodes", "wanted"),
    [(10, 100, 50, 50), (10, 100, 500, 100), (10, 100, 5_000, 500), (0, 1, 10, 1), (100, 1, 7, 7)],
)
def test_pr_3_how_many_candidates_are_enough(
    percentage: int, absolute: int, nodes: int, wanted: int
) -> None:
    world = stage()
    handle = world.scheduler.handles["default-scheduler"]
    plugin = DefaultPreemption(handle, percentage, absolute)
    assert plugin.candidates_wanted(nodes) == wanted


def arguments(**given: int) -> SchedulerOptions:
    default = default_profile()
    profile = Profile(default.scheduler_name, default.points, {"DefaultPreemption": given})
    return SchedulerOptions(profiles=(profile,))


def test_pr_4_the_dry_run_ends_with_enough_candidates() -> None:
    options = arguments(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=2)
    world = stage(profiles=options.profiles)
    world.nodes("a", "b", "c", "d")
    world.create(low("p", "a", "3", "high"))
    world.create(*(low(f"p-{node}", node, "3") for node in "bcd"))
    record = told(attempt(world, high()))
    assert [each.node for each in record.tried] == ["a", "b", "c"]
    assert (record.candidates, record.trials) == (2, 3)


def test_pr_4_candidates_that_violate_budgets_are_not_enough() -> None:
    options = arguments(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=1)
    world = stage(profiles=options.profiles)
    world.nodes("a", "b", "c")
    protect(world, budget("db", "db", 0))
    world.create(low("p", "a", "3").label(app="db"), low("q", "b", "3"), low("r", "c", "3"))
    record = told(attempt(world, high()))
    assert [(each.node, each.pdb_violations) for each in record.tried] == [("a", 1), ("b", 0)]
    assert (record.node, record.criterion) == ("b", Criterion.VIOLATIONS)


# -- whom it costs ---------------------------------------------------------------------------------


def test_pr_8_the_oldest_pod_is_tried_first_and_stays() -> None:
    """Reviewer's vector 18."""
    world = stage()
    world.nodes("a")
    names = ["p", "q", "r", "s"]
    world.create(*(low(name, "a") for name in names))
    for second, name in zip((30, 10, 20, 40), names, strict=True):
        started(world, name, second)
    record = told(attempt(world, high()))
    assert record.victims == ("default/r", "default/p", "default/s")
    assert terminating(world, *names) == ["p", "r", "s"]


def test_pr_6_without_start_times_the_last_placed_pod_stays() -> None:
    world = stage()
    world.nodes("a")
    world.create(*(low(name, "a") for name in "pqrs"))
    assert told(attempt(world, high())).victims == ("default/r", "default/q", "default/p")


def test_pr_6_started_pods_are_more_important_than_others() -> None:
    world = stage()
    world.nodes("a")
    world.create(*(low(name, "a") for name in "pqrs"), low("t", "a", "100m", "middle"))
    started(world, "r", 59)
    node = world.scheduler.nodes.info("a")
    assert node is not None
    assert [pod.name for pod in by_importance(node.pods)] == ["t", "r", "s", "q", "p"]


def test_pr_5_pods_of_the_same_priority_are_no_victims() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3", "high"), low("q", "a", "1", "negative"))
    made = attempt(world, high())
    assert made.victims == ()
    assert told(made).tried[0].reasons == ("Insufficient cpu",)


def test_pr_5_pods_that_are_going_anyway_are_victims_but_are_not_deleted_again() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"), low("q", "a", "1"))
    world.client.delete(ObjectRef(POD, "p", "default"))
    before = world.pod("p")
    made = attempt(world, high(cpu="4"))
    assert [each.name for each in made.victims] == ["p", "q"]
    assert world.pod("p") == before
    assert terminating(world, "p", "q") == ["p", "q"]


def test_pr_14_if_all_victims_are_going_anyway_nothing_is_started() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))
    world.create(low("waiting", cpu="2"))
    nominate(world, "waiting", "a")
    world.client.delete(ObjectRef(POD, "p", "default"))
    before = world.pod("p")
    made = attempt(world, high())
    assert (made.nominated, [each.name for each in made.victims]) == ("a", ["p"])
    assert world.pod("p") == before
    assert world.pod("waiting")["status"]["nominatedNodeName"] == "a"


def nominate(world: Stage, name: str, node: str) -> None:
    status = {"status": {"nominatedNodeName": node}}
    world.client.patch(ObjectRef(POD, name, "default"), status, subresource="status")


@pytest.mark.parametrize(
    ("allowed", "disrupted", "victims", "violations"),
    [
        (2, (), ("default/r", "default/p"), 0),
        (0, (), ("default/s", "default/p"), 0),
        (0, ("r",), ("default/r", "default/p"), 0),
    ],
    ids=["PR-7 allowed", "PR-8 the protected stay first", "PR-7 counted as gone already"],
)
def test_pr_7_budgets_decide_who_is_tried_first(
    allowed: int, disrupted: tuple[str, ...], victims: tuple[str, ...], violations: int
) -> None:
    world = stage()
    world.nodes("a")
    protect(world, budget("db", "db", allowed, disrupted))
    world.create(low("p", "a", "2"), low("r", "a", "1").label(app="db"), low("s", "a", "1"))
    for second, name in enumerate(("s", "r", "p")):
        started(world, name, second)
    record = told(attempt(world, high()))
    assert (record.victims, record.tried[0].pdb_violations) == (victims, violations)


def test_pr_8_victims_are_in_order_of_importance_again_after_the_budgets() -> None:
    world = stage()
    world.nodes("a")
    protect(world, budget("db", "db", 0))
    world.create(low("old", "a", "2"), low("young", "a", "2").label(app="db"))
    for second, name in enumerate(("old", "young")):
        started(world, name, second)
    record = told(attempt(world, high(cpu="4")))
    assert record.victims == ("default/old", "default/young")
    assert record.tried[0].pdb_violations == 1


def test_pr_7_a_budget_that_selects_everything_protects_nobody() -> None:
    world = stage()
    world.nodes("a")
    everything = merged(budget("all", "x", 0), {"spec": {"selector": None}})
    everything["spec"]["selector"] = {}
    protect(world, everything)
    world.create(low("p", "a", "3").label(app="db"))
    assert told(attempt(world, high())).tried[0].pdb_violations == 0


# -- which node ------------------------------------------------------------------------------------


class Victim:
    def __init__(self, priority: int, start_time: str = "") -> None:
        self.priority = priority
        self.start_time = start_time


def costs(*nodes: tuple[int, list[Any]]) -> Any:
    return np.array([cost_of(victims, violations) for violations, victims in nodes]).T


def victims(*priorities: int, start: str = "2026-01-01T00:00:00Z") -> list[Any]:
    return [Victim(each, start) for each in priorities]


@pytest.mark.parametrize(
    ("nodes", "chosen", "criterion"),
    [
        ([(0, victims(5))], 0, Criterion.ONLY_CANDIDATE),
        ([(1, victims(1)), (0, victims(100))], 1, Criterion.VIOLATIONS),
        ([(0, victims(5)), (0, victims(3, 3))], 1, Criterion.HIGHEST_PRIORITY),
        ([(0, victims(5, 1)), (0, victims(5))], 1, Criterion.SUM_OF_PRIORITIES),
        ([(0, victims(-5, -5)), (0, victims(-5))], 1, Criterion.SUM_OF_PRIORITIES),
        (
            [(0, victims(5)), (0, victims(5, start="2026-01-01T00:00:01Z"))],
            1,
            Criterion.START,
        ),
        ([(0, victims(5)), (0, victims(5)), (0, victims(5))], 0, Criterion.ORDER),
        ([(0, victims(5, start="")), (0, victims(5, start=""))], 1, Criterion.ORDER),
        ([(0, victims(5)), (0, victims(5, start=""))], 1, Criterion.START),
    ],
    ids=lambda value: str(value) if isinstance(value, Criterion) else None,
)
def test_pr_11_the_node_that_loses_least_is_chosen(
    nodes: list[tuple[int, list[Any]]], chosen: int, criterion: Criterion
) -> None:
    choice = choose(costs(*nodes))
    assert (choice.place, choice.criterion) == (chosen, criterion)


def test_pr_11_only_the_most_important_victims_decide_by_their_start() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
    first = [Victim(5, late), Victim(1, early)]
    second = [Victim(5, early), Victim(1, late)]
    assert choose(costs((0, second), (0, first))).place == 1


def test_pr_11_ties_are_told() -> None:
    world = stage()
    world.nodes("a", "b", "c")
    world.create(low("p", "a", "3"), low("q", "b", "3"), low("r", "c", "3", "middle"))
    for name in "pqr":
        started(world, name, 5)
    record = told(attempt(world, high()))
    assert (record.node, record.ties, record.criterion) == ("a", ("a", "b"), Criterion.ORDER)


# -- what is written -------------------------------------------------------------------------------


def test_m_5_pr_12_a_preemptor_is_nominated_and_its_message_says_nothing_of_it() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))
    made = attempt(world, high())
    assert made.message == "0/1 nodes are available: 1 Insufficient cpu."
    status = world.pod("new")["status"]
    assert status["nominatedNodeName"] == "a"
    assert status["conditions"][0]["reason"] == "Unschedulable"


def test_e_5_victims_get_a_condition_and_are_deleted_with_their_own_grace() -> None:
    world = stage()
    world.nodes("a")
    patient = merged(low("p", "a", "3").build(), {"spec": {"terminationGracePeriodSeconds": 77}})
    world.create(patient)
    attempt(world, high())
    victim = world.pod("p")
    (condition,) = [
        each for each in victim["status"]["conditions"] if each["type"] == "DisruptionTarget"
    ]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert victim["metadata"]["deletionGracePeriodSeconds"] == 77


def test_pr_13_q_17_lower_nominations_on_the_node_end_and_their_pods_try_again() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))
    first = attempt(world, low("second", cpu="2", priority="middle"))
    assert first.nominated == "a"
    world.create(low("q", "a", "1"))
    made = attempt(world, high(cpu="4"))
    assert made.nominated == "a"
    assert "nominatedNodeName" not in world.pod("second")["status"]
    assert [each.pod.name for each in world.work()] == ["second"]


def test_pr_15_who_preempted_is_bound_when_its_victims_are_gone() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "2"), low("q", "a", "2"))
    attempt(world, high(cpu="4"))
    assert world.work() == []
    world.delete("p")
    assert [each.node for each in world.work()] == [""]
    world.delete("q")
    assert [each.node for each in world.work()] == ["a"]
    assert "nominatedNodeName" not in world.pod("new")["status"]


def test_pr_15_others_of_no_higher_priority_do_not_take_the_room() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))
    attempt(world, high())
    world.delete("p")
    world.create(low("thief", cpu="2"), low("equal", cpu="2", priority="high"))
    placed = {each.pod.name: each.node for each in world.work()}
    assert placed == {"new": "a", "equal": "", "thief": ""}


def test_c_6_a_nominated_pod_takes_its_node_even_if_another_is_better() -> None:
    world = stage()
    world.nodes("a", "b")
    world.create(low("p", "a", "3"), low("q", "b", "4", "top"))
    assert attempt(world, high()).nominated == "a"
    world.delete("p")
    world.delete("q")
    assert [(each.node, each.evaluated) for each in world.work()] == [("a", 1)]


def test_e_6_a_nomination_ends_when_nobody_can_make_room_any_more() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))
    attempt(world, high())
    world.delete("p")
    world.create(low("rival", "a", "3", "top"))
    world.scheduler.queue.activate(world.scheduler.nominations.on("a"))
    assert world.work()[-1].nominated == ""
    assert "nominatedNodeName" not in world.pod("new")["status"]


def test_what_is_decided_without_effects_removes_nobody() -> None:
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"), high())
    entry = world.scheduler.queue.get(world.uid("new"))
    assert entry is not None
    decision = world.scheduler.cycle_of("default-scheduler").decide(entry.pod)
    assert (decision.nominated, [each.name for each in decision.victims]) == ("a", ["p"])
    assert terminating(world, "p") == []


def test_a_refused_deletion_lets_the_preemptor_think_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """[PR-14] The API may say no; then the pod is active again at once."""
    world = stage()
    world.nodes("a")
    world.create(low("p", "a", "3"))

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise ForbiddenError("nobody deletes here")

    monkeypatch.setattr(world.scheduler.handles["default-scheduler"].client, "delete", refuse)
    attempt(world, high())
    assert world.scheduler.queue.has_work
    assert terminating(world, "p") == []


def test_a_nominated_node_that_is_refused_again_is_counted_once() -> None:
    world = stage()
    world.nodes("a", "b", cpu="2")
    pod = merged(high(cpu="9").build(), {"status": {"nominatedNodeName": "a"}})
    assert attempt(world, pod).message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_pods_without_volumes_make_room_on_a_node_that_takes_so_many_volumes() -> None:
    world = stage()
    world.create(make_node("a").cpu("4"), csi_node("a", disk_example_com=1), storage_class())
    world.create(volume("v"), bound_claim("c", "v"), low("l", "a", cpu="4"))
    pod = merged(high().build(), {"spec": using("new", "c")["spec"]})
    pod["spec"]["containers"] = high().build()["spec"]["containers"]
    assert attempt(world, pod).nominated == "a"
