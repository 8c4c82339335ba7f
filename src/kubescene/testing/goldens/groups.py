"""Pod groups: one attempt for all pods of a group that wait."""

from collections.abc import Mapping
from typing import Any

from kubescene.testing.goldens.comparing import Aspect, Comparison
from kubescene.testing.goldens.outcomes import NOTHING_SCORED, Outcome
from kubescene.testing.goldens.worlds import GroupAttempt


def compare_group(ours: GroupAttempt, recorded: Mapping[str, Any], comparison: Comparison) -> None:
    """Who was tried in which order, what came of each, and what was written."""
    theirs = recorded["members"]
    comparison.equal(Aspect.NEXT_START, ours.next_start, recorded["nextStart"])
    comparison.equal(Aspect.GROUP, ours.condition, recorded.get("condition"))
    comparison.equal(Aspect.DELETED, ours.deleted, recorded.get("deleted") or [])
    names = [member["pod"] for member in theirs]
    if not comparison.equal(Aspect.MEMBERS, [each.pod for each in ours.members], names):
        return
    attempt = comparison.at
    for member, want in zip(ours.members, theirs, strict=True):
        comparison.at = f"{attempt} member {member.pod}"
        outcome = want["outcome"]
        Outcome(member, comparison).compare(outcome, outcome.get("scored") or NOTHING_SCORED)
    comparison.at = attempt
