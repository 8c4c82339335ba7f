"""The VerticalPodAutoscaler object as typed values.

Every refusal is a `VerticalPodAutoscalerError` that names the field. Fields that the API does not
know are refused too: a policy with a typing error must not be ignored in silence.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kubescene.api.quantity import Quantity, QuantityError, parse
from kubescene.autoscalers.decoding import complaint
from kubescene.autoscalers.vertical.amounts import as_texts
from kubescene.errors import ConfigurationError
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


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    recommendation: _Recommended | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = "default"
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    generation: int = 0


class VerticalPodAutoscaler(msgspec.Struct, frozen=True, rename="camel"):
    """The object. ``status`` matters to updater and admission only, who act on what it holds."""

    api_version: str = API_VERSIONS[0]
    kind: str = KIND
    metadata: _Metadata = _Metadata()
    spec: Spec = Spec()
    status: _Status | None = None

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
        status = _Status(_Recommended(tuple(recommendations)))
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
        raise VerticalPodAutoscalerError(complaint(error, below)) from error


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
