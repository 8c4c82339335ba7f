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
Built-in plugins write the second: one call instead of one for each node. If both are written, the
runtime uses whichever is faster for the number of nodes in question, and the per-node form serves
the conformance suite as the definition of what is right.

**What an answer depends on.** A plugin may say so in the class attribute ``reads`` (`Reads`), and
the runtime keeps its answers and asks again only where they may have changed: at 5,000 nodes this
is the difference between one node and hundreds. Likewise ``prepares_by_class = True`` says that
``pre_filter`` and ``pre_score`` answer from the pod's class and requests alone and write nothing
into the state: pods of one class are then asked about once. Leave both out when in doubt. A plugin
that has nothing to do with most pods says with which (`ConcernedPlugin`).

**Arithmetic.** Scores are integers. Division truncates toward zero as in Go. Never use a NumPy
transcendental function: results differ between CPUs; use scalar ``math``.

**Answers** are `Status` values. A plugin that raises, or answers with something else, fails the
attempt: reason SchedulerError, the traceback in its explanation. With ``plugin_errors`` of
`SchedulerOptions` set to ``stop`` (``--plugin-errors stop``) it ends the run.

**What a plugin may ask** of its scheduler is in the `Handle` that its factory is given: nodes and
their changes, objects of other kinds, nominations, pods that wait, suppositions (`handle`). Which
events may help a pod that it rejected, it says with `ClusterEvent`s (`EnqueueExtensions`).

**Where state lives.** What belongs to one attempt goes into `CycleState`. What depends on a pod's
spec alone is compiled once per `PodClass`, what depends on namespace and labels too once per
`PodSignature` (``pod.signature.compiled(function)``). What depends on the plugin's arguments or on
the nodes is the plugin's own: `Memo` keeps it per class or signature. A world can be copied while
it runs, plugins included: keep no closures and no lambdas in attributes.

**Nothing that is passed in may be changed.** Plugins write to the API only through
``handle.client``, and only in Reserve, PreBind, Bind and PostBind. Deciding is free of writes, so
that a decision can be asked for without its effects: PostFilter names victims, whom the scheduler
removes, or an ``effect``, a write that is made when the decision is carried out.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.instruments.attempts import PreemptionRecord
from kubescene.scheduler.extenders.extenders import ExtenderAnswer, ExtenderCall
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.handle import (
    Handle,
    Keys,
    Lister,
    NominatedPods,
    Trial,
    TryOut,
    WaitingPod,
    WaitingPods,
    WhatIf,
)
from kubescene.scheduler.framework.status import Code, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_types import Codes, Rows, Scores


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


class ClusterEvent(Struct, frozen=True):
    """A resource and how it changed; resources that have no name here go by their kind."""

    resource: EventResource | GroupVersionKind
    action: Action


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """An event that may help a pod this plugin rejected; without a hint it always does.

    Registering an event makes the scheduler watch the kind. ``by_signature``: the hint says the
    same of all pods of one `PodSignature`, except the pod that the change is about; it is then
    asked once for all of them. ``pods`` names, by uid, the only pods that a change can help, or
    says None if it may help any; the hint is then asked about those alone.
    """

    event: ClusterEvent
    hint: QueueingHint | None = None
    by_signature: bool = False
    pods: Callable[[Change], Collection[str] | None] | None = None


__all__ = [
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "Action",
    "AskingPostFilterPlugin",
    "Awaited",
    "AwaitingPlugin",
    "BindPlugin",
    "ClusterEvent",
    "ClusterFilterPlugin",
    "ClusterScorePlugin",
    "Codes",
    "ConcernedPlugin",
    "DomainPlugin",
    "EnqueueExtensions",
    "EventRegistration",
    "EventResource",
    "FilterDiagnosis",
    "FilterPlugin",
    "Handle",
    "Hint",
    "Keys",
    "Lister",
    "NominatedPods",
    "NormalizePlugin",
    "PermitPlugin",
    "Plugin",
    "PluginFactory",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindAnswer",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueueingHint",
    "Reads",
    "ReservePlugin",
    "Rows",
    "ScorePlugin",
    "Scores",
    "SeesPods",
    "SigningPlugin",
    "Trial",
    "TryOut",
    "WaitingPod",
    "WaitingPods",
    "WhatIf",
]

