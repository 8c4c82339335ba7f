"""Programs outside as the engine thread keeps them: what waits, what is forgotten, who speaks."""

import pytest

from kubescene.actors import ENGINE
from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.client import ObjectRef
from kubescene.clock import VirtualClock
from kubescene.cluster import ClusterWorld
from kubescene.errors import ScenarioError
from kubescene.outside.programs import MOST_HELD, GateReply, Held, OutsideProgram
from kubescene.outside.requests import PODS, OutsideRequest
from kubescene.outside.stage import MOST_KNOWN, OutsideStage
from kubescene.outside.turns.operator import OperatorTurn
from kubescene.outside.turns.waiting_pods import UnplacedPods
from kubescene.scenario.outside import OutsideController
from kubescene.testing import make_pod

CONFIG_MAPS = GroupResource("", "configmaps")
GONE = GateReply(b"{}", 403)


def write(name: str, told: list[GateReply | None], product: str = "p") -> Held:
    return Held(OutsideRequest("create", CONFIG_MAPS, name=name), told.append, product)


def closed(*, is_alone: bool = False) -> OutsideProgram:
    program = OutsideProgram("p", VirtualClock())
    program.open_feed(PODS, lambda: None, "p")
    program.enter(is_alone=is_alone)
    program.close()
    return program


def test_what_was_dropped_is_not_let_in_any_more() -> None:
    program, told = closed(), list[GateReply | None]()
    first, second = write("a", told), write("b", told)
    program.arrive(second)
    program.arrive(first)
    batch = program.writes
    assert batch == [first, second]
    assert program.drop(first)
    assert program.writes == [second]
    program.let_in(first)
    assert (program.passed, told) == (0, [])
    program.let_in(second)
    assert (program.passed, told, program.writes) == (1, [None], [])


@pytest.mark.parametrize("allowance", [0, 3])
def test_a_flood_begins_after_what_was_to_be_expected(allowance: int) -> None:
    program, told = closed(), list[GateReply | None]()
    program.allowance = allowance
    for number in range(MOST_HELD + allowance):
        program.arrive(write(f"a{number}", told))
    program.check()
    program.arrive(write("last", told))
    with pytest.raises(ScenarioError, match=r"controller p: more than 100\d of its requests"):
        program.check()
    assert [reply and reply.code for reply in told] == [429]
    program.release(GONE)
    assert len(told) == MOST_HELD + allowance + 1
    program.enter(is_alone=False)
    program.check()


def test_who_spoke_before_the_scenario_began_is_part_of_the_program() -> None:
    program, told = OutsideProgram("p", VirtualClock()), list[GateReply | None]()
    program.open_feed(PODS, lambda: None, "watcher")
    program.enter(is_alone=True)
    program.arrive(write("a", told, "writer"))
    program.close()
    for product in ("watcher", "writer"):
        program.arrive(write("b", told, product))
    program.check()
    program.arrive(write("c", told, "kubectl"))
    with pytest.raises(ScenarioError, match=r"kubectl spoke in its name .* watcher and writer"):
        program.check()


def test_those_who_only_park_are_remembered_within_bounds() -> None:
    stage = OutsideStage(ClusterWorld(), VirtualClock())
    for number in range(MOST_KNOWN + 50):
        program = stage.program(f"p{number}")
        stage.park(program, write("", []))
        stage.forget(program)
    assert len(stage._programs) == MOST_KNOWN
    assert stage.program("p0").has_parked


def test_a_stranger_is_kept_once_however_often_it_parks() -> None:
    stage = OutsideStage(ClusterWorld(), VirtualClock())
    stage.is_playing = lambda: True
    program, told = stage.program("p"), list[GateReply | None]()
    for _ in range(3):
        held = write("", told)
        stage.park(program, held)
        program.drop(held)
    stage.park(program, write("", told))
    assert list(stage._strangers) == ["p"]
    stage.leave("s")
    assert (told, stage._strangers) == ([None], {})


def test_a_turn_that_fails_to_end_keeps_nobody_from_being_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, told = OutsideStage(ClusterWorld(), VirtualClock()), list[GateReply | None]()
    for name in ("a", "b"):
        stage.enter(OutsideController(name))
        stage.program(name).close()
        stage.program(name).arrive(write(name, told))
    monkeypatch.setattr(OperatorTurn, "end", failing)
    with pytest.raises(ZeroDivisionError):
        stage.leave("s")
    assert [reply and reply.code for reply in told] == [403, 403]
    assert (stage.called, stage._programs) == ({}, {})


