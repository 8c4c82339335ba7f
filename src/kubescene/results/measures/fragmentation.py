"""Free room that is of no use, because pods as they come in this run do not fit there.

Only amounts count: taints, affinity and other rules of the scheduler are not asked.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from kubescene.api.resource_requests import PODS
from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import SHARE, ResourceMeasure, Value, share

Vector: TypeAlias = tuple[int, ...]


def free_room(ledger: Ledger, names: list[str]) -> Counter[Vector]:
    """What is left on the nodes, and on how many of them just that."""
    found: Counter[Vector] = Counter()
    for node in ledger.standing():
        asked, offered = node.room.requested, node.allocatable
        found[tuple([max(offered.get(n, 0) - asked.get(n, 0), 0) for n in names])] += 1
    return found


def shapes(ledger: Ledger, names: list[str]) -> Counter[Vector]:
    """What pods of this run ask for, and how many of them just that.

    A pod that asks for what no node offers fits nowhere: its shape is not among these.
    """
    asks = [pod.ask.requests for pod in ledger.pods]
    kinds = Counter(map(id, asks))
    requests = dict(zip(map(id, asks), asks, strict=True))
    found: Counter[Vector] = Counter()
    for number, count in kinds.items():
        asked = {**requests[number], PODS: 1}
        if all(name in names for name in asked):
            found[tuple([asked.get(name, 0) for name in names])] += count
    return found


def fragmentation(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    free, asked = free_room(ledger, names), shapes(ledger, names)
    total = [sum(room[at] * count for room, count in free.items()) for at in range(len(names))]
    unusable = [0] * len(names)
    useless = len(ledger.pods) - sum(asked.values())
    for shape, pods in asked.items():
        for room, count in free.items():
            if not fits(shape, room):
                for at, amount in enumerate(room):
                    unusable[at] += amount * count * pods
    return {
        name: share(unusable[at] + useless * total[at], len(ledger.pods) * total[at])
        for at, name in enumerate(names)
    }


def fits(shape: Vector, room: Vector) -> bool:
    return all(asked <= left for asked, left in zip(shape, room, strict=True))


MEASURES = (
    ResourceMeasure(
        name="fragmentation_RESOURCE",
        meaning=(
            "Share of the free RESOURCE that a pod drawn from this run could not use at the end, "
            "because it does not fit on the node that has it."
        ),
        formula=(
            "sum over pods and over nodes too small for them of free / "
            "(pods_created * sum over nodes of free)"
        ),
        unit=SHARE,
        of=fragmentation,
    ),
)
