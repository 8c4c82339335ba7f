"""Where a pod may run: tolerations, affinity, topology spread, taints, node selectors."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.inner_forms import TAINT, inner
from kubescene.api.validation.label_selectors import (
    NOT_AN_OPERATOR,
    VALUES_FORBIDDEN,
    VALUES_REQUIRED,
    check_label_selector,
)
from kubescene.api.validation.metadata import NOT_POSITIVE
from kubescene.api.validation.names import dns_label, dns_subdomain, label_key, label_value
from kubescene.types import JsonObject

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SCHEDULE_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION_POLICIES = ("Honor", "Ignore")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_NO_SELECTOR = "must not be specified when labelSelector is not set"


def check_tolerations(tolerations: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, toleration in enumerate(tolerations):
        _check_toleration(toleration, errors, path.index(position))


def _check_toleration(toleration: JsonObject, errors: ErrorList, path: Path) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect = toleration.get("effect", "")
    if key and (complaints := label_key(key)):
        errors.invalid_each(path.child("key"), key, complaints)
    if not key and operator != "Exists":
        errors.invalid(
            path.child("operator"),
            operator,
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"',
        )
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        errors.invalid(
            path.child("effect"),
            effect,
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        )
    _check_toleration_value(operator, toleration.get("value", ""), errors, path)
    if effect:
        check_taint_effect(effect, errors, path.child("effect"))


def _check_toleration_value(operator: str, value: str, errors: ErrorList, path: Path) -> None:
    if operator in ("Equal", ""):
        if complaints := label_value(value):
            errors.invalid(path.child("operator"), value, ";".join(complaints))
    elif operator == "Exists":
        if value:
            errors.invalid(
                path.child("operator"), value, "value must be empty when `operator` is 'Exists'"
            )
    elif operator in ("Lt", "Gt"):
        errors.not_supported(path.child("operator"), operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        errors.not_supported(path.child("operator"), operator, ("Equal", "Exists"))


def check_taint_effect(effect: str, errors: ErrorList, path: Path) -> None:
    if not effect:
        errors.required(path)
    elif effect not in _EFFECTS:
        errors.not_supported(path, effect, _EFFECTS)


def check_taints(taints: list[JsonObject], errors: ErrorList, path: Path) -> None:
    """Taints of a node: well formed, and one per key and effect."""
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        at = path.index(position)
        key, value, effect = (taint.get(field, "") for field in ("key", "value", "effect"))
        errors.invalid_each(at.child("key"), key, label_key(key))
        if complaints := label_value(value):
            errors.invalid(at.child("value"), value, ";".join(complaints))
        check_taint_effect(effect, errors, at.child("effect"))
        if (key, effect) in seen:
            shown = inner(taint, TAINT)
            errors.duplicate(at, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def check_affinity(affinity: JsonObject, errors: ErrorList, path: Path) -> None:
    if node := affinity.get("nodeAffinity"):
        _check_node_affinity(node, errors, path.child("nodeAffinity"))
    for field in ("podAffinity", "podAntiAffinity"):
        if terms := affinity.get(field):
            _check_pod_affinity(terms, errors, path.child(field))


def _check_node_affinity(affinity: JsonObject, errors: ErrorList, path: Path) -> None:
    if (required := affinity.get(_REQUIRED)) is not None:
        check_node_selector(required, errors, path.child(_REQUIRED))
    for position, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        at = path.child(_PREFERRED).index(position)
        _check_weight(preferred, errors, at)
        _check_term(preferred.get("preference") or {}, errors, at.child("preference"), False)


def _check_weight(preferred: JsonObject, errors: ErrorList, path: Path) -> None:
    if not 1 <= preferred.get("weight", 0) <= 100:
        errors.invalid(path.child("weight"), preferred.get("weight", 0), _WEIGHT)


def check_node_selector(
    selector: JsonObject, errors: ErrorList, path: Path, *, check_values: bool = True
) -> None:
    """A required node selector: at least one term."""
    at = path.child("nodeSelectorTerms")
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        errors.required(at, "must have at least one node selector term")
        return
    for position, term in enumerate(terms):
        _check_term(term, errors, at.index(position), check_values)


def _check_term(term: JsonObject, errors: ErrorList, path: Path, check_values: bool) -> None:
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        at = path.child("matchExpressions").index(position)
        _check_node_requirement(requirement, errors, at, check_values)
    for position, requirement in enumerate(term.get("matchFields") or ()):
        _check_node_field(requirement, errors, path.child("matchFields").index(position))


def _check_node_requirement(
    requirement: JsonObject, errors: ErrorList, path: Path, check_values: bool
) -> None:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            errors.required(path.child("values"), VALUES_REQUIRED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.forbidden(path.child("values"), VALUES_FORBIDDEN)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.required(path.child("values"), detail)
    else:
        errors.invalid(path.child("operator"), operator, NOT_AN_OPERATOR)
    errors.invalid_each(path.child("key"), key, label_key(key))
    for position, value in enumerate(values if check_values else ()):
        if complaints := label_value(value):
            errors.invalid_each(path.child("values").index(position), value, complaints)


def _check_node_field(requirement: JsonObject, errors: ErrorList, path: Path) -> None:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        errors.invalid(path.child("operator"), operator, NOT_AN_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.required(path.child("values"), detail)
    if key != "metadata.name":
        errors.invalid(path.child("key"), key, "not a valid field selector key")
        return
    for position, value in enumerate(values):
        errors.invalid_each(path.child("values").index(position), value, dns_subdomain(value))


def _check_pod_affinity(affinity: JsonObject, errors: ErrorList, path: Path) -> None:
    for position, term in enumerate(affinity.get(_REQUIRED) or ()):
        _check_pod_term(term, errors, path.child(_REQUIRED).index(position))
    for position, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        at = path.child(_PREFERRED).index(position)
        _check_weight(weighted, errors, at)
        _check_pod_term(weighted.get("podAffinityTerm") or {}, errors, at.child("podAffinityTerm"))


def _check_pod_term(term: JsonObject, errors: ErrorList, path: Path) -> None:
    check_label_selector(term.get("labelSelector"), errors, path.child("labelSelector"))
    check_label_selector(term.get("namespaceSelector"), errors, path.child("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        errors.invalid_each(path.child("namespace"), namespace, dns_label(namespace))
    _check_label_keys(term, errors, path)
    topology = term.get("topologyKey", "")
    if not topology:
        errors.required(path.child("topologyKey"), "can not be empty")
    errors.invalid_each(path.child("topologyKey"), topology, label_key(topology))


def _check_label_keys(term: JsonObject, errors: ErrorList, path: Path) -> None:
    """``matchLabelKeys`` and ``mismatchLabelKeys`` against each other and the selector."""
    selector = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            errors.forbidden(path.child(field), _NO_SELECTOR)
            continue
        for position, key in enumerate(keys):
            errors.invalid_each(path.child(field).index(position), key, label_key(key))
    if selector is not None and match:
        _check_merged_keys(list(match), selector, errors, path)
    for position, key in enumerate(match):
        if key in mismatch:
            errors.invalid(
                path.child("matchLabelKeys").index(position),
                key,
                "exists in both matchLabelKeys and mismatchLabelKeys",
            )


def _check_merged_keys(
    match: list[str], selector: JsonObject, errors: ErrorList, path: Path
) -> None:
    # The server itself adds one expression per key, so only a second mention is a conflict.
    positions = {key: position for position, key in enumerate(match)}
    seen = set(selector.get("matchLabels") or ())
    for requirement in selector.get("matchExpressions") or ():
        key = requirement.get("key", "")
        if key in positions and key in seen:
            errors.invalid(
                path.index(positions[key]), key, "exists in both matchLabelKeys and labelSelector"
            )
        seen.add(key)


def check_topology_spread(constraints: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, constraint in enumerate(constraints):
        at = path.index(position)
        _check_spread(constraint, errors, at)
        pair = _spread_pair(constraint)
        if pair in map(_spread_pair, constraints[position + 1 :]):
            shown = f"{{{pair[0]}, {pair[1]}}}"
            errors.duplicate(at.child("{topologyKey, whenUnsatisfiable}"), shown)
        _check_min_domains(constraint, errors, at.child("minDomains"))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in _INCLUSION_POLICIES:
                errors.not_supported(at.child(field), policy, _INCLUSION_POLICIES)
        _check_label_keys(
            {key: constraint.get(key) for key in ("labelSelector", "matchLabelKeys")}, errors, at
        )
        check_label_selector(constraint.get("labelSelector"), errors, at.child("labelSelector"))


def _spread_pair(constraint: JsonObject) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _check_spread(constraint: JsonObject, errors: ErrorList, path: Path) -> None:
    if (skew := constraint.get("maxSkew", 0)) <= 0:
        errors.invalid(path.child("maxSkew"), skew, NOT_POSITIVE)
    topology, action = _spread_pair(constraint)
    if not topology:
        errors.required(path.child("topologyKey"), "can not be empty")
    if action not in _SCHEDULE_ACTIONS:
        errors.not_supported(path.child("whenUnsatisfiable"), action, _SCHEDULE_ACTIONS)


def _check_min_domains(constraint: JsonObject, errors: ErrorList, path: Path) -> None:
    domains, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable", "")
    if domains is None:
        return
    if domains <= 0:
        errors.invalid(path, domains, NOT_POSITIVE)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.invalid(path, domains, detail)
