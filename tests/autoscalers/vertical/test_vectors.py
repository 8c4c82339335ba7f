"""The published vectors V21 to V47: estimators, peaks, kills, capping, priorities."""

import pytest

from autoscalers.vertical.vertical_worlds import (
    MI,
    START,
    feed,
    make_pod,
    make_recommender,
    make_vpa,
    ranged,
)
from kubescene.api.quantity import ZERO, Quantity, parse
from kubescene.autoscalers.vertical.amounts import (
    MAX_AMOUNT,
    amount,
    humanized,
    proportional_limit,
    rounded_up,
    scaled,
)
from kubescene.autoscalers.vertical.histories import Aggregate, ContainerUsage
from kubescene.autoscalers.vertical.options import DAY, HOUR, RecommenderOptions
from kubescene.autoscalers.vertical.recommendations import (
    Bound,
    Confidence,
    confidence,
    estimate,
    minimums,
)
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.autoscalers.vertical.updater import (
    Assessment,
    UpdatePriority,
    UpdateVerdict,
    assess,
    in_order,
    priority,
)
from kubescene.clock import MINUTE

OPTIONS = RecommenderOptions()
MIN_CPU, MIN_MEMORY = 25, 262144000
TWO_POWER = Confidence(0.1, 2)


def with_samples(count: int, every: int) -> Aggregate:
    history = Aggregate(OPTIONS, START)
    for number in range(count):
        history.add_cpu(1000, START + number * every)
    return history


@pytest.mark.parametrize(("interval", "expected"), [(DAY, 0.00625), (18 * MINUTE, 0.5)])
def test_v21_confidence(interval: int, expected: float) -> None:
    """Nine samples two minutes apart: the count decides, then the lifespan."""
    history = with_samples(9, 2 * MINUTE)
    assert confidence(history, interval) == pytest.approx(
        min(16 * MINUTE / interval, 9 / (interval / MINUTE))
    )
    assert confidence(history, interval) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("trust", "base", "expected"),
    [
        pytest.param(0.00625, 3140, 907460, id="V22-cpu"),
        pytest.param(0.00625, 3140000000, 907460000000, id="V22-memory"),
        pytest.param(0.5, 3140, 4521, id="V23-cpu"),
        pytest.param(0.5, 3140000000, 4521600000, id="V23-memory"),
    ],
)
def test_confidence_multiplies(trust: float, base: int, expected: int) -> None:
    assert scaled(base, TWO_POWER.factor(trust)) == expected


def test_v24_without_history_bounds_are_extreme() -> None:
    assert scaled(3140, Confidence(0.1, 1).factor(0.0)) == MAX_AMOUNT
    assert scaled(3140, Confidence(0.1, -1).factor(0.0)) == 0


@pytest.mark.parametrize(("base", "expected"), [(3140, 3454), (3140000000, 3454000000)])
def test_v25_margin(base: int, expected: int) -> None:
    assert base + scaled(base, 0.1) == expected


@pytest.mark.parametrize(("containers", "cpu", "memory"), [(1, 25, 262144000), (2, 12, 131072000)])
def test_v26_minimum_is_split(containers: int, cpu: int, memory: int) -> None:
    assert minimums(OPTIONS, containers) == {"cpu": cpu, "memory": memory}


def amounts(recommender: Recommender, bound: Bound, now: int = START) -> tuple[int, int]:
    [container] = recommender.recommend(now).containers
    by_resource = container.amounts(bound)
    return by_resource["cpu"], by_resource["memory"]


def test_v27_an_empty_history_gets_the_minimum() -> None:
    recommender = make_recommender()
    for bound in Bound:
        assert amounts(recommender, bound) == (MIN_CPU, MIN_MEMORY)


def test_v28_one_sample() -> None:
    recommender = make_recommender()
    feed(recommender, cpu=200, memory=3 * 10**8, minutes=1)
    assert amounts(recommender, Bound.TARGET) == (247, 351198544)
    assert amounts(recommender, Bound.LOWER) == (MIN_CPU, MIN_MEMORY)
    assert amounts(recommender, Bound.UPPER) == (MAX_AMOUNT, MAX_AMOUNT)


