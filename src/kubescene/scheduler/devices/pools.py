"""Pools: the slices of one generation of a driver's pool, as far as a node can reach them.

A pool of which slices are missing is *incomplete*, one whose devices contradict each other is
*invalid*; nothing is allocated from either. Pools and slices stand in order of their names, which
decides which device is tried first; pools with devices that have to be bound come last.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kubescene.scheduler.devices.slices import Device, PoolId, Slice

Counters = Mapping[str, Mapping[str, int]]
"""Counters by set and name, in nano-units."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """What a node can reach of a pool. ``others`` are devices that only other nodes reach."""

    id: PoolId
    devices: tuple[Device, ...] = ()
    others: tuple[Device, ...] = ()
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False
    is_per_device: bool = False

    @property
    def is_usable(self) -> bool:
        return not (self.is_incomplete or self.is_invalid)

    @property
    def needs_binding(self) -> bool:
        return any(each.binding_conditions for each in self.devices)


def gather_pools(
    relevant: Iterable[Slice], every: Mapping[PoolId, Mapping[str, Slice]]
) -> tuple[Pool, ...]:
    """The pools of the slices that are relevant for a node, in the order of allocation.

    ``every`` holds all slices of all pools, by pool and name.
    """
    found: dict[PoolId, list[Slice]] = {}
    for each in relevant:
        _add(found, each)
    pools = [_pool(id, slices, every[id].values()) for id, slices in sorted(found.items())]
    made = [each for each in pools if each is not None]
    plain = [each for each in made if not each.needs_binding]
    return (*plain, *(each for each in made if each.needs_binding))


def _add(found: dict[PoolId, list[Slice]], each: Slice) -> None:
    """Slices of a newer generation replace those of an older one."""
    slices = found.get(each.pool)
    if slices is None or each.generation > slices[0].generation:
        found[each.pool] = [each]
    elif each.generation == slices[0].generation:
        slices.append(each)


def _pool(id: PoolId, slices: list[Slice], every: Iterable[Slice]) -> Pool | None:
    """None if a newer generation, none of which reaches the node, replaces this one."""
    wanted = slices[0].count
    if len(slices) == wanted:
        return _built(id, slices, ())
    listed = [*every]
    if any(each.generation > slices[0].generation for each in listed):
        return None
    current = [each for each in listed if each.generation == slices[0].generation]
    if len(current) != wanted:
        return Pool(id, is_incomplete=True)
    names = {each.name for each in slices}
    return _built(id, slices, [each for each in current if each.name not in names])


def _built(id: PoolId, slices: list[Slice], others: Sequence[Slice]) -> Pool:
    slices = sorted(slices, key=_name)
    counters: dict[str, Mapping[str, int]] = {}
    for each in slices:
        for name, values in each.counter_sets:
            if name in counters:
                return Pool(id, is_invalid=True)
            counters[name] = values
    devices = [device for each in slices if not each.counter_sets for device in each.devices]
    distinct = {each.id.device for each in devices}
    beyond = [device for each in others for device in each.devices]
    if len(distinct) < len(devices) or not _consume_known([*devices, *beyond], counters):
        return Pool(id, is_invalid=True)
    per_device = any(each.is_per_device for each in slices)
    return Pool(id, tuple(devices), tuple(beyond), counters, is_per_device=per_device)


def _consume_known(devices: Iterable[Device], counters: Counters) -> bool:
    """Whether devices consume only counters that the pool has."""
    return all(
        name in counters and all(each in counters[name] for each in consumed)
        for device in devices
        for name, consumed in device.consumes
    )


def _name(each: Slice) -> str:
    return each.name
