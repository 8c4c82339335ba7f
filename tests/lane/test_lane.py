"""Like pods that go through the lane leave behind what the long way leaves, byte for byte."""

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

import kubescene
from kubescene.instruments import Instrument, StepPhaseChange
from kubescene.runs.requests import RunRequest, read
from kubescene.runs.staging import stage
from kubescene.scenario.engine import Engine
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing import make_node, make_pod
from lane.both_ways import changes, compared, counts, deployment, nodes, pod, records
from random_scenarios import random_scenario, random_scenarios

MANY = 250
"""Nodes: more than those up to which every attempt is explained."""


def test_counted_pods_go_through_all_but_the_last(tmp_path: Path) -> None:
    scenario = nodes(MANY).create(pod(), count=200).done()
    found = compared(scenario, tmp_path)
    assert (found.pods, found.shown) == (199, 1)
    assert found.created > 190
    assert set(found.left) == {"the last pod"}


def test_pods_that_name_no_node_in_so_many_words_are_bound_the_long_way(tmp_path: Path) -> None:
    unusual = pod().build()
    unusual["spec"] = {"nodeName": "", **unusual["spec"]}
    found = compared(nodes(MANY).create(unusual, count=10).done(), tmp_path)
    assert (found.pods, found.left["an unusual binding"]) == (0, 9)


def test_pods_that_find_no_room_leave_the_lane_and_those_before_them_are_as_ever(
    tmp_path: Path,
) -> None:
    built = nodes(MANY, cpu="1").create(pod(cpu="300m"), count=3 * MANY + 20)
    found = compared(built.step(3).create(pod("late", "100m"), count=5).done(), tmp_path)
    assert found.pods >= 3 * MANY
    assert found.left["more than a binding"] > 0


def test_pods_of_deployments_go_through_and_their_owners_count_every_one(tmp_path: Path) -> None:
    scenario = nodes(MANY).create(deployment(70)).create(deployment(30, "api")).done()
    assert compared(scenario, tmp_path).pods == 99


def test_several_classes_take_turns_in_one_queue(tmp_path: Path) -> None:
    built = nodes(MANY)
    for turn in range(30):
        for cpu in ("100m", "200m", "1"):
            built.create(make_pod(f"pod-{cpu}-{turn}").cpu(cpu).memory("1Gi"))
    assert compared(built.done(), tmp_path).pods == 89


@pytest.mark.parametrize("explain", ["Full", "Failures", "Off", "Auto"])
def test_explanations_are_the_same_at_every_level(explain: str, tmp_path: Path) -> None:
    scenario = nodes(30).create(pod(), count=150).settings(explain=explain).done()
    assert compared(scenario, tmp_path).pods == 149


def test_pods_that_like_each_other_are_no_longer_alike_once_there_is_one(tmp_path: Path) -> None:
    host = "kubernetes.io/hostname"
    fond = pod().near(host, weight=100, app="fond").labels({"app": "fond"})
    assert compared(nodes(MANY).create(fond, count=40).done(), tmp_path).pods == 39


def test_pods_carry_the_zone_and_region_of_their_nodes(tmp_path: Path) -> None:
    def labeled(node: Any) -> Any:
        return node.zone("east").labels({"topology.kubernetes.io/region": "r1"})

    built = nodes(40, labeled=labeled).create(deployment(60)).create(pod(), count=60)
    assert compared(built.done(), tmp_path).pods == 119


@pytest.mark.parametrize(
    "delays",
    [{"startDelay": "3s"}, {"readyDelay": "20s"}, {"startDelay": "1s", "readyDelay": "2s"}],
    ids=str,
)
def test_pods_that_take_time_to_start_are_bound_in_the_lane(
    delays: dict[str, str], tmp_path: Path
) -> None:
    built = nodes(MANY).create(pod(), count=80).create(deployment(20)).advance("1m")
    found = compared(built.settings(kubelet=delays).done(), tmp_path)
    assert found.pods == 99


LIVES = [
    pytest.param({"run-time": "10s"}, {}, id="alike"),
    pytest.param({"run-time": "7300ms", "exit-code": "3"}, {}, id="failing"),
    pytest.param({"run-time": "{uniform: {min: 1s, max: 40s}}"}, {}, id="drawn"),
    pytest.param({"start-time": "3s", "run-time": "0s"}, {}, id="late, and over at once"),
    pytest.param({"pull-time": "4s", "pull-failures": "1"}, {}, id="pulled"),
    pytest.param({"run-time": "5s", "exit-code": "1"}, {"restartPolicy": "Always"}, id="crashing"),
    pytest.param({"ready-time": "2s"}, {"activeDeadlineSeconds": 9}, id="cut off"),
    pytest.param({}, {"readinessGates": [{"conditionType": "example.com/gate"}]}, id="gated"),
]


