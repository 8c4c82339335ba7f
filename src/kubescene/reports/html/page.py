"""The page of a run: its sections, and the part of its contents that scripts draw."""

from collections.abc import Iterator

import msgspec

from kubescene.markup import Markup, h
from kubescene.reports.html import sections
from kubescene.reports.html.contents import Contents
from kubescene.reports.html.shell import CHARTS, PAGES, STYLE, Shell, embedded, footer

SHELL = Shell((STYLE, CHARTS), PAGES / "main.js")


def page(contents: Contents) -> str:
    """The whole document."""
    told = contents.headline
    title = f"{told.scenario}: {told.verdict or told.phase or 'cut short'}"
    return SHELL.document(title, told.version, (*body_of(contents), embedded(drawn(contents))))


def body_of(contents: Contents) -> Iterator[Markup]:
    """The sections that have something to say, and the links to them before."""
    titled = [
        ("expectations", "Expectations", sections.expectations(contents)),
        ("warnings", "Not simulated", sections.warnings(contents)),
        ("time", "Over time", sections.over_time(contents)),
        ("steps", "Steps and nodes", sections.steps(contents)),
        ("operations", "Operations", sections.operations(contents)),
        ("workloads", "Workloads", sections.workloads(contents)),
        ("cost", "Cost", sections.cost(contents)),
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
    yield h(
        "main",
        sections.heading(contents),
        sections.figures(contents),
        (shown for _, _, shown in there),
        footer(contents.headline.version),
    )


class Drawn(msgspec.Struct, frozen=True, rename="camel"):
    """The part of the contents that scripts draw."""

    steps: object
    heat: object
    decisions: object
    over_time: object


def drawn(contents: Contents) -> Drawn:
    return Drawn(contents.steps, contents.heat, contents.decisions, contents.over_time)
