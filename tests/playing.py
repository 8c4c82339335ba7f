"""A scenario that is about to be played in a cluster of the test's own."""

from pathlib import Path

from kubescene.client.verbs import AnyObject, plain
from kubescene.cluster import ClusterWorld
from kubescene.runs.examination import evaluation
from kubescene.scenario import Engine
from kubescene.scenario.resource import ScenarioResource
from kubescene.timeline import TimelineLog, TimelineRecorder


def reads_files(path: Path) -> bool:
    """Whether a scenario names files beside it, which a server does not have."""
    text = path.read_text(encoding="utf-8")
    return "objectFrom" in text or "{file: " in text


def begun(cluster: ClusterWorld, scenario: AnyObject) -> Engine:
    """The engine before its first moment; what happens is recorded."""
    recorder = TimelineRecorder(cluster.clock, TimelineLog(), role_of=cluster.registry.role_of)
    cluster.observe(recorder)
    record = cluster.client(cluster.actor).create(plain(scenario))
    resource = ScenarioResource(cluster.store, record)
    return Engine(cluster, resource, recorder, judge=evaluation)
