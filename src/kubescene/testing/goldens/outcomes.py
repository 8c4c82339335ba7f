"""After a cycle: what it did, against what kube-scheduler did.

How the parts of our scheduler tell of what is no field of a `Decision` is read here and nowhere
else: dry runs of preemption, and the writes of `ReplayClient`, from which volumes and claims come.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kubescene.testing.goldens.claims import plain
from kubescene.testing.goldens.comparing import Aspect, Comparison
from kubescene.testing.goldens.extender_calls import comparable
from kubescene.testing.goldens.preemptions import dry_run_of
from kubescene.testing.goldens.volume_writes import (
    CLAIM,
    SELECTED_NODE,
    VOLUME,
    claim_of,
    selected_node,
)
from kubescene.testing.goldens.worlds import Attempt

NOTHING_SCORED: Mapping[str, Any] = {"nodes": [], "totals": []}


class Outcome:
    """The outcome of one attempt."""

    def __init__(self, ours: Attempt, comparison: Comparison) -> None:
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


def _numbers(column: Any) -> list[int]:
    convert = getattr(column, "tolist", None)
    return list(column) if convert is None else convert()
