"""The plugin author's manual.

A plugin is a class with a ``name`` that extends one or more extension points. One object of it
lives per profile; it must keep no per-pod state between calls (that goes into `CycleState`). An
attempt at a pod runs through the points in this order::

    QueueSort      which pending pod is next
    PreEnqueue     may the pod enter the active queue at all
    PreFilter      once per pod: prepare, reject the pod outright, or narrow the nodes
    Filter         which nodes can run the pod; the first plugin that says no decides
    PostFilter     no node was found: make room (preemption)
    PreScore       once per pod, with the nodes that passed
    Score          how good is each node, an integer; Normalize brings it into 0..100
    Reserve        a node was chosen: take what has to be held
    Permit         approve, deny or wait
    PreBind, Bind, PostBind

**Two forms of Filter and Score.** A plugin writes either the form *per node*
(`FilterPlugin.filter`, `ScorePlugin.score`), which is called once for each node, or the form for
the *whole cluster* (`filter_nodes`, `score_nodes`), which gets many nodes at once as columns
(`NodeTable`, NumPy int64) and answers with one array. The runtime adapts the first to the second.
Built-in plugins write the second: it is some hundred times as fast. If both are written, the
runtime uses whichever is faster for the number of nodes in question, and the per-node form serves
the conformance suite as the definition of what is right.

**What an answer depends on.** A plugin may say ``reads = Reads.NODE`` as a class attribute: what
its Filter and Score answer for a node then depends on nothing but `PodInfo.pod_class`, the node
object and the pods on that node. The runtime keeps such answers per class of pods and asks again
only for nodes that changed since: at 5,000 nodes this is the difference between one node and
hundreds. Leave it out when in doubt.

**Arithmetic.** Scores are integers. Division truncates toward zero as in Go. Never use a NumPy
transcendental function: results differ between CPUs; use scalar ``math``.

**Answers** are `Status` values. A plugin that raises ends the run with `PluginError`.

**Nothing that is passed in may be changed**, and plugins never write to the API except through
``handle.client`` in Reserve, PreBind, Bind and PostBind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kubescene.api.changes import Change
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Stream
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.nodes import NodeInfo, NodeTable
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.status import Status

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0

Rows: TypeAlias = NDArray[np.intp]
"""Positions in the `NodeTable`, which holds the nodes in snapshot order."""

Codes: TypeAlias = NDArray[np.int64]
"""One verdict per row: 0 passes, anything else is a number the plugin can explain."""

Scores: TypeAlias = NDArray[np.int64]


class Reads(StrEnum):
    """What Filter and Score of a plugin depend on, beside the class of the pod."""

    NODE = "node"
    """The node object and the pods on that node."""
    CLUSTER = "cluster"
    """Anything. The default."""


@dataclass(frozen=True, slots=True)
class Handle:
    """What a plugin may use of its scheduler."""

    client: Client
    nodes: NodeTable
    clock: Clock
    random: Stream
    scheduler_name: str


PluginFactory: TypeAlias = Callable[[Mapping[str, Any], Handle], "Plugin"]
"""Makes a plugin from its arguments (``pluginConfig[].args``, defaults filled in) and a handle."""


class Plugin(Protocol):
    """What all plugins have."""

    @property
    def name(self) -> str: ...


class QueueSortPlugin(Plugin, Protocol):
    """Exactly one per scheduler."""

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[Any, ...]:
        """Pods are taken in ascending order of this key; equal keys in order of arrival."""
        ...


class PreEnqueuePlugin(Plugin, Protocol):
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Anything but success keeps the pod out of the active queue until an event of this
        plugin.
        """
        ...


class PreFilterPlugin(Plugin, Protocol):
    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        """Prepare for Filter. Called once per attempt.

        ``SKIP``: this plugin's Filter has nothing to say for this pod. ``UNRESOLVABLE``: the
        attempt fails at once. ``UNSCHEDULABLE``: it fails after the other PreFilters ran. With
        success, a set of node names restricts the search to them; None does not restrict it.
        """
        ...


class FilterPlugin(Plugin, Protocol):
    """Implement `filter`, or `filter_nodes` together with `describe`."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Can this node run the pod?"""
        ...


class ClusterFilterPlugin(Plugin, Protocol):
    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        """One code per row of ``rows``: 0 passes."""
        ...

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        """The status that a non-zero code of `filter_nodes` stands for."""
        ...


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[Status, str]:
        """Called when no node passed. Success with a node name nominates that node."""
        ...


class PreScorePlugin(Plugin, Protocol):
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        """Prepare for Score; ``SKIP`` leaves this plugin out of the sum for this pod."""
        ...


class ScorePlugin(Plugin, Protocol):
    """Implement `score`, or `score_nodes`; optionally also `NormalizePlugin`."""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """How good is this node?"""
        ...


class ClusterScorePlugin(Plugin, Protocol):
    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """One score per row of ``rows``."""
        ...


class NormalizePlugin(Plugin, Protocol):
    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Bring the scores of all feasible nodes into 0..100. Returns a new array."""
        ...


class ReservePlugin(Plugin, Protocol):
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status: ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Undo; called in reverse order for every Reserve plugin if anything later fails."""
        ...


class PermitPlugin(Plugin, Protocol):
    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        """Success, a rejection, or ``WAIT`` with the longest wait in (virtual) nanoseconds."""
        ...


class PreBindPlugin(Plugin, Protocol):
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """``WAIT`` parks the binding; it resumes as a loop of its own."""
        ...


class BindPlugin(Plugin, Protocol):
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """``SKIP`` passes the pod to the next Bind plugin."""
        ...


class PostBindPlugin(Plugin, Protocol):
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None: ...


# -- requeueing: which events may make a rejected pod schedulable -----------------------------


class EventResource(StrEnum):
    """What changed. ``ANY`` is the wildcard."""

    POD = "Pod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    RESOURCE_CLAIM = "ResourceClaim"
    RESOURCE_SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    ANY = "*"


class Action(IntFlag):
    """How it changed; the bits are those of kube-scheduler."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8191 - 3
    ALL = 8191


class Hint(StrEnum):
    """``QUEUE``: the event may have made the pod schedulable."""

    QUEUE = "Queue"
    SKIP = "Skip"


QueueingHint: TypeAlias = Callable[[PodInfo, Change], Hint]


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A resource and how it changed."""

    resource: EventResource
    action: Action


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """An event that may help a pod this plugin rejected; without a hint it always does."""

    event: ClusterEvent
    hint: QueueingHint | None = None


class EnqueueExtensions(Plugin, Protocol):
    """Without this, every event requeues the pods that the plugin rejected."""

    def events_to_register(self) -> Sequence[EventRegistration]: ...
