"""Deletions that give a pod more time than there is."""

import pytest

from kubescene.api.options import DeleteOptions
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.registry import Registry
from kubescene.registry.deletion import end_of_grace
from kubescene.testing import make_node, make_pod
from registry.conftest import USER

LONGEST_S = (1 << 63) - 1


def running_pod(registry: Registry, **spec: object) -> None:
    registry.create(USER, make_node("n").build())
    pod = make_pod("a").build()
    registry.create(USER, {**pod, "spec": {**pod["spec"], "nodeName": "n", **spec}})


@pytest.mark.parametrize(
    ("grace_s", "after_s"),
    [
        pytest.param(30, 30, id="the usual"),
        pytest.param(9_000_000_000, 9_000_000_000, id="285 years"),
        pytest.param(LONGEST_S, -1, id="more than a duration can hold"),
    ],
)
def test_a_grace_ends_as_go_adds_it(registry: Registry, grace_s: int, after_s: int) -> None:
    running_pod(registry, terminationGracePeriodSeconds=grace_s)
    pods = registry.scheme.of_kind("v1", "Pod")
    record = registry.delete(USER, pods, "default", "a", options=DeleteOptions())
    metadata = registry.store.decoded(record)["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == grace_s
    now = registry.clock.now()
    assert metadata["deletionTimestamp"] == format_time(now + after_s * SECOND)


def test_a_grace_beyond_the_last_timestamp_ends_there() -> None:
    late = parse_time("9999-12-31T23:59:50Z")
    assert format_time(end_of_grace(late, 30)) == "9999-12-31T23:59:59Z"
