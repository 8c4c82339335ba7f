"""The claims of a StatefulSet's pods: their names, and who owns them as the retention policy says.

Claims that go with the set belong to it; those that go when the set shrinks are handed to the pod
that is about to go, and the garbage collector takes them after it.
"""

from collections.abc import Iterator

from kubescene.api.kinds import POD
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")


def claim_templates(stateful_set: JsonObject) -> list[JsonObject]:
    return stateful_set["spec"].get("volumeClaimTemplates") or []


def claim_name(template: JsonObject, stateful_set: JsonObject, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def claims_of(stateful_set: JsonObject, ordinal: int) -> Iterator[JsonObject]:
    """The claims that a pod of this ordinal needs, as they would be created."""
    selected = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in claim_templates(stateful_set):
        given = template["metadata"]
        metadata = {name: each for name, each in given.items() if name != "creationTimestamp"}
        metadata["name"] = claim_name(template, stateful_set, ordinal)
        metadata["namespace"] = stateful_set["metadata"]["namespace"]
        metadata["labels"] = {**(given.get("labels") or {}), **selected}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": template["spec"],
        }


def with_claims(spec: JsonObject, stateful_set: JsonObject, ordinal: int) -> JsonObject:
    """A pod's spec with the volumes of the set's claims, before its others."""
    templates = claim_templates(stateful_set)
    if not templates:
        return spec
    claimed = {
        each["metadata"]["name"]: {
            "name": each["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(each, stateful_set, ordinal)},
        }
        for each in templates
    }
    others = [each for each in spec.get("volumes") or () if each["name"] not in claimed]
    return {**spec, "volumes": [*claimed.values(), *others]}


def uses_claims(pod: JsonObject, stateful_set: JsonObject, ordinal: int) -> bool:
    """Whether a pod has the volumes that the set's claims are for."""
    named = {
        each["name"]: (each.get("persistentVolumeClaim") or {}).get("claimName")
        for each in pod["spec"].get("volumes") or ()
    }
    return all(
        named.get(each["metadata"]["name"]) == claim_name(each, stateful_set, ordinal)
        for each in claim_templates(stateful_set)
    )


class ClaimSlot:
    """A pod of a set, as owner of claims: by name, and by uid if it is there."""

    __slots__ = ("name", "shrunk", "uid")

    def __init__(self, name: str, uid: str, *, shrunk: bool) -> None:
        self.name = name
        self.uid = uid
        self.shrunk = shrunk
        """Whether its ordinal is beyond the set's replicas."""


def is_deleted_with(stateful_set: JsonObject, when: str) -> bool:
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(when) == "Delete")


def is_stale(claim: JsonObject, member: ClaimSlot) -> bool:
    """Whether a claim still belongs to a pod of this name that has gone."""
    return any(
        refers_to_pod(each, member.name) and each["uid"] != member.uid for each in owners(claim)
    )


def changed_owners(
    claim: JsonObject, stateful_set: JsonObject, member: ClaimSlot
) -> list[JsonObject] | None:
    """The owners that a claim should have; None if it has them."""
    if is_up_to_date(claim, stateful_set, member):
        return None
    name = stateful_set["metadata"]["name"]
    kept = [
        each
        for each in owners(claim)
        if not refers_to_set(each, name) and not refers_to_pod(each, member.name)
    ]
    if has_another_controller(claim, stateful_set, member):
        return kept
    if member.shrunk and is_deleted_with(stateful_set, "whenScaled"):
        return [*kept, controller("v1", POD.kind, member.name, member.uid)]
    if is_deleted_with(stateful_set, "whenDeleted"):
        uid = stateful_set["metadata"]["uid"]
        return [*kept, controller(stateful_set["apiVersion"], "StatefulSet", name, uid)]
    return kept


def is_up_to_date(claim: JsonObject, stateful_set: JsonObject, member: ClaimSlot) -> bool:
    uid = stateful_set["metadata"]["uid"]
    known = {each["uid"]: each for each in owners(claim)}
    of_set, of_pod = uid in known, bool(member.uid) and member.uid in known
    if has_another_controller(claim, stateful_set, member):
        return not of_set and not of_pod
    ours = [known[each] for each in (uid, member.uid) if each in known]
    if not all(each.get("controller") for each in ours):
        return False
    handed = member.shrunk and is_deleted_with(stateful_set, "whenScaled")
    return of_pod == handed and of_set == (
        not handed and is_deleted_with(stateful_set, "whenDeleted")
    )


def has_another_controller(claim: JsonObject, stateful_set: JsonObject, member: ClaimSlot) -> bool:
    """Whether somebody else manages the claim: another kind, or a namesake that has gone."""
    own = stateful_set["metadata"]
    for each in owners(claim):
        if refers_to_set(each, own["name"]):
            if each["uid"] != own["uid"]:
                return True
        elif refers_to_pod(each, member.name):
            if each["uid"] != member.uid:
                return True
        elif each.get("controller"):
            return True
    return False


def owners(claim: JsonObject) -> list[JsonObject]:
    return claim["metadata"].get("ownerReferences") or []


def refers_to_set(reference: JsonObject, name: str) -> bool:
    group = reference["apiVersion"].rpartition("/")[0]
    return (group, reference["kind"], reference["name"]) == ("apps", "StatefulSet", name)


def refers_to_pod(reference: JsonObject, name: str) -> bool:
    named = (reference["apiVersion"], reference["kind"], reference["name"])
    return named == ("v1", POD.kind, name)


def controller(api_version: str, kind: str, name: str, uid: str) -> JsonObject:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
