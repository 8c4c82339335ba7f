"""InterPodAffinity: pods that want to be near others, or away from them.

Pods on nodes that match the terms of the pod, and terms of pods on nodes that match the pod, are
counted by topology domain (`kubescene.scheduler.domains`). A pod without terms that no term means
pays nothing. Preferred terms, the pod's own and those of pods on nodes, rate nodes (SC-7).

The hints say which events may help a pod that was rejected. They hold terms against pods as they
are written, without a look at the labels of namespaces, as kube-scheduler's do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kubescene.api.kinds import NAMESPACE
from kubescene.api.records.changes import Change
from kubescene.api.selectors import SelectorError
from kubescene.scheduler.domains.affinity_terms import (
    NO_LABELS,
    REQUIRED,
    AffinityTerm,
    CarriedTerm,
    PodAffinity,
    TermKind,
    names_others,
    pod_affinity,
    read_terms,
    repels_others,
)
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.stamps import Stamps
from kubescene.scheduler.domains.tallies import DomainTally
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    Action,
    ClusterEvent,
    ClusterFilterPlugin,
    ClusterScorePlugin,
    Codes,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    FilterPlugin,
    Handle,
    Hint,
    NormalizePlugin,
    Plugin,
    PreFilterExtensions,
    PreScorePlugin,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
)
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Status
from kubescene.scheduler.plugins.inter_pod_affinity.filtering import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    AffinityState,
    KeyCounter,
    RequiredTerms,
    Unseen,
)
from kubescene.scheduler.plugins.inter_pod_affinity.matchers import (
    Newcomer,
    OwnTerm,
    Preferences,
    newcomer,
    resolved,
    weight_of,
)
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject


def registrations() -> Sequence[EventRegistration]:
    pod, node = EventResource.POD, EventResource.NODE
    node_actions = Action.ADD | Action.UPDATE_NODE_LABEL
    events = (
        (ClusterEvent(pod, Action.ADD), after_pod_addition),
        (ClusterEvent(pod, Action.UPDATE_POD_LABEL), after_label_change),
        (ClusterEvent(pod, Action.DELETE), after_pod_deletion),
        (ClusterEvent(node, node_actions), after_node_change),
    )
    return [EventRegistration(event, hint, by_signature=True) for event, hint in events]


def after_pod_addition(pod: PodInfo, change: Change) -> Hint:
    """A pod got a node: does it match the affinity?"""
    terms = pod_affinity(pod.signature)
    return _queue_if(terms.is_unclear or _matches_all(terms.required, change.object))


def after_label_change(pod: PodInfo, change: Change) -> Hint:
    """The pod itself, or one on a node that begins to attract it or ceases to repel it."""
    if change.record.uid == pod.uid:
        return Hint.QUEUE
    before, after = change.previous_object, change.object
    if before is None or not (_has_place(before) and _has_place(after)):
        return Hint.SKIP
    terms = pod_affinity(pod.signature)
    return _queue_if(terms.is_unclear or _relaxes(terms, before, after))


def _relaxes(terms: PodAffinity, before: ReadOnlyObject, after: ReadOnlyObject) -> bool:
    """Whether a pod on a node begins to match the affinity, or ceases to match the
    anti-affinity.
    """
    if not _matches_all(terms.required, before) and _matches_all(terms.required, after):
        return True
    anti = terms.required_anti
    return _matches_all(anti, before) and not _matches_all(anti, after)


def after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """A pod is gone that repelled this one, or was repelled by it."""
    gone = change.previous_object or change.object
    if not _has_place(gone):
        return Hint.SKIP
    terms = pod_affinity(pod.signature)
    if terms.is_unclear or _matches_all(terms.required_anti, gone):
        return Hint.QUEUE
    affinity = (gone["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    try:
        theirs = read_terms(gone["metadata"].get("namespace") or "", affinity.get(REQUIRED))
    except SelectorError:
        return Hint.QUEUE
    return _queue_if(_all_match(theirs, pod.namespace, pod.labels))


def after_node_change(pod: PodInfo, change: Change) -> Hint:
    """A node came, or moved to another domain of one of the terms."""
    terms = pod_affinity(pod.signature)
    after = change.record.labels
    if terms.is_unclear:
        return Hint.QUEUE
    if change.previous is None:
        joins = any(term.topology_key in after for term in terms.required)
        return _queue_if(joins or bool(terms.required_anti))
    before = change.previous.labels
    entered = any(
        after.get(term.topology_key) not in (None, before.get(term.topology_key))
        for term in terms.required
    )
    left = any(
        before.get(term.topology_key) not in (None, after.get(term.topology_key))
        for term in terms.required_anti
    )
    return _queue_if(entered or left)


def _has_place(pod: ReadOnlyObject) -> bool:
    """Whether a pod is on a node or nominated to one."""
    nominated = (pod.get("status") or {}).get("nominatedNodeName")
    return bool(pod["spec"].get("nodeName") or nominated)


def _matches_all(terms: Sequence[AffinityTerm], pod: ReadOnlyObject) -> bool:
    metadata = pod["metadata"]
    return _all_match(terms, metadata.get("namespace") or "", metadata.get("labels") or {})


def _all_match(terms: Sequence[AffinityTerm], namespace: str, labels: Mapping[str, str]) -> bool:
    return bool(terms) and all(term.matches(namespace, labels) for term in terms)


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


class PreferredTerms:
    """What pods of one signature and the pods on nodes prefer of each other, by topology key."""

    __slots__ = ("_counters",)

    def __init__(
        self,
        newcomer: Newcomer,
        own: Sequence[tuple[int, OwnTerm]],
        existing_keys: Sequence[str],
        hard_weight: int,
    ) -> None:
        keys = dict.fromkeys([*(term.topology_key for _, term in own), *existing_keys])
        self._counters = [
            KeyCounter(
                Preferences(
                    newcomer,
                    key,
                    tuple(each for each in own if each[1].topology_key == key),
                    hard_weight,
                ),
                key,
            )
            for key in keys
        ]

    def tallies(self, census: PodCensus, unseen: Sequence[Unseen] = ()) -> list[DomainTally]:
        """By key, what domains amount to; keys without any match are left out."""
        tallies = [each.tally(census, unseen) for each in self._counters]
        return [tally for tally in tallies if tally.matches]


def rate(tallies: Sequence[DomainTally], node: NodeInfo) -> int:
    """What the domains of a node amount to."""
    return sum(tally.amounts.item(tally.domain(node.labels.get(tally.key))) for tally in tallies)


def rate_rows(tallies: Sequence[DomainTally], rows: Rows) -> Scores:
    scores = np.zeros(rows.size, dtype=np.int64)
    for tally in tallies:
        scores += tally.amounts.take(tally.ids.take(rows))
    return scores


def normalized(scores: Scores) -> Scores:
    """The lowest score becomes 0, the highest 100; all 0 if they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if lowest == highest:
        return np.zeros(scores.size, dtype=np.int64)
    shares = (scores - lowest).astype(np.float64) / float(highest - lowest)
    return (float(MAX_NODE_SCORE) * shares).astype(np.int64)


