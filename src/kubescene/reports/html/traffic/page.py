"""The page of a traffic run: what it amounts to, its charts, and why autoscalers acted."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kubescene.api.text.yaml_text import dump_yaml
from kubescene.markup import Markup, h, table
from kubescene.reports.html import sections
from kubescene.reports.html.page import ASSETS as SHARED
from kubescene.reports.html.page import ICON, policy
from kubescene.reports.html.page import style_sheet as shared_style
from kubescene.reports.html.traffic import contents
from kubescene.reports.html.traffic.charts import drawn, seconds, told_time
from kubescene.reports.html.traffic.figures import figures_of
from kubescene.traffic import AutoscalerDecision, SizeDecision, TrafficResult, to_object
from kubescene.version import __version__

ASSETS = Path(__file__).parent / "assets"
SHARED_SCRIPTS = ("dom", "theme")
MOST_TOLD = 300
TONES = {"Succeeded": "good", "Cancelled": "wait", "Failed": "bad"}


def traffic_page(result: TrafficResult) -> str:
    """The whole document."""
    style, script = style_sheet(), scripts()
    head = (
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="generator", content=f"Kubescene {__version__}"),
        h("title", f"{result.name}: {result.phase} · Kubescene"),
        h("link", rel="icon", href=ICON),
        h("style", Markup(style)),
    )
    body = h("body", body_of(result), h("script", Markup(script)))
    return f"<!doctype html>\n{h('html', h('head', head), body, lang='en')}\n"


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
        h("footer", f"Made by Kubescene {__version__}. This page is complete: it fetches nothing."),
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
    shown = h("div", map(sections.figure, figures_of(result)), class_="figures")
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


@cache
def style_sheet() -> str:
    return shared_style() + (ASSETS / "traffic.css").read_text("utf-8")


@cache
def scripts() -> str:
    parts = [(SHARED / f"{name}.js").read_text("utf-8") for name in SHARED_SCRIPTS]
    parts.append((ASSETS / "traffic.js").read_text("utf-8"))
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"
