"""Plays a scenario through the lane and without it, and compares what can be seen afterwards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubescene
from kubescene.cluster import Cluster
from kubescene.lane.lane import LaneCounts
from kubescene.testing import make_deployment, make_node, make_pod

Change = tuple[str, bytes, bytes | None]


def records(cluster: Cluster) -> dict[str, list[tuple[tuple[str, str], bytes]]]:
    """Every object, in order of creation, with its revision."""
    store = cluster.store
    return {
        str(resource): [(each.key, each.data) for each in store.in_order_of_creation(resource)]
        for resource in store.resources()
    }


def changes(cluster: Cluster) -> list[Change]:
    """What somebody sees who watches from the oldest revision on that is still known."""
    history = cluster.store.history
    seen = history.since(history.compacted)
    return [
        (each.type, each.record.data, None if each.previous is None else each.previous.data)
        for each in seen
    ]


def files(directory: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(directory.iterdir())}


def counts(run: kubescene.Run) -> LaneCounts:
    lane = run.cluster.lane
    assert lane is not None
    return lane.counts


def compared(scenario: Any, directory: Path) -> LaneCounts:
    """How the lane was used, after everything else was found to be the same without it."""
    fast = kubescene.run(scenario, out=directory / "fast", full_status=True)
    plain = kubescene.run(scenario, out=directory / "plain", full_status=True, plain=True)
    assert plain.cluster.lane is None
    for name, content in files(directory / "plain").items():
        assert content == (directory / "fast" / name).read_bytes(), name
    assert records(fast.cluster) == records(plain.cluster)
    assert changes(fast.cluster) == changes(plain.cluster)
    assert kubescene.run(scenario).scenario == kubescene.run(scenario, plain=True).scenario
    return counts(fast)


Builder = kubescene.ScenarioBuilder
Node = Callable[[Any], Any]


def same(node: Any) -> Any:
    return node


def nodes(count: int, *, cpu: str = "32", labeled: Node = same) -> Builder:
    """A scenario whose first step makes nodes; the second has begun."""
    node = labeled(make_node("node-$(INDEX)").cpu(cpu).memory("256Gi"))
    return kubescene.ScenarioBuilder("lane").create(node, count=count).step(2)


def pod(name: str = "pod", cpu: str = "250m") -> Any:
    return make_pod(f"{name}-$(INDEX)").cpu(cpu).memory("512Mi")


def deployment(replicas: int, name: str = "web") -> Any:
    template = make_pod("web").cpu("250m").memory("512Mi")
    return make_deployment(name).replicas(replicas).template(template)
