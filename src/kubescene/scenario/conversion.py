"""Scenarios from what people have: the drafts' form, manifests, or a dump of a real cluster.

A dump holds more than a scenario should: what servers fill in, bookkeeping, objects that a
controller will make again. That is left out, and who converts is told what and how much.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kubescene.api.builtin import builtin_scheme
from kubescene.api.kinds import API_SERVER, ROOT_CERTIFICATE, SCENARIO
from kubescene.controllers.builtin.nodes.nodeset import NODE_SET
from kubescene.errors import ScenarioError
from kubescene.registry.bootstrap import SYSTEM_NAMESPACES, SYSTEM_PRIORITIES
from kubescene.scenario.fields.table import Field, items_of, record, text
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.scenario.validation.faults import misfits
from kubescene.scenario.validation.fitting import fits, shape_of
from kubescene.types import JsonObject

POPULATED = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Metadata that the API sets."""
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NODE_STATUS = ("capacity", "allocatable", "images", "conditions", "declaredFeatures", "features")
"""What a node's status says about it; the rest is how it fares."""

PODS_OF_A_NODE = "110"
"""What a kubelet allows that nobody told otherwise."""

LEFT_OUT: Mapping[str, str] = {
    "ComponentStatus": "bookkeeping",
    "ControllerRevision": "bookkeeping",
    "Endpoints": "made by a controller",
    "EndpointSlice": "made by a controller",
    "Event": "bookkeeping",
    "Lease": "bookkeeping",
    "NodeMetrics": "a measurement",
    "PodMetrics": "a measurement",
    "Secret": "confidential, and nobody here reads it",
}
RECREATED = {
    "ReplicaSet": ("Deployment",),
    "Job": ("CronJob",),
    "Pod": ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"),
}
"""Kinds that a controller here makes again from their owner of these kinds."""
ADOPTED = {"ReplicaSet": ("Deployment",), "Pod": ("ReplicaSet", "DaemonSet", "Job")}
"""Those that it takes over instead, by their labels, if they are placed where they were.

A StatefulSet would replace its pods: only its own revisions say of which template they are.
"""
MIRROR = "kubernetes.io/config.mirror"
OF_AN_ADDRESS = ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies")
"""Of a Service: what one cluster has handed out, and another would refuse."""
OF_A_BINDING = (
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/selected-node",
)
"""Annotations by which a binder remembers what it did in another cluster."""
OF_A_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""Labels of a Job's pods that its API server makes of its uid."""

ORDER = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "CSIDriver",
    "DeviceClass",
    "NodeSet",
    "Node",
    "CSINode",
    "ResourceSlice",
    "PersistentVolume",
    "ServiceAccount",
    "ConfigMap",
    "PersistentVolumeClaim",
    "ResourceClaimTemplate",
    "ResourceClaim",
    "LimitRange",
    "ResourceQuota",
    "Service",
    "PodDisruptionBudget",
)
"""What others refer to comes first; kinds that are not here follow as they were given."""
WORKLOADS = frozenset(
    {"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"}
)


def _listed(name: str, *members: Field) -> Field:
    return items_of(name, "", record("", "", *members, open=True))


_METADATA = record(
    "metadata",
    "",
    text("name", ""),
    text("namespace", ""),
    record("annotations", "", open=True),
    _listed("ownerReferences", text("kind", ""), text("name", "")),
    open=True,
)
_STATUS = record("status", "", text("phase", ""), open=True)
_POD_SPEC = record(
    "spec",
    "",
    _listed("volumes"),
    _listed("containers", _listed("volumeMounts")),
    _listed("initContainers", _listed("volumeMounts")),
    open=True,
)
FORM = record("", "", _METADATA, open=True)
FORMS = {
    "Node": record("", "", _METADATA, _STATUS, open=True),
    "Pod": record("", "", _METADATA, _POD_SPEC, _STATUS, open=True),
}
"""Of which types the parts must be that are looked at here; the rest is the API's to judge."""
SHAPES = {kind: shape_of(form) for kind, form in FORMS.items()}


@dataclass(slots=True)
class Conversion:
    """A scenario, and what of the source is not in it, with why."""

    scenario: JsonObject
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    orphans: Counter[str] = field(default_factory=Counter)
    """Pods that nobody would make again, by the kind of their owner."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Objects of kinds that no API server here would take, by ``Kind.group``; they are in it."""

    def kinds(self) -> set[str]:
        """The kinds of what is created."""
        operations = self.scenario["spec"]["operations"]
        objects = (each["createOperation"]["object"] for each in operations[:-1])
        return {str(obj["kind"]) for obj in objects}


