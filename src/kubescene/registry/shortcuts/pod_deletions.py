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
from kubescene.api.records.parts import Sections, metadata_of, pod_members, pod_spec
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.deletion import DEFAULT_GRACE_S, TERMINAL, marked
from kubescene.store import Store

SPECS_KEPT = 512
_PLAIN_POLICIES = ("", "Background")


class PodDeletions:
    """Deletions by parts, for one world."""

    def __init__(self, store: Store, admission: AdmissionChain) -> None:
        self._store = store
        self._admission = admission

    def grace_of(self, pod: Record, options: DeleteOptions) -> int | None:
        """The seconds that a pod has to stop, if that is all there is to its deletion.

        None if it is not a pod, or has to go the long way: it may be held, is marked already, or
        somebody may refuse.
        """
        members = pod_members(pod.payload)
        if members is None or not self._admission.is_quiet or options.dry_run:
            return None
        if options.propagation_policy not in _PLAIN_POLICIES or may_be_held(pod):
            return None
        if not pod.node or pod.phase in TERMINAL:
            return 0
        asked = options.grace_period_s
        grace_s = max(own_grace_s(members[0]) if asked is None else asked, 0)
        return None if grace_s and pod.deleting else grace_s

    def mark(self, pod: Record, grace_s: int, now: int) -> Record:
        """Write down until when a pod has to stop."""
        assert isinstance(pod.payload, Sections)
        metadata = marked({"metadata": metadata_of(pod.payload.metadata)}, grace_s, now)["metadata"]
        return self._store.rewrite(
            pod,
            pod.payload.members,
            node=pod.node,
            phase=pod.phase,
            metadata=orjson.dumps(metadata)[1:],
            deleting=True,
        )


@lru_cache(SPECS_KEPT)
def own_grace_s(spec: bytes) -> int:
    """What the encoded spec of a pod, up to its node, says of it."""
    return int(pod_spec(spec).get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))
