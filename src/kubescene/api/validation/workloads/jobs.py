"""Jobs and CronJobs: pods that end, and when: five cron fields or a descriptor, and a time zone."""

import re

from kubescene.api.cron import is_known_zone, parse_schedule
from kubescene.api.validation.equality import same
from kubescene.api.validation.field_errors import ErrorList, quote
from kubescene.api.validation.field_paths import METADATA, SPEC, Path
from kubescene.api.validation.inner_forms import SUCCESS_POLICY, inner
from kubescene.api.validation.label_selectors import check_label_selector, is_readable, matches
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    check_immutable,
    check_not_negative,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_label, dns_subdomain, size
from kubescene.api.validation.pods.pods import validate_template
from kubescene.api.validation.workloads.failure_policies import (
    check_pod_failure_policy,
    check_success_policy,
)
from kubescene.api.validation.workloads.workloads import MISMATCH, template_labels
from kubescene.types import JsonObject

_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch


def check_schedule(
    schedule: str, errors: ErrorList, path: Path, *, zone: str | None, tolerate_zone: bool
) -> None:
    """A schedule in cron's language; a zone inside it is only tolerated, not welcome."""
    try:
        parse_schedule(schedule)
    except ValueError as error:
        errors.invalid(path, schedule, str(error))
    if "TZ" not in schedule:
        return
    if not tolerate_zone:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.invalid(path, schedule, detail)
    elif zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.invalid(path, schedule, detail)


def check_time_zone(zone: str, errors: ErrorList, path: Path) -> None:
    """A zone of the IANA database."""
    if not zone:
        errors.invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _is_zone_part(part):
            errors.invalid(path, zone, f"unknown time zone {zone}")
    if zone.lower() == "local":
        errors.invalid(
            path,
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        )
    elif not is_known_zone(zone):
        errors.invalid(path, zone, f"unknown time zone {zone}")


MAX_PARALLELISM = 100_000
MAX_FAILED_INDEXES = 100_000
MANY_COMPLETIONS = 100_000
MANY_COMPLETIONS_LIMIT = 10_000
_MAX_CRON_JOB_NAME = 52
_MAX_MANAGED_BY = 63
_COMPLETION_MODES = ("NonIndexed", "Indexed")
_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
_CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_GENERATED_LABELS = (
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
)
_INDEXED_ONLY = "requires indexed completion mode"


