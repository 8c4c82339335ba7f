"""A scenario played on the engine thread of a server, others coming and going, ends the same."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

import kubescene
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.clock import VirtualClock, WallClock
from kubescene.cluster import ClusterWorld
from kubescene.errors import ForbiddenError
from kubescene.runs.staging import cluster_options
from kubescene.scenario import load_scenario
from kubescene.types import JsonObject
from playing import begun, reads_files

EXAMPLES = [
    path
    for path in sorted(Path(__file__).parents[2].glob("examples/*/scenario.yaml"))
    if not reads_files(path)
]
LOOKS, MIDDLE = 5, 25
GRAFFITI = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "graffiti"}}


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[EngineThread]:
    scenario: JsonObject = request.param
    options = cluster_options(scenario, None)
    clock = VirtualClock() if options.start is None else VirtualClock(options.start)
    thread = EngineThread(ClusterWorld(options, clock=clock, server_clock=WallClock()))
    thread.start()
    yield thread
    thread.stop()


@pytest.mark.parametrize(
    ("served", "path"),
    [(load_scenario(path), path) for path in EXAMPLES],
    ids=[path.parent.name for path in EXAMPLES],
    indirect=["served"],
)
def test_a_served_run_gives_the_same_status(served: EngineThread, path: Path) -> None:
    cluster, scenario = served.cluster, load_scenario(path)
    assert isinstance(cluster, ClusterWorld)
    name = scenario["metadata"]["name"]
    engine = served.call(lambda: begun(cluster, scenario))
    looked = Event()
    served.call(lambda: served.play(attended(engine.play(), looked)))
    while served.call(lambda: engine.scenario.step.major) == 0:
        assert served.call(lambda: served.is_playing), engine.scenario.message
    for _ in range(LOOKS):
        served.call(lambda: cluster.list("pods"))
        assert served.call(lambda: cluster.get("scenarios", name))["status"]["phase"] == "Running"
        with pytest.raises(ForbiddenError):
            served.call(lambda: cluster.create(GRAFFITI))
    looked.set()
    while served.call(lambda: served.is_playing):
        pass
    status = served.call(lambda: cluster.get("scenarios", name))["status"]
    assert status == kubescene.run(path).scenario["status"]


def attended(moments: Iterator[object], looked: Event) -> Iterator[object]:
    """The same moments; in the middle of them the scenario waits until somebody has looked."""
    for number, moment in enumerate(moments):
        yield moment
        while number == MIDDLE and not looked.is_set():
            yield moment
