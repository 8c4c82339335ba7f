"""Defaults of Job and CronJob.

The job template of a CronJob is not defaulted as a Job: its jobs get their defaults when they
are created. Only the pod template inside it is completed.
"""

from kubescene.api.defaulting.pods import default_template
from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_BACKOFF_LIMIT = 6
_NO_BACKOFF_LIMIT = 2**31 - 1
_CRON_JOB = {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}


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
    GroupVersionKind("batch", "v1", "CronJob"): default_cron_job,
    GroupVersionKind("batch", "v1", "Job"): default_job,
}
OF_METADATA: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind("batch", "v1", "Job"): default_job,
}
