"""Workloads that keep pods running: ReplicaSet, Deployment, StatefulSet, DaemonSet and
ReplicationController. All hold a selector, a pod template that it must match, and counts.
"""

from kubescene.api.selectors.label_selectors import from_labels
from kubescene.api.validation.core.persistent_volume_claims import check_claim_spec
from kubescene.api.validation.equality import same
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, STATUS, Path
from kubescene.api.validation.inner_forms import (
    DEPLOYMENT_STRATEGY,
    STATEFUL_ROLLING_UPDATE,
    STATEFUL_STRATEGY,
    inner,
)
from kubescene.api.validation.label_selectors import (
    check_label_selector,
    is_empty,
    is_readable,
    matches,
)
from kubescene.api.validation.metadata import (
    NOT_NEGATIVE,
    check_annotations,
    check_immutable,
    check_labels,
    check_not_negative,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import NameRule, dns_label, dns_subdomain, long_name
from kubescene.api.validation.percentages import check_int_or_percent, check_percent_limit, number
from kubescene.api.validation.pods.pods import check_pod_annotations, validate_template
from kubescene.types import JsonObject

MISMATCH = "`selector` does not match template `labels`"
_STATUS_COUNTS = {
    "ReplicaSet": (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ),
    "ReplicationController": (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ),
    "Deployment": (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ),
    "StatefulSet": (
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ),
    "DaemonSet": (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ),
}
_PART_COUNTS = (
    "fullyLabeledReplicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
)
_PARTS = {
    kind: [field for field in _PART_COUNTS if field in counts]
    for kind, counts in _STATUS_COUNTS.items()
}


def template_labels(template: JsonObject) -> dict[str, str] | None:
    labels: dict[str, str] | None = (template.get("metadata") or {}).get("labels")
    return dict(sorted(labels.items())) if labels else labels


def check_running_template(template: JsonObject, kind: str, errors: ErrorList, path: Path) -> None:
    """Pods of these workloads run until they are removed."""
    spec, at = template.get("spec") or {}, path.child("spec")
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.not_supported(at.child("restartPolicy"), policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        errors.forbidden(
            at.child("activeDeadlineSeconds"),
            f"activeDeadlineSeconds in {kind} is not Supported",
        )


def check_selector(selector: JsonObject | None, kind: str, errors: ErrorList, path: Path) -> bool:
    """Check a required selector; whether it can be evaluated."""
    if selector is None:
        errors.required(path)
        return True
    check_label_selector(selector, errors, path)
    if is_empty(selector):
        errors.invalid(path, selector, f"empty selector is invalid for {kind}")
    return is_readable(selector)


def _check_match(
    selector: JsonObject | None, template: JsonObject, errors: ErrorList, path: Path
) -> None:
    if selector is not None and is_empty(selector):
        return
    labels = template_labels(template)
    if not matches(selector, labels or {}):
        errors.invalid(path.child("metadata").child("labels"), labels, MISMATCH)


def _check_replicated_template(
    spec: JsonObject, readable: bool, errors: ErrorList, path: Path
) -> None:
    if not readable:
        errors.invalid(path.child("selector"), spec["selector"], "invalid label selector")
        return
    template, at = spec.get("template") or {}, path.child("template")
    _check_match(spec.get("selector"), template, errors, at)
    validate_template(template, errors, at)
    check_running_template(template, "ReplicaSet", errors, at)


def check_replica_set_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    check_not_negative(spec, ("replicas", "minReadySeconds"), errors, path)
    # Upstream says "deployment" for both.
    readable = check_selector(spec.get("selector"), "deployment", errors, path.child("selector"))
    _check_replicated_template(spec, readable, errors, path)


def check_deployment_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    check_not_negative(spec, ("replicas",), errors, path)
    readable = check_selector(spec.get("selector"), "deployment", errors, path.child("selector"))
    _check_replicated_template(spec, readable, errors, path)
    _check_strategy(spec.get("strategy") or {}, errors, path.child("strategy"))
    check_not_negative(
        spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), errors, path
    )
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        at = path.child("progressDeadlineSeconds")
        errors.invalid(at, deadline, "must be greater than minReadySeconds")


def _check_strategy(strategy: JsonObject, errors: ErrorList, path: Path) -> None:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                errors.forbidden(path.child("rollingUpdate"), detail)
        case "RollingUpdate":
            if rolling is None:
                detail = "this should be defaulted and never be nil"
                errors.required(path.child("rollingUpdate"), detail)
            else:
                _check_rolling_update(rolling, errors, path.child("rollingUpdate"))
        case _:
            shown = inner(strategy, DEPLOYMENT_STRATEGY)
            errors.not_supported(path, shown, ("Recreate", "RollingUpdate"))


def _check_rolling_update(rolling: JsonObject, errors: ErrorList, path: Path) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    at = path.child("maxUnavailable")
    check_int_or_percent(unavailable, errors, at)
    check_int_or_percent(surge, errors, path.child("maxSurge"))
    if number(unavailable) == 0 and number(surge) == 0:
        errors.invalid(at, unavailable, "may not be 0 when `maxSurge` is 0")
    check_percent_limit(unavailable, errors, at)


def check_stateful_set_spec(
    spec: JsonObject, errors: ErrorList, path: Path, *, update: bool = False
) -> None:
    """``update`` leaves out what can no longer change."""
    _check_pod_management(spec.get("podManagementPolicy", ""), errors, path)
    _check_stateful_strategy(spec.get("updateStrategy") or {}, errors, path)
    _check_retention(spec.get("persistentVolumeClaimRetentionPolicy"), errors, path)
    for position, claim in enumerate(() if update else spec.get("volumeClaimTemplates") or ()):
        at = path.child("volumeClaimTemplates").index(position).child("spec")
        check_claim_spec(claim.get("spec") or {}, errors, at)
    check_not_negative(spec, ("replicas", "minReadySeconds"), errors, path)
    if (start := (spec.get("ordinals") or {}).get("start", 0)) < 0:
        errors.invalid(path.child("ordinals.start"), start, NOT_NEGATIVE)
    if (service := spec.get("serviceName")) and not update:
        errors.invalid_each(path.child("serviceName"), service, dns_label(service))
    selector = spec.get("selector")
    if check_selector(selector, "statefulset", errors, path.child("selector")):
        _check_stateful_template(spec, errors, path.child("template"))
    else:
        errors.invalid(path.child("selector"), selector, "")
    check_running_template(
        spec.get("template") or {}, "StatefulSet", errors, path.child("template")
    )


def _check_pod_management(policy: str, errors: ErrorList, path: Path) -> None:
    if not policy:
        errors.required(path.child("podManagementPolicy"))
    elif policy not in ("OrderedReady", "Parallel"):
        errors.invalid(
            path.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'"
        )


def _check_stateful_strategy(strategy: JsonObject, errors: ErrorList, path: Path) -> None:
    at, rolling = path.child("updateStrategy"), strategy.get("rollingUpdate")
    match strategy.get("type", ""):
        case "":
            errors.required(at)
        case "OnDelete":
            if rolling is not None:
                detail = "only allowed for updateStrategy 'RollingUpdate'"
                shown = inner(rolling, STATEFUL_ROLLING_UPDATE)
                errors.invalid(at.child("rollingUpdate"), shown, detail)
        case "RollingUpdate":
            if rolling is not None:
                _check_stateful_rolling(rolling, errors, at.child("rollingUpdate"))
        case _:
            shown = inner(strategy, STATEFUL_STRATEGY)
            errors.invalid(at, shown, "must be 'RollingUpdate' or 'OnDelete'")


def _check_stateful_rolling(rolling: JsonObject, errors: ErrorList, path: Path) -> None:
    check_not_negative(rolling, ("partition",), errors, path)
    if (unavailable := rolling.get("maxUnavailable")) is not None:
        at = path.child("maxUnavailable")
        check_int_or_percent(unavailable, errors, at)
        if number(unavailable) == 0:
            errors.invalid(at, unavailable, "cannot be 0")
        check_percent_limit(unavailable, errors, at)


def _check_retention(policy: JsonObject | None, errors: ErrorList, path: Path) -> None:
    if policy is None:
        return
    at = path.child("persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        if policy.get(field) not in ("Retain", "Delete"):
            errors.not_supported(at.child(field), policy.get(field, ""), ("Retain", "Delete"))


def _check_stateful_template(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    template = _with_claimed_volumes(spec)
    _check_match(spec.get("selector"), template, errors, path)
    validate_template(template, errors, path)
    metadata = template.get("metadata") or {}
    check_labels(metadata.get("labels") or {}, errors, path.child("labels"))
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, errors, path.child("annotations"))
        check_pod_annotations(annotations, template["spec"], errors, path.child("annotations"))


def _with_claimed_volumes(spec: JsonObject) -> JsonObject:
    """The template as pods will have it: with the volumes of the claim templates."""
    template = spec.get("template") or {}
    pod = {**(template.get("spec") or {}), "hostname": "", "subdomain": ""}
    names = [
        (claim.get("metadata") or {}).get("name", "")
        for claim in spec.get("volumeClaimTemplates") or ()
    ]
    if names:
        claimed = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}}
            for name in dict.fromkeys(names)
        ]
        others = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
        pod["volumes"] = claimed + others
    return {**template, "spec": pod}


