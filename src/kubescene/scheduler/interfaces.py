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
their changes, objects of other kinds, nominations, pods that wait, suppositions.

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

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kubescene.api.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Stream
from kubescene.recording import Recorder
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.extenders import ExtenderAnswer, ExtenderCall, Extenders
from kubescene.scheduler.feature_gates import FeatureGates
from kubescene.scheduler.node_info import NodeInfo
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.pod_groups import PodGroups
from kubescene.scheduler.pods import Identified, PodInfo, PodSignature
from kubescene.scheduler.status import Code, Status
from kubescene.timeline.attempts import PreemptionRecord
from kubescene.types import ReadOnlyObject

T = TypeVar("T")

MAX_NODE_SCORE = 100  # S-4
MIN_NODE_SCORE = 0

Rows: TypeAlias = NDArray[np.intp]
"""Positions in the `NodeTable`, which holds the nodes in snapshot order."""

Codes: TypeAlias = NDArray[np.int64]
"""One verdict per row: 0 passes, anything else is a number the plugin can explain."""

Scores: TypeAlias = NDArray[np.int64]


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


class Keys(Protocol):
    """What became of the objects of one kind, for those who keep something made from them."""

    def read(self) -> Sequence[tuple[str, str]] | None:
        """Namespace and name of all that changed since the last call, some perhaps twice.

        None means: look at all of them; it is the first time, or too long ago.
        """
        ...


class Lister(Protocol):
    """All objects of one kind, as the scheduler's watch has seen them. Decoded once, read-only."""

    @property
    def version(self) -> int:
        """Grows with every change."""
        ...

    @property
    def spec_version(self) -> int:
        """Grows when an object comes or goes, and when its labels change or anything beside its
        metadata and its status.
        """
        ...

    def get(self, name: str, namespace: str = "") -> ReadOnlyObject | None: ...

    def list(self, namespace: str = "") -> Sequence[ReadOnlyObject]:
        """In order of arrival; of one namespace if named."""
        ...

    def __len__(self) -> int: ...

    def follow(self) -> Keys:
        """Read which objects change from now on."""
        ...

    def tell(self, follower: Callable[[Change], None]) -> None:
        """Be told of every change from now on: when `get` knows of it, before pods that wait do.

        Keep a bound method here, no closure: worlds are copied.
        """
        ...


class NominatedPods(Protocol):
    """Pending pods that hold a node."""

    def on(self, node: str) -> list[PodInfo]:
        """The pods nominated to a node, in order of nomination."""
        ...

    def node_of(self, pod: PodInfo) -> str: ...

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate; an earlier nomination of the pod ends. No node means no nomination."""
        ...

    def remove(self, pod: PodInfo) -> None: ...


class WaitingPod(Protocol):
    """A pod that has a node and waits for plugins that said ``WAIT``."""

    @property
    def pod(self) -> PodInfo: ...

    @property
    def node(self) -> str: ...

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that still have to allow it."""
        ...

    def allow(self, plugin: str) -> None:
        """This plugin waits no longer; when none does, the binding goes on."""
        ...

    def reject(self, plugin: str, message: str) -> None:
        """The binding is undone and the pod put back into the queue."""
        ...


class WaitingPods(Protocol):
    """The pods that wait, in the order in which they began to."""

    def get(self, uid: str) -> WaitingPod | None: ...

    def __iter__(self) -> Iterator[WaitingPod]: ...

    def __len__(self) -> int: ...


class WhatIf(Protocol):
    """Filter for one pod as if other pods were on their nodes or not. See `supposing`."""

    @property
    def state(self) -> CycleState:
        """The clone of the cycle's state that the supposed changes were told to."""
        ...

    def node(self, name: str) -> NodeInfo:
        """The node as it would be."""
        ...

    def add(self, pod: PodInfo, node: str) -> None: ...

    def remove(self, pod: PodInfo, node: str) -> None: ...

    def clone(self) -> "WhatIf": ...

    def filter(self, node: str, *, nominated: bool = True) -> Status:
        """Success, or the answer of the first Filter that refuses."""
        ...


