"""A scenario's spec in the one form that the engine reads.

`parse_spec` takes the object as its author wrote it (the merged KEP's ``operations``, or the
drafts' ``events``) and returns frozen values, or raises `ScenarioError` naming index, id and
fault. The schema admits operations that this refuses, as the KEP wants: such a scenario becomes
``Failed`` before anything is touched.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from kubescene.scenario.expectations import Expectation, expectations_of
from kubescene.scenario.fields.table import MAX_COUNT, MAX_STEP
from kubescene.scenario.outside import OutsideController, outside_of
from kubescene.scenario.reading.alike import SharedBody, like
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.simulation import Simulation, parse_simulation
from kubescene.scenario.validation.controllers import controller_names
from kubescene.scenario.validation.scenarios import find_faults
from kubescene.types import JsonObject

DEFAULT_SIMULATION_CONTROLLER = "kube-scheduler"

__all__ = [
    "MAX_COUNT",
    "MAX_STEP",
    "Operation",
    "OperationKind",
    "ScenarioSpec",
    "grouped",
    "parse_spec",
]


class OperationKind(StrEnum):
    """The field that makes an operation what it is, by the type name of the drafts."""

    CREATE = "Create"
    PATCH = "Patch"
    DELETE = "Delete"
    DONE = "Done"
    ADVANCE = "Advance"
    EVICT = "Evict"
    DRAIN = "Drain"
    REPLAY = "Replay"

    @property
    def field(self) -> str:
        return f"{self.value.lower()}Operation"


_KINDS = {kind.field: kind for kind in OperationKind}
_NOT_ALIKE = {"count", "subresource", "arrivals"}
"""What a create says that makes several objects of one, or none."""


class Operation(Struct, frozen=True, eq=False):
    """One operation. ``body`` is its ``*Operation`` value as written.

    ``objects`` are those of ``objectFrom``, in the order of the file.
    """

    id: str
    index: int
    step: int
    kind: OperationKind
    body: JsonObject
    objects: tuple[JsonObject, ...] = ()
    listed: str = "operations"
    """The field of the spec that holds it; in a draft ``events``."""
    alike: tuple[SharedBody | None, ...] = ()
    """What each object that it creates has in common with others, of this or other operations."""
    file: Path | None = None
    """The history that is replayed."""

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, whatever they are like."""
        return isinstance(other, Operation) and self._said == other._said

    __hash__ = None  # type: ignore[assignment]  # equal by content, which can be changed

    @property
    def _said(self) -> tuple[Any, ...]:
        return (
            self.id,
            self.index,
            self.step,
            self.kind,
            self.body,
            self.objects,
            self.listed,
        )

    @property
    def path(self) -> tuple[str | int, ...]:
        """The way to its body from the top of the document."""
        return ("spec", self.listed, self.index, self.kind.field)

    @property
    def instances(self) -> int:
        """How many objects it makes or changes, as far as it says so itself."""
        if self.objects:
            return len(self.objects)
        return self.body.get("count") or 1

    @property
    def shared_body(self) -> SharedBody | None:
        """That of the one object that it creates, if it says nothing else."""
        is_bare = len(self.body) == 1 and not self.objects and bool(self.alike)
        return self.alike[0] if is_bare else None

    @property
    def subresource(self) -> str:
        """The part of an existing object that it writes to; empty for the object itself."""
        return self.body.get("subresource") or ""

    @property
    def arrives(self) -> bool:
        """Whether its objects come one after the other while time passes."""
        return self.kind is OperationKind.CREATE and "arrivals" in self.body

    @property
    def where(self) -> str:
        return f"step {self.step}, operation {self.id!r}"


