"""An explained attempt for people: nodes, scores, preemption, extenders, waits."""

import re
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kubescene.instruments.attempts import ExtenderRecord, PreemptionRecord, TriedNode, WaitRecord
from kubescene.reports.amounts import told_duration
from kubescene.reports.columns import put
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict

NODES_SHOWN = 20
OUTSIDE = "a scheduler outside of this process: it does not say which nodes it looked at"
NOT_KEPT = "scores were not kept: run again with spec.simulation.explain: Full to keep them"


def print_attempt(attempt: ExplainedAttempt, console: Console, *, node: str = "") -> None:
    """All that is known of an attempt, or what is known about one node in it."""
    when = f" (+{told_duration(attempt.time_s)})" if attempt.time_s else ""
    title = Text.assemble((attempt.pod, "bold"), f" at step {attempt.step}{when}: ")
    if attempt.node:
        title.append(f"bound to {attempt.node}", style="green")
    else:
        title.append(attempt.message, style="yellow")
    put(console, title)
    if attempt.explained:
        print_verdicts(attempt, console, node)
    elif not attempt.traceback:
        print_counts(attempt, console)
    for line in told_extenders(attempt.extenders, node):
        _say(line, console, "yellow" if "error" in line else "")
    for wait in attempt.waits:
        _say(told_wait(wait), console, "")
    if attempt.preemption is not None:
        print_preemption(attempt.preemption, console, node)
    if attempt.traceback:
        console.print(attempt.traceback.rstrip(), style="dim", highlight=False, markup=False)
    console.print()


def print_counts(attempt: ExplainedAttempt, console: Console) -> None:
    """Of an attempt without verdicts. A scheduler outside does not say which nodes it looked at."""
    if attempt.node and not attempt.evaluated:
        _say(OUTSIDE, console)
    elif attempt.evaluated:
        _say(f"{attempt.feasible} of {attempt.evaluated} nodes that were looked at fit", console)
        _say(NOT_KEPT, console)


def print_verdicts(attempt: ExplainedAttempt, console: Console, node: str = "") -> None:
    shown = [each for each in attempt.verdicts if node in ("", each.node)]
    if node and not shown:
        _say(f"{node} was not looked at: the search had found enough nodes before", console)
        return
    listed = shown[:NODES_SHOWN]
    # Apart from each other: reasons are long, and beside the scores they would be cut.
    fitting = [each for each in listed if not each.rejected_by]
    if fitting:
        put(console, verdicts_table(attempt, fitting))
    if len(fitting) < len(listed):
        put(console, refusals_table(each for each in listed if each.rejected_by))
    if attempt.is_unscored:
        _say("only one node fits, not scored", console)
    if (left := len(shown) - NODES_SHOWN) > 0:
        _say(f"and {left} more nodes; --node NAME shows one of them", console)


def told_extenders(records: Iterable[ExtenderRecord], node: str = "") -> list[str]:
    """What extenders said, a line each; about one node if it is named."""
    lines = []
    for record in records:
        who = f"extender {record.extender}, {record.verb}: "
        if record.error:
            ignored = " (ignored: the attempt goes on without it)" if record.ignored else ""
            lines.append(f"{who}error: {record.error}{ignored}")
            continue
        told = [each for each in _answers(record) if node in ("", each[0])]
        lines += [f"{who}{text}" for _, text in told[:NODES_SHOWN]]
        if not told and not node:
            lines.append(f"{who}{'bound it' if record.verb == 'bind' else 'no objection'}")
        if (left := len(told) - NODES_SHOWN) > 0:
            lines.append(f"{who}and {left} more nodes")
    return lines


def _answers(record: ExtenderRecord) -> list[tuple[str, str]]:
    """What was said about each node."""
    refused = {**record.failed, **record.unresolvable}
    return [
        *((node, f"{node} refused: {text}") for node, text in refused.items()),
        *((node, f"{node} dropped without a reason") for node in record.dropped),
        *((node, f"{node} +{score}") for node, score in record.scores.items()),
        *((node, f"{node} by losing {len(pods)} pods") for node, pods in record.victims.items()),
    ]


def told_wait(wait: WaitRecord) -> str:
    """Which plugin, since when, until when at the latest, and what came of it."""
    latest = f", until {wait.until} at the latest" if wait.until else ""
    outcome = f"{wait.outcome} at {wait.ended}" if wait.ended else "still waits"
    return (
        f"waited for {wait.plugin} at {wait.point} with {wait.node} promised, since {wait.since}"
        f"{latest}: {outcome}"
    )


def _say(text: str, console: Console, style: str = "dim") -> None:
    put(console, Text(text, style=style))


def print_preemption(preemption: PreemptionRecord, console: Console, node: str = "") -> None:
    """Which nodes could make room, whom they would lose, and why this one was chosen."""
    if preemption.node:
        victims = ", ".join(preemption.victims)
        text = f"preemption: {preemption.node} makes room by losing {victims} "
        text += (
            f"({preemption.criterion}; {preemption.candidates} of {preemption.trials} nodes could)"
        )
    else:
        text = f"preemption: {preemption.message or 'failed'}"
    put(console, Text(text, style="yellow"))
    tried = [each for each in preemption.tried if node in ("", each.node)]
    if tried:
        put(console, trials_table(preemption, tried[:NODES_SHOWN]))
    left = preemption.trials - min(len(tried), NODES_SHOWN)
    if tried and left > 0 and not node:
        _say(f"and {left} more nodes", console)


def trials_table(preemption: PreemptionRecord, shown: Iterable[TriedNode]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("node tried", "victims", "violated budgets", "verdict"):
        table.add_column(column, header_style="dim")
    for tried in shown:
        refusal = ": ".join(filter(None, (tried.plugin, ", ".join(tried.reasons))))
        verdict = "chosen" if tried.node == preemption.node else refusal or "could make room"
        violations = str(tried.pdb_violations) if tried.victims else "-"
        table.add_row(Text(tried.node), Text(", ".join(tried.victims)), violations, Text(verdict))
    return table


def verdicts_table(attempt: ExplainedAttempt, shown: Iterable[NodeVerdict]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("node", header_style="dim")
    for plugin in attempt.plugins:
        name = spaced(plugin)
        longest = max(map(len, name.split()))
        table.add_column(name, justify="right", header_style="dim", min_width=longest)
    if attempt.plugins:
        table.add_column("total", justify="right", header_style="dim")
    table.add_column("verdict", header_style="dim")
    for verdict in shown:
        scores = [str(score) for score in verdict.scores] or ["-"] * len(attempt.plugins)
        total = ["-" if verdict.total is None else str(verdict.total)] if attempt.plugins else []
        table.add_row(Text(verdict.node), *scores, *total, described(verdict, attempt.node))
    return table


def refusals_table(shown: Iterable[NodeVerdict]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("node", "verdict"):
        table.add_column(column, header_style="dim")
    for verdict in shown:
        reason = Text(f"{verdict.rejected_by}: {verdict.reasons}", style="yellow")
        table.add_row(Text(verdict.node), reason)
    return table


def spaced(plugin: str) -> str:
    """A plugin's name that a narrow table can break between its words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plugin)


def described(verdict: NodeVerdict, chosen: str) -> Text:
    return Text("chosen", style="green") if verdict.node == chosen else Text("fits")
