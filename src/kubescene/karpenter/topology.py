"""Where pods may go for the sake of others: spread, affinity and anti-affinity by domain.

A group counts the pods that a selector chooses by the domains of one label; pods whose constraint
it is own it. Anti-affinity works both ways: of what pods in the cluster keep away, there are
groups of its own. What a node will be is known in part only, so that each group answers with the
domains that are left.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from kubescene.api.selectors.label_selectors import LabelSelector, from_label_selector
from kubescene.api.selectors.requirements import SelectorError
from kubescene.api.selectors.tolerations import find_untolerated
from kubescene.karpenter.pods import PodSeen
from kubescene.karpenter.requirements import (
    HOSTNAME,
    IN,
    LabelRequirement,
    Requirements,
    from_expressions,
    from_labels,
)
from kubescene.types import ReadOnlyObject

SPREAD, AFFINITY, ANTI_AFFINITY = "topology spread", "pod affinity", "pod anti-affinity"
ALL_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNLIMITED = 2**31 - 1
HONOR, IGNORE = "Honor", "Ignore"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Taints = Sequence[ReadOnlyObject]


class NodeFilter(NamedTuple):
    """Which nodes count for a spread constraint; by default all do."""

    terms: Sequence[Requirements] = ()
    """Alternatives."""
    taint_policy: str = ""
    affinity_policy: str = ""
    tolerations: Sequence[ReadOnlyObject] = ()

    def matches(self, taints: Taints, requirements: Requirements) -> bool:
        is_honored = self.affinity_policy == HONOR and self.terms
        if is_honored and all(requirements.conflict(each) is not None for each in self.terms):
            return False
        return self.taint_policy != HONOR or tolerates_all(self.tolerations, taints)

    @property
    def key(self) -> object:
        """Filters that differ only in values of labels are one, as upstream has it: its hash sees
        the labels, not what they are to be."""
        return (
            _odd_ones(tuple(sorted(each)) for each in self.terms),
            self.taint_policy,
            self.affinity_policy,
            _odd_ones(orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in self.tolerations),
        )


class Unsatisfiable(NamedTuple):
    """Why a group leaves no domain."""

    kind: str
    key: str
    counts: Mapping[str, int]
    pod_domains: LabelRequirement
    node_domains: LabelRequirement

    def __str__(self) -> str:
        shown = [f"{each}: {count}" for each, count in sorted(self.counts.items())]
        text = ", ".join(shown[:25])
        if len(shown) > 25:
            text += f" and {len(shown) - 25} other(s)"
        return (
            f"unsatisfiable topology constraint for {self.kind}, key={self.key} "
            f"(counts = {text}, podDomains = {self.pod_domains}, nodeDomains = {self.node_domains}"
        )


class Domains:
    """Where a label may lead to: every domain with the taints of those who offer it."""

    def __init__(self) -> None:
        self._taints: dict[str, list[Taints]] = {}

    def insert(self, domain: str, taints: Taints) -> None:
        known = self._taints.get(domain)
        if known is None or not taints:
            self._taints[domain] = [taints]
        elif known[0]:
            known.append(taints)

    def open_to(self, tolerations: Sequence[ReadOnlyObject], policy: str) -> Iterator[str]:
        for domain, sets in self._taints.items():
            if policy == IGNORE or any(tolerates_all(tolerations, each) for each in sets):
                yield domain


class TopologyGroup:
    """Pods by the domains of one label."""

    def __init__(
        self,
        kind: str,
        key: str,
        pod: PodSeen,
        namespaces: frozenset[str],
        raw: Mapping[str, Any] | None,
        domains: Domains | None,
        *,
        max_skew: int = UNLIMITED,
        min_domains: int | None = None,
        node_filter: NodeFilter | None = None,
    ) -> None:
        self.kind, self.key, self.namespaces, self.raw = kind, key, namespaces, raw
        self.max_skew, self.min_domains = max_skew, min_domains
        self.filter = node_filter or NodeFilter()
        self.selector = _selector(raw)
        self.owners: set[str] = set()
        opened = (
            () if domains is None else domains.open_to(pod.tolerations, self.filter.taint_policy)
        )
        self.counts: dict[str, int] = dict.fromkeys(opened, 0)
        self.empty = dict.fromkeys(self.counts)

    @property
    def identity(self) -> object:
        return (
            self.kind,
            self.key,
            tuple(sorted(self.namespaces)),
            self.max_skew,
            self.filter.key,
            _selector_key(self.raw),
        )

    def selects(self, pod: PodSeen) -> bool:
        if pod.namespace not in self.namespaces or self.selector is None:
            return False
        return self.selector.matches(pod.labels)

    def counts_pod(self, pod: PodSeen, taints: Taints, requirements: Requirements) -> bool:
        return self.selects(pod) and self.filter.matches(taints, requirements)

    def record(self, domains: Iterable[str]) -> None:
        for each in domains:
            self.counts[each] = self.counts.get(each, 0) + 1
            self.empty.pop(each, None)

    def register(self, domain: str) -> None:
        if domain not in self.counts:
            self.counts[domain] = 0
            self.empty[domain] = None

    # -- what is left ----------------------------------------------------------------------

    def left(
        self, pod: PodSeen, of_pod: LabelRequirement, of_node: LabelRequirement
    ) -> LabelRequirement:
        """The domains of the node that the pod may go to; none: `DoesNotExist`."""
        if self.kind == SPREAD:
            return self._spread(pod, of_pod, of_node)
        if self.kind == AFFINITY:
            return self._near(pod, of_pod, of_node)
        return self._apart(of_pod, of_node)

    def _spread(
        self, pod: PodSeen, of_pod: LabelRequirement, of_node: LabelRequirement
    ) -> LabelRequirement:
        """The emptiest domain within the skew; the first by name of several."""
        more = 1 if self.selects(pod) else 0
        host = _single(of_node) if self.key == HOSTNAME else None
        if host is not None:
            # One more host can always be had: the least count is nought.
            fits = self.counts.get(host, 0) + more <= self.max_skew
            return self._chosen((host,) if fits else ())
        least = self._least(of_pod)
        best, best_count = "", UNLIMITED
        for domain in self._within(of_node):
            count = self.counts[domain] + more
            if count - least <= self.max_skew and count < best_count:
                best, best_count = domain, count
        return self._chosen((best,) if best else ())

    def _least(self, of_pod: LabelRequirement) -> int:
        if self.key == HOSTNAME:
            return 0
        counts = [count for domain, count in self.counts.items() if of_pod.has(domain)]
        if self.min_domains is not None and len(counts) < self.min_domains:
            return 0
        return min(counts, default=UNLIMITED)

    def _near(
        self, pod: PodSeen, of_pod: LabelRequirement, of_node: LabelRequirement
    ) -> LabelRequirement:
        host = _single(of_node) if self.key == HOSTNAME else None
        if host is not None:
            if not of_pod.has(host):
                return self._chosen(())
            begins = self.counts.get(host, 0) > 0 or self._may_begin(pod, of_pod)
            return self._chosen((host,) if begins else ())
        found = [
            each for each in self._within(of_node) if of_pod.has(each) and self.counts[each] > 0
        ]
        if not found and self._may_begin(pod, of_pod):
            both = of_pod.narrowed(of_node)
            for allowed in (both, of_pod):
                found += [each for each in sorted(self.counts) if allowed.has(each)][:1]
        return self._chosen(found)

    def _may_begin(self, pod: PodSeen, of_pod: LabelRequirement) -> bool:
        """The first of pods that want each other's company may go anywhere."""
        if not self.selects(pod):
            return False
        if len(self.counts) == len(self.empty):
            return True
        return not any(count > 0 and of_pod.has(each) for each, count in self.counts.items())

    def _apart(self, of_pod: LabelRequirement, of_node: LabelRequirement) -> LabelRequirement:
        host = _single(of_node) if self.key == HOSTNAME else None
        if host is not None:
            return self._chosen((host,) if not self.counts.get(host) else ())
        return self._chosen(each for each in self.empty if of_node.has(each) and of_pod.has(each))

    def _within(self, of_node: LabelRequirement) -> list[str]:
        if of_node.operator == IN:
            return [each for each in sorted(of_node.values) if each in self.counts]
        return [each for each in sorted(self.counts) if of_node.has(each)]

    def _chosen(self, domains: Iterable[str]) -> LabelRequirement:
        return LabelRequirement(self.key, frozenset(domains))


