"""A run ends soon after somebody wants it to."""

from collections.abc import Callable
from typing import Any

import pytest

from kubescene.clock import SECOND
from kubescene.traffic import run
from kubescene.traffic.results import Phase
from kubescene.traffic.spec.fields import API_VERSION, KIND


def document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "r"},
        "spec": {"duration": "60s", "traffic": {"pattern": "constant"}, **spec},
    }


def after(calls: int) -> Callable[[], bool]:
    """Stop when asked for the so many-th time."""
    asked = iter(range(calls))
    return lambda: next(asked, None) is None


@pytest.mark.parametrize("mode", ["fixed", "faithful"])
def test_replicas_that_begin_at_one_instant_can_be_interrupted(mode: str) -> None:
    asked = document(mode=mode, replicas={"initial": 50})
    for calls in (10, 60, 90):
        stopped = run(asked, cancelled=after(calls))
        assert stopped.phase is Phase.CANCELLED
        assert stopped.end < SECOND
        assert sum(each.activated_at >= 0 for each in stopped.replicas) < 50


@pytest.mark.parametrize("calls", [55, 60, 75, 100, 150, 400])
def test_what_a_stopped_run_shows_happened_before_its_end(calls: int) -> None:
    asked = document(
        traffic={"pattern": "constant", "constant": {"rps": 100}}, replicas={"initial": 10}
    )
    stopped = run(asked, cancelled=after(calls))
    requests = stopped.requests
    assert not (requests.completed > stopped.end).any()
    assert not (requests.arrived > stopped.end).any()
    assert all(each.activated_at <= stopped.end for each in stopped.replicas)
    assert stopped.used >= 0


def test_a_stopped_run_begins_as_one_that_was_not() -> None:
    asked = document(
        traffic={"pattern": "constant", "constant": {"rps": 100}}, replicas={"initial": 3}
    )
    whole, part = run(asked), run(asked, cancelled=after(30))
    count = part.requests.count
    assert part.phase is Phase.CANCELLED
    assert (part.requests.arrived == whole.requests.arrived[:count]).all()
    assert (part.requests.replica == whole.requests.replica[:count]).all()


def test_a_run_that_reads_its_service_can_be_interrupted_replica_by_replica() -> None:
    """All replicas are read at one instant, each by itself."""
    target = {"type": "AverageValue", "averageValue": "1k"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "queue_length"}, "target": target}}
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "hpa"},
        "spec": {
            "maxReplicas": 500,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [metric],
        },
    }
    asked = document(replicas={"initial": 500}, autoscalers=[{"object": hpa}])
    ends = {run(asked, cancelled=after(calls)).end for calls in (1150, 1300, 1450)}
    assert ends == {10 * SECOND}, "within the first reading"
