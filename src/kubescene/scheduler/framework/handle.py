"""What a plugin may ask of its scheduler: the `Handle` that its factory gets, and what is in it.

Part of the author's manual in `interfaces`, whence all of it is imported.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Stream
from kubescene.recording import Recorder
from kubescene.scheduler.extenders.extenders import Extenders
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.feature_gates import FeatureGates
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.state.pods import Identified, PodInfo
from kubescene.scheduler.state.row_types import Codes, Rows
from kubescene.types import ReadOnlyObject

T = TypeVar("T")


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
    """Filter for one pod as if other pods were on their nodes or not. See `suppositions`."""

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
    """Filter for one pod as if others were gone, many nodes at a time. See `trials`."""

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

    def tell(self, fact: Struct) -> None:
        """A fact of the plugin's own for the timeline: a struct of plain data, named by its class.

        Tell what was decided (PostFilter, Reserve, Permit, PreBind, PostBind). How often a Filter
        or Score is asked is nobody's promise.
        """
        ...

    def activate(self, pods: Iterable[Identified]) -> None:
        """Pods that wait for an event or the end of a backoff are to be tried at once."""
        ...

    def suppose(self, state: CycleState, pod: PodInfo) -> WhatIf:
        """Ask the profile's Filters about other circumstances; PreFilter must have run."""
        ...