@pytest.mark.parametrize(
    ("cpu", "memory", "minutes", "target", "lower", "upper"),
    [
        pytest.param(
            100, 100 * MI, 60, (126, MIN_MEMORY), (120, MIN_MEMORY), (3201, 3221719118), id="V29"
        ),
        pytest.param(
            500,
            500 * MI,
            1440,
            (587, 628694953),
            (585, 627438575),
            (1174, 1257826803),
            id="V30",
        ),
        pytest.param(
            500,
            500 * MI,
            7 * 1440,
            (587, 628694953),
            (586, 628515346),
            (670, 718517428),
            id="V31",
        ),
        pytest.param(
            1000,
            10**9,
            1440,
            (1168, 1168723596),
            (1165, 1166388030),
            (2336, 2338259369),
            id="V32",
        ),
        pytest.param(
            2000, 4 * 10**9, 2 * 1440, (2406, 4743403291), None, (3609, 7115928730), id="V33"
        ),
    ],
)
def test_steady_usage(
    cpu: int,
    memory: int,
    minutes: int,
    target: tuple[int, int],
    lower: tuple[int, int] | None,
    upper: tuple[int, int],
) -> None:
    recommender = make_recommender()
    feed(recommender, cpu=cpu, memory=memory, minutes=minutes)
    assert amounts(recommender, Bound.TARGET) == target
    assert lower is None or amounts(recommender, Bound.LOWER) == lower
    assert amounts(recommender, Bound.UPPER) == upper


# -- peaks and kills ---------------------------------------------------------------------------


class Ledger(Aggregate):
    """An aggregate that writes down what is added and taken back."""

    __slots__ = ("log",)

    def __init__(self) -> None:
        super().__init__(OPTIONS, START)
        self.log: list[tuple[str, int, int]] = []

    def add_peak(self, size: int, time: int) -> None:
        self.log.append(("add", size, time))
        super().add_peak(size, time)

    def subtract_peak(self, size: int, time: int) -> None:
        self.log.append(("subtract", size, time))
        super().subtract_peak(size, time)


def test_v34_one_peak_for_each_interval() -> None:
    container, ledger = ContainerUsage(), Ledger()
    for size, time in ((5, START), (10, START + 12 * HOUR), (2, START + DAY)):
        assert container.add_memory(ledger, size, time, DAY)
    assert ledger.log == [
        ("add", 5, START + DAY),
        ("subtract", 5, START + DAY),
        ("add", 10, START + DAY),
        ("add", 2, START + 2 * DAY),
    ]


def test_v35_duplicate_and_negative_cpu_samples_are_refused() -> None:
    container, history = ContainerUsage(), Aggregate(OPTIONS, START)
    taken = [
        container.add_cpu(history, millicores, time)
        for millicores, time in ((3140, START), (6280, START), (-1000, START + 1), (1, START + 2))
    ]
    assert taken == [True, False, False, True]
    assert history.cpu.total == pytest.approx(0.2)
    assert history.count == 2


@pytest.mark.parametrize(
    ("requested", "needed"), [(1000, 1200), (1, 101), (500, 600)], ids=["ratio", "least", "equal"]
)
def test_v36_a_kill_asks_for_more(requested: int, needed: int) -> None:
    container, ledger = ContainerUsage(), Ledger()
    assert container.add_oom(ledger, requested * MI, START, OPTIONS)
    assert ledger.log == [("add", needed * MI, START + DAY)]


def test_v37_a_kill_counts_from_the_known_peak() -> None:
    container, ledger = ContainerUsage(), Ledger()
    container.add_memory(ledger, 3000 * MI, START, DAY)
    container.add_oom(ledger, 1000 * MI, START, OPTIONS)
    assert ledger.log[1:] == [
        ("subtract", 3000 * MI, START + DAY),
        ("add", 3600 * MI, START + DAY),
    ]


def test_v38_kills_do_not_run_away() -> None:
    container, ledger = ContainerUsage(), Ledger()
    for requested in (1000, 999, 999, 2000):
        assert container.add_oom(ledger, requested * MI, START, OPTIONS)
    added = [size for what, size, _ in ledger.log if what == "add"]
    assert added == [1200 * MI, 2400 * MI]


def test_v39_an_old_kill_is_refused() -> None:
    container, ledger = ContainerUsage(), Ledger()
    container.add_memory(ledger, 1000 * MI, START, DAY)
    assert not container.add_oom(ledger, 1000 * MI, START - 30 * HOUR, OPTIONS)


def test_v40_a_kill_in_a_new_interval_knows_the_old_peak() -> None:
    container, ledger = ContainerUsage(), Ledger()
    container.add_memory(ledger, 2000 * MI, START, DAY)
    container.add_oom(ledger, 1000 * MI, START + 2 * DAY, OPTIONS)
    assert ledger.log[-1] == ("add", 2400 * MI, START + 3 * DAY)


def test_a_peak_of_nothing_is_never_replaced() -> None:
    container, ledger = ContainerUsage(), Ledger()
    for size in (0, 5):
        assert container.add_memory(ledger, size, START + size, DAY)
    assert ledger.log == [("add", 0, START + DAY)]


@pytest.mark.parametrize(("days", "expired"), [(7, False), (8, True)])
def test_v41_eight_days_without_a_sample_are_too_many(days: int, expired: bool) -> None:
    history = with_samples(1, MINUTE)
    assert history.is_expired(START + days * DAY, OPTIONS.memory_window) is expired


