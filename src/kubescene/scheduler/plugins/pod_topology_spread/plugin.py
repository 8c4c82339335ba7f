"""PodTopologySpread: pods that match a selector are spread over the domains of a topology.

``DoNotSchedule`` constraints refuse nodes, ``ScheduleAnyway`` ones rate them. A pod without any
constraint has the default ones, with a selector made of what selects the pod. Matching pods are
counted by domain (`kubescene.scheduler.domains`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kubescene.api.selectors import SelectorError
from kubescene.bounded import BoundedDict
from kubescene.scheduler.domains.census import PodCensus
from kubescene.scheduler.domains.stamps import Stamps
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
from kubescene.scheduler.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    Constraint,
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
from kubescene.scheduler.plugins.pod_topology_spread.hints import SpreadHints
from kubescene.scheduler.plugins.pod_topology_spread.scoring import SoftConstraints, SpreadScores
from kubescene.scheduler.state.memo import CLASSES_KEPT
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

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
            CLASSES_KEPT
        )
        self._soft: BoundedDict[PodSignature, SoftConstraints] = BoundedDict(CLASSES_KEPT)

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

    def _constraints(self, pod: PodInfo, action: str) -> tuple[Constraint, ...]:
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

    def _constraints_or_none(self, pod: PodInfo) -> tuple[Constraint, ...] | None:
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
