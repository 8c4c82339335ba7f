"""A world is put together of parts that can be given to it."""

from kubescene import Cluster
from kubescene.actors import Role
from kubescene.clock import SECOND
from kubescene.cluster import builtin_controllers
from kubescene.cluster.options import ClusterOptions
from kubescene.controllers.registrations import ControllerRegistrations, Registration
from kubescene.store import Store
from kubescene.testing import make_node, make_pod


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
    cluster = Cluster()
    ticks, heard = Ticks(cluster.clock.now()), list[str]()
    cluster.event_queue.attach(ticks)
    cluster.event_queue.after(2 * SECOND, heard.append, "later")
    cluster.settle()
    cluster.stop()
    cluster.advance("5s")
    assert (ticks.due, heard) == ([], ["later"])


def test_what_controllers_have_planned_goes_with_them() -> None:
    cluster = Cluster()
    (slot,) = cluster.start(("kubelet",), Role.PRESIMULATION)
    assert slot.timers is not None
    slot.timers.after(SECOND, print, "never")
    slot.timers.attach(Ticks(cluster.clock.now()))
    cluster.stop()
    assert cluster.event_queue.peek() is None


def test_a_world_uses_the_store_that_it_is_given() -> None:
    store = Store()
    cluster = Cluster(store=store)
    cluster.create(make_node("n1").cpu("4"))
    assert [record.name for record in store.list(cluster.scheme.resolve("nodes").group_resource)]


def test_the_table_has_the_scheduler_last_and_only_it_schedules() -> None:
    known = builtin_controllers(ClusterOptions())
    names = [*known]
    assert names[-2:] == ["kubelet", "kube-scheduler"]
    assert [name for name in names if known.actor(name, Role.USER).schedules] == ["kube-scheduler"]


def test_who_takes_the_place_of_a_scheduler_schedules() -> None:
    known = builtin_controllers(ClusterOptions())
    known.add(Registration("kube-scheduler", known.factory("kubelet")))
    assert known.actor("kube-scheduler", Role.USER).schedules


def test_a_controller_of_a_users_own_may_schedule() -> None:
    known = ControllerRegistrations()
    known.add(Registration("mine", builtin_controllers(ClusterOptions()).factory("kubelet")))
    known.add(Registration("placer", known.factory("mine"), schedules=True))
    assert [name for name in known if known.actor(name, Role.USER).schedules] == ["placer"]


def test_the_verbs_are_methods_that_help_shows() -> None:
    shown = {name for name in vars(Cluster.__mro__[1]) if not name.startswith("_")}
    assert {"create", "get", "list", "patch", "delete", "apply", "watch"} <= shown
    cluster = Cluster()
    cluster.create(make_pod("a"))
    assert cluster.get("pods", "a")["metadata"]["name"] == "a"
