"""The flags of Karpenter, by their own names, with its defaults."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kubescene.durations import SECOND, parse_duration
from kubescene.errors import ConfigurationError

GATES: Mapping[str, bool] = {"SpotToSpotConsolidation": False}
"""Feature gates that are simulated, and whether they are on by default."""
OTHER_GATES = (
    "NodeRepair",
    "ReservedCapacity",
    "NodeOverlay",
    "StaticCapacity",
    "CapacityBuffer",
    "TerminateFirstDrift",
    "TerminateFirstRepair",
    "PodDeletionCostManagement",
)
OTHER_FLAGS = (
    "cpu-requests",
    "disable-leader-election",
    "enable-profiling",
    "ignore-dra-requests",
    "kube-client-burst",
    "kube-client-qps",
    "legacy-node-repair",
    "log-level",
    "memory-limit",
    "metrics-port",
    "scheduler-config",
)
"""Flags that the real Karpenter has, and that do nothing here."""


class KarpenterFlags(Struct, frozen=True, kw_only=True):
    """All flags that are simulated."""

    batch_max_duration: int = 10 * SECOND
    batch_idle_duration: int = SECOND
    preference_policy: str = "Respect"
    min_values_policy: str = "Strict"
    feature_gates: frozenset[str] = frozenset()
    """Those that are on."""

    def gate(self, name: str) -> bool:
        return name in self.feature_gates


def _duration(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a duration such as 1s or 10s")
    found = parse_duration(value)
    if found < 0:
        raise ValueError(f"{value} is below 0")
    return found


def _one_of(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is none of {', '.join(choices)}")
        return str(value)

    return read


def _gates(value: object) -> frozenset[str]:
    """As text (``A=true,B=false``) or as an object."""
    if isinstance(value, str):
        pairs = [each.partition("=") for each in value.split(",") if each.strip()]
        listed: Mapping[str, Any] = {name.strip(): text.strip() for name, _, text in pairs}
    elif isinstance(value, Mapping):
        listed = value
    else:
        raise ValueError(f"{value!r} is not of the form SpotToSpotConsolidation=true")
    found = {name for name, on in GATES.items() if on}
    for name, on in listed.items():
        if on not in (True, False, "true", "false"):
            raise ValueError(f"{name}: {on!r} is neither true nor false")
        if name in OTHER_GATES:
            raise ValueError(f"{name} is not simulated")
        if name not in GATES:
            raise ValueError(f"there is no feature gate {name}{meant(name, GATES)}")
        (found.add if on in (True, "true") else found.discard)(name)
    return frozenset(found)


_READERS: Mapping[str, Callable[[object], Any]] = {
    "batch-max-duration": _duration,
    "batch-idle-duration": _duration,
    "preference-policy": _one_of("Respect", "Ignore"),
    "min-values-policy": _one_of("Strict", "BestEffort"),
    "feature-gates": _gates,
}


def read_karpenter_flags(values: Mapping[str, object], where: str) -> KarpenterFlags:
    """Flags by name; raises `ConfigurationError` for what nobody knows or cannot be read."""
    found = dict[str, Any]()
    for name, value in values.items():
        read = _READERS.get(name)
        if read is None:
            raise ConfigurationError(f"{where}: {_unknown(name)}")
        try:
            found[name.replace("-", "_")] = read(value)
        except ValueError as error:
            raise ConfigurationError(f"{where}.{name}: {error}") from error
    return KarpenterFlags(**found)


def _unknown(name: str) -> str:
    if name in OTHER_FLAGS:
        return f"{name} is a flag of Karpenter that is not simulated"
    return f"Karpenter has no flag {name}{meant(name, _READERS)}"


def meant(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else f"; known are: {', '.join(known)}"
