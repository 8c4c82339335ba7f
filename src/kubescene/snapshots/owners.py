"""References between the objects of a snapshot put right, so that nobody acts on a gap.

A garbage collector deletes what names an owner that is not there, and a controller replaces pods
of a revision that it does not know. In the cluster itself the owner was there: only the dump lacks
it. So a ReplicaSet is made again from its Deployment and what its pods say of it; a revision from
the template of its set; what cannot be made again is let go of, and told.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from kubescene.api.builtin import builtin_scheme
from kubescene.controllers.builtin.workloads.controller_revisions import REVISION_LABEL, data_of
from kubescene.types import JsonObject

HASH = "pod-template-hash"
OWNING = frozenset(
    (each.gvk.api_version, each.gvk.kind) for each in builtin_scheme() if each.gvk.kind != "Node"
)
"""Kinds that are served here: an owner of them that is not there is taken for gone."""
ENDED = ("Succeeded", "Failed")


class _NamedOwner(NamedTuple):
    """An object, as an owner reference names it."""

    api_version: str
    kind: str
    namespace: str
    name: str


def mended(objects: list[JsonObject], remarks: list[str]) -> list[JsonObject]:
    """The objects, fit to be restored; what was done to them is added to ``remarks``."""
    objects = list(_on_nodes(objects, remarks))
    objects += _missing_replica_sets(objects, remarks)
    objects = _with_revisions(objects)
    return _without_gone_owners(objects, remarks)


# -- pods on nodes that are not there ----------------------------------------------------------


def _on_nodes(objects: list[JsonObject], remarks: list[str]) -> Iterator[JsonObject]:
    nodes = {obj["metadata"]["name"] for obj in objects if _is(obj, "v1", "Node")}
    lost: Counter[str] = Counter()
    for obj in objects:
        if nodes and _is(obj, "v1", "Pod"):
            node = _spec(obj).get("nodeName")
            if node and str(node) not in nodes and not _has_ended(obj):
                lost[str(node)] += 1
                continue
        yield obj
    if lost:
        remarks.append(
            f"{_counted(lost.total(), 'pod')} on nodes that are not in it (such as "
            f"{min(lost)}) left out"
        )


# -- owners that are not there -----------------------------------------------------------------


def _missing_replica_sets(objects: list[JsonObject], remarks: list[str]) -> list[JsonObject]:
    """ReplicaSets that pods name, made again from their Deployments."""
    there = {obj["metadata"].get("uid") for obj in objects}
    deployments: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for obj in objects:
        if _is(obj, "apps/v1", "Deployment"):
            deployments[_namespace(obj)].append(obj)
    wanted: dict[str, list[JsonObject]] = {}
    for obj in objects:
        owner = _controller(obj)
        if _is(obj, "v1", "Pod") and owner and owner.get("kind") == "ReplicaSet":
            uid = str(owner.get("uid"))
            if uid not in there:
                wanted.setdefault(uid, []).append(obj)
    made = []
    for pods in wanted.values():
        deployment = _deployment_of(pods[0], deployments)
        if deployment is not None:
            made.append(_replica_set(pods, deployment))
    if made:
        remarks.append(
            f"{_counted(len(made), 'ReplicaSet')} not in it made again from Deployments and pods: "
            "a rollout that was under way goes on differently"
        )
    return made


def _deployment_of(pod: JsonObject, deployments: dict[str, list[JsonObject]]) -> JsonObject | None:
    """The Deployment after which the pod's ReplicaSet is named."""
    owner = _controller(pod)
    hashed = _labels(pod).get(HASH, "")
    for each in deployments.get(_namespace(pod), ()):
        if owner and owner.get("name") == f"{each['metadata']['name']}-{hashed}":
            return each
    return None


def _replica_set(pods: list[JsonObject], deployment: JsonObject) -> JsonObject:
    owner, metadata = _controller(pods[0]) or {}, deployment["metadata"]
    hashed = {HASH: _labels(pods[0])[HASH]}
    spec = deployment["spec"]
    template = spec["template"]
    of_template = template.get("metadata") or {}
    labels = {**(of_template.get("labels") or {}), **hashed}
    selector = spec["selector"]
    revision = (metadata.get("annotations") or {}).get("deployment.kubernetes.io/revision", "1")
    live = [each for each in pods if not _has_ended(each)]
    ready = sum(_is_ready(each) for each in live)
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": owner["name"],
            "namespace": _namespace(deployment),
            "uid": owner["uid"],
            "creationTimestamp": metadata.get("creationTimestamp"),
            "generation": 1,
            "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": str(spec.get("replicas", 1)),
                "deployment.kubernetes.io/max-replicas": str(len(live)),
                "deployment.kubernetes.io/revision": revision,
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": metadata["name"],
                    "uid": metadata.get("uid", ""),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": len(live),
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), **hashed},
            },
            "template": {**template, "metadata": {**of_template, "labels": labels}},
        },
        "status": {
            "replicas": len(live),
            "fullyLabeledReplicas": len(live),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "observedGeneration": 1,
        },
    }


