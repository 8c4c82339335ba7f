"""The plain way is the specification: whole worlds without any shortcut end in the same bytes.

Machines, workloads, traffic, autoscalers, outages, arrivals and drains, in mixtures nobody wrote
down. Placement is compared so in `tests/scheduler/fast` and `tests/lane`, every example in
`tests/test_examples.py`, recordings in `tests/golden`.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings

import kubescene
from kubescene.timeline import Fact
from random_scenarios import Json
from random_worlds import random_world, random_worlds

SEEDS = range(16)


def story(scenario: Json, *, plain: bool) -> tuple[bytes, list[str]]:
    """Every object in the end, and every fact."""
    run = kubescene.run(scenario, plain=plain)
    assert run.ok, run.message
    return run.cluster.export(), [repr(fact) for fact in run.log]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_made_by_lot_writes_the_same_files(seed: int, tmp_path: Path) -> None:
    for name, plain in (("fast", False), ("plain", True)):
        assert kubescene.run(random_world(seed), out=tmp_path / name, plain=plain).ok
    fast, plain_files = (
        {each.name: each.read_bytes() for each in (tmp_path / name).iterdir()}
        for name in ("fast", "plain")
    )
    assert fast.keys() == plain_files.keys()
    assert [name for name in fast if fast[name] != plain_files[name]] == []


@given(random_worlds())
@settings(max_examples=20)
def test_so_does_one_that_is_drawn(scenario: Json) -> None:
    assert story(scenario, plain=False) == story(scenario, plain=True)


def names_of(fact: Fact) -> tuple[str, str]:
    """What a fact is called, and the kind of the object that it is about."""
    kind = getattr(fact, "kind", "") or type(fact).__name__
    return kind, getattr(getattr(fact, "key", None), "kind", "")


@cache
def happened() -> Counter[str]:
    """In how many of these worlds something happened."""
    found: Counter[str] = Counter()
    for seed in SEEDS:
        run = kubescene.run(random_world(seed))
        traffics = run.cluster.list("Traffic")
        found["requests"] += any(each["status"]["requests"] for each in traffics)
        found["in the lane"] += run.cluster.lane is not None and run.cluster.lane.counts.pods > 0
        found.update({name for fact in run.log for name in names_of(fact)})
    return found


@pytest.mark.parametrize(
    "what",
    [
        "requests",
        "in the lane",
        "NodesDecided",
        "ReplicasDecided",
        "PodRestarted",
        "PodFinished",
        "PodEnded",
        "Instance",
        "Outage",
        "VerticalPodAutoscaler",
        "DaemonSet",
        "Deployment",
        "StatefulSet",
        "Job",
        "CronJob",
        "EndpointSlice",
        "OperationOutcome",
    ],
)
def test_these_worlds_have_it(what: str) -> None:
    """Otherwise they would show nothing about it."""
    assert happened()[what] >= 2
