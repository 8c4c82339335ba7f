"""CustomResourceDefinitions: names, versions, and that every schema is structural.

A schema is structural when it says the type of every field it mentions. Deeper rules about
schemas (defaults, CEL) belong to who evaluates them.
"""

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
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
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
    _check_versions(spec.get("versions") or [], errors)
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            errors.required(_NAMES.child(field))
    _check_names(names, errors)
    if (conversion := spec.get("conversion")) is not None:
        _check_conversion(conversion, errors, SPEC.child("conversion"))


def _check_conversion(conversion: JsonObject, errors: ErrorList, path: Path) -> None:
    strategy = conversion.get("strategy")
    if not strategy:
        errors.required(path.child("strategy"))
    if strategy != "Webhook":
        return
    webhook = conversion.get("webhook") or {}
    config = webhook.get("clientConfig")
    if config is None:
        detail = "required when strategy is set to Webhook"
        errors.required(path.child("webhookClientConfig"), detail)
    elif config.get("url") is None and config.get("service") is None:
        detail = "exactly one of url or service is required"
        errors.required(path.child("webhookClientConfig"), detail)
    if not webhook.get("conversionReviewVersions"):
        errors.required(path.child("conversionReviewVersions"))


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


def _check_versions(versions: list[JsonObject], errors: ErrorList) -> None:
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    shared = len({str(schema) for schema in schemas}) == 1
    for position, schema in enumerate(schemas):
        if schema is None:
            errors.required(_VERSIONS.index(position).child("schema").child("openAPIV3Schema"))
    for position, version in enumerate(versions):
        name = version.get("name", "")
        if complaints := dns_1035_label(name):
            errors.invalid(_VERSIONS.index(position).child("name"), name, ",".join(complaints))
        if schemas[position] is not None and not shared:
            at = _VERSIONS.index(position).child("schema").child("openAPIV3Schema")
            _check_structural(schemas[position] or {}, errors, at)
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            at = _VERSIONS.index(position).child("deprecationWarning")
            detail = "can only be set for deprecated versions"
            errors.invalid(at, version["deprecationWarning"], detail)
        at = SPEC if len(versions) == 1 else _VERSIONS.index(position)
        _check_selectable(version, schemas[position], errors, at.child("selectableFields"))
    # Inside the server, equal schemas of all versions are kept once and not shown with them.
    shown = inner([{**version, "schema": None} for version in versions], DEFINITION_VERSION)
    _check_version_set(versions, shown if shared else versions, errors)
    if versions and (complaints := dns_1035_label(versions[0].get("name", ""))):
        errors.invalid(SPEC.child("version"), versions[0].get("name", ""), ",".join(complaints))
    if shared and schemas[0] is not None:
        at = SPEC.child("validation").child("openAPIV3Schema")
        _check_structural(schemas[0], errors, at)


def _check_selectable(
    version: JsonObject, schema: JsonObject | None, errors: ErrorList, path: Path
) -> None:
    """Fields to select by are fields of the schema."""
    for position, field in enumerate(version.get("selectableFields") or ()):
        at, json_path = path.index(position).child("jsonPath"), field.get("jsonPath", "")
        if not json_path:
            errors.required(at)
        elif not _has_field(schema or {}, json_path):
            detail = "is an invalid path: does not refer to a valid field"
            errors.invalid(at, json_path, detail)


def _has_field(schema: JsonObject, json_path: str) -> bool:
    for step in json_path.removeprefix(".").split("."):
        properties = schema.get("properties") or {}
        if step not in properties:
            return False
        schema = properties[step]
    return True


def _check_version_set(versions: list[JsonObject], shown: Any, errors: ErrorList) -> None:
    names = [version.get("name", "") for version in versions]
    if len(set(names)) != len(names):
        errors.invalid(_VERSIONS, shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.invalid(_VERSIONS, shown or None, detail)


def _check_structural(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    kind = schema.get("type", "")
    if not kind:
        errors.required(path.child("type"), "must not be empty at the root")
    elif kind != "object":
        errors.invalid(path.child("type"), kind, "must be object at the root")
    _check_children(schema, errors, path)


def _check_children(schema: JsonObject, errors: ErrorList, path: Path) -> None:
    for name, child in sorted((schema.get("properties") or {}).items()):
        at = path.child("properties").key(name)
        _check_typed(child, "specified object fields", errors, at)
    items, extra = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        _check_typed(items, "specified array items", errors, path.child("items"))
    if isinstance(extra, dict):
        at = path.child("additionalProperties")
        _check_typed(extra, "specified object fields", errors, at)


def _check_typed(schema: JsonObject, what: str, errors: ErrorList, path: Path) -> None:
    open_ended = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    kind = schema.get("type", "")
    if not kind and not open_ended:
        errors.required(path.child("type"), f"must not be empty for {what}")
    if kind and kind not in _TYPES:
        errors.not_supported(path.child("type"), kind, _TYPES)
    _check_children(schema, errors, path)


def _check_stored_versions(definition: JsonObject, spec: JsonObject, errors: ErrorList) -> None:
    stored = (definition.get("status") or {}).get("storedVersions") or []
    path = STATUS.child("storedVersions")
    if not stored:
        errors.invalid(path, stored, "must have at least one stored version")
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