# -- capping and priorities --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "request_", "recommended", "default", "expected"),
    [
        ("2", "1", "10", "0", "20"),
        ("2", "1500m", "1", "0", "1333m"),
        ("0", "1", "10", "2", "20"),
        ("2", "0", "10", "0", "10"),
    ],
)
def test_v42_cpu_limits_stay_in_proportion(
    limit: str, request_: str, recommended: str, default: str, expected: str
) -> None:
    given = (parse(each) for each in (limit, request_, recommended, default))
    scaled_limit = proportional_limit("cpu", *given)
    assert str(scaled_limit.amount) == expected
    assert not scaled_limit.note


def test_v43_memory_limits_stay_in_proportion() -> None:
    def limit(limit: str, request: str, recommended: str) -> Quantity | None:
        given = parse(limit), parse(request), parse(recommended)
        return proportional_limit("memory", *given, ZERO).amount

    assert limit("200", "150", "100") == parse("133")
    assert limit("150", "150", "100") == parse("100")
    assert limit("0", "150", "100") is None


def containers(*each: dict[str, str]) -> dict[str, dict[str, dict[str, str]]]:
    return {f"c{number}": {"requests": requests} for number, requests in enumerate(each)}


@pytest.mark.parametrize(
    ("requests", "targets", "difference"),
    [
        ([{"cpu": "2"}], [{"cpu": "10"}], 4.0),
        ([{"cpu": "4"}], [{"cpu": "2"}], 0.5),
        ([{"cpu": "10m"}], [{"cpu": "900m"}], 89.0),
        ([{"cpu": "3", "memory": "10M"}], [{"cpu": "6", "memory": "20M"}], 2.0),
        ([{"cpu": "4", "memory": "10M"}], [{"cpu": "2", "memory": "20M"}], 1.5),
        (
            [{"cpu": "6", "memory": "10M"}, {"cpu": "4", "memory": "30M"}],
            [{"cpu": "8", "memory": "20M"}, {"cpu": "7", "memory": "30M"}],
            0.75,
        ),
    ],
)
def test_v44_difference(
    requests: list[dict[str, str]], targets: list[dict[str, str]], difference: float
) -> None:
    vpa = make_vpa(recommended={f"c{n}": {"target": each} for n, each in enumerate(targets)})
    found = assess(vpa, make_pod(containers=containers(*requests)), START).priority
    assert found.difference == pytest.approx(difference)


@pytest.mark.parametrize(
    ("requested", "bounds", "expected"),
    [
        ("4", ("10", "6", "14"), UpdatePriority(True, True, 1.5)),
        ("8", ("2", "1", "3"), UpdatePriority(True, False, 0.75)),
    ],
)
def test_v45_outside_of_the_range(
    requested: str, bounds: tuple[str, str, str], expected: UpdatePriority
) -> None:
    vpa = make_vpa(recommended={"c0": ranged(*bounds)})
    assert assess(vpa, make_pod(containers=containers({"cpu": requested})), START).priority == (
        expected
    )


def ranked(*each: tuple[bool, float]) -> list[Assessment]:
    verdict = UpdateVerdict(True, "")
    return [Assessment({}, None, UpdatePriority(False, up, diff), verdict) for up, diff in each]


def test_v46_order() -> None:
    downs = in_order(ranked(*((False, diff) for diff in (4.0, 1.5, 9.0, 2.33))))
    assert [each.priority.difference for each in downs] == [9.0, 4.0, 2.33, 1.5]
    mixed = in_order(ranked((False, 0.25), (False, 0.5), (True, 0.25)))
    assert [each.priority[1:] for each in mixed] == [(True, 0.25), (False, 0.5), (False, 0.25)]


def test_v47_rounding_and_humanizing() -> None:
    assert rounded_up(100, 7) == 105
    assert humanized(4992073454) == "4.65Gi"
    assert [humanized(size) for size in (0, 1023, 1024, 1536 * MI)] == [
        "0",
        "1023",
        "1.00Ki",
        "1.50Gi",
    ]


# -- what the vectors leave open ----------------------------------------------------------------


def test_an_amount_that_is_no_number_loses_against_everything() -> None:
    assert amount(float("nan")) < 0
    assert amount(-1.0) == 0
    assert amount(1e15) == MAX_AMOUNT


def test_an_estimate_tells_its_steps() -> None:
    history = with_samples(1, MINUTE)
    made = estimate(history, "cpu", Bound.UPPER, OPTIONS, 25)
    assert (made.base, made.with_margin, made.with_confidence) == (1016, 1168, MAX_AMOUNT)
    assert made.to_dict()["factor"] is None
    empty = estimate(Aggregate(OPTIONS, START), "cpu", Bound.UPPER, OPTIONS, 25)
    assert empty.is_minimum
    assert empty.to_dict()["withConfidence"] is None


def test_priority_without_a_recommendation_is_nothing() -> None:
    assert priority(make_pod(), None) == UpdatePriority(False, False, 0.0)
