"""Deletions of pods that are seen to be plain without decoding them.

What becomes of a pod that is deleted depends on few things: whether it has a node and has not
ended, how much time its spec gives it to stop, and whether a finalizer holds it. Where none does,
the first are hot fields of the record, and the second is read once per distinct spec. Marking a pod
replaces its metadata then, and nothing else is encoded.
"""

from functools import lru_cache

import orjson

from kubescene.api.options import DeleteOptions
from kubescene.api.records import Record, may_be_held
from kubescene.api.records.drafts import changed
from kubescene.api.records.parts import PodSections, metadata_of, pod_spec
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.clocks import Clocks
from kubescene.registry.deletion import DEFAULT_GRACE_S, TERMINAL, marked
from kubescene.registry.writes import REMOVAL, Result, WriteRequest

SPECS_KEPT = 512
_PLAIN_POLICIES = ("", "Background")


class PodDeletions:
    """Deletions by parts, for one world."""

    def __init__(self, admission: AdmissionChain, clocks: Clocks) -> None:
        self._admission = admission
        self._clocks = clocks

    def find(self, request: WriteRequest, current: Record | None) -> Result | None:
        """What becomes of a pod that nothing holds, is not marked yet and nobody may refuse."""
        if current is None or type(current.payload) is not PodSections:
            return None
        options: DeleteOptions = request.wish
        if not self._admission.is_quiet or options.dry_run:
            return None
        if options.propagation_policy not in _PLAIN_POLICIES or may_be_held(current):
            return None
        payload = current.payload
        grace_s = grace_of(current, payload.members[0], options.grace_period_s)
        if not grace_s:
            return REMOVAL
        if current.deleting:
            return None
        now = self._clocks.world.now()
        metadata = marked({"metadata": metadata_of(payload.metadata)}, grace_s, now)["metadata"]
        encoded = orjson.dumps(metadata)[1:]
        return changed(current, payload.members, current.phase, metadata=encoded, deleting=True)

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Nothing: what becomes of a pod is found without an example."""


def grace_of(pod: Record, spec: bytes, asked: int | None) -> int:
    """The seconds that a pod has to stop; none if it never ran, or has ended."""
    if not pod.node or pod.phase in TERMINAL:
        return 0
    return max(own_grace_s(spec) if asked is None else asked, 0)


@lru_cache(SPECS_KEPT)
def own_grace_s(spec: bytes) -> int:
    """What the encoded spec of a pod, up to its node, says of it."""
    return int(pod_spec(spec).get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))
