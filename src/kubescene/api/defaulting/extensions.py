"""Defaults of the kinds that extend the API server: admission, custom resources, API services."""

from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_ADMISSION = "admissionregistration.k8s.io"
_HTTPS = {"port": 443}
_MATCHING: JsonObject = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_WEBHOOK: JsonObject = {"failurePolicy": "Fail", **_MATCHING, "timeoutSeconds": 10}
_MUTATING_WEBHOOK: JsonObject = {**_WEBHOOK, "reinvocationPolicy": "Never"}


def default_validating_webhooks(configuration: JsonObject) -> JsonObject:
    """Webhooks fail closed after ten seconds and match equivalent requests of any scope."""
    return within_each(configuration, "webhooks", lambda it: _webhook(it, _WEBHOOK))


def default_mutating_webhooks(configuration: JsonObject) -> JsonObject:
    """As validating ones; they are not called a second time."""
    return within_each(configuration, "webhooks", lambda it: _webhook(it, _MUTATING_WEBHOOK))


def default_admission_policy(policy: JsonObject) -> JsonObject:
    """Policies fail closed, too."""
    policy = into(policy, "spec", lambda spec: filled_unset(spec, {"failurePolicy": "Fail"}))
    return at(policy, ("spec", "matchConstraints"), _match_resources)


def default_policy_binding(binding: JsonObject) -> JsonObject:
    """The binding of an admission policy."""
    return at(binding, ("spec", "matchResources"), _match_resources)


def default_custom_resource_definition(definition: JsonObject) -> JsonObject:
    """Names that follow from the kind, no conversion, and the version that is stored."""
    definition = into(definition, "spec", _definition_spec)
    versions = definition["spec"].get("versions") or ()
    stored = [it.get("name", "") for it in versions if it.get("storage")]
    if not stored:
        return definition
    return into(definition, "status", lambda it: filled(it, {"storedVersions": stored[:1]}))


def default_api_service(api_service: JsonObject) -> JsonObject:
    """An aggregated server listens on the HTTPS port."""
    return at(api_service, ("spec", "service"), _service_reference)


def _webhook(webhook: JsonObject, defaults: JsonObject) -> JsonObject:
    webhook = filled_unset(webhook, defaults)
    webhook = at(webhook, ("clientConfig", "service"), _service_reference)
    return within_each(webhook, "rules", _rule)


def _rule(rule: JsonObject) -> JsonObject:
    return filled_unset(rule, {"scope": "*"})


def _service_reference(reference: JsonObject) -> JsonObject:
    return filled_unset(reference, _HTTPS)


def _match_resources(match: JsonObject) -> JsonObject:
    match = within_each(filled_unset(match, _MATCHING), "resourceRules", _rule)
    return within_each(match, "excludeResourceRules", _rule)


def _definition_spec(spec: JsonObject) -> JsonObject:
    spec = filled_unset(
        into(spec, "names", _definition_names), {"conversion": {"strategy": "None"}}
    )
    return at(spec, ("conversion", "webhook", "clientConfig", "service"), _service_reference)


def _definition_names(names: JsonObject) -> JsonObject:
    kind = names.get("kind")
    if not kind:
        return names
    return filled(names, {"singular": kind.lower(), "listKind": f"{kind}List"})


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
    ): default_custom_resource_definition,
    GroupVersionKind("apiregistration.k8s.io", "v1", "APIService"): default_api_service,
    GroupVersionKind(_ADMISSION, "v1", "MutatingWebhookConfiguration"): default_mutating_webhooks,
    GroupVersionKind(
        _ADMISSION, "v1", "ValidatingWebhookConfiguration"
    ): default_validating_webhooks,
    GroupVersionKind(_ADMISSION, "v1", "MutatingAdmissionPolicy"): default_admission_policy,
    GroupVersionKind(_ADMISSION, "v1", "MutatingAdmissionPolicyBinding"): default_policy_binding,
    GroupVersionKind(_ADMISSION, "v1", "ValidatingAdmissionPolicy"): default_admission_policy,
    GroupVersionKind(_ADMISSION, "v1", "ValidatingAdmissionPolicyBinding"): default_policy_binding,
}
