"""CustomResourceDefinitions: names and versions.

What schemas say is looked at in `kubescene.api.schemas.structural_rules`.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from kubescene.api.validation.field_errors import ErrorList, FieldError
from kubescene.api.validation.field_paths import SPEC, STATUS, Path
from kubescene.api.validation.inner_forms import DEFINITION_VERSION, inner
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import Complaints, dns_1035_label, dns_subdomain
from kubescene.types import JsonObject

_SCOPES = ("Cluster", "Namespaced")
_LONGEST_WARNING = 256
_VERSIONS = SPEC.child("versions")
_NAMES = SPEC.child("names")
_MIXED_CASE = "may have mixed case, but should otherwise match: "


def validate_definition(definition: JsonObject, errors: ErrorList) -> None:
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    required = f"{names.get('plural', '')}.{spec.get('group', '')}"

    def name_rule(name: str) -> Complaints:
        complaints = dns_subdomain(name)
        if name == required:
            return complaints
        return (*complaints, 'must be spec.names.plural+"."+spec.group')

    validate_metadata(
        definition.get("metadata") or {},
        errors,
        namespaced=False,
        name_rule=name_rule,
        kube_finalizers=False,
    )
    errors += _spec_errors(orjson.dumps(spec))
    _check_stored_versions(definition, spec, errors)


@lru_cache(maxsize=16)
def _spec_errors(encoded: bytes) -> tuple[FieldError, ...]:
    """What is wrong with a spec. Many worlds have the same few definitions: they are known."""
    spec, errors = orjson.loads(encoded), ErrorList()
    _check_spec(spec, spec.get("names") or {}, errors)
    return tuple(errors)


def _check_spec(spec: JsonObject, names: JsonObject, errors: ErrorList) -> None:
    _check_group(spec.get("group", ""), errors, SPEC.child("group"))
    scope = spec.get("scope", "")
    if not scope:
        errors.required(SPEC.child("scope"))
    elif scope not in _SCOPES:
        errors.not_supported(SPEC.child("scope"), scope, _SCOPES)
    _check_versions(spec.get("versions"), errors)
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            errors.required(_NAMES.child(field))
    _check_names(names, errors)


def _check_group(group: str, errors: ErrorList, path: Path) -> None:
    if not group:
        errors.required(path)
    elif complaints := dns_subdomain(group):
        errors.invalid(path, group, ",".join(complaints))
    elif "." not in group:
        errors.invalid(path, group, "should be a domain with at least one dot")


def _check_names(names: JsonObject, errors: ErrorList) -> None:
    for field in ("plural", "singular"):
        if (name := names.get(field)) and (complaints := dns_1035_label(name)):
            errors.invalid(_NAMES.child(field), name, ",".join(complaints))
    for field in ("kind", "listKind"):
        if (name := names.get(field)) and (complaints := dns_1035_label(name.lower())):
            errors.invalid(_NAMES.child(field), name, _MIXED_CASE + ",".join(complaints))
    kind = names.get("kind")
    if kind and kind == names.get("listKind"):
        errors.invalid(_NAMES.child("listKind"), kind, "kind and listKind may not be the same")
    for field in ("shortNames", "categories"):
        for position, name in enumerate(names.get(field) or ()):
            if complaints := dns_1035_label(name):
                at = _NAMES.child(field).index(position)
                errors.invalid(at, name, ",".join(complaints))


def _check_versions(given: list[JsonObject] | None, errors: ErrorList) -> None:
    versions = given or []
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    shared = len({str(schema) for schema in schemas}) == 1
    for position, schema in enumerate(schemas):
        if schema is None:
            errors.required(_VERSIONS.index(position).child("schema").child("openAPIV3Schema"))
    for position, version in enumerate(versions):
        name = version.get("name", "")
        if complaints := dns_1035_label(name):
            errors.invalid(_VERSIONS.index(position).child("name"), name, ",".join(complaints))
        at = _VERSIONS.index(position).child("deprecationWarning")
        errors.invalid_each(at, version.get("deprecationWarning"), _warning_complaints(version))
    # Inside the server, equal schemas of all versions are kept once and not shown with them.
    shown = inner([{**version, "schema": None} for version in versions], DEFINITION_VERSION)
    _check_version_set(versions, shown if shared else given, errors)
    if versions and (complaints := dns_1035_label(versions[0].get("name", ""))):
        errors.invalid(SPEC.child("version"), versions[0].get("name", ""), ",".join(complaints))


def _warning_complaints(version: JsonObject) -> Iterator[str]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > _LONGEST_WARNING:
        yield f"must be <= {_LONGEST_WARNING} characters long"
    if not warning:
        yield "must not be an empty string"
    for position, character in enumerate(warning):
        if not character.isprintable():
            at = len(warning[:position].encode())
            fault = f"non-printable character found at index {at}"
            yield f"must only contain printable UTF-8 characters; {fault}"
            return


def _check_version_set(versions: list[JsonObject], shown: Any, errors: ErrorList) -> None:
    names = [version.get("name", "") for version in versions]
    if len(set(names)) != len(names):
        errors.invalid(_VERSIONS, shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.invalid(_VERSIONS, shown, detail)


def _check_stored_versions(definition: JsonObject, spec: JsonObject, errors: ErrorList) -> None:
    stored = (definition.get("status") or {}).get("storedVersions") or []
    path = STATUS.child("storedVersions")
    if not stored:
        errors.invalid(path, stored or None, "must have at least one stored version")
        return
    versions = {version.get("name"): version for version in spec.get("versions") or ()}
    storage = [name for name, version in versions.items() if version.get("storage")]
    for name in storage:
        if name not in stored:
            errors.invalid(path, stored, f"must have the storage version {name}")
    for position, name in enumerate(stored):
        if name not in versions:
            errors.invalid(
                path.index(position),
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions",
            )


def validate_definition_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Scope, kind and plural stay once the definition was established."""
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _check_spec(spec, spec.get("names") or {}, errors)
    if _is_established(old):
        for field in ("scope",):
            if spec.get(field) != before.get(field):
                errors.invalid(SPEC.child(field), spec.get(field, ""), "field is immutable")
        _check_fixed_names(spec, before, errors)
    _check_stored_versions(new, spec, errors)


def _is_established(definition: JsonObject) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in conditions
    )


def _check_fixed_names(spec: JsonObject, before: JsonObject, errors: ErrorList) -> None:
    now, was = spec.get("names") or {}, before.get("names") or {}
    if now.get("kind") != was.get("kind"):
        errors.invalid(_NAMES.child("kind"), now.get("kind", ""), "field is immutable")
    if spec.get("group") != before.get("group"):
        errors.invalid(SPEC.child("group"), spec.get("group", ""), "field is immutable")
    if now.get("plural") != was.get("plural"):
        errors.invalid(_NAMES.child("plural"), now.get("plural", ""), "field is immutable")
