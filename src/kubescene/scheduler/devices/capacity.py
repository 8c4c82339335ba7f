"""What is left during a search: of a device that is shared, of counters that devices share."""

from collections.abc import Mapping

from kubescene.api.quantity import Quantity, QuantityFormat, from_value, parse
from kubescene.scheduler.devices.allocated import Allocated
from kubescene.scheduler.devices.pools import Pool
from kubescene.scheduler.devices.slices import Capacity, Device, PoolId
from kubescene.types import ReadOnlyObject


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


Amounts = Mapping[str, int]
"""Capacity by name, in nano-units."""
NOTHING: Amounts = {}


def consumed(asked: Mapping[str, Quantity], device: Device) -> dict[str, Quantity]:
    """What a request takes of a device; what it does not ask for, by the policy of the device."""
    return {name: _consumed(asked.get(name), each) for name, each in device.capacity.items()}


def fits(asked: Mapping[str, Quantity], device: Device, taken: Amounts, taking: Amounts) -> bool:
    """Whether a device has that much left beside what is taken and what is being taken."""
    if any(name not in device.capacity for name in asked):
        return False
    for name, capacity in device.capacity.items():
        amount = _consumed(asked.get(name), capacity)
        if _violates(amount, capacity.policy):
            return False
        if amount.nanos + taken.get(name, 0) + taking.get(name, 0) > capacity.value.nanos:
            return False
    return True


def _consumed(asked: Quantity | None, capacity: Capacity) -> Quantity:
    policy = capacity.policy
    if asked is None:
        default = policy.get("default") if policy else None
        return capacity.value if default is None else parse(default)
    if policy is None:
        return asked
    bounds = policy.get("validRange")
    if bounds is not None and bounds.get("min") is not None:
        return _within(asked, bounds)
    return next((each for each in _valid_values(policy) if asked <= each), asked)


def _within(asked: Quantity, bounds: ReadOnlyObject) -> Quantity:
    """Rounded up to the next step."""
    least = parse(bounds["min"])
    if asked < least:
        return least
    if bounds.get("step") is None:
        return asked
    step, start = parse(bounds["step"]).value(), least.value()
    steps = -(-(asked.value() - start) // step)
    return from_value(start + step * steps, QuantityFormat.BINARY_SI)


def _violates(amount: Quantity, policy: ReadOnlyObject | None) -> bool:
    if not policy:
        return False
    default = policy.get("default")
    if default is not None and parse(default) == amount:
        return False
    bounds = policy.get("validRange")
    if bounds is not None:
        return _is_outside(amount, bounds)
    values = _valid_values(policy)
    return bool(values) and amount not in values


def _is_outside(amount: Quantity, bounds: ReadOnlyObject) -> bool:
    if bounds.get("max") is not None and amount > parse(bounds["max"]):
        return True
    if bounds.get("step") is None:
        return False
    return (amount.value() - parse(bounds["min"]).value()) % parse(bounds["step"]).value() != 0


def _valid_values(policy: ReadOnlyObject) -> list[Quantity]:
    return [parse(each) for each in policy.get("validValues") or ()]
