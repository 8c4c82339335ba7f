"""Defaults of the kinds that run pods from a template.

The job template of a CronJob is not defaulted as a Job: its jobs get their defaults when they
are created. Only the pod template inside it is completed.
"""

from kubescene.api.defaulting.claims import default_claim
from kubescene.api.defaulting.pods import default_template
from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    merged,
    within,
    within_each,
    without_false,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_QUARTER = {"maxUnavailable": "25%", "maxSurge": "25%"}
_ONE_BY_ONE = {"maxUnavailable": 1, "maxSurge": 0}
_DEPLOYMENT = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
_STATEFUL_SET = {"replicas": 1, "revisionHistoryLimit": 10}
_RETAINED = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_BACKOFF_LIMIT = 6
_NO_BACKOFF_LIMIT = 2**31 - 1
_CRON_JOB = {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
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
    spec = filled_unset(without_false(spec, "paused"), _DEPLOYMENT)
    spec = into(spec, "strategy", lambda it: _rolling(it, _QUARTER))
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


def default_job(job: JsonObject) -> JsonObject:
    """A Job: one pod to completion, six retries; labelled as its pods are unless it has labels."""
    template = (job.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        job = into(job, "metadata", lambda meta: filled(meta, {"labels": labels}))
    return into(job, "spec", _job_spec)


def default_cron_job(cron_job: JsonObject) -> JsonObject:
    """A CronJob that may overlap itself and keeps a short history."""
    return into(cron_job, "spec", _cron_job_spec)


def _job_spec(spec: JsonObject) -> JsonObject:
    spec = filled_unset(spec, _job_defaults(spec))
    return into(_failure_policy(spec), "template", default_template)


def _job_defaults(spec: JsonObject) -> JsonObject:
    per_index = spec.get("backoffLimitPerIndex") is not None
    failed_only = spec.get("podFailurePolicy") is not None
    defaults: JsonObject = {
        "parallelism": 1,
        "backoffLimit": _NO_BACKOFF_LIMIT if per_index else _BACKOFF_LIMIT,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "Failed" if failed_only else "TerminatingOrFailed",
        "manualSelector": False,
    }
    # With parallelism alone, a job is a work queue: it has no number of completions.
    if spec.get("parallelism") is None:
        defaults["completions"] = 1
    return defaults


def _failure_policy(spec: JsonObject) -> JsonObject:
    return at(spec, ("podFailurePolicy",), lambda it: within_each(it, "rules", _failure_rule))


def _failure_rule(rule: JsonObject) -> JsonObject:
    return within_each(rule, "onPodConditions", lambda it: filled(it, {"status": "True"}))


def _cron_job_spec(spec: JsonObject) -> JsonObject:
    spec = filled(filled_unset(spec, _CRON_JOB), {"concurrencyPolicy": "Allow"})
    return into(spec, "jobTemplate", _job_template)


def _job_template(template: JsonObject) -> JsonObject:
    return into(filled_unset(template, {"metadata": {}}), "spec", _templated_job_spec)


def _templated_job_spec(spec: JsonObject) -> JsonObject:
    return into(_failure_policy(spec), "template", default_template)


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "PodTemplate"): default_pod_template,
    GroupVersionKind("", "v1", "ReplicationController"): default_replication_controller,
    GroupVersionKind("apps", "v1", "DaemonSet"): default_daemon_set,
    GroupVersionKind("apps", "v1", "Deployment"): default_deployment,
    GroupVersionKind("apps", "v1", "ReplicaSet"): default_replica_set,
    GroupVersionKind("apps", "v1", "StatefulSet"): default_stateful_set,
    GroupVersionKind("batch", "v1", "CronJob"): default_cron_job,
    GroupVersionKind("batch", "v1", "Job"): default_job,
}
OF_METADATA: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("", "v1", "ReplicationController"): default_replication_controller,
    GroupVersionKind("batch", "v1", "Job"): default_job,
}