@pytest.mark.parametrize(("said", "spec"), LIVES)
def test_pods_with_a_life_of_their_own_are_bound_in_the_lane(
    said: dict[str, str], spec: dict[str, Any], tmp_path: Path
) -> None:
    """Their kubelet has its turn, and the plain ones between them need none."""
    made = pod("life").build()
    if said:
        made["metadata"]["annotations"] = {f"kubescene.dev/{name}": said[name] for name in said}
    made["spec"] = {"restartPolicy": "Never", **made["spec"], **spec}
    built = nodes(30).create(made, count=12).create(pod(), count=6).create(deployment(4))
    built.step(3).advance("8s").step(4).delete("v1", "Pod", "life-3").advance("2m")
    assert compared(built.done(), tmp_path).pods == 21


def test_of_pods_that_are_alike_only_some_are_said_to_end(tmp_path: Path) -> None:
    built = nodes(30)
    for turn in range(12):
        made = make_pod(f"pod-{turn}").cpu("100m").memory("1Gi")
        built.create(made.annotate({"kubescene.dev/run-time": "5s"}) if turn % 3 == 1 else made)
    found = compared(built.step(3).advance("1m").done(), tmp_path)
    assert (found.pods, found.shown) == (11, 1 + 4)


def test_pods_of_jobs_are_bound_in_the_lane(tmp_path: Path) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job-$(INDEX)"}}
    template = {
        "metadata": {"annotations": {"kubescene.dev/run-time": "30s"}},
        "spec": {**pod().build()["spec"], "restartPolicy": "Never"},
    }
    built = nodes(MANY).create({**job, "spec": {"template": template, "completions": 2}}, count=15)
    found = compared(built.step(3).advance("5m").done(), tmp_path)
    assert (found.pods, found.shown) == (28, 28)


def test_deletion_and_preemption_right_after_see_the_pods_as_ever(tmp_path: Path) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
    built = nodes(3, cpu="4").create({**high, "metadata": {"name": "high"}})
    built.create(pod(cpu="1"), count=12).step(3).create(pod("top", "3").priority_class("high"))
    built.step(4).delete("v1", "Pod", "pod-3").create(pod("next", "500m"), count=4)
    assert compared(built.advance("1m").done(), tmp_path).pods > 10


def volumes(name: str, storage_class: str, count: int) -> list[tuple[dict[str, Any], int]]:
    """Claims, each bound to a volume of its own, or to be bound with its pod."""
    bound = not storage_class
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    place = {"namespace": "default", "name": f"{name}-$(INDEX)"}
    source = {"csi": {"driver": "disk.example.com", "volumeHandle": "v-$(INDEX)"}}
    volume = {"capacity": {"storage": "1Gi"}, **spec, **source}
    claim = {"resources": {"requests": {"storage": "1Gi"}}, **spec}
    if bound:
        volume, claim = {**volume, "claimRef": place}, {**claim, "volumeName": f"{name}-$(INDEX)"}
    own = {"apiVersion": "v1", "metadata": {"name": place["name"]}}
    return [
        ({**own, "kind": "PersistentVolume", "spec": volume}, count),
        ({**own, "kind": "PersistentVolumeClaim", "spec": claim}, count),
    ]


def with_claim(name: str, claim: str) -> Any:
    made = pod(name).build()
    source = {"persistentVolumeClaim": {"claimName": f"{claim}-$(INDEX)"}}
    made["spec"]["volumes"] = [{"name": "data", **source}]
    return made


def test_pods_whose_volumes_are_bound_go_through_and_those_bound_with_their_pod_do_not(
    tmp_path: Path,
) -> None:
    built = nodes(MANY)
    later: dict[str, Any] = {"provisioner": "kubernetes.io/no-provisioner"}
    later |= {"volumeBindingMode": "WaitForFirstConsumer", "metadata": {"name": "later"}}
    built.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **later})
    for each, count in (*volumes("bound", "", 60), *volumes("free", "later", 10)):
        built.create(each, count=count)
    built.step(3).create(with_claim("first", "bound"), count=40).create(pod(), count=20)
    built.step(4).create(with_claim("waits", "free"), count=10)
    built.create(with_claim("lost", "nowhere"), count=3)
    built.step(5).create(with_claim("second", "bound"), count=60)
    found = compared(built.advance("1m").done(), tmp_path)
    assert found.pods > 100
    assert 0 < found.left["more than a binding"] < 5
    assert found.left["those like it take more than a binding"] > 8


