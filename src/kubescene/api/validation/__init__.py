"""Validation: what kube-apiserver would say about an object, in its own words.

Runs after defaulting and type checks, on read-only objects. Each kind has a module with its
rules, `metadata` holds what all share. Everything here is a pure function of the objects handed in:
whether other objects exist is for admission to find out.

The rules are those of kube-apiserver v1.36 with its default feature gates. The table below has one
row per kind, and a default for all others. The rules of what every world has are at hand; those of
other kinds are imported with the first object.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from kubescene.api.scheme import ResourceType
from kubescene.api.validation.core.namespaces import (
    validate_namespace,
    validate_namespace_finalize,
    validate_namespace_status_update,
    validate_namespace_update,
)
from kubescene.api.validation.core.nodes import (
    validate_node,
    validate_node_status_update,
    validate_node_update,
)
from kubescene.api.validation.custom_resource_definitions import (
    validate_definition,
    validate_definition_update,
)
from kubescene.api.validation.field_errors import (
    ErrorList,
    ErrorType,
    FieldError,
    raise_if_invalid,
)
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain, path_segment
from kubescene.api.validation.pods.pod_updates import validate_binding as _validate_binding
from kubescene.api.validation.pods.pod_updates import (
    validate_ephemeral_containers,
    validate_pod_resize,
    validate_pod_status_update,
    validate_pod_update,
)
from kubescene.api.validation.pods.pods import validate_pod
from kubescene.api.validation.policy import (
    validate_budget,
    validate_budget_status_update,
    validate_budget_update,
    validate_priority_class,
    validate_priority_class_update,
)
from kubescene.types import JsonObject

CreateRule: TypeAlias = Callable[[JsonObject, ErrorList], None]
UpdateRule: TypeAlias = Callable[[JsonObject, JsonObject, ErrorList], None]
OwnStatusRule: TypeAlias = Callable[[str, JsonObject, JsonObject, ErrorList], None]
"""Takes the kind, a status and the one before it."""


def _keep_metadata(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)


def _keep_free_metadata(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)


class KindRules(Struct, frozen=True):
    """How objects of a kind are checked on their way in."""

    create: CreateRule
    update: UpdateRule
    status: UpdateRule = _keep_metadata
    own_status: OwnStatusRule | None = None
    """What ``status`` asks of the status by itself, if beside that it asks of metadata alone."""
    status_looks_at: tuple[str, ...] | None = None
    """The members of the spec that ``status`` looks at, if it is known to look at no others."""


class _Home(NamedTuple):
    """A module with ``validate_<noun>`` and ``validate_<noun>_update``.

    ``status`` is the module with ``validate_<noun>_status_update``, if there is one; with ``apart``
    it has ``check_<noun>_status`` for the status by itself, too. Of the spec it looks at no members
    but those of ``looks_at``.
    """

    module: str
    noun: str
    status: str = ""
    apart: bool = False
    looks_at: tuple[str, ...] | None = None


@cache
def _rules_at(home: _Home) -> KindRules:
    create = _rule(home.module, f"validate_{home.noun}")
    update = _rule(home.module, f"validate_{home.noun}_update")
    if not home.status:
        return KindRules(create, update)
    status = _rule(home.status, f"validate_{home.noun}_status_update")
    apart = _rule(home.status, f"check_{home.noun}_status") if home.apart else None
    return KindRules(create, update, status, apart, home.looks_at)


def _rule(module: str, name: str) -> Any:
    return getattr(import_module(f"kubescene.api.validation.{module}"), name)


_BY_KIND: dict[tuple[str, str], KindRules] = {
    ("", "Pod"): KindRules(validate_pod, validate_pod_update, validate_pod_status_update),
    ("", "Node"): KindRules(validate_node, validate_node_update, validate_node_status_update),
    ("", "Namespace"): KindRules(
        validate_namespace, validate_namespace_update, validate_namespace_status_update
    ),
    ("policy", "PodDisruptionBudget"): KindRules(
        validate_budget, validate_budget_update, validate_budget_status_update
    ),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        validate_priority_class, validate_priority_class_update
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): KindRules(
        validate_definition, validate_definition_update, _keep_free_metadata
    ),
}
_OF_A_JOB = ("completions", "parallelism", "completionMode", "suspend", "backoffLimitPerIndex")
_WORKLOAD = _Home("workloads.workloads", "workload", "workloads.workloads", apart=True)
_LATE: Mapping[tuple[str, str], _Home] = {
    ("", "Event"): _Home("core.events", "event"),
    ("", "LimitRange"): _Home("core.limit_ranges", "limit_range"),
    ("", "ResourceQuota"): _Home("core.resource_quotas", "quota", "core.resource_quotas"),
    ("", "Service"): _Home("core.services", "service"),
    ("", "ConfigMap"): _Home("core.configuration", "config_map"),
    ("", "Secret"): _Home("core.configuration", "secret"),
    ("", "PersistentVolume"): _Home("core.persistent_volumes", "volume"),
    ("", "PersistentVolumeClaim"): _Home(
        "core.persistent_volume_claims", "claim", "core.persistent_volume_claims"
    ),
    ("", "ReplicationController"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "StatefulSet"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("batch", "Job"): _Home("workloads.jobs", "job", "workloads.job_status", looks_at=_OF_A_JOB),
    ("batch", "CronJob"): _Home("workloads.jobs", "cron_job"),
    ("autoscaling", "HorizontalPodAutoscaler"): _Home("autoscaling", "autoscaler", "autoscaling"),
    ("storage.k8s.io", "StorageClass"): _Home("storage_classes", "storage_class"),
    ("resource.k8s.io", "ResourceClaim"): _Home(
        "resource_claims", "resource_claim", "resource_claims"
    ),
    ("coordination.k8s.io", "Lease"): _Home("leases", "lease"),
}
_WITH_STATUS_MEMBERS = frozenset(
    {
        ("", "Service"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("internal.apiserver.k8s.io", "StorageVersion"),
        ("networking.k8s.io", "Ingress"),
        ("policy", "PodDisruptionBudget"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceClaim"),
        ("scheduling.k8s.io", "PodGroup"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }
)
"""Kinds that `statuses` has rules for: it is loaded when it is needed."""
_FREELY_NAMED_GROUPS = frozenset({"rbac.authorization.k8s.io"})
_FREELY_NAMED = frozenset({("certificates.k8s.io", "ClusterTrustBundle")})


def _plain_rules(namespaced: bool, *, free_name: bool, kube_finalizers: bool) -> KindRules:
    """Only metadata is looked at, and whether something is missing."""

    def create(obj: JsonObject, errors: ErrorList) -> None:
        validate_metadata(
            obj.get("metadata") or {},
            errors,
            namespaced=namespaced,
            name_rule=path_segment if free_name else dns_subdomain,
            kube_finalizers=kube_finalizers,
        )

    update = _keep_metadata if kube_finalizers else _keep_free_metadata
    return KindRules(create, update, update)


_PLAIN = {
    (namespaced, free_name, kube): _plain_rules(
        namespaced, free_name=free_name, kube_finalizers=kube
    )
    for namespaced in (False, True)
    for free_name in (False, True)
    for kube in (False, True)
}


def rules_of(resource_type: ResourceType) -> KindRules:
    """The rules of a kind; those for metadata alone if it has none of its own."""
    group, _, kind = resource_type.gvk
    if not resource_type.custom:
        if (known := _BY_KIND.get((group, kind))) is not None:
            return known
        if (home := _LATE.get((group, kind))) is not None:
            return _rules_at(home)
    free_name = group in _FREELY_NAMED_GROUPS or (group, kind) in _FREELY_NAMED
    plain = _PLAIN[resource_type.namespaced, free_name, not resource_type.custom]
    return plain if resource_type.custom else _with_members(group, kind, plain)


@cache
def _with_members(group: str, kind: str, plain: KindRules) -> KindRules:
    """The rules, and what an object of the kind must have."""
    check = _rule("members", "check_members")

    def create(obj: JsonObject, errors: ErrorList) -> None:
        plain.create(obj, errors)
        check((group, kind), obj, errors)

    def update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
        plain.update(new, old, errors)
        check((group, kind), new, errors)

    return KindRules(create, update, plain.status)


__all__ = [
    "ErrorType",
    "FieldError",
    "OwnStatusRule",
    "is_sound_status",
    "own_status_rule",
    "raise_if_invalid",
    "status_looks_at",
    "validate_binding",
    "validate_create",
    "validate_finalize",
    "validate_metadata_change",
    "validate_pod_part",
    "validate_status_update",
    "validate_update",
]


def validate_create(
    obj: JsonObject, resource_type: ResourceType, *, namespace: str | None
) -> list[FieldError]:
    """What is wrong with a new object; ``namespace`` is the one of the request, if it has one."""
    errors = ErrorList()
    rules_of(resource_type).create(_in_namespace(obj, resource_type, namespace), errors)
    return errors


def _in_namespace(
    obj: JsonObject, resource_type: ResourceType, namespace: str | None
) -> JsonObject:
    metadata = obj.get("metadata") or {}
    if not namespace or not resource_type.namespaced or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


def validate_update(
    new: JsonObject, old: JsonObject, resource_type: ResourceType
) -> list[FieldError]:
    """What is wrong with replacing ``old`` by ``new``."""
    errors = ErrorList()
    rules_of(resource_type).update(new, old, errors)
    return errors


def validate_status_update(
    new: JsonObject, old: JsonObject, resource_type: ResourceType
) -> list[FieldError]:
    """What is wrong with an update through the ``status`` subresource."""
    errors = ErrorList()
    rules_of(resource_type).status(new, old, errors)
    kind = (resource_type.gvk.group, resource_type.kind)
    if kind in _WITH_STATUS_MEMBERS and not resource_type.custom:
        _rule("statuses", "check_status")(kind, new, errors)
    return errors


def own_status_rule(resource_type: ResourceType) -> OwnStatusRule | None:
    """What a kind asks of a status by itself; None if it looks at more than status and metadata."""
    return rules_of(resource_type).own_status


def status_looks_at(resource_type: ResourceType) -> tuple[str, ...] | None:
    """The members of the spec on which it depends what is wrong with a status; None if unknown."""
    return None if resource_type.custom else rules_of(resource_type).status_looks_at


def is_sound_status(rule: OwnStatusRule, kind: str, status: JsonObject, before: JsonObject) -> bool:
    """Whether nothing is wrong with a status by itself."""
    errors = ErrorList()
    rule(kind, status, before, errors)
    return not errors


def validate_metadata_change(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What is wrong with the metadata of an object whose other parts are known to be fine."""
    errors = ErrorList()
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    return errors


def validate_binding(binding: JsonObject) -> list[FieldError]:
    """What is wrong with a pod's Binding."""
    errors = ErrorList()
    _validate_binding(binding, errors)
    return errors


def validate_finalize(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What is wrong with an update through a namespace's ``finalize`` subresource."""
    errors = ErrorList()
    validate_namespace_finalize(new, old, errors)
    return errors


def validate_pod_part(new: JsonObject, old: JsonObject, subresource: str) -> list[FieldError]:
    """What is wrong with an update of a pod through ``resize`` or ``ephemeralcontainers``."""
    errors = ErrorList()
    check = validate_pod_resize if subresource == "resize" else validate_ephemeral_containers
    check(new, old, errors)
    return errors
