"""The flags of the cluster autoscaler, by their own names, with its defaults.

A flag is a field of `Flags` whose name is written with dashes: `scale_down_unneeded_time` is
``scale-down-unneeded-time``. Durations are nanoseconds, totals pairs of least and most. What the
real autoscaler has and is not simulated here is refused by name; so is what nobody knows.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from kubescene.durations import HOUR, MINUTE, SECOND, parse_duration
from kubescene.errors import ConfigurationError

Range: TypeAlias = tuple[int, int]
_READER = "reader"
_MOST_CORES: Range = (0, 5000 * 64)
_MOST_MEMORY: Range = (0, 5000 * 64 * 20)


def _duration(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration such as 90s or 10m")
    return parse_duration(value)


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f"{value!r} is neither true nor false")


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is not a whole number")
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number") from None


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a number")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    return tuple(_text(each) for each in listed)


def _range(value: object) -> Range:
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{value!r} is not of the form <min>:<max>")
    least, most = int(parts[0]), int(parts[1])
    if least > most:
        raise ValueError(f"{value!r}: the least is more than the most")
    return least, most


def _flag(default: Any, reader: Callable[[object], Any]) -> Any:
    return field(default=default, metadata={_READER: reader})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFlags:
    """Flags that a node group may have values of its own for."""

    scale_down_utilization_threshold: float = _flag(0.5, _float)
    scale_down_unneeded_time: int = _flag(10 * MINUTE, _duration)
    scale_down_unready_time: int = _flag(20 * MINUTE, _duration)
    max_node_provision_time: int = _flag(15 * MINUTE, _duration)
    max_node_startup_time: int = _flag(15 * MINUTE, _duration)
    ignore_daemonsets_utilization: bool = _flag(False, _bool)
    zero_or_max: bool = _flag(False, _bool)
    """Whether the group has either no node or as many as it may; a group's own, never a flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags(GroupFlags):
    """All flags that are simulated."""

    scan_interval: int = _flag(10 * SECOND, _duration)
    expander: str = _flag("least-waste", _text)
    max_nodes_total: int = _flag(0, _int)
    cores_total: tuple[int, int] = _flag(_MOST_CORES, _range)
    memory_total: tuple[int, int] = _flag(_MOST_MEMORY, _range)
    max_nodes_per_scaleup: int = _flag(1000, _int)
    balance_similar_node_groups: bool = _flag(False, _bool)
    balancing_ignore_label: tuple[str, ...] = _flag((), _texts)
    balancing_label: tuple[str, ...] = _flag((), _texts)
    memory_difference_ratio: float = _flag(0.015, _float)
    max_free_difference_ratio: float = _flag(0.05, _float)
    max_allocatable_difference_ratio: float = _flag(0.05, _float)
    new_pod_scale_up_delay: int = _flag(0, _duration)
    expendable_pods_priority_cutoff: int = _flag(-10, _int)
    enforce_node_group_min_size: bool = _flag(False, _bool)
    initial_node_group_backoff_duration: int = _flag(5 * MINUTE, _duration)
    max_node_group_backoff_duration: int = _flag(30 * MINUTE, _duration)
    node_group_backoff_reset_timeout: int = _flag(3 * HOUR, _duration)
    ok_total_unready_count: int = _flag(3, _int)
    max_total_unready_percentage: float = _flag(45.0, _float)
    force_ds: bool = _flag(False, _bool)
    startup_taint: tuple[str, ...] = _flag((), _texts)
    startup_taint_prefix: tuple[str, ...] = _flag((), _texts)
    status_taint: tuple[str, ...] = _flag((), _texts)
    scale_from_unschedulable: bool = _flag(False, _bool)
    node_info_cache_expire_time: int = _flag(87600 * HOUR, _duration)
    scaleup_simulation_for_skipped_node_groups_enabled: bool = _flag(False, _bool)
    scale_down_enabled: bool = _flag(True, _bool)
    scale_down_unready_enabled: bool = _flag(True, _bool)
    scale_down_delay_after_add: int = _flag(10 * MINUTE, _duration)
    scale_down_delay_after_delete: int = _flag(0, _duration)
    scale_down_delay_after_failure: int = _flag(3 * MINUTE, _duration)
    scale_down_delay_type_local: bool = _flag(False, _bool)
    max_scale_down_parallelism: int = _flag(10, _int)
    max_drain_parallelism: int = _flag(1, _int)
    unremovable_node_recheck_timeout: int = _flag(5 * MINUTE, _duration)
    max_bulk_soft_taint_count: int = _flag(10, _int)
    max_graceful_termination_sec: int = _flag(600, _int)
    max_pod_eviction_time: int = _flag(2 * MINUTE, _duration)
    node_delete_delay_after_taint: int = _flag(5 * SECOND, _duration)
    node_deletion_batcher_interval: int = _flag(0, _duration)
    cordon_node_before_terminating: bool = _flag(True, _bool)
    ignore_mirror_pods_utilization: bool = _flag(False, _bool)
    skip_nodes_with_system_pods: bool = _flag(True, _bool)
    skip_nodes_with_local_storage: bool = _flag(True, _bool)
    skip_nodes_with_custom_controller_pods: bool = _flag(True, _bool)
    blocking_system_pod_distruption_timeout: int = _flag(HOUR, _duration)
    min_replica_count: int = _flag(0, _int)
    daemonset_eviction_for_empty_nodes: bool = _flag(False, _bool)
    daemonset_eviction_for_occupied_nodes: bool = _flag(True, _bool)
    status_config_map_name: str = _flag("cluster-autoscaler-status", _text)
    enable_provisioning_requests: bool = _flag(False, _bool)
    provisioning_request_initial_backoff_time: int = _flag(MINUTE, _duration)
    provisioning_request_max_backoff_time: int = _flag(10 * MINUTE, _duration)
    provisioning_request_max_backoff_cache_size: int = _flag(1000, _int)
    check_capacity_batch_processing: bool = _flag(False, _bool)
    check_capacity_provisioning_request_max_batch_size: int = _flag(10, _int)
    check_capacity_processor_instance: str = _flag("", _text)

    def for_group(self, options: Mapping[str, object], where: str = "") -> GroupFlags:
        """The flags of a group that has these values of its own."""
        own = {each.name: getattr(self, each.name) for each in fields(GroupFlags)}
        own |= _read(options, _GROUP, where)
        return GroupFlags(**own)