class TopologyGroups:
    """All groups that matter to pods that want a place."""

    def __init__(
        self,
        pods: Sequence[PodSeen],
        domains: Mapping[str, Domains],
        cluster: "ClusterPods",
        *,
        ignores_preferences: bool = False,
    ) -> None:
        self._domains = domains
        self._cluster = cluster
        self._ignores = ignores_preferences
        self._excluded = {each.uid for each in pods}
        self._groups: dict[object, TopologyGroup] = {}
        self._inverse: dict[object, TopologyGroup] = {}
        self._own: dict[str, list[TopologyGroup]] = {}
        for pod, labels in cluster.with_anti_affinity():
            if pod.uid not in self._excluded:
                self._keep_away(pod, labels)
        for each in sorted(pods, key=lambda each: each.key):
            self.update(each)

    def update(self, pod: PodSeen) -> None:
        """Its constraints are what they are now: it may have given some up."""
        for group in self._own.pop(pod.uid, ()):
            group.owners.discard(pod.uid)
        if pod.has_anti_affinity(preferred=not self._ignores):
            self._keep_away(pod, {})
        owned = self._own[pod.uid] = []
        for group in (*self._spreads(pod), *self._affinities(pod)):
            known = self._groups.get(group.identity)
            if known is None:
                self._count(group)
                known = self._groups[group.identity] = group
            known.owners.add(pod.uid)
            owned.append(known)

    def register(self, host: str) -> None:
        for groups in (self._groups, self._inverse):
            for each in groups.values():
                if each.key == HOSTNAME:
                    each.register(host)

    def record(self, pod: PodSeen, taints: Taints, requirements: Requirements) -> None:
        """The pod goes to a node of which this is known."""
        for group in self._groups.values():
            if not group.counts_pod(pod, taints, requirements):
                continue
            found = requirements.of(group.key)
            if group.kind == ANTI_AFFINITY or found.only is not None:
                group.record(found.values)
        for group in self._inverse.values():
            if pod.uid in group.owners:
                group.record(requirements.of(group.key).values)

    def narrowed(
        self, pod: PodSeen, taints: Taints, of_pod: Requirements, of_node: Requirements
    ) -> Requirements | Unsatisfiable:
        """What the node may be if the pod goes there."""
        found = of_node
        for group in self._matching(pod, taints, of_node):
            of_pod_here, of_node_here = of_pod.of(group.key), of_node.of(group.key)
            left = group.left(pod, of_pod_here, of_node_here)
            if not left.values:
                return Unsatisfiable(group.kind, group.key, group.counts, of_pod_here, of_node_here)
            found = found.adding(left)
        return found

    def _matching(
        self, pod: PodSeen, taints: Taints, of_node: Requirements
    ) -> Iterator[TopologyGroup]:
        yield from self._own.get(pod.uid, ())
        for group in self._inverse.values():
            if group.counts_pod(pod, taints, of_node):
                yield group

    # -- groups ----------------------------------------------------------------------------

    def _keep_away(self, pod: PodSeen, labels: Mapping[str, str]) -> None:
        for term in pod.terms("podAntiAffinity", preferred=False):
            new = self._of_term(ANTI_AFFINITY, term, pod)
            group = self._inverse.setdefault(new.identity, new)
            if group.key in labels:
                group.record((labels[group.key],))
            group.owners.add(pod.uid)

    def _spreads(self, pod: PodSeen) -> Iterator[TopologyGroup]:
        for each in pod.spec.get("topologySpreadConstraints") or ():
            if self._ignores and each.get("whenUnsatisfiable") != "DoNotSchedule":
                continue
            taints = each.get("nodeTaintsPolicy") or IGNORE
            affinity = each.get("nodeAffinityPolicy") or HONOR
            yield TopologyGroup(
                SPREAD,
                each["topologyKey"],
                pod,
                frozenset((pod.namespace,)),
                _with_own_labels(each, pod),
                self._domains.get(each["topologyKey"]),
                max_skew=each["maxSkew"],
                min_domains=each.get("minDomains"),
                node_filter=NodeFilter(_filter_terms(pod), taints, affinity, pod.tolerations),
            )

    def _affinities(self, pod: PodSeen) -> Iterator[TopologyGroup]:
        for kind, name in ((AFFINITY, "podAffinity"), (ANTI_AFFINITY, "podAntiAffinity")):
            for term in pod.terms(name, preferred=not self._ignores):
                yield self._of_term(kind, term, pod)

    def _of_term(self, kind: str, term: ReadOnlyObject, pod: PodSeen) -> TopologyGroup:
        namespaces = self._cluster.namespaces(
            pod.namespace, term.get("namespaces") or (), term.get("namespaceSelector")
        )
        key = term["topologyKey"]
        return TopologyGroup(
            kind, key, pod, namespaces, term.get("labelSelector"), self._domains.get(key)
        )

    def _count(self, group: TopologyGroup) -> None:
        """The pods that are there already."""
        for labels, taints in self._cluster.staying_nodes():
            if group.key in labels and group.filter.matches(taints, from_labels(labels)):
                group.register(labels[group.key])
        for pod, name, labels, taints in self._cluster.bound():
            if pod.uid in self._excluded or pod.namespace not in group.namespaces:
                continue
            if group.raw is not None and not group.selects(pod):
                continue
            domain = labels.get(group.key, name if group.key == HOSTNAME else None)
            if domain is not None and group.filter.matches(taints, from_labels(labels)):
                group.record((domain,))


