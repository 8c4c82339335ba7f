"""How fast the scheduler alone places plain pods: no registry, no store, no timeline.

A stand-in client accepts every binding and tells the scheduler's watch of it, as a store would.
Measured is `Scheduler.run_once`, per pod, for clusters of several sizes, with one class of pods and
with many.

    python bench/scheduler_cycle.py [--pods 5000] [--classes 1 100]
"""

import argparse
import gc
import time
from typing import Any

import msgspec

from kubescene.actors import Actor, Role
from kubescene.api.changes import Change, ChangeType
from kubescene.api.records import Record, make_record
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client.interfaces import EventHandler, ObjectRef
from kubescene.clock import EventQueue, Streams, VirtualClock
from kubescene.control.loops import ControllerContext, nothing
from kubescene.control.timers import Timers
from kubescene.scheduler import Scheduler, kube_scheduler
from kubescene.store import Store
from kubescene.timeline.instruments import Instruments
from kubescene.types import JsonObject

SIZES = (500, 1000, 5000)
PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")


class BindingClient:
    """Accepts bindings; everything else is not needed for pods that fit."""

    actor = Actor("kube-scheduler", Role.SIMULATION)

    def __init__(self) -> None:
        self.store = Store()
        self.handlers: dict[str, EventHandler] = {}
        self.pods: dict[tuple[str, str], Record] = {}

    def watch(self, gvk: GroupVersionKind, handler: EventHandler, *, quiet: bool = False) -> None:
        self.handlers[gvk.kind] = handler

    def deliver(self, kind: str, record: Record, previous: Record | None = None) -> None:
        change_type = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        self.handlers[kind](Change(change_type, record, previous, self.store))

    def bind(self, pod: ObjectRef, node: str, *, uid: str = "") -> Record:
        previous = self.pods[pod.namespace, pod.name]
        record = msgspec.structs.replace(previous, node=node)
        self.deliver("Pod", record, previous)
        return record


def make_node(index: int) -> JsonObject:
    zone = f"zone-{index % 3}"
    allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    return {
        "metadata": {"name": f"node-{index}", "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": allocatable},
    }


def make_pod(index: int, pod_class: int) -> JsonObject:
    requests = {"cpu": f"{100 + pod_class}m", "memory": "500Mi"}
    container = {"name": "c", "image": "app", "resources": {"requests": requests}}
    return {
        "metadata": {"name": f"pod-{index}", "namespace": "default", "uid": f"uid-{index}"},
        "spec": {"containers": [container], "schedulerName": "default-scheduler"},
    }


def prepare(nodes: int, pods: int, classes: int) -> Scheduler:
    client = BindingClient()
    clock = VirtualClock()
    anything: Any = client
    context = ControllerContext(
        anything, clock, Timers(EventQueue(clock), nothing), Streams(), Instruments()
    )
    scheduler = kube_scheduler(context)
    for index in range(nodes):
        client.deliver("Node", make_record(NODES, make_node(index), index + 1))
    for index in range(pods):
        record = make_record(PODS, make_pod(index, index % classes), nodes + index + 1)
        client.pods[record.key] = record
        client.deliver("Pod", record)
    return scheduler


def measure(nodes: int, pods: int, classes: int) -> float:
    """Pods per second."""
    scheduler = prepare(nodes, pods, classes)
    gc.collect()
    begin = time.perf_counter()
    while scheduler.run_once().more:
        pass
    return pods / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the scheduling cycle.")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--classes", type=int, nargs="*", default=[1, 100])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    for classes in arguments.classes:
        rates = {}
        for size in SIZES:
            rates[size] = max(
                measure(size, arguments.pods, classes) for _ in range(arguments.repeat)
            )
            rate = rates[size]
            print(
                f"{classes:4} classes {size:6} nodes {rate:10,.0f} pods/s {1e6 / rate:8.1f} us/pod"
            )
        for size in SIZES[1:]:
            print(
                f"{classes:4} classes {size}/{SIZES[0]} nodes: {rates[size] / rates[SIZES[0]]:.2f}"
            )


if __name__ == "__main__":
    main()
