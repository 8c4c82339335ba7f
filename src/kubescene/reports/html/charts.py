"""Charts over simulated time as SVG: lines, steps, points and bars, with axes of round numbers.

Colours and widths are classes of the style sheet, so that both themes have their own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf, log10

from kubescene.clock import SECOND
from kubescene.markup import Markup, h
from kubescene.reports.amounts import time_step, told_time

WIDE, NARROW = 1000, 400
"""Every chart is drawn twice: for screens, and for phones, where letters keep their size."""
LEFT, RIGHT, TOP, BOTTOM = 56, 52, 24, 24
MANY_MARKS = 40
MARKS = {"up": "decision for more", "down": "for fewer"}
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A series. ``tone`` is its class; ``steps`` keeps a level until the next point.

    A line on the ``right`` has its own axis there. Points that are more than ``near`` seconds apart
    are not joined: nothing is known of the time between them.
    """

    name: str
    points: Sequence[Point]
    tone: str
    steps: bool = False
    right: bool = False
    shape: str = "line"
    near: float = inf


@dataclass(frozen=True, slots=True)
class ChartMark:
    """Something that happened, as a link to where it is told."""

    at: float
    level: float
    href: str
    title: str
    tone: str


@dataclass(frozen=True, slots=True)
class Level:
    """A value that something is measured by: a line across the chart."""

    name: str
    value: float
    tone: str = "level"


@dataclass(frozen=True, slots=True)
class Chart:
    """Times are in seconds from 0 to ``end``. ``whole``: there are no halves of what is counted."""

    label: str
    end: float
    lines: Sequence[ChartLine]
    height: int = 230
    unit: str = ""
    right_unit: str = ""
    marks: Sequence[ChartMark] = field(default=())
    levels: Sequence[Level] = field(default=())
    whole: bool = False
    width: int = WIDE

    @property
    def inner(self) -> int:
        return self.width - LEFT - RIGHT


def drawn(chart: Chart) -> Markup:
    """The chart with its legend, once for each width."""
    both = (as_svg(chart, "screen"), as_svg(replace(chart, width=NARROW), "phone"))
    return h("figure", legend(chart), both, class_="chart")


def as_svg(chart: Chart, name: str) -> Markup:
    left = [line for line in chart.lines if not line.right]
    right = [line for line in chart.lines if line.right]
    scale = ticks(top_of(left, chart.levels), whole=chart.whole)
    highest = scale[-1]
    parts = [
        *grid(chart, scale),
        *(shape(chart, line, highest) for line in left),
        *(level(chart, each, highest) for each in chart.levels),
    ]
    if right:
        other = ticks(top_of(right))
        parts += [*right_axis(chart, other), *(shape(chart, line, other[-1]) for line in right)]
    parts += [marked(chart, mark, highest) for mark in chart.marks]
    box = f"0 0 {chart.width} {chart.height}"
    return h("svg", parts, viewBox=box, role="img", aria_label=chart.label, class_=f"chart {name}")


def legend(chart: Chart) -> Markup:
    named = [(f"t-{line.tone}", line.name) for line in chart.lines]
    named += [(f"t-{each.tone}", each.name) for each in chart.levels]
    tones = {mark.tone for mark in chart.marks}
    named += [(f"dot {tone}", name) for tone, name in MARKS.items() if tone in tones]
    return h(
        "figcaption",
        (h("span", h("i", class_=kind), name) for kind, name in named),
        class_="legend",
    )


def top_of(lines: Iterable[ChartLine], levels: Iterable[Level] = ()) -> float:
    """What nothing is above."""
    highest = max((y for line in lines for _, y in line.points), default=0.0)
    return max([highest, *(each.value for each in levels)])


