"""Events of the core group: they belong to the namespace of what they are about."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain, label_key, path_segment, size
from kubescene.types import JsonObject

LEAST_IN_SERIES = 2
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


def new_event_errors(event: JsonObject) -> ErrorList:
    """What a client that knows the newer group must tell, and must not, in the form it is kept."""
    errors = ErrorList()
    series = event.get("series")
    if series is not None:
        if (series.get("count") or 0) < LEAST_IN_SERIES:
            detail = f"should be at least {LEAST_IN_SERIES}"
            errors.invalid(Path("series").child("count"), "", detail)
        if series.get("lastObservedTime") is None:
            errors.required(Path("series").child("lastObservedTime"))
    if event.get("eventTime") is None:
        errors.required(Path("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        errors.invalid(Path("type"), "", f"has invalid value: {event.get('type') or ''}")
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            errors.invalid(Path(field), "", "needs to be unset")
    if any((event.get("source") or {}).values()):
        errors.invalid(Path("source"), "", "needs to be unset")
    return errors


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
