"""Defaults of the kinds that run pods from a template."""

from kubescene.api.defaulting.claims import default_claim
from kubescene.api.defaulting.pods import default_template
from kubescene.api.defaulting.sharing import (
    Defaulter,
    filled,
    filled_unset,
    into,
    merged,
    within,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_QUARTER = {"maxUnavailable": "25%", "maxSurge": "25%"}
_ONE_BY_ONE = {"maxUnavailable": 1, "maxSurge": 0}
_DEPLOYMENT = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
_STATEFUL_SET = {"replicas": 1, "revisionHistoryLimit": 10}
_RETAINED = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_CLAIM_KIND = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def default_deployment(deployment: JsonObject) -> JsonObject:
    """A Deployment: one replica, rolled out a quarter at a time within ten minutes."""
    return into(deployment, "spec", _deployment_spec)


def default_replica_set(replica_set: JsonObject) -> JsonObject:
    """A ReplicaSet of one."""
    return into(replica_set, "spec", _replica_set_spec)


def default_daemon_set(daemon_set: JsonObject) -> JsonObject:
    """A DaemonSet, updated node by node."""
    return into(daemon_set, "spec", _daemon_set_spec)


def default_stateful_set(stateful_set: JsonObject) -> JsonObject:
    """A StatefulSet of one, in order, whose claims outlive it."""
    return into(stateful_set, "spec", _stateful_set_spec)


def default_replication_controller(controller: JsonObject) -> JsonObject:
    """A ReplicationController selects, and is labelled, by its template's labels."""
    template = (controller.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        controller = into(controller, "spec", lambda spec: filled(spec, {"selector": labels}))
        controller = into(controller, "metadata", lambda meta: filled(meta, {"labels": labels}))
    return into(controller, "spec", _replication_controller_spec)


def default_pod_template(pod_template: JsonObject) -> JsonObject:
    """A PodTemplate object."""
    return into(pod_template, "template", default_template)


def _replica_set_spec(spec: JsonObject) -> JsonObject:
    return into(filled_unset(spec, {"replicas": 1}), "template", default_template)


def _replication_controller_spec(spec: JsonObject) -> JsonObject:
    return within(filled_unset(spec, {"replicas": 1}), "template", default_template)


def _deployment_spec(spec: JsonObject) -> JsonObject:
    spec = into(filled_unset(spec, _DEPLOYMENT), "strategy", lambda it: _rolling(it, _QUARTER))
    return into(spec, "template", default_template)


def _daemon_set_spec(spec: JsonObject) -> JsonObject:
    spec = filled_unset(spec, {"revisionHistoryLimit": 10})
    spec = into(spec, "updateStrategy", lambda it: _rolling(it, _ONE_BY_ONE))
    return into(spec, "template", default_template)


def _rolling(strategy: JsonObject, pace: JsonObject) -> JsonObject:
    strategy = filled(strategy, {"type": "RollingUpdate"})
    if strategy["type"] != "RollingUpdate":
        return strategy
    return into(strategy, "rollingUpdate", lambda it: filled_unset(it, pace))


def _stateful_set_spec(spec: JsonObject) -> JsonObject:
    spec = filled(filled_unset(spec, _STATEFUL_SET), {"podManagementPolicy": "OrderedReady"})
    spec = into(spec, "updateStrategy", _stateful_set_strategy)
    spec = into(spec, "persistentVolumeClaimRetentionPolicy", lambda it: filled(it, _RETAINED))
    spec = within_each(spec, "volumeClaimTemplates", _claim_template)
    return into(spec, "template", default_template)


def _stateful_set_strategy(strategy: JsonObject) -> JsonObject:
    """Without a type, a rolling update from ordinal 0; with one, only what is there is filled."""
    if not strategy.get("type"):
        strategy = filled_unset({**strategy, "type": "RollingUpdate"}, {"rollingUpdate": {}})
    if strategy["type"] != "RollingUpdate":
        return strategy
    return within(strategy, "rollingUpdate", lambda it: filled_unset(it, {"partition": 0}))


def _claim_template(claim: JsonObject) -> JsonObject:
    wrong = {key: value for key, value in _CLAIM_KIND.items() if claim.get(key) != value}
    return default_claim(merged(claim, wrong))


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "PodTemplate"): default_pod_template,
    GroupVersionKind("", "v1", "ReplicationController"): default_replication_controller,
    GroupVersionKind("apps", "v1", "DaemonSet"): default_daemon_set,
    GroupVersionKind("apps", "v1", "Deployment"): default_deployment,
    GroupVersionKind("apps", "v1", "ReplicaSet"): default_replica_set,
    GroupVersionKind("apps", "v1", "StatefulSet"): default_stateful_set,
}
OF_METADATA: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "ReplicationController"): default_replication_controller,
}
