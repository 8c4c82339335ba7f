"""What pods ask for, worked out once per distinct spec."""

from typing import Any

import msgspec
import orjson

from kubescene.api.records import Record
from kubescene.api.records.parts import Sections
from kubescene.api.resource_requests import pod_requests
from kubescene.timeline.object_facts import ObjectState

KEPT = 1024
"""So many answers are remembered; pods of one template share one."""

SPEC_BEGINS = b',"spec":'
NOTHING = msgspec.Raw(b"null")


class PodRequests:
    """Requests by what the spec says; answers are shared and therefore read-only."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, int]] = {}

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
            if len(self._known) >= KEPT:
                self._known.clear()
            requests = pod_requests({"spec": orjson.loads(text)})
            known = self._known[text] = known_resources(requests)
        return known


def stored_spec(pod: ObjectState) -> bytes:
    """The part of a record that holds the spec, which pods of one template share; else empty."""
    if isinstance(pod, Record) and isinstance(pod.payload, Sections):
        for member in pod.payload.members:
            if member.startswith(SPEC_BEGINS):
                return member
    return b""


def known_resources(amounts: Any) -> dict[str, int]:
    return {name: int(amount) for name, amount in sorted(amounts.items()) if amount}
