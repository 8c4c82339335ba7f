"""Devices of dynamic resource allocation, as amounts that nodes offer and pods take.

The devices of a driver are a resource, ``devices/DRIVER``: a node offers those that ResourceSlices
publish for it, and those are requested that the allocation of a ResourceClaim names. Devices that
belong to no single node count for the cluster alone. Access of administrators takes nothing.
"""

from collections.abc import Iterator
from itertools import repeat
from typing import Protocol, TypeAlias

import msgspec

from kubescene.results.ledger_entries import NO_AMOUNTS, add_amounts
from kubescene.results.states import Amounts

PREFIX = "devices/"
NO_NODE = ""
ALLOCATION = b'"allocation"'
DeviceName: TypeAlias = tuple[str, str, str]
"""Driver, pool, and the device's own."""
Listed: TypeAlias = tuple[str, tuple[DeviceName, ...]]
"""A node, and the devices that a slice, which is of one driver, says are there."""


class DeviceNodes(Protocol):
    """Who is told what changes on which node."""

    def publish(self, name: str, devices: Amounts) -> None:
        """So many more devices are on a node, or on none in particular."""
        ...

    def occupy(self, name: str, devices: Amounts, sign: int) -> None:
        """Devices of a node, or of none in particular, are allocated, or no more (-1)."""
        ...


class _Pool(msgspec.Struct, frozen=True):
    name: str = ""


class _SliceDevice(msgspec.Struct, frozen=True):
    name: str = ""


class _SliceSpec(msgspec.Struct, frozen=True, rename="camel"):
    driver: str = ""
    pool: _Pool = _Pool()
    node_name: str | None = None
    devices: tuple[_SliceDevice, ...] | None = None


class SliceText(msgspec.Struct, frozen=True):
    """A ResourceSlice, as far as it says which devices are where."""

    spec: _SliceSpec = _SliceSpec()


class _Result(msgspec.Struct, frozen=True, rename="camel"):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class _Results(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...] | None = None


class _Allocation(msgspec.Struct, frozen=True):
    devices: _Results | None = None


class _ClaimStatus(msgspec.Struct, frozen=True):
    allocation: _Allocation | None = None


class ClaimText(msgspec.Struct, frozen=True):
    """A ResourceClaim, as far as it says what it was given."""

    status: _ClaimStatus | None = None


SLICE_DECODER = msgspec.json.Decoder(SliceText)
CLAIM_DECODER = msgspec.json.Decoder(ClaimText)


class Devices:
    """Follows slices and claims, and tells ``nodes`` what changes.

    Those belong to whoever holds this, so they are not held.
    """

    def __init__(self) -> None:
        self._slices: dict[str, Listed] = {}
        self._claims: dict[tuple[str, str], tuple[DeviceName, ...]] = {}
        self._published: dict[str, dict[str, int]] = {}
        self._homes: dict[DeviceName, str] = {}
        """The node of every device that is published."""
        self._holders: dict[DeviceName, int] = {}
        """By how many claims a device is held."""

    def published(self, node: str) -> Amounts:
        """The devices of a node, whether it exists or not."""
        return self._published.get(node, NO_AMOUNTS)

    def slice_written(self, nodes: DeviceNodes, name: str, text: bytes | msgspec.Raw) -> None:
        spec = SLICE_DECODER.decode(text).spec
        names = [each.name for each in spec.devices or ()]
        devices = tuple(zip(repeat(spec.driver), repeat(spec.pool.name), names, strict=False))
        self._place(nodes, name, (spec.node_name or NO_NODE, devices))

    def slice_removed(self, nodes: DeviceNodes, name: str) -> None:
        self._place(nodes, name, (NO_NODE, ()))

    def claim_written(
        self, nodes: DeviceNodes, claim: tuple[str, str], text: bytes | msgspec.Raw
    ) -> None:
        told = bytes(text)
        is_given = ALLOCATION in told
        self._allocate(
            nodes, claim, tuple(allocated(CLAIM_DECODER.decode(told))) if is_given else ()
        )

    def claim_removed(self, nodes: DeviceNodes, claim: tuple[str, str]) -> None:
        self._allocate(nodes, claim, ())

    def _place(self, nodes: DeviceNodes, name: str, told: Listed) -> None:
        before = self._slices.get(name, (NO_NODE, ()))
        if before == told:
            return
        self._slices[name] = told
        changes: dict[str, dict[str, int]] = {}
        for device in before[1]:
            del self._homes[device]
        self._homes.update(dict.fromkeys(told[1], told[0]))
        for (home, devices), sign in ((before, -1), (told, 1)):
            if devices:
                many = {PREFIX + devices[0][0]: len(devices)}
                add_amounts(changes.setdefault(home, {}), many, sign)
                self._follow(nodes, devices, home, sign)
        for home, amounts in changes.items():
            add_amounts(self._published.setdefault(home, {}), amounts, 1)
            nodes.publish(home, amounts)

    def _follow(
        self, nodes: DeviceNodes, devices: tuple[DeviceName, ...], node: str, sign: int
    ) -> None:
        """Who holds a device goes with it."""
        if self._holders:
            for device in devices:
                if device in self._holders:
                    nodes.occupy(node, resource_of(device), sign)

    def _allocate(
        self, nodes: DeviceNodes, claim: tuple[str, str], devices: tuple[DeviceName, ...]
    ) -> None:
        before = self._claims.get(claim, ())
        if before == devices:
            return
        self._claims[claim] = devices
        for device in before:
            self._hold(nodes, device, -1)
        for device in devices:
            self._hold(nodes, device, 1)

    def _hold(self, nodes: DeviceNodes, device: DeviceName, sign: int) -> None:
        """A device that several claims share is taken once."""
        before = self._holders.get(device, 0)
        count = before + sign
        if count:
            self._holders[device] = count
        else:
            self._holders.pop(device, None)
        if device in self._homes and bool(before) != bool(count):
            nodes.occupy(self._homes[device], resource_of(device), sign)


def resource_of(device: DeviceName) -> dict[str, int]:
    """One of the resource that the devices of a driver are."""
    return {PREFIX + device[0]: 1}


def allocated(claim: ClaimText) -> Iterator[DeviceName]:
    """What a claim was given."""
    allocation = claim.status.allocation if claim.status else None
    for each in (allocation.devices.results if allocation and allocation.devices else None) or ():
        if not each.admin_access:
            yield each.driver, each.pool, each.device
