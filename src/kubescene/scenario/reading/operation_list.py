"""The operations of a scenario as they are listed: under which field, by which ids, which alike.

Whoever looks at all of them looks at one of those that are alike, and knows the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from kubescene.scenario.fields.table import MAX_STEP
from kubescene.scenario.reading.alike import SharedBodies, SharedBody
from kubescene.types import JsonObject

BARE = {"id", "step", "createOperation"}


@dataclass(frozen=True, slots=True)
class OperationList:
    """The operations in their order.

    ``shared_bodies`` has one entry for each; None unless it creates a pod or a node, and says
    nothing else. Operations that share a body differ in the name of the object, in their ids,
    which are texts, and in their steps, which are such: whatever else can be said of one goes
    for all.
    """

    field: str
    items: list[Any]
    ids: list[str]
    shared_bodies: list[SharedBody | None]
    objects: SharedBodies
    """Knows these shared bodies, and those of other objects."""
    is_shared: bool = False
    """Whether the items share already what they have in common."""

    @classmethod
    def of(cls, scenario: Mapping[str, Any], *, alike: bool = True) -> Self:
        """The operations of a scenario; whether some are ``alike`` need not be looked at."""
        field, items = operations_of(scenario)
        known = SharedBodies(wanted=alike)
        shared_bodies = [
            known.of(item["createOperation"]["object"]) if is_bare(item) else None for item in items
        ]
        return cls(field, items, assigned_ids(items), shared_bodies, known)

    @property
    def size(self) -> int:
        """Operations that are alike hold no more values."""
        return sum(shared.size for shared in self.shared_bodies if shared is not None)

    def is_of(self, scenario: Mapping[str, Any]) -> bool:
        """Whether these are the very operations of a scenario."""
        return operations_of(scenario)[1] is self.items

    def sampled(self, scenario: Mapping[str, Any]) -> Mapping[str, Any]:
        """The scenario whose operations these are with one operation for all that are alike."""
        if not self.items:
            return scenario
        spec = {**scenario["spec"], self.field: [*self._representatives()]}
        return {**scenario, "spec": spec}

    def _representatives(self) -> Iterator[Any]:
        """The items without those that are like an earlier one."""
        seen: set[SharedBody] = set()
        for item, shared in zip(self.items, self.shared_bodies, strict=True):
            if shared is None:
                yield item
            elif shared not in seen:
                seen.add(shared)
                yield item


def operations_of(scenario: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The field that holds the operations, and what it holds; a draft has ``events``."""
    spec = scenario.get("spec")
    lists = spec if isinstance(spec, Mapping) else {}
    name = "events" if lists.get("events") and not lists.get("operations") else "operations"
    items = lists.get(name)
    return name, items if isinstance(items, list) else []


def assigned_ids(items: Sequence[Any]) -> list[str]:
    """The ids as given; a missing one is made from its place, and never one that is given."""
    given = [item.get("id") if isinstance(item, dict | Mapping) else None for item in items]
    taken = {name for name in given if isinstance(name, str)}
    ids = []
    for index, name in enumerate(given):
        assigned = name if isinstance(name, str) and name else f"op-{index + 1}"
        while not name and assigned in taken:
            assigned += "-1"
        ids.append(assigned)
    return ids


def is_bare(item: Any) -> bool:
    """Whether an operation creates an object and says nothing else, in due form."""
    if type(item) is not dict or not item.keys() <= BARE:
        return False
    step, name, body = item.get("step"), item.get("id", ""), item.get("createOperation")
    return (
        type(step) is int
        and 1 <= step <= MAX_STEP
        and type(name) is str
        and type(body) is dict
        and len(body) == 1
        and type(body.get("object")) is dict
    )


def name_in(item: JsonObject) -> str:
    """The name of the object that an operation creates."""
    name: str = item["createOperation"]["object"]["metadata"]["name"]
    return name
