"""An explained attempt cut down to what the page shows: the best nodes, refusals by reason."""

from kubescene.instruments.attempts import PreemptionRecord, TriedNode
from kubescene.reports.explaining import told_extenders, told_wait
from kubescene.reports.html.contents import Decision, Refusal, Row, Trial
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict

NODES = 10
NAMED = 6
TRIALS = 8
VICTIMS = 6
CLOSE = 5
"""Points between the winner and the next, of several hundred, that are close."""

URGENCY = ("error", "waits", "preempts", "refused", "late", "close", "tie", "only one fits")
"""What makes a decision worth a look, the most first."""


def digested(
    attempt: ExplainedAttempt, *, number: int, attempts: int, last_waits: bool
) -> Decision:
    """``number`` of ``attempts`` at the pod, which may wait to the end (``last_waits``)."""
    fitting = [each for each in attempt.verdicts if not each.rejected_by]
    preemption = attempt.preemption or PreemptionRecord()
    return Decision(
        pod=attempt.pod,
        step=attempt.step,
        attempt=number,
        attempts=attempts,
        node=attempt.node,
        nominated=preemption.node,
        message=attempt.message,
        tags=tags_of(attempt, fitting, number=number, waits=last_waits),
        explained=attempt.explained,
        evaluated=attempt.evaluated,
        feasible=attempt.feasible,
        plugins=attempt.plugins,
        weights=attempt.weights,
        rows=rows_of(fitting, attempt.node),
        refusals=refusals_of(attempt),
        preemption="" if attempt.preemption is None else told_preemption(preemption),
        criterion=preemption.criterion,
        trials=trials_of(preemption),
        told=(*told_extenders(attempt.extenders), *map(told_wait, attempt.waits)),
        traceback=attempt.traceback,
    )


def tags_of(
    attempt: ExplainedAttempt, fitting: list[NodeVerdict], *, number: int, waits: bool
) -> tuple[str, ...]:
    """The words of `URGENCY` that are true of it."""
    margin = margin_of(fitting, attempt.node)
    erred = any(each.error and not each.ignored for each in attempt.extenders)
    makes_room = attempt.preemption is not None and bool(attempt.preemption.node)
    true = {
        "error": bool(attempt.traceback) or erred,
        "waits": not attempt.node and waits,
        "preempts": makes_room,
        "refused": not attempt.node and not waits and not makes_room,
        "late": bool(attempt.node) and number > 1,
        "close": margin is not None and 0 < margin <= CLOSE,
        "tie": margin == 0,
        "only one fits": attempt.is_unscored,
    }
    return tuple(tag for tag in URGENCY if true[tag])


def margin_of(fitting: list[NodeVerdict], chosen: str) -> int | None:
    """How far the chosen node is ahead of the best of the others."""
    totals = [(each.total, each.node) for each in fitting if each.total is not None]
    won = next((total for total, node in totals if node == chosen), None)
    others = [total for total, node in totals if node != chosen]
    return None if won is None or not others else won - max(others)


def rows_of(fitting: list[NodeVerdict], chosen: str) -> tuple[Row, ...]:
    """The best, and the chosen one in any case."""
    shown = fitting[:NODES]
    if chosen and all(each.node != chosen for each in shown):
        shown[-1:] = [each for each in fitting if each.node == chosen]
    return tuple(Row(each.node, each.total, each.scores) for each in shown)


def refusals_of(attempt: ExplainedAttempt) -> tuple[Refusal, ...]:
    groups: dict[tuple[str, str], list[str]] = {}
    for each in attempt.verdicts:
        if each.rejected_by:
            groups.setdefault((each.rejected_by, each.reasons), []).append(each.node)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        Refusal(plugin, reasons, len(nodes), tuple(nodes[:NAMED]))
        for (plugin, reasons), nodes in ordered[:NODES]
    )


def told_preemption(record: PreemptionRecord) -> str:
    if not record.node:
        return record.message or "failed"
    victims = ", ".join(record.victims[:VICTIMS])
    left = len(record.victims) - VICTIMS
    return (
        f"{record.node} makes room by losing {victims}{f' and {left} more' if left > 0 else ''} "
        f"({record.criterion}; {record.candidates} of {record.trials} nodes could)"
    )


def trials_of(record: PreemptionRecord) -> tuple[Trial, ...]:
    """Nodes on which it was tried: the chosen one, those that could, those that could not."""
    tried = sorted(record.tried, key=lambda each: (each.node != record.node, not each.victims))
    return tuple(_trial(each, record.node) for each in tried[:TRIALS])


def _trial(tried: TriedNode, chosen: str) -> Trial:
    refusal = ": ".join(filter(None, (tried.plugin, ", ".join(tried.reasons))))
    return Trial(
        node=tried.node,
        verdict="chosen" if tried.node == chosen else refusal or "could make room",
        victims=tried.victims[:VICTIMS],
        violations=tried.pdb_violations,
    )
