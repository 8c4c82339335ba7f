"""What is wrong with a configuration whose defaults are filled in (K-8, K-9, K-10, K-11)."""

from collections.abc import Sequence
from typing import Any

from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import label_key
from kubescene.api.validation.resources import is_extended
from kubescene.durations import parse_signed_duration
from kubescene.scheduler.configuration.argument_checks import check_arguments
from kubescene.scheduler.configuration.field_faults import Faults
from kubescene.scheduler.configuration.schema import API_VERSION, MULTI_POINT, PLUGIN_SETS
from kubescene.types import JsonObject

_REMOVED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
_WAS_REMOVED = (
    f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)
_UNCHECKED = (MULTI_POINT, "placementGenerate", "placementScore")
_PROFILES = Path("profiles")
_EXTENDERS = Path("extenders")


def check(configuration: JsonObject) -> Faults:
    """Everything that kube-scheduler dislikes about it before it makes a plugin."""
    faults = Faults()
    _check_client(configuration["clientConnection"], faults)
    _check_leader_election(configuration["leaderElection"], faults)
    if (workers := configuration["parallelism"]) <= 0:
        text = "should be an integer value greater than zero"
        faults.invalid(Path("parallelism"), workers, text)
    _check_profiles(configuration["profiles"], faults)
    _check_percentage(Path("percentageOfNodesToScore"), configuration, faults)
    initial, most = configuration["podInitialBackoffSeconds"], configuration["podMaxBackoffSeconds"]
    if initial <= 0:
        faults.invalid(Path("podInitialBackoffSeconds"), initial, "must be greater than 0")
    if most < initial:
        text = "must be greater than or equal to PodInitialBackoffSeconds"
        faults.invalid(Path("podMaxBackoffSeconds"), most, text)
    _check_extenders(configuration.get("extenders") or (), faults)
    return faults


def _check_client(client: JsonObject, faults: Faults) -> None:
    if client["burst"] < 0:
        place = Path("clientConnection").child("burst")
        faults.invalid(place, client["burst"], "must be non-negative")


def _check_leader_election(election: JsonObject, faults: Faults) -> None:
    if not election["leaderElect"]:
        return
    path = Path("leaderElection")
    for name in ("leaseDuration", "renewDeadline", "retryPeriod"):
        if parse_signed_duration(election[name]) <= 0:
            faults.invalid(path.child(name), election[name], "must be greater than zero")
    deadline = election["renewDeadline"]
    if parse_signed_duration(election["leaseDuration"]) <= parse_signed_duration(deadline):
        text = "must be greater than `RenewDeadline`"
        faults.invalid(path.child("leaseDuration"), deadline, text)
    if election["resourceLock"] != "leases":
        text = 'resourceLock value must be "leases"'
        faults.invalid(path.child("resourceLock"), election["resourceLock"], text)


def _check_percentage(path: Path, holder: JsonObject, faults: Faults) -> None:
    percentage = holder.get("percentageOfNodesToScore")
    if percentage is not None and not 0 <= percentage <= 100:
        faults.invalid(path, percentage, "not in valid range [0-100]")


# -- profiles ----------------------------------------------------------------------------------


def _check_profiles(profiles: Sequence[JsonObject], faults: Faults) -> None:
    names: list[str] = []
    for index, profile in enumerate(profiles):
        path = _PROFILES.index(index)
        name = profile.get("schedulerName", "")
        if not name:
            faults.required(path.child("schedulerName"))
        _check_percentage(path.child("percentageOfNodesToScore"), profile, faults)
        _check_removed(path.child("plugins"), profile["plugins"], faults)
        _check_plugin_config(path.child("pluginConfig"), profile["pluginConfig"], faults)
        if name in names:
            # Upstream shows the path of the other one, which Go prints as an empty object.
            faults.duplicate(path.child("schedulerName"), {})
        names.append(name)
    _check_queue_sort(profiles, faults)


def _check_removed(path: Path, plugins: JsonObject, faults: Faults) -> None:
    for name in PLUGIN_SETS:
        if name in _UNCHECKED:
            continue
        for index, each in enumerate((plugins.get(name) or {}).get("enabled") or ()):
            if each["name"] in _REMOVED:
                place = path.child(name).child("enabled").index(index)
                faults.invalid(place, each["name"], _WAS_REMOVED)


def _check_plugin_config(path: Path, config: Sequence[JsonObject], faults: Faults) -> None:
    seen = set()
    for index, each in enumerate(config):
        name, place = each["name"], path.index(index)
        if name in seen:
            faults.duplicate(place, name)
        seen.add(name)
        if name in _REMOVED:
            faults.invalid(place, name, _WAS_REMOVED)
        else:
            check_arguments(name, each["args"], place.child("args"), faults)


def _check_queue_sort(profiles: Sequence[JsonObject], faults: Faults) -> None:
    """One queue serves all profiles. What is compared is what was written (G-11)."""
    first = _queue_sort(profiles[0])
    enabled = first["Enabled"] or []
    if len(enabled) > 1:
        place = _PROFILES.index(0).child("plugins").child("queueSort").child("Enabled")
        faults.invalid(place, len(enabled), "only one queue sort plugin can be enabled")
    name = enabled[0]["Name"] if enabled else ""
    arguments = [_arguments(profile, name) if name else () for profile in profiles]
    for index, profile in enumerate(profiles[1:], 1):
        path, own = _PROFILES.index(index), _queue_sort(profile)
        if own != first:
            place = path.child("plugins").child("queueSort")
            faults.invalid(place, own, "must be the same for all profiles")
        if arguments[index] and arguments[index][0] != (arguments[0] or (None,))[0]:
            place = path.child("pluginConfig").child("args")
            text = "queueSort must be the same for all profiles"
            faults.invalid(place, arguments[index][0], text)


def _queue_sort(profile: JsonObject) -> JsonObject:
    """The set as Go shows it."""
    given = profile["plugins"].get("queueSort") or {}
    return {
        key.capitalize(): [
            {"Name": each["name"], "Weight": each.get("weight", 0)} for each in given[key]
        ]
        if given.get(key)
        else None
        for key in ("enabled", "disabled")
    }


def _arguments(profile: JsonObject, name: str) -> tuple[Any, ...]:
    return tuple(each["args"] for each in profile["pluginConfig"] if each["name"] == name)


# -- extenders ---------------------------------------------------------------------------------


def _check_extenders(extenders: Sequence[JsonObject], faults: Faults) -> None:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path, weight = _EXTENDERS.index(index), extender.get("weight", 0)
        if extender.get("prioritizeVerb") and weight <= 0:
            faults.invalid(
                path.child("weight"), weight, "must have a positive weight applied to it"
            )
        for at, resource in enumerate(extender.get("managedResources") or ()):
            place = path.child("managedResources").index(at).child("name")
            _check_managed(place, resource.get("name", ""), managed, faults)
    binders = sum(bool(each.get("bindVerb")) for each in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        faults.invalid(_EXTENDERS, found, "only one extender can implement bind")


def _check_managed(path: Path, name: str, managed: set[str], faults: Faults) -> None:
    if complaints := label_key(name):
        faults.invalid_each(path, name, complaints)
    elif not is_extended(name):
        faults.invalid(path, name, "is an invalid extended resource name")
    if name in managed:
        faults.invalid(path, name, "duplicate extender managed resource name")
    managed.add(name)
