"""What is compared before and after a cycle.

What our DefaultPreemption tells of its dry runs, in the form of the recordings.

Before a cycle: what every plugin says of every node, whether or not the cycle looks at it.

The same parts as in the cycle are asked (PreFilter, the chain of Filter plugins with nominated
pods, PreScore, the chain of Score plugins), on a state of their own.

After a cycle: what it did, against what kube-scheduler did.

How the parts of our scheduler tell of what is no field of a `Decision` is read here and nowhere
else: dry runs of preemption, and the writes of `ReplayClient`, from which volumes and claims come.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.scoring import ScoreChain, Scored, ScoringError
from kubescene.scheduler.cycle.search import NominatedFiltering
from kubescene.scheduler.cycle.verdicts import FilterChain
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import Rows
from kubescene.scheduler.framework.status import Code, Status
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodInfo
from kubescene.testing.goldens.comparisons import Aspect, GoldenComparison
from kubescene.testing.goldens.environment import (
    CLAIM,
    SELECTED_NODE,
    VOLUME,
    claim_of,
    selected_node,
)
from kubescene.testing.goldens.worlds import Attempt, comparable, plain

ERROR = 1
"""What went wrong on a node was not recorded; mostly no victim was needed there."""


def dry_run_of(decision: Decision) -> list[dict[str, Any]]:
    """Every node that was tried, in order: its victims, or why it does not help."""
    if decision.preemption is None:
        return []
    rows: list[dict[str, Any]] = msgspec.json.decode(
        msgspec.json.encode([*decision.preemption.tried])
    )
    return [{"node": row["node"]} if row.get("code") == ERROR else row for row in rows]


RECORDED = frozenset({"prefilter", "filters", "feasible", "totals", "scoreError"})
"""An attempt with one of these was recorded with all nodes."""

SCORE_FAULT = re.compile(r'^running Score plugins: plugin "[^"]*" failed with: ')


class Matrix:
    """All nodes for one pod."""

    def __init__(
        self, cycle: Cycle, nominations: Nominations, pod: PodInfo, comparison: GoldenComparison
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


NOTHING_SCORED: Mapping[str, Any] = {"nodes": [], "totals": []}


class GoldenOutcome:
    """The outcome of one attempt."""

    def __init__(self, ours: Attempt, comparison: GoldenComparison) -> None:
        self._ours = ours
        self._decision = ours.decision
        self._comparison = comparison

    def compare(self, want: Mapping[str, Any], scored: Mapping[str, Any] | None) -> None:
        """``scored`` is what the real cycle scored; None if that is not known."""
        ours, theirs = self._ours, want
        self._comparison.equal(Aspect.NODE, ours.node, theirs.get("node", ""))
        self._compare_start(theirs)
        if scored is not None:
            self._compare_scored(scored)
        if "node" in theirs and ours.node:
            self._compare_counts(theirs)
            self._compare_binding(theirs)
        elif "node" not in theirs and not ours.node:
            self._compare_failure(theirs)
        self._compare_claims(theirs.get("claims") or {})
        asked, recorded = ours.extender_calls, theirs.get("extenders") or []
        if asked or recorded:
            self._comparison.equal(Aspect.EXTENDERS, comparable(asked), comparable(recorded))

    def _compare_claims(self, theirs: Mapping[str, Any]) -> None:
        ours = self._ours.claims
        if not ours and not theirs:
            return
        self._comparison.equal(Aspect.CLAIM_CALLS, ours.get("calls"), theirs.get("calls"))
        after, recorded = dict(ours), dict(theirs)
        for each in (after, recorded):
            each.pop("calls", None)
        self._comparison.equal(Aspect.CLAIMS_AFTER, plain(after), plain(recorded))

    def _compare_counts(self, theirs: Mapping[str, Any]) -> None:
        """Not recorded of the members of a group."""
        if "evaluated" in theirs:
            self._comparison.equal(Aspect.EVALUATED, self._decision.evaluated, theirs["evaluated"])
            self._comparison.equal(Aspect.FOUND, self._decision.feasible, theirs["feasible"])

    def _compare_start(self, theirs: Mapping[str, Any]) -> None:
        if "nextStart" in theirs:
            self._comparison.equal(Aspect.NEXT_START, self._ours.next_start, theirs["nextStart"])

    def _compare_scored(self, theirs: Mapping[str, Any]) -> None:
        explanation = self._decision.explanation
        ours: dict[str, list[int]] = {"nodes": [], "totals": []}
        if explanation is not None:
            nodes, totals = explanation.scored, explanation.totals
            ours = {"nodes": _numbers(nodes), "totals": _numbers(totals)}
        self._comparison.equal(Aspect.SCORED, ours, dict(theirs))

    # -- a node was found ------------------------------------------------------------------

    def _compare_binding(self, theirs: Mapping[str, Any]) -> None:
        fault = "" if self._decision.node else self._decision.message
        self._comparison.equal(Aspect.BIND_ERROR, fault, theirs.get("bindError", ""))
        volumes = self._volumes()
        if volumes or "volumes" in theirs:
            self._comparison.equal(Aspect.VOLUMES, volumes, theirs.get("volumes") or {})

    def _volumes(self) -> dict[str, dict[str, str]]:
        """What the scheduler asked of the volume controller."""
        bound: dict[str, str] = {}
        provisioned: dict[str, str] = {}
        for call in self._ours.calls:
            if call.ref.gvk == VOLUME and call.verb == "update" and claim_of(call.body):
                bound[claim_of(call.body)] = call.ref.name
            elif call.ref.gvk == CLAIM and SELECTED_NODE in str(call.body):
                provisioned[call.key] = selected_node(call.body)
        found = {"bound": bound, "provisioned": provisioned}
        return {name: claims for name, claims in found.items() if claims}

    # -- none was found --------------------------------------------------------------------

    def _compare_failure(self, theirs: Mapping[str, Any]) -> None:
        decision, comparison = self._decision, self._comparison
        base, post_filter = _split(theirs)
        ours, our_post_filter = decision.message, ""
        if ours.startswith(base):
            ours, our_post_filter = base, decision.message[len(base) :].removeprefix(" ")
        comparison.equal(Aspect.MESSAGE, ours, base)
        comparison.equal(Aspect.POST_FILTER, our_post_filter, post_filter)
        comparison.equal(Aspect.REASON, decision.reason, theirs["reason"])
        plugins = sorted({*decision.plugins, *decision.pending_plugins})
        comparison.equal(Aspect.PLUGINS, plugins, theirs.get("plugins") or [])
        comparison.equal(Aspect.NOMINATED, decision.nominated, theirs.get("nominated"))
        self._compare_preemption(theirs.get("preemption") or {})

    def _compare_preemption(self, theirs: Mapping[str, Any]) -> None:
        if not self._ours.in_group:
            victims = [victim.key for victim in self._decision.victims]
            self._comparison.equal(Aspect.VICTIMS, victims, theirs.get("victims") or [])
        ours, recorded = dry_run_of(self._decision), theirs.get("dryRun") or []
        if not ours and not recorded:
            return
        self._comparison.equal(Aspect.DRY_RUN, _verdicts(ours), _verdicts(recorded))
        self._comparison.equal(Aspect.PDB_VIOLATIONS, _violations(ours), _violations(recorded))


def _split(theirs: Mapping[str, Any]) -> tuple[str, str]:
    """The message without and its PostFilter part."""
    post_filter: str = theirs.get("postFilter", "")
    base: str = theirs["message"]
    return (base.removesuffix(f" {post_filter}") if post_filter else base), post_filter


def _verdicts(dry_run: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in each.items() if name != "pdbViolations"} for each in dry_run
    ]


def _violations(dry_run: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {each["node"]: each["pdbViolations"] for each in dry_run if each.get("pdbViolations")}
