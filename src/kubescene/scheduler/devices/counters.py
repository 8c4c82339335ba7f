"""Counters that the devices of a pool share: what is left of them during a search."""

from kubescene.scheduler.devices.allocated import Allocated
from kubescene.scheduler.devices.pools import Pool
from kubescene.scheduler.devices.slices import Device, PoolId


class CounterBook:
    """What devices that are allocated leave, and what those that are being allocated take."""

    def __init__(self, allocated: Allocated) -> None:
        self._allocated = allocated
        self._left: dict[PoolId, dict[tuple[str, str], int]] = {}

    def take(self, pool: Pool, device: Device) -> bool:
        """Take what a device consumes; False, and nothing is taken, if a counter falls below zero.

        As in kube-scheduler every counter of the pool is looked at, not only those consumed.
        """
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = self._available(pool)
        _change(left, device, -1)
        if all(amount >= 0 for amount in left.values()):
            return True
        _change(left, device, 1)
        return False

    def give_back(self, pool: Pool, device: Device) -> None:
        _change(self._left[pool.id], device, 1)

    def _available(self, pool: Pool) -> dict[tuple[str, str], int]:
        left = {
            (counter_set, name): amount
            for counter_set, counters in pool.counters.items()
            for name, amount in counters.items()
        }
        for device in (*pool.devices, *pool.others):
            if device.consumes and self._allocated.is_allocated(device.id):
                _change(left, device, -1)
        return left


def _change(left: dict[tuple[str, str], int], device: Device, sign: int) -> None:
    for counter_set, counters in device.consumes:
        for name, amount in counters.items():
            left[counter_set, name] += sign * amount
