"""What results need to know of a pod or a node, cut out of the object's text.

Objects of one template say the same: what they ask for or offer is worked out once.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec
import orjson

from kubescene.api.records import Record
from kubescene.api.records.owner_references import controller_name, owner_references
from kubescene.api.resource_requests import node_allocatable
from kubescene.results.pod_resources import NOTHING, PodRequests, known_resources, stored_spec
from kubescene.timeline.object_facts import ObjectState

Amounts: TypeAlias = Mapping[str, int]
"""By resource: cpu in thousandths, everything else in whole units. Shared, so read-only."""
Labels: TypeAlias = Mapping[str, str]
"""Shared by objects of one template, so read-only."""

NO_LABELS: Labels = {}
EMPTY = msgspec.Raw(b"{}")
POD_BEGINS = b'{"apiVersion":"v1","kind":"Pod","metadata":{'
METADATA_AT = len(POD_BEGINS) - 1
END_OF_METADATA = b'},"spec":'
STATUS_BEGINS = b',"status":'
LABELS, OWNERS = b'"labels":', b'"ownerReferences":'
BOUND = re.compile(rb'\{"spec":\{"nodeName":"([^"\\]*)"\}\}')
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
    labels: Labels = NO_LABELS


class NodeState(msgspec.Struct, frozen=True, gc=False):
    """A node at one moment."""

    allocatable: Amounts
    labels: Labels


class MetadataText(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The members of metadata that results look into, still as text."""

    labels: msgspec.Raw = NOTHING
    owner_references: msgspec.Raw = NOTHING


class ObjectText(msgspec.Struct, frozen=True, gc=False):
    """An object, taken apart and no more: what its parts say is mostly known already."""

    metadata: MetadataText = MetadataText()
    spec: msgspec.Raw = EMPTY
    status: msgspec.Raw = EMPTY