def validate_job(job: JsonObject, errors: ErrorList) -> None:
    """A new job, after its selector and labels were generated."""
    metadata, spec = job.get("metadata") or {}, job.get("spec") or {}
    validate_metadata(metadata, errors, namespaced=True, name_rule=dns_subdomain)
    if not spec.get("manualSelector") and spec.get("selector") is not None:
        _check_generated_selector(metadata, spec, errors)
    _check_selecting_spec(spec, errors, SPEC)
    completions = spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        hostname = f"{metadata.get('name', '')}-{completions - 1}"
        if dns_label(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            errors.invalid(METADATA.child("name"), metadata.get("name", ""), detail)


def _check_generated_selector(metadata: JsonObject, spec: JsonObject, errors: ErrorList) -> None:
    if not metadata.get("uid"):
        errors.required(METADATA.child("uid"))
    labels = template_labels(spec.get("template") or {}) or {}
    path = SPEC.child("template").child("metadata").child("labels")
    expected = {label: metadata.get(field, "") for label, field in _GENERATED_LABELS}
    for label, value in expected.items():
        if label not in labels:
            errors.required(path.key(label), f"must be '{value}'")
        elif labels[label] != value:
            errors.invalid(path.key(label), labels, f"must be '{value}'")
    if is_readable(spec["selector"]) and not matches(spec["selector"], expected):
        errors.invalid(SPEC.child("selector"), spec["selector"], "`selector` not auto-generated")


def _check_selecting_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    check_job_spec(spec, errors, path)
    selector = spec.get("selector")
    if selector is None:
        errors.required(path.child("selector"))
    check_label_selector(selector, errors, path.child("selector"))
    labels = template_labels(spec.get("template") or {})
    if is_readable(selector) and not matches(selector, labels or {}):
        errors.invalid(path.child("template").child("metadata").child("labels"), labels, MISMATCH)


def check_job_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    """The part that a job and the job template of a CronJob share."""
    check_not_negative(spec, _COUNTS, errors, path)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "when maxFailedIndexes is specified"
        errors.required(path.child("backoffLimitPerIndex"), detail)
    if (manager := spec.get("managedBy")) is not None:
        _check_managed_by(manager, errors, path.child("managedBy"))
    mode = spec.get("completionMode")
    if mode is not None and mode not in _COMPLETION_MODES:
        errors.not_supported(path.child("completionMode"), mode, _COMPLETION_MODES)
    if mode == "Indexed":
        _check_indexed(spec, errors, path)
    elif mode in (None, "NonIndexed"):
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                errors.invalid(path.child(field), spec[field], _INDEXED_ONLY)
    if spec.get("podFailurePolicy") is not None:
        check_pod_failure_policy(spec, errors, path.child("podFailurePolicy"))
    if (policy := spec.get("successPolicy")) is not None:
        if mode == "Indexed":
            check_success_policy(spec, errors, path.child("successPolicy"))
        else:
            shown = inner(policy, SUCCESS_POLICY)
            errors.invalid(path.child("successPolicy"), shown, _INDEXED_ONLY)
    _check_replacement(spec, errors, path.child("podReplacementPolicy"))
    validate_template(spec.get("template") or {}, errors, path.child("template"))
    _check_restart_policy(spec, errors, path.child("template").child("spec").child("restartPolicy"))


def _check_managed_by(manager: str, errors: ErrorList, path: Path) -> None:
    domain, _, name = manager.partition("/")
    if not manager:
        errors.required(path)
    elif not (domain and name):
        errors.invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        errors.invalid_each(path, domain, dns_subdomain(domain))
    if size(manager) > _MAX_MANAGED_BY:
        errors.too_long(path, _MAX_MANAGED_BY)


def _check_indexed(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        errors.required(path.child("completions"), "when completion mode is Indexed")
    if parallelism > MAX_PARALLELISM:
        errors.invalid(
            path.child("parallelism"),
            parallelism,
            f"must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed",
        )
    if completions is not None and failed is not None and failed > completions:
        errors.invalid(
            path.child("maxFailedIndexes"), failed, "must be less than or equal to completions"
        )
    if failed is not None and failed > MAX_FAILED_INDEXES:
        detail = f"must be less than or equal to {MAX_FAILED_INDEXES}"
        errors.invalid(path.child("maxFailedIndexes"), failed, detail)
    if (completions or 0) > MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        _check_many_completions(failed, parallelism, errors, path)


def _check_many_completions(
    failed: int | None, parallelism: int, errors: ErrorList, path: Path
) -> None:
    detail = (
        f"must be less than or equal to {MANY_COMPLETIONS_LIMIT} when completions are above "
        f"{MANY_COMPLETIONS} and used with backoff limit per index"
    )
    if failed is None:
        errors.required(
            path.child("maxFailedIndexes"),
            f"must be specified when completions is above {MANY_COMPLETIONS}",
        )
    if parallelism > MANY_COMPLETIONS_LIMIT:
        errors.invalid(path.child("parallelism"), parallelism, detail)
    if failed is not None and failed > MANY_COMPLETIONS_LIMIT:
        errors.invalid(path.child("maxFailedIndexes"), failed, detail)


def _check_replacement(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return
    limited = spec.get("podFailurePolicy") is not None
    allowed = ("Failed",) if limited else _REPLACEMENT_POLICIES
    if policy not in allowed:
        errors.not_supported(path, policy, allowed)


def _check_restart_policy(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("Always", ""):
        errors.required(path, f"valid values: {quote('OnFailure')}, {quote('Never')}")
    elif policy not in ("OnFailure", "Never"):
        errors.not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        errors.invalid(path, policy, detail)


def validate_job_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """A job keeps its selector, its template and how it counts; a suspended one that never
    started may still be placed elsewhere."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    validate_job(new, errors)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _check_completions(spec, before, errors, SPEC)
    check_immutable(spec, before, "selector", errors, SPEC)
    _check_template(spec, old, errors)
    for field in (
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ):
        check_immutable(spec, before, field, errors, SPEC)


def _check_completions(spec: JsonObject, before: JsonObject, errors: ErrorList, path: Path) -> None:
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        check_immutable(spec, before, "completions", errors, path)
    elif completions is None or completions == before.get("completions"):
        return
    elif completions != spec.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        errors.invalid(path.child("completions"), completions, detail)


def _check_template(spec: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    before = old.get("spec") or {}
    template, kept = spec.get("template") or {}, before.get("template") or {}
    if _is_at_rest(old):
        kept = _with_new_directives(kept, template)
        kept_spec = _with_new_resources(kept.get("spec") or {}, template.get("spec") or {})
        if not same(template.get("spec"), kept_spec):
            errors.invalid(SPEC.child("template.spec"), template.get("spec"), IMMUTABLE)
    elif not same(template, kept):
        errors.invalid(SPEC.child("template"), template, IMMUTABLE)


def _is_at_rest(job: JsonObject) -> bool:
    """Suspended, with no pod left."""
    status = job.get("status") or {}
    paused = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    suspended = bool((job.get("spec") or {}).get("suspend"))
    return suspended and (paused or not status.get("startTime")) and not status.get("active")


def _with_new_directives(kept: JsonObject, new: JsonObject) -> JsonObject:
    """The old template with the new wishes about where its pods go."""
    pod, wished = dict(kept.get("spec") or {}), new.get("spec") or {}
    metadata = {**(kept.get("metadata") or {})}
    for field in ("labels", "annotations"):
        metadata[field] = (new.get("metadata") or {}).get(field)
    for field in ("nodeSelector", "tolerations", "schedulingGates"):
        pod[field] = wished.get(field)
    affinity = {**(pod.get("affinity") or {})}
    affinity["nodeAffinity"] = (wished.get("affinity") or {}).get("nodeAffinity")
    pod["affinity"] = affinity if any(affinity.values()) else wished.get("affinity")
    return {**kept, "metadata": metadata, "spec": pod}


def _with_new_resources(kept: JsonObject, new: JsonObject) -> JsonObject:
    spec = dict(kept)
    for field in ("containers", "initContainers"):
        before, after = kept.get(field) or [], new.get(field) or []
        if len(before) == len(after):
            spec[field] = [
                {**container, "resources": wished.get("resources")}
                if container.get("name") == wished.get("name")
                else container
                for container, wished in zip(before, after, strict=True)
            ]
    return spec


def validate_cron_job(cron_job: JsonObject, errors: ErrorList) -> None:
    metadata = cron_job.get("metadata") or {}
    validate_metadata(metadata, errors, namespaced=True, name_rule=dns_subdomain)
    _check_cron_spec(cron_job.get("spec") or {}, None, errors)
    # The controller appends eleven characters when it names a job.
    if size(metadata.get("name") or "") > _MAX_CRON_JOB_NAME:
        detail = f"must be no more than {_MAX_CRON_JOB_NAME} characters"
        errors.invalid(METADATA.child("name"), metadata["name"], detail)


def validate_cron_job_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    _check_cron_spec(new.get("spec") or {}, old.get("spec") or {}, errors)


def _check_cron_spec(spec: JsonObject, before: JsonObject | None, errors: ErrorList) -> None:
    zone = spec.get("timeZone")
    if schedule := spec.get("schedule"):
        tolerate_zone = "TZ" in ((before or {}).get("schedule") or "")
        at = SPEC.child("schedule")
        check_schedule(schedule, errors, at, zone=zone, tolerate_zone=tolerate_zone)
    else:
        errors.required(SPEC.child("schedule"))
    check_not_negative(spec, ("startingDeadlineSeconds",), errors, SPEC)
    if zone is not None and (before is None or before.get("timeZone") != zone):
        check_time_zone(zone, errors, SPEC.child("timeZone"))
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        errors.required(SPEC.child("concurrencyPolicy"))
    elif policy not in _CONCURRENCY_POLICIES:
        errors.not_supported(SPEC.child("concurrencyPolicy"), policy, _CONCURRENCY_POLICIES)
    job, at = (
        (spec.get("jobTemplate") or {}).get("spec") or {},
        SPEC.child("jobTemplate").child("spec"),
    )
    check_job_spec(job, errors, at)
    if job.get("selector") is not None:
        errors.invalid(at.child("selector"), job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        errors.not_supported(at.child("manualSelector"), True, ("nil", "false"))
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    check_not_negative(spec, limits, errors, SPEC)
