"""What two runs were given: where scenario, seed, version and scheduler differ.

It comes first in a comparison, because everything else follows from it. ``explain`` is left out:
how much a run keeps changes nothing in it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.results.comparison.json_differences import (
    JsonDifference,
    differences,
    members,
    shown,
)
from kubescene.results.comparison.schedulers import scheduler_differences
from kubescene.results.sources import RunSource
from kubescene.results.specs import sound_spec
from kubescene.types import JsonObject

SCHEDULER_CONFIG = "schedulerConfig"
APART = ("seed", "explain", SCHEDULER_CONFIG)
"""Of ``spec.simulation``: compared in their own way, or of no consequence."""
RATING = (", weight", ", args.scoringStrategy.type")
"""What changes scores and never a verdict, as far as that can be told from its name."""


class Inputs(msgspec.Struct, frozen=True):
    """All that differs, the scheduler before the scenario."""

    differences: tuple[JsonDifference, ...]
    operations_differ: bool
    warnings: tuple[str, ...] = ()
    """Whose scenario is not known, and so not compared."""

    def reconfigured(self, plugin: str, *, rating: bool) -> bool:
        """Whether a plugin is configured differently, in a way that its scores or verdicts feel."""
        return any(
            each.plugin == plugin and (rating or not each.what.endswith(RATING))
            for each in self.differences
        )


def inputs_of(a: RunSource, b: RunSource) -> Inputs:
    """What two runs were given, as far as they tell."""
    found = [
        *differences(a.version, b.version, "version of Kubescene"),
        *differences(a.scenario, b.scenario, "scenario"),
        *differences(a.seed, b.seed, "seed"),
    ]
    spec_a, spec_b = sound_spec(a), sound_spec(b)
    if spec_a is None or spec_b is None:
        missing = [source.place for source in (a, b) if source.spec is None]
        warning = f"{' and '.join(missing)}: the scenario is not there, so it is not compared"
        return Inputs(tuple(found), operations_differ=a.scenario != b.scenario, warnings=(warning,))
    given = [each.get("operations") or [] for each in (spec_a, spec_b)]
    operations = [*operation_differences(given[0], given[1])]
    found += [*spec_differences(spec_a, spec_b), *operations]
    return Inputs(tuple(found), operations_differ=bool(operations))


def spec_differences(a: JsonObject, b: JsonObject) -> Iterator[JsonDifference]:
    """How the specs of two Scenarios differ, apart from operations: scheduler, then settings."""
    simulation_a, simulation_b = members(a.get("simulation")), members(b.get("simulation"))
    config_a, config_b = (each.get(SCHEDULER_CONFIG) for each in (simulation_a, simulation_b))
    yield from scheduler_differences(config_a, config_b)
    yield from differences(_settings(simulation_a), _settings(simulation_b), "spec.simulation")
    rest_a, rest_b = (_without(each, ("simulation", "operations")) for each in (a, b))
    yield from differences(rest_a, rest_b, "spec")


def _settings(simulation: JsonObject) -> JsonObject:
    return _without(simulation, APART)


def _without(value: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {name: each for name, each in value.items() if name not in names}


def operation_differences(a: list[Any], b: list[Any]) -> Iterator[JsonDifference]:
    """Operations that one of the runs has alone, and those that are not the same in both.

    They are matched by id, or by step, kind and name where they have none; what is left in the same
    step by its place.
    """
    of_a, of_b = _by_name(a), _by_name(b)
    for name in dict.fromkeys((*of_a, *of_b)):
        first, second = of_a.get(name), of_b.get(name)
        if first is None or second is None:
            yield JsonDifference(
                name, *("none" if each is None else "given" for each in (first, second))
            )
        elif first != second:
            yield from differences(first, second, name)
    in_a, in_b = ([name for name in of_a if name in of_b], [name for name in of_b if name in of_a])
    for name, other in zip(in_a, in_b, strict=True):
        if name != other:
            yield JsonDifference("order of operations, from", name, other)
            return


def _by_name(operations: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for operation in operations:
        name = title = operation_title(operation)
        count = 1
        while name in found:
            count += 1
            name = f"{title} ({count})"
        found[name] = operation
    return found


def operation_title(operation: Any) -> str:
    """``operation ID`` or ``step 3: create Pod default/web``."""
    given = members(operation)
    if given.get("id"):
        return f"operation {given['id']}"
    verb = next((name for name in given if name.endswith("Operation")), "")
    what = f"{verb.removesuffix('Operation')} {_object(given.get(verb))}".strip()
    return f"step {given.get('step')}: {what}"


def _object(body: Any) -> str:
    """The object that an operation is about, as far as it says."""
    given = members(body)
    if source := given.get("objectFrom"):
        return shown(source)
    target = members(given.get("object")) or given
    meta = members(target.get("metadata")) or members(target.get("objectMeta")) or target
    kind = target.get("kind") or members(given.get("typeMeta")).get("kind") or ""
    name = "/".join(str(each) for each in (meta.get("namespace"), meta.get("name")) if each)
    return f"{kind} {name}".strip()
