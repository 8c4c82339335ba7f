"""What differs between two scheduler configurations, plugin by plugin.

What counts is what is in force: a plugin that is on by default and one that is enabled in so many
words are the same. Plugins that nobody here knows are taken as they are named.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kubescene.errors import SchedulerConfigurationError
from kubescene.results.comparison.json_differences import JsonDifference, differences
from kubescene.scheduler.framework.plugin_registry import PluginRegistry
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint
from kubescene.scheduler.plugins.default_profile import default_registry
from kubescene.types import JsonObject, ReadOnlyObject

APART = ("profiles", "clientConnection", "leaderElection")
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
    return {name: value for name, value in complete.items() if name not in APART}


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
