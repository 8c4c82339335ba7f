"""The page of a search over settings: what it costs to be better, as a chart and a table."""

from collections.abc import Iterator, Sequence
from math import floor, log10

import msgspec

from kubescene.markup import Markup, h, table
from kubescene.reports.html.sections import navigation
from kubescene.reports.html.shell import CHARTS, PAGES, STYLE, Shell, footer
from kubescene.version import __version__

SHELL = Shell((STYLE, CHARTS), PAGES / "comparison.js")
WIDTH, HEIGHT = 1000, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 30, 24, 48


class TriedView(msgspec.Struct, frozen=True, kw_only=True):
    """A combination, with the means of both axes and words for all that was measured."""

    settings: str
    x: float | None
    y: float | None
    words: tuple[str, ...]
    kept: str
    is_feasible: bool
    is_best: bool
    is_frontier: bool


class FrontierView(msgspec.Struct, frozen=True, kw_only=True):
    """A search; ``bound`` is what y is held against."""

    title: str
    story: str
    x_name: str
    y_name: str
    columns: tuple[str, ...]
    tried: tuple[TriedView, ...]
    bound: float | None = None


def frontier_page(view: FrontierView) -> str:
    """The whole document."""
    return SHELL.document(view.title, __version__, body_of(view))


def body_of(view: FrontierView) -> Iterator[Markup]:
    drawn = [each for each in view.tried if each.x is not None and each.y is not None]
    title = h("div", h("h1", view.title), class_="title")
    head = h("header", title, h("p", view.story, class_="story"), id="top")
    charts = h("section", h("h2", "Frontier"), chart(view, drawn), id="frontier")
    told = h("section", h("h2", "All that was tried"), listed(view), id="tried")
    links = [("frontier", "Frontier", 0)] if drawn else []
    yield navigation([*links, ("tried", "All that was tried", len(view.tried))])
    yield h("main", head, charts if drawn else None, told, footer(__version__))


def listed(view: FrontierView) -> Markup:
    rows = [
        [
            h("b" if each.is_best else "span", each.settings, class_="mono"),
            *each.words,
            h("span", each.kept, class_="good" if each.is_feasible else "bad"),
            "best" if each.is_best else "frontier" if each.is_frontier else "",
        ]
        for each in view.tried
    ]
    shown = table(("settings", *view.columns, "conditions kept", ""), rows, numbers=view.columns)
    return h("div", shown, class_="wide")


def chart(view: FrontierView, tried: Sequence[TriedView]) -> Markup:
    xs = scale([each.x for each in tried if each.x is not None])
    bounds = [] if view.bound is None else [view.bound]
    ys = scale([*(each.y for each in tried if each.y is not None), *bounds])
    parts = [*axes(view, xs, ys)]
    if view.bound is not None:
        y = along(view.bound, ys, HEIGHT - BOTTOM, TOP)
        parts.append(h("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="level s-level"))
    best = [(each.x or 0, each.y or 0) for each in tried if each.is_frontier]
    line = " ".join(
        f"{'L' if place else 'M'}{along(x, xs, LEFT, WIDTH - RIGHT)} "
        f"{along(y, ys, HEIGHT - BOTTOM, TOP)}"
        for place, (x, y) in enumerate(sorted(best))
    )
    parts.append(h("path", d=line or "M0 0", class_="line s-info"))
    parts += [dot(each, xs, ys) for each in tried]
    return h(
        "figure",
        legend(view),
        h("svg", parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", class_="chart"),
        class_="chart",
    )


def dot(each: TriedView, xs: Sequence[float], ys: Sequence[float]) -> Markup:
    tone = "down" if each.is_feasible else "up"
    return h(
        "circle",
        h("title", f"{each.settings}: {', '.join(each.words)}"),
        cx=along(each.x or 0, xs, LEFT, WIDTH - RIGHT),
        cy=along(each.y or 0, ys, HEIGHT - BOTTOM, TOP),
        r=8 if each.is_best else 5,
        class_=f"mark {tone}",
    )


def legend(view: FrontierView) -> Markup:
    named = [("dot down", "keeps the conditions"), ("dot up", "does not"), ("t-info", "frontier")]
    if view.bound is not None:
        named.append(("t-level", "condition"))
    shown = (h("span", h("i", class_=kind), name) for kind, name in named)
    return h("figcaption", h("b", f"{view.y_name} against {view.x_name}"), shown, class_="legend")


def axes(view: FrontierView, xs: Sequence[float], ys: Sequence[float]) -> Iterator[Markup]:
    for value in ys:
        y = along(value, ys, HEIGHT - BOTTOM, TOP)
        yield h("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
        yield h("text", f"{value:g}", x=LEFT - 8, y=y, class_="left")
    for value in xs:
        x = along(value, xs, LEFT, WIDTH - RIGHT)
        yield h("text", f"{value:g}", x=x, y=HEIGHT - BOTTOM + 18, class_="below")
    yield h("text", view.y_name, x=LEFT, y=TOP - 10, class_="unit")
    yield h("text", view.x_name, x=WIDTH - RIGHT, y=HEIGHT - 8, class_="unit end")


def scale(values: Sequence[float]) -> list[float]:
    """Round numbers around all of them."""
    least, most = min(values), max(values)
    span = most - least or abs(most) or 1.0
    power = 10.0 ** floor(log10(span / 4))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= span / 4)
    first, last = floor(least / step), -floor(-most / step)
    if first == last:
        last += 1
    return [round(step * each, 12) for each in range(first, last + 1)]


def along(value: float, scale: Sequence[float], start: float, end: float) -> str:
    share = (value - scale[0]) / (scale[-1] - scale[0])
    return f"{start + share * (end - start):.1f}"
