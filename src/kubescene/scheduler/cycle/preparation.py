"""PreFilter and PreScore: what plugins are asked once per pod.

Where every plugin that is asked answers from the class of the pod alone, the answers are
remembered with the pod's signature.
"""

from dataclasses import dataclass, field

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.extensions import PreFilterExtension
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.relevance import RelevantPlugins
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo


@dataclass(slots=True)
class PreFilterOutcome:
    """What the PreFilters said together."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None
    plugins_with_nodes: list[str] = field(default_factory=list)
    names_by_plugin: dict[str, frozenset[str]] | None = None
    """What each of them said by itself."""


class Preparing:
    """PreFilter and PreScore of one profile."""

    def __init__(self, framework: Framework, nodes: NodeTable) -> None:
        self._framework = framework
        self._nodes = nodes

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterOutcome:
        """Run PreFilter, or remember what it said about pods like this one."""
        relevant = state.relevant = self._framework.relevance.of(pod.signature)
        if relevant.pre_filtered is not None and not pod.is_resized:
            outcome: PreFilterOutcome
            outcome, state.skipped_filters = relevant.pre_filtered
            return outcome
        state.skipped_filters = relevant.skipped_filters
        outcome = self._pre_filter(state, pod, relevant)
        if relevant.pre_filters_by_class and not pod.is_resized:
            relevant.pre_filtered = (outcome, state.skipped_filters)
        return outcome

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> str:
        """Run PreScore likewise; returns the text of what went wrong, or nothing."""
        relevant = state.relevant or self._framework.relevance.of(pod.signature)
        state.unrated_scores = relevant.unrated
        if relevant.pre_scored is not None and not pod.is_resized:
            fault: str
            fault, state.skipped_scores = relevant.pre_scored
            return fault
        state.skipped_scores = relevant.skipped_scores
        fault = self._pre_score(state, pod, rows, relevant)
        if relevant.pre_scores_by_class and not pod.is_resized:
            relevant.pre_scored = (fault, state.skipped_scores)
        return fault

    def _pre_filter(
        self, state: CycleState, pod: PodInfo, relevant: RelevantPlugins
    ) -> PreFilterOutcome:
        outcome = PreFilterOutcome()
        for extension in relevant.pre_filter:
            status, names = extension.call(state, pod, self._nodes)
            if status is SUCCESS and names is None:
                continue
            if status.code is Code.SKIP:
                state.skipped_filters |= {extension.name}
            elif not _goes_on(outcome, extension, status, names):
                state.skipped_filters -= self._not_asked(extension.name)
                break
        return outcome

    def _not_asked(self, last: str) -> frozenset[str]:
        """The plugins that had no turn, since one ended it all: they skipped nothing (M-6)."""
        names = [each.name for each in self._framework.pre_filter]
        return frozenset(names[names.index(last) + 1 :])

    def _pre_score(
        self, state: CycleState, pod: PodInfo, rows: Rows, relevant: RelevantPlugins
    ) -> str:
        for extension in relevant.pre_score:
            status = extension.call(state, pod, self._nodes, rows)
            if status is SUCCESS:
                continue
            if status.code is Code.SKIP:
                state.skipped_scores |= {extension.name}
            elif not status.ok:
                return f'running PreScore plugin "{extension.name}": {status.message}'
        return ""


def _goes_on(
    outcome: PreFilterOutcome,
    extension: PreFilterExtension,
    status: Status,
    names: frozenset[str] | None,
) -> bool:
    """Take an answer; False if it ends the PreFilters. [C-2]"""
    if status.code is Code.UNRESOLVABLE:
        outcome.status = status.by(extension.name)
        outcome.plugins_with_nodes.clear()
        return False
    if status.code is Code.UNSCHEDULABLE:
        outcome.status = status.by(extension.name)
        return True
    if not status.ok:
        text = f'running PreFilter plugin "{extension.name}": {status.message}'
        outcome.status = Status.error(text)
        return False
    return names is None or _narrow(outcome, extension.name, names)


def _narrow(outcome: PreFilterOutcome, plugin: str, names: frozenset[str]) -> bool:
    """Intersect the node names; False if none is left, which ends the PreFilters. [C-3]"""
    outcome.plugins_with_nodes.append(plugin)
    outcome.names_by_plugin = {**(outcome.names_by_plugin or {}), plugin: names}
    held = outcome.node_names
    outcome.node_names = names if held is None else held & names
    if outcome.node_names:
        return True
    plugins = sorted(outcome.plugins_with_nodes)
    text = f"node(s) didn't satisfy plugin {plugins[0]}"
    if len(plugins) > 1:
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
    outcome.status = Status(Code.UNRESOLVABLE, (text,), plugin)
    return False