NAME = "InterPodAffinity"
_SCORE_KEY = f"PreScore{NAME}"


class InterPodAffinity(
    PreFilterExtensions,
    FilterPlugin,
    ClusterFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ClusterScorePlugin,
    NormalizePlugin,
    EnqueueExtensions,
):
    name = NAME
    concerns_by_kind = True
    reads = Reads.DOMAIN
    REASON_AFFINITY = "node(s) didn't match pod affinity rules"
    REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
    REASON_EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
    REFUSALS: Mapping[int, Status] = {
        AFFINITY: Status.unresolvable(REASON_AFFINITY),
        ANTI_AFFINITY: Status.unschedulable(REASON_ANTI_AFFINITY),
        EXISTING_ANTI_AFFINITY: Status.unschedulable(REASON_EXISTING),
    }

    def __init__(
        self, handle: Handle, *, hard_weight: int = 1, ignore_preferred: bool = False
    ) -> None:
        self._nodes = handle.nodes
        self._census = handle.nodes.shared(PodCensus)
        self._namespaces = handle.lister(NAMESPACE)
        self._hard_weight = hard_weight
        self._ignore_preferred = ignore_preferred
        self._stamps = Stamps()
        self._version = 0
        self._required: Memo[PodSignature, RequiredTerms] = Memo(self._read_required)
        self._preferred: Memo[PodSignature, PreferredTerms] = Memo(self._read_preferred)

    # -- whom it concerns ------------------------------------------------------------------

    @property
    def concern_version(self) -> int:
        self._census.sync()
        return self._census.term_version + self._namespaces.spec_version

    def concerns(self, signature: PodSignature) -> bool:
        affinity = pod_affinity(signature)
        if affinity.requires_something or affinity.error:
            return True
        return bool(self._repelling_keys(self._newcomer(signature)))

    def concerns_scoring(self, signature: PodSignature) -> bool:
        if pod_affinity(signature).has_preferred:
            return True
        if self._ignore_preferred:
            return False
        return bool(self._preferring_keys(self._newcomer(signature)))

    # -- Filter ----------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        if error := pod_affinity(pod.signature).error:
            return Status.unresolvable(f"parsing pod: {error}"), None
        self._sync()
        prepared = AffinityState(
            self._required[pod.signature], self._census, self._unseen(repels_others)
        )
        if prepared.is_empty:
            # Nominated pods that repel this one then go unnoticed, as in kube-scheduler (C-2).
            return SKIP, None
        state.write(NAME, prepared)
        return SUCCESS, None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        state.read(NAME, AffinityState).suppose(added, node, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status:
        state.read(NAME, AffinityState).suppose(removed, node, -1)
        return SUCCESS

    def stamp(self, state: CycleState, pod: PodInfo) -> int:
        return self._stamps.of(pod.signature, state.read(NAME, AffinityState).key())

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        code = state.read(NAME, AffinityState).judge(node)
        return self.REFUSALS[code] if code else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return state.read(NAME, AffinityState).judge_rows(nodes, rows)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSALS[code]

    # -- Score -----------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        if self._ignore_preferred and not pod_affinity(pod.signature).has_preferred:
            return SKIP
        self._sync()
        # Who prefers something looks at all nodes, others at those that are known to have terms.
        has_preferred = pod_affinity(pod.signature).has_preferred
        unseen = () if has_preferred else self._unseen(names_others)
        tallies = self._preferred[pod.signature].tallies(self._census, unseen)
        if not tallies:
            return SKIP
        state.write(_SCORE_KEY, tallies)
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return rate(_tallies(state), node)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return rate_rows(_tallies(state), rows)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return normalized(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return registrations()

    # -- inside ----------------------------------------------------------------------------

    def _sync(self) -> None:
        """What is read of a signature holds while the same terms are carried."""
        version = self.concern_version
        if version != self._version:
            self._version = version
            self._required.clear()
            self._preferred.clear()

    def _unseen(self, has_terms: Callable[[PodSignature], bool]) -> list[Unseen]:
        """Terms of group members that are tried on nodes where nobody else has any.

        kube-scheduler lists the nodes with such pods once for all members of a group.
        """
        nodes = self._nodes
        unseen: list[Unseen] = []
        for pod in nodes.tried.values():
            row, carried = nodes.row_of(pod.node), pod_affinity(pod.signature).carried
            if row is None or not carried:
                continue
            staying = (each for each in nodes.infos[row].pods if each.uid not in nodes.tried)
            if not any(has_terms(each.signature) for each in staying):
                unseen.extend((row, each) for each in carried)
        return unseen

    def _read_required(self, signature: PodSignature) -> RequiredTerms:
        affinity, new = pod_affinity(signature), self._newcomer(signature)
        return RequiredTerms(
            new,
            tuple(resolved(term, self._named()) for term in affinity.required),
            tuple(resolved(term, self._named()) for term in affinity.required_anti),
            self._repelling_keys(new),
        )

    def _read_preferred(self, signature: PodSignature) -> PreferredTerms:
        new, preferred = self._newcomer(signature), pod_affinity(signature).preferred
        own = [(weight, resolved(term, self._named())) for weight, term in preferred]
        return PreferredTerms(new, own, self._preferring_keys(new), self._hard_weight)

    def _newcomer(self, signature: PodSignature) -> Newcomer:
        namespace = self._namespaces.get(signature.namespace)
        labels = NO_LABELS if namespace is None else namespace["metadata"].get("labels")
        return newcomer(signature.namespace, signature.labels, labels or NO_LABELS)

    def _named(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        for namespace in self._namespaces.list():
            metadata = namespace["metadata"]
            yield metadata["name"], metadata.get("labels") or NO_LABELS

    def _repelling_keys(self, new: Newcomer) -> list[str]:
        """The topology keys of anti-affinity terms on nodes that mean a pod."""
        return _keys(
            carried
            for carried in self._census.carried_terms(new.labels)
            if carried.kind is TermKind.ANTI_AFFINITY and new.is_meant_by(carried.term)
        )

    def _preferring_keys(self, new: Newcomer) -> list[str]:
        """The topology keys of terms on nodes that count in Score for a pod."""
        return _keys(
            carried
            for carried in self._census.carried_terms(new.labels)
            if weight_of(carried, self._hard_weight) is not None and new.is_meant_by(carried.term)
        )

    def sign(self, signature: PodSignature) -> Part | None:
        if names_others(signature):
            return None
        return signing.NOTHING if self._ignore_preferred else signing.labels(signature)


def _keys(carried: Iterator[CarriedTerm]) -> list[str]:
    return sorted({each.term.topology_key for each in carried})


def _tallies(state: CycleState) -> list[DomainTally]:
    found: list[DomainTally] = state.read(_SCORE_KEY, list)
    return found


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    weight = arguments.get("hardPodAffinityWeight")
    return InterPodAffinity(
        handle,
        hard_weight=1 if weight is None else weight,
        ignore_preferred=bool(arguments.get("ignorePreferredTermsOfExistingPods")),
    )
