"""DynamicResources: devices for pods that name resource claims, or extended resources that stand
for devices.

A claim that is allocated says where it can be used. For claims that are not, PreFilter looks at
what they ask for, Filter searches devices on each node (`scheduler.devices`), Reserve promises the
devices of the chosen node, and PreBind writes them into the claims and waits until devices that
have to be made ready are. PostFilter gives devices back that keep a pod from being placed.

Pods without any of this are not this plugin's concern, but every pod that finds no node hears of
it: PostFilter says that there are no claims to deallocate.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kubescene.api.records.changes import Change
from kubescene.clock import MINUTE
from kubescene.durations import parse_duration
from kubescene.scheduler.devices.classes import WatchedClasses, backed_resources
from kubescene.scheduler.devices.named_claims import (
    RESOURCE_CLAIM,
    ClaimError,
    allocation_of,
    find_claims,
    pod_owner,
)
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
    FilterDiagnosis,
    FilterPlugin,
    Handle,
    Hint,
    Lister,
    NormalizePlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindAnswer,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
    Rows,
    ScorePlugin,
    Scores,
)
from kubescene.scheduler.framework.normalization import normalize_by_maximum
from kubescene.scheduler.framework.signing import Part
from kubescene.scheduler.framework.status import SKIP, SUCCESS, Code, Status
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from kubescene.scheduler.devices.pod_claims import PodClaims
    from kubescene.scheduler.devices.reserving import DeviceSearch

NAME = "DynamicResources"
BINDING_TIMEOUT = 10 * MINUTE

NO_CLAIMS = PostFilterResult(Status.unschedulable("no new claims to deallocate"))
NOT_FOUND = PostFilterResult(Status.error("not found"))


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    ClusterFilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ClusterScorePlugin,
    NormalizePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    name = NAME
    concerns_by_kind = True
    normalizes_alone = True

    def __init__(self, handle: Handle, binding_timeout: int = BINDING_TIMEOUT) -> None:
        self._handle = handle
        self._timeout = binding_timeout
        self._classes = handle.shared(WatchedClasses)
        self._claims = handle.lister(RESOURCE_CLAIM)
        self._made: DeviceSearch | None = None
        self._named: set[tuple[str, str]] = set()
        """Claims that pods name themselves: several pods may."""

    @property
    def _search(self) -> "DeviceSearch":
        """Made, and imported, with the first pod that it concerns: most clusters have none."""
        if self._made is None:
            from kubescene.scheduler.devices.reserving import DeviceSearch

            self._made = DeviceSearch(self._handle, self._timeout)
        return self._made

    # -- whom it concerns ------------------------------------------------------------------

    @property
    def concern_version(self) -> int:
        return self._classes.version

    def concerns(self, signature: PodSignature) -> bool:
        if signature.claims:
            return True
        return backed_resources(signature.pod_class.requests, self._classes)

    def concerns_scoring(self, signature: PodSignature) -> bool:
        return self.concerns(signature)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """D-1, P-1: a pod waits outside the queue until all of its claims exist and are its own."""
        if not pod.spec.claims:
            return SUCCESS
        self._note_names(pod)
        try:
            find_claims(pod, self._claims)
        except ClaimError as error:
            return Status.unresolvable(str(error))
        return SUCCESS

    def _note_names(self, pod: PodInfo) -> None:
        for entry in pod.spec.claims:
            if (name := entry.get("resourceClaimName")) is not None:
                self._named.add((pod.namespace, name))

    # -- finding a node --------------------------------------------------------------------

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        """D-2"""
        if not self.concerns(pod.signature):
            return SKIP, None
        held, status = self._search.begin(pod)
        state.write(NAME, held)
        return status, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """D-3"""
        return self._search.filter.judge(_held(state), pod, node)

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        held = _held(state)
        codes = self._search.filter.judge_all(held, pod, nodes, rows)
        state.filter_errors |= any(each.code is Code.ERROR for each in held.statuses)
        return codes

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return _held(state).status(code)

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult:
        """D-4, M-4; M-6 if another PreFilter turned the pod away before this one had its turn."""
        held: PodClaims | None = state.find(NAME)
        if held is not None and not held.is_empty:
            return self._search.binder.make_room(held, pod)
        return NO_CLAIMS if held is not None or NAME in state.skipped_filters else NOT_FOUND

    def sign(self, signature: PodSignature) -> Part | None:
        return None if self.concerns(signature) else signing.NOTHING

    # -- choosing a node -------------------------------------------------------------------

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        held: PodClaims | None = state.find(NAME)
        return 0 if held is None else self._search.filter.score(held, node)

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """D-5: the better the alternatives that a node leaves, the better the node."""
        held: PodClaims | None = state.find(NAME)
        if held is None or not self._search.filter.can_differ(held):
            return np.zeros(rows.size, dtype=np.int64)
        scores = [self._search.filter.score(held, nodes.infos[row]) for row in rows.tolist()]
        return np.array(scores, dtype=np.int64)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return normalize_by_maximum(scores)

    # -- taking the devices ----------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        held: PodClaims | None = state.find(NAME)
        return SUCCESS if held is None else self._search.binder.reserve(held, node)

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        held: PodClaims | None = state.find(NAME)
        if held is not None:
            self._search.binder.unreserve(held, pod)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> PreBindAnswer:
        held: PodClaims | None = state.find(NAME)
        return SUCCESS if held is None else self._search.binder.pre_bind(held, pod, node)

    def allocations(self, state: CycleState, pod: PodInfo, node: str) -> list[list[str]]:
        """What the pod of this cycle would get on a node that passed Filter: for each of its claims
        that is not allocated, ``request=driver/pool/device`` in order of the allocation.
        """
        return self._search.binder.would_allocate(_held(state), node)

    # -- what may help ---------------------------------------------------------------------

    def events_to_register(self) -> Sequence[EventRegistration]:
        node = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        known = Action.ADD | Action.UPDATE
        generated = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        claim = ClusterEvent(EventResource.RESOURCE_CLAIM, known)
        after_claim = partial(_after_claim_change, self._claims)
        return [
            EventRegistration(ClusterEvent(EventResource.NODE, node)),
            EventRegistration(claim, after_claim, pods=self._pods_of),
            EventRegistration(ClusterEvent(EventResource.POD, generated), self._after_generation),
            EventRegistration(ClusterEvent(EventResource.DEVICE_CLASS, known)),
            EventRegistration(ClusterEvent(EventResource.RESOURCE_SLICE, known)),
        ]

    def _pods_of(self, change: Change) -> Sequence[str] | None:
        """The pod that a claim was made for; None if others may care as well."""
        owner = pod_owner(change.object)
        if owner is None or change.record.key in self._named or _was_deallocated(change):
            return None
        return (owner,)

    def _after_generation(self, pod: PodInfo, change: Change) -> Hint:
        """The pod got its claims, all of them."""
        if change.record.uid != pod.uid:
            return Hint.SKIP
        return Hint.QUEUE if self.pre_enqueue(pod).ok else Hint.SKIP


def _after_claim_change(claims: Lister, pod: PodInfo, change: Change) -> Hint:
    """A claim gave its devices back, or it is one of the pod and something happened to it."""
    try:
        used = find_claims(pod, claims)
    except ClaimError:
        return Hint.SKIP
    if _was_deallocated(change):
        return Hint.QUEUE
    before, after = change.previous_object, change.object
    if not any(each["metadata"]["uid"] == change.record.uid for each in used):
        return Hint.SKIP
    if before is None or (before.get("status") or {}) != (after.get("status") or {}):
        return Hint.QUEUE
    return Hint.SKIP


def _was_deallocated(change: Change) -> bool:
    before = change.previous_object
    if before is None or allocation_of(before) is None:
        return False
    return allocation_of(change.object) is None


def _held(state: CycleState) -> "PodClaims":
    return cast("PodClaims", state.read(NAME, object))


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    timeout = arguments.get("bindingTimeout")
    return DynamicResources(handle, BINDING_TIMEOUT if timeout is None else parse_duration(timeout))
