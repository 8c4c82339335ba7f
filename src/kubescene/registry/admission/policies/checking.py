"""Whether a policy or a binding can be used as it is written; asked when it is written.

What has to be there at all is said in `kubescene.api.validation.members`.
"""

import re
from collections.abc import Sequence

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.api.validation.names import (
    dns_1035_label,
    dns_subdomain,
    label_key,
    path_segment,
)
from kubescene.cel.lexing import RESERVED
from kubescene.cel.types import Type
from kubescene.registry.admission.policies.compiling import (
    JSON_PATCH,
    OBJECT,
    TEXT,
    TEXT_OR_NONE,
    TRUTH,
    Names,
    Vocabulary,
    compiled,
)
from kubescene.types import JsonObject

MOST_CONDITIONS, MOST_ANNOTATIONS = 64, 20
LONGEST_ANNOTATION = 5 * 1024
ALL_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
CHANGES = ("*", "CONNECT", "CREATE", "UPDATE")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = RESERVED | {"true", "false", "null", "in"}
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
PATCHES = {
    "ApplyConfiguration": ("applyConfiguration", OBJECT),
    "JSONPatch": ("jsonPatch", JSON_PATCH),
}
_WILDCARDS = {
    "operations": "operations",
    "apiGroups": "API groups",
    "apiVersions": "API versions",
}
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the "
    "API response and headers serves no purpose)"
)


def faults_of_policy(policy: JsonObject) -> ErrorList:
    """What is wrong with a policy, its expressions among it."""
    errors, spec = ErrorList(), policy.get("spec") or {}
    is_mutating = policy["kind"].startswith("Mutating")
    check_choice(spec, "failurePolicy", ("Fail", "Ignore"), errors, SPEC)
    _check_kind(spec.get("paramKind") or {}, errors)
    at = SPEC.child("matchConstraints")
    _check_matching(spec.get("matchConstraints") or {}, errors, at, is_mutating=is_mutating)
    vocabulary = Vocabulary(spec)
    check_conditions(spec.get("matchConditions") or (), vocabulary, errors, SPEC)
    _check_variables(spec, vocabulary, errors)
    words = vocabulary.names if spec.get("variables") or is_mutating else vocabulary.plain
    _check_validations(spec.get("validations") or (), words, errors)
    _check_annotations(policy, words, errors)
    _check_mutations(spec, words, errors)
    check_choice(spec, "reinvocationPolicy", ("IfNeeded", "Never"), errors, SPEC)
    return errors


def faults_of_binding(binding: JsonObject) -> ErrorList:
    """What is wrong with a binding."""
    errors, spec = ErrorList(), binding.get("spec") or {}
    is_mutating = binding["kind"].startswith("Mutating")
    if name := spec.get("policyName"):
        errors.invalid_each(SPEC.child("policyName"), name, dns_subdomain(name))
    _check_reference(spec.get("paramRef") or {}, errors)
    if (matching := spec.get("matchResources")) is not None:
        _check_matching(matching, errors, SPEC.child("matchResources"), is_mutating=is_mutating)
    actions, at = spec.get("validationActions") or [], SPEC.child("validationActions")
    for position, action in enumerate(actions):
        if action not in _ACTIONS:
            errors.not_supported(at.index(position), action, _ACTIONS)
        if action in actions[:position]:
            errors.duplicate(at.index(position), action)
    if "Deny" in actions and "Warn" in actions:
        errors.invalid(at, actions, _BOTH)
    return errors


# -- what both have --------------------------------------------------------------------------


def check_choice(
    holder: JsonObject, name: str, supported: Sequence[str], errors: ErrorList, path: Path
) -> None:
    """That a member, if there is one, is one of these words."""
    value = holder.get(name)
    if value is not None and value not in supported:
        errors.not_supported(path.child(name), value, supported)


def _check_kind(kind: JsonObject, errors: ErrorList) -> None:
    at, version, name = SPEC.child("paramKind"), kind.get("apiVersion"), kind.get("kind")
    if version:
        _check_version(version, errors, at.child("apiVersion"))
    if name and (complaints := dns_1035_label(name.lower())):
        detail = "may have mixed case, but should otherwise match: " + ",".join(complaints)
        errors.invalid(at.child("kind"), name, detail)