MAX_NODE_SCORE = 100  # S-4
MIN_NODE_SCORE = 0


class Reads(StrEnum):
    """What Filter and Score of a plugin depend on."""

    NODE = "node"
    """The pod's class, the node object and the pods on that node, and nothing else."""
    DOMAIN = "domain"
    """The pod's signature, the node object, and what the plugin keeps about topology domains.

    The plugin has a method ``stamp`` (`DomainPlugin`). While the stamp of a signature and the
    node object stay the same, so do the plugin's answers for pods of that signature.
    """
    CLUSTER = "cluster"
    """Anything. The default."""


class SeesPods(StrEnum):
    """What the Filter of a plugin looks at of the pods on a node (class attribute ``sees_pods``).

    Where no plugin sees more than amounts, nodes can be judged by the thousand as if other pods
    were there or gone: for pods that wait for their nominated node, and in preemption.
    """

    NOTHING = "nothing"
    """The pod and the node object alone decide."""
    AMOUNTS = "amounts"
    """Their number and the sum of what they ask for (`NodeTable.requested`)."""
    EVERYTHING = "everything"
    """Anything. The default."""


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

        If the plugin's Filter depends on other pods through what was prepared here, it also has
        the two methods of `PreFilterExtensions`.
        """
        ...


class PreFilterExtensions(PreFilterPlugin, Protocol):
    """Follow a supposed change, in the given state and nowhere else; ``node`` has changed already.

    Not called for pods at which `pre_filter` said ``SKIP``. One of the two may be missing.
    """

    def add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status: ...


class ConcernedPlugin(Plugin, Protocol):
    """What a plugin may have that has nothing to do with most pods. Each method is optional.

    The answers are kept per signature. If they depend on the cluster, the plugin has an integer
    attribute ``concern_version`` that grows whenever one of them may have changed.
    ``concerns_by_kind = True`` says that they do not depend on the names of claims among the pod's
    volumes: the plugin is then asked about the signature's ``kind``.
    """

    def concerns(self, signature: PodSignature) -> bool:
        """False: for pods of this signature PreFilter says ``SKIP``, and neither Filter nor any
        point from Reserve to PostBind has something to do. None of them is called.
        """
        ...

    def concerns_scoring(self, signature: PodSignature) -> bool:
        """False: for pods of this signature PreScore says ``SKIP`` or, if the plugin has none,
        every node gets 0. Neither PreScore nor Score is called.
        """
        ...

    def concerns_binding(self, state: CycleState, pod: PodInfo) -> bool:
        """False: a node was found, and no point from Reserve to PostBind has something to do, Bind
        apart. They may be called all the same.
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


class DomainPlugin(Plugin, Protocol):
    """What ``reads = Reads.DOMAIN`` needs beside Filter or Score."""

    def stamp(self, state: CycleState, pod: PodInfo) -> int:
        """A number that was never used before for this signature if an answer may have changed.

        Asked once per attempt, after PreFilter.
        """
        ...


class FilterDiagnosis(Protocol):
    """What Filter said about every node, in rows of the `NodeTable`. Made when asked for."""

    @property
    def codes(self) -> NDArray[np.int8]:
        """The `Code` of every row."""
        ...

    def status(self, row: int) -> Status:
        """The answer for one row and, in it, the plugin that gave it."""
        ...

    def rows_with(self, code: Code) -> Rows: ...

    def nodes_with(self, code: Code) -> list[str]:
        """The names of the nodes with this code, in snapshot order."""
        ...


