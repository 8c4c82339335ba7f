"""DefaultPreemption: a pod that fits nowhere may take the place of pods of lower priority.

It finds out which nodes would do if they lost some of their pods, and chooses the one that loses
least. The pod is nominated to that node and tried again when its victims are gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from kubescene.api.records.changes import Change
from kubescene.errors import ConfigurationError
from kubescene.instruments.attempts import PreemptionRecord
from kubescene.scheduler.extenders.extenders import (
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderVerb,
)
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    Action,
    AskingPostFilterPlugin,
    ClusterEvent,
    EnqueueExtensions,
    EventRegistration,
    EventResource,
    FilterDiagnosis,
    Handle,
    Hint,
    Plugin,
    PostFilterResult,
    PreEnqueuePlugin,
)
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.preemption.best_candidate import Choice, choose, cost_of
from kubescene.scheduler.preemption.budgets import DISRUPTION_BUDGET, DisruptionBudgets
from kubescene.scheduler.preemption.dry_runs import DryRun, DryRuns
from kubescene.scheduler.preemption.evictions import CONDITION, REASON
from kubescene.scheduler.preemption.victims import pool_of
from kubescene.scheduler.state.pods import PodInfo

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_CANDIDATE = "no candidate node for preemption"
STILL_EVICTING = "waiting for the preemption for this pod to be finished"


class Offer(Struct, frozen=True):
    """A node, and the pods it would lose."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int


class ExtenderQuestions(Struct, frozen=True):
    """Extenders that have yet to be asked about the offers, the first of them just now."""

    extenders: tuple[Extender, ...]
    offers: tuple[Offer, ...]
    record: PreemptionRecord