def ticks(highest: float, *, whole: bool = False) -> list[float]:
    """Round numbers from 0 to at least ``highest``, three to six of them."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = max(highest / 4, 1) if whole else highest / 4
    power: float = 10.0 ** floor(log10(rough))
    factors = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = next(each * power for each in factors if each * power >= rough)
    count = -int(-highest / step // 1)
    return [step * each for each in range(count + 1)]


def grid(chart: Chart, scale: Sequence[float]) -> Iterator[Markup]:
    """Lines and numbers of the left axis, and times below."""
    for value in scale:
        y = height_of(chart, value, scale[-1])
        yield h("line", x1=LEFT, x2=chart.width - RIGHT, y1=y, y2=y, class_="grid")
        yield h("text", told_number(value), x=LEFT - 7, y=f"{float(y) + 4:.1f}", class_="left")
    # Above the plot, where no line can hide them.
    yield h("text", chart.unit, x=LEFT, y=TOP - 11, class_="unit")
    step = time_step(chart.end, chart.inner // 74)
    at = 0.0
    while at <= chart.end:
        x = place_of(chart, at)
        yield h("text", told_time(at, chart.end), x=x, y=chart.height - 7, class_="below")
        at += step


def right_axis(chart: Chart, scale: Sequence[float]) -> Iterator[Markup]:
    for value in scale:
        y = f"{float(height_of(chart, value, scale[-1])) + 4:.1f}"
        yield h("text", told_number(value), x=chart.width - RIGHT + 7, y=y, class_="right")
    yield h("text", chart.right_unit, x=chart.width - RIGHT, y=TOP - 11, class_="unit end")


def told_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def shape(chart: Chart, line: ChartLine, highest: float) -> Markup:
    if line.shape == "points":
        dots = (f"M{place_of(chart, x)} {height_of(chart, y, highest)}h0" for x, y in line.points)
        return h("path", d="".join(dots), class_=f"dots s-{line.tone}")
    if line.shape == "bars":
        base = chart.height - BOTTOM
        bars = (
            f"M{place_of(chart, x)} {base}V{height_of(chart, y, highest)}"
            for x, y in line.points
            if y
        )
        return h("path", d="".join(bars), class_=f"bars s-{line.tone}")
    if line.shape == "area":
        return h("path", d=area(chart, line, highest), class_=f"area f-{line.tone}")
    return h("path", d="".join(path(chart, line, highest)), class_=f"line s-{line.tone}")


def area(chart: Chart, line: ChartLine, highest: float) -> str:
    """All that is below a line."""
    if not line.points:
        return ""
    base = chart.height - BOTTOM
    last = chart.end if line.steps else line.points[-1][0]
    outline = "".join(path(chart, line, highest))
    first = place_of(chart, line.points[0][0])
    return f"{outline}L{place_of(chart, last)} {base}H{first}Z"


def level(chart: Chart, each: Level, highest: float) -> Markup:
    y = height_of(chart, each.value, highest)
    return h("line", x1=LEFT, x2=chart.width - RIGHT, y1=y, y2=y, class_=f"level s-{each.tone}")


def path(chart: Chart, line: ChartLine, highest: float) -> Iterator[str]:
    return (stairs if line.steps else strokes)(chart, line, highest)


def strokes(chart: Chart, line: ChartLine, highest: float) -> Iterator[str]:
    """From point to point; one that has no neighbour is a dot."""
    before: float | None = None
    for at, level in line.points:
        x, y = place_of(chart, at), height_of(chart, level, highest)
        joined = before is not None and at - before <= line.near
        yield f"L{x} {y}" if joined else f"M{x} {y}h0"
        before = at


def stairs(chart: Chart, line: ChartLine, highest: float) -> Iterator[str]:
    before = ""
    for at, level in line.points:
        x, y = place_of(chart, at), height_of(chart, level, highest)
        if not before:
            yield f"M{x} {y}"
        else:
            yield f"H{x}" if y == before else f"H{x}V{y}"
        before = y
    if before:
        yield f"H{place_of(chart, chart.end)}"


def marked(chart: Chart, mark: ChartMark, highest: float) -> Markup:
    x, y = place_of(chart, mark.at), height_of(chart, mark.level, highest)
    radius = 5 if len(chart.marks) <= MANY_MARKS else 3
    dot = h("circle", h("title", mark.title), cx=x, cy=y, r=radius, class_=f"mark {mark.tone}")
    return h("a", dot, href=mark.href, aria_label=mark.title)


def place_of(chart: Chart, at: float) -> str:
    return f"{LEFT + chart.inner * min(at / chart.end, 1) if chart.end else LEFT:.1f}"


def height_of(chart: Chart, level: float, highest: float) -> str:
    inner = chart.height - TOP - BOTTOM
    return f"{TOP + inner * (1 - level / highest):.1f}"


def seconds(instant: int) -> float:
    return instant / SECOND
