"""Pod groups: all waiting pods of a group are tried in one cycle, and rolled back together."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.kinds import POD_GROUP
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MINUTE, SECOND
from kubescene.errors import ConfigurationError, PluginError
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    Extender,
    ExtenderAnswer,
    ExtenderVerb,
    FeatureGates,
    Handle,
    PodInfo,
    Profile,
    Status,
    default_profile,
)
from kubescene.scheduler.extenders.extenders import PendingCall
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.plugins.gang_scheduling import GangScheduling
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.testing.builders import make_pod, make_priority_class
from kubescene.types import JsonObject
from scheduler.staging import POD, Stage, with_plugins

GANGS = {"GenericWorkload": True, "GangScheduling": True}
GATES = FeatureGates.of(GANGS)
WITHOUT_GANGS = FeatureGates.of({"GenericWorkload": True})
TOO_FEW = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def group(name: str, policy: JsonObject) -> JsonObject:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    }


def gang(name: str, minimum: int) -> JsonObject:
    return group(name, {"gang": {"minCount": minimum}})


def members(of: str, *names: str, cpu: str = "2", **spec: Any) -> list[JsonObject]:
    pods = [make_pod(name).cpu(cpu).build() for name in names]
    grouped = {"schedulingGroup": {"podGroupName": of}, **spec}
    return [{**pod, "spec": {**pod["spec"], **grouped}} for pod in pods]


def stage(*plugins: type, gates: FeatureGates = GATES, **options: Any) -> Stage:
    options.setdefault("profiles", (profile(gates, *plugins),))
    world = Stage(*plugins, feature_gates=gates, **options)
    world.create(make_priority_class("high", 10))
    return world


def profile(gates: FeatureGates, *plugins: type, name: str = "") -> Profile:
    if not plugins:
        return default_profile(name or "default-scheduler", gates)
    return with_plugins({each.__name__: each for each in (*plugins, GangScheduling)}, name)


def condition(world: Stage, name: str) -> JsonObject:
    status = world.client.get(ObjectRef(POD_GROUP, name, "default")).get("status") or {}
    [found] = status["conditions"]
    return {key: found[key] for key in ("type", "status", "reason", "message")}


def message(world: Stage, name: str) -> str:
    text: str = world.pod(name)["status"]["conditions"][0]["message"]
    return text


def went(world: Stage) -> list[str]:
    """Who was attempted, and where they went, by name."""
    return sorted(f"{each.pod.name}:{each.node}" for each in world.work())


def table(world: Stage) -> dict[str, Any]:
    nodes = world.scheduler.nodes
    nodes.refresh()
    return {
        info.name: ([pod.name for pod in info.pods], dict(info.requested), info.nonzero_cpu)
        for info in nodes.infos
    }


# -- gangs --------------------------------------------------------------------------------------


def test_a_gang_waits_until_it_is_complete_and_then_goes_together() -> None:
    world = stage()
    world.nodes("n1", "n2")
    world.create(gang("job", 3))
    assert world.place(*members("job", "a", "b")) == []
    world.create(*members("job", "c"))
    assert went(world) == ["a:n2", "b:n1", "c:n1"]
    assert condition(world, "job") == {
        "type": "PodGroupScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
    }


def test_members_are_bound_in_the_order_in_which_they_were_tried() -> None:
    world = stage()
    world.nodes("n1")
    world.create(gang("job", 3), *members("job", "a", "b", "c", cpu="1"))
    assert [each.pod.name for each in world.work()] == ["c", "a", "b"]


def test_every_member_counts_once() -> None:
    world = stage()
    world.nodes("n1", "n2")
    world.create(gang("job", 2), *members("job", "a", "b", "c"))
    world.work()
    known = world.scheduler.pod_groups.get("default", "job")
    assert (len(known), known.scheduled, known.assumed, known.unscheduled()) == (3, 3, [], [])
    world.delete("a")
    assert (len(known), known.scheduled) == (2, 2)


def test_pods_of_another_scheduler_do_not_count_until_they_have_a_node() -> None:
    world = stage()
    world.nodes("n1")
    world.create(gang("job", 2), *members("job", "foreign", schedulerName="other"))
    assert world.place(*members("job", "a")) == []
    world.client.bind(ObjectRef(POD, "foreign", "default"), "n1")
    assert went(world) == ["a:n1"]


def test_pods_wait_for_their_group_to_appear() -> None:
    world = stage()
    world.nodes("n1")
    assert world.place(*members("job", "a")) == []
    assert world.place(gang("job", 1)) == ["a:n1"]


def test_a_gang_that_does_not_fit_gets_no_node_at_all() -> None:
    world = stage()
    world.nodes("n1")
    world.create(gang("job", 3), *members("job", "a", "b", "c"))
    before = table(world)
    assert went(world) == ["a:", "b:", "c:"]
    assert table(world) == before
    assert [message(world, "a"), message(world, "c")] == [TOO_FEW, TOO_FEW]
    assert message(world, "b").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert condition(world, "job") == {
        "type": "PodGroupScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "pod group is unschedulable",
    }


def test_members_beyond_the_minimum_may_stay_behind() -> None:
    world = stage()
    world.nodes("n1")
    world.create(gang("job", 2), *members("job", "a", "b", "c"))
    assert [each.rpartition(":")[2] for each in went(world)].count("n1") == 2
    assert condition(world, "job")["status"] == "True"


def test_a_group_that_was_scheduled_once_stays_so() -> None:
    world = stage()
    world.nodes("n1")
    world.create(gang("job", 2), *members("job", "a", "b"))
    world.work()
    world.create(*members("job", "late"))
    assert went(world) == ["late:"]
    assert condition(world, "job")["status"] == "True"


def test_pods_of_several_gangs_do_not_count_for_each_other() -> None:
    world = stage()
    world.nodes("n1", "n2")
    world.create(gang("one", 2), gang("two", 2))
    assert world.place(*members("one", "a"), *members("two", "b")) == []
    world.create(*members("two", "c"))
    assert went(world) == ["b:n2", "c:n1"]


def test_a_pod_that_goes_is_missed() -> None:
    world = stage()
    world.nodes("n1")
    world.create(gang("job", 2), *members("job", "a"))
    world.delete("a")
    assert world.place(*members("job", "b")) == []


def test_members_are_tried_by_priority_and_then_as_they_became_ready() -> None:
    world = stage()
    world.create(gang("job", 4))
    world.create(*members("job", "a", "b"))
    world.create(*members("job", "high", priorityClassName="high"))
    world.nodes("n1")
    world.create(*members("job", "last"))
    assert [each.pod.name for each in world.work()] == ["high", "last", "a", "b"]


def test_a_gated_member_counts_but_is_not_tried() -> None:
    world = stage()
    world.nodes("n1")
    [gated] = members("job", "gated", schedulingGates=[{"name": "wait"}])
    world.create(gang("job", 2), gated)
    world.create(*members("job", "a"))
    assert went(world) == ["a:"]
    assert message(world, "a") == TOO_FEW


# -- after a failure ---------------------------------------------------------------------------


def test_a_rejected_gang_waits_for_the_clock_even_if_the_scheduler_is_idle() -> None:
    world = stage()
    world.nodes("n1", cpu="1")
    world.create(gang("job", 1), *members("job", "a"))
    assert len(world.work()) == 1
    world.pass_time(SECOND)
    assert world.work() == []
    world.pass_time(SECOND)
    assert len(world.work()) == 1


def test_it_is_tried_again_although_nothing_has_happened() -> None:
    """What helps one pod may not help its group: upstream tells no events apart for groups."""
    world = stage()
    world.nodes("n1", cpu="1")
    world.create(gang("job", 1), *members("job", "a"))
    world.work()
    assert [pod.name for pod in world.scheduler.queue.waiting(Place.ERROR_BACKOFF)] == ["a"]
    world.nodes("n2")
    world.pass_time(2 * SECOND)
    assert went(world) == ["a:n2"]


def test_without_early_pops_a_rejected_pod_waits_for_the_end_of_its_backoff() -> None:
    gates = FeatureGates.of({"SchedulerPopFromBackoffQ": False})
    for each, attempts in ((FeatureGates(), 1), (gates, 0)):
        world = stage(gates=each)
        world.nodes("n1", cpu="1")
        world.create(make_pod("a").cpu("2"))
        world.work()
        world.nodes("n2")
        assert len(world.work()) == attempts
    world.pass_time(2 * SECOND)
    assert went(world) == ["a:n2"]


# -- groups that are no gangs --------------------------------------------------------------------


@pytest.mark.parametrize("gates", [GATES, WITHOUT_GANGS], ids=["gangs", "no gangs"])
def test_a_group_without_a_minimum_gets_what_there_is(gates: FeatureGates) -> None:
    world = stage(gates=gates)
    world.nodes("n1")
    world.create(group("job", {"basic": {}}), *members("job", "a", "b", "c"))
    assert [each.rpartition(":")[2] for each in went(world)].count("n1") == 2
    assert condition(world, "job")["reason"] == "Scheduled"


def test_without_the_gate_groups_mean_nothing() -> None:
    world = stage(gates=FeatureGates())
    world.nodes("n1")
    world.create(gang("job", 9), *members("job", "a"))
    assert went(world) == ["a:n1"]


def test_the_plugin_cannot_be_had_without_the_gate() -> None:
    with pytest.raises(ConfigurationError, match="needs the feature gates GenericWorkload"):
        stage(gates=FeatureGates(), profiles=(with_plugins({"GangScheduling": GangScheduling}),))


def test_all_pods_of_a_group_have_one_scheduler() -> None:
    profiles = (profile(GATES), profile(GATES, name="other"))
    world = stage(profiles=profiles)
    world.nodes("n1")
    world.create(gang("job", 2), *members("job", "a"))
    world.create(*members("job", "b", schedulerName="other"))
    assert went(world) == ["a:", "b:"]
    assert message(world, "a") == (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "default-scheduler" and "other"'
    )


# -- preemption ----------------------------------------------------------------------------------


def test_a_gang_that_has_to_preempt_is_nominated_as_a_whole() -> None:
    world = stage()
    world.nodes("n1", "n2", cpu="2")
    world.place(make_pod("low").cpu("2"))
    world.create(gang("job", 2), *members("job", "a", "b", priorityClassName="high"))
    first = world.work()
    assert [(each.pod.name, each.nominated) for each in first] == [("b", "n2"), ("a", "n1")]
    assert [victim.name for each in first for victim in each.victims] == ["low"]
    waiting = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert message(world, "b") == waiting
    assert condition(world, "job")["message"] == waiting
    world.delete("low")
    world.pass_time(MINUTE)
    assert went(world) == ["a:n1", "b:n2"]


def test_who_finds_a_node_waits_for_mates_that_have_to_preempt() -> None:
    world = stage()
    world.nodes("n1", cpu="4")
    world.place(make_pod("low").cpu("4"))
    world.nodes("n2", cpu="1")
    world.create(gang("job", 2), *members("job", "small", cpu="1", priorityClassName="high"))
    world.create(*members("job", "large", cpu="4", priorityClassName="high"))
    attempts = world.work()
    assert [(each.pod.name, each.node, each.nominated) for each in attempts] == [
        ("large", "", "n1"),
        ("small", "", "n2"),
    ]
    assert condition(world, "job")["message"].endswith("waiting for preemption to complete")


def test_members_that_would_preempt_do_not_take_room_twice() -> None:
    world = stage()
    world.nodes("n1", cpu="2")
    world.place(make_pod("low").cpu("2"))
    world.create(gang("job", 2), *members("job", "a", "b", priorityClassName="high"))
    before = table(world)
    [b, a] = world.work()
    assert (b.nominated, a.nominated) == ("", "")
    assert message(world, "b") == TOO_FEW
    # As upstream, victims go as soon as one member has chosen them, also if the group fails.
    assert [victim.name for victim in b.victims] == ["low"]
    assert before["n1"][0] == ["low"]
    assert not world.scheduler.nominations


# -- what may go wrong ---------------------------------------------------------------------------


class Reserving:
    """Notes what is reserved, and refuses, fails or raises by the name of the pod."""

    name = "Reserving"

    def __init__(self, handle: Handle) -> None:
        self.held: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        if pod.name == "raises":
            raise ValueError("no idea")
        if pod.name == "fails":
            return Status.error("broken")
        if pod.name == "refused":
            return Status.unschedulable("not you")
        self.held.append(pod.name)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        if pod.name in self.held:
            self.held.remove(pod.name)


def test_an_error_of_one_member_fails_all() -> None:
    world = stage(Reserving)
    world.nodes("n1", "n2")
    world.create(gang("job", 3), *members("job", "a", "fails", "z"))
    assert went(world) == ["a:", "fails:", "z:"]
    own = 'running Reserve plugin "Reserving": broken'
    shared = f"failed to schedule other pod from a pod group: {own}"
    assert [message(world, name) for name in ("a", "fails", "z")] == [shared, own, shared]
    assert condition(world, "job")["reason"] == "SchedulerError"
    assert condition(world, "job")["message"] == shared
    assert world.plugin("Reserving").held == []
    assert table(world)["n1"][0] == table(world)["n2"][0] == []


def test_a_refusal_of_one_member_may_be_none_of_the_others_business() -> None:
    world = stage(Reserving)
    world.nodes("n1", "n2")
    world.create(gang("job", 2), *members("job", "a", "refused", "z"))
    # While the others wait for each other at Permit, they wake whoever is missing.
    assert went(world) == ["a:n1", "refused:", "refused:", "z:n2"]
    assert message(world, "refused") == "0/1 nodes are available: 1 not you."


def test_a_plugin_that_raises_fails_the_group_and_the_run_goes_on() -> None:
    world = stage(Reserving)
    world.nodes("n1", "n2")
    world.create(gang("job", 3), *members("job", "a", "raises", "z"))
    before = table(world)
    attempts = {each.pod.name: each for each in world.work()}
    assert {name: each.reason for name, each in attempts.items()} == dict.fromkeys(
        ("a", "raises", "z"), "SchedulerError"
    )
    assert attempts["raises"].message.endswith("ValueError: no idea")
    assert attempts["raises"].traceback.endswith("ValueError: no idea\n")
    assert attempts["a"].message.startswith("failed to schedule other pod from a pod group: ")
    assert attempts["a"].traceback == ""
    assert condition(world, "job")["reason"] == "SchedulerError"
    assert table(world) == before
    assert world.plugin("Reserving").held == []
    assert world.place(make_pod("other").cpu("1")) == ["other:n1"]


class Filtering(Reserving):
    """Raises while a node is looked for."""

    name = "Filtering"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.held.append(pod.name)
        return SUCCESS

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: Any
    ) -> tuple[Status, frozenset[str] | None]:
        if pod.name == "raises":
            raise ValueError("no idea")
        return SUCCESS, None


def test_a_plugin_that_raises_in_the_search_of_one_member_fails_the_group() -> None:
    world = stage(Filtering)
    world.nodes("n1", "n2")
    world.create(gang("job", 3), *members("job", "a", "raises", "z"))
    attempts = {each.pod.name: each for each in world.work()}
    assert sorted(attempts) == ["a", "raises", "z"]
    assert attempts["raises"].traceback.endswith("ValueError: no idea\n")
    assert world.plugin("Filtering").held == []


class Unreserving(Reserving):
    """Raises when it is to give back what it holds for one pod."""

    name = "Unreserving"

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        if pod.name == "stuck":
            raise ValueError("no idea")
        super().unreserve(state, pod, node)


@pytest.mark.parametrize("errors", PluginErrors)
def test_a_plugin_that_does_not_give_back_keeps_no_node_from_others(errors: PluginErrors) -> None:
    world = stage(Unreserving, plugin_errors=errors)
    world.nodes("n1", "n2")
    world.create(gang("job", 4), *members("job", "a", "b", "fails", "stuck"))
    before = table(world)
    try:
        attempts = {each.pod.name: each for each in world.work()}
        assert attempts["stuck"].traceback.endswith("ValueError: no idea\n")
    except PluginError:
        assert errors is PluginErrors.STOP
    assert table(world) == before
    assert world.plugin("Unreserving").held == ["stuck"]
    waiting = world.scheduler.queue.waiting(Place.ERROR_BACKOFF)
    assert sorted(pod.name for pod in waiting) == ["a", "b", "fails", "stuck"]


class Naming(Reserving):
    """Notes the nodes that it is told of."""

    name = "Naming"

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.held.append(f"+{node}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.held.append(f"-{node}")


def test_a_member_that_would_preempt_is_reserved_on_the_node_it_would_get() -> None:
    world = stage(Naming)
    world.nodes("n1")
    world.place(make_pod("low").cpu("4"))
    world.plugin("Naming").held.clear()
    world.create(gang("job", 1), *members("job", "a", priorityClassName="high"))
    world.scheduler.run_once()
    assert world.plugin("Naming").held == ["+n1", "-n1"]


def test_a_plugin_that_raises_loses_nobody() -> None:
    world = stage(Reserving, plugin_errors=PluginErrors.STOP)
    world.nodes("n1", "n2")
    world.create(gang("job", 3), *members("job", "a", "raises", "z"))
    nominated = {"status": {"nominatedNodeName": "n2"}}
    world.client.patch(ObjectRef(POD, "z", "default"), nominated, subresource="status")
    before = table(world)
    with pytest.raises(PluginError, match="no idea"):
        world.work()
    assert table(world) == before
    assert [pod.name for pod in world.scheduler.nominations.on("n2")] == ["z"]
    waiting = world.scheduler.queue.waiting(Place.ERROR_BACKOFF)
    assert sorted(pod.name for pod in waiting) == ["a", "raises", "z"]


class Binding:
    """Raises in PreBind of one pod."""

    name = "Binding"

    def __init__(self, handle: Handle) -> None:
        del handle

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        if pod.name == "raises":
            raise ValueError("no idea")
        return SUCCESS


def test_an_exception_after_the_trial_loses_nobody_either() -> None:
    world = stage(Reserving, Binding, plugin_errors=PluginErrors.STOP)
    world.nodes("n1", "n2")
    world.create(gang("job", 3), *members("job", "a", "raises"))
    world.create(*members("job", "z"))
    with pytest.raises(PluginError, match="no idea"):
        world.work()
    waiting = world.scheduler.queue.waiting(Place.ERROR_BACKOFF)
    placed = [name for names, *_ in table(world).values() for name in names]
    assert sorted([*placed, *(pod.name for pod in waiting)]) == ["a", "raises", "z"]
    assert "raises" not in placed
    assert sorted(world.plugin("Reserving").held) == sorted(placed)


class Later:
    """Carries calls, and lets the test answer them."""

    def __init__(self) -> None:
        self.pending: list[PendingCall] = []

    def call(self, pending: PendingCall) -> None:
        self.pending.append(pending)


def test_a_group_stands_still_while_an_extender_thinks() -> None:
    later = Later()
    extenders = (Extender("slow", frozenset({ExtenderVerb.FILTER})),)
    world = stage(extenders=extenders, extender_caller=later)
    world.nodes("n1", "n2")
    world.create(gang("job", 2), *members("job", "a", "b"))
    world.create(make_pod("other").cpu("1"))
    while True:
        world.work()
        open_calls = [each for each in later.pending if not each.answered]
        if not open_calls:
            break
        [call] = open_calls
        call.answer(ExtenderAnswer(nodes=call.call.nodes))
    asked = [each.call.pod.name for each in later.pending]
    assert asked == ["b", "a", "other"]
    assert sorted(each.pod.name for each in world.attempts.made if each.node) == ["a", "b", "other"]


def test_a_world_can_be_copied_while_a_gang_waits() -> None:
    later = Later()
    extenders = (Extender("slow", frozenset({ExtenderVerb.FILTER})),)
    world = stage(extenders=extenders, extender_caller=later)
    world.nodes("n1", "n2")
    world.create(gang("job", 2), *members("job", "a", "b"))
    world.work()
    later.pending[0].answer(ExtenderAnswer(nodes=("n1",)))
    world.work()
    # One member is assumed on its node, the other one waits for its answer.
    twin = copy.deepcopy(world)
    assert table(twin)["n1"][0] == ["b"]
    twin.delete("b")
    assert twin.work() == []
    assert table(world)["n1"][0] == ["b"]


# -- a trial leaves nothing behind ---------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    wants=st.lists(st.integers(1, 4), min_size=2, max_size=6),
    placed=st.lists(st.integers(1, 3), max_size=4),
)
def test_a_gang_is_placed_as_a_whole_or_the_nodes_are_as_before(
    sizes: list[int], wants: list[int], placed: list[int]
) -> None:
    world = stage()
    for number, size in enumerate(sizes):
        world.nodes(f"n{number}", cpu=str(size))
    for number, cpu in enumerate(placed):
        world.place(make_pod(f"p{number}").cpu(str(cpu)))
    before = table(world)
    world.create(gang("job", len(wants)))
    for number, cpu in enumerate(wants):
        world.create(*members("job", f"g{number}", cpu=str(cpu)))
    nodes = {each.pod.name: each.node for each in world.work() if each.pod.name[0] == "g"}
    assert len(nodes) == len(wants)
    if all(nodes.values()):
        assert condition(world, "job")["status"] == "True"
    else:
        assert not any(nodes.values())
        assert table(world) == before
    assert not world.scheduler.waiting_pods.has_ready
    assert len(world.scheduler.waiting_pods) == 0
