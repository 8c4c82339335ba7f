"""Objects of a source made fit to be restored: what is left out, put right, and told.

What is left out is nobody's to act on here, or confidential. What is put right are references: a
real cluster never stands still while it is read, and most dumps hold only some kinds. Whoever
reads a snapshot is told of both, by kind and reason.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubescene.api.builtin import builtin_scheme
from kubescene.api.kinds import SCENARIO
from kubescene.api.own_kinds import GROUP as OWN_GROUP
from kubescene.controllers.builtin.autoscaling.vertical.kinds import GROUP as AUTOSCALERS
from kubescene.snapshots.owners import mended
from kubescene.types import JsonObject

NEVER: Mapping[str, str] = {
    "Secret": "confidential",
    "Event": "bookkeeping",
    "Lease": "bookkeeping",
    "ComponentStatus": "bookkeeping",
    "Endpoints": "made by a controller",
    "EndpointSlice": "made by a controller",
    "TokenReview": "confidential",
    "TokenRequest": "confidential",
    "NodeMetrics": "a measurement",
    "PodMetrics": "a measurement",
    "Scenario": "it is played, not restored",
}
SETTLED = "admission and access were settled where it comes from"
ACCESS = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "APIService",
        "CertificateSigningRequest",
        "FlowSchema",
        "PriorityLevelConfiguration",
    }
)
CLEARED = ("managedFields", "selfLink", "resourceVersion")
"""Metadata that no snapshot keeps."""
INFO = "SnapshotInfo"
FINISHED = ("Succeeded", "Failed")
SECONDS = len("2026-01-01T00:00:00")


@dataclass(slots=True)
class Gathered:
    """Objects, and what is to be said of them."""

    objects: list[JsonObject] = field(default_factory=list)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    newest: str = ""
    """The newest instant that an object speaks of, as it stands there."""
    info: JsonObject = field(default_factory=dict)
    """What an earlier snapshot says of itself."""


def gathered(found: Iterable[Any], *, custom: bool, finished: bool = True) -> Gathered:
    """What of these objects makes a snapshot.

    ``custom`` resources of others and their definitions are kept only if that is wanted, and pods
    that have ``finished`` unless it is not.
    """
    result = Gathered()
    kept: dict[tuple[str, ...], tuple[int, JsonObject]] = {}
    for obj in found:
        if not isinstance(obj, dict):
            result.left_out[type(obj).__name__, "it is not an object"] += 1
            continue
        if obj.get("kind") == INFO:
            result.info = obj
            continue
        result.newest = max(result.newest, *instants_of(obj), key=_second)
        why = why_not(obj, custom=custom, finished=finished)
        if why:
            result.left_out[str(obj.get("kind")), why] += 1
            continue
        _keep(kept, obj, result.left_out)
    result.objects = mended([obj for _, obj in kept.values()], result.remarks)
    return result


def why_not(obj: JsonObject, *, custom: bool, finished: bool) -> str:
    """Why an object is no part of a snapshot; empty if it is."""
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        return "it has no apiVersion and kind"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return "it has no name"
    if (odd := misshapen(obj, metadata)) is not None:
        return f"its {odd} is of the wrong type"
    group = api_version.rpartition("/")[0]
    if kind in NEVER and (group in BUILTIN_GROUPS or group in NEVER_GROUPS):
        return NEVER[kind]
    if kind in ACCESS and group in BUILTIN_GROUPS:
        return SETTLED
    if kind == "CustomResourceDefinition":
        spec = obj.get("spec")
        defined = str(spec.get("group")) if isinstance(spec, dict) else ""
        if defined in KNOWN_GROUPS:
            return "every world here has it"
        return "" if custom else "a definition of others: nobody here acts on its objects"
    if group not in BUILTIN_GROUPS and group not in KNOWN_GROUPS and not custom:
        return "a custom resource of others: nobody here acts on it"
    status = obj.get("status")
    phase = status.get("phase") if isinstance(status, dict) else ""
    if kind == "Pod" and not group and phase in FINISHED and not finished:
        return "it has ended"
    return ""


PARTS: Mapping[str, type] = {"spec": dict, "status": dict}
PARTS_OF_METADATA: Mapping[str, type] = {
    "annotations": dict,
    "labels": dict,
    "namespace": str,
    "ownerReferences": list,
    "uid": str,
}
PARTS_OF_REFERENCE = ("apiVersion", "kind", "name", "uid")
TEMPLATED = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})


def misshapen(obj: JsonObject, metadata: JsonObject) -> str | None:
    """The first part that is not what everybody here takes it for."""
    for name, kind in PARTS.items():
        if obj.get(name) is not None and not isinstance(obj[name], kind):
            return name
    for name, kind in PARTS_OF_METADATA.items():
        if metadata.get(name) is not None and not isinstance(metadata[name], kind):
            return f"metadata.{name}"
    for reference in _dicts(metadata.get("ownerReferences")):
        for name in PARTS_OF_REFERENCE:
            if not isinstance(reference.get(name), str | None):
                return f"metadata.ownerReferences[].{name}"
    is_templated = obj["kind"] in TEMPLATED and obj["apiVersion"] == "apps/v1"
    return _misshapen_template(obj) if is_templated else None


def _misshapen_template(obj: JsonObject) -> str | None:
    for name in ("template", "selector"):
        if not isinstance((obj.get("spec") or {}).get(name), dict):
            return f"spec.{name}"
    of_template = obj["spec"]["template"].get("metadata")
    if of_template is not None and not isinstance(of_template, dict):
        return "spec.template.metadata"
    if not isinstance((of_template or {}).get("labels") or {}, dict):
        return "spec.template.metadata.labels"
    return None


BUILTIN_GROUPS = frozenset(each.gvk.group for each in builtin_scheme())
KNOWN_GROUPS = frozenset({OWN_GROUP, AUTOSCALERS, SCENARIO.group})
"""Groups of custom resources that somebody here acts on."""
NEVER_GROUPS = frozenset({"metrics.k8s.io", SCENARIO.group})


def _keep(
    kept: dict[tuple[str, ...], tuple[int, JsonObject]],
    obj: JsonObject,
    left_out: Counter[tuple[str, str]],
) -> None:
    """Of an object that is given several times, of other moments, the newest stays."""
    metadata = obj["metadata"]
    version = str(metadata.get("resourceVersion") or "")
    number = int(version) if version.isdecimal() else 0
    group = obj["apiVersion"].rpartition("/")[0]
    identity = (group, obj["kind"], str(metadata.get("namespace") or ""), metadata["name"])
    before = kept.get(identity)
    if before is not None:
        left_out[obj["kind"], "it is given twice, and older"] += 1
        if before[0] >= number:
            return
    kept[identity] = number, scrubbed(obj)


def scrubbed(obj: JsonObject) -> JsonObject:
    """Without what only the API server that it comes from needs."""
    metadata = {name: each for name, each in obj["metadata"].items() if name not in CLEARED}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and APPLIED in annotations:
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != APPLIED}
    return {**obj, "metadata": metadata}


APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def instants_of(obj: JsonObject) -> Iterator[str]:
    """Instants by which the object was as it is: heartbeats, writes, its creation."""
    yield ""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return
    yield _text(metadata.get("creationTimestamp"))
    for entry in _dicts(metadata.get("managedFields")):
        yield _text(entry.get("time"))
    status, kind = obj.get("status"), obj.get("kind")
    if isinstance(status, dict):
        for condition in _dicts(status.get("conditions")):
            yield _text(condition.get("lastHeartbeatTime"))
            yield _text(condition.get("lastTransitionTime"))
    if kind == "Lease" and isinstance(spec := obj.get("spec"), dict):
        yield _text(spec.get("renewTime"))
    if kind == "Event":
        yield _text(obj.get("lastTimestamp"))
        yield _text(obj.get("eventTime"))


def _second(instant: str) -> str:
    """Texts of UTC compare as the instants do, up to the second."""
    return instant[:SECONDS] if instant.endswith("Z") else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> Iterator[JsonObject]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, dict):
            yield each
