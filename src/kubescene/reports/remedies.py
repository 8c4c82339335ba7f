"""What it would take, for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kubescene.remedies import Remedy
from kubescene.reports.columns import put

NONE_FOUND = "no single change was found that would place it"


def print_remedies(pod: str, remedies: Sequence[Remedy], console: Console) -> None:
    """All remedies of a pod, the cheapest first."""
    put(console, Text.assemble("What would it take to place ", (pod, "bold"), "?"))
    if not remedies:
        console.print(NONE_FOUND, style="yellow")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("cost", justify="right", header_style="dim")
    table.add_column("change", header_style="dim", overflow="fold")
    table.add_column("then it fits", header_style="dim")
    for remedy in remedies:
        table.add_row(str(remedy.cost), Text(remedy.text), Text(remedy.node))
    put(console, table)
    console.print("each was tried in a copy of the world, alone", style="dim")


def print_best(best: Sequence[tuple[str, str]], left: int, console: Console) -> None:
    """The cheapest remedy of some waiting pods, and how many were not asked about."""
    console.print(Text("\nWhat would it take", style="bold"))
    for pod, told in best:
        put(console, Text(f"{pod}: {told}"))
    if left > 0:
        text = f"{left} more pods wait: kubescene explain pod NAME --remedy tells of one"
        put(console, Text(text, style="dim"))
