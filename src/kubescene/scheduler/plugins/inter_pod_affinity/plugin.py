"""InterPodAffinity: pods that want to be near others, or away from them.

Pods on nodes that match the terms of the pod, and terms of pods on nodes that match the pod, are
counted by topology domain (`kubescene.scheduler.domains`). A pod without terms that no term means
pays nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubescene.api.kinds import NAMESPACE
from kubescene.scheduler.domains.affinity_terms import (
    NO_LABELS,
    CarriedTerm,
    TermKind,
    names_others,
    pod_affinity,
    repels_others,
)
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.stamps import Stamps
from kubescene.scheduler.domains.tallies import DomainTally
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    ClusterFilterPlugin,
    ClusterScorePlugin,
    Codes,
    EnqueueExtensions,
    EventRegistration,
    FilterPlugin,
    Handle,
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
from kubescene.scheduler.plugins.inter_pod_affinity import hints, scoring
from kubescene.scheduler.plugins.inter_pod_affinity.filtering import (
    AFFINITY,
    ANTI_AFFINITY,
    EXISTING_ANTI_AFFINITY,
    AffinityState,
    RequiredTerms,
    Unseen,
)
from kubescene.scheduler.plugins.inter_pod_affinity.matchers import (
    Newcomer,
    newcomer,
    resolved,
    weight_of,
)
from kubescene.scheduler.plugins.inter_pod_affinity.scoring import PreferredTerms
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo

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
        return scoring.rate(_tallies(state), node)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return scoring.rate_rows(_tallies(state), rows)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return scoring.normalized(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return hints.registrations()

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
