"""What InterPodAffinity asks about pods on nodes: the questions that the census counts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from kubescene.api.selectors import LabelSelector
from kubescene.scheduler.domains.affinity_terms import (
    NO_LABELS,
    AffinityTerm,
    CarriedTerm,
    TermKind,
)
from kubescene.scheduler.domains.groups import (
    NO_SHARE,
    ONE,
    LabelGroup,
    LabelPair,
    Share,
    a_pair,
)


class OwnTerm(Struct, frozen=True):
    """A term of the pod that looks for a node. ``namespaces`` None means all of them."""

    namespaces: frozenset[str] | None
    selector: LabelSelector
    topology_key: str

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return self.selector.matches(labels)


def resolved(term: AffinityTerm, namespaces: Iterable[tuple[str, Mapping[str, str]]]) -> OwnTerm:
    """A term with the namespaces that its selector finds now (IPA-2).

    The selector itself is then held against a namespace without labels, as kube-scheduler does: one
    that is content with that speaks of every namespace.
    """
    by_labels = term.namespace_selector
    if by_labels.matches(NO_LABELS):
        return OwnTerm(None, term.selector, term.topology_key)
    found = term.namespaces
    if not by_labels.is_nothing:
        found |= {name for name, labels in namespaces if by_labels.matches(labels)}
    return OwnTerm(found, term.selector, term.topology_key)


class MatchesAll(Struct, frozen=True):
    """Pods that match all terms of the affinity (IPA-4), those being deleted too (IPA-8)."""

    terms: tuple[OwnTerm, ...]
    reads_labels = True
    held_against = None

    @property
    def pair(self) -> LabelPair | None:
        return a_pair(self.terms[0].selector)

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return all(term.matches(namespace, labels) for term in self.terms)

    def of_labels(self, group: LabelGroup) -> Share:
        return ONE if self.matches(group.namespace, group.labels) else NO_SHARE

    def of_term(self, carried: CarriedTerm) -> Share:
        return NO_SHARE


class MatchesAny(Struct, frozen=True):
    """Pods that match terms of the anti-affinity, once for each term."""

    terms: tuple[OwnTerm, ...]
    reads_labels = True
    held_against = None

    @property
    def pair(self) -> LabelPair | None:
        return a_pair(self.terms[0].selector) if len(self.terms) == 1 else None

    def count(self, namespace: str, labels: Mapping[str, str]) -> int:
        return sum(term.matches(namespace, labels) for term in self.terms)

    def of_labels(self, group: LabelGroup) -> Share:
        found = self.count(group.namespace, group.labels)
        return Share(found, found)

    def of_term(self, carried: CarriedTerm) -> Share:
        return NO_SHARE


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A pod as terms of others see it: namespace and labels, and the labels of the namespace."""

    namespace: str
    pairs: tuple[LabelPair, ...]
    namespace_pairs: tuple[LabelPair, ...]
    labels: Mapping[str, str] = field(compare=False)
    namespace_labels: Mapping[str, str] = field(compare=False)

    def is_meant_by(self, term: AffinityTerm) -> bool:
        return term.matches(self.namespace, self.labels, self.namespace_labels)


def newcomer(
    namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
) -> Newcomer:
    pairs, others = tuple(sorted(labels.items())), tuple(sorted(namespace_labels.items()))
    return Newcomer(namespace, pairs, others, labels, namespace_labels)


class Repels(Struct, frozen=True):
    """Pods whose required anti-affinity keeps a newcomer out of their domain of one key."""

    newcomer: Newcomer
    topology_key: str
    reads_labels = False
    pair = None

    @property
    def held_against(self) -> Mapping[str, str]:
        return self.newcomer.labels

    def of_labels(self, group: LabelGroup) -> Share:
        return NO_SHARE

    def of_term(self, carried: CarriedTerm) -> Share:
        term = carried.term
        if carried.kind is not TermKind.ANTI_AFFINITY or term.topology_key != self.topology_key:
            return NO_SHARE
        return ONE if self.newcomer.is_meant_by(term) else NO_SHARE


class Preferences(Struct, frozen=True):
    """What a newcomer and the pods on nodes prefer, for domains of one key (SC-7).

    ``own`` are the preferred terms of the newcomer for this key, ``hard_weight`` is what required
    affinity of others counts.
    """

    newcomer: Newcomer
    topology_key: str
    own: tuple[tuple[int, OwnTerm], ...]
    hard_weight: int

    @property
    def pair(self) -> LabelPair | None:
        return a_pair(self.own[0][1].selector) if len(self.own) == 1 else None

    @property
    def reads_labels(self) -> bool:
        return bool(self.own)

    @property
    def held_against(self) -> Mapping[str, str]:
        return self.newcomer.labels

    def of_labels(self, group: LabelGroup) -> Share:
        weights = [w for w, term in self.own if term.matches(group.namespace, group.labels)]
        return Share(sum(weights), len(weights))

    def of_term(self, carried: CarriedTerm) -> Share:
        if carried.term.topology_key != self.topology_key:
            return NO_SHARE
        weight = weight_of(carried, self.hard_weight)
        if weight is None or not self.newcomer.is_meant_by(carried.term):
            return NO_SHARE
        return Share(weight, 1)


def weight_of(carried: CarriedTerm, hard_weight: int) -> int | None:
    """What a term of a pod on a node counts in Score; None if it does not count."""
    if carried.kind is TermKind.PREFERENCE:
        return carried.weight
    if carried.kind is TermKind.AFFINITY and hard_weight:
        return hard_weight
    return None