class Trial(Protocol):
    """One node, as if pods were gone from it."""

    def remove(self, pod: PodInfo) -> None: ...

    def add(self, pod: PodInfo) -> None: ...

    def filter(self) -> Status:
        """Whether the pod in question fits now, nominated pods taken into account."""
        ...


class TryOut(Protocol):
    """Filter for one pod as if others were gone, many nodes at a time. See `trying`."""

    @property
    def by_amounts(self) -> bool:
        """Whether other pods matter by their amounts alone. Only then may `judge` be asked."""
        ...

    @property
    def by_class(self) -> bool:
        """Whether what holds for the pod holds for all pods of its class."""
        ...

    @property
    def plugins(self) -> Hashable:
        """Equal as long as the same Filter plugins run."""
        ...

    @property
    def nomination_versions(self) -> NDArray[np.int64] | None:
        """By row, another one whenever other pods are nominated there; None if nowhere."""
        ...

    @property
    def own_row(self) -> int | None:
        """Where the pod itself is nominated to: what holds there for others does not for it."""
        ...

    def judge(self, rows: Rows, gone: Mapping[str, NDArray[np.int64]]) -> Codes:
        """Verdicts on rows where so much less is asked for."""
        ...

    def describe(self, verdict: int) -> Status: ...

    def on(self, row: int) -> Trial:
        """Try out a node by itself."""
        ...

    def by_itself(self, row: int) -> Trial:
        """The same where something else than amounts may matter."""
        ...


class Handle(Protocol):
    """What a plugin may ask of its scheduler. The same for all plugins of a profile."""

    @property
    def scheduler_name(self) -> str: ...

    @property
    def client(self) -> Client: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> Stream:
        """A stream of chance of this profile alone."""
        ...

    @property
    def nodes(self) -> NodeTable:
        """All nodes, those included that a pod may not run on; `NodeTable.follow` tells what
        happens to them.
        """
        ...

    @property
    def nominations(self) -> NominatedPods: ...

    @property
    def waiting_pods(self) -> WaitingPods: ...

    @property
    def events(self) -> Recorder:
        """Where to tell what people should read under "Events" of a pod."""
        ...

    @property
    def extenders(self) -> Extenders: ...

    @property
    def pod_groups(self) -> PodGroups:
        """The pods of each group; nobody is in them unless the gate GenericWorkload is on."""
        ...

    @property
    def feature_gates(self) -> FeatureGates: ...

    def is_evicting_for(self, pod: PodInfo) -> bool:
        """Whether pods are just being removed to make room for this one."""
        ...

    def try_out(self, state: CycleState, pod: PodInfo) -> TryOut:
        """Suppose that pods leave nodes, many nodes at a time; PreFilter must have run."""
        ...

    def lister(self, gvk: GroupVersionKind) -> Lister:
        """The objects of a kind. The first call starts a watch; ask when the plugin is made."""
        ...

    def shared(self, make: Callable[["Handle"], T]) -> T:
        """What the profiles of a scheduler have in common: the first call makes it.

        ``make`` is a class or a plain function; who asks with the same one gets the same object.
        """
        ...

    def activate(self, pods: Iterable[Identified]) -> None:
        """Pods that wait for an event or the end of a backoff are to be tried at once."""
        ...

    def suppose(self, state: CycleState, pod: PodInfo) -> WhatIf:
        """Ask the profile's Filters about other circumstances; PreFilter must have run."""
        ...


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
        ``normalizes_alone``: then it is not asked again about nodes that all have none.
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
        """``WAIT`` parks the binding: the plugin is asked again when something happens that it
        registered for, when it allows the waiting pod, or when as many (virtual) nanoseconds have
        passed as it returned beside the status. So it can tell by itself that it took too long.
        """
        ...


class Awaited(NamedTuple):
    """An object that a parked binding waits for."""

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
