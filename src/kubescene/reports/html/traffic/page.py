"""The page of a traffic run: what it amounts to, its charts, and why autoscalers acted."""

import json
from collections.abc import Iterator

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.markup import Markup, h, table
from kubescene.reports.amounts import told_time
from kubescene.reports.html import sections
from kubescene.reports.html.charts import drawn, seconds
from kubescene.reports.html.shell import CHARTS, PAGES, STYLE, Shell, footer
from kubescene.reports.html.traffic import contents
from kubescene.traffic import (
    AutoscalerDecision,
    Phase,
    SizeDecision,
    TrafficResult,
    Verdict,
    to_object,
)
from kubescene.traffic.decided import kept_for, size_changes
from kubescene.version import __version__

SHELL = Shell((STYLE, CHARTS, PAGES / "traffic.css"), PAGES / "traffic.js")
MOST_TOLD = 300
TONES = {
    Verdict.KEPT: "good",
    Verdict.MISSED: "bad",
    Verdict.NOTHING: "wait",
    Phase.CANCELLED: "wait",
    Phase.FAILED: "bad",
}
REASONS = 8


def traffic_page(result: TrafficResult) -> str:
    """The whole document."""
    return SHELL.document(f"{result.name}: {result.verdict}", __version__, body_of(result))


def body_of(result: TrafficResult) -> Iterator[Markup]:
    titled = [
        ("replicas", "Replicas", drawn(contents.replicas(result))),
        ("requests", "Requests", requests(result)),
        ("responses", "Response time", responses(result)),
        ("cpu", "CPU", h("div", map(drawn, contents.cpu(result)))),
        ("metrics", "What the HPA saw", metrics(result)),
        ("failures", "Failed requests", failures(result)),
        ("decisions", "Decisions", decisions(result)),
        ("sizes", "Sizes", sizes(result)),
        ("run", "The run", configuration(result)),
    ]
    there = [(name, title, shown) for name, title, shown in titled if shown]
    badges = {"decisions": len(result.decisions), "failures": result.summary.failed}
    yield sections.navigation((name, title, badges.get(name, 0)) for name, title, _ in there)
    yield h(
        "main",
        heading(result),
        figures(result),
        (h("section", h("h2", title), shown, id=name) for name, title, shown in there),
        footer(__version__),
    )


def heading(result: TrafficResult) -> Markup:
    tone = TONES[result.verdict]
    phase = h("span", result.verdict, class_=f"phase {tone}")
    about = {
        "simulated": told_time(seconds(result.end)),
        "mode": result.spec.mode,
        "pattern": result.spec.traffic.pattern,
        "seed": str(result.spec.seed),
        "Kubescene": __version__,
    }
    told = (h("li", h("span", name), " ", h("b", value)) for name, value in about.items())
    said = h("p", result.message, class_=f"said {tone}") if result.message else None
    title = h("div", h("h1", result.name), phase, class_="title")
    return h("header", title, h("ul", told, class_="identity"), said, id="top")


def figures(result: TrafficResult) -> Markup:
    shown = h("div", map(sections.figure, contents.figures_of(result)), class_="figures")
    return h("section", shown, id="figures", aria_label="Key figures")


def requests(result: TrafficResult) -> Markup:
    failed = drawn(contents.failed_so_far(result)) if result.summary.failed else None
    return h("div", drawn(contents.requests(result)), failed)


def responses(result: TrafficResult) -> Markup | None:
    if not result.summary.succeeded and not result.summary.failed:
        return None
    each = drawn(contents.response_times(result)) if result.summary.succeeded else None
    return h("div", each, drawn(contents.percentiles(result)))


def metrics(result: TrafficResult) -> Markup | None:
    seen = contents.metrics(result)
    return drawn(seen) if seen.lines else None


def failures(result: TrafficResult) -> Markup | None:
    return drawn(contents.failures(result)) if result.summary.failed else None


def decisions(result: TrafficResult) -> Markup | None:
    """Every decision for another number, with the autoscaler's own words when it is opened."""
    if not result.decisions:
        return None
    changed = contents.changes(result.decisions)
    end = seconds(result.end)
    shown = (decision(index, each, end) for index, each in changed[:MOST_TOLD])
    later = len(changed) - MOST_TOLD
    more = h("p", f"{later:,} later changes are in story.jsonl.", class_="more")
    return h("div", shown, more if later > 0 else None, kept(result, opened=not changed))


def kept(result: TrafficResult, *, opened: bool) -> Markup | None:
    """Why the number was left as it was."""
    reasons = kept_for(result.decisions)
    if not reasons:
        return None
    count, end = sum(len(several) for _, several in reasons), seconds(result.end)
    rows = [
        [told_time(seconds(several[0].time), end), f"{len(several):,}", reason]
        for reason, several in reasons[:REASONS]
    ]
    listed = h("div", table(["First", "Times", "Why"], rows), class_="wide")
    rest = len(reasons) - REASONS
    more = h("p", f"{rest:,} more reasons are in story.jsonl.", class_="more") if rest > 0 else None
    summary = h("summary", f"{count:,} decisions left the number as it was")
    return h("details", summary, listed, more, open=opened or None)


def decision(index: int, told: AutoscalerDecision, end: float) -> Markup:
    way = "up" if told.after > told.before else "down"
    line = (
        h("span", told_time(seconds(told.time), end), class_="when"),
        h("b", f"{told.before} → {told.after}", class_=way),
        h("span", told.reason or told.autoscaler, class_="message"),
    )
    words = json.dumps(told.details, indent=2, ensure_ascii=False)
    by = h("p", "by ", h("code", told.autoscaler), class_="more")
    detail = h("pre", words) if told.details else None
    return h("details", h("summary", line), by, detail, id=f"decision-{index}", class_="decision")


def sizes(result: TrafficResult) -> Markup | None:
    """What was recommended, whether or not somebody was moved for it."""
    if not result.sizes:
        return None
    told = size_changes(result.sizes)
    rows = [size_row(each, seconds(result.end)) for each in told[:MOST_TOLD]]
    listed = table(["Time", "Target", "Replaced", "Resized", "Why"], rows)
    later = len(told) - MOST_TOLD
    more = h("p", f"{later:,} later ones are in story.jsonl.", class_="more") if later > 0 else None
    return h("div", map(drawn, contents.sizes(result)), h("div", listed, class_="wide"), more)


def size_row(told: SizeDecision, end: float) -> list[str]:
    targets = ", ".join(map(contents.target_text, told.resources))
    moved = [", ".join(told.evicted), ", ".join(told.resized)]
    return [told_time(seconds(told.time), end), targets, *moved, told.reason]


def configuration(result: TrafficResult) -> Markup:
    return h("details", h("summary", "TrafficRun"), h("pre", dump_yaml(to_object(result.run))))
