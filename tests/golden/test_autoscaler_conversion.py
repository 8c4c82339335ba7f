"""HorizontalPodAutoscalers of autoscaling/v1 and v2, as kube-apiserver converts them.

Each recorded line has a defaulted object of version 2, what version 1 shows of it (the rest travels
in annotations), and what becomes of that in version 2 again.
"""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kubescene.api.conversion.autoscalers import to_v1, to_v2
from kubescene.api.quantity import QuantityError, parse
from kubescene.autoscalers.horizontal import accepted, compiled
from kubescene.autoscalers.horizontal.specs import MetricSpec

FILE = Path(__file__).parent / "data" / "conversion" / "autoscalers.jsonl.gz"
PREFIX = "autoscaling.alpha.kubernetes.io/"
COUNT = 80


@cache
def recorded() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt") as lines:
        return [json.loads(line) for line in lines]


def comparable(obj: dict[str, Any]) -> Any:
    """Without what the recorder left out, annotations read, quantities by amount."""
    new = json.loads(json.dumps(obj))
    new.pop("apiVersion", None)
    new.pop("kind", None)
    new["metadata"].pop("creationTimestamp", None)
    annotations = new["metadata"].get("annotations") or {}
    for name in [each for each in annotations if each.startswith(PREFIX)]:
        annotations[name] = json.loads(annotations[name])
    return amounts(new)


def amounts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: amounts(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [amounts(each) for each in value]
    try:
        return parse(value).nanos if isinstance(value, str) else value
    except QuantityError:
        return value


@pytest.mark.parametrize("number", range(COUNT))
def test_both_ways_equal_those_of_the_api_server(number: int) -> None:
    line = recorded()[number]
    assert comparable(to_v1(line["v2"])) == comparable(line["v1"])
    assert comparable(to_v2(line["v1"])) == comparable(line["back"])


def test_all_lines_are_there() -> None:
    assert len(recorded()) == COUNT


def is_cpu_target(metric: MetricSpec) -> bool:
    is_cpu = (metric.type, metric.name) == ("Resource", "cpu")
    return is_cpu and metric.target.average_utilization is not None


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("version", ["autoscaling/v2", "autoscaling/v2beta2"])
def test_an_autoscaler_that_went_through_version_1_decides_alike(number: int, version: str) -> None:
    """Its metrics may come in another order. Of several CPU targets version 1 keeps the first."""
    line, kind = recorded()[number], {"kind": "HorizontalPodAutoscaler"}
    direct = compiled(accepted({**line["v2"], **kind, "apiVersion": version}, scale_to_zero=True))
    detour = {**line["v1"], **kind, "apiVersion": "autoscaling/v1"}
    around = compiled(accepted(detour, scale_to_zero=True))
    kept = [each for each in direct.metrics if not is_cpu_target(each)]
    kept += [each for each in direct.metrics if is_cpu_target(each)][:1]
    assert sorted(map(repr, around.metrics)) == sorted(map(repr, kept))
    assert (around.minimum, around.maximum) == (direct.minimum, direct.maximum)
    assert around.behavior == direct.behavior
