"""A traffic run over time as data: the charts of its page, for pages that draw them themselves."""

from collections.abc import Iterator

import msgspec

from kubescene.reports.html.charts import Chart, ChartLine, seconds
from kubescene.reports.html.contents import ChartView, DecidedView, OverTimeView, SeriesView
from kubescene.reports.html.traffic import contents
from kubescene.traffic import TrafficResult, TrafficSummary
from kubescene.traffic.spec.loading import to_object
from kubescene.types import JsonObject

DECISIONS = 500


class TrafficOverTime(msgspec.Struct, frozen=True, rename="camel"):
    """What it amounts to, and how that came about."""

    summary: TrafficSummary
    over_time: OverTimeView
    run: JsonObject
    """The TrafficRun that gives the same again."""


def traffic_over_time(result: TrafficResult) -> TrafficOverTime:
    decided = contents.changes(result.decisions)
    shown = OverTimeView(
        seconds(result.end),
        tuple(told_chart(each) for each in charts_of(result) if each.lines),
        tuple(
            DecidedView(
                seconds(each.time), each.autoscaler, f"{each.before} to {each.after}", each.reason
            )
            for _, each in decided[:DECISIONS]
        ),
        len(decided),
    )
    return TrafficOverTime(result.summary, shown, to_object(result.run))


def charts_of(result: TrafficResult) -> Iterator[Chart]:
    """Skenario's four first, each with what belongs to it."""
    yield contents.replicas(result)
    yield contents.requests(result)
    if result.summary.failed:
        yield contents.failed_so_far(result)
    if result.summary.succeeded:
        yield contents.response_times(result)
    if result.summary.succeeded or result.summary.failed:
        yield contents.percentiles(result)
    yield from contents.cpu(result)
    yield contents.metrics(result)
    yield from contents.sizes(result)


def told_chart(chart: Chart) -> ChartView:
    levels = (
        SeriesView(each.name, each.tone, ((0, each.value),), level=True) for each in chart.levels
    )
    lines = (told_line(each) for each in chart.lines)
    return ChartView(chart.label, chart.unit, (*lines, *levels), chart.right_unit)


def told_line(line: ChartLine) -> SeriesView:
    return SeriesView(
        line.name.removesuffix(" (right)"),
        line.tone,
        tuple(line.points),
        step=line.steps,
        dots=line.shape == "points",
        right=line.right,
    )
