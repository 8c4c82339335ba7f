"""``pluginConfig``: the arguments of built-in plugins, decoded and with their defaults (K-1, K-3).

Arguments of other plugins are theirs: they are handed over as they were written.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubescene.errors import SchedulerConfigurationError
from kubescene.scheduler.configuration.argument_schema import ARGUMENTS
from kubescene.scheduler.configuration.decoding import Decoder
from kubescene.scheduler.configuration.field_faults import not_registered
from kubescene.scheduler.configuration.schema import API_VERSION, GROUP
from kubescene.types import JsonObject

_CPU_AND_MEMORY = ("cpu", "memory")


def decode_arguments(name: str, args: Any, path: str, unknown: list[tuple[str, str]]) -> Any:
    """The arguments of one plugin; fields that it does not know are added to ``unknown``.

    What is added is the path and the text of kube-scheduler.
    """
    if name not in ARGUMENTS:
        return args
    decoder = Decoder(f"{path}.args")
    decoded = decoder.decode(ARGUMENTS[name], {} if args is None else args)
    _check_type(name, decoded, path)
    if decoder.unknown:
        fields = ", ".join(f'unknown field "{each}"' for each in decoder.unknown)
        text = (
            f"decoding .{path}: strict decoding error: decoding args for plugin {name}: "
            f"strict decoding error: {fields}"
        )
        unknown.append((f"{path}.args.{decoder.unknown[0]}", text))
    return decoded


def _check_type(name: str, args: JsonObject, path: str) -> None:
    """Arguments may say what they are; then it must be so (K-1)."""
    version, kind = args.get("apiVersion") or API_VERSION, args.get("kind") or f"{name}Args"
    known = kind.removesuffix("Args") in ARGUMENTS
    if version != API_VERSION or not known:
        text = f"decoding .{path}: decoding args for plugin {name}: {not_registered(kind, version)}"
        raise SchedulerConfigurationError(text, f"{path}.args.apiVersion")
    if kind != f"{name}Args":
        text = f"args for plugin {name} were not of type {name}Args.{GROUP}, got {kind}.{GROUP}"
        raise SchedulerConfigurationError(f"decoding .{path}: {text}", f"{path}.args.kind")


def default_plugin_config(given: list[JsonObject], enabled: Iterable[str]) -> list[JsonObject]:
    """What was given with defaults filled in, then the defaults of the other enabled plugins."""
    complete = [{**each, "args": with_defaults(each["name"], each.get("args"))} for each in given]
    named = {each["name"] for each in given}
    others = [name for name in sorted(set(enabled)) if name in ARGUMENTS and name not in named]
    return complete + [{"name": name, "args": with_defaults(name, None)} for name in others]


def with_defaults(name: str, args: Any) -> Any:
    if name not in ARGUMENTS:
        return args
    typed = {"apiVersion": API_VERSION, "kind": f"{name}Args", **(args or {})}
    return {**typed, **_DEFAULTS[name](typed)}


def _default_preemption(args: JsonObject) -> JsonObject:
    return {
        "minCandidateNodesPercentage": args.get("minCandidateNodesPercentage", 10),
        "minCandidateNodesAbsolute": args.get("minCandidateNodesAbsolute", 100),
    }


def _dynamic_resources(args: JsonObject) -> JsonObject:
    return {
        "filterTimeout": args.get("filterTimeout", "10s"),
        "bindingTimeout": args.get("bindingTimeout", "10m0s"),
    }


def _inter_pod_affinity(args: JsonObject) -> JsonObject:
    ignore = "ignorePreferredTermsOfExistingPods"
    weight = args.get("hardPodAffinityWeight", 1)
    return {"hardPodAffinityWeight": weight, ignore: args.get(ignore, False)}


def _nothing(args: JsonObject) -> JsonObject:
    del args
    return {}


def _balanced_allocation(args: JsonObject) -> JsonObject:
    return {"resources": _weighted(args.get("resources"))}


def _fit(args: JsonObject) -> JsonObject:
    strategy = args.get("scoringStrategy")
    if strategy is None:
        strategy = {"type": "LeastAllocated"}
    return {"scoringStrategy": {**strategy, "resources": _weighted(strategy.get("resources"))}}


def _weighted(resources: list[JsonObject] | None) -> list[JsonObject]:
    """No resources are cpu and memory; no weight, or 0, is 1."""
    given = resources or [{"name": name} for name in _CPU_AND_MEMORY]
    return [{"name": each.get("name", ""), "weight": each.get("weight") or 1} for each in given]


def _topology_spread(args: JsonObject) -> JsonObject:
    return {"defaultingType": args.get("defaultingType") or "System"}


def _volume_binding(args: JsonObject) -> JsonObject:
    return {"bindTimeoutSeconds": args.get("bindTimeoutSeconds", 600)}


_DEFAULTS: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _nothing,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _topology_spread,
    "VolumeBinding": _volume_binding,
}
