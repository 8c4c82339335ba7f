"""The status that a controller keeps up to date: what is new in it is looked at, and encoded.

A ReplicaSet says of each of its pods that it has become ready, and so does its Deployment: two
patches a pod, each of a few counts. Metadata and spec stay as they are. Once such a patch, or one
of the spec, has gone the long way and was accepted, the metadata are known to be fine, and the next
one has to answer for its counts alone: that they are of the right types, and what validation says
of the status by itself (`KindRules.own_status`). Admission has no say, if all its plugins have
declared themselves.

Whatever is not plainly of that kind goes the long way.
"""

from collections.abc import Mapping

from msgspec import Struct

from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record, same_metadata
from kubescene.api.records.drafts import Parts, changed
from kubescene.api.records.parts import Sections, ends_with_status, restated
from kubescene.api.schemas.strict_decoding import largest_integers
from kubescene.api.scheme import ResourceType
from kubescene.api.validation import OwnStatusRule, is_sound_status, own_status_rule
from kubescene.bounded import BoundedDict
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store
from kubescene.types import JsonObject

WRITTEN_KEPT = 256
EMPTY = b'":{}'
_STATUS = {"status"}


class Written(Struct, frozen=True):
    """A kind of which an object was written, and what it asks of a status.

    ``counts`` are the integers in it, and how large each may be.
    """

    resource_type: ResourceType
    rule: OwnStatusRule
    counts: Mapping[str, int]


class StatusCounts:
    """The newest objects of one world whose status was written, by their encoded metadata."""

    def __init__(self, store: Store, admission: AdmissionChain) -> None:
        self._store = store
        self._admission = admission
        self._written: BoundedDict[bytes, Written] = BoundedDict(WRITTEN_KEPT)

    def find(self, request: WriteRequest, current: Record | None) -> Parts | None:
        """The object with the counts that a patch says."""
        if current is None or not is_plain(request):
            return None
        return self.counted(current, request.resource_type, request.body["status"])

    def counted(
        self, current: Record, resource_type: ResourceType, patch: JsonObject
    ) -> Parts | None:
        """The same for a patch of the status that is known to be all."""
        payload = current.payload
        if type(payload) is not Sections or current.deleting or not ends_with_status(payload):
            return None
        written = self._written.get(payload.metadata)
        if written is None or written.resource_type is not resource_type:
            return None
        if not self._admission.is_quiet:
            return None
        obj = self._store.decoded(current)
        before = obj["status"]
        status = counted(before, patch, written.counts)
        kind = written.resource_type.kind
        if status is None or not is_sound_status(written.rule, kind, status, before):
            return None
        members = restated(payload, status)
        return changed(current, members, current.phase, obj={**obj, "status": status})

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember an object whose status was patched the long way."""
        resource_type, payload = request.resource_type, after.payload
        if not is_plain(request) or before is None or after is before:
            return
        # Metadata that a write leaves alone have been validated, and will be left alone again.
        if isinstance(payload, Sections) and same_metadata(after, before):
            self.vouch_for(resource_type, payload, payload.metadata)

    def learn_metadata(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember an object that was patched the long way: its metadata have been validated.

        A write of the status leaves them alone, but that it takes away empty maps.
        """
        options, payload = request.options, after.payload
        if request.tracked or options.dry_run or before is None or after is before:
            return
        if isinstance(payload, Sections) and EMPTY not in payload.metadata:
            self.vouch_for(request.resource_type, payload, payload.metadata)

    def vouch_for(self, resource_type: ResourceType, payload: Sections, metadata: bytes) -> None:
        """Remember metadata that were validated, of an object of a kind that has such a status."""
        if resource_type.custom or resource_type.stored_as or not ends_with_status(payload):
            return
        if (rule := own_status_rule(resource_type)) is not None:
            counts = largest_integers(resource_type.gvk, "status")
            self._written[metadata] = Written(resource_type, rule, counts)


def counted(before: JsonObject, patch: JsonObject, counts: Mapping[str, int]) -> JsonObject | None:
    """A status with a patch merged into it; None if it changes nothing, or more than counts."""
    status: JsonObject | None = None
    for name, value in patch.items():
        known = before.get(name)
        if value is known or (value == known and type(value) is int and type(known) is int):
            continue
        if status is None:
            status = before.copy()
        if value is None:
            del status[name]
        elif type(value) is int and 0 <= value <= counts.get(name, -1):
            status[name] = value
        else:
            return None
    return status


def is_plain(request: WriteRequest) -> bool:
    """Whether a request merges into nothing but a status."""
    options, body = request.options, request.body
    return (
        request.subresource == "status"
        and request.patch_type is PatchType.MERGE
        and type(body) is dict
        and body.keys() == _STATUS
        and type(body["status"]) is dict
        and not request.tracked
        and not options.strict
        and not options.dry_run
    )
