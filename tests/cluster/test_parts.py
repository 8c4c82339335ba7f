"""A world is put together of parts that can be given to it."""

from kubescene.actors import Component
from kubescene.clock import SECOND
from kubescene.cluster import ClusterWorld, builtin_controllers
from kubescene.cluster.options import ClusterOptions
from kubescene.controllers.registrations import ControllerRegistrations, Registration
from kubescene.store import Store
from kubescene.testing import make_node


class Ticks:
    """A simulation beside the world: it has something to do every second, three times."""

    def __init__(self, now: int) -> None:
        self.due = [now + number * SECOND for number in (1, 2, 3)]

    def peek(self) -> int | None:
        return self.due[0] if self.due else None

    def run_until(self, instant: int) -> int:
        before = len(self.due)
        self.due = [each for each in self.due if each > instant]
        return before - len(self.due)


def test_what_a_user_has_planned_outlives_the_controllers() -> None:
    cluster = ClusterWorld()
    ticks, heard = Ticks(cluster.clock.now()), list[str]()
    cluster.event_queue.attach(ticks)
    cluster.event_queue.after(2 * SECOND, heard.append, "later")
    cluster.settle()
    cluster.stop()
    cluster.advance("5s")
    assert (ticks.due, heard) == ([], ["later"])


def test_what_controllers_have_planned_goes_with_them() -> None:
    cluster = ClusterWorld()
    (slot,) = cluster.start(("kubelet",))
    assert slot.timers is not None
    slot.timers.after(SECOND, print, "never")
    slot.timers.attach(Ticks(cluster.clock.now()))
    cluster.stop()
    assert cluster.event_queue.peek() is None


def test_a_world_uses_the_store_that_it_is_given() -> None:
    store = Store()
    cluster = ClusterWorld(store=store)
    cluster.create(make_node("n1").cpu("4"))
    assert [record.name for record in store.list(cluster.scheme.resolve("nodes").group_resource)]


def schedulers_of(known: ControllerRegistrations) -> list[str]:
    return [name for name in known if known.actor(name).component is Component.SCHEDULER]


def test_the_table_has_the_scheduler_last_and_only_it_schedules() -> None:
    known = builtin_controllers(ClusterOptions())
    names = [*known]
    assert names[-4:] == ["kubelet", "cluster-autoscaler", "karpenter", "kube-scheduler"]
    assert schedulers_of(known) == ["kube-scheduler"]


def test_who_takes_the_place_of_a_scheduler_schedules() -> None:
    known = builtin_controllers(ClusterOptions())
    known.add(Registration("kube-scheduler", known.factory("kubelet")))
    assert known.actor("kube-scheduler").component is Component.SCHEDULER


def test_a_controller_of_a_users_own_may_schedule() -> None:
    known = ControllerRegistrations()
    known.add(Registration("mine", builtin_controllers(ClusterOptions()).factory("kubelet")))
    known.add(Registration("placer", known.factory("mine"), component=Component.SCHEDULER))
    assert schedulers_of(known) == ["placer"]