class PostFilterResult(Struct, frozen=True):
    """What came of PostFilter.

    ``nominated`` is the node to nominate the pod to, empty to end its nomination, None to leave
    that as it is. ``victims`` are the pods that have to leave that node: the scheduler removes them
    when the decision takes effect. ``preemption`` tells how it came to that. ``effect`` is a write
    of another kind that makes room: a bound method or partial, called when the decision takes
    effect.
    """

    status: Status
    nominated: str | None = None
    victims: tuple[PodInfo, ...] = ()
    preemption: PreemptionRecord | None = None
    effect: Callable[[], None] | None = None


class PostFilterPlugin(Plugin, Protocol):
    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult | ExtenderCall:
        """Called when no node passed. Success, ``UNRESOLVABLE`` and errors end PostFilter;
        after any other rejection the next plugin has its turn.

        A plugin that has to ask an extender first returns the call, and has a method
        `post_filter_answered`. One that says the same of all pods of a signature as long as
        nothing has changed may say so by the class attribute ``repeats_itself``: many pods that
        fail alike then fail at once (see `repeating`).
        """
        ...


class AskingPostFilterPlugin(PostFilterPlugin, Protocol):
    def post_filter_answered(
        self,
        state: CycleState,
        pod: PodInfo,
        diagnosis: FilterDiagnosis,
        answer: ExtenderAnswer,
    ) -> PostFilterResult | ExtenderCall:
        """The extender has answered: the result, or one more call."""
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
        """Bring the scores of all feasible nodes into 0..100. Returns a new array.

        A plugin whose answer depends on nothing but ``scores`` may say so in the class attribute
        ``normalizes_alone``: then it is not asked again about nodes that all have none. One that
        writes ``score_nodes`` and looks at the pod and the node object alone, whatever runs there,
        says ``rates_by_spec``: then it is asked about all of them once, if none has any.
        """
        ...


class ReservePlugin(Plugin, Protocol):
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status: ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Undo; called in reverse order for every Reserve plugin if anything later fails."""
        ...


class PermitPlugin(Plugin, Protocol):
    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        """Success, a rejection, or ``WAIT`` with the longest wait in (virtual) nanoseconds.

        The pod then waits on its node until every such plugin allows it or one rejects it
        (`Handle.waiting_pods`); who waits for too long is rejected. 15 minutes is the longest wait.
        """
        ...


PreBindAnswer: TypeAlias = Status | tuple[Status, int]


class PreBindPlugin(Plugin, Protocol):
    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> PreBindAnswer:
        """``WAIT`` lets the binding wait: the plugin is asked again when something happens that it
        registered for, when it allows the waiting pod, or when as many (virtual) nanoseconds have
        passed as it returned beside the status. So it can tell by itself that it took too long.
        """
        ...


class Awaited(NamedTuple):
    """An object that a binding waits for."""

    resource: "EventResource | GroupVersionKind"
    namespace: str
    name: str


class AwaitingPlugin(PreBindPlugin, Protocol):
    """A PreBind plugin that can say what it waits for need not be asked about anything else.

    Without this method, every event that the plugin registered for asks every waiting pod again.
    """

    def awaits(self, state: CycleState, pod: PodInfo, node: str) -> Sequence[Awaited]:
        """Asked after ``WAIT``: the objects whose next change, or end, may be the answer."""
        ...


class BindPlugin(Plugin, Protocol):
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """``SKIP`` passes the pod to the next Bind plugin."""
        ...


class PostBindPlugin(Plugin, Protocol):
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None: ...


@runtime_checkable
class SigningPlugin(Plugin, Protocol):
    """Says what of a pod its answers depend on, so that pods that are alike can be scheduled as a
    batch (`batching`).
    """

    def sign(self, signature: PodSignature) -> Mapping[str, Any] | None:
        """The parts of pods of a signature that this plugin looks at, by name (`signing`).

        None if they must not be batched: where one of them can go depends on the others.
        """
        ...


class EnqueueExtensions(Plugin, Protocol):
    """Without this, every event requeues the pods that the plugin rejected."""

    def events_to_register(self) -> Sequence[EventRegistration]: ...
