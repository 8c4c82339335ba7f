"""What a CustomResourceDefinition says beside its schemas: columns, parts, fields to select by, how
versions are converted."""

from collections.abc import Iterator
from typing import Any

from kubescene.api.schemas.simple_paths import valid_field_path
from kubescene.api.schemas.structural_rules import shared_parts
from kubescene.api.schemas.urls import parse_url
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, Path
from kubescene.api.validation.names import dns_1035_label, dns_subdomain
from kubescene.types import JsonObject

APPROVAL = "api-approved.kubernetes.io"
MOST_SELECTABLE = 8

_PROTECTED = ("k8s.io", "kubernetes.io")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (*("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),)
_SELECTABLE = ("string", "boolean", "integer")
_STRATEGIES = ("None", "Webhook")
_REVIEWS = ("v1", "v1beta1")
NOT_CONVERTED = (
    "nobody calls webhooks: between versions only apiVersion changes, as by strategy None"
)
_URL_FORM = "desired format: https://host[/path]"
_NOT_WEBHOOK = "should not be set when strategy is not set to Webhook"


def conversion_in_vain(spec: JsonObject) -> str:
    """What is said where somebody counts on a conversion webhook; empty if nobody does."""
    served = [it for it in spec.get("versions") or () if it.get("served") or it.get("storage")]
    strategy = (spec.get("conversion") or {}).get("strategy")
    if strategy != "Webhook" or len(served) < 2:
        return ""
    return NOT_CONVERTED


def check_parts(definition: JsonObject, errors: ErrorList) -> None:
    spec = definition.get("spec") or {}
    _check_approval(definition, spec.get("group") or "", errors)
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        errors.invalid(SPEC.child("preserveUnknownFields"), True, detail)
    for parts, path, _ in shared_parts(spec, "subresources"):
        if parts.get("scale") is not None:
            _check_scale(parts["scale"], errors, path)
    for columns, path, _ in shared_parts(spec, "additionalPrinterColumns"):
        for position, column in enumerate(columns):
            _check_column(column, errors, path.index(position))
    for fields, path, version in shared_parts(spec, "selectableFields"):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        _check_selectable(fields, schema, errors, path)
    if (conversion := spec.get("conversion")) is not None:
        _check_conversion(conversion, errors, SPEC.child("conversion"))


def _check_approval(definition: JsonObject, group: str, errors: ErrorList) -> None:
    protected = any(group == name or group.endswith(f".{name}") for name in _PROTECTED)
    given = (definition["metadata"].get("annotations") or {}).get(APPROVAL, "")
    path = METADATA.child("annotations").key(APPROVAL)
    if not protected or given.startswith(("unapproved", "https://", "http://")):
        return
    if given:
        detail = (
            f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a '
            'reason starting with "unapproved", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )
        errors.invalid(path, given, detail)
        return
    errors.required(
        path,
        f'protected groups must have approval annotation "{APPROVAL}", see '
        "https://github.com/kubernetes/enhancements/pull/1111",
    )


def _check_scale(scale: JsonObject, errors: ErrorList, path: Path) -> None:
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value, at = scale.get(field), path.child(f"scale.{field}")
        if not value:
            errors.required(at)
        elif _is_simple(value, errors, at) and not value.startswith(f"{root}."):
            errors.invalid(at, value, f"should be a json path under {root}")
    selector, at = scale.get("labelSelectorPath"), path.child("scale.labelSelectorPath")
    if (
        selector
        and _is_simple(selector, errors, at)
        and not selector.startswith((".spec.", ".status."))
    ):
        errors.invalid(at, selector, "should be a json path under either .spec or .status")


def _is_simple(path: str, errors: ErrorList, at: Path) -> bool:
    if not path.startswith("."):
        errors.invalid(at, path, "must be a simple json path starting with .")
    return path.startswith(".")


def _check_column(column: JsonObject, errors: ErrorList, path: Path) -> None:
    if not column.get("name"):
        errors.required(path.child("name"))
    kind, choices = column.get("type"), f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        errors.required(path.child("type"), choices)
    elif kind not in _COLUMN_TYPES:
        errors.invalid(path.child("type"), kind, choices)
    form = column.get("format")
    if form and form not in _COLUMN_FORMATS:
        detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
        errors.invalid(path.child("format"), form, detail)
    if not column.get("jsonPath"):
        errors.required(path.child("JSONPath"))
    else:
        _is_simple(column["jsonPath"], errors, path.child("JSONPath"))


def _check_selectable(
    fields: list[JsonObject], schema: JsonObject, errors: ErrorList, path: Path
) -> None:
    """Fields to select by are texts, numbers or truth values of the schema, few of them."""
    known: set[str] = set()
    for position, field in enumerate(fields):
        at, text = path.index(position).child("jsonPath"), field.get("jsonPath") or ""
        if not text:
            errors.required(at)
            continue
        try:
            found = valid_field_path(text, schema, may_index=False)
        except ValueError as error:
            errors.invalid(at, text, f"is an invalid path: {error}")
            continue
        assert found is not None
        name, part = found
        if name.split(".")[0] == "metadata":
            errors.invalid(at, text, "must not point to fields in metadata")
        if part.get("type") not in _SELECTABLE:
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed."
            )
            errors.invalid(at, text, detail)
        if name in known:
            errors.duplicate(at, text)
        known.add(name)
    if len(known) > MOST_SELECTABLE:
        errors.too_many(path, len(known), MOST_SELECTABLE)


def _check_conversion(conversion: JsonObject, errors: ErrorList, path: Path) -> None:
    strategy = conversion.get("strategy")
    if not strategy:
        errors.required(path.child("strategy"))
    elif strategy not in _STRATEGIES:
        errors.not_supported(path.child("strategy"), strategy, _STRATEGIES)
    webhook = conversion.get("webhook") or {}
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    at = path.child("webhookClientConfig")
    if strategy != "Webhook":
        if config is not None:
            errors.forbidden(at, _NOT_WEBHOOK)
        if versions:
            errors.forbidden(path.child("conversionReviewVersions"), _NOT_WEBHOOK)
        return
    if config is None:
        errors.required(at, "required when strategy is set to Webhook")
    elif (config.get("url") is None) == (config.get("service") is None):
        errors.required(at, "exactly one of url or service is required")
    elif config.get("url") is not None:
        check_url(config["url"], errors, at.child("url"))
    else:
        check_service(config["service"], errors, at.child("service"))
    check_reviews(versions or [], errors, path.child("conversionReviewVersions"))


def check_url(text: str, errors: ErrorList, path: Path) -> None:
    """What is wrong with the URL of a webhook."""
    scheme, slashes, rest = text.partition("://")
    if parse_url(text) is None and not slashes:
        errors.required(path, f"url must be a valid URL; {_URL_FORM}")
        return
    if scheme != "https":
        shown = scheme if slashes else ""
        detail = f"'https' is the only allowed URL scheme; {_URL_FORM}"
        errors.invalid(path, shown, detail)
    host, fragment, query = rest.partition("/")[0], text.partition("#")[2], text.partition("?")[2]
    if not host:
        errors.invalid(path, "", f"host must be specified; {_URL_FORM}")
    if "@" in host:
        shown = host.rpartition("@")[0]
        errors.invalid(path, shown, "user information is not permitted in the URL")
    if fragment:
        errors.invalid(path, fragment, "fragments are not permitted in the URL")
    if query := query.partition("#")[0]:
        errors.invalid(path, query, "query parameters are not permitted in the URL")


def check_service(service: JsonObject, errors: ErrorList, path: Path) -> None:
    """What is wrong with the reference to the Service of a webhook."""
    for name in ("name", "namespace"):
        if not service.get(name):
            errors.required(path.child(name))
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        errors.invalid(path.child("port"), port, detail)
    target = service.get("path")
    if not target or target == "/":
        return
    for detail in _path_complaints(target):
        errors.invalid(path.child("path"), target, detail)


def _path_complaints(target: str) -> Iterator[str]:
    if target == "//":
        yield "segment[0] may not be empty"
        return
    if not target.startswith("/"):
        yield "must start with a '/'"
    for position, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            yield f"segment[{position}] may not be empty"
        else:
            yield from (f"segment[{position}]: {it}" for it in dns_subdomain(step))


def check_reviews(versions: list[Any], errors: ErrorList, path: Path) -> None:
    if not versions:
        errors.required(path)
        return
    seen: set[str] = set()
    for position, version in enumerate(versions):
        if version in seen:
            errors.invalid(path.index(position), version, "duplicate version")
        else:
            errors.invalid_each(path.index(position), version, dns_1035_label(version))
        seen.add(version)
    if not seen.intersection(_REVIEWS):
        detail = f"must include at least one of {', '.join(_REVIEWS)}"
        errors.invalid(path, versions, detail)
