"""What may change in a pod once it exists: in its spec, in its status, and through its subresources
``resize`` and ``ephemeralcontainers``.
"""

from typing import Any

from kubescene.api.resource_requests import qos_class
from kubescene.api.validation.addresses import check_ip, families, first_unreadable
from kubescene.api.validation.equality import same, show_difference
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, STATUS, Path
from kubescene.api.validation.inner_forms import IP, NODE_SELECTOR_TERM, inner
from kubescene.api.validation.metadata import IMMUTABLE, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain, label_key, range_complaint
from kubescene.api.validation.pods.placement import check_tolerations
from kubescene.api.validation.pods.pods import (
    MAX_INT32,
    MIRROR_ANNOTATION,
    check_pod,
    check_pod_annotations,
)
from kubescene.types import JsonObject

HEALTH = ("Healthy", "Unhealthy", "Unknown")
_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})
_APPARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_NO_REVIVAL = "may not be transitioned to non-terminated state"
_COMPUTE = ("cpu", "memory")
_KINDS = ("requests", "limits")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"
_EPHEMERAL = SPEC.child("ephemeralContainers")


def validate_pod_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Images, deadline, tolerations and gates may change within limits; little else may."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    check_pod(new, errors)
    _check_annotation_update(new, old, errors)
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    for field in ("containers", "initContainers"):
        if not _check_container_update(new_spec, old_spec, field, errors):
            return
    if not _check_deadline(new_spec, old_spec, errors):
        return
    _check_tolerations(new_spec, old_spec, errors)
    _check_gates(new_spec, old_spec, errors)
    if same(new_spec, old_spec):
        return
    restored = _with_allowed_changes(new_spec, old_spec)
    if old_spec.get("schedulingGates"):
        restored = _tightened(restored, old_spec, errors)
    if not same(restored, old_spec):
        errors.forbidden(SPEC, f"{_UPDATABLE}\n{show_difference(old_spec, restored)}")


def _check_annotation_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    now = new["metadata"].get("annotations") or {}
    before = old["metadata"].get("annotations") or {}
    if not now and not before:
        return
    path = METADATA.child("annotations")
    for key, value in before.items():
        if now.get(key) != value:
            _refuse_annotation(key, "remove or update", errors, path)
    for key in now:
        if key not in before:
            _refuse_annotation(key, "add", errors, path)
    check_pod_annotations(now, new.get("spec") or {}, errors, path)


def _refuse_annotation(key: str, what: str, errors: ErrorList, path: Path) -> None:
    if key.startswith(_APPARMOR_PREFIX):
        errors.forbidden(path.key(key), f"may not {what} AppArmor annotations")
    if key == MIRROR_ANNOTATION:
        errors.forbidden(path.key(key), f"may not {what} mirror pod annotation")


def _check_container_update(
    new: JsonObject, old: JsonObject, field: str, errors: ErrorList
) -> bool:
    """Whether the containers can be compared one by one."""
    now, before = new.get(field) or (), old.get(field) or ()
    path = SPEC.child(field)
    if len(now) != len(before):
        errors.forbidden(path, "pod updates may not add or remove containers")
        return False
    for position, container in enumerate(now):
        image = container.get("image", "")
        if not image:
            errors.required(path.index(position).child("image"))
        if image.strip() != image:
            detail = "must not have leading or trailing whitespace"
            errors.invalid(path.index(position).child("image"), image, detail)
    return True


def _check_deadline(new: JsonObject, old: JsonObject, errors: ErrorList) -> bool:
    """Whether the deadline is one at all; if not, nothing else is looked at."""
    now, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    path = SPEC.child("activeDeadlineSeconds")
    if now is None:
        if before is not None:
            errors.invalid(path, None, "must not update from a positive integer to nil value")
        return True
    if not 0 <= now <= MAX_INT32:
        errors.invalid(path, now, range_complaint(0, MAX_INT32))
        return False
    if before is not None and before < now:
        errors.invalid(path, now, "must be less than or equal to previous value")
        return False
    return True


