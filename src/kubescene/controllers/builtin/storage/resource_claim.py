"""The ResourceClaim controller: claims from templates, and the end of those that nobody uses.

A pod that names a ResourceClaimTemplate gets a claim of its own, and its status tells which. Once a
pod that a claim is reserved for has ended, the reservation is taken away; a claim that nobody uses
any more gives its devices back, and one that was made for that pod is deleted.

Pods without claims are passed over without being read.
"""

from collections.abc import Iterable, Iterator, Sequence

from kubescene.api.kinds import POD
from kubescene.api.options import LASTING
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.records.traits import CLAIMS
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Update,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, ConflictError, NotFoundError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject, ReadOnlyObject

REPORTER = "resource_claim"
CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
TEMPLATE = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaimTemplate")
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
LONGEST_BASE = 57
"""What a generated name leaves for those of pod and claim."""

_PODS = GroupResource("", "pods")
_TEMPLATES = GroupResource("resource.k8s.io", "resourceclaimtemplates")
_POD, _CLAIM = "pod:", "claim:"
_ENDED = ("Succeeded", "Failed")
_NAMES_CLAIMS, _HAS_EXTENDED = b'"resourceClaims"', b'"extendedResourceClaimStatus"'


class ResourceClaimReconciler:
    """Keys are those of pods and of claims, told apart by what their names begin with."""

    name = "resourceclaim"
    kinds: Sequence[GroupVersionKind] = (CLAIM, TEMPLATE, POD)
    pod_traits = CLAIMS

    def __init__(self) -> None:
        self._waiting: dict[ObjectKey, dict[ObjectKey, None]] = {}
        """Pods that wait for a template."""

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource == _PODS:
            if not (record.members_mention(_NAMES_CLAIMS) or record.members_mention(_HAS_EXTENDED)):
                return ()
            return [*_concerned(change)]
        if record.resource == _TEMPLATES:
            waiting = self._waiting.pop(ObjectKey(record.namespace, record.name), {})
            return [*waiting]
        if change.type is ChangeType.DELETED:
            return ()
        return [*_of_claim(change)]

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        if key.name.startswith(_CLAIM):
            claim = reader.find(_claim_ref(key))
            return NOTHING if claim is None else _claim_plan(claim, reader)
        pod = reader.find(ObjectRef(POD, key.name.removeprefix(_POD), key.namespace))
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return NOTHING
        return self._pod_plan(key, pod, reader)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """Who wrote in between has made the key come back; what is gone needs nothing."""
        del key, write, reader, now
        if isinstance(error, NotFoundError | ConflictError):
            return NOTHING
        raise error

    def _pod_plan(self, key: ObjectKey, pod: JsonObject, reader: Reader) -> Plan:
        """Make the claims that are missing, then say in the pod's status which they are."""
        known = _generated(pod)
        owned: dict[str, JsonObject] | None = None
        missing: list[Write] = []
        named: list[JsonObject] = []
        for entry in pod["spec"].get("resourceClaims") or ():
            if entry.get("resourceClaimTemplateName") is None or _is_there(pod, entry, reader):
                continue
            owned = _owned(pod, reader) if owned is None else owned
            if (claim := owned.get(entry["name"])) is not None:
                if known.get(entry["name"]) != claim["metadata"]["name"]:
                    names = {"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]}
                    named.append(names)
                continue
            made = self._made(key, pod, entry, reader)
            if isinstance(made, Notice):
                return Plan(notices=(made,))
            missing.append(made)
        if missing:
            return Plan(missing)
        if named:
            return Plan((_named(pod, named),))
        return Plan([*_reservations(pod, reader)])

    def _made(
        self, key: ObjectKey, pod: JsonObject, entry: ReadOnlyObject, reader: Reader
    ) -> Create | Notice:
        """A claim from its template; if there is none yet, what people should know about it."""
        name, namespace = entry["resourceClaimTemplateName"], key.namespace
        template = reader.find(ObjectRef(TEMPLATE, name, namespace))
        if template is not None:
            return Create(_claim_from(pod, entry["name"], template["spec"]), options=LASTING)
        self._waiting.setdefault(ObjectKey(namespace, name), {})[key] = None
        problem = (
            f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}"'
        )
        text = f"PodResourceClaim {entry['name']}: {problem} not found"
        return Notice(regarding(pod), WARNING, "FailedResourceClaimCreation", text, REPORTER)