def merged_form(scenario: JsonObject) -> JsonObject:
    """A scenario in the merged KEP's form: ``operations``, and its spelling of every field.

    It has to be one without faults: what nobody understands would be lost on the way.
    """
    spec = dict(scenario.get("spec") or {})
    _, items = operations_of(scenario)
    spec.pop("events", None)
    operations = [_merged_operation(item) for item in items]
    if isinstance(controllers := spec.get("controllers"), Mapping):
        renamed = {"preSimulationControllers": "presimulationControllers"}
        spec["controllers"] = {renamed.get(k, k): _named(v) for k, v in controllers.items()}
    kept = {name: part for name, part in scenario.items() if name != "status"}
    return {**kept, "spec": {"operations": operations, **_without(spec, "operations")}}


def _check_form(obj: JsonObject, number: int) -> None:
    kind = str(obj.get("kind"))
    if kind in SHAPES and fits(obj, SHAPES[kind]):
        return
    for fault in misfits(obj, FORMS.get(kind, FORM)):
        raise ScenarioError(str(fault.error), where=f"object {number} ({obj.get('kind')})")


def scenario_from(
    objects: Iterable[Any], name: str, *, placed: bool = False, known_only: bool = False
) -> Conversion:
    """A scenario that creates these objects: first what others need, then those that run.

    Pods wait for the scheduler again unless they are to stay ``placed``. Objects of kinds that
    neither Kubernetes has nor a definition among them are counted, and with ``known_only`` left
    out.
    """
    conversion = Conversion({})
    given = []
    for number, obj in enumerate(objects):
        if not isinstance(obj, dict):
            conversion.left_out[type(obj).__name__, "it is not an object"] += 1
            continue
        _check_form(obj, number)
        given.append(obj)
    present = {(str(obj.get("kind")), *_place(obj)) for obj in given}
    defined = _defined(given)
    kept: dict[tuple[str, ...], JsonObject] = {}
    newest: dict[tuple[str, ...], int] = {}
    for obj in given:
        if why := _why_not(obj, present, placed=placed):
            conversion.left_out[str(obj.get("kind")), why] += 1
            continue
        if why := _is_repeated(obj, kept, newest, placed=placed):
            conversion.left_out[str(obj.get("kind")), why] += 1
            if why != OLDER_BEFORE:
                continue
        unknown = _unknown(obj, defined)
        if unknown and known_only:
            conversion.left_out[unknown, "nobody here knows the kind"] += 1
        else:
            conversion.unknown.update([unknown] if unknown else [])
            if owner := _stranger(obj, present):
                conversion.orphans[owner] += 1
            identity = _identity(obj, len(kept))
            newest[identity] = _version(obj)
            kept[identity] = cleaned(obj, placed=placed)
    created = [*_missing_namespaces(kept.values()), *kept.values()]
    ranks = {kind: rank for rank, kind in enumerate(ORDER)}
    created.sort(key=lambda obj: ranks.get(obj["kind"], len(ranks)))
    operations: list[JsonObject] = [
        {"step": 2 if obj["kind"] in WORKLOADS else 1, "createOperation": {"object": obj}}
        for obj in created
    ]
    operations.sort(key=lambda operation: operation["step"])
    operations.append({"step": 2, "doneOperation": {}})
    conversion.scenario = {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": name},
        "spec": {"operations": operations},
    }
    return conversion


def creation_of_nodes(
    name: str, offers: Mapping[str, str], number: int, labels: Mapping[str, str] | None = None
) -> JsonObject:
    """An operation of the first step that creates so many nodes that are alike."""
    named = f"{name}-$(INDEX)"
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": named, "labels": {"kubernetes.io/hostname": named, **(labels or {})}},
        "status": {"capacity": dict(offers), "allocatable": dict(offers)},
    }
    return {"step": 1, "createOperation": {"object": node, "count": number}}


def _defined(objects: Iterable[JsonObject]) -> set[tuple[str, str]]:
    """The groups and kinds that definitions among these objects bring along."""
    found = set()
    for obj in objects:
        if obj.get("kind") == "CustomResourceDefinition" and isinstance(obj.get("spec"), Mapping):
            names = obj["spec"].get("names")
            kind = names.get("kind") if isinstance(names, Mapping) else ""
            found.add((str(obj["spec"].get("group")), str(kind)))
    return found


def _unknown(obj: JsonObject, defined: set[tuple[str, str]]) -> str:
    """``Kind.group`` of an object whose kind nobody knows, else empty."""
    api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
    group = api_version.rpartition("/")[0]
    if (group, kind) in defined or (api_version, kind) in _builtin_kinds():
        return ""
    return f"{kind}.{group}" if group else kind


