"""The section Workloads: each over virtual time, on one axis, with its roll-outs and budgets."""

from collections.abc import Iterator, Sequence

from kubescene.markup import Child, Markup, h
from kubescene.reports.amounts import time_step, told_duration, told_time
from kubescene.reports.html.contents import BudgetView, SpanView, WorkloadView
from kubescene.results.clockwork import SECOND
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.entries import WorkloadEntry
from kubescene.results.over_time.series import levels, parts_of
from kubescene.results.over_time.workloads import Group, Workloads, budget_rows

SHOWN = 40
PARTS = 200
"""Parts of the run of which the fewest pods are drawn."""
WIDE, TALL = 600, 44
SPANS = 50


# -- what is shown -------------------------------------------------------------------------------


def workloads_of(ledger: Ledger) -> list[WorkloadView]:
    """Those that lack something first, then by name."""
    known = Workloads(ledger)
    found = [view_of(group, known, ledger) for group in known.own]
    return sorted(found, key=lambda each: (not each.short, each.name, each.kind))


def view_of(group: Group, known: Workloads, ledger: Ledger) -> WorkloadView:
    entry = group.entry
    assert entry is not None
    now, last = entry.now, entry.rollouts[-1] if entry.rollouts else None
    below, wants = known.spans_below(group), now.desired or 0
    is_gone = entry.end_time is not None
    unfinished = last is not None and last.end_time is None
    lacks = now.available is not None and now.available < wants
    desired = [(each.time, each.desired or 0) for each in entry.history]
    return WorkloadView(
        name=f"{group.namespace}/{group.name}",
        kind=group.kind,
        short=not is_gone and (unfinished or lacks),
        ready=f"{now.ready} of {wants}" if now.available is not None else str(now.ready),
        least="-" if entry.least_available is None else str(entry.least_available),
        rollout=told_rollout(entry),
        below="-" if below is None else told_duration(known.below(group) or 0),
        restarts=now.restarts,
        completions=now.completions,
        failures=now.failures,
        levels=tuple(levels(entry, ledger, PARTS)),
        desired=tuple(parts_of(desired, ledger, PARTS)) if now.desired is not None else (),
        rollouts=tuple(
            span_of(ledger, each.time, ledger.time if each.end_time is None else each.end_time)
            for each in entry.rollouts[-SPANS:]
        ),
        spans_below=tuple(span_of(ledger, *each) for each in (below or ())[-SPANS:]),
        gone=is_gone,
    )


def told_rollout(entry: WorkloadEntry) -> str:
    """The last one, in words."""
    if not entry.rollouts:
        return "-"
    last, number = entry.rollouts[-1], len(entry.rollouts)
    often = f", {number} in all" if number > 1 else ""
    if last.end_time is None:
        return f"{last.state}{often}"
    return f"{told_duration((last.end_time - last.time) / SECOND)}{often}"


