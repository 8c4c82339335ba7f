"""Expressions in objects that are refused when they are written, as kube-apiserver does it.

Selectors of devices are compiled, must give a bool, and may not be able to exceed the limit of
work. Those of admission policies must compile and give what they are asked for. For rules of custom
kinds see `kubescene.registry.rules`.
"""

from collections.abc import Iterator

from kubescene.api.scheme import ResourceType
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.types import JsonObject

POLICIES = "admissionregistration.k8s.io"


def selector_errors(
    new: JsonObject, old: JsonObject | None, resource_type: ResourceType
) -> ErrorList:
    """What is wrong with device selectors; those that were there are not looked at again."""
    errors = ErrorList()
    if old is not None and new.get("spec") == old.get("spec"):
        return errors
    known = {text for _, text in _selectors(old, resource_type)} if old is not None else ()
    for path, text in _selectors(new, resource_type):
        if text and text not in known:
            _check_selector(text, errors, path)
    return errors


def policy_errors(policy: JsonObject, resource_type: ResourceType) -> ErrorList:
    """What is wrong with an admission policy, with what binds one, or with webhooks."""
    if resource_type.kind.endswith("WebhookConfiguration"):
        from kubescene.registry.admission.webhooks.checking import faults_of_webhooks

        return faults_of_webhooks(policy)
    # Late: most worlds have no policies.
    from kubescene.registry.admission.policies.checking import faults_of_binding, faults_of_policy

    is_binding = resource_type.kind.endswith("Binding")
    return faults_of_binding(policy) if is_binding else faults_of_policy(policy)


def _check_selector(text: str, errors: ErrorList, path: Path) -> None:
    # Late: most worlds have no expressions.
    from kubescene.cel.device_selectors import (
        LONGEST_EXPRESSION,
        TOO_COMPLEX,
        compiled,
        is_too_complex,
    )

    if len(text.encode()) > LONGEST_EXPRESSION:
        errors.too_long(path, LONGEST_EXPRESSION)
        return
    program = compiled(text)
    if isinstance(program, str):
        errors.invalid(path, text, program)
    elif is_too_complex(program):
        errors.forbidden(path, TOO_COMPLEX)


def _selectors(obj: JsonObject, resource_type: ResourceType) -> Iterator[tuple[Path, str]]:
    spec = obj.get("spec") or {}
    kind = resource_type.gvk.kind
    if kind == "DeviceClass":
        yield from _listed(spec, SPEC)
    elif kind == "ResourceClaim":
        yield from _requested(spec, SPEC)
    elif kind == "ResourceClaimTemplate":
        yield from _requested(spec.get("spec") or {}, SPEC.child("spec"))


def _requested(spec: JsonObject, path: Path) -> Iterator[tuple[Path, str]]:
    at = path.child("devices").child("requests")
    for position, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        here = at.index(position)
        yield from _listed(request.get("exactly") or {}, here.child("exactly"))
        for place, choice in enumerate(request.get("firstAvailable") or ()):
            yield from _listed(choice, here.child("firstAvailable").index(place))


def _listed(holder: JsonObject, path: Path) -> Iterator[tuple[Path, str]]:
    for position, selector in enumerate(holder.get("selectors") or ()):
        at = path.child("selectors").index(position).child("cel").child("expression")
        yield at, (selector.get("cel") or {}).get("expression") or ""
