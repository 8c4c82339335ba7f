"""What pods ask for, worked out once per distinct spec."""

from typing import Any

import msgspec
import orjson

from kubescene.api.parts import Sections
from kubescene.api.records import Record
from kubescene.api.resource_requests import pod_requests
from kubescene.timeline.object_facts import ObjectState

KEPT = 1024
"""So many answers are remembered; pods of one template share one."""

SPEC_BEGINS = b',"spec":'
NOTHING = msgspec.Raw(b"null")


class _Spec(msgspec.Struct, frozen=True):
    """The parts of a pod's spec that say what it asks for, undecoded."""

    containers: msgspec.Raw = NOTHING
    init_containers: msgspec.Raw = msgspec.field(default=NOTHING, name="initContainers")
    overhead: msgspec.Raw = NOTHING
    resources: msgspec.Raw = NOTHING


class _Pod(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


_DECODER = msgspec.json.Decoder(_Pod)


class PodRequests:
    """Requests by what the spec says; answers are shared and therefore read-only."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, int]] = {}

    def of(self, pod: ObjectState) -> dict[str, int]:
        text = stored_spec(pod) or asked_for(pod)
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            requests = pod_requests({"spec": orjson.loads(asked_for(pod))})
            known = self._known[text] = known_resources(requests)
        return known


def stored_spec(pod: ObjectState) -> bytes:
    """The part of a record that holds the spec, which pods of one template share; else empty."""
    if isinstance(pod, Record) and isinstance(pod.payload, Sections):
        for member in pod.payload.members:
            if member.startswith(SPEC_BEGINS):
                return member
    return b""


def asked_for(pod: ObjectState) -> bytes:
    """The decisive members of the spec, cut out of the text."""
    spec = _DECODER.decode(pod.unversioned_data).spec
    return b'{"containers":%s,"initContainers":%s,"overhead":%s,"resources":%s}' % (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
    )


def known_resources(amounts: Any) -> dict[str, int]:
    return {name: int(amount) for name, amount in sorted(amounts.items()) if amount}