def span_of(ledger: Ledger, begin: int, end: int) -> SpanView:
    """From when until when, in thousandths of the run."""
    began, span = ledger.started_time or 0, max(ledger.duration, 1)
    return SpanView((begin - began) * 1000 // span, -(-(end - began) * 1000 // span))


def budgets_of(ledger: Ledger) -> list[BudgetView]:
    return [
        BudgetView(
            f"{row.namespace}/{row.name}",
            row.workloads,
            f"{row.healthy} of {row.desired}",
            "-" if row.least_healthy is None else str(row.least_healthy),
            row.times_below,
            "-" if row.below_s is None else told_duration(row.below_s),
        )
        for row in budget_rows(ledger)
    ]


# -- how it looks --------------------------------------------------------------------------------


def table_of(views: Sequence[WorkloadView], duration_s: float) -> Markup:
    """A row for each, the drawings below each other on the same axis."""
    timed = duration_s > 0
    names = ["workload", *(("over time",) if timed else ()), "ready", "least", "roll-out"]
    names += ["below budget", "restarts", "done", "failed"]
    head = h("tr", (h("th", name, scope="col") for name in names))
    rows = (row_of_view(each, timed=timed) for each in views)
    foot = h("tr", h("td"), h("td", axis(duration_s)), h("td", colspan=7)) if timed else None
    return h("table", h("thead", head), h("tbody", rows, foot), class_="workloads")


def row_of_view(view: WorkloadView, *, timed: bool) -> Markup:
    marks = "gone" if view.gone else ""
    name: Child = (view.name, h("small", f" {view.kind} {marks}".rstrip()))
    cells: list[Markup] = [h("td", name, class_="mono")]
    if timed:
        cells.append(h("td", drawing(view), class_="drawn"))
    tone = "bad" if view.short else ""
    cells += [h("td", h("span", view.ready, class_=tone)), h("td", view.least)]
    stalled = view.rollout.startswith(("Stalled", "Unfinished"))
    cells.append(h("td", h("span", view.rollout, class_="bad" if stalled else "")))
    cells.append(h("td", h("span", view.below, class_="bad" if view.spans_below else "")))
    cells += [h("td", count(each)) for each in (view.restarts, view.completions)]
    return h("tr", cells, h("td", count(view.failures, "bad")))


def count(number: int, tone: str = "") -> Markup:
    return h("span", f"{number:,}" if number else "·", class_=tone if number else "none")


def drawing(view: WorkloadView) -> Markup:
    """How many were available, how many are wanted, when it rolled out, when it lacked pods."""
    top = max(*view.levels, *view.desired, 1)
    parts = [
        *(rect(each, 0, TALL, "rolling") for each in view.rollouts),
        h("path", d=area(view.levels, top), class_="there"),
        h("path", d=line(view.desired, top), class_="wanted") if view.desired else None,
        *(rect(each, TALL - 4, 4, "below") for each in view.spans_below),
    ]
    told = f"between {min(view.levels)} and {max(view.levels)} pods; at the end {view.ready}"
    return h(
        "svg",
        h("title", told),
        parts,
        viewBox=f"0 0 {WIDE} {TALL}",
        preserveAspectRatio="none",
        role="img",
        aria_label=told,
        class_="over-time",
    )


def rect(span: SpanView, top: int, height: int, tone: str) -> Markup:
    x = span.begin * WIDE / 1000
    width = max((span.end - span.begin) * WIDE / 1000, 2)
    return h("rect", x=f"{x:.1f}", y=top, width=f"{width:.1f}", height=height, class_=tone)


def height_of(value: int, top: int) -> float:
    return TALL - 3 - value * (TALL - 8) / top


def steps_of(values: Sequence[int], top: int) -> Iterator[str]:
    """Corners of a line of steps."""
    before = None
    for place, value in enumerate(values):
        if value != before:
            x, y = place * WIDE / len(values), height_of(value, top)
            yield f"H{x:.1f}V{y:.1f}" if before is not None else f"M{x:.1f} {y:.1f}"
        before = value
    yield f"H{WIDE}"


def line(values: Sequence[int], top: int) -> str:
    return "".join(steps_of(values, top))


def area(values: Sequence[int], top: int) -> str:
    return f"{line(values, top)}V{TALL}H0Z"


def axis(duration_s: float) -> Markup:
    """Times under the drawings."""
    step, at = time_step(duration_s, 5), 0.0
    marks = []
    while at <= duration_s:
        x = at / duration_s * WIDE
        anchor = "start" if not at else "end" if x > WIDE * 0.95 else "middle"
        marks.append(h("text", told_time(at, duration_s), x=f"{x:.1f}", y=14, class_=anchor))
        at += step
    return h("svg", marks, viewBox=f"0 0 {WIDE} 18", class_="time-axis", aria_hidden="true")


def legend() -> Markup:
    kinds = (
        ("there", "available, the fewest; of a Job active, the most"),
        ("wanted", "wanted"),
        ("rolling", "rolls out"),
        ("below", "below a budget"),
    )
    return h("p", (h("span", h("i", class_=f"k-{k}"), text) for k, text in kinds), class_="legend")


def budgets_table(views: Sequence[BudgetView]) -> Markup | None:
    if not views:
        return None
    names = ("budget", "protects", "healthy", "least", "times below", "below for")
    head = h("tr", (h("th", name, scope="col") for name in names))
    rows = (
        h(
            "tr",
            h("td", each.name, class_="mono"),
            h("td", each.workloads or "nothing that is there", class_="mono"),
            (h("td", text) for text in (each.healthy, each.least, each.times)),
            h("td", h("span", each.below, class_="bad" if each.times else "")),
        )
        for each in views
    )
    shown = h("table", h("thead", head), h("tbody", rows))
    return h("div", h("h3", "Disruption budgets"), h("div", shown, class_="wide"))
