"""The rules for ``metadata`` that hold for every kind.

On creation the name must fit its kind, the namespace must be there or not, and labels,
annotations, owners and finalizers must be well formed. On update most of what identifies an
object must stay.
"""

from typing import Any

from kubescene.api.scheme import GroupVersionKind
from kubescene.api.validation.equality import same
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, Path
from kubescene.api.validation.names import (
    NameRule,
    as_prefix,
    dns_label,
    label_key,
    label_value,
    path_segment,
    size,
)
from kubescene.types import JsonObject

ANNOTATIONS_SIZE_LIMIT = 256 * 1024
FIELD_MANAGER_LIMIT = 128
IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"

_EVENT = GroupVersionKind("", "v1", "Event")
_KUBE_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_FIXED_FIELDS = ("name", "namespace", "uid", "creationTimestamp")
_FIXED_OPTIONAL_FIELDS = ("deletionTimestamp", "deletionGracePeriodSeconds")


def validate_metadata(
    metadata: JsonObject,
    errors: ErrorList,
    *,
    namespaced: bool,
    name_rule: NameRule,
    path: Path = METADATA,
    kube_finalizers: bool = True,
) -> None:
    """Metadata of a new object, after its name was generated.

    ``kube_finalizers`` is off for the kinds that may carry any short finalizer.
    """
    if prefix := metadata.get("generateName"):
        _check_prefix(prefix, name_rule, errors, path)
    if name := metadata.get("name"):
        if complaints := name_rule(name):
            errors.invalid_each(path.child("name"), name, complaints)
    else:
        errors.required(path.child("name"), "name or generateName is required")
    _check_namespace(metadata.get("namespace"), namespaced, errors, path)
    if metadata.get("generation", 0) < 0:
        errors.invalid(path.child("generation"), metadata["generation"], NOT_NEGATIVE)
    _check_maps(metadata, errors, path)
    if finalizers := metadata.get("finalizers"):
        _check_finalizers(finalizers, errors, path.child("finalizers"))
    if managed := metadata.get("managedFields"):
        _check_managed_fields(managed, errors, path.child("managedFields"))
    if finalizers and kube_finalizers:
        check_kube_finalizers(finalizers, errors, path.child("finalizers"))


def validate_metadata_update(
    new: JsonObject,
    old: JsonObject,
    errors: ErrorList,
    *,
    path: Path = METADATA,
    kube_finalizers: bool = True,
) -> None:
    """What may change in the metadata of an existing object."""
    finalizers = new.get("finalizers") or []
    if new is not old or not new.get("resourceVersion"):
        _check_change(new, old, finalizers, errors, path)
    _check_maps(new, errors, path)
    if managed := new.get("managedFields"):
        _check_managed_fields(managed, errors, path.child("managedFields"))
    if finalizers and kube_finalizers:
        check_kube_finalizers(finalizers, errors, path.child("finalizers"))


def _check_change(
    new: JsonObject, old: JsonObject, finalizers: list[str], errors: ErrorList, path: Path
) -> None:
    """What an update has to keep."""
    if old.get("deletionTimestamp") is not None:
        _check_no_new_finalizers(finalizers, old.get("finalizers") or [], errors, path)
    if not new.get("resourceVersion"):
        errors.invalid(path.child("resourceVersion"), "", "must be specified for an update")
    if new.get("generation", 0) < old.get("generation", 0):
        errors.invalid(
            path.child("generation"), new.get("generation", 0), "must not be decremented"
        )
    for field in _FIXED_FIELDS:
        if (new.get(field) or "") != (old.get(field) or ""):
            errors.invalid(path.child(field), _fixed_value(new, field), IMMUTABLE)
    for field in _FIXED_OPTIONAL_FIELDS:
        if new.get(field) != old.get(field):
            errors.invalid(path.child(field), new.get(field), IMMUTABLE)


def check_not_negative(
    holder: JsonObject, fields: tuple[str, ...], errors: ErrorList, path: Path
) -> None:
    """Counts and durations that may be absent but not below zero."""
    for field in fields:
        value = holder.get(field)
        if value is not None and value < 0:
            errors.invalid(path.child(field), value, NOT_NEGATIVE)


def check_immutable(
    new: JsonObject, old: JsonObject, field: str, errors: ErrorList, path: Path
) -> None:
    """A field that keeps the meaning it was created with."""
    if not same(new.get(field), old.get(field), field):
        errors.invalid(path.child(field), new.get(field), IMMUTABLE)


