"""Which devices are taken, as the claims say, kept up to date claim by claim."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubescene.api.quantity import parse
from kubescene.scheduler.devices.slices import DeviceId, PoolId
from kubescene.types import ReadOnlyObject


class Use(NamedTuple):
    """A device in the allocation of a claim; one that is shared has the id of its share."""

    device: DeviceId
    share: str
    consumed: Mapping[str, int] | None


def uses_of(allocation: ReadOnlyObject | None) -> Iterator[Use]:
    """The devices that an allocation takes from others; admin access takes none."""
    for result in ((allocation or {}).get("devices") or {}).get("results") or ():
        if result.get("adminAccess"):
            continue
        id = DeviceId(result["driver"], result["pool"], result["device"])
        consumed = result.get("consumedCapacity")
        amounts = None
        if consumed is not None:
            amounts = {name: parse(amount).nanos for name, amount in consumed.items()}
        yield Use(id, result.get("shareID") or "", amounts)


class Allocated:
    """The devices that are taken."""

    def __init__(self) -> None:
        self._dedicated: set[DeviceId] = set()
        self._shares: dict[DeviceId, set[str]] = {}
        self._capacity: dict[DeviceId, dict[str, int]] = {}

    def is_dedicated(self, id: DeviceId) -> bool:
        """Whether a claim has the device for itself."""
        return id in self._dedicated

    def is_allocated(self, id: DeviceId) -> bool:
        """Whether any claim has the device or a share of it."""
        return id in self._dedicated or id in self._shares or id in self._capacity

    def capacity(self, id: DeviceId) -> Mapping[str, int] | None:
        """What claims have taken of a shared device; None if nothing is."""
        return self._capacity.get(id)

    def add(self, allocation: ReadOnlyObject | None) -> list[PoolId]:
        """An allocation was made. Returns the pools concerned."""
        touched: dict[PoolId, None] = {}
        for use in uses_of(allocation):
            touched[PoolId(use.device.driver, use.device.pool)] = None
            if not use.share:
                self._dedicated.add(use.device)
                continue
            self._shares.setdefault(use.device, set()).add(use.share)
            if use.consumed is not None:
                self._consume(use.device, use.consumed)
        return [*touched]

    def remove(self, allocation: ReadOnlyObject | None) -> list[PoolId]:
        """An allocation was given back. Returns the pools concerned."""
        touched: dict[PoolId, None] = {}
        for use in uses_of(allocation):
            touched[PoolId(use.device.driver, use.device.pool)] = None
            if not use.share:
                self._dedicated.discard(use.device)
                continue
            self._forget_share(use)
            if use.consumed is not None:
                self._release(use.device, use.consumed)
        return [*touched]

    def _consume(self, id: DeviceId, amounts: Mapping[str, int]) -> None:
        held = self._capacity.setdefault(id, {})
        for name, amount in amounts.items():
            held[name] = held.get(name, 0) + amount

    def _release(self, id: DeviceId, amounts: Mapping[str, int]) -> None:
        held = self._capacity.get(id)
        if held is None:
            return
        for name, amount in amounts.items():
            if name in held:
                held[name] -= amount
        if not any(held.values()):
            del self._capacity[id]

    def _forget_share(self, use: Use) -> None:
        shares = self._shares.get(use.device, set())
        shares.discard(use.share)
        if not shares:
            self._shares.pop(use.device, None)
