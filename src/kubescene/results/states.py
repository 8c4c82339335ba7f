"""What results need to know of a pod or a node, cut out of the object's text.

Objects of one template say the same: what they ask for or offer is worked out once.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec
import orjson

from kubescene.api.resource_requests import node_allocatable
from kubescene.results.pod_resources import NOTHING, PodRequests, known_resources

Amounts: TypeAlias = Mapping[str, int]
"""By resource: cpu in thousandths, everything else in whole units. Shared, so read-only."""
Text: TypeAlias = bytes | msgspec.Raw

KEPT = 1024


class PodState(msgspec.Struct, frozen=True, gc=False):
    """A pod at one moment. ``owner`` is ``Kind/name`` of the controller that made it."""

    node: str
    phase: str
    deleting: bool
    requests: Amounts
    priority: int = 0
    owner: str = ""
    scheduler: str = ""
    gates: tuple[str, ...] = ()


class NodeState(msgspec.Struct, frozen=True, gc=False):
    """A node at one moment."""

    allocatable: Amounts
    labels: Mapping[str, str]


class _Owner(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: str | None = None
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


_POD = msgspec.json.Decoder(_Pod)
_NODE = msgspec.json.Decoder(_Node)


class States:
    """Reads objects; raises `msgspec.DecodeError` for what is none."""

    def __init__(self) -> None:
        self._requests = PodRequests()
        self._offered: dict[bytes, Amounts] = {}

    def pod(self, text: Text) -> PodState:
        pod = _POD.decode(text)
        spec, metadata = pod.spec, pod.metadata
        asked = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        return PodState(
            spec.node_name,
            pod.status.phase,
            metadata.deletion_timestamp is not None,
            self._requests.asked(*asked),
            spec.priority or 0,
            _owner(metadata.owner_references) if metadata.owner_references else "",
            spec.scheduler_name,
            tuple([gate.name for gate in spec.scheduling_gates or ()]),
        )

    def node(self, text: Text) -> NodeState:
        node = _NODE.decode(text)
        return NodeState(
            self._allocatable(bytes(node.status.allocatable)), node.metadata.labels or {}
        )

    def _allocatable(self, text: bytes) -> Amounts:
        known = self._offered.get(text)
        if known is None:
            if len(self._offered) >= KEPT:
                self._offered.clear()
            status = {"status": {"allocatable": orjson.loads(text)}}
            known = self._offered[text] = known_resources(node_allocatable(status))
        return known


def _owner(references: tuple[_Owner, ...]) -> str:
    return next((f"{each.kind}/{each.name}" for each in references if each.controller), "")
