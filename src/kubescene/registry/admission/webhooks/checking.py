"""Whether webhooks can be asked as they are configured; looked at when that is written.

What has to be there at all is said in `kubescene.api.validation.members`.
"""

from kubescene.api.schemas.definition_parts import check_reviews, check_service, check_url
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import dns_subdomain
from kubescene.registry.admission.policies.checking import (
    check_choice,
    check_conditions,
    check_rule,
)
from kubescene.registry.admission.policies.compiling import Vocabulary
from kubescene.types import JsonObject

LONGEST_S = 30
_SEGMENTS = 3


def faults_of_webhooks(configuration: JsonObject) -> ErrorList:
    """What is wrong with the webhooks of a configuration."""
    errors = ErrorList()
    seen: set[str] = set()
    for position, each in enumerate(configuration.get("webhooks") or ()):
        path, name = Path("webhooks").index(position), each.get("name") or ""
        _check_webhook(each, errors, path)
        if name and name in seen:
            errors.duplicate(path.child("name"), name)
        seen.add(name)
    return errors


def _check_webhook(webhook: JsonObject, errors: ErrorList, path: Path) -> None:
    if name := webhook.get("name"):
        _check_name(name, errors, path.child("name"))
    for position, rule in enumerate(webhook.get("rules") or ()):
        check_rule(rule, errors, path.child("rules").index(position))
    check_choice(webhook, "failurePolicy", ("Fail", "Ignore"), errors, path)
    check_choice(webhook, "matchPolicy", ("Equivalent", "Exact"), errors, path)
    check_choice(webhook, "sideEffects", ("None", "NoneOnDryRun"), errors, path)
    check_choice(webhook, "reinvocationPolicy", ("IfNeeded", "Never"), errors, path)
    timeout_s = webhook.get("timeoutSeconds")
    if timeout_s is not None and not 1 <= timeout_s <= LONGEST_S:
        detail = f"the timeout value must be between 1 and {LONGEST_S} seconds"
        errors.invalid(path.child("timeoutSeconds"), timeout_s, detail)
    _check_config(webhook.get("clientConfig") or {}, errors, path.child("clientConfig"))
    check_conditions(webhook.get("matchConditions") or (), Vocabulary({}), errors, path)
    if versions := webhook.get("admissionReviewVersions"):
        check_reviews(versions, errors, path.child("admissionReviewVersions"))


def _check_name(name: str, errors: ErrorList, path: Path) -> None:
    if complaints := dns_subdomain(name):
        errors.invalid(path, name, ",".join(complaints))
    elif name.count(".") + 1 < _SEGMENTS:
        detail = "should be a domain with at least three segments separated by dots"
        errors.invalid(path, name, detail)


def _check_config(config: JsonObject, errors: ErrorList, path: Path) -> None:
    url, service = config.get("url"), config.get("service")
    if url is not None and service is not None:
        errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        check_url(url, errors, path.child("url"))
    elif service is not None and service.get("name") and service.get("namespace"):
        check_service(service, errors, path.child("service"))
