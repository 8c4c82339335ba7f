"""Feature gates: kube-scheduler's switches, with the names and defaults of v1.36.

A gate that is not at its default must be one that this scheduler knows how to turn: anything else
would be a promise that is not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kubescene.errors import ConfigurationError

GANG_SCHEDULING = "GangScheduling"
GENERIC_WORKLOAD = "GenericWorkload"
POP_FROM_BACKOFF = "SchedulerPopFromBackoffQ"

DEFAULTS: Mapping[str, bool] = MappingProxyType(
    {
        "SchedulerQueueingHints": True,
        POP_FROM_BACKOFF: True,
        "SchedulerAsyncPreemption": True,
        "SchedulerAsyncAPICalls": False,
        "NominatedNodeNameForExpectation": True,
        "ClearingNominatedNodeNameAfterBinding": True,
        "OpportunisticBatching": True,
        "NodeDeclaredFeatures": True,
        "DynamicResourceAllocation": True,
        "DRAExtendedResource": True,
        "DRAPrioritizedList": True,
        "DRAPartitionableDevices": True,
        "DRAConsumableCapacity": True,
        "DRADeviceTaints": True,
        "DRADeviceBindingConditions": True,
        "DRAResourceClaimDeviceStatus": True,
        "DRAAdminAccess": True,
        "DRASchedulerFilterTimeout": True,
        "DRADeviceTaintRules": False,
        "DRANodeAllocatableResources": False,
        "DRAListTypeAttributes": False,
        "DRAWorkloadResourceClaims": False,
        GANG_SCHEDULING: False,
        GENERIC_WORKLOAD: False,
        "TopologyAwareWorkloadScheduling": False,
        "WorkloadAwarePreemption": False,
        "PodLevelResources": True,
        "InPlacePodVerticalScaling": True,
        "InPlacePodLevelResourcesVerticalScaling": True,
        "SidecarContainers": True,
        "MatchLabelKeysInPodTopologySpread": True,
        "NodeInclusionPolicyInPodTopologySpread": True,
        "TaintTolerationComparisonOperators": False,
        "StorageCapacityScoring": False,
        "VolumeLimitScaling": False,
        "VolumeAttributesClass": True,
        "MatchLabelKeysInPodAffinity": True,
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": True,
        "PodTopologyLabelsAdmission": True,
        "PodObservedGenerationTracking": True,
    }
)
TURNABLE = frozenset({GANG_SCHEDULING, GENERIC_WORKLOAD, POP_FROM_BACKOFF})
NEEDS: Mapping[str, str] = MappingProxyType({GANG_SCHEDULING: GENERIC_WORKLOAD})


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """All gates: those that are ``given``, and the others at their defaults. Immutable."""

    given: tuple[tuple[str, bool], ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.given:
            _check(name, value)
        for name, needed in NEEDS.items():
            if self.enabled(name) and not self.enabled(needed):
                raise ConfigurationError(
                    f"feature gate {name} is on but depends on {needed}, which is off: turn on both"
                )

    @classmethod
    def of(cls, given: Mapping[str, bool]) -> "FeatureGates":
        """Gates by name; an unknown one is a `ConfigurationError`."""
        return cls(tuple(sorted(given.items())))

    @classmethod
    def parse(cls, text: str) -> "FeatureGates":
        """Gates as kube-scheduler's flag has them: ``A=true,B=false``."""
        given: dict[str, bool] = {}
        for item in filter(None, (each.strip() for each in text.split(","))):
            name, equals, word = (part.strip() for part in item.partition("="))
            if not equals or word.lower() not in ("true", "false"):
                raise ConfigurationError(
                    f"feature gate {item!r}: write NAME=true or NAME=false, separated by commas"
                )
            given[name] = word.lower() == "true"
        return cls.of(given)

    def enabled(self, name: str) -> bool:
        return dict(self.given).get(name, DEFAULTS[name])

    @property
    def gang_scheduling(self) -> bool:
        return self.enabled(GANG_SCHEDULING)

    @property
    def generic_workload(self) -> bool:
        return self.enabled(GENERIC_WORKLOAD)

    @property
    def pop_from_backoff(self) -> bool:
        return self.enabled(POP_FROM_BACKOFF)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FeatureGates":
        return self


def _check(name: str, value: bool) -> None:
    if name not in DEFAULTS:
        raise ConfigurationError(f"unrecognized feature gate: {name}")
    if not isinstance(value, bool):
        raise ConfigurationError(f"feature gate {name}: {value!r} is neither true nor false")
    if value is not DEFAULTS[name] and name not in TURNABLE:
        state = "on" if DEFAULTS[name] else "off"
        raise ConfigurationError(
            f"feature gate {name} cannot be turned here: this scheduler has it {state}, as "
            f"kube-scheduler v1.36 has by default; {', '.join(sorted(TURNABLE))} can"
        )


DEFAULT_GATES = FeatureGates()
