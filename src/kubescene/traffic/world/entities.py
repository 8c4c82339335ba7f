"""What moves through the simulated world: entities, each of one kind and known by a number.

Identity is object identity. Numbers count from 1 in every run, so that names do not depend on what
ran before.
"""

from enum import StrEnum


class EntityKind(StrEnum):
    """Kinds of entities, and of the stocks that hold them."""

    SCENARIO = "Scenario"
    AUTOSCALER = "Autoscaler"
    DESIRED = "Desired"
    REPLICA = "Replica"
    REQUEST = "Request"
    METRICS = "Metrics"


KINDS = tuple(EntityKind)
_NUMBERED = {
    EntityKind.REPLICA: "replica",
    EntityKind.REQUEST: "request",
    EntityKind.METRICS: "metrics",
}


def entity_name(kind: EntityKind, number: int) -> str:
    """``replica-3``; where there is only one, or all are alike, the name of the kind."""
    prefix = _NUMBERED.get(kind)
    return kind.value if prefix is None else f"{prefix}-{number}"


def parse_name(name: str) -> tuple[EntityKind, int]:
    """The inverse of `entity_name`."""
    prefix, _, number = name.rpartition("-")
    for kind, known in _NUMBERED.items():
        if prefix == known:
            return kind, int(number)
    return EntityKind(name), 0


class Entity:
    """Something that is in one stock at a time."""

    __slots__ = ("kind", "number")

    def __init__(self, kind: EntityKind, number: int = 0) -> None:
        self.kind = kind
        self.number = number

    @property
    def name(self) -> str:
        return entity_name(self.kind, self.number)

    def __repr__(self) -> str:
        return f"<{self.name}>"
