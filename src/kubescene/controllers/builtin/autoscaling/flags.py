"""Flags of the pod autoscalers in scenarios, by their own names, with upstream's defaults.

What is read is names and values of the options of the rules (`HorizontalOptions`,
`RecommenderOptions`, `UpdaterOptions`), which are loaded with the first autoscaler.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field

from kubescene.durations import MINUTE, SECOND, parse_duration
from kubescene.errors import ConfigurationError

Options = Mapping[str, Any]


class HorizontalSettings(Struct, frozen=True):
    """Of the horizontal pod autoscaler of kube-controller-manager."""

    sync_period: int = 15 * SECOND
    options: Options = field(default_factory=dict)


class VerticalSettings(Struct, frozen=True):
    """Of recommender and updater of the vertical pod autoscaler."""

    recommender_interval: int = MINUTE
    updater_interval: int = MINUTE
    checkpoints_gc_interval: int = 10 * MINUTE
    recommender: Options = field(default_factory=dict)
    updater: Options = field(default_factory=dict)


class AutoscalingSettings(Struct, frozen=True):
    """How the pod autoscalers of a world work."""

    horizontal: HorizontalSettings = HorizontalSettings()
    vertical: VerticalSettings = VerticalSettings()


DEFAULTS = AutoscalingSettings()


def _duration(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration such as 90s or 10m")
    length = parse_duration(value)
    if length < 0:
        raise ValueError(f"{value!r} is negative")
    return length


def _period(value: object) -> int:
    length = _duration(value)
    if length < SECOND:
        raise ValueError(f"{value!r} is shorter than a second")
    return length


def _half_life(value: object) -> int:
    length = _duration(value)
    if not length:
        raise ValueError("it must be longer than nothing")
    return length


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r} is not a number of at least 0")
    return number


def _share(value: object) -> float:
    number = _number(value)
    if number > 1:
        raise ValueError(f"{value!r} is above 1")
    return number


def _whole(value: object) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError(f"{value!r} is not a whole number")
    return int(number)


def _some(value: object) -> int:
    number = _whole(value)
    if number < 1:
        raise ValueError(f"{value!r} is less than 1")
    return number


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f"{value!r} is neither true nor false")


def _amount(value: object) -> Any:
    from kubescene.api.quantity import QuantityError, parse

    try:
        return parse(str(value))
    except QuantityError as error:
        raise ValueError(f"{value!r}: {error}") from error


class _Flag(NamedTuple):
    """Whose option a flag sets, and how it is read."""

    part: str
    option: str
    read: Callable[[object], Any]


_HORIZONTAL: Mapping[str, _Flag] = {
    "sync-period": _Flag("", "sync_period", _period),
    "tolerance": _Flag("options", "tolerance", _number),
    "downscale-stabilization": _Flag("options", "downscale_stabilization", _duration),
    "cpu-initialization-period": _Flag("options", "cpu_initialization_period", _duration),
    "initial-readiness-delay": _Flag("options", "initial_readiness_delay", _duration),
}
HORIZONTAL_PREFIX = "horizontal-pod-autoscaler-"
_RECOMMENDER: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "recommendation-margin-fraction": ("safety_margin", _number),
    "pod-recommendation-min-cpu-millicores": ("pod_min_cpu_millicores", _number),
    "pod-recommendation-min-memory-mb": ("pod_min_memory_mb", _number),
    "target-cpu-percentile": ("target_cpu_percentile", _share),
    "recommendation-lower-bound-cpu-percentile": ("lower_bound_cpu_percentile", _share),
    "recommendation-upper-bound-cpu-percentile": ("upper_bound_cpu_percentile", _share),
    "confidence-interval-cpu": ("confidence_interval_cpu", _half_life),
    "target-memory-percentile": ("target_memory_percentile", _share),
    "recommendation-lower-bound-memory-percentile": ("lower_bound_memory_percentile", _share),
    "recommendation-upper-bound-memory-percentile": ("upper_bound_memory_percentile", _share),
    "confidence-interval-memory": ("confidence_interval_memory", _half_life),
    "humanize-memory": ("humanize_memory", _bool),
    "round-cpu-millicores": ("round_cpu_millicores", _some),
    "round-memory-bytes": ("round_memory_bytes", _some),
    "memory-aggregation-interval": ("memory_aggregation_interval", _half_life),
    "memory-aggregation-interval-count": ("memory_aggregation_interval_count", _some),
    "memory-histogram-decay-half-life": ("memory_histogram_decay_half_life", _half_life),
    "cpu-histogram-decay-half-life": ("cpu_histogram_decay_half_life", _half_life),
    "oom-bump-up-ratio": ("oom_bump_up_ratio", _number),
    "oom-min-bump-up-bytes": ("oom_min_bump_up_bytes", _number),
    "cpu-integer-post-processor-enabled": ("integer_cpu_post_processor", _bool),
    "container-recommendation-max-allowed-cpu": ("global_max_allowed.cpu", _amount),
    "container-recommendation-max-allowed-memory": ("global_max_allowed.memory", _amount),
}
_UPDATER: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "min-replicas": ("min_replicas", _some),
    "eviction-tolerance": ("eviction_tolerance", _share),
    "pod-update-threshold": ("update_threshold", _number),
    "in-recommendation-bounds-eviction-lifetime-threshold": ("pod_lifetime_threshold", _duration),
    "evict-after-oom-threshold": ("evict_after_oom_threshold", _duration),
    "in-place-skip-disruption-budget": ("in_place_skip_disruption_budget", _bool),
}
_VERTICAL: Mapping[str, _Flag] = {
    "recommender-interval": _Flag("", "recommender_interval", _period),
    "updater-interval": _Flag("", "updater_interval", _period),
    "checkpoints-gc-interval": _Flag("", "checkpoints_gc_interval", _period),
    **{name: _Flag("recommender", *each) for name, each in _RECOMMENDER.items()},
    **{name: _Flag("updater", *each) for name, each in _UPDATER.items()},
}


def read_horizontal(values: Mapping[str, object], where: str) -> HorizontalSettings:
    """Flags with or without ``horizontal-pod-autoscaler-`` before them."""
    short = {str(name).removeprefix(HORIZONTAL_PREFIX): each for name, each in values.items()}
    return HorizontalSettings(**_read(short, _HORIZONTAL, where))


def read_vertical(values: Mapping[str, object], where: str) -> VerticalSettings:
    """Flags of recommender and updater, which have no name in common."""
    read = _read({str(name): each for name, each in values.items()}, _VERTICAL, where)
    own = read.get("recommender", {})
    most = {
        resource: own.pop(f"global_max_allowed.{resource}")
        for resource in ("cpu", "memory")
        if f"global_max_allowed.{resource}" in own
    }
    if most:
        own["global_max_allowed"] = most
    return VerticalSettings(**read)


def _read(values: Mapping[str, object], flags: Mapping[str, _Flag], where: str) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in values.items():
        flag = flags.get(name)
        if flag is None:
            near = difflib.get_close_matches(name, flags, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(flags))}"
            raise ConfigurationError(f"{where}: {name}: there is no such flag here; {hint}")
        try:
            given = flag.read(value)
        except ValueError as error:
            raise ConfigurationError(f"{where}: {name}: {error}") from None
        (read if not flag.part else read.setdefault(flag.part, {}))[flag.option] = given
    return read
