"""Events of the core group: they belong to the namespace of what they are about."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain, label_key, path_segment, size
from kubescene.types import JsonObject

_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}


def validate_event(event: JsonObject, errors: ErrorList) -> None:
    _check_event(event, errors)
    if not errors:
        validate_metadata(
            event.get("metadata") or {},
            errors,
            namespaced=True,
            name_rule=path_segment,
            kube_finalizers=False,
        )


def validate_event_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)
    _check_event(new, errors)


def _check_event(event: JsonObject, errors: ErrorList) -> None:
    namespace = (event.get("metadata") or {}).get("namespace", "")
    about = (event.get("involvedObject") or {}).get("namespace", "")
    timed = event.get("eventTime") is not None
    if timed:
        fits = bool(about) or namespace in ("default", "kube-system")
    else:
        fits = namespace == about if about else namespace in ("", "default")
    if not fits:
        at = Path("involvedObject").child("namespace")
        errors.invalid(at, about, "does not match event.namespace")
    if timed:
        _check_report(event, errors)
    errors.invalid_each(Path("namespace"), namespace, dns_subdomain(namespace))


def _check_report(event: JsonObject, errors: ErrorList) -> None:
    """What an event in the newer form must tell."""
    reporter = event.get("reportingComponent", "")
    if not reporter:
        errors.required(Path("reportingComponent"))
    errors.invalid_each(Path("reportingComponent"), reporter, label_key(reporter))
    for field, limit in _LIMITS.items():
        text = event.get(field, "")
        if not text and field != "message":
            errors.required(Path(field))
        if size(text) > limit:
            errors.invalid(Path(field), "", f"can have at most {limit} characters")
