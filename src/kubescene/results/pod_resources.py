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
        text = stored_spec(pod)
        known = self._known.get(text) if text else None
        if known is None:
            spec = _DECODER.decode(pod.unversioned_data).spec
            known = self.asked(spec.containers, spec.init_containers, spec.overhead, spec.resources)
            if text:
                self._keep(text, known)
        return known

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
            known = known_resources(pod_requests({"spec": orjson.loads(text)}))
            self._keep(text, known)
        return known

    def _keep(self, text: bytes, requests: dict[str, int]) -> None:
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[text] = requests


def stored_spec(pod: ObjectState) -> bytes:
    """The part of a record that holds the spec, which pods of one template share; else empty."""
    if isinstance(pod, Record) and isinstance(pod.payload, Sections):
        for member in pod.payload.members:
            if member.startswith(SPEC_BEGINS):
                return member
    return b""


def known_resources(amounts: Any) -> dict[str, int]:
    return {name: int(amount) for name, amount in sorted(amounts.items()) if amount}
