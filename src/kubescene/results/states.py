"""What results need to know of a pod or a node, cut out of the object's text.

Objects of one template say the same: what they ask for or offer is worked out once.
"""

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

import msgspec
import orjson

from kubescene.api.owner_references import controller_name, owner_references
from kubescene.api.records import Record
from kubescene.api.resource_requests import node_allocatable
from kubescene.results.pod_resources import NOTHING, PodRequests, known_resources, stored_spec
from kubescene.timeline.object_facts import ObjectState

Amounts: TypeAlias = Mapping[str, int]
"""By resource: cpu in thousandths, everything else in whole units. Shared, so read-only."""
Text: TypeAlias = bytes | msgspec.Raw

KEPT = 1024
"""So many answers of each kind are remembered; pods of one template share one."""

T = TypeVar("T")


class PodAsk(msgspec.Struct, frozen=True, gc=False):
    """What a pod's spec asks for. Shared by pods whose specs say the same."""

    requests: Amounts
    priority: int = 0
    scheduler: str = ""
    gates: tuple[str, ...] = ()


NO_ASK = PodAsk({})


class PodState(msgspec.Struct, frozen=True, gc=False):
    """A pod at one moment. ``owner`` is ``Kind/name`` of the controller that made it."""

    node: str
    phase: str
    ask: PodAsk
    owner: str = ""


class NodeState(msgspec.Struct, frozen=True, gc=False):
    """A node at one moment."""

    allocatable: Amounts
    labels: Mapping[str, str]


class _Owner(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    owner_references: tuple[_Owner, ...] | None = None


class _Gate(msgspec.Struct, frozen=True):
    name: str = ""


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: msgspec.Raw = NOTHING
    init_containers: msgspec.Raw = NOTHING
    overhead: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING
    priority: int | None = None
    scheduler_name: str = ""
    scheduling_gates: tuple[_Gate, ...] | None = None


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _PodMetadata = _PodMetadata()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _NodeMetadata(msgspec.Struct, frozen=True):
    labels: dict[str, str] | None = None


class _NodeStatus(msgspec.Struct, frozen=True):
    allocatable: msgspec.Raw = NOTHING


class _Node(msgspec.Struct, frozen=True):
    metadata: _NodeMetadata = _NodeMetadata()
    status: _NodeStatus = _NodeStatus()


class _BoundSpec(msgspec.Struct, frozen=True, gc=False):
    node: str = msgspec.field(default="", name="nodeName")


class _Bound(msgspec.Struct, frozen=True, gc=False):
    spec: _BoundSpec = _BoundSpec()


_BOUND = msgspec.json.Decoder(_Bound)
_POD = msgspec.json.Decoder(_Pod)
_NODE = msgspec.json.Decoder(_Node)


class States:
    """Reads objects; raises `msgspec.DecodeError` for what is none."""

    def __init__(self) -> None:
        self._requests = PodRequests()
        self._offered: dict[bytes, Amounts] = {}
        self._asks: dict[bytes, PodAsk] = {}

    def pod(self, text: Text) -> PodState:
        """A pod from its text."""
        pod = _POD.decode(text)
        references = pod.metadata.owner_references
        owner = _owner(references) if references else ""
        return PodState(pod.spec.node_name, pod.status.phase, self._ask(pod.spec), owner)

    def new_pod(self, pod: ObjectState) -> PodState:
        """A pod from its record, with its owner; decoded only if need be."""
        references = owner_references(pod) if isinstance(pod, Record) else None
        if references is None:
            return self.pod(pod.unversioned_data)
        state = self.stored_pod(pod)
        if not references:
            return state
        return PodState(state.node, state.phase, state.ask, controller_name(references))

    def stored_pod(self, pod: ObjectState) -> PodState:
        """The same from a record; its owner is left out, since it never changes."""
        text = stored_spec(pod)
        ask = self._asks.get(text)
        if ask is None:
            ask = self._ask(_POD.decode(pod.unversioned_data).spec)
            if text:
                _keep(self._asks, text, ask)
        return PodState(pod.node, pod.phase, ask)

    def _ask(self, spec: _PodSpec) -> PodAsk:
        asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        gates = spec.scheduling_gates
        return PodAsk(
            self._requests.asked(*asked),
            spec.priority or 0,
            spec.scheduler_name,
            tuple([gate.name for gate in gates]) if gates else (),
        )

    def node(self, text: Text) -> NodeState:
        node = _NODE.decode(text)
        return NodeState(
            self._allocatable(bytes(node.status.allocatable)), node.metadata.labels or {}
        )

    def _allocatable(self, text: bytes) -> Amounts:
        known = self._offered.get(text)
        if known is None:
            status = {"status": {"allocatable": orjson.loads(text)}}
            known = known_resources(node_allocatable(status))
            _keep(self._offered, text, known)
        return known


def node_of(pod: Text) -> str:
    """The node that a pod is on, read without the rest."""
    return _BOUND.decode(pod).spec.node


def _keep(known: dict[bytes, T], text: bytes, value: T) -> None:
    if len(known) >= KEPT:
        known.clear()
    known[text] = value


def _owner(references: tuple[_Owner, ...]) -> str:
    return next((f"{each.kind}/{each.name}" for each in references if each.controller), "")
