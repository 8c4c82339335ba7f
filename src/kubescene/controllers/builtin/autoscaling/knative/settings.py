"""What a PodAutoscaler asks for: its annotations, and what the ConfigMap says where it does not.

Names, defaults and bounds are Knative's (``knative-serving/config-autoscaler``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from kubescene.autoscalers.kpa import ScalerSpec
from kubescene.durations import SECOND, parse_duration
from kubescene.types import JsonObject, Nanoseconds

PREFIX = "autoscaling.knative.dev/"
KPA_CLASS = "kpa.autoscaling.knative.dev"
CONFIG = ("knative-serving", "config-autoscaler")
CONCURRENCY, RPS = "concurrency", "rps"
LINEAR, WEIGHTED = "linear", "weighted-exponential"
_LEAST_TARGET = 0.01
_HOUR = 3600 * SECOND
_UNBOUNDED = 1e15
_LARGEST_SCALE = (1 << 31) - 1


class KnativeSetting(NamedTuple):
    """One setting: its names in the ConfigMap and as an annotation, either of them perhaps none."""

    config: str
    annotation: str
    default: Any
    least: float = 0
    most: float = _UNBOUNDED


SETTINGS: Mapping[str, KnativeSetting] = {
    "enable_scale_to_zero": KnativeSetting("enable-scale-to-zero", "", True),
    "allow_zero_initial_scale": KnativeSetting("allow-zero-initial-scale", "", False),
    "concurrency_target": KnativeSetting(
        "container-concurrency-target-default", "", 100.0, _LEAST_TARGET
    ),
    "concurrency_share": KnativeSetting(
        "container-concurrency-target-percentage", "", 70.0, 0, 100
    ),
    "rps_target": KnativeSetting("requests-per-second-target-default", "", 200.0, _LEAST_TARGET),
    "target": KnativeSetting("", "target", None, _LEAST_TARGET),
    "share": KnativeSetting("", "target-utilization-percentage", None, 1, 100),
    "burst": KnativeSetting("target-burst-capacity", "target-burst-capacity", 211.0, -1),
    "stable_window": KnativeSetting("stable-window", "window", 60 * SECOND, 6 * SECOND, _HOUR),
    "panic_share": KnativeSetting(
        "panic-window-percentage", "panic-window-percentage", 10.0, 1, 100
    ),
    "panic_threshold": KnativeSetting(
        "panic-threshold-percentage", "panic-threshold-percentage", 200.0, 110, 1000
    ),
    "up_rate": KnativeSetting("max-scale-up-rate", "", 1000.0, 1),
    "down_rate": KnativeSetting("max-scale-down-rate", "", 2.0, 1),
    "grace": KnativeSetting("scale-to-zero-grace-period", "", 30 * SECOND, 1),
    "retention": KnativeSetting(
        "scale-to-zero-pod-retention-period", "scale-to-zero-pod-retention-period", 0, 0, _HOUR
    ),
    "delay": KnativeSetting("scale-down-delay", "scale-down-delay", 0, 0, _HOUR),
    "initial_scale": KnativeSetting("initial-scale", "initial-scale", 1, 0, _LARGEST_SCALE),
    "min_scale": KnativeSetting("min-scale", "min-scale", 0, 0, _LARGEST_SCALE),
    "max_scale": KnativeSetting("max-scale", "max-scale", 0, 0, _LARGEST_SCALE),
    "activation_scale": KnativeSetting("", "activation-scale", 1, 2, _LARGEST_SCALE),
    "metric": KnativeSetting("", "metric", CONCURRENCY),
    "aggregation": KnativeSetting("", "metric-aggregation-algorithm", LINEAR),
    "deadline": KnativeSetting("", "", 600 * SECOND),
}
_TIMES = frozenset({"stable_window", "grace", "retention", "delay"})
_CHOICES = {"metric": (CONCURRENCY, RPS), "aggregation": (LINEAR, WEIGHTED)}
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_DEADLINE = "serving.knative.dev/progress-deadline"


class KpaSettings(Struct, frozen=True):
    """Everything that a PodAutoscaler goes by. Times are nanoseconds."""

    rule: ScalerSpec
    panic_window: Nanoseconds
    metric: str
    weighted: bool
    min_scale: int
    max_scale: int
    initial_scale: int
    scales_to_zero: bool
    grace: Nanoseconds
    retention: Nanoseconds
    activation_timeout: Nanoseconds


def read_settings(autoscaler: JsonObject, config: Mapping[str, str]) -> KpaSettings:
    """What counts for an object; raises ValueError in words."""
    annotations = autoscaler["metadata"].get("annotations") or {}
    found = {name: _value(name, setting, annotations, config) for name, setting in SETTINGS.items()}
    if _DEADLINE in annotations:
        found["deadline"] = _parsed("deadline", 0, annotations[_DEADLINE], _DEADLINE)
    spec = autoscaler.get("spec") or {}
    is_reachable = spec.get("reachability") != "Unreachable"
    if min(found["up_rate"], found["down_rate"]) <= 1:
        raise ValueError("max-scale-up-rate and max-scale-down-rate: must be more than 1")
    if -1 < found["burst"] < 0:
        raise ValueError("target-burst-capacity: must be -1, or at least 0")
    if 0 < found["max_scale"] < found["min_scale"]:
        raise ValueError(f"max-scale={found['max_scale']} is less than min-scale")
    target, total = _target(found, int(spec.get("containerConcurrency") or 0))
    rule = ScalerSpec(
        target=target,
        total=total,
        target_burst_capacity=found["burst"],
        panic_threshold=found["panic_threshold"] / 100,
        max_scale_up_rate=found["up_rate"],
        max_scale_down_rate=found["down_rate"],
        stable_window=found["stable_window"],
        scale_down_delay=found["delay"],
        activation_scale=found["activation_scale"],
        reachable=is_reachable,
    )
    panic = found["stable_window"] * found["panic_share"] / 100
    return KpaSettings(
        rule,
        max(int(panic / SECOND + 0.5), 1) * SECOND,
        found["metric"],
        found["aggregation"] == WEIGHTED,
        found["min_scale"] if is_reachable else 0,
        found["max_scale"],
        _initial_scale(found, config),
        found["enable_scale_to_zero"],
        found["grace"],
        found["retention"] if is_reachable else 0,
        found["deadline"] + 10 * SECOND,
    )


def _initial_scale(found: Mapping[str, Any], config: Mapping[str, str]) -> int:
    if found["initial_scale"] or found["allow_zero_initial_scale"]:
        return int(found["initial_scale"])
    return int(_value("initial_scale", SETTINGS["initial_scale"], {}, config)) or 1


def _target(found: Mapping[str, Any], concurrency: int) -> tuple[float, float]:
    """What a pod should have of the metric, and what it can take."""
    is_rps = found["metric"] == RPS
    total = found["rps_target"] if is_rps else float(concurrency) or found["concurrency_target"]
    if found["target"] is not None:
        total = found["target"]
        if concurrency and not is_rps:
            total = min(total, float(concurrency))
    share = 70.0 if is_rps else found["concurrency_share"]
    if not is_rps and share <= 1:
        share *= 100  # Knative takes both.
    if found["share"] is not None:
        share = found["share"]
    return max(_LEAST_TARGET, total * (share / 100)), total


def _value(
    name: str, setting: KnativeSetting, annotations: Mapping[str, str], config: Mapping[str, str]
) -> Any:
    annotation = PREFIX + setting.annotation
    if setting.annotation and annotation in annotations:
        text, where = annotations[annotation], f"metadata.annotations[{annotation}]"
    elif setting.config and setting.config in config:
        text, where = config[setting.config], f"ConfigMap {'/'.join(CONFIG)}: {setting.config}"
    else:
        return setting.default
    value = _parsed(name, setting.default, text, where)
    if not isinstance(value, str) and not setting.least <= value <= setting.most:
        most = "" if setting.most == _UNBOUNDED else f" and at most {_shown(name, setting.most)}"
        least = _shown(name, setting.least)
        raise ValueError(f"{where}: must be at least {least}{most}, found {text!r}")
    return value


def _parsed(name: str, default: Any, text: str, where: str) -> Any:
    if name in _CHOICES:
        if text not in _CHOICES[name]:
            raise ValueError(f"{where}: {text!r} is none of {', '.join(_CHOICES[name])}")
        return text
    try:
        if name in _TIMES or name == "deadline":
            return parse_duration(text)
        if isinstance(default, bool):
            return _BOOLEANS[text.lower()]
        return int(text) if isinstance(default, int) else float(text)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{where}: {text!r} cannot be read") from error


def _shown(name: str, bound: float) -> str:
    return f"{bound / SECOND:g}s" if name in _TIMES else f"{bound:g}"
