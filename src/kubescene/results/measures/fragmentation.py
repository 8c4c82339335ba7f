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


def asks(ledger: Ledger) -> list[tuple[dict[str, int], int]]:
    """What pods of this run ask for, and how many of them just that."""
    requests = [pod.ask.requests for pod in ledger.pods]
    known = dict(zip(map(id, requests), requests, strict=True))
    return [
        ({**known[number], PODS: 1}, count) for number, count in Counter(map(id, requests)).items()
    ]


def fragmentation(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    """A pod that asks for what no node offers fits nowhere."""
    free, total = free_room(ledger, names), [0] * len(names)
    unusable, asking = [0] * len(names), [0] * len(names)
    for room, count in free.items():
        total = [sum_ + amount * count for sum_, amount in zip(total, room, strict=True)]
    for asked, pods in asks(ledger):
        shape = tuple([asked.get(name, 0) for name in names])
        useless = total if asked.keys() - set(names) else useless_for(shape, free)
        for at, amount in enumerate(shape):
            if amount:
                asking[at] += pods
                unusable[at] += useless[at] * pods
    return {name: share(unusable[at], asking[at] * total[at]) for at, name in enumerate(names)}


def useless_for(shape: Vector, free: Counter[Vector]) -> list[int]:
    """What is free on nodes on which such a pod does not fit."""
    found = [0] * len(shape)
    for room, count in free.items():
        if not fits(shape, room):
            found = [sum_ + amount * count for sum_, amount in zip(found, room, strict=True)]
    return found


def fits(shape: Vector, room: Vector) -> bool:
    return all(asked <= left for asked, left in zip(shape, room, strict=True))


MEASURES = (
    ResourceMeasure(
        name="fragmentation_RESOURCE",
        meaning=(
            "Share of the free RESOURCE that a pod drawn from those of this run that ask for it "
            "could not use at the end, because it does not fit on the node that has it."
        ),
        formula=(
            "sum over pods that ask for it and over nodes too small for them of free / "
            "(number of these pods * sum over nodes of free)"
        ),
        unit=SHARE,
        of=fragmentation,
    ),
)
