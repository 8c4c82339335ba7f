"""Whose pods are a VPA's: the selector of its target, and which controller is above all others."""

from typing import NamedTuple, Protocol

from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, from_label_selector, from_labels, parse_labels
from kubescene.autoscalers.vertical.objects import VerticalPodAutoscaler
from kubescene.errors import ApiError, BadRequestError, NotFoundError
from kubescene.types import JsonObject

_APPS, _BATCH = ("apps", "v1"), ("batch", "v1")
WELL_KNOWN = {
    "DaemonSet": GroupVersionKind(*_APPS, "DaemonSet"),
    "Deployment": GroupVersionKind(*_APPS, "Deployment"),
    "ReplicaSet": GroupVersionKind(*_APPS, "ReplicaSet"),
    "StatefulSet": GroupVersionKind(*_APPS, "StatefulSet"),
    "ReplicationController": GroupVersionKind("", "v1", "ReplicationController"),
    "Job": GroupVersionKind(*_BATCH, "Job"),
    "CronJob": GroupVersionKind(*_BATCH, "CronJob"),
}
"""Kinds whose own selector counts; of all others it is that of their scale."""
NO_TARGET = "targetRef not defined. If this is a v1beta1 object, switch to v1"


class Objects(Protocol):
    """Where workloads are looked up; nothing is raised for what is not there."""

    def find(self, kind: GroupVersionKind, name: str, namespace: str) -> JsonObject | None: ...

    def scale(self, kind: GroupVersionKind, name: str, namespace: str) -> JsonObject:
        """The scale of an object; raises `ApiError`."""
        ...


class TargetError(Exception):
    """A target that cannot be used, in upstream's words."""


class OwningController(NamedTuple):
    """A controller as owner references name it."""

    api_version: str
    kind: str
    name: str


def selector_of(vpa: VerticalPodAutoscaler, objects: Objects) -> LabelSelector:
    """The selector of the target's pods; raises `TargetError`."""
    target = vpa.spec.target_ref
    if target is None:
        raise TargetError(NO_TARGET)
    known = WELL_KNOWN.get(target.kind)
    if known is None:
        return _selector_of_scale(vpa, target.api_version, objects)
    workload = objects.find(known, target.name, vpa.namespace)
    if workload is None:
        raise TargetError(f"{target.kind} {vpa.namespace}/{target.name} does not exist")
    spec = workload["spec"]
    if target.kind == "CronJob":
        template = spec["jobTemplate"]["spec"]["template"]
        return from_labels((template.get("metadata") or {}).get("labels") or {})
    if target.kind == "ReplicationController":
        return from_labels(spec.get("selector") or {})
    return from_label_selector(spec.get("selector"))


def _selector_of_scale(
    vpa: VerticalPodAutoscaler, api_version: str, objects: Objects
) -> LabelSelector:
    target = vpa.spec.target_ref
    assert target is not None
    prefix = f"unhandled targetRef {api_version} / {target.kind} / {target.name}, last error "
    try:
        kind = GroupVersionKind.of(api_version, target.kind)
        scale = objects.scale(kind, target.name, vpa.namespace)
    except BadRequestError:
        group = api_version.rpartition("/")[0]
        raise TargetError(
            f'{prefix}no matches for kind "{target.kind}" in group "{group}"'
        ) from None
    except ApiError as error:
        raise TargetError(f"{prefix}{error.message}") from error
    text = (scale.get("status") or {}).get("selector") or ""
    if not text:
        raise TargetError(
            f"{prefix}resource {vpa.namespace}/{target.name} has an empty selector for scale "
            "sub-resource"
        )
    try:
        return parse_labels(text)
    except BadRequestError as error:
        raise TargetError(f"{prefix}{error.message}") from error


def unsupported(vpa: VerticalPodAutoscaler, objects: Objects) -> str:
    """Why a VPA may not have this target although there is one; empty if it may."""
    target = vpa.spec.target_ref
    if target is None:
        return NO_TARGET
    own = OwningController(target.api_version, target.kind, target.name)
    said = f"{target.api_version}.{target.kind}/{target.name}"
    try:
        top = topmost(own, vpa.namespace, objects)
    except TargetError as error:
        return (
            f"Error checking if target {said} is a topmost well-known or scalable controller: "
            f"{error}"
        )
    if top is None:
        return (
            f"Unknown error during checking if target {said} is a topmost well-known or scalable "
            "controller"
        )
    if top != own:
        return (
            f"The target {said} has a parent controller but it should point to a topmost "
            "well-known or scalable controller"
        )
    return ""


def topmost(owner: OwningController, namespace: str, objects: Objects) -> OwningController | None:
    """The highest controller above this one, itself included, that is well known or has a scale."""
    found, seen, at = None, [owner], owner
    while True:
        if _can_be_sized(at, namespace, objects):
            found = at
        above = _parent(at, namespace, objects)
        if above is None:
            return found
        if above in seen:
            raise TargetError("cycle detected in ownership chain")
        seen.append(above)
        at = above


def topmost_of(owner: OwningController, namespace: str, objects: Objects) -> tuple[str, str]:
    """The same as kind and name; empty where nobody can say."""
    try:
        found = topmost(owner, namespace, objects)
    except TargetError:
        return "", ""
    return ("", "") if found is None else (found.kind, found.name)


def _can_be_sized(owner: OwningController, namespace: str, objects: Objects) -> bool:
    if owner.kind in WELL_KNOWN:
        return True
    if owner.kind == "Node":
        return False
    try:
        objects.scale(GroupVersionKind.of(owner.api_version, owner.kind), owner.name, namespace)
    except ApiError:
        return False
    return True


def _parent(owner: OwningController, namespace: str, objects: Objects) -> OwningController | None:
    known = WELL_KNOWN.get(owner.kind)
    if known is not None:
        workload = objects.find(known, owner.name, namespace)
        if workload is None:
            raise TargetError(f"{owner.kind} {namespace}/{owner.name} does not exist")
        return controller_of(workload)
    if owner.kind == "Node":
        raise TargetError("node is not a valid owner")
    kind = GroupVersionKind.of(owner.api_version, owner.kind)
    try:
        objects.scale(kind, owner.name, namespace)
    except NotFoundError:
        return None
    except ApiError as error:
        said = f"unhandled targetRef {owner.api_version} / {owner.kind} / {owner.name}"
        raise TargetError(f"{said}, last error {error.message}") from error
    above = objects.find(kind, owner.name, namespace)
    return None if above is None else controller_of(above)


def controller_of(obj: JsonObject) -> OwningController | None:
    """The controller that an object belongs to."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return OwningController(
                owner.get("apiVersion", ""), owner.get("kind", ""), owner["name"]
            )
    return None
