"""How fast the scheduler alone places plain pods: no registry, no store, no timeline.

A stand-in client accepts every binding and tells the scheduler's watch of it, as a store would.
Measured is `Scheduler.run_once`, per pod, for clusters of several sizes, with one class of pods and
with many.

    python bench/scheduler_cycle.py [--quick] [--pods 5000] [--classes 1 100]
"""

import argparse
import gc
from typing import Any

import msgspec

from kubescene.actors import Actor, Component
from kubescene.api.records import Record, make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client.interfaces import EventHandler, ObjectRef
from kubescene.clock import EventQueue, Streams, VirtualClock
from kubescene.control.loops import ControllerContext, nothing
from kubescene.control.timers import Timers
from kubescene.instruments import Instruments
from kubescene.scheduler import Scheduler, kube_scheduler
from kubescene.store import Store
from kubescene.types import JsonObject
from measuring import Span, Stopwatch

SIZES = (500, 1000, 5000)
PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")


class BindingClient:
    """Accepts bindings; everything else is not needed for pods that fit."""

    actor = Actor("kube-scheduler", Component.SCHEDULER, inside=True)

    def __init__(self) -> None:
        self.store = Store()
        self.handlers: dict[str, EventHandler] = {}
        self.pods: dict[tuple[str, str], Record] = {}

    def watch(
        self,
        gvk: GroupVersionKind,
        handler: EventHandler,
        *,
        quiet: bool = False,
        traits: int = EVERYTHING,
    ) -> None:
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


def measure(nodes: int, pods: int, classes: int) -> Span:
    scheduler = prepare(nodes, pods, classes)
    gc.collect()
    watch = Stopwatch()
    while scheduler.run_once().more:
        pass
    return watch.read()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the scheduling cycle.")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--classes", type=int, nargs="*", default=[1, 100])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    pods, repeat = (500, 1) if arguments.quick else (arguments.pods, arguments.repeat)
    for classes in arguments.classes:
        seconds = {}
        for size in SIZES:
            spans = [measure(size, pods, classes) for _ in range(repeat)]
            span = min(spans, key=lambda each: each.cpu_s)
            seconds[size] = span.cpu_s
            cpu, wall = (each / pods * 1e6 for each in (span.cpu_s, span.wall_s))
            print(f"{classes:4} classes {size:6} nodes {cpu:8.1f} us CPU {wall:8.1f} us wall a pod")
        for size in SIZES[1:]:
            ratio = seconds[SIZES[0]] / seconds[size]
            print(f"{classes:4} classes {size}/{SIZES[0]} nodes: {ratio:.2f} of the pods/s")


if __name__ == "__main__":
    main()