@dataclass(frozen=True)
class ScenarioSpec:
    """Operations in list order, who plays, and what must hold of the result."""

    operations: tuple[Operation, ...]
    simulation_controllers: tuple[str, ...] = (DEFAULT_SIMULATION_CONTROLLER,)
    disabled: frozenset[str] = frozenset()
    presimulation_enabled: tuple[str, ...] | None = None
    simulation: Simulation = field(default_factory=Simulation)
    expectations: tuple[Expectation, ...] = ()
    outside: tuple[OutsideController, ...] = ()

    @cached_property
    def by_step(self) -> dict[int, tuple[Operation, ...]]:
        """The operations of each major step in list order, steps ascending."""
        return grouped(self.operations)

    def next_major(self, after: int) -> int | None:
        """The next step that has operations."""
        majors = self._majors
        place = bisect_right(majors, after)
        return majors[place] if place < len(majors) else None

    def at(self, major: int) -> tuple[Operation, ...]:
        """The operations of one major step, in list order."""
        return self.by_step.get(major, ())

    @cached_property
    def _majors(self) -> tuple[int, ...]:
        return tuple(self.by_step)

    def known_controllers(self, registered: Iterable[str]) -> list[str]:
        """Those of the world, then those outside that do not take the place of one of them."""
        return list(dict.fromkeys((*registered, *(each.name for each in self.outside))))

    def presimulation_controllers(self, registered: Sequence[str]) -> list[str]:
        """Every known controller that is neither simulated nor disabled, in settle order."""
        if "*" in self.disabled:
            return list(self.presimulation_enabled or ())
        return [
            name
            for name in self.known_controllers(registered)
            if name not in self.simulation_controllers and name not in self.disabled
        ]


def grouped(operations: Iterable[Operation]) -> dict[int, tuple[Operation, ...]]:
    """Operations by major step, ascending, each in list order."""
    found: dict[int, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.step, []).append(operation)
    return {step: tuple(found[step]) for step in sorted(found)}


def parse_spec(
    scenario: Mapping[str, Any],
    folder: ScenarioFolder | None = None,
    listed: OperationList | None = None,
) -> ScenarioSpec:
    """Normalise ``scenario['spec']``; raises the first fault as a `ScenarioError`.

    ``folder`` is where ``objectFrom`` reads; without one, it is a fault. ``listed`` are the
    operations, if somebody has looked at them already.
    """
    if listed is None or not listed.is_of(scenario):
        alike = listed is None or listed.objects.wanted
        listed = OperationList.of(scenario, alike=alike)
    for fault in find_faults(scenario, folder, listed):
        raise fault.error
    return normalised(scenario, folder, listed)


def normalised(
    scenario: Mapping[str, Any],
    folder: ScenarioFolder | None,
    listed: OperationList | None = None,
) -> ScenarioSpec:
    """The values of a scenario without faults."""
    spec = scenario.get("spec") or {}
    return ScenarioSpec(
        operations=tuple(_operations(listed or OperationList.of(scenario), folder)),
        simulation=parse_simulation(spec.get("simulation")),
        expectations=expectations_of(spec),
        outside=outside_of(spec),
        **_controllers(spec),
    )


def _operations(listed: OperationList, folder: ScenarioFolder | None) -> Iterator[Operation]:
    ids, field, create = listed.ids, listed.field, OperationKind.CREATE
    for index, (item, shared) in enumerate(zip(listed.items, listed.shared_bodies, strict=True)):
        if shared is None:
            yield _operation(listed, index, folder)
        else:
            body = item["createOperation"]
            if not listed.is_shared:
                body = {"object": like(body["object"], shared)}
            yield Operation(ids[index], index, item["step"], create, body, (), field, (shared,))


def _operation(listed: OperationList, index: int, folder: ScenarioFolder | None) -> Operation:
    item = listed.items[index]
    field, kind = next(each for each in _KINDS.items() if item.get(each[0]) is not None)
    body = {key: value for key, value in item[field].items() if value is not None}
    source = body.get("objectFrom")
    objects = folder.read(source) if source is not None and folder is not None else ()
    alike: tuple[SharedBody | None, ...] = ()
    if kind is OperationKind.CREATE and not body.keys() & _NOT_ALIKE:
        alike = tuple(map(listed.objects.of, objects or (body["object"],)))
        if objects:
            objects = tuple(map(like, objects, alike))
        else:
            body["object"] = like(body["object"], alike[0])
    is_replay = kind is OperationKind.REPLAY and folder is not None
    return Operation(
        listed.ids[index],
        index,
        item["step"],
        kind,
        body,
        objects,
        listed.field,
        alike,
        folder.file(body["file"]) if is_replay and folder is not None else None,
    )


def _controllers(spec: Mapping[str, Any]) -> dict[str, Any]:
    if spec.get("controllers") is None:
        return {}
    names = controller_names(spec)
    enabled = names["presimulationControllers", "enabled"]
    return {
        "simulation_controllers": tuple(names["simulationControllers", "enabled"]),
        "disabled": frozenset(names["presimulationControllers", "disabled"]),
        "presimulation_enabled": tuple(enabled) if enabled else None,
    }
