"""PodTopologySpread and InterPodAffinity in plain words: the definition of what is right.

Written from the rules, over decoded objects, without any regard to speed: every answer counts all
pods on all nodes. The plugins must give the same answers.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kubescene.api.selectors import find_untolerated, from_label_selector, from_labels
from kubescene.types import JsonObject

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SYSTEM_DEFAULTS = [
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 5},
]

MISSING_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEWED = "node(s) didn't match pod topology spread constraints"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


class PlainNode(NamedTuple):
    name: str
    obj: JsonObject
    pods: list[JsonObject]

    @property
    def labels(self) -> Mapping[str, str]:
        return self.obj["metadata"].get("labels") or {}


@dataclass
class PlainCluster:
    """Nodes in order, the labels of namespaces, and selectors of Services by namespace."""

    nodes: list[PlainNode]
    namespaces: Mapping[str, Mapping[str, str]]
    services: Sequence[tuple[str, Mapping[str, str]]] = ()
    default_constraints: list[JsonObject] = field(default_factory=lambda: SYSTEM_DEFAULTS)
    is_system_defaulted: bool = True
    hard_weight: int = 1
    ignore_preferred: bool = False


# -- spreading -----------------------------------------------------------------------------------


def constraints(cluster: PlainCluster, pod: JsonObject, action: str) -> list[JsonObject]:
    """PTS-1, PTS-2, SC-6; each with its compiled selector."""
    own = pod["spec"].get("topologySpreadConstraints") or []
    written = own or cluster.default_constraints
    found = [dict(each) for each in written if each["whenUnsatisfiable"] == action]
    labels = labels_of(pod)
    if own:
        for each in found:
            selector = from_label_selector(each.get("labelSelector"))
            keys = [key for key in each.get("matchLabelKeys") or () if key in labels]
            extra = from_labels({key: labels[key] for key in keys})
            each["selector"] = selector.adding(*extra.requirements)
        return found
    merged: dict[str, str] = {}
    for namespace, selected in cluster.services:
        if namespace == namespace_of(pod) and from_labels(selected).matches(labels):
            merged |= selected
    for each in found:
        each["selector"] = from_labels(merged)
    return found if merged else []


def is_eligible(node: PlainNode, pod: JsonObject, constraint: JsonObject) -> bool:
    """PTS-3, the part of one constraint."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor":
        wanted = pod["spec"].get("nodeSelector") or {}
        if any(node.labels.get(key) != value for key, value in wanted.items()):
            return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore":
        return True
    taints = (node.obj.get("spec") or {}).get("taints") or []
    return find_untolerated(taints, pod["spec"].get("tolerations") or []) is None


def spread_count(node: PlainNode, pod: JsonObject, constraint: JsonObject) -> int:
    """PTS-6: pods of the namespace, not terminating, matched; ``{}`` matches none."""
    selector = constraint["selector"]
    return sum(
        namespace_of(other) == namespace_of(pod)
        and not other["metadata"].get("deletionTimestamp")
        and not selector.is_everything
        and selector.matches(labels_of(other))
        for other in node.pods
    )


def spread_filter(cluster: PlainCluster, pod: JsonObject) -> list[str] | None:
    """Per node, what speaks against it, or nothing; None if the plugin skips (PTS-1)."""
    hard = constraints(cluster, pod, "DoNotSchedule")
    if not hard:
        return None
    counts: list[dict[str, int]] = []
    for each in hard:
        found: dict[str, int] = {}
        for node in cluster.nodes:
            has_all = all(other["topologyKey"] in node.labels for other in hard)
            if has_all and is_eligible(node, pod, each):
                domain = node.labels[each["topologyKey"]]
                found[domain] = found.get(domain, 0) + spread_count(node, pod, each)
        counts.append(found)
    return [_spread_reason(hard, counts, node, pod) for node in cluster.nodes]


