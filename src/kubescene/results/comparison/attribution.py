"""Which plugin moved a pod: two explained attempts at it, one of each run.

Run A chose node *a*, run B chose node *b* (or none). What is asked is why *a* was before *b* in A
and is not in B. The answer is the first of these that holds:

1. B's scheduler, or an extender, refused *a*, or did not look at it: a pod cannot stay where it
   may not be.
2. A's scheduler refused *b*, or did not look at it: B could choose what A could not.
3. Both were rated in both runs. A plugin's *lead* is its weighted score of *a* less that of *b*,
   its *shift* the lead in A less the lead in B; the shifts add up to what turned the order. Named
   is the first plugin, in the order of the profile, whose shift alone turns it: with only that
   plugin's column from B, A would not have preferred *a*. If none is enough alone, the largest
   shifts are named that are enough together, the largest first.
4. The totals are equal in both runs: no plugin, but the order in which nodes were looked at.

Where an extender is asked, its scores are a column like that of a plugin, under its name.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from kubescene.results.explaining import ExplainedAttempt, NodeVerdict

LEFT_OUT = "its answer does not name the node"
"""Of an extender that gives no reason."""


class Side(StrEnum):
    """One of the two runs."""

    A = "A"
    B = "B"


class Why(StrEnum):
    """What kind of answer it is."""

    VERDICT = "Verdict"
    """``plugin`` refused ``node`` in the run ``side``, and not in the other."""
    SCORE = "Score"
    """The weighted score of ``plugin`` turned the order."""
    UNSEEN = "Unseen"
    """``side`` did not look at ``node``: its search had enough nodes before, or took a promise."""
    ABSENT = "Absent"
    """``node`` was not there in the run ``side``."""
    TIE = "Tie"
    """Equal totals in both runs: the order of the search decided."""
    UNEXPLAINED = "Unexplained"
    """The attempt was not explained in one of the runs, or in both."""
    UNTRIED = "Untried"
    """No scheduler tried it in one of the runs: it was gated, gone, or for nobody."""
    UNKNOWN = "Unknown"
    """Nothing that was explained differs: an attempt failed after a node was found."""


class PluginPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one plugin gave the two nodes, ``(a, b)``, in each run, weight included.

    Without a weight, it did not rate nodes in that run.
    """

    plugin: str
    in_a: tuple[int, int] = (0, 0)
    in_b: tuple[int, int] = (0, 0)
    weight_in_a: int | None = None
    weight_in_b: int | None = None

    @property
    def shift(self) -> int:
        """By how much it favours *b* more in B than in A."""
        return (self.in_a[0] - self.in_a[1]) - (self.in_b[0] - self.in_b[1])

    @property
    def weight_shift(self) -> int:
        """That of the weight alone: A's scores times B's weight."""
        before, after = self.weight_in_a, self.weight_in_b
        if not before or after is None:
            return 0
        lead = self.in_a[0] - self.in_a[1]
        return lead - lead // before * after

    @property
    def reweighted(self) -> bool:
        """Whether both runs asked it, with different weights."""
        weights = (self.weight_in_a, self.weight_in_b)
        return None not in weights and weights[0] != weights[1]


