"""The proof of the interface: built-in controllers and the scheduler, unchanged, over HTTP.

The served world has no controllers of its own. Each runs here with a client of its own, and all are
turned by the same crank as those of an embedded world.
"""

from collections.abc import Callable

import pytest

from client.worlds import HttpWorld
from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.api.options import DeleteOptions
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.clock import EventQueue, Streams, WallClock
from kubescene.cluster import ClusterOptions, builtin_controllers
from kubescene.control import ControllerContext, Crank, Slot, Timers
from kubescene.controllers.builtin.workloads.replica_sets.replicaset import ReplicaSetReconciler
from kubescene.controllers.reconcile import ObjectKey
from kubescene.controllers.runtime import ReconcilerController
from kubescene.instruments import Instruments
from kubescene.testing import make_deployment, make_node, make_pod, make_replica_set

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
TURNS = 400


class Outside:
    """Controllers of a world that is somewhere else, and a crank that turns them."""

    def __init__(self, world: HttpWorld) -> None:
        self._world = world
        self._clock = WallClock()
        self._queue = EventQueue(self._clock)
        self._crank = Crank(self._queue, objects=lambda: 1000)
        self._registrations = builtin_controllers(ClusterOptions())
        self._slots: list[Slot] = []
        self.clients: list[HttpClient] = []

    def context(self, slot: Slot) -> ControllerContext:
        client = self._world.client(slot.name, slot.wake)
        self.clients.append(client)
        return ControllerContext(
            client=client,
            clock=self._clock,
            timers=Timers(self._queue, slot.wake),
            streams=Streams(7),
            instruments=Instruments(),
            wake=slot.wake,
        )

    def start(self, *names: str) -> None:
        for name in names:
            slot = Slot(name)
            slot.controller = self._registrations.factory(name)(self.context(slot))
            self._slots.append(slot)

    def until(self, happened: Callable[[], bool]) -> None:
        """Hear and work until something has happened and nobody has anything left to do."""
        for _ in range(TURNS):
            heard = sum(client.pump(0.01) for client in self.clients)
            self._crank.settle(self._slots)
            if not heard and happened():
                return
        raise AssertionError("it did not happen")


@pytest.fixture
def outside(served: HttpWorld) -> Outside:
    return Outside(served)


@pytest.fixture
def user(served: HttpWorld) -> HttpClient:
    return served.client("user")


def counted(user: HttpClient, kind: GroupVersionKind = POD) -> int:
    return len(user.list(kind))


def bound(user: HttpClient) -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in user.list(POD)]


def test_a_replica_set_gets_exactly_its_pods(outside: Outside, user: HttpClient) -> None:
    outside.start("replicaset")
    user.create(make_replica_set("web").replicas(30).build())
    outside.until(lambda: counted(user) >= 30)
    assert counted(user) == 30
    ref = ObjectRef(REPLICA_SET, "web", "default")
    assert user.get(ref)["status"]["replicas"] == 30
    user.patch(ref, {"spec": {"replicas": 10}})
    outside.until(lambda: counted(user) <= 10)
    assert counted(user) == 10


def test_a_reconciler_sees_what_it_wrote_before_it_looks_again(
    outside: Outside, user: HttpClient
) -> None:
    """Without waiting, the second look would create every pod once more."""
    context = outside.context(Slot("replicaset"))
    controller = ReconcilerController(ReplicaSetReconciler(), context)
    user.create(make_replica_set("web").replicas(5).build())
    assert isinstance(context.client, HttpClient)
    while not controller.run_once().wrote:
        context.client.pump(1.0)
    controller._queue.add(ObjectKey("default", "web"))
    while controller.run_once().more:
        pass
    assert counted(user) == 5


def test_pods_are_placed_and_run(outside: Outside, user: HttpClient) -> None:
    outside.start("deployment", "replicaset", "kube-scheduler", "kubelet")
    for name in ("n1", "n2", "n3"):
        user.create(make_node(name).cpu("4").memory("8Gi").build())
    user.create(make_deployment("web").replicas(9).template(make_pod("").cpu("1")).build())
    ref = ObjectRef(DEPLOYMENT, "web", "default")

    def is_available() -> bool:
        return bool((user.get(ref).get("status") or {}).get("availableReplicas") == 9)

    outside.until(is_available)
    assert sorted(bound(user)) == ["n1"] * 3 + ["n2"] * 3 + ["n3"] * 3
    assert {pod["status"]["phase"] for pod in user.list(POD)} == {"Running"}


def test_what_does_not_fit_waits_until_there_is_room(outside: Outside, user: HttpClient) -> None:
    outside.start("replicaset", "kube-scheduler")
    user.create(make_node("n1").cpu("2").memory("8Gi").build())
    user.create(make_replica_set("web").replicas(3).template(make_pod("").cpu("1")).build())
    outside.until(lambda: sorted(bound(user)) == ["", "n1", "n1"])
    (waiting,) = (pod for pod in user.list(POD) if not pod["spec"].get("nodeName"))
    (condition,) = waiting["status"]["conditions"]
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    user.create(make_node("n2").cpu("2").memory("8Gi").build())
    outside.until(lambda: sorted(bound(user)) == ["n1", "n1", "n2"])


def test_dependents_follow_their_owner(outside: Outside, user: HttpClient) -> None:
    outside.start("deployment", "replicaset", "garbage-collector")
    user.create(make_deployment("web").replicas(4).build())
    outside.until(lambda: counted(user) == 4)
    options = DeleteOptions(propagation_policy="Background")
    user.delete(ObjectRef(DEPLOYMENT, "web", "default"), options=options)
    outside.until(lambda: counted(user) == counted(user, REPLICA_SET) == 0)
