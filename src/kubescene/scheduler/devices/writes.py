"""What the scheduler writes into claims: allocations, reservations, and their end."""

from typing import Any

from kubescene.api.kinds import POD
from kubescene.api.options import LASTING
from kubescene.api.patching.patches import PatchType
from kubescene.client.interfaces import Client, ObjectRef
from kubescene.clock import Clock
from kubescene.clock.timestamps import format_time
from kubescene.errors import ApiError, ConflictError
from kubescene.scheduler.devices.named_claims import (
    RESOURCE_CLAIM,
    allocation_of,
    key_of,
    reserved_for,
)
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject, ReadOnlyObject

FINALIZER = "resource.kubernetes.io/delete-protection"
TRIES = 5


class ClaimWriteError(Exception):
    """A claim could not be written as it was meant to; the text says which and why."""


class ClaimWriter:
    """Writes claims through the scheduler's client."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def bind(
        self, claim: ReadOnlyObject, allocation: JsonObject | None, pod: PodInfo
    ) -> ReadOnlyObject:
        """Write the allocation, if it is new, and reserve the claim for the pod.

        Somebody may have changed the claim in the meantime: then the newest one is taken.
        """
        for _ in range(TRIES):
            try:
                return self._bind(claim, allocation, pod)
            except ConflictError as error:
                refused = error
            claim = self._client.get(_ref(claim))
        raise ClaimWriteError(f"add reservation to claim {key_of(claim)}: {refused}")

    def _bind(
        self, claim: ReadOnlyObject, allocation: JsonObject | None, pod: PodInfo
    ) -> ReadOnlyObject:
        key = key_of(claim)
        if claim["metadata"].get("deletionTimestamp") is not None:
            raise ClaimWriteError(f"claim {key} got deleted in the meantime")
        if allocation is not None:
            if allocation_of(claim) is not None:
                raise ClaimWriteError(f"claim {key} got allocated elsewhere in the meantime")
            claim = self._protected(claim)
        held = allocation if allocation is not None else allocation_of(claim)
        if held is None:
            raise ClaimWriteError(f"claim {key} got deallocated elsewhere in the meantime")
        if not held.get("allocationTimestamp"):
            held = {**held, "allocationTimestamp": format_time(self._clock.now())}
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status = {"allocation": held, "reservedFor": [*reserved_for(claim), consumer]}
        what = "reservation" if allocation is None else "allocation and reservation"
        return self._with_status(claim, status, f"add {what} to claim {key}")

    def _protected(self, claim: ReadOnlyObject) -> ReadOnlyObject:
        """The claim with the finalizer that keeps it while it is allocated."""
        metadata = claim["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER in finalizers:
            return claim
        changed = {**claim, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}
        return self._update(changed, f"add finalizer to claim {key_of(claim)}")

    def create(self, claim: JsonObject) -> ReadOnlyObject:
        """Create the claim for extended resources; it gets its name now."""
        metadata = {name: each for name, each in claim["metadata"].items() if name != "name"}
        try:
            record = self._client.create({**claim, "metadata": metadata})
        except ApiError as error:
            text = f"create claim for extended resources {key_of(claim)}: {error}"
            raise ClaimWriteError(text) from error
        self._client.wait_seen(record.revision)
        return record.decode()

    def deallocate(self, claim: ReadOnlyObject) -> None:
        """Give the devices back."""
        status = {"allocation": None, "reservedFor": None, "devices": None}
        self._with_status(claim, status, "")

    def unreserve(self, claim: ReadOnlyObject, pod: PodInfo) -> None:
        """The pod does not use the claim after all. Fails silently: the next attempt sees it."""
        entry = {"$patch": "delete", "uid": pod.uid}
        uid = claim["metadata"]["uid"]
        patch = {"metadata": {"uid": uid}, "status": {"reservedFor": [entry]}}
        try:
            self._client.patch(
                _ref(claim), patch, patch_type=PatchType.STRATEGIC, subresource="status"
            )
        except ApiError:
            return

    def delete(self, claim: ReadOnlyObject) -> None:
        """Delete a claim that the scheduler has made, whether or not it is allocated."""
        for _ in range(TRIES):
            metadata = claim["metadata"]
            finalizers = [each for each in metadata.get("finalizers") or () if each != FINALIZER]
            try:
                self._client.update({**claim, "metadata": {**metadata, "finalizers": finalizers}})
                break
            except ConflictError:
                claim = self._client.get(_ref(claim))
        self._client.delete(_ref(claim))

    def report(self, pod: PodInfo, claim: ReadOnlyObject, mappings: list[JsonObject]) -> None:
        """Tell in the pod's status which claim its extended resources come from."""
        if not mappings:
            text = f"nil or empty request mappings, no update of pod {pod.key}"
            raise ClaimWriteError(f"{text} ExtendedResourceClaimStatus")
        told = {"requestMappings": mappings, "resourceClaimName": claim["metadata"]["name"]}
        patch = {"status": {"extendedResourceClaimStatus": told}}
        ref = ObjectRef(POD, pod.name, pod.namespace)
        try:
            self._client.patch(ref, patch, patch_type=PatchType.STRATEGIC, subresource="status")
        except ApiError as error:
            text = f"update pod {pod.key} ExtendedResourceClaimStatus: {error}"
            raise ClaimWriteError(text) from error

    def _with_status(self, claim: ReadOnlyObject, fields: Any, doing: str) -> ReadOnlyObject:
        status = {**(claim.get("status") or {}), **fields}
        kept = {name: each for name, each in status.items() if each is not None}
        return self._update({**claim, "status": kept}, doing, "status")

    def _update(self, claim: JsonObject, doing: str, subresource: str = "") -> ReadOnlyObject:
        try:
            record = self._client.update(claim, subresource=subresource, options=LASTING)
        except ConflictError:
            raise
        except ApiError as error:
            raise ClaimWriteError(f"{doing}: {error}" if doing else str(error)) from error
        self._client.wait_seen(record.revision)
        return record.decode()


def _ref(claim: ReadOnlyObject) -> ObjectRef:
    metadata = claim["metadata"]
    return ObjectRef(RESOURCE_CLAIM, metadata["name"], metadata.get("namespace", ""))