class Attribution(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why a pod went elsewhere. ``parts`` are those that it took, the named plugin's first.

    ``weight_alone`` says that the new weight of the plugin would have been enough, with everything
    as it was in A. ``sides`` are the runs without an explanation, or without an attempt.
    """

    why: Why
    plugin: str = ""
    node: str = ""
    side: Side | None = None
    reasons: str = ""
    parts: tuple[PluginPart, ...] = ()
    totals_in_a: tuple[int, int] | None = None
    totals_in_b: tuple[int, int] | None = None
    weight_alone: bool = False
    sides: tuple[Side, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether one plugin is enough."""
        return len(self.parts) <= 1


def attribute(a: ExplainedAttempt, b: ExplainedAttempt) -> Attribution:
    """Why the attempt of run A took a node, and that of run B another one, or none."""
    attempts = {Side.A: a, Side.B: b}
    if missing := tuple(side for side in attempts if not attempts[side].explained):
        return Attribution(Why.UNEXPLAINED, sides=missing)
    return (
        _excluded(a.node, b, Side.B)
        or _excluded(b.node, a, Side.A)
        or (_by_score(a, b) if a.node and b.node else Attribution(Why.UNKNOWN, reasons=_said(a, b)))
    )


def _excluded(node: str, attempt: ExplainedAttempt, side: Side) -> Attribution | None:
    """Why a run could not take the node that the other one took."""
    if not node:
        return None
    verdict = attempt.verdict_on(node)
    if refused := _by_extender(node, attempt):
        plugin, reasons = refused
    elif verdict is None:
        return Attribution(Why.UNSEEN, node=node, side=side)
    else:
        plugin, reasons = verdict.rejected_by, verdict.reasons
    if not plugin:
        return None
    return Attribution(Why.VERDICT, plugin=plugin, node=node, side=side, reasons=reasons)


def _by_extender(node: str, attempt: ExplainedAttempt) -> tuple[str, str] | None:
    """The extender that would not have a node, and what it said; some leave nodes out silently."""
    for record in attempt.extenders:
        said = record.failed.get(node) or record.unresolvable.get(node)
        if node in record.failed or node in record.unresolvable or node in record.dropped:
            return record.extender, said or LEFT_OUT
    return None


def _said(*attempts: ExplainedAttempt) -> str:
    return next((each.message for each in attempts if not each.node), "")


def _by_score(a: ExplainedAttempt, b: ExplainedAttempt) -> Attribution:
    pair = (a.node, b.node)
    if damaged := tuple(s for s, each in zip(Side, (a, b), strict=True) if not _whole(each, pair)):
        return Attribution(Why.UNEXPLAINED, sides=damaged)
    totals_in_a, totals_in_b = _totals(a, pair), _totals(b, pair)
    lead, goal = totals_in_a[0] - totals_in_a[1], totals_in_b[0] - totals_in_b[1]
    parts = _needed(_parts(a, b, pair), lead, _sign(goal))
    return Attribution(
        Why.SCORE if parts else Why.TIE,
        plugin=parts[0].plugin if parts else "",
        parts=parts,
        totals_in_a=totals_in_a,
        totals_in_b=totals_in_b,
        weight_alone=any(_turns(lead, part.weight_shift, _sign(goal)) for part in parts[:1]),
    )


def _needed(parts: Iterable[PluginPart], lead: int, order: int) -> tuple[PluginPart, ...]:
    """The first part that turns a lead into an order by itself, or as few as are enough."""
    shifting = [part for part in parts if part.shift > 0]
    if _sign(lead) == order:
        return ()
    for part in shifting:
        if _turns(lead, part.shift, order):
            return (part,)
    needed: list[PluginPart] = []
    for part in sorted(shifting, key=lambda each: -each.shift):
        needed.append(part)
        if _turns(lead, sum(each.shift for each in needed), order):
            break
    return tuple(needed)


def _turns(lead: int, shift: int, order: int) -> bool:
    return shift > 0 and _sign(lead - shift) <= order


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _parts(a: ExplainedAttempt, b: ExplainedAttempt, pair: tuple[str, str]) -> list[PluginPart]:
    """Every plugin and extender that rated the two nodes, in A's order; then those of B alone."""
    of_a, of_b = _columns(a, pair), _columns(b, pair)
    unrated: tuple[int | None, tuple[int, int]] = (None, (0, 0))
    return [
        PluginPart(
            name,
            in_a=of_a.get(name, unrated)[1],
            in_b=of_b.get(name, unrated)[1],
            weight_in_a=of_a.get(name, unrated)[0],
            weight_in_b=of_b.get(name, unrated)[0],
        )
        for name in dict.fromkeys((*of_a, *of_b))
    ]


def _columns(
    attempt: ExplainedAttempt, pair: tuple[str, str]
) -> dict[str, tuple[int | None, tuple[int, int]]]:
    """Weight, and weighted scores of the two nodes, by plugin. An extender's weight is in them."""
    first, second = (_verdict(attempt, node) for node in pair)
    columns: dict[str, tuple[int | None, tuple[int, int]]] = {
        name: (weight, (first.scores[place], second.scores[place]))
        for place, (name, weight) in enumerate(zip(attempt.plugins, attempt.weights, strict=True))
    }
    for record in attempt.extenders:
        if record.scores:
            scores = record.scores.get(pair[0], 0), record.scores.get(pair[1], 0)
            columns[record.extender] = (1, scores)
    return columns


def _whole(attempt: ExplainedAttempt, pair: tuple[str, str]) -> bool:
    """Whether both nodes have a score of every plugin; a damaged file may lack some."""
    lengths = {len(_verdict(attempt, node).scores) for node in pair}
    return lengths == {len(attempt.plugins)}


def _totals(attempt: ExplainedAttempt, pair: tuple[str, str]) -> tuple[int, int]:
    return (_verdict(attempt, pair[0]).total or 0, _verdict(attempt, pair[1]).total or 0)


def _verdict(attempt: ExplainedAttempt, node: str) -> NodeVerdict:
    verdict = attempt.verdict_on(node)
    assert verdict is not None, "asked for after both nodes were found"
    return verdict