def test_pods_that_fail_one_after_the_other_ask_no_more_until_one_is_bound(tmp_path: Path) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100}
    built = nodes(20, cpu="2").create({**high, "metadata": {"name": "high"}})
    built.create(pod(cpu="1"), count=40).step(3)
    built.create(pod("top", "2").priority_class("high"), count=10).step(4)
    node = make_node("late-$(INDEX)").cpu("32").memory("256Gi")
    built.create(node, count=5).create(pod("more", "2").priority_class("high"), count=20)
    found = compared(built.done(), tmp_path)
    assert found.left["more than a binding"] == 1
    assert found.left["those like it take more than a binding"] > 8
    assert found.pods == 39 + 18


@pytest.mark.parametrize("seed", range(100, 112))
def test_scenarios_made_by_lot(seed: int, tmp_path: Path) -> None:
    compared(random_scenario(seed, pods=200, nodes=40), tmp_path)


@given(random_scenarios(pods=120, nodes=30))
@settings(max_examples=12, deadline=None)
def test_worlds_that_hypothesis_makes(scenario: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        compared(scenario, Path(folder))


# -- bunches ---------------------------------------------------------------------------------------


def test_an_instance_whose_name_is_taken_ends_the_run_with_the_same_words(tmp_path: Path) -> None:
    built = nodes(3).create(make_pod("pod-70").cpu("1"))
    found = compared(built.create(pod(), count=100).done(), tmp_path)
    assert found.created == 68


def test_instances_that_differ_in_more_than_their_names_are_created_one_by_one(
    tmp_path: Path,
) -> None:
    built = nodes(3).create(pod().labels({"number": "n-$(INDEX)"}), count=20)
    assert compared(built.done(), tmp_path).created == 0


def test_names_that_are_refused_are_refused_by_the_rule(tmp_path: Path) -> None:
    built = nodes(3).create(make_pod("pod_$(INDEX)").cpu("1"), count=3)
    assert compared(built.done(), tmp_path).created == 0


# -- forks, and those who look on ------------------------------------------------------------------


def staged(scenario: Any) -> Engine:
    return stage(RunRequest(scenario=read(scenario))).engine


def test_a_fork_between_two_chunks_goes_on_alike() -> None:
    engine = staged(nodes(MANY).create(pod(), count=400).done())
    for moment in engine.play():
        if moment.step.minor > 150:
            break
    fork = engine.fork()
    assert 150 < fork.scenario.step.minor < 400
    for each in (engine, fork):
        each.run()
    worlds = [each.world for each in (engine, fork) if isinstance(each.world, kubescene.Cluster)]
    assert records(worlds[0]) == records(worlds[1])
    assert changes(worlds[0]) == changes(worlds[1])
    plain = kubescene.run(nodes(MANY).create(pod(), count=400).done(), plain=True)
    assert records(worlds[0]) == records(plain.cluster)


@pytest.mark.parametrize("delays", [{}, {"startDelay": "3s"}], ids=str)
def test_a_served_world_shows_every_phase_in_the_same_revisions(delays: dict[str, str]) -> None:
    built = nodes(30, cpu="4").create(pod(), count=60).create(deployment(20))
    built.step(3).create(pod("large", "3"), count=40).step(4).create(pod("late"), count=3)
    document = read(built.advance("1m").settings(kubelet=delays).done())
    runs = []
    for shortcuts in (ALL, PLAIN):
        run = stage(RunRequest(scenario=deepcopy(document), shortcuts=shortcuts))
        run.cluster.store.own()
        run.engine.run()
        runs.append(run)
    fast, plain = (run.cluster for run in runs)
    assert changes(fast) == changes(plain)
    assert records(fast) == records(plain)
    assert fast.lane is not None
    assert fast.lane.counts.pods > 70


def test_a_world_can_be_copied_after_the_lane_was_used() -> None:
    run = kubescene.run(nodes(MANY).create(pod(), count=80).done())
    twin = deepcopy(run.cluster)
    assert twin.lane is not None
    assert twin.lane.counts.pods == 79
    assert records(twin) == records(run.cluster)


class EveryPhase(Instrument):
    """Wants to see every change of phase."""

    def __init__(self) -> None:
        self.seen: list[StepPhaseChange] = []

    def phase_changed(self, change: StepPhaseChange) -> None:
        self.seen.append(change)


def test_whoever_wants_to_see_every_phase_keeps_the_lane_closed() -> None:
    scenario = nodes(MANY).create(pod(), count=30).done()
    onlookers = [EveryPhase(), EveryPhase()]
    run = kubescene.run(scenario, instruments=[onlookers[0]])
    kubescene.run(scenario, instruments=[onlookers[1]], plain=True)
    assert counts(run).pods == 0
    assert counts(run).left["an instrument looks on"] > 0
    assert onlookers[0].seen == onlookers[1].seen