class _Owner(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


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


class _PodStatus(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _NodeStatus(msgspec.Struct, frozen=True):
    allocatable: msgspec.Raw = NOTHING


class _Place(msgspec.Struct, frozen=True, gc=False):
    node: str = msgspec.field(default="", name="nodeName")


class _PodSpecRead(NamedTuple):
    """What a spec says."""

    node: str
    ask: PodAsk


_METADATA = msgspec.json.Decoder(MetadataText)
_OBJECT = msgspec.json.Decoder(ObjectText)
_PLACE = msgspec.json.Decoder(_Place)
_POD_SPEC = msgspec.json.Decoder(_PodSpec)
_POD_STATUS = msgspec.json.Decoder(_PodStatus)
_NODE_STATUS = msgspec.json.Decoder(_NodeStatus)
_LABELS = msgspec.json.Decoder(dict[str, str] | None)
_OWNERS = msgspec.json.Decoder(tuple[_Owner, ...] | None)


class States:
    """Reads objects; raises `msgspec.DecodeError` for what is none."""

    def __init__(self) -> None:
        self._requests = PodRequests()
        self._offered: dict[bytes, Amounts] = {}
        self._specs: dict[bytes, _PodSpecRead] = {}
        self._pods: dict[bytes, PodState] = {}
        self._asks: dict[bytes, PodAsk] = {}
        self._labels: dict[bytes, Labels] = {}
        self._owners: dict[bytes, str] = {}

    def told_pod(self, text: bytes) -> PodState:
        """A pod from its text, most of which other pods of its template share.

        A text that begins as ours do, with no status before, has everything but metadata behind its
        first ``},"spec":``. It is JSON, so where two of them agree from there on, they agree about
        spec and status.
        """
        cut = text.find(END_OF_METADATA) if text.startswith(POD_BEGINS) else -1
        if cut < 0 or text.find(STATUS_BEGINS, 0, cut) >= 0:
            return self.pod(taken_apart(text))
        rest = text[cut:]
        known = self._pods.get(rest)
        if known is None:
            known = self.pod(taken_apart(text))
            _keep(self._pods, rest, msgspec.structs.replace(known, owner="", labels=NO_LABELS))
            return known
        if text.find(LABELS, 0, cut) < 0 and text.find(OWNERS, 0, cut) < 0:
            return known
        metadata = _METADATA.decode(text[METADATA_AT : cut + 1])
        return PodState(
            known.node, known.phase, known.ask, self._owned(metadata), self._labelled(metadata)
        )

    def pod(self, pod: ObjectText) -> PodState:
        """A pod from its parts."""
        node, ask = self._spec(bytes(pod.spec))
        return PodState(
            node, phase_of(pod), ask, self._owned(pod.metadata), self._labelled(pod.metadata)
        )

    def new_pod(self, pod: ObjectState) -> PodState:
        """A pod from its record, with its owner; decoded only if need be."""
        if isinstance(pod, Record) and not pod.owner:
            return self.stored_pod(pod)
        references = owner_references(pod) if isinstance(pod, Record) else None
        if references is None:
            return self.pod(taken_apart(pod.unversioned_data))
        state = self.stored_pod(pod)
        owner = controller_name(references)
        return PodState(state.node, state.phase, state.ask, owner, state.labels)

    def stored_pod(self, pod: ObjectState) -> PodState:
        """The same from a record, whose owner is left out, since it never changes."""
        text = stored_spec(pod)
        if not text or not isinstance(pod, Record):
            return self.pod(taken_apart(pod.unversioned_data))
        ask = self._asks.get(text)
        if ask is None:
            ask = self._ask(_POD_SPEC.decode(taken_apart(pod.unversioned_data).spec))
            _keep(self._asks, text, ask)
        return PodState(pod.node, pod.phase, ask, "", pod.labels)

    def _spec(self, text: bytes) -> _PodSpecRead:
        known = self._specs.get(text)
        if known is None:
            spec = _POD_SPEC.decode(text)
            known = _PodSpecRead(spec.node_name, self._ask(spec))
            _keep(self._specs, text, known)
        return known

    def _ask(self, spec: _PodSpec) -> PodAsk:
        asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        gates = spec.scheduling_gates
        return PodAsk(
            self._requests.asked(*asked),
            spec.priority or 0,
            spec.scheduler_name,
            tuple([gate.name for gate in gates]) if gates else (),
        )

    def node(self, node: ObjectText) -> NodeState:
        status = _NODE_STATUS.decode(node.status)
        labels = self._labelled(node.metadata)
        return NodeState(self._allocatable(bytes(status.allocatable)), labels)

    def _allocatable(self, text: bytes) -> Amounts:
        known = self._offered.get(text)
        if known is None:
            status = {"status": {"allocatable": orjson.loads(text)}}
            known = known_resources(node_allocatable(status))
            _keep(self._offered, text, known)
        return known

    def labels(self, obj: ObjectText) -> Labels:
        """The labels of an object."""
        return self._labelled(obj.metadata)

    def _labelled(self, metadata: MetadataText) -> Labels:
        labels = metadata.labels
        if labels is NOTHING:
            return NO_LABELS
        text = bytes(labels)
        known = self._labels.get(text)
        if known is None:
            known = _LABELS.decode(text) or NO_LABELS
            _keep(self._labels, text, known)
        return known

    def _owned(self, metadata: MetadataText) -> str:
        """The controller that made an object."""
        owners = metadata.owner_references
        if owners is NOTHING:
            return ""
        text = bytes(owners)
        known = self._owners.get(text)
        if known is None:
            known = _controller(_OWNERS.decode(text) or ())
            _keep(self._owners, text, known)
        return known


def taken_apart(text: bytes | msgspec.Raw) -> ObjectText:
    """An object from its text."""
    return _OBJECT.decode(text)


def phase_of(pod: ObjectText) -> str:
    return _POD_STATUS.decode(pod.status).phase


def bound_to(body: bytes, pod: msgspec.Raw) -> str:
    """The node of a pod that was just bound: that of the patch, or else of the pod after it."""
    if (bound := BOUND.fullmatch(body)) is not None:
        return bound[1].decode()
    return _PLACE.decode(_OBJECT.decode(pod).spec).node


def _keep(known: dict[bytes, T], text: bytes, value: T) -> None:
    if len(known) >= KEPT:
        known.clear()
    known[text] = value


def _controller(references: tuple[_Owner, ...]) -> str:
    return next((f"{each.kind}/{each.name}" for each in references if each.controller), "")