def failing(turn: object) -> None:
    raise ZeroDivisionError


class Telling:
    """Pods of a cluster, told as changes to those who wait."""

    def __init__(self, pods: UnplacedPods, cluster: ClusterWorld) -> None:
        self._pods, self._cluster = pods, cluster

    def __call__(self, name: str, kind: ChangeType = ChangeType.ADDED, **spec: object) -> list[str]:
        store, pod = self._cluster.store, make_pod(name).build()
        pod["spec"] |= spec
        if kind is ChangeType.ADDED:
            self._cluster.create(pod)
        (record,) = [each for each in store.list(PODS) if each.name == name]
        return names(self._pods.sift([Change(kind, record, None, store)]))

    def free(self, name: str) -> list[str]:
        """Take the gates away."""
        client = self._cluster.client(ENGINE)
        pod = client.get(ObjectRef(POD, name, "default"))
        del pod["spec"]["schedulingGates"]
        client.update(pod)
        return self(name, ChangeType.MODIFIED)


Waiting = tuple[UnplacedPods, Telling]


@pytest.fixture
def waiting() -> Waiting:
    cluster = ClusterWorld()
    pods = UnplacedPods(("default-scheduler",), cluster.store, cluster.clock.now)
    return pods, Telling(pods, cluster)


def names(changes: list[Change]) -> list[str]:
    return [change.record.name for change in changes]


def test_pods_are_given_by_priority_then_age_and_only_once(waiting: Waiting) -> None:
    pods, tell = waiting
    for name in ("b", "a", "d", "c"):
        assert tell(name) == []
    assert names(pods.take(everything=False)) == ["b"]
    assert tell("d", ChangeType.DELETED) == []
    assert tell("b", ChangeType.MODIFIED) == ["b"]
    assert tell("c", ChangeType.MODIFIED) == []
    assert names(pods.take(everything=True)) == ["a", "c"]
    assert names(pods.take(everything=True)) == []


def test_a_gated_pod_stands_in_the_line_by_its_age_once_it_is_free(waiting: Waiting) -> None:
    pods, tell = waiting
    assert tell("gated", schedulingGates=[{"name": "g"}]) == []
    assert tell("later") == []
    assert tell("gated", ChangeType.MODIFIED) == []
    assert tell.free("gated") == []
    assert tell("gated", ChangeType.MODIFIED) == []
    assert names(pods.take(everything=True)) == ["gated", "later"]


def test_a_gated_pod_is_not_given(waiting: Waiting) -> None:
    pods, tell = waiting
    assert tell("gated", schedulingGates=[{"name": "g"}]) == []
    assert names(pods.take(everything=True)) == []


def named(name: str) -> tuple[str, str]:
    return "default", name


def test_pods_are_tried_again_by_priority_then_by_their_last_failure(waiting: Waiting) -> None:
    pods, tell = waiting
    for name in ("a", "b", "c"):
        tell(name)
    tell("high", priorityClassName="system-node-critical")
    assert len(pods.take(everything=True)) == 4
    assert sorted(each.name for each in pods.unplaced) == ["a", "b", "c", "high"]
    for name in ("a", "b", "high", "c", "a"):
        pods.failed(named(name))
    for name in ("a", "b", "c", "high"):
        pods.wants_again(named(name))
    taken = [pods.take(everything=False) for _ in range(4)]
    assert [names(each) for each in taken] == [[each] * 2 for each in ("high", "b", "c", "a")]
    assert all([change.type for change in each] == ["DELETED", "ADDED"] for each in taken)
    assert not pods.has_any


def test_new_pods_come_before_those_that_are_tried_again(waiting: Waiting) -> None:
    pods, tell = waiting
    tell("old")
    pods.take(everything=True)
    pods.failed(named("old"))
    pods.wants_again(named("old"))
    tell("new")
    assert names(pods.take(everything=False)) == ["new"]
    assert names(pods.take(everything=False)) == ["old", "old"]


def test_a_pod_that_is_gone_is_not_tried_again(waiting: Waiting) -> None:
    pods, tell = waiting
    tell("old")
    pods.take(everything=True)
    pods.wants_again(named("old"))
    assert tell("old", ChangeType.DELETED) == ["old"]
    assert (pods.unplaced, pods.has_any, pods.take(everything=True)) == ([], False, [])
    pods.wants_again(named("old"))
    assert not pods.has_any
