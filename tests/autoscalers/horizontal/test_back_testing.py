"""Recorded usage played to an autoscaler."""

from typing import Any

import pytest

from horizontals import external, hpa, utilization
from kubescene.autoscalers.back_tests import Amount
from kubescene.autoscalers.horizontal import PodUsageSample, back_test
from kubescene.durations import SECOND
from kubescene.errors import ConfigurationError

REQUESTS = {"cpu": "500m"}
SHORT = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def samples(*cpu: Any, every: int = 15) -> list[PodUsageSample]:
    return [
        PodUsageSample(number * every * SECOND, {"cpu": used}) for number, used in enumerate(cpu)
    ]


def test_the_count_follows_the_load() -> None:
    test = back_test(hpa(utilization(50)), samples(0.25, "500m", 1, 1), requests=REQUESTS)
    assert [(row.replicas, row.desired) for row in test.rows] == [(1, 1), (1, 2), (2, 4), (4, 4)]
    assert (test.highest, test.lowest, test.rescales, test.reversals) == (4, 1, 2, 0)
    assert test.replica_seconds == 15 * (1 + 2 + 4 + 4)


def test_a_sample_holds_until_the_next() -> None:
    test = back_test(hpa(utilization(50)), samples(0.25, 1, every=60), requests=REQUESTS)
    assert [row.desired for row in test.rows] == [1, 1, 1, 1, 4]


def test_new_pods_are_ready_after_their_start() -> None:
    test = back_test(
        hpa(utilization(50)), samples(0.5, 0.5, 0.5), requests=REQUESTS, startup=20 * SECOND
    )
    assert [(row.replicas, row.ready) for row in test.rows] == [(1, 1), (2, 1), (2, 2)]
    assert test.rows[1].desired == 2  # the pod that starts is assumed to take its share


def test_flapping_is_counted() -> None:
    load = [0.25, 1, 0.25, 1, 0.25]
    flapping = back_test(hpa(utilization(50), behavior=SHORT), samples(*load), requests=REQUESTS)
    calm = back_test(hpa(utilization(50)), samples(*load), requests=REQUESTS)
    assert (flapping.reversals, calm.reversals) == (3, 0)


def test_other_metrics_have_their_own_keys() -> None:
    container = {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "app",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    }
    per_pod = {
        "type": "Pods",
        "pods": {
            "metric": {"name": "rps"},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    }
    usage: dict[str, Amount] = {"app/cpu": "300m", "cpu": "450m", "rps": 25, "queue": 40}
    test = back_test(
        hpa(container, utilization(50), per_pod, external("queue", "10")),
        [PodUsageSample(0, usage)],
        requests={"app/cpu": "200m", "cpu": "300m"},
        replicas=1,
    )
    [row] = test.rows
    proposals = [each.proposal.replicas for each in row.explanation.measurements if each.proposal]
    assert proposals == [3, 3, 3, 4]


def test_the_same_input_gives_the_same_rows() -> None:
    load = [0.1 * (number % 7) for number in range(50)]
    tests = [back_test(hpa(utilization(50)), samples(*load), requests=REQUESTS) for _ in "ab"]
    assert tests[0] == tests[1]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nan": ({"samples": samples(1, float("nan"))}, r"usage\[1\].cpu: nan is not a finite number"),
    "infinite": ({"samples": samples(float("inf"))}, r"usage\[0\].cpu: inf"),
    "negative": ({"samples": samples(1, 1, -0.5)}, r"usage\[2\].cpu: -0.5 is negative"),
    "text": ({"samples": samples("much")}, r"usage\[0\].cpu: 'much' is not an amount"),
    "other key": (
        {"samples": [PodUsageSample(0, {"memory": 1})]},
        r"usage\[0\].cpu: missing; the sample has memory",
    ),
    "order": (
        {"samples": [PodUsageSample(5, {"cpu": 1}), PodUsageSample(5, {"cpu": 1})]},
        r"usage\[1\].time",
    ),
    "none": ({"samples": []}, "usage: there are no samples"),
    "no request": ({"requests": {}}, r"requests.cpu: missing; spec.metrics\[0\]"),
    "no amount": ({"requests": {"cpu": 0}}, "requests.cpu: must be more than zero"),
    "interval": ({"interval": 0}, "interval: 0 ns is too short"),
    "startup": ({"startup": -1}, "startup: -1 ns is too short"),
    "replicas": ({"replicas": -1}, "replicas: -1 is negative"),
}


@pytest.mark.parametrize(("given", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(given: dict[str, Any], words: str) -> None:
    arguments = {"samples": samples(1), "requests": REQUESTS, **given}
    with pytest.raises(ConfigurationError, match=words):
        back_test(hpa(utilization(50)), **arguments)
