"""Patches of an object that change one well-known thing in it: the rest was validated before.

A rollout gives a ReplicaSet another size with every pod, and a Job takes its finalizer off every
pod that it has counted. Everything in the store was validated on its way in, so what is left to
validate is what such a patch says: a size, a mark on whose behalf it is that size, that finalizers
go. That nothing else has a say is learned from one that went the long way: of this very object for
sizes, of a pod of the same spec for finalizers. Admission has none, if all its plugins have
declared themselves.
"""

import orjson

from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.records.drafts import Parts, changed
from kubescene.api.records.keys import alike_spec
from kubescene.api.records.parts import PodSections, Sections, metadata_of
from kubescene.bounded import BoundedDict
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.shortcuts.status_counts import StatusCounts
from kubescene.registry.shortcuts.status_patches import is_neat
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

KEPT = 512
LARGEST = (1 << 31) - 1
DIGITS = 10
"""Figures of more digits are no sizes."""
LONG_METADATA = 64 * 1024
"""Annotations that are that long may come near to what is allowed."""
_FINALIZERS, _SIZE = {"finalizers"}, {"replicas"}
_SPEC = b',"spec":'


class SmallPatches:
    """What is known of the newest objects of one world that were patched so."""

    def __init__(self, store: Store, admission: AdmissionChain, counts: StatusCounts) -> None:
        self._store = store
        self._admission = admission
        self._counts = counts
        self._sets: BoundedDict[str, None] = BoundedDict(KEPT)
        """The uids of ReplicaSets that were patched the long way."""
        self._pods: BoundedDict[tuple[object, ...], bytes] = BoundedDict(KEPT)
        """Specs of pods that have lost these finalizers; held so that nobody has their ids."""

    def find(self, request: WriteRequest, current: Record | None) -> Parts | None:
        """The object with what a patch changes in it."""
        if current is None or current.deleting or not self._is_small(request):
            return None
        payload = current.payload
        if not isinstance(payload, Sections) or not is_neat(payload.metadata):
            return None
        if type(payload) is PodSections:
            return self._released(request, current, payload)
        if request.resource_type.gvk == REPLICA_SET:
            return self._resized(request, current, payload)
        return None

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember an object that was patched the long way."""
        if before is None or after is before or after.deleting or not self._is_small(request):
            return
        payload = after.payload
        if type(payload) is PodSections and isinstance(before.payload, PodSections):
            key = self._of_pod(request, before.payload)
            released = None if key is None else left(request, before.payload)
            if key is not None and released is not None and released == payload.metadata:
                self._pods[key] = payload.members[0]
        elif request.resource_type.gvk == REPLICA_SET and type(payload) is Sections:
            self._sets[after.uid] = None

    def _is_small(self, request: WriteRequest) -> bool:
        options, body = request.options, request.body
        return (
            request.patch_type is PatchType.MERGE
            and not request.tracked
            and not options.strict
            and not options.dry_run
            and type(body) is dict
            and self._admission.is_quiet
        )

    # -- finalizers of pods ----------------------------------------------------------------

    def _released(self, request: WriteRequest, pod: Record, payload: PodSections) -> Parts | None:
        """A pod without finalizers that a pod of the same spec has lost before."""
        key = self._of_pod(request, payload)
        if key is None or key not in self._pods:
            return None
        metadata = left(request, payload)
        if metadata is None:
            return None
        return changed(pod, payload.members, pod.phase, metadata=metadata)

    def _of_pod(self, request: WriteRequest, payload: PodSections) -> tuple[object, ...] | None:
        """Which pods lose finalizers alike; None if a patch says anything else."""
        body = request.body
        if request.resource_type.gvk != POD or [*body] != ["metadata"]:
            return None
        metadata = body["metadata"]
        if type(metadata) is not dict or metadata.keys() != _FINALIZERS:
            return None
        return request.actor, alike_spec(payload.members[0]), orjson.dumps(metadata)

    # -- sizes of sets ---------------------------------------------------------------------

    def _resized(self, request: WriteRequest, current: Record, payload: Sections) -> Parts | None:
        """A ReplicaSet of another size; None if none of its patches has gone the long way."""
        members = payload.members
        if current.uid not in self._sets or not members[0].startswith(_SPEC):
            return None
        if len(payload.metadata) > LONG_METADATA:
            return None
        obj = resized(self._store.decoded(current), request.body)
        if obj is None:
            return None
        given = {name: each for name, each in obj["metadata"].items() if name != "resourceVersion"}
        metadata = orjson.dumps(given)[1:]
        members = (_SPEC + orjson.dumps(obj["spec"]), *members[1:])
        self._counts.vouch_for(request.resource_type, payload, metadata)
        return changed(current, members, current.phase, metadata=metadata, obj=obj)


def left(request: WriteRequest, payload: PodSections) -> bytes | None:
    """The encoded metadata of a pod with those finalizers that a patch leaves; None if no others.

    What they are need not be looked at: the same patch was accepted.
    """
    metadata = metadata_of(payload.metadata)
    before, after = metadata.get("finalizers"), request.body["metadata"]["finalizers"]
    if not before or after == before or not (after is None or (type(after) is list and after)):
        return None
    if after is None:
        del metadata["finalizers"]
    else:
        metadata["finalizers"] = after
    return orjson.dumps(metadata)[1:]


def resized(replica_set: JsonObject, patch: JsonObject) -> JsonObject | None:
    """A ReplicaSet of another size, perhaps with other figures in annotations that it has.

    None if a patch says anything else, or nothing new.
    """
    metadata, spec = replica_set["metadata"], replica_set["spec"]
    size, noted = patch.get("spec"), patch.get("metadata")
    if len(patch) != 1 + (noted is not None) or type(size) is not dict or size.keys() != _SIZE:
        return None
    replicas = size["replicas"]
    if type(replicas) is not int or not 0 <= replicas <= LARGEST or "replicas" not in spec:
        return None
    if replicas == spec["replicas"] or "generation" not in metadata:
        return None
    metadata = {**metadata, "generation": metadata["generation"] + 1}
    if noted is not None:
        figures = noted.get("annotations") if type(noted) is dict and len(noted) == 1 else None
        if type(figures) is not dict or not has_figures(metadata.get("annotations") or {}, figures):
            return None
        metadata["annotations"] = {**metadata["annotations"], **figures}
    return {**replica_set, "metadata": metadata, "spec": {**spec, "replicas": replicas}}


def has_figures(annotations: JsonObject, figures: JsonObject) -> bool:
    """Whether an object has all these annotations, and the new ones are figures."""
    return bool(figures) and all(
        name in annotations and type(each) is str and each.isdecimal() and len(each) <= DIGITS
        for name, each in figures.items()
    )