def _fixed_value(metadata: JsonObject, field: str) -> Any:
    # A zero time is null on the wire, a missing string is empty.
    return metadata.get(field) or (None if field == "creationTimestamp" else "")


def _check_prefix(prefix: str, name_rule: NameRule, errors: ErrorList, path: Path) -> None:
    if name_rule is path_segment:
        complaints = tuple(f"may not contain '{bad}'" for bad in "/%" if bad in prefix)
    else:
        complaints = name_rule(as_prefix(prefix))
    errors.invalid_each(path.child("generateName"), prefix, complaints)


def _check_namespace(
    namespace: str | None, namespaced: bool, errors: ErrorList, path: Path
) -> None:
    if not namespaced:
        if namespace:
            errors.forbidden(path.child("namespace"), "not allowed on this type")
    elif not namespace:
        errors.required(path.child("namespace"))
    elif complaints := dns_label(namespace):
        errors.invalid_each(path.child("namespace"), namespace, complaints)


def _check_maps(metadata: JsonObject, errors: ErrorList, path: Path) -> None:
    at = _MAPS if path is METADATA else _paths_of_maps(path)
    if labels := metadata.get("labels"):
        check_labels(labels, errors, at[0])
    if annotations := metadata.get("annotations"):
        check_annotations(annotations, errors, at[1])
    if owners := metadata.get("ownerReferences"):
        _check_owners(owners, errors, at[2])


def _paths_of_maps(path: Path) -> tuple[Path, Path, Path]:
    return path.child("labels"), path.child("annotations"), path.child("ownerReferences")


_MAPS = _paths_of_maps(METADATA)


def check_labels(labels: dict[str, str], errors: ErrorList, path: Path) -> None:
    """Keys and values of a label map, a node selector or ``matchLabels``."""
    for key, value in labels.items():
        if complaints := label_key(key):
            errors.invalid_each(path, key, complaints)
        if complaints := label_value(value):
            errors.invalid_each(path, value, complaints)


def check_annotations(annotations: dict[str, str], errors: ErrorList, path: Path) -> None:
    """Keys (in any case) and total size of annotations."""
    total = 0
    for key, value in annotations.items():
        if complaints := label_key(key.lower()):
            errors.invalid_each(path, key, complaints)
        total += size(key) + size(value)
    if total > ANNOTATIONS_SIZE_LIMIT:
        errors.too_long(path, ANNOTATIONS_SIZE_LIMIT)


def _check_owners(owners: list[JsonObject], errors: ErrorList, path: Path) -> None:
    controller = ""
    for owner in owners:
        _check_owner(owner, errors, path)
        if not owner.get("controller"):
            continue
        name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            errors.invalid(
                path,
                owners,
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {name}',
            )
        else:
            controller = name


def _check_owner(owner: JsonObject, errors: ErrorList, path: Path) -> None:
    api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
    gvk = GroupVersionKind.of(api_version, kind)
    if not gvk.version:
        errors.invalid(path.child("apiVersion"), api_version, "version must not be empty")
    for field in ("kind", "name", "uid"):
        if not owner.get(field):
            errors.invalid(path.child(field), "", "must not be empty")
    if gvk == _EVENT:
        errors.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")


def _check_finalizers(finalizers: list[str], errors: ErrorList, path: Path) -> None:
    for finalizer in finalizers:
        errors.invalid_each(path, finalizer, label_key(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.invalid(
            path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"
        )


def check_kube_finalizers(finalizers: list[str], errors: ErrorList, path: Path) -> None:
    """Finalizers without a domain must be ones that Kubernetes itself knows."""
    for position, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _KUBE_FINALIZERS:
            errors.invalid(
                path.index(position),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            )


def _check_no_new_finalizers(new: list[str], old: list[str], errors: ErrorList, path: Path) -> None:
    if extra := sorted(set(new) - set(old)):
        shown = ", ".join(f'"{finalizer}"' for finalizer in extra)
        errors.forbidden(
            path.child("finalizers"),
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{shown}}}",
        )


def _check_managed_fields(managed: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, entry in enumerate(managed):
        if entry.get("operation") not in ("Apply", "Update"):
            errors.invalid(
                path.index(position).child("operation"),
                entry.get("operation", ""),
                "must be `Apply` or `Update`",
            )
        if entry.get("fieldsType") not in (None, "", "FieldsV1"):
            errors.invalid(
                path.index(position).child("fieldsType"), entry["fieldsType"], "must be `FieldsV1`"
            )
        if size(entry.get("manager") or "") > FIELD_MANAGER_LIMIT:
            errors.too_long(path.index(position).child("manager"), FIELD_MANAGER_LIMIT)
