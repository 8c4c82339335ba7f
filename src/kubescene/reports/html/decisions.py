"""Which decisions are shown: of a small run all, of a large one those that are worth a look.

First pods that wait (one for each reason, then more), pods for which others had to leave, pods that
came late; then some of the others, evenly over the run. How many are read is bounded, and so are
the verdicts on nodes in them.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest

from kubescene.instruments.attempts import PreemptionRecord, TriedNode
from kubescene.reports.amounts import told_duration
from kubescene.reports.explaining import told_extenders, told_wait
from kubescene.reports.html.contents import DecisionView, RefusalView, RowView, TrialView
from kubescene.reports.html.waits import grouped, late_of, waiting_of
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PENDING, PodEntry
from kubescene.results.sources import RunSource

PODS = 150
WAITING = 60
ALIKE = 3
PREEMPTORS = 40
LATE = 30
VERDICTS = 250_000
ATTEMPTS = 3
"""Of one pod: the first, the newest that made others leave, and the last."""


def decisions_of(source: RunSource) -> list[DecisionView]:
    """The most urgent first, then in the order of the run."""
    found: list[tuple[tuple[int, int, int], DecisionView]] = []
    left = VERDICTS
    for pod in islice(chosen(source.ledger), PODS):
        attempts = source.explain(pod.pod)
        waits = pod.state == PENDING
        for number in picked([bool(each.preemption) for each in attempts]):
            attempt = attempts[number - 1]
            last_waits = waits and number == len(attempts)
            decision = digested(
                attempt, number=number, attempts=len(attempts), last_waits=last_waits
            )
            found.append((place_of(decision), decision))
            left -= len(attempt.verdicts)
        if left <= 0:
            break
    found.sort(key=lambda pair: pair[0])
    return [decision for _, decision in found]


def picked(preempting: list[bool]) -> list[int]:
    """Which attempts at a pod are shown, counted from 1."""
    last = len(preempting)
    if last <= ATTEMPTS:
        return list(range(1, last + 1))
    made_room = [number for number in range(2, last) if preempting[number - 1]]
    return [1, *made_room[-1:], last]


def place_of(decision: DecisionView) -> tuple[int, int, int]:
    """Where it stands in the list: by urgency, then by step."""
    urgency = URGENCY.index(decision.tags[0]) if decision.tags else len(URGENCY)
    major, _, minor = decision.step.partition(".")
    return urgency, int(major), int(minor)


def chosen(ledger: Ledger) -> Iterator[PodEntry]:
    """Pods in the order in which they deserve attention, each name once."""
    seen: set[str] = set()
    preemptors = dict.fromkeys(each.preemptor for each in ledger.preemptions)
    by_name = {pod.pod: pod for pod in ledger.pods if pod.pod in preemptors}
    candidates = chain(
        islice(one_of_each(waiting_of(ledger)), WAITING),
        islice((by_name[name] for name in preemptors if name in by_name), PREEMPTORS),
        islice(late_of(ledger), LATE),
        spread(ledger.pods, PODS),
    )
    for pod in candidates:
        if pod.pod not in seen and (pod.attempts or pod.state == PENDING):
            seen.add(pod.pod)
            yield pod


def one_of_each(waiting: Iterable[PodEntry]) -> Iterator[PodEntry]:
    """The first of every group, then the second of every group, and so on: a few of each."""
    groups = [pods[:ALIKE] for _, pods in grouped(waiting)]
    return (pod for row in zip_longest(*groups) for pod in row if pod is not None)


def spread(pods: list[PodEntry], count: int) -> list[PodEntry]:
    """So many of them, at even distances."""
    every = max(1, -(-len(pods) // count))
    return pods[::every]


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
) -> DecisionView:
    """``number`` of ``attempts`` at the pod, which may wait to the end (``last_waits``)."""
    fitting = [each for each in attempt.verdicts if not each.rejected_by]
    preemption = attempt.preemption or PreemptionRecord()
    return DecisionView(
        pod=attempt.pod,
        step=attempt.step,
        time=f"+{told_duration(attempt.time_s)}" if attempt.time_s else "",
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


def rows_of(fitting: list[NodeVerdict], chosen: str) -> tuple[RowView, ...]:
    """The best, and the chosen one in any case."""
    shown = fitting[:NODES]
    if chosen and all(each.node != chosen for each in shown):
        shown[-1:] = [each for each in fitting if each.node == chosen]
    return tuple(RowView(each.node, each.total, each.scores) for each in shown)


def refusals_of(attempt: ExplainedAttempt) -> tuple[RefusalView, ...]:
    groups: dict[tuple[str, str], list[str]] = {}
    for each in attempt.verdicts:
        if each.rejected_by:
            groups.setdefault((each.rejected_by, each.reasons), []).append(each.node)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(
        RefusalView(plugin, reasons, len(nodes), tuple(nodes[:NAMED]))
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


def trials_of(record: PreemptionRecord) -> tuple[TrialView, ...]:
    """Nodes on which it was tried: the chosen one, those that could, those that could not."""
    tried = sorted(record.tried, key=lambda each: (each.node != record.node, not each.victims))
    return tuple(_trial(each, record.node) for each in tried[:TRIALS])


def _trial(tried: TriedNode, chosen: str) -> TrialView:
    refusal = ": ".join(filter(None, (tried.plugin, ", ".join(tried.reasons))))
    return TrialView(
        node=tried.node,
        verdict="chosen" if tried.node == chosen else refusal or "could make room",
        victims=tried.victims[:VICTIMS],
        violations=tried.pdb_violations,
    )
