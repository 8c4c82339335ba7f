"""Writes of ResourceClaims: what the API server and the drivers of the recording made of them.

Share IDs are numbered in the order of writing, a claim can be reserved for so many pods only, and
devices that have to be made ready are so at once, or are said to have failed, as the case has it.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.client.interfaces import ObjectRef
from kubescene.errors import InvalidError
from kubescene.types import JsonObject

MOST_CONSUMERS = 256
SHARE = "5a4e0000-0000-4000-8000-{:012d}"
DRIVER_TIME = "2026-01-01T12:00:00Z"


class ClaimWrites:
    """``conditions``: by driver/pool/device, the status of each binding condition."""

    def __init__(self, conditions: Mapping[str, Mapping[str, str]]) -> None:
        self._conditions = conditions
        self._shares: dict[str, str] = {}

    def written(self, ref: ObjectRef, obj: JsonObject, subresource: str) -> JsonObject:
        """The object that is stored; objects of other kinds are none of our business."""
        if ref.gvk.kind != "ResourceClaim" or subresource != "status":
            return obj
        status = obj.get("status") or {}
        _check(ref, status)
        for result in _results(status):
            if share := result.get("shareID"):
                result["shareID"] = self._numbered(share)
        self._make_ready(status)
        return obj

    def _numbered(self, share: str) -> str:
        """Whoever writes a claim again, for another pod, finds numbers in it: they stay."""
        if share in self._shares.values():
            return share
        return self._shares.setdefault(share, SHARE.format(len(self._shares) + 1))

    def _make_ready(self, status: JsonObject) -> None:
        known = {_device(each) for each in status.get("devices") or ()}
        for result in _results(status):
            wanted = self._conditions.get(_device(result))
            if wanted and _device(result) not in known:
                status.setdefault("devices", []).append(_ready(result, wanted))


def _check(ref: ObjectRef, status: Mapping[str, Any]) -> None:
    count = len(status.get("reservedFor") or ())
    if count > MOST_CONSUMERS:
        raise InvalidError(
            f'ResourceClaim.resource.k8s.io "{ref.name}" is invalid: status.reservedFor: '
            f"Too many: {count}: must have at most {MOST_CONSUMERS} items"
        )


def _results(status: Mapping[str, Any]) -> list[JsonObject]:
    devices = (status.get("allocation") or {}).get("devices") or {}
    return devices.get("results") or []


def _device(entry: Mapping[str, Any]) -> str:
    return f"{entry['driver']}/{entry['pool']}/{entry['device']}"


def _ready(result: Mapping[str, Any], wanted: Mapping[str, str]) -> JsonObject:
    conditions = [
        {
            "type": name,
            "status": status,
            "lastTransitionTime": DRIVER_TIME,
            "reason": "Driver",
            "message": "set by driver",
        }
        for name, status in wanted.items()
    ]
    device = {key: result[key] for key in ("driver", "pool", "device")}
    return {**device, "conditions": conditions}
