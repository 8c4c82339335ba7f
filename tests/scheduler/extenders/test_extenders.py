"""Extenders that answer at once, and extenders that take their time."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kubescene.api.records import Record, make_record, versioned
from kubescene.api.scheme import GroupResource
from kubescene.client.interfaces import ObjectRef
from kubescene.control.loops import IDLE
from kubescene.errors import ConfigurationError
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderVerb,
    FilterDiagnosis,
    Handle,
    PendingCall,
    PodInfo,
    PostFilterResult,
    Status,
)
from kubescene.scheduler.framework.informers import NODE, POD
from kubescene.scheduler.state.pods import PodClasses
from kubescene.testing.builders import make_pod
from scheduler.staging import Stage

FILTER = frozenset({ExtenderVerb.FILTER})
E = Extender("e", frozenset())
Answering = Callable[[ExtenderCall], ExtenderAnswer]


class AtOnce:
    """Answers before it returns, as a plain run does."""

    def __init__(self, answering: Answering) -> None:
        self.answering = answering
        self.calls: list[ExtenderCall] = []

    def call(self, pending: PendingCall) -> None:
        self.calls.append(pending.call)
        pending.answer(self.answering(pending.call))


class Later:
    """Collects calls; somebody answers them when it suits."""

    def __init__(self) -> None:
        self.pending: list[PendingCall] = []

    def call(self, pending: PendingCall) -> None:
        self.pending.append(pending)


def only(*nodes: str, **failed: str) -> Answering:
    """Passes some of the nodes it is asked about."""

    def answer(call: ExtenderCall) -> ExtenderAnswer:
        return ExtenderAnswer(nodes=tuple(n for n in call.nodes if n in nodes), failed=failed)

    return answer


def gpu_pod() -> dict[str, Any]:
    """A pod that mentions a managed resource without asking for any."""
    pod = make_pod("gpu").build()
    amounts = {"example.com/gpu": "0"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return pod


def stage(
    caller: Any, *extenders: Extender, plugins: tuple[type, ...] = (), nodes: str = "abc"
) -> Stage:
    made = Stage(*plugins, extenders=extenders, extender_caller=caller)
    made.nodes(*nodes)
    return made


def test_an_extender_narrows_the_nodes() -> None:
    caller = AtOnce(only("b"))
    world = stage(caller, Extender("e", FILTER))
    assert world.place(make_pod("p")) == ["p:b"]
    (call,) = caller.calls
    assert (call.extender.name, call.verb, call.pod.name) == ("e", "filter", "p")
    assert call.nodes == ("a", "b", "c")


def test_extenders_are_asked_in_turn_about_what_is_left() -> None:
    caller = AtOnce(lambda call: ExtenderAnswer(nodes=call.nodes[1:]))
    world = stage(caller, Extender("i", FILTER, ignorable=True), Extender("e", FILTER))
    assert world.place(make_pod("p")) == ["p:c"]
    asked = [(call.extender.name, call.nodes) for call in caller.calls]
    assert asked == [("e", ("a", "b", "c")), ("i", ("b", "c"))]


def test_who_is_refused_by_an_extender_waits_for_any_event() -> None:
    answers = ExtenderAnswer(failed={"a": "full", "b": "full"}, unresolvable={"c": "broken"})
    caller = AtOnce(lambda call: answers)
    world = stage(caller, Extender("e", FILTER))
    world.create(make_pod("p"))
    attempt = world.work()[0]
    assert attempt.message.startswith("0/3 nodes are available: 1 broken, 2 full.")
    assert attempt.plugins == ("Extender",)
    world.create(make_pod("other").on("a"))
    assert [each.pod.name for each in world.work()] == ["p"]


def test_a_node_dropped_without_a_word_is_not_in_the_message() -> None:
    world = stage(AtOnce(only()), Extender("e", FILTER))
    world.create(make_pod("p"))
    attempt = world.work()[0]
    assert attempt.message.startswith("0/3 nodes are available: no new claims")
    assert attempt.plugins == ("Extender",)


@pytest.mark.parametrize("ignorable", [True, False])
def test_an_extender_that_fails_is_ignored_or_not(ignorable: bool) -> None:
    caller = AtOnce(lambda call: ExtenderAnswer(error="out of order"))
    world = stage(caller, Extender("e", FILTER, ignorable=ignorable))
    world.create(make_pod("p"))
    (attempt,) = world.work()
    expected = ("a", "", "") if ignorable else ("", "SchedulerError", "out of order")
    assert (attempt.node, attempt.reason, attempt.message) == expected


def test_an_extender_that_invents_nodes_fails_the_attempt() -> None:
    world = stage(AtOnce(lambda call: ExtenderAnswer(nodes=("x",))), Extender("e", FILTER))
    world.create(make_pod("p"))
    (attempt,) = world.work()
    text = 'extender "e" claims a filtered node "x" which is not found in the input node list'
    assert (attempt.reason, attempt.message) == ("SchedulerError", text)


def test_x_4_whole_nodes_that_it_was_not_asked_about_are_taken_if_they_exist() -> None:
    caller = AtOnce(lambda call: ExtenderAnswer(nodes=("a",), bare=True))
    world = stage(caller, Extender("e", FILTER, node_cache_capable=False))
    world.client.patch(ObjectRef(NODE, "a"), {"spec": {"unschedulable": True}})
    assert world.place(make_pod("p")) == ["p:a"]
    assert caller.calls[0].nodes == ("b", "c")


@pytest.mark.parametrize(("score", "weight"), [(2**64, 1), (2**63 - 1, 7), (3, 2**60)])
def test_x_8_numbers_that_are_too_large_wrap_around_as_in_go(score: int, weight: int) -> None:
    verbs = frozenset({ExtenderVerb.PRIORITIZE})
    caller = AtOnce(lambda call: ExtenderAnswer(scores={"c": score}))
    world = stage(caller, Extender("e", verbs, weight=weight))
    world.create(make_pod("p"))
    (attempt,) = world.work()
    assert attempt.explanation is not None
    totals = list(attempt.explanation.totals)
    added = (score * weight * 10 + 2**63) % 2**64 - 2**63
    assert totals[2] - totals[0] == added


def test_scores_of_extenders_count_ten_times_their_weight() -> None:
    verbs = frozenset({ExtenderVerb.PRIORITIZE})
    caller = AtOnce(lambda call: ExtenderAnswer(scores={"c": 7}))
    world = stage(caller, Extender("e", verbs, weight=3))
    world.create(make_pod("p"))
    (attempt,) = world.work()
    assert attempt.node == "c"
    assert attempt.explanation is not None
    totals = list(attempt.explanation.totals)
    assert totals[2] - totals[0] == 210


def test_ties_are_broken_by_chance_where_an_extender_has_a_say() -> None:
    everything = AtOnce(lambda call: ExtenderAnswer(nodes=call.nodes))
    world = stage(everything, Extender("e", FILTER), nodes="abcdefgh")
    placed = world.place(*(make_pod(f"p{number}").cpu("0") for number in range(4)))
    again = stage(everything, Extender("e", FILTER), nodes="abcdefgh")
    pods = [make_pod(f"p{number}").cpu("0") for number in range(4)]
    assert placed == again.place(*pods)
    assert placed != stage(None, nodes="abcdefgh").place(*pods)


def test_plain_pods_do_not_know_of_extenders_for_others() -> None:
    caller = AtOnce(only("b"))
    extender = Extender("e", FILTER, managed_resources=frozenset({"example.com/gpu"}))
    world = stage(caller, extender)
    assert world.place(make_pod("plain")) == ["plain:a"]
    assert caller.calls == []
    assert world.place(gpu_pod()) == ["gpu:b"]
    assert [call.pod.name for call in caller.calls] == ["gpu"]


def test_a_cycle_that_waits_for_an_extender_keeps_its_turn() -> None:
    caller = Later()
    world = stage(caller, Extender("e", FILTER))
    assert world.place(make_pod("p"), make_pod("q")) == []
    assert world.scheduler.run_once() == IDLE
    (first,) = caller.pending
    # Meanwhile the world is served: an extender may call back, and others may write.
    world.create(make_pod("other").on("a"))
    assert world.work() == []
    first.answer(ExtenderAnswer(nodes=("c",)))
    assert [(each.pod.name, each.node) for each in world.work()] == [("p", "c")]
    caller.pending[1].answer(ExtenderAnswer(nodes=("c", "b")))
    assert [each.pod.name for each in world.work()] == ["q"]
    assert len(caller.pending) == 2


def test_an_answer_wakes_the_scheduler() -> None:
    woken: list[int] = []
    pending = PendingCall(ExtenderCall(E, ExtenderVerb.FILTER, None), lambda: woken.append(1))  # type: ignore[arg-type]
    pending.answer(ExtenderAnswer())
    assert woken == [1]


@pytest.mark.parametrize("gone", ["deleted", "bound"])
def test_an_answer_for_a_pod_that_needs_none_any_more_changes_nothing(gone: str) -> None:
    caller = Later()
    world = stage(caller, Extender("e", FILTER))
    world.place(make_pod("p"))
    if gone == "deleted":
        world.delete("p")
    else:
        world.cluster.registry.bind(
            world.scheduler.handles["default-scheduler"].client.actor,
            "default",
            "p",
            {"target": {"kind": "Node", "name": "b"}},
        )
    caller.pending[0].answer(ExtenderAnswer(nodes=("c",)))
    assert world.work() == []
    pods = dict(zip("abc", world.scheduler.nodes.requested("pods").tolist(), strict=True))
    assert pods == {"a": 0, "b": int(gone == "bound"), "c": 0}


def test_a_world_can_be_copied_while_an_extender_thinks() -> None:
    caller = Later()
    world = stage(caller, Extender("e", FILTER))
    world.place(make_pod("p"))
    child = copy.deepcopy(world)
    theirs: Any = child.scheduler.extenders._caller
    theirs.pending[0].answer(ExtenderAnswer(nodes=("b",)))
    assert [each.node for each in child.work()] == ["b"]
    assert world.work() == []
    caller.pending[0].answer(ExtenderAnswer(nodes=("c",)))
    assert [each.node for each in world.work()] == ["c"]


class Bindings:
    """Binds pods through the API, in place of the scheduler."""

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.pending: list[PendingCall] = []

    def call(self, pending: PendingCall) -> None:
        self.pending.append(pending)

    def answer(self, world: Stage) -> None:
        pending = self.pending.pop()
        pod, node = pending.call.pod, pending.call.nodes[0]
        if not self.error:
            body = {"target": {"kind": "Node", "name": node}}
            world.cluster.registry.bind(
                world.scheduler.handles["default-scheduler"].client.actor, "default", pod.name, body
            )
        pending.answer(ExtenderAnswer(error=self.error))


BIND = frozenset({ExtenderVerb.BIND})


def test_an_extender_can_bind_and_others_are_placed_meanwhile() -> None:
    caller = Bindings()
    extender = Extender("e", BIND, managed_resources=frozenset({"example.com/gpu"}))
    world = stage(caller, extender)
    assert world.place(gpu_pod(), make_pod("plain")) == ["plain:b"]
    caller.answer(world)
    assert [(each.pod.name, each.node) for each in world.work()] == [("gpu", "a")]
    assert world.pod("gpu")["spec"]["nodeName"] == "a"
    assert world.scheduler.nodes.requested("pods").tolist() == [1, 1, 0]


@pytest.mark.parametrize("ignorable", [True, False])
def test_a_binder_that_fails_is_ignored_or_not(ignorable: bool) -> None:
    caller = Bindings("no way")
    world = stage(caller, Extender("e", BIND, ignorable=ignorable))
    world.place(make_pod("p"))
    caller.answer(world)
    (attempt,) = world.work()
    expected = ("a", "") if ignorable else ("", "no way")
    assert (attempt.node, attempt.message) == expected
    assert sum(world.scheduler.nodes.requested("pods").tolist()) == int(ignorable)


class Asking:
    """A PostFilter that asks an extender which of two victims is the better one."""

    name = "Asking"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult | ExtenderCall:
        victims = {info.name: tuple(info.pods) for info in self.handle.nodes.infos}
        return ExtenderCall(E, ExtenderVerb.PREEMPT, pod, victims=victims)

    def post_filter_answered(
        self,
        state: CycleState,
        pod: PodInfo,
        diagnosis: FilterDiagnosis,
        answer: ExtenderAnswer,
    ) -> PostFilterResult | ExtenderCall:
        if answer.error:
            return PostFilterResult(Status.error(answer.error))
        (node,) = answer.victims
        return PostFilterResult(SUCCESS, node)


def test_a_post_filter_plugin_can_ask_an_extender() -> None:
    caller = Later()
    verbs = frozenset({ExtenderVerb.PREEMPT})
    world = stage(caller, Extender("e", verbs), plugins=(Asking,), nodes="ab")
    world.create(make_pod("x").cpu("4").on("a"), make_pod("y").cpu("4").on("b"))
    assert world.place(make_pod("p").cpu("4")) == []
    (pending,) = caller.pending
    assert [pod.name for pod in pending.call.victims["b"]] == ["y"]
    pending.answer(ExtenderAnswer(victims={"b": (world.uid("y"),)}))
    (attempt,) = world.work()
    assert attempt.nominated == "b"


def test_pr_10_an_extender_leaves_fewer_nodes_to_preempt_on() -> None:
    def keep_b(call: ExtenderCall) -> ExtenderAnswer:
        return ExtenderAnswer(victims={"b": tuple(pod.uid for pod in call.victims["b"])})

    caller = AtOnce(keep_b)
    verbs = frozenset({ExtenderVerb.PREEMPT})
    world = stage(caller, Extender("e", verbs), nodes="ab")
    # On b two pods would have to go, on a one.
    world.create(make_pod("a1").cpu("4").on("a"))
    world.create(*(make_pod(name).cpu("2").on("b") for name in ("b1", "b2")))
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    world.create({**kind, "metadata": {"name": "high"}, "value": 1000})
    world.create(make_pod("p").cpu("4").priority_class("high"))
    attempt = world.work()[0]
    assert sorted(caller.calls[0].victims) == ["a", "b"]
    assert attempt.nominated == "b"


@pytest.mark.parametrize(
    ("victims", "message"),
    [
        ({"a": (), "gone": ()}, 'nodeinfo not found for node name "gone"'),
        ({"gone": ()}, 'nodeinfo not found for node name "gone"'),
        ({"a": (), "b": ("nobody",)}, "claims to preempt pod (UID: &{nobody}) on node: b"),
        ({"b": ()}, 'expected at least one victim pod on node "b"'),
    ],
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_x_9_victims_are_looked_up_before_they_are_counted(
    victims: dict[str, tuple[str, ...]], message: str, ignorable: bool
) -> None:
    caller = AtOnce(lambda call: ExtenderAnswer(victims=victims))
    verbs = frozenset({ExtenderVerb.PREEMPT})
    world = stage(caller, Extender("e", verbs, ignorable=ignorable), nodes="ab")
    world.create(make_pod("a1").cpu("4").on("a"), make_pod("b1").cpu("4").on("b"))
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    world.create({**kind, "metadata": {"name": "high"}, "value": 1000})
    world.create(make_pod("p").cpu("4").priority_class("high"))
    attempt = world.work()[0]
    if not ignorable:
        assert message in attempt.message
    elif victims == {"b": ()}:
        assert "preemption: no candidate node for preemption" in attempt.message
    else:  # An answer that makes no sense is none: all stays as it was offered.
        assert attempt.nominated in ("a", "b")


def test_bad_configurations_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="nobody who calls them"):
        stage(None, Extender("e", FILTER))
    with pytest.raises(ConfigurationError, match="only one extender can implement bind"):
        stage(Later(), Extender("e", BIND), Extender("f", BIND))


def test_a_decision_without_effects_cannot_wait() -> None:
    world = stage(Later(), Extender("e", FILTER))
    world.create(make_pod("p"))
    entry = world.scheduler.queue.get(world.uid("p"))
    assert entry is not None
    with pytest.raises(ConfigurationError, match="an extender answers later"):
        world.scheduler.cycle_of("default-scheduler").decide(entry.pod)


# -- rules that one would not guess ------------------------------------------------------------


def test_c_15_a_rated_node_wins_over_an_equal_one_that_is_not() -> None:
    verbs = frozenset({ExtenderVerb.PRIORITIZE})
    caller = AtOnce(lambda call: ExtenderAnswer(scores={"c": 0}))
    world = stage(caller, Extender("e", verbs))
    assert world.place(make_pod("p")) == ["p:c"]


def test_c_15_if_no_equal_node_is_rated_the_heap_decides() -> None:
    verbs = frozenset({ExtenderVerb.PRIORITIZE})
    world = stage(AtOnce(lambda call: ExtenderAnswer(error="no")), Extender("e", verbs))
    assert world.place(make_pod("p")) == ["p:a"]


def test_m_9_what_an_extender_says_of_other_nodes_counts_too() -> None:
    failed = {"a": "no", "b": "no", "c": "no", "ghost": "never heard of it"}
    world = stage(AtOnce(lambda call: ExtenderAnswer(failed=failed)), Extender("e", FILTER))
    world.create(make_pod("p"))
    attempt = world.work()[0]
    text = "0/3 nodes are available: 1 never heard of it, 3 no."
    assert attempt.message.startswith(text)


def test_x_5_nodes_that_come_back_whole_are_rated_as_empty() -> None:
    for bare in (False, True):
        caller = AtOnce(lambda call, bare=bare: ExtenderAnswer(nodes=call.nodes, bare=bare))  # type: ignore[misc]
        world = stage(caller, Extender("e", FILTER, node_cache_capable=False), nodes="ab")
        world.create(make_pod("old").cpu("3").memory("4Gi").on("a"))
        world.create(make_pod("new").cpu("1"))
        (attempt,) = world.work()
        assert attempt.explanation is not None
        totals = list(attempt.explanation.totals)
        assert bool(totals[0] == totals[1]) is bare


def test_x_7_a_second_pod_like_the_first_is_asked_about_too() -> None:
    caller = AtOnce(lambda call: ExtenderAnswer(nodes=call.nodes if len(caller.calls) > 1 else ()))
    world = stage(caller, Extender("e", FILTER))
    world.create(make_pod("p"), make_pod("q"))
    assert [bool(each.node) for each in world.work()][:2] == [False, True]


def test_x_6_an_error_about_the_nominated_node_leaves_the_others() -> None:
    def answer(call: ExtenderCall) -> ExtenderAnswer:
        if call.nodes == ("a",):
            return ExtenderAnswer(error="out of order", bare=True)
        return ExtenderAnswer(nodes=call.nodes)

    caller = AtOnce(answer)
    world = stage(caller, Extender("e", FILTER))
    world.create(make_pod("p"))
    nomination = {"status": {"nominatedNodeName": "a"}}
    world.client.patch(ObjectRef(POD, "p", "default"), nomination, subresource="status")
    (attempt,) = world.work()
    assert attempt.node
    assert [call.nodes for call in caller.calls] == [("a",), ("a", "b", "c")]


def test_x_3_limits_make_an_extender_interested_too() -> None:
    caller = AtOnce(only("b"))
    managed = frozenset({"example.com/gpu"})
    for limit in ("requests", "limits"):
        pod = make_pod("p").build()
        pod["spec"]["containers"][0]["resources"] = {limit: {"example.com/gpu": "0"}}
        world = stage(caller, Extender("e", FILTER, managed_resources=managed))
        info = PodInfo.read(record_of(pod), pod, PodClasses())
        assert world.scheduler.extenders.interested(info), limit


def record_of(pod: dict[str, Any]) -> Record:
    return make_record(GroupResource("", "pods"), versioned(pod, 1), 1)
