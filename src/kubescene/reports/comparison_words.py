"""A comparison in sentences, for terminals and for pages alike."""

from kubescene.reports.words import counted
from kubescene.results.comparison import Attribution, Cause, Comparison, PlacedPod, Side, Why
from kubescene.results.comparison.attribution import PluginPart
from kubescene.results.comparison.values import ComparedRun, Divergence, MeasureComparison

CAUSES = {
    Cause.SCHEDULER: "the scheduler, looking at the same cluster",
    Cause.SCENARIO: "the scenario: not the same nodes or objects",
    Cause.CONSEQUENCE: "follows from earlier differences",
}
UNRECORDED = (
    "the code of plugins, --controller, --feature-gates and files of objectFrom are not kept"
)


def equal_line(comparison: Comparison) -> str:
    """What is said of runs in which the same happened."""
    a, b = comparison.a, comparison.b
    waiting = f", {a.pending} of them waiting" if a.pending else ""
    return f"{a.name} and {b.name} are equal: {counted(a.pods, 'pod')}{waiting}, no difference"


def given_line(comparison: Comparison) -> str:
    """What stands over the table of inputs, or instead of it."""
    if comparison.inputs:
        return "What they were given"
    if comparison.equal:
        return ""
    if not comparison.inputs_known:
        return "What they were given is not known for both"
    same = f"Both were given the same scenario, seed and scheduler configuration ({UNRECORDED}): "
    if cut := [run.name for run in (comparison.a, comparison.b) if not run.phase]:
        return f"{same}what {' and '.join(cut)} did not come to counts as different"
    return f"{same}something that a run does not keep made the difference"


def told_run(run: ComparedRun) -> str:
    """``first-scenario, seed 0, Succeeded: 6 pods, 5 bound, 1 waiting``."""
    parts = [counted(run.pods, "pod"), f"{run.bound:,} bound", f"{run.pending:,} waiting"]
    if run.preemptions:
        parts.append(counted(run.preemptions, "preemption"))
    phase = run.phase or "without an end"
    return f"{run.scenario or 'a scenario'}, seed {run.seed}, {phase}: {', '.join(parts)}"


def told_divergence(divergence: Divergence) -> list[str]:
    """Where the runs part: what happened, and why."""
    place = f"The runs part at decision {divergence.number}"
    if divergence.other_pod or not divergence.pod:
        first, second = (
            f"{pod} to {node}" if pod else "no further pod"
            for pod, node in (
                (divergence.pod, divergence.node_in_a),
                (divergence.other_pod, divergence.node_in_b),
            )
        )
        order = " They do not bind in the same order." if divergence.pod else ""
        return [f"{place}: A binds {first}, B binds {second}.{order}"]
    where_a, where_b = (
        f"{node} in {side}" if node else f"no node in {side}"
        for node, side in ((divergence.node_in_a, "A"), (divergence.node_in_b, "B"))
    )
    steps = f"step {divergence.step_in_a or divergence.step_in_b}"
    sentences = [f"{place}: {divergence.pod} ({steps}) gets {where_a} and {where_b}."]
    attribution = divergence.attribution
    if attribution is not None:
        told = told_why(attribution, divergence.node_in_a, divergence.node_in_b)
        cause = f" {CAUSES[divergence.cause].capitalize()}." if divergence.cause else ""
        sentences.append(f"Why: {told}.{cause}")
    return sentences


def told_names(comparison: Comparison) -> str:
    """How pods were matched that are not called the same."""
    if not comparison.renamed:
        return ""
    return (
        f"{counted(comparison.renamed, 'pod')} of controllers have other names in B: they are "
        "matched by who made them and the order in which they came."
    )


def told_rest(comparison: Comparison) -> str:
    """How the other differences hang together with the first."""
    causes = [each.cause for each in comparison.placed if each.cause is not None]
    counts = {cause: causes.count(cause) for cause in Cause if causes.count(cause)}
    if not counts or len(comparison.placed) == 1:
        return ""
    parts = [f"{count} {_of(cause)}" for cause, count in counts.items()]
    asked = [each for each in comparison.placed if each.opinion is not None]
    if asked:
        moved = sum(1 for each in asked if each.opinion != each.node_in_a)
        parts[-1] += f" (B's scheduler moves {moved} of {len(asked)} in A's cluster, too)"
    unknown = len(comparison.placed) - len(causes)
    if unknown:
        parts.append(f"{unknown} not looked at")
    return f"Of {counted(len(comparison.placed), 'pod')} placed otherwise: {'; '.join(parts)}."


def _of(cause: Cause) -> str:
    return {
        Cause.SCHEDULER: "decided otherwise about the same cluster",
        Cause.SCENARIO: "because nodes or objects differ",
        Cause.CONSEQUENCE: "in a cluster that differed already",
    }[cause]


def told_mover(placed: PlacedPod) -> str:
    """Who is to be named: a plugin, or what stands for one."""
    attribution = placed.attribution
    if attribution is None:
        return "the scenario" if placed.cause is Cause.SCENARIO else "not looked at"
    if attribution.plugin:
        return " + ".join(part.plugin for part in attribution.parts) or attribution.plugin
    return {
        Why.ABSENT: "node missing",
        Why.UNSEEN: "search",
        Why.TIE: "tie",
        Why.UNTRIED: "not tried",
        Why.UNEXPLAINED: "not explained",
    }.get(attribution.why, "unknown")


