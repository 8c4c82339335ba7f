"""Who gets which look at the nodes, of the pods that ask for cpu and memory alone.

A class that has seen a fourth of the nodes, with little else happening between its pods, has its
results kept (`cpu_memory_rows`); the pods of any other one get a fresh evaluation
(`fresh_evaluations`). Little is so much that more classes than results can be kept of never push
each other out.
"""

from collections import OrderedDict
from typing import TypeAlias

from kubescene.scheduler.cycle.class_scores import ScoreSplit
from kubescene.scheduler.cycle.verdicts import FilterChain, FilterSplit
from kubescene.scheduler.fast.cpu_memory import CpuMemoryPlugins
from kubescene.scheduler.fast.cpu_memory_columns import CpuMemoryColumns
from kubescene.scheduler.fast.cpu_memory_rows import CpuMemoryRows
from kubescene.scheduler.fast.fresh_evaluations import FreshEvaluation, Visits
from kubescene.scheduler.fast.routine_rows import Plan
from kubescene.scheduler.fast.spec_verdicts import SharedVerdicts, SpecVerdicts
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.state.pod_kinds import PodClass
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY, entries_kept

Evaluation: TypeAlias = FreshEvaluation | CpuMemoryRows


class CpuMemoryDecisions:
    """The looks of one profile."""

    def __init__(self, framework: Framework, chain: FilterChain, shared: SharedVerdicts) -> None:
        self._framework = framework
        self._plugins: dict[tuple[FilterSplit, ScoreSplit], CpuMemoryPlugins] = {}
        self._chain = chain
        self._nodes = nodes = chain.nodes
        self._shared = shared
        self._columns = nodes.shared(CpuMemoryColumns)
        self._most = (-1, 0)
        self._visits: OrderedDict[PodClass, Visits] = OrderedDict()
        self._kept: OrderedDict[PodClass, Visits] = OrderedDict()
        """Those of which results are kept, the ones first that were not used for long."""

    def begin(self, plan: Plan, pod: PodInfo) -> Evaluation | None:
        """A evaluation for a pod; None if it takes more to decide about its class."""
        visits, nodes = self._of(plan, pod), self._nodes
        spec, rows = visits.spec, visits.rows
        if spec is None:
            return None
        most = self._most_changes()
        if rows is not None:
            if rows.follow(most):
                self._kept.move_to_end(pod.pod_class)
                return rows
            self._forget(pod.pod_class)
        rare = visits.are_rare(nodes, most)
        spec.sync(nodes, plan.state(), pod)
        if spec.rates or not self._columns.is_exact():
            return None
        if rare:
            return FreshEvaluation(self._columns, self._chain, plan, pod, visits=visits, spec=spec)
        return self._keep(plan, pod, visits, spec)

    def _most_changes(self) -> int:
        """How many changes a class may be behind and still have its results kept."""
        count, most = self._most
        if count != len(self._nodes):
            most = max(POLICY.few_outdated, min(entries_kept(self._nodes), POLICY.most_changes))
            self._most = (len(self._nodes), most)
        return most

    def _keep(self, plan: Plan, pod: PodInfo, visits: Visits, spec: SpecVerdicts) -> CpuMemoryRows:
        rows = visits.rows = CpuMemoryRows(
            self._columns, self._chain, plan, pod, spec, visits.plugins
        )
        self._kept[pod.pod_class] = visits
        while len(self._kept) > entries_kept(self._nodes):
            self._forget(next(iter(self._kept)))
        return rows

    def _forget(self, pod_class: PodClass) -> None:
        """Keep no results of a class any more."""
        visits = self._kept.pop(pod_class, None)
        if visits is not None:
            visits.forget()

    def _of(self, plan: Plan, pod: PodInfo) -> Visits:
        """What is remembered of the class of a pod."""
        known, pod_class = self._visits, pod.pod_class
        visits = known.get(pod_class)
        if visits is None or not visits.fits(plan):
            self._forget(pod_class)
            plugins = self._plugins_of(plan)
            spec = self._spec(plan, pod, plugins)
            visits = known[pod_class] = Visits(plan, plugins, spec)
            if len(known) > POLICY.classes_kept:
                self._forget(known.popitem(last=False)[0])
        return visits

    def _plugins_of(self, plan: Plan) -> CpuMemoryPlugins:
        assert plan.filters is not None
        assert plan.scores is not None
        key = (plan.filters, plan.scores)
        found = self._plugins.get(key)
        if found is None:
            found = self._plugins[key] = CpuMemoryPlugins(self._framework, *key)
        return found

    def _spec(self, plan: Plan, pod: PodInfo, plugins: CpuMemoryPlugins) -> SpecVerdicts | None:
        """What looks need to know of the node objects; None if that is not enough."""
        filters, scores = plan.filters, plan.scores
        if filters is None or scores is None or not plugins.serve(pod.pod_class):
            return None
        return self._shared.of(filters.by_spec, pod, scores.blind)
