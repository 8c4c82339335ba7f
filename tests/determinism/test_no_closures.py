"""No closure over world state outlives a call: a copy would share what it closes over."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.testing import make_deployment, make_node, make_pod

LEAVES = (str, bytes, int, float, type, ModuleType, type(None))
PLAIN = (list, tuple, set, frozenset, deque)


def busy_world() -> Cluster:
    """Pods that run, start, wait and cannot be placed; timers and watches of all kinds."""
    delays = KubeletDelays(start=10**9, ready=10**9, terminate=10**9)
    cluster = Cluster(ClusterOptions(events=True, kubelet=delays))
    for number in range(3):
        cluster.create(make_node(f"n{number}").cpu("4").memory("8Gi"))
    cluster.create(make_deployment("web").replicas(6))
    cluster.create(make_pod("huge").cpu("64"))
    cluster.advance("3s").watch("pods")
    cluster.delete("pods", cluster.list("pods")[1]["metadata"]["name"])
    return cluster.settle()


def parts(obj: Any) -> Iterator[Any]:
    """Whatever an object holds on to."""
    if isinstance(obj, dict):
        yield from obj.keys()
        yield from obj.values()
    elif isinstance(obj, PLAIN):
        yield from obj
    elif isinstance(obj, MethodType):
        yield from (obj.__self__, obj.__func__)
    elif isinstance(obj, partial):
        yield from (obj.func, obj.args, obj.keywords)
    yield getattr(obj, "__dict__", None)
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        yield from (getattr(obj, name, None) for name in names)


def reachable(root: Any) -> dict[int, Any]:
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        obj = waiting.pop()
        if id(obj) in seen or isinstance(obj, LEAVES):
            continue
        seen[id(obj)] = obj
        if not isinstance(obj, FunctionType):
            waiting.extend(parts(obj))
    return seen


def test_a_running_world_holds_no_closure() -> None:
    found = reachable(busy_world()).values()
    assert any(isinstance(obj, SchedulingQueue) for obj in found)
    functions = [obj for obj in found if isinstance(obj, FunctionType)]
    assert len(functions) > 10
    assert [obj.__qualname__ for obj in functions if obj.__closure__] == []
