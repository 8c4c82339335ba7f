"""PersistentVolumeClaims: what is asked for, and how little of it may change."""

from kubescene.api.quantity import parse
from kubescene.api.validation.equality import same, show_difference
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, STATUS, Path
from kubescene.api.validation.label_selectors import check_label_selector
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    NOT_POSITIVE,
    check_annotations,
    check_labels,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_label, dns_subdomain
from kubescene.api.validation.resources import ZERO
from kubescene.types import JsonObject

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_TEMPLATE_METADATA = frozenset({"labels", "annotations"})
_ONLY_SIZE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


def validate_claim(claim: JsonObject, errors: ErrorList) -> None:
    validate_metadata(claim.get("metadata") or {}, errors, namespaced=True, name_rule=dns_subdomain)
    check_claim_spec(claim.get("spec") or {}, errors, SPEC)


def check_claim_template(template: JsonObject, errors: ErrorList, path: Path) -> None:
    """The claim template of an ephemeral volume."""
    metadata = template.get("metadata") or {}
    at = path.child("metadata")
    check_annotations(metadata.get("annotations") or {}, errors, at.child("annotations"))
    check_labels(metadata.get("labels") or {}, errors, at.child("labels"))
    for field, value in metadata.items():
        if value and field not in _TEMPLATE_METADATA:
            errors.forbidden(at.child(field), "cannot be set")
    check_claim_spec(template.get("spec") or {}, errors, path.child("spec"))


def check_claim_spec(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    modes = spec.get("accessModes") or []
    if not modes:
        errors.required(path.child("accessModes"), "at least 1 access mode is required")
    check_label_selector(spec.get("selector"), errors, path.child("selector"))
    check_access_modes(modes, errors, path.child("accessModes"))
    requests = (spec.get("resources") or {}).get("requests") or {}
    _check_size(requests.get("storage"), errors, path.child("resources").key("storage"))
    for field in ("storageClassName", "volumeAttributesClassName"):
        if name := spec.get(field):
            errors.invalid_each(path.child(field), name, dns_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.not_supported(path.child("volumeMode"), mode, VOLUME_MODES)
    _check_data_sources(spec, errors, path)


def check_access_modes(modes: list[str], errors: ErrorList, path: Path) -> None:
    """Known modes, and ReadWriteOncePod only alone."""
    for mode in modes:
        if mode not in ACCESS_MODES:
            errors.not_supported(path, mode, ACCESS_MODES)
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _check_size(size: str | None, errors: ErrorList, path: Path) -> None:
    if size is None:
        errors.required(path)
    elif parse(size) <= ZERO:
        errors.invalid(path, str(parse(size)), NOT_POSITIVE)


def _check_data_sources(spec: JsonObject, errors: ErrorList, path: Path) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        _check_data_source(source, errors, path.child("dataSource"))
    if reference is not None:
        at = path.child("dataSourceRef")
        _check_data_source(reference, errors, at)
        if namespace := reference.get("namespace"):
            errors.invalid_each(at.child("namespace"), namespace, dns_label(namespace))
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        # The value shown is the path itself, which has no JSON form.
        errors.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        errors.invalid(path, {}, "must match dataSourceRef")


def _check_data_source(source: JsonObject, errors: ErrorList, path: Path) -> None:
    for field in ("name", "kind"):
        if not source.get(field):
            errors.required(path.child(field))
    kind, group = source.get("kind", ""), source.get("apiGroup") or ""
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.invalid(path, kind, detail)
    if group:
        errors.invalid_each(path.child("apiGroup"), group, dns_subdomain(group))


def validate_claim_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """The size of a bound claim may grow; its volume is set once; the rest stays."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    validate_claim(new, errors)
    new_spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    bound = (new.get("status") or {}).get("phase") == "Bound"
    annotation, before = (_class_annotation(claim) for claim in (new, old))
    if (annotation or "") != (before or ""):
        at = METADATA.child("annotations").child(_CLASS_ANNOTATION)
        errors.invalid(at, annotation or "", IMMUTABLE)
    allowed = _with_allowed_changes(new_spec, old_spec, bound, before)
    if not same(allowed, old_spec):
        difference = show_difference(old_spec, allowed)
        errors.forbidden(SPEC, f"{_ONLY_SIZE}\n{difference}")
    _check_shrinking(new_spec, old, errors)
    if new_spec.get("volumeMode") != old_spec.get("volumeMode"):
        errors.invalid(Path("volumeMode"), new_spec.get("volumeMode"), IMMUTABLE)
    _check_attributes_class(new_spec, old, errors)


def _class_annotation(claim: JsonObject) -> str | None:
    annotations = claim["metadata"].get("annotations") or {}
    name: str | None = annotations.get(_CLASS_ANNOTATION)
    return name


def _with_allowed_changes(
    new: JsonObject, old: JsonObject, bound: bool, old_class: str | None
) -> JsonObject:
    """The new spec, with what may change put back to what it was."""
    spec = dict(new)
    if not old.get("volumeName"):
        spec["volumeName"] = old.get("volumeName")
    gains_class = old.get("storageClassName") is None and new.get("storageClassName") is not None
    if gains_class and old_class in (None, new["storageClassName"]):
        spec["storageClassName"] = None
    if bound:
        spec["volumeAttributesClassName"] = old.get("volumeAttributesClassName")
        resources = spec.get("resources") or {}
        if resources.get("requests") is not None:
            spec["resources"] = {**resources, "requests": dict(resources["requests"])}
            spec["resources"]["requests"]["storage"] = _requested(old)
    return spec


def _requested(spec: JsonObject) -> str:
    requests = (spec.get("resources") or {}).get("requests") or {}
    size: str = requests.get("storage") or "0"
    return size


def _check_shrinking(new_spec: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """A claim that failed to grow may ask for less again, but for more than it has."""
    size, before = parse(_requested(new_spec)), parse(_requested(old.get("spec") or {}))
    capacity = (old.get("status") or {}).get("capacity") or {}
    if size < before and size <= parse(capacity.get("storage") or "0"):
        at = SPEC.child("resources").child("requests").child("storage")
        errors.forbidden(at, "field can not be less than status.capacity")


def _check_attributes_class(new_spec: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    name = new_spec.get("volumeAttributesClassName")
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    unchanged = name == (old.get("spec") or {}).get("volumeAttributesClassName")
    if unchanged or current is None or name:
        return
    what = "nil" if name is None else "empty string"
    errors.forbidden(
        SPEC.child("volumeAttributesClassName"),
        f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil",
    )


def validate_claim_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    if not new["metadata"].get("resourceVersion"):
        errors.required(Path("resourceVersion"))
    if not (new.get("spec") or {}).get("accessModes"):
        errors.required(Path("Spec").child("accessModes"))
    for name, amount in ((new.get("status") or {}).get("capacity") or {}).items():
        if parse(amount) < ZERO:
            at = STATUS.child("capacity").key(name)
            errors.invalid(at, parse(amount).value(), "must be a valid resource quantity")