def _check_version(text: str, errors: ErrorList, at: Path) -> None:
    if text.count("/") > 1:
        errors.invalid(at, text, f"unexpected GroupVersion string: {text}")
        return
    group, _, version = text.rpartition("/")
    if group and (complaints := dns_subdomain(group)):
        errors.invalid(at, group, ",".join(complaints))
    if not version:
        errors.invalid(at, text, "version must be specified")
    elif complaints := dns_1035_label(version):
        errors.invalid(at, version, ",".join(complaints))


def _check_matching(
    matching: JsonObject, errors: ErrorList, path: Path, *, is_mutating: bool
) -> None:
    check_choice(matching, "matchPolicy", ("Equivalent", "Exact"), errors, path)
    for name in ("resourceRules", "excludeResourceRules"):
        for position, rule in enumerate(matching.get(name) or ()):
            check_rule(rule, errors, path.child(name).index(position))
    for rule in matching.get("resourceRules") or () if is_mutating else ():
        for operation in rule.get("operations") or ():
            if operation not in CHANGES:
                at = path.child("resourceRules").child("operations")
                errors.not_supported(at, operation, CHANGES)


def check_rule(rule: JsonObject, errors: ErrorList, path: Path) -> None:
    """What is wrong with a rule that says which requests somebody is asked about."""
    names = rule.get("resourceNames") or []
    for position, name in enumerate(names):
        at = path.child("resourceNames").index(position)
        errors.invalid_each(at, name, path_segment(name))
        if name in names[:position]:
            errors.duplicate(at, name)
    for member, others in _WILDCARDS.items():
        items = rule.get(member) or []
        if "*" in items and len(items) > 1:
            detail = f"if '*' is present, must not specify other {others}"
            errors.invalid(path.child(member), items, detail)
        for position, item in enumerate(items if member == "operations" else ()):
            if item not in ALL_OPERATIONS:
                at = path.child(member).index(position)
                errors.not_supported(at, item, ALL_OPERATIONS)
    _check_resources(rule.get("resources") or [], errors, path.child("resources"))
    check_choice(rule, "scope", ("*", "Cluster", "Namespaced"), errors, path)


def _check_resources(resources: Sequence[str], errors: ErrorList, path: Path) -> None:
    """Names that say what another has said already."""
    all_below, all_above = set(), set()
    for position, each in enumerate(resources):
        name, slash, below = each.partition("/")
        if not slash:
            continue
        at = path.index(position)
        if name in all_below:
            errors.invalid(at, each, f"if '{name}/*' is present, must not specify {each}")
        if below in all_above:
            errors.invalid(at, each, f"if '*/{below}' is present, must not specify {each}")
        if below == "*":
            all_below.add(name)
        if name == "*":
            all_above.add(below)
    if "*/*" in resources and len(resources) > 1:
        detail = "if '*/*' is present, must not specify other resources"
        errors.invalid(path, resources, detail)
    plain = [each for each in resources if "/" not in each]
    if "*" in plain and plain[-1] != "*":
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.invalid(path, resources, detail)


def _check_reference(reference: JsonObject, errors: ErrorList) -> None:
    at, name = SPEC.child("paramRef"), reference.get("name")
    if name:
        errors.invalid_each(at.child("name"), name, path_segment(name))
        if reference.get("selector") is not None:
            for each in ("name", "selector"):
                errors.forbidden(at.child(each), "name and selector are mutually exclusive")
    action = reference.get("parameterNotFoundAction")
    if action and action not in ("Deny", "Allow"):
        errors.not_supported(at.child("parameterNotFoundAction"), action, ("Deny", "Allow"))


# -- expressions -----------------------------------------------------------------------------