def _spread_reason(
    hard: list[JsonObject], counts: list[dict[str, int]], node: PlainNode, pod: JsonObject
) -> str:
    """PTS-4, PTS-5."""
    for each, found in zip(hard, counts, strict=True):
        if each["topologyKey"] not in node.labels:
            return MISSING_LABEL
        few = len(found) < each.get("minDomains", 1)
        lowest = 0 if few else min(found.values())
        here = found.get(node.labels[each["topologyKey"]], 0)
        if here + each["selector"].matches(labels_of(pod)) - lowest > each["maxSkew"]:
            return SKEWED
    return ""


def spread_scores(
    cluster: PlainCluster, pod: JsonObject, feasible: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """Raw and normalised scores; None if the plugin skips (SC-6)."""
    soft = constraints(cluster, pod, "ScheduleAnyway")
    if not soft:
        return None
    own = bool(pod["spec"].get("topologySpreadConstraints"))
    require_all = own or not cluster.is_system_defaulted
    has_all = [all(each["topologyKey"] in n.labels for each in soft) for n in cluster.nodes]
    ignored = [require_all and not has_all[at] for at in feasible]
    rated = [at for at, out in zip(feasible, ignored, strict=True) if not out]
    raw = [0.0] * len(feasible)
    for each in soft:
        key = each["topologyKey"]
        values = {cluster.nodes[at].labels.get(key, "") for at in rated}
        weight = math.log((len(rated) if key == HOSTNAME else len(values)) + 2)
        counts = dict.fromkeys(values, 0)
        for at, node in enumerate(cluster.nodes):
            counted = (has_all[at] or not require_all) and is_eligible(node, pod, each)
            if counted and node.labels.get(key, "") in counts:
                counts[node.labels.get(key, "")] += spread_count(node, pod, each)
        for place, at in enumerate(feasible):
            node = cluster.nodes[at]
            if ignored[place] or key not in node.labels:
                continue
            here = spread_count(node, pod, each) if key == HOSTNAME else counts[node.labels[key]]
            raw[place] += here * weight + (each["maxSkew"] - 1)
    scores = [math.floor(value) + (value - math.floor(value) >= 0.5) for value in raw]
    kept = [score for score, out in zip(scores, ignored, strict=True) if not out]
    most, fewest = max(kept, default=0), min(kept, default=0)
    final = [100 if most == 0 else 100 * (most + fewest - score) // most for score in scores]
    return scores, [0 if out else score for score, out in zip(final, ignored, strict=True)]


# -- affinity ------------------------------------------------------------------------------------


def terms(pod: JsonObject, kind: str, when: str) -> list[JsonObject]:
    stanza = (pod["spec"].get("affinity") or {}).get(kind) or {}
    return stanza.get(when) or []


def means(
    term: JsonObject, owner: JsonObject, other: JsonObject, namespace_labels: Mapping[str, str]
) -> bool:
    """IPA-1: whether a term speaks of a pod in a namespace with these labels."""
    named, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if not named and selector is None:
        named = [namespace_of(owner)]
    here = namespace_of(other) in named
    if not here and not from_label_selector(selector).matches(namespace_labels):
        return False
    return from_label_selector(term.get("labelSelector")).matches(labels_of(other))


def own_means(cluster: PlainCluster, term: JsonObject, pod: JsonObject, other: JsonObject) -> bool:
    """IPA-2: terms of the pod that looks for a node; namespaces go by name, and by a selector that
    is content with no labels.
    """
    selector = from_label_selector(term.get("namespaceSelector"))
    labels = cluster.namespaces.get(namespace_of(other), {})
    known = namespace_of(other) in cluster.namespaces
    by_name = known and not selector.is_everything and selector.matches(labels)
    return means(term, pod, other, labels if by_name else {})


def affinity_filter(cluster: PlainCluster, pod: JsonObject) -> list[str] | None:
    """Per node, what speaks against it, or nothing; None if the plugin skips (IPA-4)."""
    affinity = terms(pod, "podAffinity", REQUIRED)
    anti = terms(pod, "podAntiAffinity", REQUIRED)
    attracted: set[tuple[str, str]] = set()
    repelled: set[tuple[str, str]] = set()
    forbidden: set[tuple[str, str]] = set()
    own_labels = cluster.namespaces.get(namespace_of(pod), {})
    for node, other in _placed(cluster):
        if affinity and all(own_means(cluster, each, pod, other) for each in affinity):
            attracted |= {_domain(node, each) for each in affinity if _has_key(node, each)}
        for each in anti:
            if own_means(cluster, each, pod, other) and _has_key(node, each):
                repelled.add(_domain(node, each))
        for each in terms(other, "podAntiAffinity", REQUIRED):
            if means(each, other, pod, own_labels) and _has_key(node, each):
                forbidden.add(_domain(node, each))
    if not (affinity or anti or forbidden):
        return None
    # IPA-6: the first of its kind.
    first = not attracted and all(own_means(cluster, each, pod, pod) for each in affinity)
    reasons = []
    for node in cluster.nodes:
        here = set(node.labels.items())
        keyed = all(_has_key(node, each) for each in affinity)
        if not keyed or not (first or all(_domain(node, each) in attracted for each in affinity)):
            reasons.append(AFFINITY)
        elif here & repelled:
            reasons.append(ANTI_AFFINITY)
        else:
            reasons.append(EXISTING if here & forbidden else "")
    return reasons


def affinity_scores(
    cluster: PlainCluster, pod: JsonObject, feasible: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """Raw and normalised scores; None if the plugin skips (SC-7)."""
    signs = (("podAffinity", 1), ("podAntiAffinity", -1))
    own = [(sign, each) for kind, sign in signs for each in terms(pod, kind, PREFERRED)]
    if cluster.ignore_preferred and not own:
        return None
    scores: dict[tuple[str, str], int] = {}
    own_labels = cluster.namespaces.get(namespace_of(pod), {})
    for node, other in _placed(cluster):
        found = [
            (sign * each["weight"], each["podAffinityTerm"])
            for sign, each in own
            if own_means(cluster, each["podAffinityTerm"], pod, other)
        ]
        theirs = [
            (sign * each["weight"], each["podAffinityTerm"])
            for kind, sign in signs
            for each in terms(other, kind, PREFERRED)
        ]
        if cluster.hard_weight:
            hard = terms(other, "podAffinity", REQUIRED)
            theirs += [(cluster.hard_weight, each) for each in hard]
        found += [pair for pair in theirs if means(pair[1], other, pod, own_labels)]
        for weight, term in found:
            if _has_key(node, term):
                scores[_domain(node, term)] = scores.get(_domain(node, term), 0) + weight
    if not scores:
        return None
    nodes = [cluster.nodes[at] for at in feasible]
    raw = [sum(scores.get(pair, 0) for pair in node.labels.items()) for node in nodes]
    lowest, most = min(raw, default=0), max(raw, default=0)
    if lowest == most:
        return raw, [0] * len(raw)
    return raw, [int(100.0 * ((score - lowest) / (most - lowest))) for score in raw]


# -- objects -------------------------------------------------------------------------------------


def labels_of(obj: JsonObject) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


def namespace_of(obj: JsonObject) -> str:
    namespace: str = obj["metadata"]["namespace"]
    return namespace


def _placed(cluster: PlainCluster) -> Iterator[tuple[PlainNode, JsonObject]]:
    return ((node, pod) for node in cluster.nodes for pod in node.pods)


def _has_key(node: PlainNode, term: Mapping[str, Any]) -> bool:
    return term["topologyKey"] in node.labels


def _domain(node: PlainNode, term: Mapping[str, Any]) -> tuple[str, str]:
    key = term["topologyKey"]
    return key, node.labels[key]
