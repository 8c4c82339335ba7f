"""Between any two moments a scenario can be looked at, edited, stopped."""

import pytest

from kubescene.cluster import Cluster
from kubescene.errors import NotFoundError
from kubescene.scenario import ScenarioBuilder, ScenarioPhase
from kubescene.testing import make_node, make_pod
from playing import begun


def crowd() -> ScenarioBuilder:
    return (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("64").pods("100"))
        .create(make_pod("p-$(INDEX)").cpu("100m"), count=20)
        .next_step()
        .create(make_pod("last").cpu("100m"))
        .done()
    )


def test_every_object_and_every_loop_is_a_moment_of_its_own(cluster: Cluster) -> None:
    engine = begun(cluster, crowd())
    counts = [(len(cluster.list("pods")), bound(cluster)) for _ in engine.play()]
    assert {(pods, 0) for pods in range(21)} <= set(counts)
    assert {(20, placed) for placed in range(21)} <= set(counts)
    assert engine.scenario.phase is ScenarioPhase.SUCCEEDED


def bound(cluster: Cluster) -> int:
    return sum("nodeName" in pod["spec"] for pod in cluster.list("pods"))


def test_an_edit_between_any_two_moments_is_kept(cluster: Cluster) -> None:
    engine = begun(cluster, crowd())
    edits = 0
    for _ in engine.play():
        edits += 1
        cluster.patch("scenarios", "s", {"metadata": {"annotations": {"edit": str(edits)}}})
        stored = cluster.get("scenarios", "s")
        assert stored["metadata"]["annotations"] == {"edit": str(edits)}
    final = cluster.get("scenarios", "s")
    assert final["status"]["phase"] == "Succeeded"
    assert final["metadata"]["annotations"] == {"edit": str(edits)}
    assert len(final["spec"]["operations"]) == 4


def test_an_edit_of_the_spec_is_kept_and_the_status_goes_on(cluster: Cluster) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    for _ in range(30):
        next(moments)
    operations = cluster.get("scenarios", "s")["spec"]["operations"]
    added = {"id": "late", "step": 9, "createOperation": {"object": make_pod("late").build()}}
    patch = {"spec": {"operations": [*operations, added]}}
    cluster.patch("scenarios", "s", patch)
    for _ in moments:
        pass
    final = cluster.get("scenarios", "s")
    assert final["spec"]["operations"][-1]["id"] == "late"
    assert final["status"]["phase"] == "Succeeded"
    assert list(final["status"]["scenarioResult"]["timeline"]) == ["1", "2"]


def test_a_deleted_scenario_stops_and_its_objects_stay(cluster: Cluster) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    for _ in range(30):
        next(moments)
    cluster.delete("scenarios", "s")
    for _ in moments:
        pass
    assert engine.is_over
    assert 0 < bound(cluster) < 20
    with pytest.raises(NotFoundError):
        cluster.get("scenarios", "s")
    cluster.create(make_pod("free"))  # nobody keeps outsiders away any more


def test_a_scenario_that_is_deleted_and_fails_at_once_only_stops(cluster: Cluster) -> None:
    broken = crowd().step(1).create(make_pod("p-0"))
    engine = begun(cluster, broken)
    moments = engine.play()
    while len(cluster.list("pods")) < 20:
        next(moments)
    cluster.delete("scenarios", "s")
    for _ in moments:
        pass
    assert engine.is_over
    assert engine.scenario.phase is ScenarioPhase.FAILED


def test_a_scenario_of_the_same_name_is_another_one(cluster: Cluster) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    next(moments)
    cluster.delete("scenarios", "s")
    cluster.create(crowd())
    for _ in moments:
        pass
    assert "status" not in cluster.get("scenarios", "s")


def test_playing_can_be_left_and_taken_up_again(cluster: Cluster) -> None:
    engine = begun(cluster, crowd())
    for _ in range(10):
        next(engine.play())
    assert not engine.is_over
    assert engine.run() is ScenarioPhase.SUCCEEDED
