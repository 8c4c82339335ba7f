"""Which rules a kind has: one row per kind, and a default for all others."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from kubescene.api.scheme import ResourceType
from kubescene.api.validation.autoscaling import (
    validate_autoscaler,
    validate_autoscaler_status_update,
    validate_autoscaler_update,
)
from kubescene.api.validation.configuration import (
    validate_config_map,
    validate_config_map_update,
    validate_secret,
    validate_secret_update,
)
from kubescene.api.validation.customresourcedefinitions import (
    validate_definition,
    validate_definition_update,
)
from kubescene.api.validation.events import validate_event, validate_event_update
from kubescene.api.validation.fielderrors import ErrorList
from kubescene.api.validation.jobs import (
    validate_cron_job,
    validate_cron_job_update,
    validate_job,
    validate_job_update,
)
from kubescene.api.validation.jobstatus import validate_job_status_update
from kubescene.api.validation.leases import validate_lease, validate_lease_update
from kubescene.api.validation.limitranges import (
    validate_limit_range,
    validate_limit_range_update,
)
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain, path_segment
from kubescene.api.validation.namespaces import (
    validate_namespace,
    validate_namespace_status_update,
    validate_namespace_update,
)
from kubescene.api.validation.nodes import (
    validate_node,
    validate_node_status_update,
    validate_node_update,
)
from kubescene.api.validation.persistentvolumeclaims import (
    validate_claim,
    validate_claim_status_update,
    validate_claim_update,
)
from kubescene.api.validation.persistentvolumes import validate_volume, validate_volume_update
from kubescene.api.validation.pods import validate_pod
from kubescene.api.validation.podupdates import validate_pod_status_update, validate_pod_update
from kubescene.api.validation.policy import (
    validate_budget,
    validate_budget_status_update,
    validate_budget_update,
    validate_priority_class,
    validate_priority_class_update,
)
from kubescene.api.validation.resourceclaims import (
    validate_resource_claim,
    validate_resource_claim_status_update,
    validate_resource_claim_update,
)
from kubescene.api.validation.resourcequotas import (
    validate_quota,
    validate_quota_status_update,
    validate_quota_update,
)
from kubescene.api.validation.services import validate_service, validate_service_update
from kubescene.api.validation.storageclasses import (
    validate_storage_class,
    validate_storage_class_update,
)
from kubescene.api.validation.workloads import (
    validate_workload,
    validate_workload_status_update,
    validate_workload_update,
)
from kubescene.types import JsonObject

CreateRule: TypeAlias = Callable[[JsonObject, ErrorList], None]
UpdateRule: TypeAlias = Callable[[JsonObject, JsonObject, ErrorList], None]


def _keep_metadata(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)


def _keep_free_metadata(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)


class KindRules(Struct, frozen=True):
    """How objects of a kind are checked on their way in."""

    create: CreateRule
    update: UpdateRule
    status: UpdateRule = _keep_metadata


_WORKLOAD = KindRules(validate_workload, validate_workload_update, validate_workload_status_update)
_BY_KIND: dict[tuple[str, str], KindRules] = {
    ("", "Pod"): KindRules(validate_pod, validate_pod_update, validate_pod_status_update),
    ("", "Node"): KindRules(validate_node, validate_node_update, validate_node_status_update),
    ("", "Namespace"): KindRules(
        validate_namespace, validate_namespace_update, validate_namespace_status_update
    ),
    ("", "Event"): KindRules(validate_event, validate_event_update),
    ("", "LimitRange"): KindRules(validate_limit_range, validate_limit_range_update),
    ("", "ResourceQuota"): KindRules(
        validate_quota, validate_quota_update, validate_quota_status_update
    ),
    ("", "Service"): KindRules(validate_service, validate_service_update),
    ("", "ConfigMap"): KindRules(validate_config_map, validate_config_map_update),
    ("", "Secret"): KindRules(validate_secret, validate_secret_update),
    ("", "PersistentVolume"): KindRules(validate_volume, validate_volume_update),
    ("", "PersistentVolumeClaim"): KindRules(
        validate_claim, validate_claim_update, validate_claim_status_update
    ),
    ("", "ReplicationController"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "StatefulSet"): _WORKLOAD,
    ("apps", "DaemonSet"): _WORKLOAD,
    ("batch", "Job"): KindRules(validate_job, validate_job_update, validate_job_status_update),
    ("batch", "CronJob"): KindRules(validate_cron_job, validate_cron_job_update),
    ("autoscaling", "HorizontalPodAutoscaler"): KindRules(
        validate_autoscaler, validate_autoscaler_update, validate_autoscaler_status_update
    ),
    ("policy", "PodDisruptionBudget"): KindRules(
        validate_budget, validate_budget_update, validate_budget_status_update
    ),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        validate_priority_class, validate_priority_class_update
    ),
    ("storage.k8s.io", "StorageClass"): KindRules(
        validate_storage_class, validate_storage_class_update
    ),
    ("resource.k8s.io", "ResourceClaim"): KindRules(
        validate_resource_claim,
        validate_resource_claim_update,
        validate_resource_claim_status_update,
    ),
    ("coordination.k8s.io", "Lease"): KindRules(validate_lease, validate_lease_update),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): KindRules(
        validate_definition, validate_definition_update, _keep_free_metadata
    ),
}
_FREELY_NAMED_GROUPS = frozenset({"rbac.authorization.k8s.io"})


def _plain_rules(namespaced: bool, *, free_name: bool, kube_finalizers: bool) -> KindRules:
    """Only metadata is looked at."""

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
    found = _BY_KIND.get((group, kind))
    if found is not None and not resource_type.custom:
        return found
    free_name = group in _FREELY_NAMED_GROUPS
    return _PLAIN[resource_type.namespaced, free_name, not resource_type.custom]
