"""Nodes in the terminal: how many are how full, and the fullest of them with all they offer."""

from collections.abc import Iterator, Sequence
from math import ceil

from rich.table import Table
from rich.text import Text

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.reports.amounts import is_bytes, natural
from kubescene.reports.columns import TerminalColumn, fitted_table, fitting
from kubescene.results import NodeUse

BAR_WIDTH, NARROW_BAR_WIDTH = 12, 6
ROWS_SHOWN = 12
TENTHS = 10
BROKEN = ("NotReady", "Unknown")
"""A node of such a status runs nothing, or nobody knows."""


def nodes_tables(nodes: Sequence[NodeUse], width: int) -> Iterator[Table]:
    """All of them if they are few."""
    if len(nodes) > ROWS_SHOWN:
        yield histogram(nodes, width)
    yield nodes_table(nodes, width)


def histogram(nodes: Sequence[NodeUse], width: int) -> Table:
    """How many nodes are how full by cpu; those of no use are counted apart."""
    counts: dict[tuple[int, str], int] = {}
    for node in nodes:
        band = band_of(node)
        counts[band] = counts.get(band, 0) + 1
    bands = sorted(counts, reverse=True)
    most = max(counts.values())
    bar_width = min(4 * BAR_WIDTH, max(width - 32, 1))
    bars = [Text("█" * max(round(counts[band] / most * bar_width), 1), "green") for band in bands]
    return fitted_table(
        f"\nNodes by cpu requested ({len(nodes)} nodes)",
        (
            TerminalColumn("requested", "right", [name for _, name in bands]),
            TerminalColumn("nodes", "right", [str(counts[band]) for band in bands]),
            TerminalColumn("", "left", bars, 1),
        ),
        width,
    )


def band_of(node: NodeUse) -> tuple[int, str]:
    """A tenth of what it offers, or why that is of no interest; fuller ones sort later."""
    used = share(node, CPU)
    if node.status.startswith(BROKEN):
        return -1, node.status.partition(",")[0]
    if not node.requested.get(CPU, 0):
        return 0, "nothing"
    if used > 1:
        return TENTHS + 2, "over 100%"
    tenth = min(ceil(used * TENTHS), TENTHS)
    return tenth, f"{(tenth - 1) * 10} to {tenth * 10}%"


def nodes_table(nodes: Sequence[NodeUse], width: int) -> Table:
    """The busiest; of equal ones those that come first by name, node-2 before node-10."""
    ordered = sorted(nodes, key=lambda node: (-share(node, CPU), natural(node.name)))
    shown = ordered[:ROWS_SHOWN]
    more = f" (the {ROWS_SHOWN} busiest of {len(nodes)})" if len(nodes) > ROWS_SHOWN else ""
    columns = node_columns(shown, BAR_WIDTH)
    if len(fitting(columns, width)) < len(columns):
        columns = node_columns(shown, NARROW_BAR_WIDTH)
    return fitted_table(f"\nNodes{more}", columns, width)


def node_columns(nodes: Sequence[NodeUse], bar: int) -> list[TerminalColumn]:
    """Pods can be missed first, then memory, then what is scarce."""
    columns = [TerminalColumn("node", "left", [node.name for node in nodes])]
    if any(node.status for node in nodes):
        columns.append(TerminalColumn("status", "left", [*map(status_cell, nodes)], folds=True))
    columns += (
        TerminalColumn("pods", "right", [str(node.pods) for node in nodes], 3),
        TerminalColumn(CPU, "left", [gauge(node, CPU, bar) for node in nodes]),
        TerminalColumn(MEMORY, "left", [gauge(node, MEMORY, bar) for node in nodes], 2),
        *(
            TerminalColumn(name, "left", [figures(node, name) for node in nodes], 1)
            for name in others(nodes)
        ),
    )
    return columns


def status_cell(node: NodeUse) -> Text:
    broken = node.status.startswith(BROKEN)
    return Text(node.status or "Ready", style="red" if broken else "yellow" if node.status else "")


def others(nodes: Sequence[NodeUse]) -> list[str]:
    """Extended resources and devices that nodes offer, and storage that pods ask for."""
    offered = {name for node in nodes for name in node.allocatable}
    asked = {name for node in nodes for name in node.requested}
    return sorted(
        name
        for name in offered - {CPU, MEMORY, PODS}
        if name in asked or ("/" in name and any(node.allocatable.get(name) for node in nodes))
    )


def share(node: NodeUse, resource: str) -> float:
    offered = node.allocatable.get(resource, 0)
    return node.requested.get(resource, 0) / offered if offered else 0.0


def gauge(node: NodeUse, resource: str, width: int = BAR_WIDTH) -> Text:
    """A bar and the figures: requested of allocatable."""
    if not node.allocatable.get(resource, 0):
        return Text("-", style="dim")
    used = share(node, resource)
    filled = min(round(used * width), width)
    style = "red" if used > 0.95 else "yellow" if used > 0.8 else "green"
    return Text.assemble(
        ("█" * filled, style),
        ("░" * (width - filled), "dim"),
        f" {used:4.0%} ",
        figures(node, resource),
    )


def figures(node: NodeUse, resource: str) -> Text:
    """Requested of allocatable, as numbers alone."""
    offered = node.allocatable.get(resource, 0)
    if not offered:
        return Text("-", style="dim")
    asked = amount(resource, node.requested.get(resource, 0))
    return Text(f"{asked}/{amount(resource, offered)}", style="dim")


def amount(resource: str, value: int) -> str:
    """Cpu in cores, bytes in binary units, and what is counted as it is."""
    if resource == CPU:
        return f"{value / 1000:g}"
    if not is_bytes(resource):
        return str(value)
    for unit in ("", "Ki", "Mi", "Gi", "Ti"):
        if value < 1024 or unit == "Ti":
            return f"{value:.4g}{unit}" if isinstance(value, float) else f"{value}{unit}"
        value /= 1024  # type: ignore[assignment]
    raise AssertionError("unreachable")
