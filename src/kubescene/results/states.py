"""What results need to know of a pod or a node, cut out of the object's text.

Objects of one template say the same: what they ask for or offer is worked out once.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
import orjson

from kubescene.api.records import Record
from kubescene.api.records.owner_references import controller_name, owner_references
from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.bounded import BoundedDict
from kubescene.timeline.object_facts import ObjectPatched, ObjectState, ObjectStored

Amounts: TypeAlias = Mapping[str, int]
"""By resource: cpu in thousandths, everything else in whole units. Shared, so read-only."""
Labels: TypeAlias = Mapping[str, str]
"""Shared by objects of one template, so read-only."""

NO_LABELS: Labels = {}
NOTHING = msgspec.Raw(b"null")
EMPTY = msgspec.Raw(b"{}")
POD_BEGINS = b'{"apiVersion":"v1","kind":"Pod","metadata":{'
METADATA_AT = len(POD_BEGINS) - 1
END_OF_METADATA = b'},"spec":'
STATUS_BEGINS = b',"status":'
LABELS, OWNERS = b'"labels":', b'"ownerReferences":'
BOUND = re.compile(rb'\{"spec":\{"nodeName":"([^"\\]*)"\}\}')
KEPT = 1024
"""So many answers of each kind are remembered; pods of one template share one."""


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
    """A node at one moment.

    ``marks`` say what keeps pods away from it, as ``NotReady, cordoned, tainted KEY=VALUE:EFFECT``;
    empty if nothing does.
    """

    allocatable: Amounts
    labels: Labels
    marks: str = ""
    capacity: Amounts = {}


class MetadataText(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The members of metadata that results look into, still as text."""

    labels: msgspec.Raw = NOTHING
    owner_references: msgspec.Raw = NOTHING


class ObjectText(msgspec.Struct, frozen=True, gc=False):
    """An object, taken apart and no more: what its parts say is mostly known already."""

    metadata: MetadataText = MetadataText()
    spec: msgspec.Raw = EMPTY
    status: msgspec.Raw = EMPTY


class _OwnerText(msgspec.Struct, frozen=True):
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


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _NodeStatus(msgspec.Struct, frozen=True):
    allocatable: msgspec.Raw = NOTHING
    capacity: msgspec.Raw = NOTHING
    conditions: tuple[_Condition, ...] | None = None