def _named(kind: type[GroupFlags]) -> dict[str, Callable[[object], Any]]:
    return {each.name.replace("_", "-"): each.metadata[_READER] for each in fields(kind)}


_GROUP = _named(GroupFlags)
_ALL = {name: reader for name, reader in _named(Flags).items() if name != "zero-or-max"}

MEANINGLESS = frozenset({"max-binpacking-time", "max-bulk-soft-taint-time"}) | {
    "check-capacity-provisioning-request-batch-timebox",
    "max-nodegroup-binpacking-duration",
    "predicate-parallelism",
    "scale-down-simulation-timeout",
}
"""Flags that bound the time of a computation or the threads of it; here that takes no time."""

_NOT_HERE = """
address allowed-scheduler-names async-node-groups aws-use-static-instance-list
bulk-mig-instances-listing-enabled bypassed-scheduler-names capacity-buffer-controller-enabled
capacity-buffer-pod-dry-run-enabled capacity-buffer-pod-injection-enabled
capacity-quotas-enabled cloud-config cloud-provider cluster-name
cluster-snapshot-parallelism clusterapi-cloud-config-authoritative debugging-snapshot-enabled
drain-priority-config dynamic-node-delete-delay-after-taint-enabled emit-per-nodegroup-metrics
enable-csi-node-aware-scheduling enable-dynamic-resource-allocation enable-proactive-scaleup
estimator fastpath-binpacking-enabled force-delete-failed-nodes
force-delete-unregistered-nodes frequent-loops-enabled gce-concurrent-refreshes
gce-mig-instances-min-refresh-wait-time gpu-total grpc-expander-cert grpc-expander-url
ignore-taint kube-api-content-type kube-client-burst kube-client-qps kubeconfig kubernetes
max-failing-time max-inactivity max-node-skip-eval-time-tracker-enabled max-startup-time
namespace node-deletion-candidate-ttl node-deletion-delay-timeout node-group-auto-discovery
node-removal-latency-tracking-enabled nodes parallel-scale-up pod-injection-limit profiling
record-duplicated-events regional salvo-scale-up
salvo-scale-up-budget scale-down-candidates-pool-min-count scale-down-candidates-pool-ratio
scale-down-gpu-utilization-threshold scale-down-non-empty-candidates-count scale-up-from-zero
scheduler-config-file user-agent write-status-configmap
"""
UNSIMULATED = frozenset(_NOT_HERE.split())
"""Flags of the real autoscaler that mean nothing here, or not yet."""