@cache
def _builtin_kinds() -> frozenset[tuple[str, str]]:
    """What every world of ours knows: the kinds of Kubernetes, NodeSet, and Scenario."""
    kinds = [each.gvk for each in builtin_scheme()]
    return frozenset((each.api_version, each.kind) for each in (*kinds, NODE_SET))


OLDER_BEFORE = "it is given twice, and this is the older one"


def _is_repeated(
    obj: JsonObject,
    kept: Mapping[Any, JsonObject],
    newest: Mapping[tuple[str, ...], int],
    *,
    placed: bool,
) -> str:
    """Why an object is left out that came before, or the one before it (`OLDER_BEFORE`).

    Of two that differ the one with the higher resourceVersion counts; without any it is a fault.
    """
    identity = _identity(obj, len(kept))
    before = kept.get(identity)
    if before is None:
        return ""
    if before != cleaned(obj, placed=placed):
        version = _version(obj)
        if version and newest.get(identity):
            return OLDER_BEFORE if version > newest[identity] else "it is given twice, and older"
        namespace, name = _place(obj)
        named = f"{obj['kind']} {namespace + '/' if namespace else ''}{name}"
        raise ScenarioError("it is given twice, and not the same: keep one of them", where=named)
    return "it is given twice"


def _identity(obj: JsonObject, number: int) -> tuple[str, ...]:
    """What no two objects share; one whose name is yet to be made up is always another."""
    place = _place(obj)
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return (group, obj["kind"], *(place if place[1] else ("", "", str(number))))