class DefaultPreemption(PreEnqueuePlugin, AskingPostFilterPlugin, EnqueueExtensions):
    name = "DefaultPreemption"
    repeats_itself = True

    def __init__(self, handle: Handle, percentage: int = 10, absolute: int = 100) -> None:
        self._handle = handle
        self._percentage = percentage
        self._absolute = absolute
        budgets = DisruptionBudgets(handle.lister(DISRUPTION_BUDGET))
        self._dry_runs = DryRuns(handle.nodes, budgets)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        evicting = self._handle.is_evicting_for(pod)
        return Status.unresolvable(STILL_EVICTING) if evicting else SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        deleted = ClusterEvent(EventResource.POD, Action.DELETE)
        return [EventRegistration(deleted, _after_pod_deletion, by_signature=True)]

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult | ExtenderCall:
        if reason := self._ineligible(pod, diagnosis):
            return self._refused(reason)
        run = self._try_out(state, pod, diagnosis)
        record = self._record(run, state)
        if not run.candidates.size:
            return self._hopeless(run, record)
        extenders = tuple(self._interested(pod))
        if not extenders:
            return self._chosen(run, record)
        results, names = run.results, self._handle.nodes.names
        offers = tuple(
            Offer(names[row], results.victims[row], int(results.costs[0, row]))
            for row in np.sort(run.candidates).tolist()
        )
        return self._ask(state, pod, ExtenderQuestions(extenders, offers, record))

    def post_filter_answered(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis, answer: ExtenderAnswer
    ) -> PostFilterResult | ExtenderCall:
        """[X-9] What is left of the offers goes to the next extender."""
        del diagnosis
        asking = state.read(self.name, ExtenderQuestions)
        extender, offers = asking.extenders[0], asking.offers
        try:
            offers = self._approved(extender, answer)
        except ExtenderFaultError as fault:
            if not extender.ignorable:
                text = f"preemption: {fault}"
                return PostFilterResult(Status.error(text), preemption=asking.record)
        rest = asking.extenders[1:] if offers else ()
        asking = ExtenderQuestions(rest, offers, asking.record)
        return self._ask(state, pod, asking) if rest else self._settled(asking)

    # -- who may, and where ------------------------------------------------------------------

    def _ineligible(self, pod: PodInfo, diagnosis: FilterDiagnosis) -> str:
        """[PR-1] Why a pod may not preempt others, if so."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        node = self._handle.nodes.info(pod.nominated_node) if pod.nominated_node else None
        row = None if node is None else self._handle.nodes.row_of(node.name)
        if node is None or row is None or diagnosis.status(row).code is Code.UNRESOLVABLE:
            return ""
        leaving = any(map(is_leaving_by_preemption, pool_of(pod, node.pods)))
        return STILL_TERMINATING if leaving else ""

    def _try_out(self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis) -> DryRun:
        """[PR-2, PR-3]"""
        rows = diagnosis.rows_with(Code.UNSCHEDULABLE)
        trying = self._handle.try_out(state, pod)
        return self._dry_runs.run(trying, pod, rows, self.candidates_wanted(rows.size))

    def candidates_wanted(self, nodes: int) -> int:
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    # -- what comes of it ----------------------------------------------------------------------

    def _chosen(self, run: DryRun, record: PreemptionRecord) -> PostFilterResult:
        choice = choose(run.results.costs[:, run.candidates])
        names, rows = self._handle.nodes.names, run.candidates
        row = int(rows[choice.place])
        ties = tuple(map(names.__getitem__, rows.take(choice.ties).tolist()))
        offer = Offer(names[row], run.results.victims[row], 0)
        return _success(offer, record, choice, ties)

    def _settled(self, asking: ExtenderQuestions) -> PostFilterResult:
        """All extenders have been asked."""
        offers, record = asking.offers, asking.record
        if not offers:
            return self._refused(NO_CANDIDATE, record)
        costs = np.array([cost_of(each.victims, each.violations) for each in offers]).T
        choice = choose(costs)
        return _success(offers[choice.place], record, choice, ())

    def _hopeless(self, run: DryRun, record: PreemptionRecord) -> PostFilterResult:
        if errors := run.errors():
            text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
            return PostFilterResult(Status.error(f"preemption: {text}"), preemption=record)
        counts = [(each.reasons, count) for each, count in run.refusals()]
        total = len(self._handle.nodes)
        if total > run.tried.size:
            counts.append(((NOT_HELPFUL,), total - run.tried.size))
        return self._refused(_fit_error(total, counts), record, nominated="")

    def _refused(
        self, reason: str, record: PreemptionRecord | None = None, *, nominated: str | None = None
    ) -> PostFilterResult:
        told = _with_message(record or PreemptionRecord(), reason)
        status = Status.unschedulable(f"preemption: {reason}")
        return PostFilterResult(status, nominated, preemption=told)

    def _record(self, run: DryRun, state: CycleState) -> PreemptionRecord:
        return PreemptionRecord(
            candidates=run.candidates.size,
            trials=run.tried.size,
            tried=run.told() if state.explains else (),
        )

    # -- extenders -------------------------------------------------------------------------

    def _interested(self, pod: PodInfo) -> Iterable[Extender]:
        """[PR-10]"""
        extenders = self._handle.extenders.interested(pod)
        return (each for each in extenders if ExtenderVerb.PREEMPT in each.verbs)

    def _ask(self, state: CycleState, pod: PodInfo, asking: ExtenderQuestions) -> ExtenderCall:
        state.write(self.name, asking)
        return ExtenderCall(
            asking.extenders[0],
            ExtenderVerb.PREEMPT,
            pod,
            tuple(each.node for each in asking.offers),
            victims={each.node: each.victims for each in asking.offers},
            pdb_violations={each.node: each.violations for each in asking.offers},
        )

    def _approved(self, extender: Extender, answer: ExtenderAnswer) -> tuple[Offer, ...]:
        """The offers that an extender leaves, with the victims that it names.

        Whether all of them are there is looked at first, then whether each node has one.
        """
        if answer.error:
            raise ExtenderFaultError(answer.error)
        named = {node: self._running(extender, node, uids) for node, uids in answer.victims.items()}
        for node, victims in named.items():
            if not victims and not extender.ignorable:
                raise ExtenderFaultError(f'expected at least one victim pod on node "{node}"')
        violations = answer.pdb_violations
        offers = [
            Offer(node, victims, violations.get(node, 0))
            for node, victims in named.items()
            if victims
        ]
        return tuple(sorted(offers, key=self._place))

    def _running(self, extender: Extender, node: str, uids: Iterable[str]) -> tuple[PodInfo, ...]:
        info = self._handle.nodes.info(node)
        if info is None:
            raise ExtenderFaultError(f'nodeinfo not found for node name "{node}"')
        there = {pod.uid: pod for pod in info.pods}
        for uid in uids:
            if uid not in there:
                raise ExtenderFaultError(
                    f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: "
                    f"{node}, but the pod is not found on that node"
                )
        return tuple(there[uid] for uid in uids)

    def _place(self, offer: Offer) -> int:
        row = self._handle.nodes.row_of(offer.node)
        return -1 if row is None else row


class ExtenderFaultError(Exception):
    """An extender failed or said what cannot be."""


def is_leaving_by_preemption(pod: PodInfo) -> bool:
    if not pod.terminating:
        return False
    for condition in (pod.object.get("status") or {}).get("conditions") or ():
        if condition.get("type") == CONDITION:
            return bool(condition.get("status") == "True" and condition.get("reason") == REASON)
    return False


def _success(
    offer: Offer, record: PreemptionRecord, choice: Choice, ties: tuple[str, ...]
) -> PostFilterResult:
    told = PreemptionRecord(
        node=offer.node,
        victims=tuple(each.key for each in offer.victims),
        criterion=choice.criterion,
        candidates=record.candidates,
        trials=record.trials,
        ties=ties,
        tried=record.tried,
    )
    return PostFilterResult(SUCCESS, offer.node, offer.victims, told)


def _with_message(record: PreemptionRecord, message: str) -> PreemptionRecord:
    return PreemptionRecord(
        candidates=record.candidates, trials=record.trials, tried=record.tried, message=message
    )


def _fit_error(nodes: int, counts: Iterable[tuple[Sequence[str], int]]) -> str:
    """[M-7] The same form as the message of the attempt itself."""
    histogram: dict[str, int] = {}
    for reasons, count in counts:
        for reason in reasons:
            histogram[reason] = histogram.get(reason, 0) + count
    lines = sorted(f"{count} {reason}" for reason, count in histogram.items())
    return f"0/{nodes} nodes are available: {', '.join(lines)}."


def _after_pod_deletion(pod: PodInfo, change: Change) -> Hint:
    """Whom this plugin gates, others have rejected: they say when to try again."""
    del pod, change
    return Hint.SKIP


def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    percentage = arguments.get("minCandidateNodesPercentage", 10)
    absolute = arguments.get("minCandidateNodesAbsolute", 100)
    if percentage == 0 and absolute == 0:
        raise ConfigurationError(
            "minCandidateNodesPercentage and minCandidateNodesAbsolute cannot both be zero"
        )
    return DefaultPreemption(handle, percentage, absolute)