# -- which keys a change concerns ------------------------------------------------------------------


def _concerned(change: Change) -> Iterator[ObjectKey]:
    """A pod that may need claims, or the claims of one that has ended."""
    record, previous = change.record, change.previous
    pod = change.object
    if change.type is ChangeType.DELETED or _has_ended(pod):
        for name in _claim_names(pod):
            yield ObjectKey(record.namespace, _CLAIM + name)
        return
    is_placed = bool(record.node) and (previous is None or not previous.node)
    if previous is None or is_placed or not _has_all(pod):
        yield ObjectKey(record.namespace, _POD + record.name)


def _of_claim(change: Change) -> Iterator[ObjectKey]:
    """A new claim is news to its pod; any claim may have lost those who use it."""
    namespace, claim = change.record.namespace, change.object
    owner = _owning_pod(claim)
    if change.type is ChangeType.ADDED and owner is not None:
        yield ObjectKey(namespace, _POD + owner["name"])
    is_deleted = claim["metadata"].get("deletionTimestamp") is not None
    if is_deleted or change.type is ChangeType.ADDED or _was_unreserved(change):
        yield ObjectKey(namespace, _CLAIM + change.record.name)


def _was_unreserved(change: Change) -> bool:
    before = change.previous_object
    return before is not None and bool(_reserved(before)) and not _reserved(change.object)


def _has_all(pod: ReadOnlyObject) -> bool:
    """Whether the pod's status tells of a claim for each template that it names."""
    known = _generated(pod)
    return all(
        each.get("resourceClaimTemplateName") is None or each["name"] in known
        for each in pod["spec"].get("resourceClaims") or ()
    )


def _claim_names(pod: ReadOnlyObject) -> list[str]:
    """The claims that a pod uses, that for its extended resources included."""
    known = _generated(pod)
    names = [
        each.get("resourceClaimName") or known.get(each["name"])
        for each in pod["spec"].get("resourceClaims") or ()
    ]
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    return [each for each in dict.fromkeys((*names, extended.get("resourceClaimName"))) if each]


# -- claims of pods --------------------------------------------------------------------------------


def _generated(pod: ReadOnlyObject) -> dict[str, str]:
    listed = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return {each.get("name", ""): each.get("resourceClaimName") or "" for each in listed}


def _is_there(pod: JsonObject, entry: ReadOnlyObject, reader: Reader) -> bool:
    """Whether the claim that the status tells of exists and is the pod's."""
    known = _generated(pod)
    if entry["name"] not in known:
        return False
    name = known[entry["name"]]
    if not name:
        return True
    claim = reader.find(ObjectRef(CLAIM, name, pod["metadata"]["namespace"]))
    owner = None if claim is None else _owning_pod(claim)
    return owner is not None and bool(owner["uid"] == pod["metadata"]["uid"])


def _owned(pod: JsonObject, reader: Reader) -> dict[str, JsonObject]:
    """The claims that were made for the pod, by the names of their entries."""
    found: dict[str, JsonObject] = {}
    for claim in reader.owned(CLAIM, pod["metadata"]["uid"]):
        name = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME)
        if name is not None:
            found.setdefault(name, claim)
    return found


def _claim_from(pod: JsonObject, entry: str, template: ReadOnlyObject) -> JsonObject:
    metadata, given = pod["metadata"], template.get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    made = {
        "namespace": metadata["namespace"],
        "generateName": _base_name(metadata["name"], entry),
        "ownerReferences": [{**owner, "controller": True}],
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: entry},
    }
    if given.get("labels"):
        made["labels"] = dict(given["labels"])
    gvk = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return {**gvk, "metadata": made, "spec": template.get("spec") or {}}


def _base_name(pod: str, entry: str) -> str:
    """What a generated name begins with: long names are both shortened."""
    base = f"{pod}-{entry}-"
    if len(base) <= LONGEST_BASE:
        return base
    return (
        f"{pod[: len(pod) * LONGEST_BASE // len(base)]}-"
        f"{entry[: len(entry) * LONGEST_BASE // len(base)]}"
    )