def _without_gone_owners(objects: list[JsonObject], remarks: list[str]) -> list[JsonObject]:
    """References to owners of kinds that are served here, and that are not there, are let go of."""
    there = {obj["metadata"].get("uid") for obj in objects}
    nodes = {obj["metadata"]["name"] for obj in objects if _is(obj, "v1", "Node")}
    defined = {each for obj in objects for each in _defined_by(obj)}
    gone: Counter[tuple[str, str]] = Counter()
    strangers: Counter[str] = Counter()
    result = []
    for obj in objects:
        references = obj["metadata"].get("ownerReferences")
        if not isinstance(references, list) or not references:
            result.append(obj)
            continue
        kept = []
        for each in references:
            if not isinstance(each, dict):
                continue
            if _is_served(each, defined) and each.get("uid") not in there:
                gone[str(obj["kind"]), str(each.get("kind"))] += 1
            elif each.get("kind") == "Node" and each.get("name") not in nodes:
                gone[str(obj["kind"]), "Node"] += 1
            else:
                kept.append(each)
        if _is(obj, "v1", "Pod") and kept and not _has_ended(obj):
            owner = _controller(obj) or {}
            if not _is_served(owner, ()) and owner.get("kind") != "Node" and owner in kept:
                strangers[str(owner.get("kind"))] += 1
        metadata = {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}
        if kept:
            metadata["ownerReferences"] = kept
        result.append({**obj, "metadata": metadata})
    for (kind, owner_kind), times in sorted(gone.items()):
        again = ": nobody would make them again" if kind == "Pod" else ""
        remarks.append(f"{_counted(times, kind)} of {owner_kind}s that are not in it{again}")
    for owner_kind, times in sorted(strangers.items()):
        remarks.append(
            f"{_counted(times, 'pod')} of {owner_kind}s, which nobody here runs: nobody would make "
            "them again"
        )
    return result


# -- revisions -----------------------------------------------------------------------------------


def _with_revisions(objects: list[JsonObject]) -> list[JsonObject]:
    """With one revision for the template of each StatefulSet and DaemonSet, as its pods name it."""
    newest: dict[str, JsonObject] = {}
    for obj in objects:
        owner = _controller(obj)
        if _is(obj, "apps/v1", "ControllerRevision") and owner:
            known = newest.get(str(owner.get("uid")))
            if known is None or _number(known) <= _number(obj):
                newest[str(owner.get("uid"))] = obj
    hashes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for obj in objects:
        owner = _controller(obj)
        if _is(obj, "v1", "Pod") and owner and (label := _labels(obj).get(REVISION_LABEL)):
            created = str(obj["metadata"].get("creationTimestamp") or "")
            hashes[str(owner.get("uid"))][created] = label
    result = [obj for obj in objects if not _is(obj, "apps/v1", "ControllerRevision")]
    for obj in result[:]:
        uid = str(obj["metadata"].get("uid"))
        if _is(obj, "apps/v1", "StatefulSet"):
            labelled = _status(obj).get("updateRevision") or _last(hashes[uid])
            name = labelled
        elif _is(obj, "apps/v1", "DaemonSet"):
            known = newest.get(uid)
            labelled = _labels(known).get(REVISION_LABEL) if known else _last(hashes[uid])
            name = f"{obj['metadata']['name']}-{labelled}"
        else:
            continue
        if labelled:
            result.append(_revision(obj, str(name), str(labelled), newest.get(uid)))
    return result


def _revision(owner: JsonObject, name: str, label: str, known: JsonObject | None) -> JsonObject:
    metadata = owner["metadata"]
    template = owner["spec"]["template"]
    labels = ((template.get("metadata") or {}).get("labels")) or {}
    kept = {} if known is None else known["metadata"]
    own: JsonObject = {
        "name": name,
        "namespace": _namespace(owner),
        "labels": {**labels, REVISION_LABEL: label},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": owner["kind"],
                "name": metadata["name"],
                "uid": metadata.get("uid", ""),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if kept.get("name") == name:
        own = kept
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": own,
        "data": data_of(template),
        "revision": max(_number(known), 1) if known else 1,
    }


# -- looking at objects that may be of any form ------------------------------------------------


def _is(obj: JsonObject, api_version: str, kind: str) -> bool:
    return obj.get("kind") == kind and obj.get("apiVersion") == api_version


def _is_served(reference: JsonObject, defined: Container[tuple[str, str]]) -> bool:
    named = str(reference.get("apiVersion")), str(reference.get("kind"))
    return named in OWNING or (named[0].rpartition("/")[0], named[1]) in defined


def _defined_by(obj: JsonObject) -> Iterator[tuple[str, str]]:
    """The group and kind that a definition brings along."""
    if obj.get("kind") == "CustomResourceDefinition":
        names = _spec(obj).get("names")
        if isinstance(names, dict):
            yield str(_spec(obj).get("group")), str(names.get("kind"))


def _spec(obj: JsonObject) -> JsonObject:
    found = obj.get("spec")
    return found if isinstance(found, dict) else {}


def _status(obj: JsonObject) -> JsonObject:
    found = obj.get("status")
    return found if isinstance(found, dict) else {}


def _namespace(obj: JsonObject) -> str:
    return str(obj["metadata"].get("namespace") or "")


def _labels(obj: JsonObject) -> dict[str, Any]:
    found = obj["metadata"].get("labels")
    return found if isinstance(found, dict) else {}


def _controller(obj: JsonObject) -> JsonObject | None:
    references = obj["metadata"].get("ownerReferences")
    for each in references if isinstance(references, list) else ():
        if isinstance(each, dict) and each.get("controller"):
            return each
    return None


def _has_ended(pod: JsonObject) -> bool:
    return _status(pod).get("phase") in ENDED


def _is_ready(pod: JsonObject) -> bool:
    conditions = _status(pod).get("conditions")
    return any(
        isinstance(each, dict) and each.get("type") == "Ready" and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
    )


def _number(revision: JsonObject) -> int:
    found = revision.get("revision")
    return found if isinstance(found, int) else 0


def _last(by_creation: dict[str, str]) -> str:
    return by_creation[max(by_creation)] if by_creation else ""


def _counted(number: int, kind: str) -> str:
    return f"1 {kind}" if number == 1 else f"{number:,} {kind}s"


def counts(objects: Iterable[JsonObject]) -> Counter[str]:
    """How many objects there are of each kind."""
    return Counter(str(obj.get("kind")) for obj in objects)
