"""What is wrong with the arguments of a built-in plugin, defaults filled in (K-12)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubescene.api.selectors import node_selector_term
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import label_key
from kubescene.clock import SECOND
from kubescene.durations import parse_signed_duration
from kubescene.scheduler.configuration.field_faults import Faults
from kubescene.types import JsonObject

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_RATIO = "RequestedToCapacityRatio"
_STRATEGIES = ("LeastAllocated", "MostAllocated", _RATIO)


def check_arguments(name: str, args: JsonObject, path: Path, faults: Faults) -> None:
    """Note what kube-scheduler says of these arguments while it reads the configuration.

    Those of NodeResourcesFit are looked at when the plugin is made (K-13): `check_fit`.
    """
    if check := _CHECKS.get(name):
        check(path, args, faults)


def _default_preemption(path: Path, args: JsonObject, faults: Faults) -> None:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    if not 0 <= args[percentage] <= 100:
        faults.invalid(path.child(percentage), args[percentage], "not in valid range [0, 100]")
    if args[absolute] < 0:
        faults.invalid(path.child(absolute), args[absolute], "not in valid range [0, inf)")
    if args[percentage] == 0 == args[absolute]:
        for one, other in ((percentage, absolute), (absolute, percentage)):
            faults.invalid(path.child(one), 0, f"cannot be zero at the same time as {other}")


def _dynamic_resources(path: Path, args: JsonObject, faults: Faults) -> None:
    if parse_signed_duration(args["filterTimeout"]) < 0:
        timeout = path.child("filterTimeout")
        faults.invalid(timeout, args["filterTimeout"], "must be zero or positive")
    if parse_signed_duration(args["bindingTimeout"]) < SECOND:
        timeout = path.child("bindingTimeout")
        faults.invalid(timeout, args["bindingTimeout"], "must be at least 1 second")


def _inter_pod_affinity(path: Path, args: JsonObject, faults: Faults) -> None:
    weight = args["hardPodAffinityWeight"]
    if not 0 <= weight <= 100:
        place = path.child("hardPodAffinityWeight")
        faults.invalid(place, weight, "not in valid range [0, 100]")


def _node_affinity(path: Path, args: JsonObject, faults: Faults) -> None:
    added = args.get("addedAffinity") or {}
    place = path.child("addedAffinity")
    required = added.get(REQUIRED) or {}
    terms = place.child(REQUIRED).child("nodeSelectorTerms")
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        faults.texts(node_selector_term(term, path=str(terms.index(index))).errors)
    for index, each in enumerate(added.get(PREFERRED) or ()):
        here = str(place.child(PREFERRED).index(index))
        if each.get("weight"):
            faults.texts(node_selector_term(each.get("preference") or {}, path=here).errors)


def _balanced_allocation(path: Path, args: JsonObject, faults: Faults) -> None:
    seen = set()
    for index, resource in enumerate(args["resources"]):
        place = path.child("resources").index(index)
        if resource["name"] in seen:
            faults.duplicate(place.child("name"), resource["name"])
        seen.add(resource["name"])
        if resource["weight"] != 1:
            faults.invalid(place.child("weight"), resource["weight"], "must be 1")


def _topology_spread(path: Path, args: JsonObject, faults: Faults) -> None:
    constraints = args.get("defaultConstraints") or []
    defaulting, place = args["defaultingType"], path.child("defaultingType")
    if defaulting not in ("System", "List"):
        faults.not_supported(place, defaulting, ("System", "List"))
    elif defaulting == "System" and constraints:
        faults.invalid(place, defaulting, "when .defaultConstraints are not empty")
    below = path.child("defaultConstraints")
    for index, constraint in enumerate(constraints):
        _constraint(below.index(index), constraint, faults)
        key = _key_and_action(constraint)
        if any(_key_and_action(other) == key for other in constraints[:index]):
            faults.duplicate(below.index(index), f"{{{key[0]}, {key[1]}}}")


def _constraint(path: Path, constraint: JsonObject, faults: Faults) -> None:
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        faults.invalid(path.child("maxSkew"), skew, "not in valid range (0, inf)")
    key, action = _key_and_action(constraint)
    if key:
        faults.invalid_each(path.child("topologyKey"), key, label_key(key))
    else:
        faults.required(path.child("topologyKey"), "can not be empty")
    if not action:
        faults.required(path.child("whenUnsatisfiable"), "can not be empty")
    elif action not in _ACTIONS:
        faults.not_supported(path.child("whenUnsatisfiable"), action, _ACTIONS)
    if constraint.get("labelSelector") is not None:
        text = "constraint must not define a selector, as they deduced for each pod"
        faults.forbidden(path.child("labelSelector"), text)


def _key_and_action(constraint: JsonObject) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _volume_binding(path: Path, args: JsonObject, faults: Faults) -> None:
    seconds = args["bindTimeoutSeconds"]
    if seconds < 0:
        text = "invalid BindTimeoutSeconds, should not be a negative value"
        faults.invalid(path.child("bindTimeoutSeconds"), seconds, text)
    if (shape := args.get("shape")) is not None:
        # Go shows its own names: the value has been converted by now.
        shown = [
            {"Utilization": each.get("utilization", 0), "Score": each.get("score", 0)}
            for each in shape
        ]
        text = "unexpected field `shape`, remove it or turn on the feature gate "
        faults.invalid(path.child("shape"), shown, f"{text}StorageCapacityScoring")


_CHECKS: Mapping[str, Callable[[Path, JsonObject, Faults], None]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "PodTopologySpread": _topology_spread,
    "VolumeBinding": _volume_binding,
}


# -- NodeResourcesFit --------------------------------------------------------------------------


def check_fit(args: JsonObject) -> ErrorList:
    """What is wrong with the arguments of NodeResourcesFit, with paths below ``args``."""
    errors = ErrorList()
    for index, resource in enumerate(args.get("ignoredResources") or ()):
        place = Path("ignoredResources").index(index)
        errors.invalid_each(place, resource, label_key(resource))
    for index, group in enumerate(args.get("ignoredResourceGroups") or ()):
        place = Path("ignoredResourceGroups").index(index)
        if "/" in group:
            errors.invalid(place, group, "resource group name can't contain '/'")
        errors.invalid_each(place, group, label_key(group))
    _check_strategy(Path("scoringStrategy"), args["scoringStrategy"], errors)
    return errors


def _check_strategy(path: Path, strategy: JsonObject, errors: ErrorList) -> None:
    kind = strategy.get("type", "")
    if kind not in _STRATEGIES:
        errors.not_supported(path.child("type"), kind, _STRATEGIES)
    for index, each in enumerate(strategy["resources"]):
        if not 0 < each["weight"] <= 100:
            text = f"resource weight of {each['name']} not in valid range (0, 100]"
            errors.invalid(
                path.child("resources").index(index).child("weight"), each["weight"], text
            )
    ratio, place = strategy.get("requestedToCapacityRatio"), path.child("requestedToCapacityRatio")
    if kind != _RATIO:
        if ratio is not None:
            errors.forbidden(place, f"must be nil when type is not {_RATIO}")
    elif ratio is None:
        errors.required(place, f"must be specified when type is {_RATIO}")
    else:
        _check_shape(place.child("shape"), ratio.get("shape") or (), errors)


def _check_shape(path: Path, shape: Sequence[Mapping[str, Any]], errors: ErrorList) -> None:
    if not shape:
        errors.required(path, "at least one point must be specified")
        return
    points = [(each.get("utilization", 0), each.get("score", 0)) for each in shape]
    for index in range(1, len(points)):
        if points[index - 1][0] >= points[index][0]:
            place = path.index(index).child("utilization")
            errors.invalid(place, points[index][0], "values must be sorted in increasing order")
            break
    for index, (utilization, score) in enumerate(points):
        if not 0 <= utilization <= 100:
            place = path.index(index).child("utilization")
            errors.invalid(place, utilization, "not in valid range [0, 100]")
        if not 0 <= score <= 10:
            errors.invalid(path.index(index).child("score"), score, "not in valid range [0, 10]")