def _named(pod: JsonObject, statuses: list[JsonObject]) -> Patch:
    patch = {"status": {"resourceClaimStatuses": statuses}}
    return Patch(ObjectRef.to(pod), patch, PatchType.STRATEGIC, "status", options=LASTING)


def _reservations(pod: JsonObject, reader: Reader) -> Iterator[Write]:
    """A pod that came with a node: nobody else reserves its claims."""
    if not pod["spec"].get("nodeName"):
        return
    metadata = pod["metadata"]
    for name in _claim_names(pod):
        claim = reader.find(ObjectRef(CLAIM, name, metadata["namespace"]))
        status = (claim or {}).get("status") or {}
        if claim is None or status.get("allocation") is None:
            continue
        if any(each["uid"] == metadata["uid"] for each in _reserved(claim)):
            continue
        consumer = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        reserved = {**status, "reservedFor": [*_reserved(claim), consumer]}
        yield Update({**claim, "status": reserved}, "status")


# -- claims that nobody uses -----------------------------------------------------------------------


def _claim_plan(claim: JsonObject, reader: Reader) -> Plan:
    metadata, status = claim["metadata"], claim.get("status") or {}
    reserved = _reserved(claim)
    remaining = [each for each in reserved if _is_used(each, metadata["namespace"], reader)]
    protected = FINALIZER in (metadata.get("finalizers") or ())
    if len(remaining) < len(reserved):
        kept = {**status, "reservedFor": remaining}
        if not remaining:
            kept = {name: each for name, each in status.items() if name != "reservedFor"}
            if protected:
                kept = {name: each for name, each in kept.items() if name in ("conditions",)}
        return Plan((Update({**claim, "status": kept}, "status"),))
    if protected and not remaining and metadata.get("deletionTimestamp"):
        if status.get("allocation") is not None:
            kept = {name: each for name, each in status.items() if name == "conditions"}
            return Plan((Update({**claim, "status": kept}, "status"),))
        return Plan((_released(claim),))
    if remaining:
        return NOTHING
    if protected and status.get("allocation") is None and not reserved:
        return Plan((_released(claim), *_unneeded(claim, reader)))
    return Plan([*_unneeded(claim, reader)])


def _is_used(consumer: ReadOnlyObject, namespace: str, reader: Reader) -> bool:
    """Whether a reservation stands; of what is no pod we know nothing."""
    if consumer.get("apiGroup") or consumer.get("resource") != "pods":
        return True
    pod = reader.find(ObjectRef(POD, consumer.get("name", ""), namespace))
    if pod is None or _has_ended(pod):
        return False
    return bool(pod["metadata"]["uid"] == consumer.get("uid"))


def _released(claim: JsonObject) -> Patch:
    """Without the finalizer that kept it while it was allocated."""
    kept = [each for each in claim["metadata"]["finalizers"] if each != FINALIZER]
    return Patch(ObjectRef.to(claim), {"metadata": {"finalizers": kept or None}})


def _unneeded(claim: JsonObject, reader: Reader) -> Iterator[Write]:
    """The deletion of a claim whose pod has ended; when the pod is gone, others see to it."""
    owner = _owning_pod(claim)
    if owner is None or claim["metadata"].get("deletionTimestamp"):
        return
    pod = reader.find(ObjectRef(POD, owner["name"], claim["metadata"]["namespace"]))
    if pod is not None and (pod["metadata"]["uid"] != owner["uid"] or _has_ended(pod)):
        yield Delete(ObjectRef.to(claim))


def _has_ended(pod: ReadOnlyObject) -> bool:
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return True
    deleted = pod["metadata"].get("deletionTimestamp") is not None
    return deleted and not pod["spec"].get("nodeName")


def _reserved(claim: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    found: Sequence[ReadOnlyObject] = (claim.get("status") or {}).get("reservedFor") or ()
    return found


def _owning_pod(claim: ReadOnlyObject) -> ReadOnlyObject | None:
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == "Pod":
            found: ReadOnlyObject = owner
            return found
    return None


def _claim_ref(key: ObjectKey) -> ObjectRef:
    return ObjectRef(CLAIM, key.name.removeprefix(_CLAIM), key.namespace)


def resource_claim(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(ResourceClaimReconciler(), context)
