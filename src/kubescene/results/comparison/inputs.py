"""What two runs were given: where scenario, seed, version and scheduler differ.

It comes first in a comparison, because everything else follows from it. ``explain`` is left out:
how much a run keeps changes nothing in it.

Scheduler configurations are compared plugin by plugin. What counts is what is in force: a plugin
that is on by default and one that is enabled in so many words are the same. Plugins that nobody
here knows are taken as they are named.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kubescene.errors import SchedulerConfigurationError
from kubescene.results.comparison.json_differences import (
    JsonDifference,
    differences,
    members,
    shown,
)
from kubescene.results.sources import RunSource, sound_spec
from kubescene.scheduler.framework.plugin_registry import PluginRegistry
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint
from kubescene.scheduler.plugins.default_profile import default_registry
from kubescene.types import JsonObject, ReadOnlyObject

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


NOT_OF_PROFILES = ("profiles", "clientConnection", "leaderElection")
"""Compared in their own way, or of no consequence here."""
NONE = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
MULTI_POINT = "multiPoint"


def scheduler_differences(
    a: ReadOnlyObject | None, b: ReadOnlyObject | None
) -> Iterator[JsonDifference]:
    """How the configuration of run B differs from that of run A; None is the default one.

    One that this Kubescene cannot read, as those of other versions may be, is compared as written.
    """
    if a == b:
        return
    try:
        of_a, of_b = _complete(a), _complete(b)
        profiles = [*_of_profiles(of_a, of_b)]
    except SchedulerConfigurationError:
        yield from differences(a or {}, b or {}, "spec.simulation.schedulerConfig")
        return
    yield from differences(_plain(of_a), _plain(of_b), "")
    yield from profiles


def _of_profiles(of_a: JsonObject, of_b: JsonObject) -> Iterator[JsonDifference]:
    profiles_a, profiles_b = _profiles(of_a), _profiles(of_b)
    for name in dict.fromkeys((*profiles_a, *profiles_b)):
        if name in profiles_a and name in profiles_b:
            yield from _of_profile(name, profiles_a[name], profiles_b[name])
        else:
            there = ["yes" if name in each else "no" for each in (profiles_a, profiles_b)]
            yield JsonDifference(f"profile {name}", *there)


def _complete(config: ReadOnlyObject | None) -> JsonObject:
    from kubescene.scheduler.configuration.defaulting import with_defaults
    from kubescene.scheduler.configuration.reading import decode
    from kubescene.scheduler.plugins.default_profile import default_plugins

    return with_defaults(decode(config or NONE), default_plugins())


def _plain(complete: JsonObject) -> JsonObject:
    return {name: value for name, value in complete.items() if name not in NOT_OF_PROFILES}


def _profiles(complete: JsonObject) -> dict[str, JsonObject]:
    return {each["schedulerName"]: each for each in complete["profiles"]}


def _of_profile(name: str, a: JsonObject, b: JsonObject) -> Iterator[JsonDifference]:
    apart = ("plugins", "pluginConfig", "schedulerName")
    yield from differences(
        {key: value for key, value in a.items() if key not in apart},
        {key: value for key, value in b.items() if key not in apart},
        f"profile {name}",
    )
    of_a, of_b = _plugins(a), _plugins(b)
    for plugin in dict.fromkeys((*of_a, *of_b)):
        what = f"{name}: {plugin}"
        for each in _of_plugin(what, of_a.get(plugin, OFF), of_b.get(plugin, OFF)):
            yield msgspec.structs.replace(each, plugin=plugin)


class _Plugin(msgspec.Struct, frozen=True):
    """One plugin of a profile: where it stands, with which weight and arguments."""

    points: tuple[str, ...] = ()
    weight: int | None = None
    arguments: Any = None

    def __str__(self) -> str:
        if not self.points:
            return "off"
        weight = f", weight {self.weight}" if self.weight is not None else ""
        return f"on at {', '.join(self.points)}{weight}"


OFF = _Plugin()


def _of_plugin(what: str, a: _Plugin, b: _Plugin) -> Iterator[JsonDifference]:
    if a.points != b.points:
        yield JsonDifference(what, str(a), str(b))
        return
    yield from differences(a.weight, b.weight, f"{what}, weight")
    yield from differences(a.arguments, b.arguments, f"{what}, args")


def _plugins(profile: JsonObject) -> dict[str, _Plugin]:
    """The plugins that are on, in the order of Filter and Score, as far as they stand there."""
    sets, registry = profile["plugins"], default_registry()
    arguments = {each["name"]: each.get("args") for each in profile["pluginConfig"]}
    points: dict[str, list[str]] = {}
    weights: dict[str, int] = {}
    for point, enabled in _expanded(sets, registry).items():
        for each in enabled:
            points.setdefault(each.name, []).append(str(point))
            if point is ExtensionPoint.SCORE:
                weights[each.name] = each.weight
    for each in (sets.get(MULTI_POINT) or {}).get("enabled") or ():
        if each["name"] not in registry:
            # Whoever does not know a plugin cannot say where it stands.
            points.setdefault(each["name"], [MULTI_POINT])
    return {
        name: _Plugin(tuple(at), weights.get(name), arguments.get(name))
        for name, at in points.items()
    }


def _expanded(
    sets: JsonObject, registry: PluginRegistry
) -> Mapping[ExtensionPoint, Sequence[EnabledPlugin]]:
    from kubescene.scheduler.configuration.expansion import Expansion

    return Expansion(sets, partial(_points_of, registry, sets), "plugins").points()


def _points_of(registry: PluginRegistry, sets: JsonObject, name: str) -> Sequence[ExtensionPoint]:
    """Those of a plugin that is not ours are where it is named."""
    return registry.points_of(name) or [
        point for point in ExtensionPoint if name in _enabled(sets, point)
    ]


def _enabled(sets: JsonObject, point: ExtensionPoint) -> list[str]:
    from kubescene.scheduler.configuration.expansion import field_of

    given = sets.get(field_of(point)) or {}
    return [each["name"] for each in given.get("enabled") or ()]
