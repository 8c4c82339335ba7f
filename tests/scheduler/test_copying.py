"""A world with its scheduler can be copied at any moment; both go on alike."""

import copy
from typing import Any

import pytest

from kubescene.clock import SECOND
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler import SUCCESS, Code, CycleState, Handle, PodInfo, Status
from kubescene.testing.builders import make_node, make_pod, make_priority_class
from scheduler.staging import Stage


class Holding:
    name = "Holding"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        held = pod.name.startswith("held")
        return (Status(Code.WAIT), 10 * SECOND) if held else (SUCCESS, 0)


def story(attempts: list[SchedulingAttempt]) -> list[tuple[str, str, str]]:
    return [(each.pod.name, each.node, each.message) for each in attempts]


def busy() -> Stage:
    """Pods that were placed, that wait for every kind of thing, and that are yet to be tried."""
    stage = Stage(Holding)
    stage.create(make_priority_class("high", 100))
    stage.create(*(make_node(f"n{number}").cpu("4").zone("xyz"[number % 3]) for number in range(7)))
    stage.create(make_node("t").cpu("64").taint("gpu"))
    stage.place(*(make_pod(f"p{number}").cpu(f"{number % 5}00m") for number in range(20)))
    stage.place(
        *(make_pod(f"big{number}").cpu("9").label(n=str(number % 2)) for number in range(6))
    )
    stage.place(make_pod("held-1"), make_pod("held-2"), make_pod("gated").gate("g"))
    stage.create(*(make_pod(f"late{number}").cpu("1") for number in range(5)))
    stage.scheduler.run_once()
    return stage


def go_on(stage: Stage) -> list[tuple[str, str, str]]:
    """Everything that may happen next."""
    told = story(stage.work())
    stage.create(make_node("huge").cpu("20").zone("x"))
    told += story(stage.work())
    stage.delete("p3")
    stage.create(make_pod("top").cpu("2").priority_class("high"), make_pod("last").cpu("500m"))
    told += story(stage.work())
    waiting = stage.scheduler.waiting_pods.get(stage.uid("held-1"))
    assert waiting is not None
    waiting.allow("Holding")
    told += story(stage.work())
    stage.pass_time(10 * SECOND)
    return told + story(stage.work())


def numbers(stage: Stage) -> dict[str, Any]:
    nodes = stage.scheduler.nodes
    return {
        "names": list(nodes.names),
        "cpu": nodes.requested("cpu").tolist(),
        "versions": nodes.versions.tolist(),
        "pods": [[pod.key for pod in info.pods] for info in nodes.infos],
        "queue": len(stage.scheduler.queue),
        "start": stage.scheduler.start_index.index,
        "revision": stage.cluster.store.revision,
    }


def test_a_copied_world_goes_on_alike() -> None:
    parent, alone = busy(), busy()
    child = copy.deepcopy(parent)
    before = numbers(parent)
    told = go_on(child)
    assert len(told) > 12
    assert numbers(parent) == before
    assert go_on(parent) == told == go_on(alone)
    assert numbers(parent) == numbers(child) == numbers(alone)


def test_a_copy_of_a_copy_goes_on_alike() -> None:
    parent = busy()
    child = copy.deepcopy(copy.deepcopy(parent))
    assert go_on(child) == go_on(parent)


def test_copies_share_pods_and_nothing_that_changes() -> None:
    parent = busy()
    child = copy.deepcopy(parent)
    ours, theirs = parent.scheduler, child.scheduler
    assert theirs.nodes is not ours.nodes
    first, second = ours.nodes.infos[0], theirs.nodes.infos[0]
    assert first is not second
    assert first.pods is not second.pods
    assert all(one is other for one, other in zip(first.pods, second.pods, strict=True))
    mine, yours = (each.handles["default-scheduler"].client for each in (ours, theirs))
    assert mine is not yours


@pytest.mark.parametrize("taint", ["a", "b"])
def test_what_plugins_keep_about_nodes_is_not_shared(taint: str) -> None:
    """Both worlds meet a new list of taints after the copy, each its own, under one number."""
    parent = Stage()
    parent.nodes("n")
    parent.place(make_pod("p"))
    child = copy.deepcopy(parent)
    parent.create(make_node("tainted").cpu("64").memory("64Gi").taint("a"))
    child.create(make_node("tainted").cpu("64").memory("64Gi").taint("b"))
    tolerant = make_pod("q").cpu("1").tolerate(taint)
    expected = "tainted" if taint == "a" else "n"
    assert parent.place(tolerant) == [f"q:{expected}"]
    expected = "tainted" if taint == "b" else "n"
    assert child.place(tolerant) == [f"q:{expected}"]
