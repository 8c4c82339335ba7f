"""From a file of a trace to a Scenario: who reads it, and what becomes of it.

Nodes come first, then pods that arrive, each with its run time. An installed package brings readers
of its own by the entry point ``kubescene.traces``: a class that is made without arguments and is a
`TraceReader`.
"""

from typing import Any, Protocol, runtime_checkable

from kubescene.api.kinds import SCENARIO
from kubescene.durations import SECOND, go_duration
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.installed import offered
from kubescene.scenario.conversion import PODS_OF_A_NODE, creation_of_nodes
from kubescene.scenario.reading.arrival_plans import RUN_TIME, WRITE
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.azure import AzureReader
from kubescene.traces.helios import HeliosReader
from kubescene.traces.openb import OpenbReader
from kubescene.traces.philly import PhillyReader
from kubescene.traces.swf import SwfReader
from kubescene.traces.trace import CPU, MEMORY, TracedNodes, TracedPod, WorkloadTrace
from kubescene.types import JsonObject

ENTRY_POINTS = "kubescene.traces"
IMAGE = "trace"


@runtime_checkable
class TraceReader(Protocol):
    """One form."""

    name: str
    about: str
    """Where people get it from, in a few words."""

    def detects(self, source: SnapshotSource) -> bool:
        """Whether a source looks like it, by its beginning."""
        ...

    def read(self, source: SnapshotSource, nodes: SnapshotSource | None) -> WorkloadTrace:
        """What it holds, with the nodes of the other source; raises `SnapshotError`."""
        ...


OWN: tuple[TraceReader, ...] = (
    OpenbReader(),
    HeliosReader(),
    PhillyReader(),
    AzureReader(),
    SwfReader(),
)


def reader_of(source: SnapshotSource) -> TraceReader | None:
    """The first reader that knows the source, those of installed packages before ours."""
    for point in offered(ENTRY_POINTS):
        made = point.load()()
        if not isinstance(made, TraceReader):
            raise ConfigurationError(
                f"{point.value} of {ENTRY_POINTS} is no reader: it needs name, about, detects "
                "and read"
            )
        if made.detects(source):
            return made
    return next((each for each in OWN if each.detects(source)), None)


# -- as a Scenario -----------------------------------------------------------------------------


def scenario_of(trace: WorkloadTrace, name: str) -> JsonObject:
    """Pods come at their instants; time goes on to where the last would end.

    Pods of a group are one create operation. It is over when the trace is: who waited then is
    still running, or waiting.
    """
    groups: dict[str, list[TracedPod]] = {}
    for pod in trace.pods:
        groups.setdefault(pod.group, []).append(pod)
    length = go_duration(max(trace.end, SECOND))
    operations = [
        *map(_creation_of_kind, trace.nodes),
        *(_arrivals(group, pods) for group, pods in groups.items()),
        {"id": "the-trace", "step": 2, "advanceOperation": {"duration": length}},
        {"id": "end", "step": 2, "doneOperation": {}},
    ]
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": name},
        "spec": {"operations": operations},
    }


def _creation_of_kind(nodes: TracedNodes) -> JsonObject:
    offers = {"pods": PODS_OF_A_NODE} | {
        resource: _amount(resource, amount) for resource, amount in nodes.offers.items()
    }
    return creation_of_nodes(nodes.name, offers, nodes.number, nodes.labels)


def _arrivals(group: str, pods: list[TracedPod]) -> JsonObject:
    first = pods[0]
    if any((each.others, each.node_labels) != (first.others, first.node_labels) for each in pods):
        raise ScenarioError(f"the reader of the trace gave unlike pods to the group {group}")
    others = {resource: str(amount) for resource, amount in first.others}
    container: JsonObject = {"name": "main", "image": IMAGE}
    if others:
        container["resources"] = {"requests": others, "limits": dict(others)}
    spec: JsonObject = {"restartPolicy": "Never", "containers": [container]}
    if first.node_labels:
        spec["affinity"] = _on_nodes_with(first)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{group}-$(INDEX)",
            "namespace": "default",
            "labels": {"app": group},
        },
        "spec": spec,
    }
    listed = [_entry(each) for each in pods]
    body = {"object": pod, "arrivals": {"listed": listed}}
    return {"id": group, "step": 2, "createOperation": body}


def _entry(pod: TracedPod) -> dict[str, Any]:
    return {
        "at": go_duration(pod.at),
        CPU: _amount(CPU, pod.cpu),
        MEMORY: _amount(MEMORY, pod.memory),
        RUN_TIME: go_duration(pod.run_time),
    }


def _on_nodes_with(pod: TracedPod) -> JsonObject:
    needed = [
        {"key": label, "operator": "In", "values": list(values)}
        for label, values in pod.node_labels
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": needed}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _amount(resource: str, amount: int) -> str:
    """As Kubernetes writes it."""
    write = WRITE.get(resource)
    return str(amount) if write is None else write(amount)
