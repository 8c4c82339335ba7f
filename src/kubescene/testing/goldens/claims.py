"""Device claims: what would be allocated on each node, and what was written.

A plugin that allocates devices tells of it by a method ``allocations``: for a state on which
Filter has run, a pod and a node, one list per claim of ``request=driver/pool/device``.
"""

from collections.abc import Sequence
from typing import Any

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.testing.goldens.acting import POD, Call, ReplayClient
from kubescene.types import JsonObject

RESOURCE_CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
_STATUS = ("allocation", "reservedFor", "devices")


def claims_written(client: ReplayClient, calls: Sequence[Call]) -> JsonObject:
    """The writes on claims in order, and each claim as they left it; empty if there are none."""
    written = [call for call in calls if call.ref.gvk == RESOURCE_CLAIM]
    if not written:
        return {}
    created = {call.ref for call in written if call.verb == "create"}
    found: JsonObject = {
        "calls": [f"{call.verb} {call.key}" for call in written],
        "after": {call.key: _after(client, call.ref, created) for call in written},
    }
    for call in calls:
        if call.ref.gvk == POD and call.verb == "patchStatus":
            status = call.body.get("status", {}).get("extendedResourceClaimStatus")
            found |= {"extendedResourceClaimStatus": status} if status else {}
    return found


def _after(client: ReplayClient, ref: ObjectRef, created: set[ObjectRef]) -> JsonObject:
    claim = client.find(ref)
    after: JsonObject = {"created": True} if ref in created else {}
    if claim is None:
        claim = client.last_state(ref)
        after["deleted"] = True
    after |= {"spec": claim["spec"]} if ref in created else {}
    status = claim.get("status") or {}
    after |= {name: status[name] for name in _STATUS if name in status}
    return after | {"finalizers": claim["metadata"].get("finalizers")}


def plain(value: Any) -> Any:
    """A value without what is empty, and without the wall clock."""
    if isinstance(value, dict):
        kept = {key: plain(each) for key, each in value.items() if key != "allocationTimestamp"}
        return {key: each for key, each in kept.items() if each not in (None, {}, [])}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value
