"""The flags of recommender and updater, with the defaults of release 1.7.1.

Durations are nanoseconds. `recommender_options` and `updater_options` read them from a mapping
with the names of the reference (camelCase, durations in seconds) and say which entry is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any

from kubescene.api.quantity import Quantity, QuantityError, parse
from kubescene.clock import MINUTE, SECOND
from kubescene.errors import ConfigurationError

HOUR = 60 * MINUTE
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderOptions:
    """How recommendations are made of samples."""

    safety_margin: float = 0.15
    pod_min_cpu_millicores: float = 25.0
    pod_min_memory_mb: float = 250.0
    target_cpu_percentile: float = 0.9
    lower_bound_cpu_percentile: float = 0.5
    upper_bound_cpu_percentile: float = 0.95
    confidence_interval_cpu: int = DAY
    target_memory_percentile: float = 0.9
    lower_bound_memory_percentile: float = 0.5
    upper_bound_memory_percentile: float = 0.95
    confidence_interval_memory: int = DAY
    memory_aggregation_interval: int = DAY
    memory_aggregation_interval_count: int = 8
    memory_histogram_decay_half_life: int = DAY
    cpu_histogram_decay_half_life: int = DAY
    oom_bump_up_ratio: float = 1.2
    oom_min_bump_up_bytes: float = 100 * 1024 * 1024.0
    round_cpu_millicores: int = 1
    round_memory_bytes: int = 1
    humanize_memory: bool = False
    integer_cpu_post_processor: bool = False
    global_max_allowed: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def memory_window(self) -> int:
        """How old an aggregate may grow without a sample."""
        return self.memory_aggregation_interval * self.memory_aggregation_interval_count


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdaterOptions:
    """When pods are replaced to get what is recommended."""

    min_replicas: int = 2
    eviction_tolerance: float = 0.5
    update_threshold: float = 0.1
    pod_lifetime_threshold: int = 12 * HOUR
    evict_after_oom_threshold: int = 10 * MINUTE
    in_place_skip_disruption_budget: bool = False
    in_place: bool = False
    """The feature gate InPlace, which the update mode of this name needs."""


def recommender_options(given: Mapping[str, Any]) -> RecommenderOptions:
    """Options from names such as ``targetCPUPercentile``; durations are seconds there."""
    return RecommenderOptions(**_read(given, RecommenderOptions))


def updater_options(given: Mapping[str, Any]) -> UpdaterOptions:
    """Options from names such as ``evictionTolerance``; durations are seconds there."""
    return UpdaterOptions(**_read(given, UpdaterOptions))


_POSITIVE_DURATIONS = {
    "confidence_interval_cpu",
    "confidence_interval_memory",
    "memory_aggregation_interval",
    "memory_histogram_decay_half_life",
    "cpu_histogram_decay_half_life",
}
_ACRONYMS = {"cpu": "CPU", "oom": "OOM"}
_DURATIONS = {*_POSITIVE_DURATIONS, "pod_lifetime_threshold", "evict_after_oom_threshold"}


def _read(given: Mapping[str, Any], options: type) -> dict[str, Any]:
    names = {_camel(each.name): each for each in fields(options)}
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ConfigurationError(
            f"{unknown[0]}: no such option; there are {', '.join(sorted(names))}"
        )
    read = {}
    for name, value in given.items():
        if value is None:
            continue
        kind = names[name]
        read[kind.name] = _value(name, kind.name, value, kind.type)
    return read


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(word, word.capitalize()) for word in rest)


def _value(given: str, name: str, value: Any, kind: Any) -> Any:
    if name == "global_max_allowed":
        return _quantities(given, value)
    if kind is bool:
        if not isinstance(value, bool):
            raise ConfigurationError(f"{given}: {value!r} is neither true nor false")
        return value
    number = _number(given, value)
    if name in _DURATIONS:
        if number <= 0 and name in _POSITIVE_DURATIONS:
            raise ConfigurationError(f"{given}: {value!r} seconds; it has to be more than 0")
        return round(number * SECOND)
    if "percentile" in name and number > 1:
        raise ConfigurationError(f"{given}: {value!r} is no percentile between 0 and 1")
    return _whole(given, number) if kind is int else float(number)


def _number(given: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"{given}: {value!r} is no number")
    if not isfinite(value) or value < 0:
        raise ConfigurationError(f"{given}: {value!r}; it has to be a number that is not negative")
    return value


def _whole(given: str, number: int | float) -> int:
    if number != int(number):
        raise ConfigurationError(f"{given}: {number!r} is no whole number")
    return int(number)


def _quantities(given: str, value: Any) -> dict[str, Quantity]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{given}: expected resources and quantities, not {value!r}")
    try:
        return {str(name): parse(each) for name, each in value.items()}
    except QuantityError as error:
        raise ConfigurationError(f"{given}: {error}") from error