_STATEFUL_MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def _check_stateful_change(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    kept = [key for key in new.keys() | old.keys() if key not in _STATEFUL_MUTABLE]
    if not all(same(new.get(key), old.get(key), key) for key in kept):
        errors.forbidden(
            SPEC,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
            "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
            "'minReadySeconds' are forbidden",
        )


def check_daemon_set_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    selector, template = spec.get("selector"), spec.get("template") or {}
    check_label_selector(selector, errors, path.child("selector"))
    at = path.child("template")
    if is_readable(selector) and not matches(selector, template_labels(template) or {}):
        labels = template_labels(template)
        errors.invalid(at.child("metadata").child("labels"), labels, MISMATCH)
    if selector is not None and is_empty(selector):
        detail = "empty selector is invalid for daemonset"
        errors.invalid(path.child("selector"), selector, detail)
    validate_template(template, errors, at)
    check_running_template(template, "DaemonSet", errors, at)
    check_not_negative(spec, ("minReadySeconds",), errors, path)
    _check_daemon_strategy(spec.get("updateStrategy") or {}, errors, path.child("updateStrategy"))
    check_not_negative(spec, ("revisionHistoryLimit",), errors, path)


def _check_daemon_strategy(strategy: JsonObject, errors: ErrorList, path: Path) -> None:
    match strategy.get("type"):
        case "OnDelete":
            return
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                errors.required(path.child("rollingUpdate"))
            _check_daemon_rolling(rolling or {}, errors, path.child("rollingUpdate"))
        case _:
            shown = inner(strategy, DEPLOYMENT_STRATEGY)
            errors.not_supported(path, shown, ("RollingUpdate", "OnDelete"))


def _check_daemon_rolling(rolling: JsonObject, errors: ErrorList, path: Path) -> None:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    pairs = (
        (unavailable, path.child("maxUnavailable")),
        (surge, path.child("maxSurge")),
    )
    for check in (check_int_or_percent, check_percent_limit):
        for value, at in pairs:
            check(value, errors, at)
    if number(unavailable) and number(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        errors.invalid(path.child("maxSurge"), surge, detail)
    elif not number(unavailable) and not number(surge):
        errors.required(path.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")


def check_replication_controller_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    check_not_negative(spec, ("minReadySeconds",), errors, path)
    selector = spec.get("selector") or {}
    if not selector:
        errors.required(path.child("selector"))
    if spec.get("replicas") is None:
        errors.required(path.child("replicas"))
    check_not_negative(spec, ("replicas",), errors, path)
    template, at = spec.get("template"), path.child("template")
    if template is None:
        errors.required(at)
        return
    labels = template_labels(template)
    if selector and not from_labels(selector).matches(labels or {}):
        errors.invalid(at.child("metadata").child("labels"), labels, MISMATCH)
    validate_template(template, errors, at)
    check_running_template(template, "ReplicationController", errors, at)


_NAME_RULES: dict[str, NameRule] = {"StatefulSet": dns_label, "ReplicationController": long_name}
_SPEC_CHECKS = {
    "ReplicaSet": check_replica_set_spec,
    "Deployment": check_deployment_spec,
    "StatefulSet": check_stateful_set_spec,
    "DaemonSet": check_daemon_set_spec,
    "ReplicationController": check_replication_controller_spec,
}


def validate_workload(workload: JsonObject, errors: ErrorList) -> None:
    """A new workload of any of the five kinds."""
    kind = workload["kind"]
    metadata, rule = workload.get("metadata") or {}, _NAME_RULES.get(kind, dns_subdomain)
    if kind == "ReplicationController":
        # Only the name that came of it matters here, not what it was generated from.
        metadata = {**metadata, "generateName": ""}
    validate_metadata(metadata, errors, namespaced=True, name_rule=rule)
    _SPEC_CHECKS[kind](workload.get("spec") or {}, errors, SPEC)


def validate_workload_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Selectors stay; a StatefulSet keeps most of its spec."""
    kind = new["kind"]
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if kind == "StatefulSet":
        check_stateful_set_spec(spec, errors, SPEC, update=True)
        _check_stateful_change(spec, before, errors)
        return
    if kind == "DaemonSet":
        check_immutable(spec, before, "selector", errors, SPEC)
    _SPEC_CHECKS[kind](spec, errors, SPEC)
    if kind in ("ReplicaSet", "Deployment"):
        check_immutable(spec, before, "selector", errors, SPEC)


def validate_workload_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Counts are not negative and parts are not more than the whole."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    check_workload_status(new["kind"], new.get("status") or {}, old.get("status") or {}, errors)


def check_workload_status(
    kind: str, status: JsonObject, before: JsonObject, errors: ErrorList
) -> None:
    """The same of the status by itself."""
    check_not_negative(status, _STATUS_COUNTS[kind], errors, STATUS)
    if kind != "DaemonSet":
        _check_parts(status, _PARTS[kind], kind, errors)
    collisions = before.get("collisionCount")
    if collisions is not None and (now := status.get("collisionCount") or 0) < collisions:
        errors.invalid(STATUS.child("collisionCount"), now, "cannot be decremented")


def _check_parts(status: JsonObject, parts: list[str], kind: str, errors: ErrorList) -> None:
    whole, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    for field in parts:
        if (part := status.get(field, 0)) > whole:
            errors.invalid(STATUS.child(field), part, "cannot be greater than status.replicas")
    if (available := status.get("availableReplicas", 0)) > ready:
        shown = "status.readyReplicas" if kind == "StatefulSet" else "readyReplicas"
        at = STATUS.child("availableReplicas")
        errors.invalid(at, available, f"cannot be greater than {shown}")