def _version(obj: JsonObject) -> int:
    text = str(_metadata(obj).get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0


def _stranger(obj: JsonObject, present: set[tuple[str, str, str]]) -> str:
    """The kind of a pod's controller that is not here or is nobody's to run; else empty."""
    if obj["kind"] != "Pod":
        return ""
    metadata = _metadata(obj)
    for owner in metadata.get("ownerReferences") or ():
        if not owner.get("controller") or owner.get("kind") == "Node":
            continue
        place = (str(owner.get("kind")), metadata.get("namespace") or "", str(owner.get("name")))
        if owner.get("kind") not in RECREATED["Pod"] or place not in present:
            return str(owner.get("kind"))
    return ""


def _place(obj: JsonObject) -> tuple[str, str]:
    metadata = _metadata(obj)
    return metadata.get("namespace") or "", metadata.get("name") or ""


def cleaned(obj: JsonObject, *, placed: bool) -> JsonObject:
    """An object as its author might have written it."""
    metadata = _without(_metadata(obj), *POPULATED, "ownerReferences", "finalizers")
    annotations = _without(metadata.get("annotations") or {}, APPLIED, *OF_A_BINDING)
    if obj["kind"] == "Job" and not placed and isinstance(metadata.get("labels"), Mapping):
        metadata["labels"] = _without(metadata["labels"], *OF_A_JOB)
    metadata = _without(metadata, "annotations")
    if annotations:
        metadata["annotations"] = annotations
    result = {**_without(obj, "metadata", "status"), "metadata": metadata}
    ordered: JsonObject = {
        name: result[name] for name in ("apiVersion", "kind", "metadata") if name in result
    }
    result = {**ordered, **result}
    if obj["kind"] == "Node":
        status = obj.get("status") or {}
        result["status"] = {part: status[part] for part in NODE_STATUS if part in status}
        return result
    if isinstance(spec := obj.get("spec"), Mapping):
        result["spec"] = _spec_of(obj, spec, placed=placed)
    return result


def _spec_of(obj: JsonObject, spec: Mapping[str, Any], *, placed: bool) -> JsonObject:
    """A spec without what only the cluster that it comes from could know."""
    kind = obj["kind"]
    if kind == "Pod":
        left_out = () if placed or is_static(obj) else ("nodeName",)
        return _without_token(_without(spec, *left_out))
    if kind == "Service" and spec.get("clusterIP") != "None":
        return _without(spec, *OF_AN_ADDRESS)
    if kind == "PersistentVolume" and isinstance(claim := spec.get("claimRef"), Mapping):
        return {**spec, "claimRef": _without(claim, "uid", "resourceVersion")}
    if kind == "Job" and not spec.get("manualSelector"):
        return _job_spec(spec, placed=placed)
    return dict(spec)


def _job_spec(spec: Mapping[str, Any], *, placed: bool) -> JsonObject:
    """A Job whose selector is made anew; or, if its pods stay, one that finds them."""
    if placed:
        return {**spec, "manualSelector": True}
    template = spec.get("template")
    if not isinstance(template, Mapping) or not isinstance(template.get("metadata"), Mapping):
        return _without(spec, "selector")
    metadata = dict(template["metadata"])
    if isinstance(metadata.get("labels"), Mapping):
        metadata["labels"] = _without(metadata["labels"], *OF_A_JOB)
    return {**_without(spec, "selector"), "template": {**template, "metadata": metadata}}


def is_static(pod: JsonObject) -> bool:
    """Whether its node runs it from a file: it is nowhere else, and ends with the node."""
    annotations = _metadata(pod).get("annotations")
    return isinstance(annotations, Mapping) and MIRROR in annotations


def _why_not(obj: JsonObject, present: set[tuple[str, str, str]], *, placed: bool) -> str:
    """Why an object is left out; empty if it is not."""
    kind, metadata = obj.get("kind"), _metadata(obj)
    if not isinstance(kind, str) or not obj.get("apiVersion"):
        return "it has no apiVersion and kind"
    if kind == "List":
        return "its items are not a list"
    if kind in LEFT_OUT:
        return LEFT_OUT[kind]
    if why := _why_there(kind, metadata):
        return why
    if kind == "Pod" and (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return "it has ended"
    if kind == "Pod" and metadata.get("deletionTimestamp"):
        return "it is being deleted"
    if kind == "Job" and _has_finished(obj):
        return "it has finished"
    for owner in metadata.get("ownerReferences") or ():
        makes_again = owner.get("kind") in RECREATED.get(kind, ())
        if placed and owner.get("kind") in ADOPTED.get(kind, ()):
            continue
        if (
            owner.get("controller")
            and makes_again
            and (owner["kind"], metadata.get("namespace") or "", owner.get("name")) in present
        ):
            return "its controller makes it again"
    return ""


def _why_there(kind: str, metadata: JsonObject) -> str:
    """Why an object need not be created; empty if it has to be."""
    name = metadata.get("name")
    if kind == "Namespace" and name in SYSTEM_NAMESPACES:
        return "every cluster has it"
    if kind == "PriorityClass" and name in SYSTEM_PRIORITIES:
        return "every cluster has it"
    if kind == "ServiceAccount" and name == "default":
        return "every namespace has it"
    if kind == "ConfigMap" and name == ROOT_CERTIFICATE:
        return "every namespace has it"
    if kind == "Service" and (metadata.get("namespace") or "default", name) == API_SERVER:
        return "it is the API server's own"
    return ""


def _has_finished(job: JsonObject) -> bool:
    status = job.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return any(
        isinstance(each, Mapping)
        and each.get("type") in ("Complete", "Failed")
        and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
    )


def _missing_namespaces(objects: Collection[JsonObject]) -> Iterator[JsonObject]:
    known = set(SYSTEM_NAMESPACES)
    known |= {_metadata(obj).get("name", "") for obj in objects if obj["kind"] == "Namespace"}
    for obj in objects:
        namespace = _metadata(obj).get("namespace")
        if namespace and namespace not in known:
            known.add(namespace)
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}


def _without_token(spec: JsonObject) -> JsonObject:
    """A pod's spec without the volume that a ServiceAccount's token was mounted by."""
    prefix = "kube-api-access-"
    result = dict(spec)
    volumes = [v for v in spec.get("volumes") or () if not _is_token(v, prefix)]
    if "volumes" in spec:
        result["volumes"] = volumes
    for part in ("containers", "initContainers"):
        if part in spec:
            result[part] = [_unmounted(each, prefix) for each in spec[part] or ()]
    return {name: value for name, value in result.items() if name != "volumes" or value}


def _unmounted(container: JsonObject, prefix: str) -> JsonObject:
    mounts = [m for m in container.get("volumeMounts") or () if not _is_token(m, prefix)]
    kept = _without(container, "volumeMounts")
    return {**kept, "volumeMounts": mounts} if mounts else kept


def _is_token(part: Mapping[str, Any], prefix: str) -> bool:
    return str(part.get("name", "")).startswith(prefix)


def _merged_operation(item: JsonObject) -> JsonObject:
    result = _without(item, "operation")
    if isinstance(done := result.get("doneOperation"), Mapping):
        result["doneOperation"] = _without(done, "done")
    if isinstance(patch := result.get("patchOperation"), Mapping) and "PatchType" in patch:
        renamed = _without(patch, "PatchType")
        result["patchOperation"] = {**renamed, "patchType": patch["PatchType"]}
    return result


def _named(controllers: Any) -> Any:
    if not isinstance(controllers, Mapping):
        return controllers
    return {
        part: [{"name": each.get("name") or each.get("Name")} for each in listed or ()]
        for part, listed in controllers.items()
    }


def _metadata(obj: Mapping[str, Any]) -> JsonObject:
    metadata = obj.get("metadata")
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def _without(value: Mapping[str, Any], *names: str) -> JsonObject:
    return {name: part for name, part in value.items() if name not in names}
