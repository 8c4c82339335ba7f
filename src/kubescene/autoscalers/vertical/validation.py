"""What the API refuses in a VerticalPodAutoscaler, feature gates at their defaults (off).

Update mode InPlace has a gate that can be opened here; what the others gate is not supported.

`read_vpa` is the way in for objects of users: decoded, then validated.
"""

from collections.abc import Mapping

from kubescene.api.quantity import Quantity
from kubescene.api.text.yaml_text import read_yaml
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY
from kubescene.autoscalers.vertical.objects import (
    IN_PLACE,
    KIND,
    ContainerPolicy,
    EvictionRequirement,
    ResourceList,
    UpdatePolicy,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerError,
    decode_vpa,
)
from kubescene.types import JsonObject

UPDATE_MODES = ("Off", "Initial", "Recreate", "InPlaceOrRecreate", "InPlace", "Auto")
SCALING_MODES = ("Auto", "Off")
CONTROLLED_VALUES = ("RequestsAndLimits", "RequestsOnly")
CHANGE_REQUIREMENTS = ("TargetHigherThanRequests", "TargetLowerThanRequests")

_MILLI = 10**6
_UNIT = 10**9


def read_vpa(source: str | bytes | JsonObject, *, in_place: bool = False) -> VerticalPodAutoscaler:
    """A VerticalPodAutoscaler from YAML, JSON or an object, as the API would take it.

    ``in_place``: whether the feature gate InPlace is on, without which its mode is refused.
    """
    vpa = decode_vpa(source if isinstance(source, dict) else _only_document(source))
    errors = validate(vpa, in_place=in_place)
    if errors:
        raise VerticalPodAutoscalerError(
            f"VerticalPodAutoscaler {vpa.name!r}: " + "; ".join(each.message for each in errors)
        )
    return vpa


def validate(vpa: VerticalPodAutoscaler, *, in_place: bool = False) -> ErrorList:
    """Everything that is wrong with the spec."""
    errors, spec, path = ErrorList(), vpa.spec, Path("spec")
    if not vpa.name:
        errors.required(Path("metadata").child("name"))
    if spec.target_ref is None:
        errors.required(path.child("targetRef"), "name the workload whose pods are to be sized")
    if spec.update_policy is not None:
        policy_path = path.child("updatePolicy")
        _check_update_policy(spec.update_policy, policy_path, errors, in_place=in_place)
    policies = path.child("resourcePolicy").child("containerPolicies")
    for position, policy in enumerate(vpa.policies):
        _check_policy(policy, policies.index(position), errors)
    if spec.startup_boost is not None:
        _refuse_gated(path.child("startupBoost"), "CPUStartupBoost", errors)
    if spec.recommenders and len(spec.recommenders) > 1:
        errors.too_many(path.child("recommenders"), len(spec.recommenders), 1)
    return errors


def _only_document(text: str | bytes) -> JsonObject:
    try:
        documents = [each.value for each in read_yaml(text) if each.value is not None]
    except ValueError as error:
        raise VerticalPodAutoscalerError(f"not readable as YAML: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise VerticalPodAutoscalerError(
            f"expected one {KIND}, found {len(documents)} documents or something else"
        )
    return documents[0]


def _check_update_policy(
    policy: UpdatePolicy, path: Path, errors: ErrorList, *, in_place: bool
) -> None:
    mode = policy.update_mode
    if mode is None:
        errors.required(path.child("updateMode"), "updateMode is required if UpdatePolicy is used")
    elif mode not in UPDATE_MODES:
        errors.not_supported(path.child("updateMode"), mode, UPDATE_MODES)
    elif mode == IN_PLACE and not in_place:
        _refuse_gated(path.child("updateMode"), "InPlace", errors)
    if policy.min_replicas is not None and policy.min_replicas <= 0:
        errors.invalid(
            path.child("minReplicas"), policy.min_replicas, "minReplicas has to be positive"
        )
    if policy.evict_after_oom_seconds is not None:
        _refuse_gated(path.child("evictAfterOOMSeconds"), "PerVPAConfig", errors)
    requirements = path.child("evictionRequirements")
    for position, requirement in enumerate(policy.eviction_requirements or ()):
        _check_requirement(requirement, requirements.index(position), errors)


def _check_requirement(requirement: EvictionRequirement, path: Path, errors: ErrorList) -> None:
    change = requirement.change_requirement
    if change not in CHANGE_REQUIREMENTS:
        errors.not_supported(path.child("changeRequirement"), change, CHANGE_REQUIREMENTS)


def _check_policy(policy: ContainerPolicy, path: Path, errors: ErrorList) -> None:
    if not policy.container_name:
        errors.required(path.child("containerName"))
    if policy.mode is not None and policy.mode not in SCALING_MODES:
        errors.not_supported(path.child("mode"), policy.mode, SCALING_MODES)
    if policy.controlled_values is not None:
        _check_controlled_values(policy, path.child("controlledValues"), errors)
    _check_bounds(policy, path, errors)
    for name, value in _gated(policy).items():
        if value is not None:
            _refuse_gated(path.child(name), "PerVPAConfig", errors)
    if policy.startup_boost is not None:
        _refuse_gated(path.child("startupBoost"), "CPUStartupBoost", errors)


def _check_controlled_values(policy: ContainerPolicy, path: Path, errors: ErrorList) -> None:
    if policy.controlled_values not in CONTROLLED_VALUES:
        errors.not_supported(path, policy.controlled_values, CONTROLLED_VALUES)
    elif policy.is_off and policy.sets_limits:
        errors.forbidden(
            path, "controlledValues shouldn't be specified if container scaling mode is off"
        )


def _check_bounds(policy: ContainerPolicy, path: Path, errors: ErrorList) -> None:
    lowest = policy.min_allowed or ResourceList()
    highest = policy.max_allowed or ResourceList()
    _check_resolution(lowest, path.child("minAllowed"), errors)
    for resource, amount in lowest.items():
        if resource in highest and highest[resource] < amount:
            errors.invalid(
                path.child("maxAllowed").key(resource),
                str(highest[resource]),
                f'max resource for {resource} is lower than min of "{amount}"',
            )
    _check_resolution(highest, path.child("maxAllowed"), errors)


def _check_resolution(amounts: Mapping[str, Quantity], path: Path, errors: ErrorList) -> None:
    for resource, amount in amounts.items():
        if resource == CPU and amount.nanos % _MILLI:
            errors.invalid(path.key(resource), str(amount), "must be a whole number of milli CPUs")
        if resource == MEMORY and amount.nanos % _UNIT:
            errors.invalid(path.key(resource), str(amount), "must be a whole number of bytes")


def _gated(policy: ContainerPolicy) -> dict[str, object]:
    return {
        "oomBumpUpRatio": policy.oom_bump_up_ratio,
        "oomMinBumpUp": policy.oom_min_bump_up,
        "memoryAggregationIntervalSeconds": policy.memory_aggregation_interval_seconds,
        "memoryAggregationIntervalCount": policy.memory_aggregation_interval_count,
    }


def _refuse_gated(path: Path, gate: str, errors: ErrorList) -> None:
    errors.forbidden(path, f"not supported when feature gate {gate} is disabled, as it is here")
