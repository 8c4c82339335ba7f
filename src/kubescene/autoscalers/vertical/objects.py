"""The VerticalPodAutoscaler object as typed values, decoded and validated by `read_vpa`.

Every refusal is a `VerticalPodAutoscalerError` that names the field. Fields that the API does not
know are refused too: a policy with a typing error must not be ignored in silence. Feature gates are
at their defaults (off); the one of update mode InPlace can be opened here, what the others gate is
not supported.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubescene.api.quantity import Quantity, QuantityError, parse
from kubescene.api.text.yaml_text import read_yaml
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.autoscalers.vertical.amounts import CPU, MEMORY, as_texts
from kubescene.errors import ConfigurationError
from kubescene.flows.reading import explained
from kubescene.struct_types import build
from kubescene.types import JsonObject

API_VERSIONS = ("autoscaling.k8s.io/v1", "autoscaling.k8s.io/v1beta2")
KIND = "VerticalPodAutoscaler"
WILDCARD = "*"

IN_PLACE = "InPlace"
IN_PLACE_MODES = (IN_PLACE, "InPlaceOrRecreate")
UPDATING_MODES = ("Recreate", "Auto", *IN_PLACE_MODES)
"""Modes in which the updater acts; InPlace only where its feature gate is on."""
ADMITTING_MODES = ("Initial", *UPDATING_MODES)
"""Modes in which pods are changed when they are created."""

T = TypeVar("T")


class VerticalPodAutoscalerError(ConfigurationError):
    """A VerticalPodAutoscaler that the API would refuse; the message names the fields."""


class ResourceList(dict[str, Quantity]):
    """Quantities by resource, as in every API object."""


class TargetRef(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class EvictionRequirement(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The change that at least one of ``resources`` must bring for a pod to be evicted."""

    resources: tuple[str, ...] = ()
    change_requirement: str = ""


class UpdatePolicy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    update_mode: str | None = None
    min_replicas: int | None = None
    eviction_requirements: tuple[EvictionRequirement, ...] | None = None
    evict_after_oom_seconds: int | None = msgspec.field(default=None, name="evictAfterOOMSeconds")


