"""The status of a CustomResourceDefinition, decided with the write that makes it necessary.

kube-apiserver leaves this to controllers that follow a moment later: one accepts names that nobody
else in the group has, one establishes what was accepted. Here nobody has to wait for them.
"""

from collections.abc import Iterable

from kubescene.registry.objects import set_condition
from kubescene.types import JsonObject

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

_RESOURCE_NAMES = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
_KIND_NAMES = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def with_status(
    definition: JsonObject, status: JsonObject, others: Iterable[JsonObject], now: str
) -> JsonObject:
    """The definition with its status brought up to date.

    ``status`` is the one it had, ``others`` are all other definitions.
    """
    status = _with_stored_version(status, definition["spec"])
    if definition["spec"]["names"] != status.get("acceptedNames"):
        group = definition["spec"]["group"]
        rivals = [it for it in others if it["spec"]["group"] == group]
        status = _with_names(status, definition["spec"]["names"], rivals, now)
    return {**definition, "status": status}


def is_true(definition: JsonObject, condition: str) -> bool:
    """Whether the definition has this condition."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(it.get("type") == condition and it.get("status") == "True" for it in conditions)


def terminating(definition: JsonObject, now: str) -> JsonObject:
    """The definition as it waits for its objects to go."""
    metadata, status = definition["metadata"], definition.get("status") or {}
    finalizers = metadata.get("finalizers") or []
    if CLEANUP_FINALIZER not in finalizers:
        metadata = {**metadata, "finalizers": [*finalizers, CLEANUP_FINALIZER]}
    condition = _condition(
        "Terminating",
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    conditions = set_condition(status.get("conditions") or [], condition, now)
    return {**definition, "metadata": metadata, "status": {**status, "conditions": conditions}}


def _with_stored_version(status: JsonObject, spec: JsonObject) -> JsonObject:
    stored = status.get("storedVersions") or []
    storage = [it.get("name", "") for it in spec.get("versions") or () if it.get("storage")]
    added = [name for name in storage[:1] if name and name not in stored]
    return {**status, "storedVersions": [*stored, *added]} if added else status


def _with_names(
    status: JsonObject, asked: JsonObject, rivals: list[JsonObject], now: str
) -> JsonObject:
    accepted = status.get("acceptedNames") or {}
    names, (reason, message) = _accepted(asked, accepted, _claimed(rivals, accepted))
    naming = _condition(
        "NamesAccepted", "True" if reason == "NoConflicts" else "False", reason, message
    )
    conditions = set_condition(status.get("conditions") or [], naming, now)
    if not is_true({"status": status}, "Established"):
        if naming["status"] == "True":
            text = "the initial names have been accepted"
            established = _condition("Established", "True", "InitialNamesAccepted", text)
        else:
            text = "not all names are accepted"
            established = _condition("Established", "False", "NotAccepted", text)
        conditions = set_condition(conditions, established, now)
    return {**status, "conditions": conditions, "acceptedNames": names}


def _claimed(rivals: list[JsonObject], own: JsonObject) -> tuple[frozenset[str], frozenset[str]]:
    """Resource names and kinds that are taken in the group, one's own among them."""
    accepted = [own, *((it.get("status") or {}).get("acceptedNames") or {} for it in rivals)]
    resources = {name for it in accepted for name in it.get("shortNames") or ()}
    resources |= {it.get(field, "") for it in accepted for field, _ in _RESOURCE_NAMES}
    kinds = {it.get(field, "") for it in accepted for field, _ in _KIND_NAMES}
    return frozenset(resources), frozenset(kinds)


def _accepted(
    asked: JsonObject, own: JsonObject, claimed: tuple[frozenset[str], frozenset[str]]
) -> tuple[JsonObject, tuple[str, str]]:
    """The names that can be had, and what the last conflict was about."""
    names = dict(own)
    verdict = ("NoConflicts", "no conflicts found")
    resources, kinds = claimed
    for field, reason in _RESOURCE_NAMES:
        verdict = _take(field, reason, asked, names, resources) or verdict
    short = asked.get("shortNames") or []
    taken = [
        name for name in short if name in resources and name not in (own.get("shortNames") or ())
    ]
    if taken:
        verdict = ("ShortNamesConflict", _in_use(taken))
    elif short:
        names["shortNames"] = short
    else:
        names.pop("shortNames", None)
    for field, reason in _KIND_NAMES:
        verdict = _take(field, reason, asked, names, kinds) or verdict
    names.pop("categories", None)
    if asked.get("categories"):
        names["categories"] = asked["categories"]
    return names, verdict


def _take(
    field: str, reason: str, asked: JsonObject, names: JsonObject, claimed: frozenset[str]
) -> tuple[str, str] | None:
    name = asked.get(field, "")
    if name != names.get(field) and name in claimed:
        return reason, _in_use([name])
    names[field] = name
    return None


def _in_use(names: list[str]) -> str:
    texts = [f'"{name}" is already in use' for name in names]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _condition(kind: str, status: str, reason: str, message: str) -> JsonObject:
    return {"type": kind, "status": status, "reason": reason, "message": message}
