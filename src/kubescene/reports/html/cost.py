"""The section Cost: what node groups have cost and what for, and what an hour costs over time."""

from collections.abc import Sequence

from kubescene.markup import Markup, h, table
from kubescene.reports.html.charts import Chart, ChartLine, drawn
from kubescene.reports.html.contents import CostLineView, CostView, GroupCostView
from kubescene.results.cost.bill import Bill
from kubescene.results.cost.rows import ALL, CostRow, cost_rows, cost_series_rows
from kubescene.results.ledger import Ledger

SHOWN = 8
"""So many groups are drawn; the others are in the table."""
LISTED = 40
POINTS = 2_000
TONES = ("good", "info", "wait", "odd", "bad", "rate", "served", "level")
PARTS = ("requested", "idle", "unallocatable", "without_node")


def cost_of(ledger: Ledger) -> CostView | None:
    """None where nothing is paid for."""
    bill = Bill(ledger)
    if not bill.exists or not any(True for _ in bill.priced):
        return None
    rows = [row for row in cost_rows(bill) if row.cost is not None]
    dearest = sorted(rows, key=lambda row: -(row.cost or 0))
    lines = lines_of(bill, [row.group for row in dearest[:SHOWN]])
    total = bill.total
    return CostView(
        currency=bill.currency,
        total="" if total is None else money(float(total)),
        groups=tuple(map(told_group, rows[:LISTED])),
        groups_total=len(rows),
        lines=tuple(lines),
    )


def lines_of(bill: Bill, groups: Sequence[str]) -> list[CostLineView]:
    """What an hour costs: of all together, if that can be said, and of the dearest groups."""
    points: dict[str, list[tuple[float, float]]] = {}
    for row in cost_series_rows(bill):
        if row.per_hour is not None and (row.group in groups or row.group == ALL):
            points.setdefault(row.group, []).append((row.time_s, row.per_hour))
    names = [name for name in (ALL, *groups) if name in points]
    if len(names) == 2:
        names.remove(ALL)  # of one group alone
    return [CostLineView(name, tuple(thinned(points[name]))) for name in names]


def thinned(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Every so many, and the last."""
    step = -(-len(points) // POINTS)
    return points if step == 1 else [*points[::step], points[-1]]


def told_group(row: CostRow) -> GroupCostView:
    cost = row.cost or 0
    shares = [getattr(row, f"cost_{part}") or 0 for part in PARTS]
    return GroupCostView(
        row.group,
        f"{row.instances:,}",
        f"{row.instances_most:,}",
        f"{row.failed:,}",
        f"{row.hours:,.2f}",
        f"{money(cost)} {row.currency}",
        tuple(f"{100 * each / cost:.0f} %" if cost else "-" for each in shares),
    )


def money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4g}"


# -- how it looks --------------------------------------------------------------------------------


def groups_table(view: CostView) -> Markup:
    numbers = ("machines", "at most", "failed", "hours", "cost")
    columns = ("group", *numbers, "requested", "idle", "unallocatable", "without a node")
    rows = [
        (it.group, it.instances, it.most, it.failed, it.hours, it.cost, *it.shares)
        for it in view.groups
    ]
    return h("div", table(columns, rows, numbers=columns[1:]), class_="wide")


def chart(view: CostView, duration_s: float) -> Markup | None:
    """None if no time passed."""
    if duration_s <= 0 or not view.lines:
        return None
    tones = iter(TONES)
    lines = [
        ChartLine(
            "all together" if each.group == ALL else each.group,
            each.points,
            next(tones),
            steps=True,
            shape="area" if each.group == ALL else "line",
        )
        for each in view.lines[: len(TONES)]
    ]
    unit = f"{view.currency or 'money'} per hour"
    return drawn(Chart("What an hour costs, over virtual time", duration_s, lines, unit=unit))