class _Taint(msgspec.Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class _NodeSpec(msgspec.Struct, frozen=True):
    unschedulable: bool | None = None
    taints: tuple[_Taint, ...] | None = None


class _BoundTo(msgspec.Struct, frozen=True, gc=False):
    node: str = msgspec.field(default="", name="nodeName")


class _PodSpecRead(NamedTuple):
    """What a spec says."""

    node: str
    ask: PodAsk


_METADATA = msgspec.json.Decoder(MetadataText)
_OBJECT = msgspec.json.Decoder(ObjectText)
_PLACE = msgspec.json.Decoder(_BoundTo)
_POD_SPEC = msgspec.json.Decoder(_PodSpec)
_POD_STATUS = msgspec.json.Decoder(_PodStatus)
_NODE_SPEC = msgspec.json.Decoder(_NodeSpec)
_NODE_STATUS = msgspec.json.Decoder(_NodeStatus)
_LABELS = msgspec.json.Decoder(dict[str, str] | None)
_OWNERS = msgspec.json.Decoder(tuple[_OwnerText, ...] | None)


class RequestsBySpec:
    """Requests by what the spec says; answers are shared and therefore read-only."""

    def __init__(self) -> None:
        self._known: BoundedDict[bytes, dict[str, int]] = BoundedDict(KEPT)

    def asked(
        self,
        containers: msgspec.Raw,
        init_containers: msgspec.Raw,
        overhead: msgspec.Raw,
        resources: msgspec.Raw,
    ) -> dict[str, int]:
        """What the decisive members of a spec ask for, given as text."""
        text = b'{"containers":%s,"initContainers":%s,"overhead":%s,"resources":%s}' % (
            containers,
            init_containers,
            overhead,
            resources,
        )
        known = self._known.get(text)
        if known is None:
            requests = pod_requests({"spec": orjson.loads(text)})
            known = self._known[text] = known_resources(requests)
        return known


def stored_spec(pod: ObjectState) -> bytes:
    """The key of a record's spec, which pods of one template share; else empty."""
    return (pod.spec_key or b"") if isinstance(pod, Record) else b""


def known_resources(amounts: Any) -> dict[str, int]:
    return {name: int(amount) for name, amount in sorted(amounts.items()) if amount}


class States:
    """Reads objects; raises `msgspec.DecodeError` for what is none."""

    def __init__(self) -> None:
        self._requests = RequestsBySpec()
        self._offered: BoundedDict[bytes, Amounts] = BoundedDict(KEPT)
        self._specs: BoundedDict[bytes, _PodSpecRead] = BoundedDict(KEPT)
        self._pods: BoundedDict[bytes, PodState] = BoundedDict(KEPT)
        self._asks: BoundedDict[bytes, PodAsk] = BoundedDict(KEPT)
        self._nodes: BoundedDict[tuple[bytes, ...], NodeState] = BoundedDict(KEPT)
        self._labels: BoundedDict[bytes, Labels] = BoundedDict(KEPT)
        self._owners: BoundedDict[bytes, str] = BoundedDict(KEPT)

    def pod(self, fact: ObjectStored) -> PodState:
        """The pod that a fact, or its line, is about."""
        return self.pod_of(fact.record) if is_fact(fact) else self.pod_in(bytes(text_of(fact)))

    def node(self, fact: ObjectStored) -> NodeState:
        """The node that a fact, or its line, is about."""
        record = fact.record if is_fact(fact) else None
        body = record.body_key if isinstance(record, Record) else None
        if isinstance(record, Record) and body is not None:
            known = self._nodes.get(body)
            if known is None:
                known = self._nodes[body] = self._offering(taken_apart(record.unversioned_data))
            labels: Labels = record.labels
        else:
            node = taken_apart(text_of(fact))
            shared = bytes(node.spec), bytes(node.status)
            known = self._nodes.get(shared)
            if known is None:
                known = self._nodes[shared] = self._offering(node)
            labels = self._labelled(node.metadata)
        return NodeState(known.allocatable, labels, known.marks, known.capacity)

    def _offering(self, node: ObjectText) -> NodeState:
        """A node without what is its own."""
        status = _NODE_STATUS.decode(node.status)
        marks = ", ".join(_marks(_NODE_SPEC.decode(node.spec), status))
        offered, capacity = (bytes(each) for each in (status.allocatable, status.capacity))
        return NodeState(self._amounts(offered), NO_LABELS, marks, self._amounts(capacity))

    def bound_node(self, fact: ObjectPatched) -> str:
        """Where the pod is that was just bound."""
        if is_fact(fact):
            return fact.record.node
        return bound_to(bytes(fact.body), text_of(fact))

    def pod_in(self, text: bytes) -> PodState:
        """A pod from its text, most of which other pods of its template share.

        A text that begins as ours do, with no status before, has everything but metadata behind its
        first ``},"spec":``. It is JSON, so where two of them agree from there on, they agree about
        spec and status.
        """
        cut = text.find(END_OF_METADATA) if text.startswith(POD_BEGINS) else -1
        if cut < 0 or text.find(STATUS_BEGINS, 0, cut) >= 0:
            return self.decoded_pod(text)
        rest = text[cut:]
        known = self._pods.get(rest)
        if known is None:
            known = self.decoded_pod(text)
            self._pods[rest] = msgspec.structs.replace(known, owner="", labels=NO_LABELS)
            return known
        if text.find(LABELS, 0, cut) < 0 and text.find(OWNERS, 0, cut) < 0:
            return known
        metadata = _METADATA.decode(text[METADATA_AT : cut + 1])
        return PodState(
            known.node, known.phase, known.ask, self._owned(metadata), self._labelled(metadata)
        )

    def decoded_pod(self, text: bytes) -> PodState:
        """A pod from its text."""
        pod = taken_apart(text)
        node, ask = self._spec(bytes(pod.spec))
        return PodState(
            node, phase_of(pod), ask, self._owned(pod.metadata), self._labelled(pod.metadata)
        )

    def pod_of(self, pod: ObjectState) -> PodState:
        """A pod from its record, decoded only if need be."""
        text = stored_spec(pod)
        if not text or not isinstance(pod, Record):
            return self.decoded_pod(pod.unversioned_data)
        owner = ""
        if pod.owner:
            references = owner_references(pod)
            if references is None:
                return self.decoded_pod(pod.unversioned_data)
            owner = controller_name(references)
        ask = self._asks.get(text)
        if ask is None:
            spec = _POD_SPEC.decode(taken_apart(pod.unversioned_data).spec)
            ask = self._asks[text] = self._ask(spec)
        return PodState(pod.node, pod.phase, ask, owner, pod.labels)

    def _spec(self, text: bytes) -> _PodSpecRead:
        known = self._specs.get(text)
        if known is None:
            spec = _POD_SPEC.decode(text)
            known = self._specs[text] = _PodSpecRead(spec.node_name, self._ask(spec))
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

    def _amounts(self, text: bytes) -> Amounts:
        known = self._offered.get(text)
        if known is None:
            status = {"status": {"allocatable": orjson.loads(text)}}
            known = self._offered[text] = known_resources(node_allocatable(status))
        return known

    def _labelled(self, metadata: MetadataText) -> Labels:
        labels = metadata.labels
        if labels is NOTHING:
            return NO_LABELS
        text = bytes(labels)
        known = self._labels.get(text)
        if known is None:
            known = self._labels[text] = _LABELS.decode(text) or NO_LABELS
        return known

    def _owned(self, metadata: MetadataText) -> str:
        """The controller that made an object."""
        owners = metadata.owner_references
        if owners is NOTHING:
            return ""
        text = bytes(owners)
        known = self._owners.get(text)
        if known is None:
            known = self._owners[text] = _controller(_OWNERS.decode(text) or ())
        return known


READY = {"False": "NotReady", "Unknown": "unreachable"}
"""What is said of a node whose condition Ready is that."""
BROKEN = tuple(READY.values())
CORDONED = "cordoned"
ALREADY_SAID = {
    "node.kubernetes.io/not-ready": "NotReady",
    "node.kubernetes.io/unreachable": "unreachable",
    "node.kubernetes.io/unschedulable": CORDONED,
}
"""Taints that come with a mark."""


def _marks(spec: _NodeSpec, status: _NodeStatus) -> Iterator[str]:
    """What keeps pods away from a node."""
    ready = next((each.status for each in status.conditions or () if each.type == "Ready"), "")
    said = [mark for mark in (READY.get(ready), CORDONED if spec.unschedulable else None) if mark]
    yield from said
    for taint in spec.taints or ():
        if ALREADY_SAID.get(taint.key) not in said:
            value = f"={taint.value}" if taint.value else ""
            yield f"tainted {taint.key}{value}:{taint.effect}"


def is_broken(marks: str) -> bool:
    """Whether a node with these marks runs nothing, or nobody knows."""
    return marks.startswith(BROKEN)


def is_fact(fact: object) -> bool:
    """Whether it is a fact, not its line."""
    return isinstance(fact, ObjectStored)


def text_of(fact: Any) -> bytes | msgspec.Raw:
    """The object of a fact, or of its line."""
    text: bytes | msgspec.Raw = fact.record.unversioned_data if is_fact(fact) else fact.object
    return text


def taken_apart(text: bytes | msgspec.Raw) -> ObjectText:
    """An object from its text."""
    return _OBJECT.decode(text)


def phase_of(pod: ObjectText) -> str:
    return _POD_STATUS.decode(pod.status).phase


def bound_to(body: bytes, pod: bytes | msgspec.Raw) -> str:
    """The node of a pod that was just bound: that of the patch, or else of the pod after it."""
    if (bound := BOUND.fullmatch(body)) is not None:
        return bound[1].decode()
    return _PLACE.decode(_OBJECT.decode(pod).spec).node


def _controller(references: tuple[_OwnerText, ...]) -> str:
    return next((f"{each.kind}/{each.name}" for each in references if each.controller), "")
