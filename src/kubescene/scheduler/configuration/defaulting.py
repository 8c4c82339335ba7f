"""What a configuration leaves open (K-2), and which plugins a profile enables: what was written,
merged with the defaults (K-4).

Defaults stand in ``multiPoint`` only; how they spread over the extension points is `expansion`.
"""

from collections.abc import Iterable, Sequence

from kubescene.scheduler.configuration.arguments import default_plugin_config
from kubescene.scheduler.configuration.schema import (
    API_VERSION,
    CONFIGURATION,
    KIND,
    MULTI_POINT,
    PLUGIN_SETS,
)
from kubescene.scheduler.framework.profile import EnabledPlugin
from kubescene.scheduler.state.pod_kinds import DEFAULT_SCHEDULER
from kubescene.types import JsonObject

_LEADER_ELECTION = {
    "leaderElect": True,
    "leaseDuration": "15s",
    "renewDeadline": "10s",
    "retryPeriod": "2s",
    "resourceLock": "leases",
    "resourceName": "kube-scheduler",
    "resourceNamespace": "kube-system",
}
_CLIENT_CONNECTION = {
    "kubeconfig": "",
    "acceptContentTypes": "",
    "contentType": "application/vnd.kubernetes.protobuf",
    "qps": 50,
    "burst": 100,
}
_ZERO = ("", 0, "0s")


def with_defaults(decoded: JsonObject, defaults: Sequence[EnabledPlugin]) -> JsonObject:
    """The whole configuration. ``defaults`` are the plugins that every profile begins with."""
    profiles = decoded.get("profiles") or [{}]
    if len(profiles) == 1:
        profiles = [{"schedulerName": DEFAULT_SCHEDULER, **profiles[0]}]
    profiling = decoded.get("enableProfiling", True)
    complete = {
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
        "enableProfiling": True,
        **({"enableContentionProfiling": True} if profiling else {}),
        **decoded,
        "apiVersion": API_VERSION,
        "kind": KIND,
        "leaderElection": _filled(decoded.get("leaderElection"), _LEADER_ELECTION),
        "clientConnection": _filled(decoded.get("clientConnection"), _CLIENT_CONNECTION),
        "profiles": [default_profile(each, defaults) for each in profiles],
    }
    return {name: complete[name] for name in CONFIGURATION.members if name in complete}


def default_profile(profile: JsonObject, defaults: Iterable[EnabledPlugin]) -> JsonObject:
    plugins = merged_plugins(profile.get("plugins"), tuple(defaults))
    config = default_plugin_config(profile.get("pluginConfig") or [], names_of(plugins))
    return {**profile, "plugins": plugins, "pluginConfig": config}


def _filled(given: JsonObject | None, defaults: JsonObject) -> JsonObject:
    """Zero is the same as nothing, except for switches."""
    said = {
        name: value
        for name, value in (given or {}).items()
        if isinstance(value, bool) or value not in _ZERO
    }
    return {**defaults, **said}


EVERY = "*"


def merged_plugins(plugins: JsonObject | None, defaults: Sequence[EnabledPlugin]) -> JsonObject:
    """The plugin sets of a profile, those that are not empty."""
    given = plugins or {}
    sets = {
        name: merge(given.get(name) or {}, as_written(defaults) if name == MULTI_POINT else [])
        for name in PLUGIN_SETS
    }
    return {name: each for name, each in sets.items() if each}


def merge(given: JsonObject, defaults: list[JsonObject]) -> JsonObject:
    """One plugin set and the defaults that it leaves.

    A default that is enabled by name is replaced where it stands, weight and all; the other enabled
    plugins come at the end.
    """
    disabled = [{"name": each.get("name", "")} for each in given.get("disabled") or ()]
    names = {each["name"] for each in disabled}
    enabled = [{"name": "", **each} for each in given.get("enabled") or ()]
    last = {each["name"]: at for at, each in enumerate(enabled)}
    left = [] if EVERY in names else [each for each in defaults if each["name"] not in names]
    replaced = {last[each["name"]] for each in left if each["name"] in last}
    kept = [enabled[last[each["name"]]] if each["name"] in last else each for each in left]
    kept += [each for at, each in enumerate(enabled) if at not in replaced]
    merged = {"enabled": kept, "disabled": disabled}
    return {key: each for key, each in merged.items() if each}


def as_written(plugins: Iterable[EnabledPlugin]) -> list[JsonObject]:
    return [{"name": each.name, "weight": each.weight} for each in plugins]


def names_of(plugins: JsonObject, key: str = "enabled") -> list[str]:
    """Every plugin that some set names there, in order of first mention."""
    found = [each.get("name", "") for one in plugins.values() for each in one.get(key) or ()]
    return list(dict.fromkeys(found))