def check_conditions(
    conditions: Sequence[JsonObject], vocabulary: Vocabulary, errors: ErrorList, holder: Path
) -> None:
    """What is wrong with conditions, which know no variables."""
    path = holder.child("matchConditions")
    if len(conditions) > MOST_CONDITIONS:
        errors.too_many(path, len(conditions), MOST_CONDITIONS)
    for position, each in enumerate(conditions):
        at, name = path.index(position), each.get("name") or ""
        _check(_trimmed(each, "expression"), TRUTH, vocabulary.plain, errors, at)
        errors.invalid_each(at.child("name"), name, label_key(name) if name else ())
        if name and name in (other.get("name") for other in conditions[:position]):
            errors.duplicate(at.child("name"), name)


def _check_variables(spec: JsonObject, vocabulary: Vocabulary, errors: ErrorList) -> None:
    for position, each in enumerate(spec.get("variables") or ()):
        at, name = SPEC.child("variables").index(position), each.get("name") or ""
        text = each.get("expression") or ""
        if name and (not _IDENTIFIER.fullmatch(name) or name in _RESERVED):
            errors.invalid(at.child("name"), name, "must be a valid CEL identifier")
        if text and not text.strip():
            errors.required(at.child("expression"), "expression is not specified")
        elif text and (fault := vocabulary.add(name, text).fault):
            errors.invalid(at.child("expression"), text, fault)


def _check_validations(validations: Sequence[JsonObject], words: Names, errors: ErrorList) -> None:
    for position, each in enumerate(validations):
        at, text = SPEC.child("validations").index(position), each.get("expression") or ""
        if text and not text.strip():
            errors.required(at.child("expression"), "expression is not specified")
        _check(("expression", text), TRUTH, words, errors, at)
        told, message = each.get("messageExpression") or "", each.get("message") or ""
        _refuse_blank("messageExpression", told, errors, at)
        _check(("messageExpression", told), TEXT, words, errors, at)
        _refuse_blank("message", message, errors, at)
        if "\n" in message.strip() or "\r" in message.strip():
            errors.invalid(at.child("message"), message, "must not contain line breaks")
        check_choice(each, "reason", _REASONS, errors, at)


def _refuse_blank(name: str, text: str, errors: ErrorList, path: Path) -> None:
    if text and not text.strip():
        errors.invalid(path.child(name), text, "must be non-empty if specified")


def _check_annotations(policy: JsonObject, words: Names, errors: ErrorList) -> None:
    path = SPEC.child("auditAnnotations")
    annotations = (policy.get("spec") or {}).get("auditAnnotations") or []
    if len(annotations) > MOST_ANNOTATIONS:
        detail = f"must not have more than {MOST_ANNOTATIONS} auditAnnotations"
        errors.invalid(path, annotations, detail)
    for position, each in enumerate(annotations):
        at, key = path.index(position), each.get("key")
        name, text = _trimmed(each, "valueExpression")
        if len(text) > LONGEST_ANNOTATION:
            detail = f"must not exceed {LONGEST_ANNOTATION} bytes in length"
            errors.required(at.child(name), detail)
        else:
            _check((name, text), TEXT_OR_NONE, words, errors, at)
        if key in (other.get("key") for other in annotations[:position]):
            errors.duplicate(at.child("key"), key)


def _check_mutations(spec: JsonObject, words: Names, errors: ErrorList) -> None:
    for position, each in enumerate(spec.get("mutations") or ()):
        at, kind = SPEC.child("mutations").index(position), each.get("patchType")
        if kind and kind not in PATCHES:
            errors.not_supported(at.child("patchType"), kind, tuple(PATCHES))
        for of, (member, wanted) in PATCHES.items():
            if of == kind:
                _check(
                    _trimmed(each.get(member) or {}, "expression"),
                    wanted,
                    words,
                    errors,
                    at.child(member),
                )
            elif kind in PATCHES and each.get(member) is not None:
                detail = f"must not be specified when patchType is {kind}"
                errors.invalid(at.child(member), f"{{{member}}}", detail)


def _trimmed(holder: JsonObject, name: str) -> tuple[str, str]:
    return name, (holder.get(name) or "").strip()


def _check(
    member: tuple[str, str],
    wanted: tuple[Type, ...],
    words: Names,
    errors: ErrorList,
    path: Path,
) -> None:
    name, text = member
    if text.strip() and (fault := compiled(text, wanted, words).fault):
        errors.invalid(path.child(name), text, fault)
