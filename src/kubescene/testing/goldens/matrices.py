"""Before a cycle: what every plugin says of every node, whether or not the cycle looks at it.

The same parts as in the cycle are asked (PreFilter, the chain of Filter plugins with nominated
pods, PreScore, the chain of Score plugins), on a state of their own.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.scoring import ScoreChain, Scored, ScoringError
from kubescene.scheduler.cycle.search import NominatedFiltering
from kubescene.scheduler.cycle.verdicts import FilterChain
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.status import Code, Status
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.testing.goldens.comparing import Aspect, Comparison

RECORDED = frozenset({"prefilter", "filters", "feasible", "totals", "scoreError"})
"""An attempt with one of these was recorded with all nodes."""

SCORE_FAULT = re.compile(r'^running Score plugins: plugin "[^"]*" failed with: ')


class Matrix:
    """All nodes for one pod."""

    def __init__(
        self, cycle: Cycle, nominations: Nominations, pod: PodInfo, comparison: Comparison
    ) -> None:
        self._cycle = cycle
        self._nominations = nominations
        self._nodes = cycle.nodes
        self._pod = pod
        self._comparison = comparison
        self._state = CycleState()

    def compare(self, want: Mapping[str, Any]) -> None:
        self._nodes.refresh()
        outcome = self._cycle.pre_filter(self._state, self._pod)
        recorded = want.get("prefilter") or {}
        existing = self._nodes.names
        ours = _said(outcome.status)
        if outcome.node_names is not None and outcome.status.ok:
            ours = {"nodes": sorted(outcome.node_names & frozenset(existing))}
        theirs = recorded
        if "nodes" in recorded:
            theirs = {"nodes": sorted(frozenset(recorded["nodes"]) & frozenset(existing))}
        same = self._comparison.equal(Aspect.PREFILTER, ours, theirs)
        if "plugin" in recorded or not outcome.status.ok:
            return
        names = outcome.node_names if same or outcome.node_names is None else None
        self._compare_filters(want, names)
        if want.get("feasible"):
            self._compare_scores(want)
        if "allocations" in want:
            self._compare_allocations(want["allocations"])

    # -- Filter ----------------------------------------------------------------------------

    def _compare_filters(self, want: Mapping[str, Any], names: frozenset[str] | None) -> None:
        every = self._nodes.names
        rows = [row for row, name in enumerate(every) if names is None or name in names]
        framework = self._cycle.framework
        chain = FilterChain(framework.filters, self._nodes, framework.pre_filter)
        filtering = chain.begin(self._state, self._pod)
        judge = NominatedFiltering(filtering, self._nodes, self._nominations, self._pod)
        # A pod may be bound to nodes of which none exists; a cycle judges nothing then.
        verdicts = judge.judge(np.array(rows, dtype=np.intp)).tolist() if rows else []
        said = {each: _judged(filtering.describe(each)) for each in dict.fromkeys(verdicts)}
        recorded: dict[int, Any] = {
            row: {key: group[key] for key in ("plugin", "code", "reasons")}
            for group in want.get("filters") or ()
            for row in group["nodes"]
        }
        self._comparison.each_equal(
            Aspect.FILTERS,
            [said[verdict] for verdict in verdicts],
            [recorded.get(row, {}) for row in rows],
            [every[row] for row in rows],
        )
        feasible = [row for row, verdict in zip(rows, verdicts, strict=True) if not verdict]
        self._comparison.equal(Aspect.FEASIBLE, feasible, want.get("feasible") or [])

    # -- Score -----------------------------------------------------------------------------

    def _compare_scores(self, want: Mapping[str, Any]) -> None:
        """Over the recorded feasible nodes, so that a difference in Filter is told once."""
        rows = np.array(want["feasible"], dtype=np.intp)
        names = [self._nodes.names[row] for row in want["feasible"]]
        fault, scored = self._scored(rows)
        # A plugin's own words are recorded, without those of the framework before them.
        words = SCORE_FAULT.sub("", fault)
        self._comparison.equal(Aspect.SCORE_ERROR, words, want.get("scoreError", ""))
        if scored is None or "scoreError" in want:
            return
        ours = {each.plugin: each for each in scored.columns}
        theirs = want.get("scores") or {}
        self._comparison.equal(Aspect.SCORES, sorted(ours), sorted(theirs))
        for plugin in sorted(ours.keys() & theirs.keys()):
            norm, raw = theirs[plugin]["norm"], theirs[plugin].get("raw", theirs[plugin]["norm"])
            cells = [f"{plugin} {name}" for name in names]
            self._comparison.each_equal(Aspect.RAW_SCORES, _numbers(ours[plugin].raw), raw, cells)
            self._comparison.each_equal(
                Aspect.SCORES, _numbers(ours[plugin].normalized), norm, cells
            )
        totals = want.get("totals") or [0] * len(names)
        self._comparison.each_equal(Aspect.TOTALS, _numbers(scored.totals), totals, names)

    # -- claims ----------------------------------------------------------------------------

    def _compare_allocations(self, theirs: Mapping[str, Any]) -> None:
        """What would be allocated on every feasible node."""
        plugin: Any = self._cycle.framework.plugins.get("DynamicResources")
        tell = getattr(plugin, "allocations", None)
        names = sorted(theirs)
        ours = [tell and tell(self._state, self._pod, name) for name in names]
        recorded = [theirs[name] for name in names]
        self._comparison.each_equal(Aspect.ALLOCATIONS, ours, recorded, names)

    def _scored(self, rows: Rows) -> tuple[str, Scored | None]:
        """What went wrong, or the scores."""
        fault = self._cycle.pre_score(self._state, self._pod, rows)
        if fault:
            return fault, None
        chain = ScoreChain(self._cycle.framework.scores, self._nodes)
        try:
            return "", chain.score(self._state, self._pod, rows, explain=True)
        except ScoringError as error:
            return str(error), None


def _said(status: Status) -> dict[str, Any]:
    """A refusal as recorded; nothing for a success."""
    if status.ok:
        return {}
    return {"plugin": status.plugin, "code": int(status.code), "reasons": list(status.reasons)}


def _judged(status: Status) -> dict[str, Any]:
    """The same of a Filter plugin; an error is recorded in the words of the framework."""
    if status.code is Code.ERROR:
        text = f'running "{status.plugin}" filter plugin: {status.message}'
        return {"plugin": status.plugin, "code": int(status.code), "reasons": [text]}
    return _said(status)


def _numbers(column: Any) -> list[int]:
    convert = getattr(column, "tolist", None)
    return list(column) if convert is None else convert()