class ClusterPods:
    """The pods on nodes, and what there is of nodes and namespaces."""

    def __init__(
        self,
        nodes: Mapping[str, ReadOnlyObject],
        staying: Sequence[ReadOnlyObject],
        pods: Sequence[PodSeen],
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> None:
        """``nodes`` are all there are, ``staying`` those that count as places to go."""
        self._nodes = nodes
        self._staying = staying
        self._pods = [each for each in pods if each.node]
        self._namespaces = namespaces

    def staying_nodes(self) -> Iterator[tuple[Mapping[str, str], Taints]]:
        return (_shape(each) for each in self._staying)

    def bound(self) -> Iterator[tuple[PodSeen, str, Mapping[str, str], Taints]]:
        for pod in self._pods:
            node = self._nodes.get(pod.node)
            if node is not None and pod.is_active:
                yield pod, pod.node, *_shape(node)

    def with_anti_affinity(self) -> Iterator[tuple[PodSeen, Mapping[str, str]]]:
        for pod in self._pods:
            node = self._nodes.get(pod.node)
            if node is None or pod.has_ended or not pod.has_anti_affinity(preferred=False):
                continue
            yield pod, _shape(node)[0]

    def namespaces(
        self, own: str, named: Collection[str], selector: Mapping[str, Any] | None
    ) -> frozenset[str]:
        if selector is None:
            return frozenset(named or (own,))
        wanted = _selector(selector)
        chosen = (
            name
            for name, labels in self._namespaces.items()
            if wanted is not None and wanted.matches(labels)
        )
        return frozenset((*chosen, *named))


def domains_of(
    offers: Iterable[tuple[Requirements, Iterable[Requirements], Taints]],
) -> dict[str, Domains]:
    """Every label with the domains that pools and their instance types may lead to."""
    found: dict[str, Domains] = {}

    def insert(
        requirements: Requirements, taints: Taints, wanted: Callable[[LabelRequirement], bool]
    ) -> None:
        for key, each in requirements.items():
            if wanted(each):
                domains = found.setdefault(key, Domains())
                for value in sorted(each.values):
                    domains.insert(value, taints)

    for own, types, taints in offers:
        for each in types:
            insert(own.adding(*each.values()), taints, lambda each: True)
        insert(own, taints, lambda each: each.operator == IN)
    return found


def tolerates_all(tolerations: Sequence[ReadOnlyObject], taints: Taints) -> bool:
    return not taints or find_untolerated(taints, tolerations, ALL_EFFECTS) is None


def _shape(node: ReadOnlyObject) -> tuple[Mapping[str, str], Taints]:
    return node["metadata"].get("labels") or {}, (node.get("spec") or {}).get("taints") or ()


def _single(of_node: LabelRequirement) -> str | None:
    return next(iter(of_node.values)) if len(of_node.values) == 1 else None


def _selector(raw: Mapping[str, Any] | None) -> LabelSelector | None:
    """None chooses nothing."""
    if raw is None:
        return None
    try:
        return from_label_selector(raw)
    except SelectorError:
        return None


def _selector_key(raw: Mapping[str, Any] | None) -> object:
    if raw is None:
        return None
    labels = tuple(sorted((raw.get("matchLabels") or {}).items()))
    return labels, frozenset(
        (each["key"], each["operator"], frozenset(each.get("values") or ()))
        for each in raw.get("matchExpressions") or ()
    )


def _with_own_labels(constraint: ReadOnlyObject, pod: PodSeen) -> Mapping[str, Any] | None:
    """Pods whose labels by ``matchLabelKeys`` are those of the pod."""
    raw: Mapping[str, Any] | None = constraint.get("labelSelector")
    keys = [each for each in constraint.get("matchLabelKeys") or () if each in pod.labels]
    if raw is None or not keys:
        return raw
    own = [{"key": each, "operator": IN, "values": [pod.labels[each]]} for each in keys]
    return {**raw, "matchExpressions": [*(raw.get("matchExpressions") or ()), *own]}


def _filter_terms(pod: PodSeen) -> Sequence[Requirements]:
    selected = from_labels(pod.spec.get("nodeSelector") or {})
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED)
    if required is None:
        return (selected,)
    return [
        selected.adding(*from_expressions(each.get("matchExpressions") or ()).values())
        for each in required.get("nodeSelectorTerms") or ()
    ]


def _odd_ones(parts: Iterable[Any]) -> frozenset[Any]:
    """Parts that occur an odd number of times: equal ones cancel each other out upstream."""
    found: set[Any] = set()
    for each in parts:
        found ^= {each}
    return frozenset(found)