@dataclass(frozen=True, slots=True)
class AutoscalerSettings:
    """How a world's cluster autoscaler works."""

    flags: Flags
    immediate: bool = False
    """For steps without time: whenever a pod found no node, and only up; machines come at once."""
    profile: str = ""
    """That of the world's scheduler whose plugins judge nodes; empty: those of kube-scheduler's
    defaults, as in the real autoscaler unless it is given a configuration."""


MODES = ("Periodic", "Immediate")
PROFILE = "schedulerProfile"
EXPANDER_NAMES = ("least-nodes", "least-waste", "most-pods", "price", "priority", "random")


def read_settings(values: Mapping[str, object], where: str) -> AutoscalerSettings:
    """Flags by their own names, ``mode`` and ``schedulerProfile``."""
    given = {name: value for name, value in values.items() if name not in ("mode", PROFILE)}
    mode = values.get("mode", MODES[0])
    if mode not in MODES:
        raise ConfigurationError(f"{where}.mode: {mode!r} is none of {', '.join(MODES)}")
    profile = values.get(PROFILE, "")
    if not isinstance(profile, str) or (PROFILE in values and not profile):
        raise ConfigurationError(f"{where}.{PROFILE}: {profile!r} is not the name of a scheduler")
    flags = read_flags(given, where)
    if flags.scan_interval <= 0:
        raise ConfigurationError(f"{where}: scan-interval: it must be longer than nothing")
    for name in flags.expander.split(","):
        check_expander(name, f"{where}: ")
    return AutoscalerSettings(flags, immediate=mode == "Immediate", profile=profile)


def check_expander(name: str, where: str = "") -> None:
    """Refuse an expander that does not exist."""
    if name not in EXPANDER_NAMES:
        near = difflib.get_close_matches(name, EXPANDER_NAMES, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EXPANDER_NAMES)}"
        raise ConfigurationError(f"{where}expander: {name!r} is not known here; {hint}")


def read_flags(values: Mapping[str, object], where: str = "clusterAutoscaler") -> Flags:
    """The flags with these values; all others have their defaults."""
    known = {name: value for name, value in values.items() if name not in MEANINGLESS}
    return Flags(**_read(known, _ALL, where))


def _read(
    values: Mapping[str, object], readers: Mapping[str, Callable[[object], Any]], where: str
) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in values.items():
        place = f"{where}: {name}" if where else name
        reader = readers.get(name)
        if reader is None:
            raise ConfigurationError(f"{place}: {_why_not(name, readers)}")
        try:
            read[name.replace("-", "_")] = reader(value)
        except ValueError as error:
            raise ConfigurationError(f"{place}: {error}") from None
    return read


def _why_not(name: str, readers: Mapping[str, object]) -> str:
    if name in UNSIMULATED:
        return "the cluster autoscaler has this flag, but it is not simulated; leave it out"
    if name in _ALL or name in _GROUP:
        return "a node group cannot have a value of its own for this; set it for all of them"
    near = difflib.get_close_matches(name, readers, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(readers))}"
    return f"there is no such flag; {hint}"
