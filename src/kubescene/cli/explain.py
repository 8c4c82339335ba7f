"""``kubescene explain``."""

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kubescene.results.explaining import (
    ExplainedAttempt,
    NodeVerdict,
    is_mentioned,
    read_attempts,
)
from kubescene.timeline.attempts import PreemptionRecord

NODES_SHOWN = 20
NOT_FOUND = 2


def explain_pod(pod: str, run: Path) -> int:
    """Print why a pod was placed, or not; returns the exit code."""
    attempts = read_attempts(run, pod)
    if not attempts:
        known = is_mentioned(run, pod)
        why = (
            "no scheduler tried to place it: it was gated, placed by somebody else, or is for a "
            "scheduler that did not run"
            if known
            else "there is no such pod: check the name (NAMESPACE/NAME)"
        )
        sys.stderr.write(f"kubescene: {run} tells of no attempt at {pod}: {why}\n")
        return NOT_FOUND
    console = Console()
    for attempt in attempts:
        print_attempt(attempt, console)
    return 0


def print_attempt(attempt: ExplainedAttempt, console: Console) -> None:
    title = Text.assemble((attempt.pod, "bold"), f" at step {attempt.step}: ")
    if attempt.node:
        title.append(f"bound to {attempt.node}", style="green")
    else:
        title.append(attempt.message, style="yellow")
    console.print(title)
    if attempt.explained:
        print_verdicts(attempt, console)
    else:
        console.print(
            f"{attempt.feasible} of {attempt.evaluated} nodes that were looked at fit; scores were "
            "not kept: run again with spec.simulation.explain: Full to keep them",
            style="dim",
            highlight=False,
            markup=False,
        )
    if attempt.preemption is not None:
        print_preemption(attempt.preemption, console)
    console.print()


def print_verdicts(attempt: ExplainedAttempt, console: Console) -> None:
    console.print(verdicts_table(attempt))
    left = len(attempt.verdicts) - NODES_SHOWN
    if left > 0:
        console.print(f"and {left} more nodes", style="dim")


def print_preemption(preemption: PreemptionRecord, console: Console) -> None:
    """Which nodes could make room, whom they would lose, and why this one was chosen."""
    if preemption.node:
        victims = ", ".join(preemption.victims)
        text = f"preemption: {preemption.node} makes room by losing {victims} "
        text += (
            f"({preemption.criterion}; {preemption.candidates} of {preemption.trials} nodes could)"
        )
    else:
        text = f"preemption: {preemption.message or 'failed'}"
    console.print(Text(text, style="yellow"))
    if preemption.tried:
        console.print(trials_table(preemption))
    left = preemption.trials - min(len(preemption.tried), NODES_SHOWN)
    if preemption.tried and left > 0:
        console.print(f"and {left} more nodes", style="dim")


def trials_table(preemption: PreemptionRecord) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("node tried", "victims", "violated budgets", "verdict"):
        table.add_column(column, header_style="dim")
    for tried in preemption.tried[:NODES_SHOWN]:
        refusal = ": ".join(filter(None, (tried.plugin, ", ".join(tried.reasons))))
        verdict = "chosen" if tried.node == preemption.node else refusal or "could make room"
        violations = str(tried.pdb_violations) if tried.victims else "-"
        table.add_row(Text(tried.node), Text(", ".join(tried.victims)), violations, Text(verdict))
    return table


def verdicts_table(attempt: ExplainedAttempt) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("node", header_style="dim")
    for plugin in attempt.plugins:
        table.add_column(spaced(plugin), justify="right", header_style="dim")
    table.add_column("total", justify="right", header_style="dim")
    table.add_column("verdict", header_style="dim")
    for verdict in attempt.verdicts[:NODES_SHOWN]:
        scores = [str(score) for score in verdict.scores] or ["-"] * len(attempt.plugins)
        total = "-" if verdict.total is None else str(verdict.total)
        table.add_row(Text(verdict.node), *scores, total, described(verdict, attempt.node))
    return table


def spaced(plugin: str) -> str:
    """A plugin's name that a narrow table can break between its words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plugin)


def described(verdict: NodeVerdict, chosen: str) -> Text:
    if verdict.rejected_by:
        return Text(f"{verdict.rejected_by}: {verdict.reasons}", style="yellow")
    return Text("chosen", style="green") if verdict.node == chosen else Text("fits")
