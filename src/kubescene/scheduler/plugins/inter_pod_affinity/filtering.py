"""Required affinity and anti-affinity: what PreFilter prepares and Filter reads.

A node must have a matching pod in its domain of every affinity term, and none of an anti-affinity
term, neither of the pod's own terms nor of those of pods that are there already.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from kubescene.scheduler.domains.affinity_terms import CarriedTerm, TermKind, pod_affinity
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.groups import Matcher, RowCounter
from kubescene.scheduler.domains.tallies import DomainTally
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.plugins.inter_pod_affinity.matchers import (
    MatchesAll,
    MatchesAny,
    Newcomer,
    OwnTerm,
    Repels,
)
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo

AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY = 1, 2, 3

Domain: TypeAlias = tuple[str, str]
"""A topology key and its value."""
Unseen: TypeAlias = tuple[int, CarriedTerm]
"""The row of a node, and a term that a pod there carries and that is not seen."""


class KeyCounter:
    """A question for one topology key, and its counter as it was the last time."""

    __slots__ = ("_counter", "key", "matcher")

    def __init__(self, matcher: Matcher, key: str) -> None:
        self.matcher = matcher
        self.key = key
        self._counter: RowCounter | None = None

    def tally(self, census: PodCensus, unseen: Sequence[Unseen] = ()) -> DomainTally:
        """What domains have; terms of some pods may have to be left out."""
        self._counter = counter = census.counter(self._counter, self.matcher)
        tally = census.tally(counter, self.key)
        if not unseen:
            return tally
        shares = [(row, self.matcher.of_term(carried)) for row, carried in unseen]
        parts = [(row, share.amount, share.matches) for row, share in shares if share.matches]
        return tally.without(parts) if parts else tally


class RequiredTerms:
    """What pods of one signature ask of a node, and what is asked of them."""

    __slots__ = ("affinity", "anti", "existing", "keys", "matches_itself", "newcomer", "terms")

    def __init__(
        self,
        newcomer: Newcomer,
        affinity: tuple[OwnTerm, ...],
        anti: tuple[OwnTerm, ...],
        existing_keys: Sequence[str],
    ) -> None:
        self.newcomer = newcomer
        self.terms = MatchesAll(affinity) if affinity else None
        self.keys = tuple(dict.fromkeys(term.topology_key for term in affinity))
        self.affinity = [KeyCounter(self.terms, key) for key in self.keys if self.terms]
        self.anti = {key: KeyCounter(MatchesAny(terms), key) for key, terms in by_key(anti).items()}
        self.existing = [KeyCounter(Repels(newcomer, key), key) for key in existing_keys]
        self.matches_itself = self.terms is not None and self.terms.matches(
            newcomer.namespace, newcomer.labels
        )

    @property
    def is_empty(self) -> bool:
        return not (self.affinity or self.anti)


def by_key(terms: Sequence[OwnTerm]) -> dict[str, tuple[OwnTerm, ...]]:
    keys = dict.fromkeys(term.topology_key for term in terms)
    return {key: tuple(each for each in terms if each.topology_key == key) for key in keys}


class Supposed:
    """Matches that supposed pods bring or take along, by domain."""

    __slots__ = ("affinity", "anti", "existing")

    def __init__(self) -> None:
        self.affinity: dict[Domain, int] = {}
        self.anti: dict[Domain, int] = {}
        self.existing: dict[Domain, int] = {}

    def clone(self) -> "Supposed":
        copy = Supposed()
        copy.affinity = self.affinity.copy()
        copy.anti = self.anti.copy()
        copy.existing = self.existing.copy()
        return copy


class AffinityState:
    """Counts of one attempt; what is supposed beside them is in a small overlay."""

    __slots__ = ("_affinity", "_anti", "_existing", "_supposed", "_terms")

    def __init__(
        self, terms: RequiredTerms, census: PodCensus, unseen: Sequence[Unseen] = ()
    ) -> None:
        self._terms = terms
        self._affinity = [each.tally(census) for each in terms.affinity]
        self._anti = [each.tally(census) for each in terms.anti.values()]
        existing = [each.tally(census, unseen) for each in terms.existing]
        self._existing = [tally for tally in existing if tally.matches]
        self._supposed: Supposed | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to ask any node (IPA-4)."""
        return self._terms.is_empty and not self._existing

    def key(self) -> tuple[int, ...]:
        """Different whenever an answer may be: when a domain got its first match or lost its
        last.
        """
        return tuple(each.crossings for each in (*self._affinity, *self._anti, *self._existing))

    def clone(self) -> "AffinityState":
        copy: AffinityState = object.__new__(AffinityState)
        copy._terms = self._terms
        copy._affinity = self._affinity
        copy._anti = self._anti
        copy._existing = self._existing
        copy._supposed = None if self._supposed is None else self._supposed.clone()
        return copy

    # -- suppositions ----------------------------------------------------------------------

    def suppose(self, pod: PodInfo, node: NodeInfo, sign: int) -> None:
        """A pod came to a node, or left it."""
        if self._supposed is None:
            self._supposed = Supposed()
        supposed, terms, labels = self._supposed, self._terms, node.labels
        if terms.terms is not None and terms.terms.matches(pod.namespace, pod.labels):
            for key in terms.keys:
                _count(supposed.affinity, labels, key, sign)
        for key, each in terms.anti.items():
            if found := _matched(each.matcher, pod):
                _count(supposed.anti, labels, key, sign * found)
        for carried in pod_affinity(pod.signature).carried:
            if carried.kind is TermKind.ANTI_AFFINITY and terms.newcomer.is_meant_by(carried.term):
                _count(supposed.existing, labels, carried.term.topology_key, sign)

    # -- one node --------------------------------------------------------------------------

    def judge(self, node: NodeInfo) -> int:
        """0, or what speaks against the node, in this order (IPA-5)."""
        labels = node.labels
        if not self._attracts(labels):
            return AFFINITY
        supposed = self._supposed
        if _any_match(self._anti, labels, supposed.anti if supposed else None):
            return ANTI_AFFINITY
        if _any_match(self._existing, labels, supposed.existing if supposed else None):
            return EXISTING_ANTI_AFFINITY
        return 0

    def _attracts(self, labels: Mapping[str, str]) -> bool:
        """Whether the own affinity holds: every key, and a match in each domain (IPA-6)."""
        if not all(tally.key in labels for tally in self._affinity):
            return False
        changes = self._supposed.affinity if self._supposed else None
        if all(_matches_at(tally, labels, changes) > 0 for tally in self._affinity):
            return True
        return self._terms.matches_itself and self._nobody_matches()

    def _nobody_matches(self) -> bool:
        counted = sum(tally.matches for tally in self._affinity)
        return counted + (sum(self._supposed.affinity.values()) if self._supposed else 0) == 0

    # -- all nodes -------------------------------------------------------------------------

    def judge_rows(self, nodes: NodeTable, rows: Rows) -> Codes:
        if self._supposed is not None:
            return np.array([self.judge(nodes.infos[row]) for row in rows.tolist()], dtype=np.int64)
        codes = np.zeros(rows.size, dtype=np.int64)
        for code, tallies in (
            (EXISTING_ANTI_AFFINITY, self._existing),
            (ANTI_AFFINITY, self._anti),
        ):
            for tally in tallies:
                if tally.matches:
                    codes[tally.by_domain.take(tally.ids.take(rows)) > 0] = code
        if self._affinity:
            codes[self._repelled(rows)] = AFFINITY
        return codes

    def _repelled(self, rows: Rows) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        first = self._terms.matches_itself and self._nobody_matches()
        refused = np.zeros(rows.size, dtype=np.bool_)
        for tally in self._affinity:
            ids = tally.ids.take(rows)
            refused |= ids < 0 if first else tally.by_domain.take(ids) <= 0
        return refused


def _matched(matcher: Matcher, pod: PodInfo) -> int:
    assert isinstance(matcher, MatchesAny)
    return matcher.count(pod.namespace, pod.labels)


def _count(changes: dict[Domain, int], labels: Mapping[str, str], key: str, amount: int) -> None:
    if (value := labels.get(key)) is not None:
        domain = (key, value)
        changes[domain] = changes.get(domain, 0) + amount


def _matches_at(
    tally: DomainTally, labels: Mapping[str, str], changes: Mapping[Domain, int] | None
) -> int:
    value = labels.get(tally.key)
    if value is None:
        return 0
    counted = tally.by_domain.item(tally.domain(value))
    return counted + (changes.get((tally.key, value), 0) if changes else 0)


def _any_match(
    tallies: Sequence[DomainTally],
    labels: Mapping[str, str],
    changes: Mapping[Domain, int] | None,
) -> bool:
    if any(_matches_at(tally, labels, changes) > 0 for tally in tallies):
        return True
    # Supposed pods may carry terms with keys that nobody counts yet.
    counted = {tally.key for tally in tallies}
    return any(
        amount > 0 and key not in counted and labels.get(key) == value
        for (key, value), amount in (changes or {}).items()
    )
