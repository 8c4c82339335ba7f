"""Requests of Traffic objects: how many, how long they took, and how much CPU they used."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from kubescene.api.resource_requests import CPU
from kubescene.flows.percentiles import nearest_rank
from kubescene.results.clockwork import SECOND
from kubescene.results.measures.measure import (
    SHARE,
    WORKLOAD,
    AnyMeasure,
    Measure,
    Value,
    WorkloadMeasure,
    share,
)
from kubescene.results.over_time.requests import WindowTotals, totals_by_traffic, totals_of_all
from kubescene.results.over_time.scaling import ToldRun

MINUTE = 60 * SECOND
PERCENTS = (50, 95, 99)
Of = Callable[[WindowTotals], Value]


class Told(NamedTuple):
    """What a measure is, whether of all Traffics or of one of them."""

    name: str
    meaning: str
    formula: str
    unit: str
    of: Of


def seconds(nanoseconds: int | None) -> Value:
    return None if nanoseconds is None else nanoseconds / SECOND


def of_all(totals: WindowTotals, *, percent: int) -> Value:
    return seconds(totals.of_all(percent))


def of_served(totals: WindowTotals, *, percent: int) -> Value:
    return seconds(totals.of_served(percent))


def requests(totals: WindowTotals) -> Value:
    return totals.requests


def failed(totals: WindowTotals) -> Value:
    return totals.failed


def longest(totals: WindowTotals) -> Value:
    return seconds(totals.longest)


def slo_minutes(totals: WindowTotals) -> Value:
    return totals.missed / MINUTE


def time_to_ready(totals: WindowTotals, *, percent: int) -> Value:
    starts = sorted(totals.starts)
    return starts[nearest_rank(len(starts), percent) - 1] / SECOND if starts else None


BOTH = (
    Told(
        "requests",
        "Requests that came, in windows that are over",
        "sum over windows of requests",
        "requests",
        requests,
    ),
    Told(
        "requests_failed",
        "Requests that timed out, found no pod, or were inside one that was killed",
        "sum over windows of timed_out + refused + killed",
        "requests",
        failed,
    ),
    *(
        Told(
            f"response_p{percent}_s",
            f"{percent} % of all requests that ended took no longer; a failure its time-out",
            "nearest rank over all that ended, failures at their time-outs",
            "seconds",
            partial(of_all, percent=percent),
        )
        for percent in PERCENTS
    ),
    *(
        Told(
            f"response_served_p{percent}_s",
            f"{percent} % of the requests that were served took no longer",
            "nearest rank over those that succeeded",
            "seconds",
            partial(of_served, percent=percent),
        )
        for percent in PERCENTS
    ),
    Told(
        "response_served_max_s",
        "The longest that a request took that was served",
        "max over those that succeeded",
        "seconds",
        longest,
    ),
    Told(
        "slo_minutes",
        "For how long the objective was missed, in windows of 15 seconds",
        "sum of the lengths of windows in which fewer were good than the objective wants",
        "minutes",
        slo_minutes,
    ),
)


def if_any(totals: WindowTotals | None, *, of: Of) -> Value:
    return None if totals is None else of(totals)


def of_each(found: dict[str, WindowTotals], *, of: Of) -> Iterator[tuple[str, str, Value]]:
    for totals in found.values():
        namespace, _, name = totals.traffic.partition("/")
        yield namespace, name, of(totals)


class UsedCpu(NamedTuple):
    """CPU in thousandths times nanoseconds: what requests used, and what nodes offered."""

    used: int
    offered: int


def use(source: ToldRun) -> UsedCpu | None:
    totals = totals_of_all(source)
    if totals is None:
        return None
    return UsedCpu(totals.used, source.ledger.allocatable_time.get(CPU, 0))


def used_share(use: UsedCpu | None) -> Value:
    return None if use is None else share(use.used, use.offered)


MEASURES: tuple[AnyMeasure, ...] = (
    *(
        Measure(
            name=each.name,
            meaning=f"{each.meaning}.",
            formula=each.formula,
            unit=each.unit,
            basis=totals_of_all,
            of=partial(if_any, of=each.of),
        )
        for each in BOTH
    ),
    Measure(
        name="cpu_used_share",
        meaning="Share of the CPU of the nodes that requests used, over virtual time.",
        formula="integral of CPU used over time / integral of allocatable over time",
        unit=SHARE,
        basis=use,
        of=used_share,
    ),
    *(
        Measure(
            name=f"time_to_ready_seconds_p{percent}",
            meaning=(
                f"{percent} % of the pods that began to serve did so within that time of their "
                "creation: waiting for a node, starting, becoming ready."
            ),
            formula="nearest rank over pods of began to serve - created",
            unit="seconds",
            basis=totals_of_all,
            of=partial(if_any, of=partial(time_to_ready, percent=percent)),
        )
        for percent in (50, 99)
    ),
    *(
        WorkloadMeasure(
            name=f"{each.name}_{WORKLOAD}",
            meaning=f"{each.meaning}: of the Traffic {WORKLOAD}.",
            formula=each.formula,
            unit=each.unit,
            basis=totals_by_traffic,
            of=partial(of_each, of=each.of),
        )
        for each in BOTH
    ),
)
