"""The page itself: sections, style, scripts and data in one file that fetches nothing.

The Content-Security-Policy names the one style and the one script by their digests and forbids
everything else: requests of any kind, other scripts, and HTML made of strings.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from kubescene.markup import Markup, h
from kubescene.reports.html import sections
from kubescene.reports.html.contents import Contents
from kubescene.reports.html.embedding import digest, embedded

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("dom", "theme", "colours", "drawing", "heat", "decisions", "main")
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 8 8'%3E"
    "%3Cpath fill='%23009e73' d='M0 0h3v3H0z'/%3E%3Cpath fill='%2356b4e9' d='M4 0h4v3H4z'/%3E"
    "%3Cpath fill='%230072b2' d='M0 4h3v4H0z'/%3E%3Cpath fill='%23e69f00' d='M4 4h4v4H4z'/%3E"
    "%3C/svg%3E"
)


def page(contents: Contents) -> str:
    """The whole document."""
    style, script = style_sheet(), scripts()
    told = contents.headline
    head = (
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy(style, script)),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="generator", content=f"Kubescene {told.version}"),
        h("title", f"{told.scenario}: {told.phase or 'cut short'} · Kubescene"),
        h("link", rel="icon", href=ICON),
        h("style", Markup(style)),
    )
    data = h("script", Markup(embedded(drawn(contents))), type="application/json", id="data")
    body = h("body", body_of(contents), data, h("script", Markup(script)))
    return f"<!doctype html>\n{h('html', h('head', head), body, lang='en')}\n"


def policy(style: str, script: str) -> str:
    rules = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": digest(style),
        "script-src": digest(script),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def body_of(contents: Contents) -> Iterator[Markup]:
    """The sections that have something to say, and the links to them before."""
    titled = [
        ("expectations", "Expectations", sections.expectations(contents)),
        ("warnings", "Not simulated", sections.warnings(contents)),
        ("steps", "Steps and nodes", sections.steps(contents)),
        ("waiting", "Waiting", sections.waiting(contents)),
        ("decisions", "Decisions", sections.decisions(contents)),
        ("preemptions", "Preemptions", sections.preemptions(contents)),
        ("nodes", "Nodes", sections.nodes(contents)),
    ]
    there = [(name, title, shown) for name, title, shown in titled if shown]
    counts = {
        "warnings": len(contents.warnings) + contents.ignored_total,
        "waiting": contents.waiting_total,
        "preemptions": contents.preemptions_total,
        "expectations": sum(not each.holds for each in contents.expectations),
    }
    yield sections.navigation((name, title, counts.get(name, 0)) for name, title, _ in there)
    made = (
        f"Made by Kubescene {contents.headline.version}. This page is complete: it fetches nothing."
    )
    yield h(
        "main",
        sections.heading(contents),
        sections.figures(contents),
        (shown for _, _, shown in there),
        h("footer", made),
    )


class Drawn(msgspec.Struct, frozen=True):
    """The part of the contents that scripts draw."""

    steps: object
    heat: object
    decisions: object


def drawn(contents: Contents) -> Drawn:
    return Drawn(contents.steps, contents.heat, contents.decisions)


@cache
def style_sheet() -> str:
    return (ASSETS / "style.css").read_text("utf-8")


@cache
def scripts() -> str:
    """All scripts as one, each in order: none of them is a name outside."""
    parts = [(ASSETS / f"{name}.js").read_text("utf-8") for name in SCRIPTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"
