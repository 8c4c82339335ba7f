"""Nodes and pods that a served world keeps from before the scenario are counted like others."""

from pathlib import Path

import pytest

from kubescene.cluster import ClusterWorld
from kubescene.results import iterate, open_run
from kubescene.results.sources import RunSource
from kubescene.scenario import Engine, ScenarioBuilder
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_node, make_pod
from kubescene.timeline import ObjectKept, TimelineLog, TimelineRecorder
from kubescene.timeline.files import Header, TimelineWriter

KEEP = {"kubescene.dev/keep": "true"}


@pytest.fixture
def log() -> TimelineLog:
    """A kept node of 4 cores with a kept pod of 1 and another that waits; a pod of 2 comes."""
    cluster = ClusterWorld()
    cluster.create(make_node("kept").cpu("4").memory("8Gi").annotate(KEEP))
    cluster.create(make_pod("stays").cpu("1").on("kept").annotate(KEEP))
    cluster.create(make_pod("waits").cpu("8").annotate(KEEP))
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    scenario = ScenarioBuilder("s").create(make_pod("new").cpu("2")).advance("1m")
    cluster.create(scenario.step(2).delete("v1", "Pod", "stays", namespace="default").done())
    (record,) = cluster.store.list(cluster.scheme.resolve("scenarios").group_resource)
    Engine(cluster, ScenarioResource(cluster.store, record), recorder).run()
    return recorder.log


@pytest.fixture(params=["memory", "file"])
def run(request: pytest.FixtureRequest, log: TimelineLog, tmp_path: Path) -> RunSource:
    if request.param == "memory":
        return open_run(log)
    path = tmp_path / "timeline.jsonl"
    with path.open("wb") as file:
        writer = TimelineWriter(file, Header(scenario="s"))
        for fact in log.read():
            writer.write(fact)
    return open_run(path)


def test_kept_nodes_and_pods_are_in_the_tables(run: RunSource) -> None:
    (node,) = run.tables()["nodes"]
    assert (node.name, node.created_step, node.cpu_requested) == ("kept", "0.0", 2000)
    pods = {row.name: (row.state, row.node, row.created_step) for row in run.tables()["pods"]}
    assert pods["stays"][1:] == ("kept", "0.0")
    assert pods["waits"] == ("Pending", "", "0.0")
    assert pods["new"][:2] == ("Bound", "kept")


def test_they_count_from_the_beginning_of_the_run(run: RunSource) -> None:
    steps = run.tables()["steps"].rows
    assert [(row.step, row.cpu_requested, row.pods_created) for row in steps] == [
        (1, 3000, 1),
        (2, 2000, 0),
    ]
    measures = run.measures()
    assert measures["pods_created"] == 3
    assert measures["allocation_cpu"] == 0.5
    assert measures["pending_seconds_max"] == 60.0
    assert measures["node_hours"] == 1 / 60


def test_their_facts_are_read_like_others(run: RunSource) -> None:
    kept = [fact for fact in run.facts() if isinstance(fact, ObjectKept)]
    assert [fact.name for fact in kept] == ["kept", "stays", "waits"]
    assert [moment.ledger.totals.nodes for moment in iterate(run)][:2] == [1, 1]


def test_a_kept_pod_that_is_on_its_way_out_frees_its_room_when_it_is_gone() -> None:
    cluster = ClusterWorld()
    cluster.create(make_node("kept").cpu("4").annotate(KEEP))
    leaving = make_pod("leaves").cpu("1").on("kept").annotate(KEEP).build()
    leaving["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.create(leaving)
    cluster.delete("pods", "leaves")
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    free = {"metadata": {"finalizers": None}}
    scenario = ScenarioBuilder("s").patch("v1", "Pod", "leaves", free, namespace="default")
    cluster.create(scenario.done())
    (record,) = cluster.store.list(cluster.scheme.resolve("scenarios").group_resource)
    Engine(cluster, ScenarioResource(cluster.store, record), recorder).run()
    (node,) = open_run(recorder.log).tables()["nodes"]
    assert (node.pods, node.cpu_requested) == (0, 0)
