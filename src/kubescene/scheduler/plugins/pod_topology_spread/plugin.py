"""PodTopologySpread: pods that match a selector are spread over the domains of a topology.

``DoNotSchedule`` constraints refuse nodes, ``ScheduleAnyway`` ones rate them. A pod without any
constraint has the default ones, with a selector made of what selects the pod. Matching pods are
counted by domain (`kubescene.scheduler.domains`). The hints say which events may help a pod that
was rejected.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.selectors import SelectorError
from kubescene.bounded import BoundedDict
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.stamps import Stamps
from kubescene.scheduler.framework import signing
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
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
from kubescene.scheduler.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    SpreadConstraint,
    constraints_of,
)
from kubescene.scheduler.plugins.pod_topology_spread.default_selectors import DefaultSelectors
from kubescene.scheduler.plugins.pod_topology_spread.filtering import (
    MISSING_LABEL,
    SKEWED,
    CountedConstraint,
    SpreadState,
    counted_constraints,
)
from kubescene.scheduler.plugins.pod_topology_spread.scoring import SoftConstraints, SpreadScores
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.types import ReadOnlyObject

Constraints: TypeAlias = Sequence[SpreadConstraint]


class SpreadHints:
    """Hints that know the hard constraints of a pod; None if they cannot be read."""

    def __init__(self, constraints_of: Callable[[PodInfo], Constraints | None]) -> None:
        self._constraints_of = constraints_of

    def registrations(self) -> Sequence[EventRegistration]:
        pod, node = EventResource.POD, EventResource.NODE
        updates = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        node_updates = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        events = (
            (ClusterEvent(pod, Action.ADD), self.after_pod_addition),
            (ClusterEvent(pod, updates), self.after_pod_update),
            (ClusterEvent(pod, Action.DELETE), self.after_pod_deletion),
            (ClusterEvent(node, Action.ADD | Action.DELETE | node_updates), self.after_node_change),
        )
        return [EventRegistration(event, hint, by_signature=True) for event, hint in events]

    def after_pod_addition(self, pod: PodInfo, change: Change) -> Hint:
        return self._if_counted(pod, change.object)

    def after_pod_deletion(self, pod: PodInfo, change: Change) -> Hint:
        return self._if_counted(pod, change.previous_object or change.object)

    def after_pod_update(self, pod: PodInfo, change: Change) -> Hint:
        """The pod itself, or one on a node, is matched now or is not any more."""
        before, after = change.previous_object, change.object
        if before is None or not (_is_involved(before, pod) and _is_involved(after, pod)):
            return Hint.SKIP
        constraints = self._constraints_of(pod)
        if constraints is None:
            return Hint.QUEUE
        own = change.record.uid == pod.uid
        tolerates_others = own and _tolerations(before) != _tolerations(after)
        if tolerates_others and any(each.honors_taints for each in constraints):
            return Hint.QUEUE
        old, new = _labels(before), _labels(after)
        return _queue_if(any(each.matches(old) != each.matches(new) for each in constraints))

    def after_node_change(self, pod: PodInfo, change: Change) -> Hint:
        """A node with all topology keys came, left, or changed what counts."""
        constraints = self._constraints_of(pod)
        if constraints is None:
            return Hint.QUEUE
        after, before = change.record.labels, change.previous
        counts = _has_all(after, constraints)
        if change.type is ChangeType.DELETED or before is None:
            return _queue_if(counts)
        if _has_all(before.labels, constraints) != counts:
            return Hint.QUEUE
        if not counts:
            return Hint.SKIP
        moved = any(
            before.labels.get(each.topology_key) != after.get(each.topology_key)
            for each in constraints
        )
        return _queue_if(moved or _taints(change.previous_object) != _taints(change.object))

    def _if_counted(self, pod: PodInfo, other: ReadOnlyObject) -> Hint:
        """Whether a pod that came or left is one of those that are spread."""
        if not _is_involved(other, pod):
            return Hint.SKIP
        constraints = self._constraints_of(pod)
        if constraints is None:
            return Hint.QUEUE
        return _queue_if(any(each.matches(_labels(other)) for each in constraints))


def _is_involved(other: ReadOnlyObject, pod: PodInfo) -> bool:
    """The pod itself, or one in its namespace with a place on a node or the promise of one."""
    metadata = other["metadata"]
    if metadata.get("uid") == pod.uid:
        return True
    nominated = (other.get("status") or {}).get("nominatedNodeName")
    if not (other["spec"].get("nodeName") or nominated):
        return False
    return bool(metadata.get("namespace") == pod.namespace)


def _has_all(labels: Mapping[str, str], constraints: Constraints) -> bool:
    return all(each.topology_key in labels for each in constraints)


def _labels(pod: ReadOnlyObject) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}


def _tolerations(pod: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    return pod["spec"].get("tolerations") or ()


def _taints(node: ReadOnlyObject | None) -> Sequence[ReadOnlyObject]:
    return ((node or {}).get("spec") or {}).get("taints") or ()


def _queue_if(helps: bool) -> Hint:
    return Hint.QUEUE if helps else Hint.SKIP


NAME = "PodTopologySpread"
_SCORE_KEY = f"PreScore{NAME}"
_DEFAULTED = {
    HARD: "setting default hard topology spread constraints",
    SOFT: "setting default soft topology spread constraints",
}
_OWN = {
    HARD: "obtaining pod's hard topology spread constraints",
    SOFT: "obtaining pod's soft topology spread constraints",
}


class PodTopologySpread(
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
    REASON = "node(s) didn't match pod topology spread constraints"
    REASON_MISSING_LABEL = f"{REASON} (missing required label)"
    REFUSALS: Mapping[int, Status] = {
        MISSING_LABEL: Status.unresolvable(REASON_MISSING_LABEL),
        SKEWED: Status.unschedulable(REASON),
    }

    def __init__(
        self, handle: Handle, defaults: Sequence[ReadOnlyObject] | None = SYSTEM_DEFAULTS
    ) -> None:
        self._census = handle.nodes.shared(PodCensus)
        self._is_system_defaulted = defaults is SYSTEM_DEFAULTS
        self._defaults = tuple(defaults or ())
        self._selectors = DefaultSelectors(handle) if self._defaults else None
        self._stamps = Stamps()
        self._version = 0
        self._hard: BoundedDict[PodSignature, tuple[CountedConstraint, ...]] = BoundedDict(
            POLICY.classes_kept
        )
        self._soft: BoundedDict[PodSignature, SoftConstraints] = BoundedDict(POLICY.classes_kept)

    # -- whom it concerns ------------------------------------------------------------------

    @property
    def concern_version(self) -> int:
        return 0 if self._selectors is None else self._selectors.services_version

    def concerns(self, signature: PodSignature) -> bool:
        return self._has_constraint(signature, HARD)

    def concerns_scoring(self, signature: PodSignature) -> bool:
        return self._has_constraint(signature, SOFT)

    def _has_constraint(self, signature: PodSignature, action: str) -> bool:
        own = _written(signature)
        if own:
            return any(each.get("whenUnsatisfiable") == action for each in own)
        if not any(each.get("whenUnsatisfiable") == action for each in self._defaults):
            return False
        return self._selectors is not None and self._selectors.may_select(signature)

    # -- Filter ----------------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        try:
            constraints = self._hard_constraints(pod)
        except SelectorError as error:
            text = f"get constraints from pod: {_while_reading(pod, HARD)}: {error}"
            return Status.error(text), None
        if not constraints:
            return SKIP, None
        self._census.sync()
        state.write(NAME, SpreadState(constraints, self._census))
        return SUCCESS, None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        state.read(NAME, SpreadState).suppose(added, pod.namespace, node, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status:
        state.read(NAME, SpreadState).suppose(removed, pod.namespace, node, -1)
        return SUCCESS

    def stamp(self, state: CycleState, pod: PodInfo) -> int:
        return self._stamps.of(pod.signature, state.read(NAME, SpreadState).key())

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        code = state.read(NAME, SpreadState).judge(node)
        return self.REFUSALS[code] if code else SUCCESS

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return state.read(NAME, SpreadState).judge_rows(nodes, rows)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return self.REFUSALS[code]

    # -- Score -----------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        try:
            soft = self._soft_constraints(pod)
        except SelectorError as error:
            text = f"calculating preScoreState: {_while_reading(pod, SOFT)}: {error}"
            return Status.error(text)
        if not soft.constraints:
            return SKIP
        self._census.sync()
        state.write(_SCORE_KEY, SpreadScores(soft, self._census, nodes, rows))
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return state.read(_SCORE_KEY, SpreadScores).rate_one(node)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return state.read(_SCORE_KEY, SpreadScores).rate(rows, bare=nodes.bare)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return state.read(_SCORE_KEY, SpreadScores).normalized(scores)

    def events_to_register(self) -> Sequence[EventRegistration]:
        return SpreadHints(self._constraints_or_none).registrations()

    # -- constraints -----------------------------------------------------------------------

    def _hard_constraints(self, pod: PodInfo) -> tuple[CountedConstraint, ...]:
        self._forget_outdated()
        found = self._hard.get(pod.signature)
        if found is None:
            constraints = self._constraints(pod, HARD)
            found = self._hard[pod.signature] = counted_constraints(constraints, pod.signature)
        return found

    def _soft_constraints(self, pod: PodInfo) -> SoftConstraints:
        self._forget_outdated()
        found = self._soft.get(pod.signature)
        if found is None:
            require_all = bool(_written(pod.signature)) or not self._is_system_defaulted
            counted = counted_constraints(
                self._constraints(pod, SOFT), pod.signature, require_all=require_all
            )
            found = self._soft[pod.signature] = SoftConstraints(counted, require_all=require_all)
        return found

    def _forget_outdated(self) -> None:
        """Selectors of default constraints change with the objects that they come from."""
        if self._selectors is not None and self._version != self._selectors.version:
            self._version = self._selectors.version
            self._hard.clear()
            self._soft.clear()

    def _constraints(self, pod: PodInfo, action: str) -> tuple[SpreadConstraint, ...]:
        """The pod's own; if it has none of any kind, the default ones (PTS-1)."""
        if own := _written(pod.signature):
            return constraints_of(own, pod.labels, action)
        defaults = constraints_of(self._defaults, pod.labels, action)
        if not defaults or self._selectors is None:
            return ()
        selector = self._selectors.of(pod)
        if selector.is_everything:
            return ()
        return tuple(each.selecting(selector) for each in defaults)

    def _constraints_or_none(self, pod: PodInfo) -> tuple[SpreadConstraint, ...] | None:
        try:
            return self._constraints(pod, HARD)
        except SelectorError:
            return None

    def sign(self, signature: PodSignature) -> Part | None:
        own = signature.pod_class.spec.get("topologySpreadConstraints")
        return None if own or self._defaults else signing.NOTHING


def _written(signature: PodSignature) -> Sequence[ReadOnlyObject]:
    return signature.pod_class.spec.get("topologySpreadConstraints") or ()


def _while_reading(pod: PodInfo, action: str) -> str:
    return _OWN[action] if _written(pod.signature) else _DEFAULTED[action]


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    if (arguments.get("defaultingType") or "System") == "System":
        return PodTopologySpread(handle)
    return PodTopologySpread(handle, arguments.get("defaultConstraints") or ())
