"""While a scenario runs or is paused, the world belongs to it."""

from collections.abc import Callable

import pytest

from kubescene.cluster import ClusterWorld
from kubescene.control.loops import IDLE, Progress
from kubescene.errors import ForbiddenError
from kubescene.scenario import Engine, ScenarioBuilder, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_node, make_pod
from kubescene.timeline import ObjectKept, Timeline, TimelineRecorder
from kubescene.types import JsonObject

GRAFFITI = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "graffiti"}}


class Intruder:
    """A controller that goes behind the engine's back and acts as a user."""

    name = "intruder"

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def run_once(self) -> Progress:
        self._act()
        return IDLE


def play(cluster: ClusterWorld, scenario: ScenarioBuilder) -> ScenarioPhase:
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    cluster.create(scenario)
    (record,) = cluster.store.list(cluster.scheme.resolve("scenarios").group_resource)
    return Engine(cluster, ScenarioResource(cluster.store, record), recorder).run()


def test_a_user_is_refused_while_the_scenario_runs(cluster: ClusterWorld) -> None:
    refused: list[ForbiddenError] = []

    def write() -> None:
        with pytest.raises(ForbiddenError) as caught:
            cluster.create(GRAFFITI)
        refused.append(caught.value)

    cluster.registrations.register("intruder", lambda _: Intruder(write))
    play(cluster, ScenarioBuilder("s").create(make_node("n")))
    assert refused[0].code == 403
    assert str(refused[0]).startswith('configmaps "graffiti" is forbidden: scenario "s" is Running')
    assert "and user is not one of its controllers" in str(refused[0])
    assert refused[0].to_status()["details"] == {"name": "graffiti", "kind": "configmaps"}
    assert not any(m["metadata"]["name"] == "graffiti" for m in cluster.list("configmaps"))


@pytest.mark.parametrize("verb", ["create", "patch", "delete"])
def test_a_user_is_refused_while_the_scenario_is_paused(cluster: ClusterWorld, verb: str) -> None:
    assert play(cluster, ScenarioBuilder("s").create(make_node("n"))) is ScenarioPhase.PAUSED
    attempts: dict[str, Callable[[], JsonObject]] = {
        "create": lambda: cluster.create(GRAFFITI),
        "patch": lambda: cluster.patch("nodes", "n", {"metadata": {"labels": {"a": "b"}}}),
        "delete": lambda: cluster.delete("nodes", "n"),
    }
    name = "graffiti" if verb == "create" else "n"
    with pytest.raises(ForbiddenError, match=f'"{name}" is forbidden: scenario "s" is Paused'):
        attempts[verb]()


def test_scenarios_themselves_may_be_written_meanwhile(cluster: ClusterWorld) -> None:
    play(cluster, ScenarioBuilder("s").create(make_node("n")))
    cluster.patch("scenarios", "s", {"metadata": {"labels": {"seen": "yes"}}})
    assert cluster.get("scenarios", "s")["metadata"]["labels"] == {"seen": "yes"}


def test_reading_is_for_everybody(cluster: ClusterWorld) -> None:
    play(cluster, ScenarioBuilder("s").create(make_node("n")))
    assert cluster.node("n").name == "n"


def test_after_the_end_the_world_is_free(cluster: ClusterWorld) -> None:
    assert play(cluster, ScenarioBuilder("s").done()) is ScenarioPhase.SUCCEEDED
    cluster.create(GRAFFITI)


def test_the_start_wipes_the_world_except_what_is_kept(cluster: ClusterWorld) -> None:
    cluster.create(make_node("old"))
    cluster.create(make_node("kept").annotate({"kubescene.dev/keep": "true"}))
    finalizer = {"metadata": {"finalizers": ["example.com/held"]}}
    cluster.create(make_pod("held"))
    cluster.patch("pods", "held", finalizer)
    namespaces = cluster.list("namespaces")
    classes = cluster.list("priorityclasses")
    play(cluster, ScenarioBuilder("s").create(make_node("new")))
    assert [n["metadata"]["name"] for n in cluster.list("nodes")] == ["kept", "new"]
    assert cluster.list("pods") == []
    assert cluster.list("namespaces") == namespaces
    assert cluster.list("priorityclasses") == classes


def test_the_log_begins_with_nodes_and_pods_that_are_kept(cluster: ClusterWorld) -> None:
    keep = {"kubescene.dev/keep": "true"}
    cluster.create(make_node("kept").annotate(keep))
    cluster.create(make_pod("stays").on("kept").annotate(keep))
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    cluster.create(ScenarioBuilder("s").create(make_pod("new")).done())
    (record,) = cluster.store.list(cluster.scheme.resolve("scenarios").group_resource)
    Engine(cluster, ScenarioResource(cluster.store, record), recorder).run()
    first, second, third = recorder.log.read(0, 3)
    assert isinstance(first, ObjectKept)
    assert isinstance(second, ObjectKept)
    assert [first.name, second.name, third.id] == ["kept", "stays", "op-1"]
    assert b"resourceVersion" not in first.record.unversioned_data
    assert second.record.node == "kept"
    assert not any(event["step"]["major"] == 0 for event in Timeline(recorder.log))
