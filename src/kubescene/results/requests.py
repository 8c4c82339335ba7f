"""What pods ask for, read from their bytes once per distinct set of containers."""

from typing import Any

import msgspec
import orjson

from kubescene.api.resource_requests import pod_requests
from kubescene.timeline.object_facts import ObjectState

KEPT = 1024
"""So many distinct answers are remembered; pods of one template share one."""

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
    """Requests by what the containers say; answers are shared and therefore read-only."""

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, int]] = {}

    def of(self, pod: ObjectState) -> dict[str, int]:
        spec = _DECODER.decode(pod.unversioned_data).spec
        text = b'{"containers":%s,"initContainers":%s,"overhead":%s,"resources":%s}' % (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
        )
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = known_resources(pod_requests({"spec": orjson.loads(text)}))
            self._known[text] = known
        return known


def known_resources(amounts: Any) -> dict[str, int]:
    return {name: int(amount) for name, amount in sorted(amounts.items()) if amount}
