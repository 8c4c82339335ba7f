"""All slices, and what each node can reach of them, kept up to date slice by slice.

Most slices belong to one node. Those of others (devices in a network, say) and the pools that they
are in are looked at for every node. Slices with counters count as such, but the devices that use
the counters need not: of a pool whose devices are out of reach a node notices only that it is
incomplete or invalid.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from kubescene.api.records.changes import Change, ChangeType
from kubescene.scheduler.devices.pools import Pool, gather_pools
from kubescene.scheduler.devices.slices import PoolId, Slice
from kubescene.types import ReadOnlyObject

K = TypeVar("K")


class Inventory:
    """Slices by name, by node and by pool."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._on_node: dict[str, dict[str, Slice]] = {}
        self._elsewhere: dict[str, Slice] = {}
        self._by_pool: dict[PoolId, dict[str, Slice]] = {}
        self._troubled: dict[PoolId, Pool] = {}
        self._pools: dict[str, tuple[Pool, ...]] = {}
        self._alike: dict[tuple[str, ...], tuple[Pool, ...]] = {}

    def __len__(self) -> int:
        return len(self._slices)

    def pools(self, node: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        """What a node can reach, in the order of allocation.

        Nodes that reach the same slices get the same tuple.
        """
        found = self._pools.get(node)
        if found is None:
            found = self._pools[node] = self._gathered(node, labels)
        return found

    def forget_node(self, node: str) -> None:
        """The node has changed: what it can reach has to be found out again."""
        self._pools.pop(node, None)

    def reached_from(self, pool: PoolId) -> list[str] | None:
        """The nodes that reach devices of a pool, None for all."""
        nodes = dict.fromkeys(
            each.node for each in self._by_pool.get(pool, {}).values() if not each.counter_sets
        )
        return None if "" in nodes else [*nodes]

    # -- slices come and go ----------------------------------------------------------------

    def take(self, obj: ReadOnlyObject) -> None:
        """A slice that exists already."""
        new = Slice(obj)
        self._put(new)
        self._judge(new.pool)

    def changed(self, change: Change) -> list[str] | None:
        """A slice came, changed or went. Returns the nodes concerned, None for all."""
        old = self._remove(change.record.name)
        new = None if change.type is ChangeType.DELETED else Slice(change.object)
        if new is not None:
            self._put(new)
        return self._after(old, new)

    def _after(self, old: Slice | None, new: Slice | None) -> list[str] | None:
        moved = [each for each in (old, new) if each is not None]
        troubled = [self._judge(each.pool) for each in moved]
        reached = [self.reached_from(each.pool) for each in moved]
        self._alike.clear()
        if any(troubled) or None in reached or not all(each.node for each in moved):
            self._pools.clear()
            return None
        concerned = dict.fromkeys(each.node for each in moved)
        for nodes in reached:
            concerned.update(dict.fromkeys(nodes or ()))
        for node in concerned:
            self._pools.pop(node, None)
        return [*concerned]

    def _put(self, new: Slice) -> None:
        self._slices[new.name] = new
        self._by_pool.setdefault(new.pool, {})[new.name] = new
        if new.node:
            self._on_node.setdefault(new.node, {})[new.name] = new
        else:
            self._elsewhere[new.name] = new

    def _remove(self, name: str) -> Slice | None:
        old = self._slices.pop(name, None)
        if old is None:
            return None
        _drop(self._by_pool, old.pool, name)
        if old.node:
            _drop(self._on_node, old.node, name)
        else:
            del self._elsewhere[name]
        return old

    def _judge(self, id: PoolId) -> bool:
        """See what a pool with counters looks like from afar; whether that matters or did."""
        before = self._troubled.pop(id, None)
        slices = self._by_pool.get(id, {})
        counters = [each for each in slices.values() if each.counter_sets]
        found = gather_pools(counters, self._by_pool)
        if found and not found[0].is_usable:
            self._troubled[id] = found[0]
        return before is not None or id in self._troubled

    # -- what a node reaches ---------------------------------------------------------------

    def _gathered(self, node: str, labels: Mapping[str, str]) -> tuple[Pool, ...]:
        relevant = [*self._relevant(node, labels)]
        key = tuple(sorted(each.name for each in relevant))
        found = self._alike.get(key)
        if found is None:
            found = self._alike[key] = self._with_troubled(gather_pools(relevant, self._by_pool))
        return found

    def _relevant(self, node: str, labels: Mapping[str, str]) -> Iterator[Slice]:
        """Slices whose devices the node reaches, and the counters of their pools."""
        pools: dict[PoolId, None] = {}
        reached = [*self._on_node.get(node, {}).values()]
        reached.extend(
            each
            for each in self._elsewhere.values()
            if not each.counter_sets and each.is_relevant(node, labels)
        )
        for each in reached:
            pools[each.pool] = None
            yield each
        for pool in pools:
            yield from (each for each in self._by_pool[pool].values() if each.counter_sets)

    def _with_troubled(self, pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
        known = {each.id for each in pools}
        more = [each for id, each in self._troubled.items() if id not in known]
        if not more:
            return pools
        plain = [each for each in pools if not each.needs_binding]
        ordered = sorted([*plain, *more], key=_id)
        return (*ordered, *(each for each in pools if each.needs_binding))


def _drop(table: dict[K, dict[str, Slice]], key: K, name: str) -> None:
    held = table[key]
    del held[name]
    if not held:
        del table[key]


def _id(pool: Pool) -> PoolId:
    return pool.id