def _check_tolerations(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    now, before = new.get("tolerations") or [], old.get("tolerations") or []
    if now == before and not now:
        return
    path = SPEC.child("tolerations")
    kept = [_timeless(toleration) for toleration in now]
    for toleration in before:
        if _timeless(toleration) not in kept:
            detail = "existing toleration can not be modified except its tolerationSeconds"
            errors.forbidden(path, detail)
    check_tolerations(now, errors, path)


def _timeless(toleration: JsonObject) -> tuple[Any, ...]:
    return tuple(toleration.get(key, "") for key in ("key", "operator", "value", "effect"))


def _check_gates(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    before = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    added = {
        gate.get("name", ""): position
        for position, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in before
    }
    for name, position in added.items():
        errors.forbidden(
            SPEC.child("schedulingGates").index(position).child("name"),
            f"only deletion is allowed, but found new scheduling gate '{name}'",
        )


def _with_allowed_changes(new: JsonObject, old: JsonObject) -> JsonObject:
    """The new spec, with what may change put back to what it was."""
    spec = dict(new)
    for field in ("containers", "initContainers"):
        if new.get(field):
            spec[field] = [
                {**container, "image": before.get("image")}
                for container, before in zip(new[field], old[field], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        spec[field] = old.get(field)
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and new.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = grace
    return spec


def _tightened(spec: JsonObject, old: JsonObject, errors: ErrorList) -> JsonObject:
    """A gated pod may still narrow down its nodes: check that, then put it back."""
    restored = dict(spec)
    if not same(spec.get("nodeSelector"), old.get("nodeSelector"), "matchLabels"):
        _check_node_selector(spec, old, errors)
        restored["nodeSelector"] = old.get("nodeSelector")
    now = (spec.get("affinity") or {}).get("nodeAffinity")
    before = (old.get("affinity") or {}).get("nodeAffinity")
    if not same(now, before):
        _check_node_affinity(now or {}, before or {}, errors)
        others = {**(spec.get("affinity") or {}), "nodeAffinity": before}
        filled = any(part is not None for part in others.values())
        restored["affinity"] = others if filled else old.get("affinity")
    return restored


def _check_node_selector(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    now = new.get("nodeSelector") or {}
    for key, value in (old.get("nodeSelector") or {}).items():
        if now.get(key) != value:
            errors.invalid(
                SPEC.child("nodeSelector"),
                dict(sorted(now.items())) or None,
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            )


def _check_node_affinity(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    before = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    now = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    path = SPEC.child("affinity").child("nodeAffinity").child(_REQUIRED).child("nodeSelectorTerms")
    if before and len(before) != len(now):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.invalid(path, inner(now, NODE_SELECTOR_TERM), detail)
        return
    for position, term in enumerate(before):
        if not _only_adds(now[position], term):
            detail = "only additions are allowed (no mutations or deletions)"
            errors.invalid(path.index(position), inner(now[position], NODE_SELECTOR_TERM), detail)


def _only_adds(new: JsonObject, old: JsonObject) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        # An empty term matches nothing; requirements would make it match something.
        return not any(new.get(field) for field in fields)
    return all(
        same((new.get(field) or [])[: len(old[field])], old[field])
        for field in fields
        if old.get(field)
    )


def validate_pod_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """What kubelet or scheduler report must be well formed and must not revive containers."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    _check_annotation_update(new, old, errors)
    now, before = new.get("status") or {}, old.get("status") or {}
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    for position, condition in enumerate(now.get("conditions") or ()):
        _check_condition(condition, errors, STATUS.child("conditions").index(position))
    if spec.get("nodeName") != old_spec.get("nodeName"):
        errors.forbidden(STATUS.child("nodeName"), "may not be changed directly")
    _check_nomination(now, before, old_spec, errors)
    if now.get("observedGeneration", 0) < 0:
        at = STATUS.child("observedGeneration")
        errors.invalid(at, now["observedGeneration"], "must be a non-negative integer")
    if (now.get("qosClass") or "") != (before.get("qosClass") or ""):
        errors.invalid(STATUS.child("qosClass"), now.get("qosClass", ""), IMMUTABLE)
    _check_transitions(now, before, old_spec, errors)
    _check_pod_ips(now, before, errors)
    _check_host_ips(now, before, errors)
    for position, status in enumerate(now.get("containerStatuses") or ()):
        if status.get("allocatedResourcesStatus"):
            at = STATUS.child("containerStatuses").index(position)
            _check_health(status["allocatedResourcesStatus"], errors, at)


def _check_health(allocated: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, each in enumerate(allocated):
        at = path.child("allocatedResourcesStatus").index(position).child("resources")
        for number, resource in enumerate((each or {}).get("resources") or ()):
            if (health := (resource or {}).get("health", "")) not in HEALTH:
                errors.not_supported(at.index(number).child("health"), health, HEALTH)


def _check_condition(condition: JsonObject, errors: ErrorList, path: Path) -> None:
    if condition.get("observedGeneration", 0) < 0:
        at = path.child("observedGeneration")
        errors.invalid(at, condition["observedGeneration"], "must be a non-negative integer")
    kind = condition.get("type", "")
    if kind not in _SYSTEM_CONDITIONS and (complaints := label_key(kind)):
        errors.invalid_each(path.child("Type"), kind, complaints)


def _check_nomination(
    new: JsonObject, old: JsonObject, old_spec: JsonObject, errors: ErrorList
) -> None:
    name = new.get("nominatedNodeName")
    if not name or name == old.get("nominatedNodeName"):
        return
    path = STATUS.child("nominatedNodeName")
    errors.invalid_each(path, name, dns_subdomain(name))
    if old_spec.get("nodeName"):
        errors.forbidden(path, "may not be set on pods that are already bound to a node")


def _check_transitions(
    new: JsonObject, old: JsonObject, spec: JsonObject, errors: ErrorList
) -> None:
    all_restart = _may_all_restart(spec)
    for field, containers in (
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ):
        if not old.get(field):
            continue
        now = {status.get("name"): status for status in new.get(field) or ()}
        own = {each.get("name"): each for each in spec.get(containers) or ()}
        for position, status in enumerate(old[field]):
            ended = (status.get("state") or {}).get("terminated")
            name = status.get("name")
            if ended is None or name not in now or _is_terminated(now[name]):
                continue
            if not containers or not (all_restart or _may_restart(own.get(name), spec, ended)):
                at = STATUS.child(field).index(position).child("state")
                errors.forbidden(at, _NO_REVIVAL)


def _may_all_restart(spec: JsonObject) -> bool:
    """Whether a container has a rule that restarts all containers of its pod."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    rules = [rule for each in containers for rule in each.get("restartPolicyRules") or ()]
    return any(rule.get("action") == "RestartAllContainers" for rule in rules)


def _is_terminated(status: JsonObject) -> bool:
    return (status.get("state") or {}).get("terminated") is not None


def _may_restart(container: JsonObject | None, spec: JsonObject, ended: JsonObject) -> bool:
    if container is None:
        return False
    code = ended.get("exitCode", 0)
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        if (code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
            return True
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _check_pod_ips(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    _check_ips(new.get("podIPs") or [], old.get("podIPs") or [], errors, STATUS.child("podIPs"))


def _check_host_ips(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    now, path = new.get("hostIPs") or [], STATUS.child("hostIPs")
    if now and now[0].get("ip") != new.get("hostIP"):
        at = path.index(0).child("ip")
        errors.invalid(at, now[0].get("ip", ""), "must be equal to `hostIP`")
    _check_ips(now, old.get("hostIPs") or [], errors, path)


def _check_ips(
    now: list[JsonObject], before: list[JsonObject], errors: ErrorList, path: Path
) -> None:
    known = [entry.get("ip") for entry in before]
    for position, entry in enumerate(now):
        if entry.get("ip") not in known:
            check_ip(entry.get("ip", ""), errors, path.index(position))
    addresses = [entry.get("ip", "") for entry in now]
    if len(now) < 2:
        return
    if wrong := first_unreadable(addresses):
        errors.internal(path, f"failed to check for dual stack with error:invalid IP{wrong}")
    if wrong or len(now) > 2 or len(families(addresses)) < 2:
        errors.invalid(path, inner(now, IP), "may specify no more than one IP for each IP family")


def validate_binding(binding: JsonObject, errors: ErrorList) -> None:
    """The target that a scheduler chose."""
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        errors.not_supported(Path("target").child("kind"), target["kind"], ("Node", "<empty>"))
    if not target.get("name"):
        errors.required(Path("target").child("name"))


def validate_ephemeral_containers(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Ephemeral containers can be added; those that are there stay as they are."""
    if _is_static(old):
        errors.forbidden(Path(""), "static pods do not support ephemeral containers")
        return
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    check_pod(new, errors)
    now = {it.get("name"): it for it in new["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        subject = f'existing ephemeral containers "{container["name"]}" may not be'
        if container["name"] not in now:
            errors.forbidden(_EPHEMERAL, f"{subject} removed\n")
        elif not same(now[container["name"]], container):
            difference = show_difference(container, now[container["name"]])
            errors.forbidden(_EPHEMERAL, f"{subject} changed\n{difference}")


def validate_pod_resize(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Cpu and memory of containers and of the pod can change; their quality of service cannot.

    Upstream also refuses pods whose node does not report what its containers were given: it may be
    too old to resize. Here there are no old nodes.
    """
    if _is_static(old):
        errors.forbidden(Path(""), "static pods cannot be resized")
        return
    if (old["spec"].get("os") or {}).get("name") == "windows":
        errors.forbidden(Path(""), "windows pods cannot be resized")
        return
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    check_pod(new, errors)
    status = old.get("status") or {}
    known = status.get("qosClass") or qos_class(old["spec"])
    if qos_class(new["spec"]) != known:
        detail = "Pod QOS Class may not change as a result of resizing"
        errors.invalid(SPEC, status.get("qosClass", ""), detail)
    _check_pod_level(new["spec"].get("resources"), old["spec"].get("resources"), errors)
    if status.get("nodeAllocatableResourceClaimStatuses"):
        detail = "pods with node allocatable resource claims cannot be resized"
        errors.forbidden(SPEC, detail)
    if _check_order(new["spec"], old["spec"], errors):
        _check_containers(new["spec"], old["spec"], errors)


def _check_pod_level(new: JsonObject | None, old: JsonObject | None, errors: ErrorList) -> None:
    if not any((it or {}).get(kind) for it in (new, old) for kind in _KINDS):
        return
    path = SPEC.child("resources")
    if old is not None and new is None:
        errors.forbidden(path, "pod-level resources cannot be removed")
        return
    for kind in _KINDS:
        if old is not None and _are_removed(new, old, kind):
            errors.forbidden(path.child(kind), f"pod-level resource {kind} cannot be removed")
    if not same({**(new or {}), **_restored(new, old)}, old or {}):
        errors.forbidden(SPEC, f"{_ONLY_COMPUTE} at pod-level")


def _check_order(new: JsonObject, old: JsonObject, errors: ErrorList) -> bool:
    """Whether the containers are the same, one by one."""
    known = len(errors)
    for field in ("containers", "initContainers"):
        path, now, before = SPEC.child(field), new.get(field) or [], old.get(field) or []
        if len(now) != len(before):
            errors.forbidden(path, f"{field} may not be added or removed on resize")
            continue
        for position, (container, other) in enumerate(zip(now, before, strict=True)):
            if container.get("name") != other.get("name"):
                at = path.index(position).child("name")
                errors.forbidden(at, f"{field} may not be renamed or reordered on resize")
    return len(errors) == known


def _check_containers(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    for field in ("initContainers", "containers"):
        for position, container in enumerate(new.get(field) or ()):
            at = SPEC.child(field).index(position).child("resources")
            _check_kept(container, old[field][position], errors, at)
    for position, container in enumerate(new.get("containers") or ()):
        if not _same_but_compute(container, old["containers"][position]):
            errors.forbidden(SPEC, _ONLY_COMPUTE)
    for position, container in enumerate(new.get("initContainers") or ()):
        at = SPEC.child("initContainers").index(position)
        _check_init_container(container, old["initContainers"][position], errors, at)


def _check_kept(container: JsonObject, old: JsonObject, errors: ErrorList, path: Path) -> None:
    now, before = container.get("resources"), old.get("resources") or {}
    for kind in _KINDS:
        if _are_removed(now, before, kind):
            errors.forbidden(path.child(kind), f"resource {kind} cannot be removed")


def _check_init_container(
    container: JsonObject, old: JsonObject, errors: ErrorList, path: Path
) -> None:
    if not _same_but_compute(container, old):
        detail = "only cpu and memory resources for init or sidecar containers are mutable"
        errors.forbidden(path, detail)
    if container.get("restartPolicy") == "Always" or same(container, old):
        return
    for policy in container.get("resizePolicy") or ():
        if policy.get("restartPolicy") == "RestartContainer":
            errors.forbidden(
                path,
                "non-sidecar init containers with a resize policy of RestartContainer cannot be "
                "resized",
            )


def _are_removed(new: JsonObject | None, old: JsonObject, kind: str) -> bool:
    now = (new or {}).get(kind) or {}
    return any(name not in now for name in old.get(kind) or ())


def _same_but_compute(new: JsonObject, old: JsonObject) -> bool:
    # Claims are left out, as upstream: a container that has some cannot be resized.
    restored = {**new, "resources": _restored(new.get("resources"), old.get("resources"))}
    return same(restored, old)


def _restored(new: JsonObject | None, old: JsonObject | None) -> JsonObject:
    """Requests and limits with cpu and memory put back to what they were."""
    parts = {}
    for kind in _KINDS:
        amounts = {k: v for k, v in ((new or {}).get(kind) or {}).items() if k not in _COMPUTE}
        before = (old or {}).get(kind) or {}
        parts[kind] = amounts | {name: before[name] for name in _COMPUTE if name in before}
    return parts


def _is_static(pod: JsonObject) -> bool:
    return MIRROR_ANNOTATION in (pod["metadata"].get("annotations") or {})
