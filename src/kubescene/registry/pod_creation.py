"""What the server adds to a pod when it is created: status, gate condition, merged label keys.

``matchLabelKeys`` and ``mismatchLabelKeys`` of pod affinity and ``matchLabelKeys`` of topology
spread are turned into selector requirements here, once, from the labels the pod has now; the
scheduler only reads the selectors.
"""

from collections.abc import Callable

from kubescene.api.qos import qos_class
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def prepared_pod(pod: JsonObject, now: str) -> JsonObject:
    """A new pod: pending, with its quality of service, its selectors complete."""
    spec = pod["spec"]
    status: JsonObject = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [gated_condition(now)]
    if spec.get("affinity") or spec.get("topologySpreadConstraints"):
        merged = merged_selectors(spec, pod["metadata"].get("labels") or {})
        pod = with_part(pod, "spec", merged)
    return {**pod, "status": status}


def gated_condition(now: str) -> JsonObject:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def merged_selectors(spec: JsonObject, labels: dict[str, str]) -> JsonObject:
    """The spec whose selectors include the label keys; itself if it has none."""
    changes: JsonObject = {}
    if affinity := spec.get("affinity"):
        merged = _merged_affinity(affinity, labels)
        if merged is not affinity:
            changes["affinity"] = merged
    if constraints := spec.get("topologySpreadConstraints"):
        done = [with_label_keys(it, labels) for it in constraints]
        if any(new is not old for new, old in zip(done, constraints, strict=True)):
            changes["topologySpreadConstraints"] = done
    return {**spec, **changes} if changes else spec


def _merged_affinity(affinity: JsonObject, labels: dict[str, str]) -> JsonObject:
    for part in ("podAffinity", "podAntiAffinity"):
        if terms := affinity.get(part):
            terms = _each(terms, _PREFERRED, lambda it: _merged_preference(it, labels))
            terms = _each(terms, _REQUIRED, lambda it: with_label_keys(it, labels))
            if terms is not affinity[part]:
                affinity = {**affinity, part: terms}
    return affinity


def _each(obj: JsonObject, field: str, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    items = obj.get(field) or []
    done = [change(item) for item in items]
    changed = any(new is not old for new, old in zip(done, items, strict=True))
    return {**obj, field: done} if changed else obj


def _merged_preference(preference: JsonObject, labels: dict[str, str]) -> JsonObject:
    term = preference.get("podAffinityTerm") or {}
    merged = with_label_keys(term, labels)
    return preference if merged is term else {**preference, "podAffinityTerm": merged}


def with_label_keys(term: JsonObject, labels: dict[str, str]) -> JsonObject:
    """The term or constraint with a requirement for each key that the pod has.

    Without a selector it matches nothing, and nothing is added.
    """
    selector = term.get("labelSelector")
    wanted = [("In", key) for key in term.get("matchLabelKeys") or ()]
    wanted += [("NotIn", key) for key in term.get("mismatchLabelKeys") or ()]
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for operator, key in wanted
        if key in labels
    ]
    if selector is None or not added:
        return term
    expressions = [*(selector.get("matchExpressions") or ()), *added]
    return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}