class ContainerPolicy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What may be recommended for one container, or with the name ``*`` for all others."""

    container_name: str = ""
    mode: str | None = None
    min_allowed: ResourceList | None = None
    max_allowed: ResourceList | None = None
    controlled_resources: tuple[str, ...] | None = None
    controlled_values: str | None = None
    oom_bump_up_ratio: Any = None
    oom_min_bump_up: Any = None
    memory_aggregation_interval_seconds: int | None = None
    memory_aggregation_interval_count: int | None = None
    startup_boost: JsonObject | None = None

    @property
    def is_off(self) -> bool:
        return self.mode == "Off"

    @property
    def sets_limits(self) -> bool:
        return self.controlled_values != "RequestsOnly"


NO_POLICY = ContainerPolicy()


class ResourcePolicy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    container_policies: tuple[ContainerPolicy, ...] | None = None


class RecommenderSelector(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str = ""


class Spec(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    target_ref: TargetRef | None = None
    update_policy: UpdatePolicy | None = None
    resource_policy: ResourcePolicy | None = None
    recommenders: tuple[RecommenderSelector, ...] | None = None
    startup_boost: JsonObject | None = None


class ContainerRecommendation(msgspec.Struct, rename="camel"):
    """Bounds and target of one container. A list that is None is absent."""

    container_name: str = ""
    target: ResourceList | None = None
    lower_bound: ResourceList | None = None
    upper_bound: ResourceList | None = None
    uncapped_target: ResourceList | None = None

    def copy(self) -> "ContainerRecommendation":
        return ContainerRecommendation(
            self.container_name,
            *(
                None if each is None else ResourceList(each)
                for each in (self.target, self.lower_bound, self.upper_bound, self.uncapped_target)
            ),
        )

    def to_dict(self) -> JsonObject:
        """As it stands in the status: lists that are empty are left out, but for the target."""
        lists = {
            "lowerBound": self.lower_bound,
            "upperBound": self.upper_bound,
            "uncappedTarget": self.uncapped_target,
        }
        target = None if self.target is None else as_texts(self.target)
        named: JsonObject = {"containerName": self.container_name, "target": target}
        return named | {name: as_texts(each) for name, each in lists.items() if each}


class _Recommended(msgspec.Struct, frozen=True, rename="camel"):
    container_recommendations: tuple[ContainerRecommendation, ...] | None = None


class _VpaStatus(msgspec.Struct, frozen=True, rename="camel"):
    recommendation: _Recommended | None = None


class _VpaMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = "default"
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    generation: int = 0


class VerticalPodAutoscaler(msgspec.Struct, frozen=True, rename="camel"):
    """The object. ``status`` matters to updater and admission only, who act on what it holds."""

    api_version: str = API_VERSIONS[0]
    kind: str = KIND
    metadata: _VpaMetadata = _VpaMetadata()
    spec: Spec = Spec()
    status: _VpaStatus | None = None

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations or {}

    @property
    def update_mode(self) -> str:
        """What happens to pods; none said means Recreate, and Auto is its old name."""
        policy = self.spec.update_policy
        return (policy.update_mode if policy else None) or "Recreate"

    @property
    def policies(self) -> Sequence[ContainerPolicy]:
        policy = self.spec.resource_policy
        return (policy.container_policies if policy else None) or ()

    @property
    def recommendations(self) -> Sequence[ContainerRecommendation] | None:
        """The recommendation in the status; None where there is none."""
        if self.status is None or self.status.recommendation is None:
            return None
        return self.status.recommendation.container_recommendations or ()

    def policy_of(self, container: str) -> ContainerPolicy | None:
        """The container's own policy, else the one for all others."""
        found = None
        for policy in self.policies:
            if policy.container_name == container:
                return policy
            if policy.container_name == WILDCARD:
                found = policy
        return found

    def with_spec(self, spec: JsonObject) -> "VerticalPodAutoscaler":
        return msgspec.structs.replace(self, spec=_converted(spec, Spec, "spec"))

    def with_recommendation(
        self, recommendations: Sequence[ContainerRecommendation]
    ) -> "VerticalPodAutoscaler":
        """The object whose status holds these recommendations."""
        status = _VpaStatus(_Recommended(tuple(recommendations)))
        return msgspec.structs.replace(self, status=status)


def decode_vpa(obj: JsonObject) -> VerticalPodAutoscaler:
    """The typed form of an object, types checked, rules not."""
    if obj.get("kind") != KIND or obj.get("apiVersion") not in API_VERSIONS:
        raise VerticalPodAutoscalerError(
            f"apiVersion, kind: expected {KIND} of {' or '.join(API_VERSIONS)}, "
            f"not {obj.get('kind')!r} of {obj.get('apiVersion')!r}"
        )
    return _converted(obj, VerticalPodAutoscaler, "")


def _converted(obj: Any, kind: type[T], below: str) -> T:
    try:
        return msgspec.convert(obj, kind, dec_hook=_special)
    except msgspec.ValidationError as error:
        path, what = explained(error, kind, below, obj)
        raise VerticalPodAutoscalerError(f"{path}: {what}" if path else what) from error


def _special(kind: type, value: Any) -> Any:
    if kind is not ResourceList:
        raise NotImplementedError(kind)
    if not isinstance(value, dict):
        raise ValueError(f"expected resources and quantities, not {value!r}")
    return ResourceList((str(name), _quantity(name, value[name])) for name in value)


def _quantity(resource: Any, value: Any) -> Quantity:
    try:
        if isinstance(value, str | int | float):
            return parse(value)
    except QuantityError as error:
        raise ValueError(f"[{resource}]: {value!r}: {error}") from error
    raise ValueError(f"[{resource}]: {value!r} is no quantity")


build(VerticalPodAutoscaler)


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
