"""What may change in a pod through its subresources ``resize`` and ``ephemeralcontainers``."""

from kubescene.api.qos import qos_class
from kubescene.api.validation.equality import same, show_difference
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.api.validation.metadata import validate_metadata_update
from kubescene.api.validation.pods.pods import MIRROR_ANNOTATION, check_pod
from kubescene.types import JsonObject

_COMPUTE = ("cpu", "memory")
_KINDS = ("requests", "limits")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"
_EPHEMERAL = SPEC.child("ephemeralContainers")


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
