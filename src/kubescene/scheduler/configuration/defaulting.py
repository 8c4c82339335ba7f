"""What a configuration leaves open (K-2)."""

from collections.abc import Iterable, Sequence

from kubescene.scheduler.configuration.arguments import default_plugin_config
from kubescene.scheduler.configuration.plugin_sets import merged_plugins, names_of
from kubescene.scheduler.configuration.schema import API_VERSION, CONFIGURATION, KIND
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
