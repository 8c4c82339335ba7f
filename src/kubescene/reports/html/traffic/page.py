"""The page of a traffic run: what it amounts to, its charts, and why autoscalers acted."""

import json
from collections.abc import Iterator
from pathlib import Path

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.markup import Markup, h, table
from kubescene.reports.html import sections
from kubescene.reports.html.shell import ASSETS as SHARED
from kubescene.reports.html.shell import Shell, footer
from kubescene.reports.html.traffic import contents
from kubescene.reports.html.traffic.charts import drawn, seconds, told_time
from kubescene.traffic import AutoscalerDecision, SizeDecision, TrafficResult, to_object
from kubescene.version import __version__

ASSETS = Path(__file__).parent / "assets"
SHELL = Shell(
    (SHARED / "style.css", ASSETS / "traffic.css"),
    (SHARED / "dom.js", SHARED / "theme.js", ASSETS / "traffic.js"),
)
MOST_TOLD = 300
TONES = {"Succeeded": "good", "Cancelled": "wait", "Failed": "bad"}


def traffic_page(result: TrafficResult) -> str:
    """The whole document."""
    return SHELL.document(f"{result.name}: {result.phase}", __version__, body_of(result))


def body_of(result: TrafficResult) -> Iterator[Markup]:
    titled = [
        ("replicas", "Replicas", drawn(contents.replicas(result))),
        ("requests", "Requests", requests(result)),
        ("responses", "Response time", responses(result)),
        ("cpu", "CPU", drawn(contents.utilization(result))),
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
    phase = h("span", result.phase, class_=f"phase {TONES[result.phase]}")
    about = {
        "simulated": told_time(seconds(result.end)),
        "mode": result.spec.mode,
        "pattern": result.spec.traffic.pattern,
        "seed": str(result.spec.seed),
        "Kubescene": __version__,
    }
    told = (h("li", h("span", name), " ", h("b", value)) for name, value in about.items())
    said = h("p", result.message, class_=f"said {TONES[result.phase]}") if result.message else None
    title = h("div", h("h1", result.name), phase, class_="title")
    return h("header", title, h("ul", told, class_="identity"), said, id="top")


def figures(result: TrafficResult) -> Markup:
    shown = h("div", map(sections.figure, contents.figures_of(result)), class_="figures")
    return h("section", shown, id="figures", aria_label="Key figures")


def requests(result: TrafficResult) -> Markup:
    failed = drawn(contents.failed_so_far(result)) if result.summary.failed else None
    return h("div", drawn(contents.requests(result)), failed)


def responses(result: TrafficResult) -> Markup | None:
    if not result.summary.succeeded:
        return None
    return h("div", drawn(contents.response_times(result)), drawn(contents.percentiles(result)))


def failures(result: TrafficResult) -> Markup | None:
    return drawn(contents.failures(result)) if result.summary.failed else None


def decisions(result: TrafficResult) -> Markup | None:
    """Every decision for another number, with the autoscaler's own words when it is opened."""
    if not result.decisions:
        return None
    changed = contents.changes(result.decisions)
    shown = (decision(index, each) for index, each in changed[:MOST_TOLD])
    kept = len(result.decisions) - len(changed)
    more = f"{kept:,}{' more' if changed else ''} left the number as it was." if kept else ""
    if len(changed) > MOST_TOLD:
        more = f"{len(changed) - MOST_TOLD:,} later changes are in story.jsonl. {more}"
    return h("div", shown, h("p", more, class_="more") if more else None)


def decision(index: int, told: AutoscalerDecision) -> Markup:
    way = "up" if told.after > told.before else "down"
    line = (
        h("span", told_time(seconds(told.time)), class_="when"),
        h("b", f"{told.before} → {told.after}", class_=way),
        h("span", told.reason or told.autoscaler, class_="message"),
    )
    words = json.dumps(told.details, indent=2, ensure_ascii=False)
    by = h("p", "by ", h("code", told.autoscaler), class_="more")
    detail = h("pre", words) if told.details else None
    return h("details", h("summary", line), by, detail, id=f"decision-{index}", class_="decision")


def sizes(result: TrafficResult) -> Markup | None:
    moved = [each for each in result.sizes if each.evicted or each.resized]
    if not moved:
        return None
    rows = [size_row(each) for each in moved[:MOST_TOLD]]
    return h("div", table(["Time", "Target", "Replaced", "Resized", "Why"], rows), class_="wide")


def size_row(told: SizeDecision) -> list[str]:
    targets = ", ".join(f"{each.resource_name} {each.target}" for each in told.resources)
    moved = [", ".join(told.evicted), ", ".join(told.resized)]
    return [told_time(seconds(told.time)), targets, *moved, told.reason]


def configuration(result: TrafficResult) -> Markup:
    return h("details", h("summary", "TrafficRun"), h("pre", dump_yaml(to_object(result.run))))