def told_cause(placed: PlacedPod) -> str:
    """First hand or not, in a few words."""
    if placed.cause is None:
        return ""
    if placed.cause is not Cause.CONSEQUENCE:
        return {Cause.SCHEDULER: "same cluster", Cause.SCENARIO: "scenario"}[placed.cause]
    if placed.opinion is not None:
        return _opinion(placed)
    if placed.attribution is not None and placed.attribution.weight_alone:
        return "follows; new weight is enough"
    return "follows; plugin changed, too" if placed.reconfigured else "follows"


def _opinion(placed: PlacedPod) -> str:
    """What B's scheduler does in A's cluster."""
    if placed.opinion == placed.node_in_a:
        return "follows only"
    if placed.opinion == placed.node_in_b:
        return "moved in any case"
    return f"follows; in A's cluster {placed.opinion or 'no node'}"


def told_why(attribution: Attribution, node_in_a: str, node_in_b: str) -> str:
    """The reason in one sentence, without its full stop."""
    side = attribution.side
    match attribution.why:
        case Why.VERDICT:
            refused = f"{attribution.plugin} refuses {attribution.node} in {side}"
            return f"{refused}: {attribution.reasons}" if attribution.reasons else refused
        case Why.ABSENT:
            return f"there is no {attribution.node} in {side}"
        case Why.UNSEEN:
            return f"the search in {side} did not come to {attribution.node}"
        case Why.TIE:
            return "both nodes have equal totals in both runs, the order of the search decided"
        case Why.UNEXPLAINED | Why.UNTRIED:
            what = "explained" if attribution.why is Why.UNEXPLAINED else "tried by a scheduler"
            return f"it was not {what} in {' and '.join(attribution.sides)}"
        case Why.UNKNOWN:
            return attribution.reasons or "nothing that was explained differs"
    parts = [told_part(part, node_in_a, node_in_b) for part in attribution.parts]
    together = "" if attribution.alone else "; none of them alone"
    return f"{', and '.join(parts)}{_totals(attribution, node_in_a, node_in_b)}{together}"


def _totals(attribution: Attribution, node_in_a: str, node_in_b: str) -> str:
    before, after = attribution.totals_in_a, attribution.totals_in_b
    if before is None or after is None:
        return ""
    return (
        f" (totals {before[0]} to {before[1]} in A, {after[0]} to {after[1]} in B"
        f"{', a tie' if before[0] == before[1] or after[0] == after[1] else ''})"
    )


def told_part(part: PluginPart, node_in_a: str, node_in_b: str) -> str:
    """``NodeResourcesFit (weight 1, in B 5) rates n1 87, in B 12, and n2 75, in B 25``."""
    scores = (
        f"{node} {before} → {after}"
        for node, before, after in (
            (node_in_a, part.in_a[0], part.in_b[0]),
            (node_in_b, part.in_a[1], part.in_b[1]),
        )
    )
    return f"{part.plugin}{_weight(part)} rates {', '.join(scores)}"


def _weight(part: PluginPart) -> str:
    if part.weight_in_a is None:
        return " (only in B)"
    if part.weight_in_b is None:
        return " (only in A)"
    return f" (weight {part.weight_in_a} → {part.weight_in_b})" if part.reweighted else ""


def told_unexplained(comparison: Comparison, *, replayable: bool) -> list[str]:
    """How to get explanations that a run did not keep."""
    lines = []
    levels = {Side.A: comparison.a.explain, Side.B: comparison.b.explain}
    for side, count in comparison.unexplained.items():
        if count:
            kept = f"spec.simulation.explain is {levels[side]}"
            lines.append(
                f"{side} did not keep why for {count:,} of {counted(comparison.looked_at, 'pod')} "
                f"looked at ({kept}): play it with spec.simulation.explain: Full"
            )
    if lines and replayable:
        lines.append("or compare with --replay, which plays the runs again and explains them")
    return lines


def told_expectation(holds: bool | None, why: str) -> str:
    """What came of an expectation in one of the runs."""
    if holds is None:
        return "-"
    return "holds" if holds else f"fails: {why}" if why else "fails"


def expectations_line(comparison: Comparison) -> str:
    """How many expectations each run meets."""
    met = [
        f"{sum(values)} of {len(values)} in {side}"
        for side in Side
        if (values := [each for each in _holding(comparison, side) if each is not None])
    ]
    return f"Expectations that hold: {', '.join(met)}"


def _holding(comparison: Comparison, side: Side) -> list[bool | None]:
    return [each.in_a if side is Side.A else each.in_b for each in comparison.expectations]


def told_value(value: float | str | None) -> str:
    """A value of a workload for people."""
    return value if isinstance(value, str) else number(value, "")


def number(value: float | None, unit: str) -> str:
    """A measure for people."""
    if value is None:
        return "-"
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def change(row: MeasureComparison) -> str:
    """By how much B is more or less than A."""
    if row.a is None or row.b is None:
        return ""
    difference = row.b - row.a
    if row.unit == "share":
        return f"{difference * 100:+.1f} points"
    told = f"{difference:+,}" if isinstance(difference, int) else f"{difference:+,.4g}"
    return f"{told} ({difference / row.a:+.0%})" if row.a else told
