"""Pods that fail alike fail at once, and only as long as nothing has changed."""

from kubescene.scheduler import CycleState, EventRegistration, Handle, NodeInfo, PodInfo, Status
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.testing.builders import PodBuilder, make_node, make_pod, make_priority_class
from scheduler.staging import Stage, fast_of


class Moody:
    """Says something else each time, and does not say what that depends on."""

    name = "Moody"

    def __init__(self, handle: Handle) -> None:
        self.times = 0

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.times += 1
        return Status.unschedulable(f"mood {self.times}")

    def events_to_register(self) -> list[EventRegistration]:
        return []


def huge(name: str) -> PodBuilder:
    return make_pod(name).cpu("64")


def test_pods_of_one_kind_get_the_answer_of_the_first() -> None:
    world = Stage()
    world.nodes("a", "b")
    world.create(huge("p"), huge("q"), make_pod("other").cpu("65"))
    first, second, other = world.work()
    assert first.message == second.message
    assert first.explanation is second.explanation
    assert first.plugins == second.plugins == ("NodeResourcesFit",)
    assert other.explanation is not first.explanation
    assert world.pod("q")["status"]["conditions"][0]["message"] == second.message


def test_only_so_many_failures_are_kept() -> None:
    world = Stage()
    world.nodes("a")
    world.create(*(huge(f"p{at}").label(own=str(at)) for at in range(POLICY.failures_kept + 3)))
    world.work()
    failures = fast_of(world.scheduler.cycle_of("default-scheduler")).failures
    assert len(failures.known) == POLICY.failures_kept


def test_a_change_of_a_node_ends_it() -> None:
    world = Stage()
    world.nodes("a")
    world.create(huge("p"))
    world.work()
    world.create(make_node("b").cpu("2").memory("8Gi"))
    world.create(huge("q"))
    assert world.work()[-1].message.startswith("0/2 nodes are available:")


def test_a_pod_that_comes_or_goes_ends_it() -> None:
    world = Stage()
    world.create(make_priority_class("high", 10))
    world.nodes("a", cpu="4")
    world.place(make_pod("there").cpu("4").priority_class("high"))
    world.create(make_pod("p").cpu("3"), make_pod("q").cpu("3"))
    assert [each.node for each in world.work()] == ["", ""]
    world.delete("there")
    assert [each.node for each in world.work()] == ["a", ""]


def test_plugins_that_do_not_say_what_they_read_are_asked_each_time() -> None:
    world = Stage(Moody)
    world.nodes("a")
    world.create(make_pod("p").cpu("1"), make_pod("q").cpu("1"))
    first, second = world.work()
    assert first.message != second.message


def test_an_unchanged_condition_is_not_written_again() -> None:
    world = Stage()
    world.nodes("a")
    world.create(huge("p"))
    world.work()
    before = world.pod("p")["metadata"]["resourceVersion"]
    queue = world.scheduler.queue
    entry = queue.get(world.uid("p"))
    assert entry is not None
    queue.activate([entry.pod])
    assert len(world.work()) == 1
    assert world.pod("p")["metadata"]["resourceVersion"] == before
