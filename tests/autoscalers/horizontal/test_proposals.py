"""One metric's proposal: published rows, by their number (H1 to H64)."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from kubescene.api.quantity import MAX_INT64
from kubescene.autoscalers.horizontal.observations import PodRequests, RequestError, ScaledPod
from kubescene.autoscalers.horizontal.proposals import (
    Groups,
    MetricSample,
    NoUsageError,
    Proposal,
    by_average,
    by_total,
    by_utilization,
    by_value,
    group_pods,
    summed,
)
from kubescene.autoscalers.horizontal.specs import HorizontalOptions, Tolerances
from kubescene.durations import SECOND

TENTH = Tolerances(0.1, 0.1)
Usage = Sequence[int | None]


class Row(NamedTuple):
    current: int
    target: int
    usage: Usage
    request: int | Sequence[int]
    expected: tuple[int, int, int]
    classes: str = ""
    tolerances: Tolerances = TENTH
    unknown: Sequence[int] = ()
    """Metrics of pods that nobody knows."""


NA: None = None
"""A pod without a metric."""

UTILIZATION = {
    "H1": Row(3, 30, (600, 1000, 1400), 2000, (5, 50, 1000)),
    "H2": Row(3, 30, (300, 500, 700), 1000, (5, 50, 500)),
    "H3": Row(3, 30, (600, 1000, 1400), 2000, (4, 60, 1200), "URR"),
    "H4": Row(3, 30, (800, 1000, 1400), 2000, (3, 40, 800), "RUU"),
    "H5": Row(2, 30, (1000, 1400, NA, NA), 2000, (4, 60, 1200), "RRXX"),
    "H6": Row(5, 50, (200, 600, 1000, 500, 500), 2000, (3, 28, 560)),
    "H7": Row(5, 50, (200, 600, 1000, 500, 500), 2000, (2, 30, 600), "RRRUU"),
    "H8": Row(5, 50, (200, NA, NA, NA, NA), 2000, (1, 10, 200), "RPPPP"),
    "H9": Row(3, 100, (2020, 2060, 2040), (1800, 2000, 2200), (3, 102, 2040)),
    "H10": Row(
        3, 100, (1818, 2020, 2222), (1800, 2000, 2200), (4, 101, 2020), "", Tolerances(0, 0)
    ),
    "H11": Row(
        3, 100, (3780, 3820, 3800), (1800, 2000, 2200), (3, 190, 3800), "", Tolerances(0.1, 2.0)
    ),
    "H12": Row(
        3, 100, (2200, 2160, 2180), (1800, 2000, 2200), (4, 109, 2180), "", Tolerances(2.0, 0.08)
    ),
    "H13": Row(
        3, 100, (1320, 1280, 1300), (1800, 2000, 2200), (3, 65, 1300), "", Tolerances(0.36, 0.1)
    ),
    "H14": Row(
        3, 100, (1320, 1280, 1300), (1800, 2000, 2200), (2, 65, 1300), "", Tolerances(0.34, 0.1)
    ),
    "H15": Row(4, 100, (8000, 19000, 6000, 14000), 2000, (24, 587, 11750), unknown=(4000, 2000)),
    "H16": Row(4, 100, (800, 190, NA, NA), 2000, (3, 24, 495)),
    "H17": Row(2, 100, (2000, NA), 2000, (2, 100, 2000)),
    "H18": Row(2, 100, (3800, NA), 2000, (2, 190, 3800)),
    "H19": Row(2, 100, (1200, NA), 2000, (2, 60, 1200)),
    "H20": Row(3, 50, (200, 900, NA), 2000, (3, 45, 900), "URR"),
    "H21": Row(3, 50, (200, 4000, NA), 2000, (4, 200, 4000), "URR"),
    "H22": Row(4, 50, (200, 200, 200, NA), 2000, (3, 10, 200), "URRR"),
    "H23": Row(4, 300, (400, 200, 200, NA), (2000, 2000, 4000, 4000), (2, 6, 200), "URRR"),
    "H24": Row(2, 50, (200, 200, NA), 2000, (2, 10, 200)),
    "H25": Row(
        10, 56, (300,) * 10, (800, 400, 620, 580, 604, 596, 602, 598, 600, 600), (9, 50, 300)
    ),
    "H26": Row(
        10, 55, (300,) * 10, (800, 400, 620, 580, 604, 596, 602, 598, 600, 600), (10, 50, 300)
    ),
    "H27": Row(4, 50, (200,), 200, (2, 100, 200)),
    "H28": Row(4, 50, (500,) * 5, 1000, (4, 50, 500)),
    "fewer pods than replicas, upwards": Row(
        10, 100, (3000, 3000, 10), 1000, (10, 300, 3000), "RRU"
    ),
    "unready, downwards": Row(2, 100, (850,) * 4 + (10,), 1000, (4, 85, 850), "RRRRU"),
    "H28b": Row(25, 100, (1120,) * 25, 1000, (29, 112, 1120)),
}


def grouped(usage: Usage, classes: str) -> tuple[dict[str, int], Groups]:
    """Values of pods that count, and the groups, by class: R ready, U unready, P pending, X out."""
    classes = classes or "R" * len(usage)
    names = [f"p{number}" for number in range(len(usage))]
    rows = list(zip(names, usage, classes, strict=True))
    values = {name: used for name, used, group in rows if group == "R" and used is not None}
    return values, Groups(
        ready=len(values),
        unready=tuple(name for name, _used, group in rows if group in "UP"),
        missing=tuple(name for name, used, group in rows if group == "R" and used is None),
        ignored=tuple(name for name, _used, group in rows if group == "X"),
    )


@pytest.mark.parametrize("row", UTILIZATION.values(), ids=UTILIZATION)
def test_utilization(row: Row) -> None:
    values, groups = grouped(row.usage, row.classes)
    values |= {f"unknown-{number}": used for number, used in enumerate(row.unknown)}
    count = len(row.usage)
    each = [row.request] * count if isinstance(row.request, int) else row.request
    requests = {f"p{number}": request for number, request in enumerate(each)}
    found = by_utilization(
        values,
        groups,
        requests,
        target=row.target,
        current=row.current,
        tolerances=row.tolerances,
    )
    assert (found.replicas, found.utilization, found.average) == row.expected


def test_h29_metrics_of_unknown_pods_only_are_an_error() -> None:
    with pytest.raises(NoUsageError, match="no metrics returned matched known pods"):
        by_utilization(
            {"other": 100}, Groups(0), {"p0": 1000}, target=100, current=1, tolerances=TENTH
        )


def test_h30_a_pod_without_a_request_is_an_error() -> None:
    requests = PodRequests.single("app", {"memory": 1000})
    with pytest.raises(RequestError, match="missing request for cpu in container app of Pod p0"):
        requests.amount("cpu", container="", pod="p0", pod_level=True)


# -- averages, objects, external metrics --------------------------------------------------------

AVERAGES = {
    "H31": (3, 15000, (20000, 10000, 30000), TENTH, 4, 20000),
    "H32": (3, 15000, (50000, 10000, 30000), TENTH, 6, 30000),
    "H33": (3, 15000, (50000, 15000, 30000), TENTH, 7, 31666),
    "H34": (5, 20000, (12000,) * 5, TENTH, 3, 12000),
    "H35": (3, 20000, (20000, 21000, 21000), TENTH, 3, 20666),
    "H36": (3, 20000, (20000, 21000, 21000), Tolerances(0.1, 0.01), 4, 20666),
    "H37": (5, 20000, (20000, 19000, 21000, NA, NA), TENTH, 5, 20000),
    "H38": (2, 17000, (10000, 10000, NA), TENTH, 2, 10000),
    "H39": (1, 4400, (8600,), TENTH, 2, 8600),
}


@pytest.mark.parametrize(
    ("current", "target", "usage", "tolerances", "replicas", "average"),
    AVERAGES.values(),
    ids=AVERAGES,
)
def test_average(
    current: int, target: int, usage: Usage, tolerances: Tolerances, replicas: int, average: int
) -> None:
    values, groups = grouped(usage, "")
    found = by_average(values, groups, target=target, current=current, tolerances=tolerances)
    assert (found.replicas, found.average) == (replicas, average)


UP_BY_HUNDREDTHS = Tolerances(0.1, 0.01)
VALUES = {
    "H40": (3, 15000, 20000, 3, TENTH, 4),
    "H41": (3, 10000, 50000, 1, TENTH, 5),
    "H42": (5, 20000, 12000, 5, TENTH, 3),
    "H43": (3, 20000, 20666, 3, TENTH, 3),
    "H43-tolerance": (3, 20000, 20666, 3, UP_BY_HUNDREDTHS, 4),
    "H44": (3, 1, MAX_INT64, 3, TENTH, 2147483647),
    "H45": (0, 15000, 20000, 0, TENTH, 2),
    "H46": (0, 1000, 1000, 0, TENTH, 1),
    "H47": (5, 20000, 0, 5, TENTH, 0),
    "H48": (3, 4400, 8600, 1, TENTH, 2),
    "H49": (3, 6666, 8600, 3, TENTH, 4),
    "H50": (5, 14334, 8600, 5, TENTH, 3),
    "H51": (3, 8888, 8600, 3, TENTH, 3),
    "H51-tolerance": (3, 8800, 8900, 3, UP_BY_HUNDREDTHS, 4),
}


@pytest.mark.parametrize(
    ("current", "target", "usage", "ready", "tolerances", "replicas"), VALUES.values(), ids=VALUES
)
def test_value(
    current: int, target: int, usage: int, ready: int, tolerances: Tolerances, replicas: int
) -> None:
    found = by_value(usage, target=target, current=current, ready=ready, tolerances=tolerances)
    assert (found.replicas, found.value) == (replicas, usage)


TOTALS = {
    "H52": (3, 5000, 20000, TENTH, 4, 6667),
    "H53": (5, 2000, 6000, TENTH, 3, 1200),
    "H54": (4, 5000, 20166, TENTH, 4, 5042),
    "H54-tolerance": (4, 5000, 20208, UP_BY_HUNDREDTHS, 5, 5052),
    "H55": (3, 2150, 8600, TENTH, 4, 2867),
    "H56": (5, 2867, 8600, TENTH, 3, 1720),
    "H57": (3, 2900, 8600, TENTH, 3, 2867),
    "H57-tolerance": (3, 2800, 8600, UP_BY_HUNDREDTHS, 4, 2867),
}


@pytest.mark.parametrize("capped", [False, True], ids=["object", "external"])
@pytest.mark.parametrize(
    ("status", "target", "usage", "tolerances", "replicas", "average"), TOTALS.values(), ids=TOTALS
)
def test_total(
    status: int,
    target: int,
    usage: int,
    tolerances: Tolerances,
    replicas: int,
    average: int,
    capped: bool,
) -> None:
    found = by_total(
        usage, target=target, status_replicas=status, tolerances=tolerances, capped=capped
    )
    assert (found.replicas, found.average) == (replicas, average)


def total(usage: int, status: int = 3, *, capped: bool = False) -> Proposal:
    return by_total(usage, target=1, status_replicas=status, tolerances=TENTH, capped=capped)


def test_without_status_replicas_the_average_is_the_smallest_number() -> None:
    found = total(9, status=0)
    assert (found.replicas, found.average) == (9, -(2**63))
    assert total(0, status=0).replicas == 0


def test_an_overflow_is_negative_unless_it_is_capped() -> None:
    assert total(2**40).replicas == -(2**31)
    assert total(2**40, capped=True).replicas == 2**31 - 1


def test_external_values_saturate() -> None:
    assert summed((MAX_INT64, 5), averaged=False) == MAX_INT64
    assert summed((MAX_INT64, 5), averaged=True) == MAX_INT64
    assert summed((7, -9), averaged=False) == -2
    assert summed((7, -9), averaged=True) == MAX_INT64


# -- grouping ---------------------------------------------------------------------------------

NOW = 10**6 * SECOND
OPTIONS = HorizontalOptions(
    cpu_initialization_period=120 * SECOND, initial_readiness_delay=10 * SECOND
)


def pod(
    started: int | None, ready: str | None, since: int = 0, phase: str = "Running"
) -> ScaledPod:
    """A pod with times in seconds before now."""
    return ScaledPod(
        name="p",
        requests=PodRequests.single("app", {}),
        phase=phase,
        ready=ready,
        ready_since=NOW - since * SECOND,
        started=None if started is None else NOW - started * SECOND,
    )


def sample(age: int, window: int) -> dict[str, MetricSample]:
    return {"p": MetricSample(1, NOW - age * SECOND, window * SECOND)}


def group_of(each: ScaledPod, samples: dict[str, MetricSample], resource: str = "cpu") -> str:
    groups = group_pods([each], samples, resource=resource, options=OPTIONS, now=NOW)
    found = [name for name in ("unready", "missing", "ignored") if getattr(groups, name)]
    assert groups.ready + len(found) == 1
    return found[0] if found else "ready"


GROUPS = {
    "H58": (pod(60, "True", 30), sample(0, 30), "ready"),
    "H59": (pod(60, "True", 30), sample(0, 60), "unready"),
    "H60": (pod(600, "False", 594), sample(0, 60), "unready"),
    "H61": (pod(600, "False", 590), sample(0, 60), "ready"),
    "H62": (pod(600, "False", 540), sample(0, 60), "ready"),
    "H63": (pod(180, "True", 180), sample(120, 60), "ready"),
    "H64-no-condition": (pod(600, None), sample(0, 60), "unready"),
    "H64-no-start": (pod(None, "True"), sample(0, 60), "unready"),
    "H64-pending": (pod(600, "True", phase="Pending"), sample(0, 60), "unready"),
    "H64-failed": (pod(600, "True", phase="Failed"), sample(0, 60), "ignored"),
    "H64-no-metric": (pod(600, "True", 590), {}, "missing"),
    "H64-succeeded": (pod(600, "True", 590, phase="Succeeded"), sample(0, 60), "ready"),
    "H64-unknown": (pod(60, "Unknown", 59), sample(0, 30), "ready"),
    "H64-init-unready": (pod(119, "False", 60), sample(0, 30), "unready"),
    "H64-init-over": (pod(120, "False", 60), sample(0, 30), "ready"),
}


@pytest.mark.parametrize(("each", "samples", "group"), GROUPS.values(), ids=GROUPS)
def test_group(each: ScaledPod, samples: dict[str, MetricSample], group: str) -> None:
    assert group_of(each, samples) == group


def test_h64_a_pod_that_is_being_deleted_is_ignored() -> None:
    leaving = ScaledPod("p", PodRequests.single("app", {}), deleting=True)
    assert group_of(leaving, sample(0, 60)) == "ignored"


def test_readiness_matters_for_cpu_only() -> None:
    assert group_of(pod(60, "False", 60), sample(0, 60)) == "unready"
    assert group_of(pod(60, "False", 60), sample(0, 60), resource="memory") == "ready"
    assert group_of(pod(60, "False", 60), sample(0, 60), resource="") == "ready"
