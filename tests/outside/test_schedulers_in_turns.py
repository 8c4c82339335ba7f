"""The real kube-scheduler takes part in Scenarios, pod by pod, and decides as ours does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubescene.runs.requests import read
from kubescene.testing.__main__ import main
from kubescene.testing.comparing_schedulers import Differences, OtherScheduler, command_of, ours
from kubescene.timeline.pod_facts import PodScheduled
from kubescene.types import JsonObject
from outside.puppets import Puppet, playing
from outside.random_scenarios import random_scenario
from outside_runs import create, done, scenario, stage
from real_programs import require_program

EXAMPLES = Path(__file__).parents[2] / "examples"
KUBE_SCHEDULER = {"name": "kube-scheduler", "kind": "scheduler", "timeout": "120s"}


@pytest.fixture(scope="module")
def binary() -> str:
    return str(require_program("kube-scheduler"))


@pytest.fixture
def other(binary: str) -> Iterator[OtherScheduler]:
    with OtherScheduler(command_of(binary)) as found:
        yield found


def node(name: str, cpu: int, memory: str = "8Gi") -> JsonObject:
    room = {"cpu": str(cpu), "memory": memory, "pods": "110"}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, cpu: str, memory: str = "128Mi", **spec: Any) -> JsonObject:
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    containers = [{"name": "c", "image": "i", "resources": requests}]
    body = {"containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def priority(value: int) -> JsonObject:
    metadata = {"name": f"priority-{value}"}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": metadata, "value": value}


def deployment(name: str, replicas: int, cpu: str) -> JsonObject:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("x", cpu)["spec"]}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    return {**kind, "metadata": {"name": name}, "spec": body}


UNEQUAL = [
    *(create(1, node(f"n{i}", 2 + i % 5, f"{4 + i % 3 * 2}Gi")) for i in range(10)),
    *(create(2 + i // 10, pod(f"p{i}", f"{200 + i * 137 % 700}m")) for i in range(30)),
    create(6, deployment("web", 6, "300m")),
    create(7, pod("huge", "7")),
    create(8, node("extra", 8, "16Gi")),
    done(9),
]
EQUAL = [
    create(1, node("n$(INDEX)", 4), count=10),
    create(2, pod("p$(INDEX)", "500m", "512Mi"), count=66),
    done(3),
]
MANY = [
    create(1, node("n$(INDEX)", 4), count=150),
    create(2, pod("p$(INDEX)", "300m", "200Mi"), count=61),
    done(3),
]
PREEMPTION = [
    *(create(1, priority(value)) for value in (*range(10, 90, 10), 100, 200, 300)),
    create(1, node("n$(INDEX)", 2), count=4),
    *(create(2, pod(f"low{i}", "1", priorityClassName=f"priority-{i * 10}")) for i in range(1, 9)),
    create(3, pod("one", "1", priorityClassName="priority-100")),
    create(4, pod("two", "1500m", priorityClassName="priority-200")),
    create(5, pod("three", "1", priorityClassName="priority-300")),
    done(6),
]


def volume(name: str, zone: str, size: str = "10Gi") -> JsonObject:
    where = {"key": "zone", "operator": "In", "values": [zone]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}}
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "by-hand",
        "csi": {"driver": "csi.example.com", "volumeHandle": name},
        "nodeAffinity": affinity,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name: str, storage_class: str, size: str = "10Gi") -> JsonObject:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, provisioner: str) -> JsonObject:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    mode = {"volumeBindingMode": "WaitForFirstConsumer"}
    return {**kind, "provisioner": provisioner, **mode}


def using(name: str, *claims: str) -> JsonObject:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return pod(name, "100m", volumes=volumes)


VOLUMES = [
    *(
        create(1, {**node(f"n{i}", 4), "metadata": {"name": f"n{i}", "labels": {"zone": zone}}})
        for i, zone in enumerate("aabb")
    ),
    create(1, storage_class("by-hand", "kubernetes.io/no-provisioner")),
    create(1, storage_class("made", "csi.example.com")),
    create(1, volume("small", "a", "1Gi")),
    create(1, volume("large", "b", "20Gi")),
    *(create(1, claim(f"made-{i}", "made")) for i in range(4)),
    *(create(1, claim(f"by-hand-{i}", "by-hand")) for i in range(3)),
    create(2, using("one", "made-0")),
    create(2, using("two", "by-hand-0", "made-1")),
    create(2, using("plain")),
    create(2, using("waits", "by-hand-1")),
    create(3, using("three", "made-2", "made-3")),
    create(3, volume("late", "a")),
    done(4),
]
RETRIES = [
    create(1, node("n0", 1)),
    create(2, pod("zulu", "2")),
    *(create(3 + i, node(f"n{1 + i}", 1)) for i in range(2)),
    create(5, pod("alpha", "2")),
    create(5, pod("mike", "8")),
    create(5, pod("lima", "2")),
    create(6, node("large", 8)),
    done(8),
]
SCENARIOS = {"unequal": UNEQUAL, "equal": EQUAL, "many": MANY, "preemption": PREEMPTION}


def story(name: str) -> JsonObject:
    made = scenario(SCENARIOS[name])
    del made["spec"]["controllers"]["outside"]
    return made


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_decision_is_that_of_our_scheduler(name: str, other: OtherScheduler) -> None:
    here = ours(story(name))
    assert len(here) >= 18
    assert list(Differences(here, other.play(story(name))).lines()) == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_random_scenarios_and_configurations_are_decided_alike(
    seed: int, binary: str, tmp_path: Path
) -> None:
    made = random_scenario(seed)
    config = tmp_path / "scheduler.yaml"
    config.write_text(yaml.safe_dump(made["spec"]["simulation"]["schedulerConfig"]))
    here = ours(made)
    assert len(here) >= 10
    with OtherScheduler(f"{binary} --config {config} {{settings}}") as other:
        assert list(Differences(here, other.play(made)).lines()) == []


def test_pods_are_tried_again_in_the_order_of_our_queue(other: OtherScheduler) -> None:
    made = scenario(RETRIES)
    del made["spec"]["controllers"]["outside"]
    here = ours(made)
    at_six = [each.pod for each in here if each.step.startswith("6.")]
    assert at_six == [f"default/{name}" for name in ("zulu", "alpha", "mike", "lima")]
    assert list(Differences(here, other.play(made)).lines()) == []


def test_devices_are_given_in_the_step_of_the_binding(other: OtherScheduler) -> None:
    made = read(EXAMPLES / "11-devices" / "scenario.yaml")
    here = ours(made)
    assert len(here) >= 4
    assert list(Differences(here, other.play(made)).lines()) == []


def test_pods_are_bound_after_the_volumes_that_were_chosen_for_them(
    other: OtherScheduler,
) -> None:
    made = scenario(VOLUMES)
    del made["spec"]["controllers"]["outside"]
    here = ours(made)
    assert [each.pod for each in here if each.what == "is bound to"] == [
        f"default/{name}" for name in ("one", "two", "plain", "three", "waits")
    ]
    assert list(Differences(here, other.play(made)).lines()) == []


@pytest.mark.parametrize("name", ["equal", "many"])
def test_plain_pods_given_at_once_are_decided_as_one_by_one(
    name: str, binary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many bindings as pods wait at once: that is no flood.
    monkeypatch.setattr("kubescene.outside.programs.MOST_HELD", 10)
    with stage() as made:
        made.start("kube-scheduler", f"{binary} {{settings}}", "scheduler")
        run = made.play(scenario(SCENARIOS[name], {**KUBE_SCHEDULER, "feed": "AllPods"}))
    assert (run.phase, run.message) == ("Succeeded", "")
    bound = [
        (str(fact.step), fact.name, fact.node)
        for fact in run.facts
        if isinstance(fact, PodScheduled)
    ]
    here = [each for each in ours(story(name)) if each.node]
    assert bound == [(each.step, each.pod.partition("/")[2], each.node) for each in here]


def test_it_is_parked_before_it_is_shown_anything() -> None:
    story = [create(1, node("n1", 4)), create(1, pod("p", "1")), done(2)]
    with stage() as made:
        puppet = Puppet(made, "kube-scheduler")
        puppet.watch("/api/v1/pods")
        puppet.watch("/api/v1/nodes")
        with playing(made, scenario(story, KUBE_SCHEDULER)) as play:
            first = puppet.next_event()["object"]["metadata"]
            assert first["name"] == "kubescene-park-1"
            status = f"/api/v1/namespaces/default/pods/{first['name']}/status"
            puppet.later("PATCH", status, {"status": {"phase": "Pending"}})
            assert puppet.next_event(1)["object"]["metadata"]["name"] == "n1"
            assert puppet.next_event()["object"]["metadata"]["name"] == "p"
            made.server.stop()
            play.failure()
            puppet.close()


def test_pods_that_come_with_the_nodes_meet_them_in_every_run(binary: str) -> None:
    """Its first turn: what it hears of pods must not be ahead of what it hears of nodes."""
    at_once = scenario(
        [
            *(create(1, node(f"n{i}", 4)) for i in range(9)),
            create(1, pod("p", "1", nodeSelector={"kubernetes.io/hostname": "n5"})),
            create(1, pod("q", "1")),
            done(2),
        ]
    )
    del at_once["spec"]["controllers"]["outside"]
    here = ours(at_once)
    assert len(here) == 2
    for _ in range(10):
        with OtherScheduler(command_of(binary)) as other:
            assert other.play(at_once) == here


def test_a_preemptor_whose_place_is_taken_preempts_again(other: OtherScheduler) -> None:
    """Its second failure says no more than to which node it is nominated now."""
    never = {**priority(2000), "preemptionPolicy": "Never"}
    made = scenario(
        [
            *(create(1, each) for each in (priority(10), priority(1000), never)),
            create(1, node("n$(INDEX)", 4), count=2),
            create(2, pod("low$(INDEX)", "3", priorityClassName="priority-10"), count=2),
            create(3, pod("never", "3", priorityClassName="priority-2000")),
            create(4, pod("high", "3", priorityClassName="priority-1000")),
            done(5),
        ]
    )
    del made["spec"]["controllers"]["outside"]
    here = ours(made)
    assert [each.pod for each in here if each.what == "leaves"] == ["default/low0", "default/low1"]
    there = other.play(made)
    assert sorted(each.pod for each in there if each.what == "leaves") == [
        "default/low0",
        "default/low1",
    ]
    assert [each.pod for each in there if each.node and each.what == "is bound to"] == [
        f"default/{name}" for name in ("low0", "low1", "never", "high")
    ]


def test_twenty_runs_are_alike(binary: str) -> None:
    few = scenario([*UNEQUAL[:25], done(9)])
    del few["spec"]["controllers"]["outside"]
    here = ours(few)
    for _ in range(20):
        with OtherScheduler(command_of(binary)) as other:
            assert other.play(few) == here


def test_it_is_told_by_what_it_was_judged(binary: str) -> None:
    with stage() as made:
        made.start("kube-scheduler", f"{binary} {{settings}}", "scheduler")
        run = made.play(scenario([*EQUAL[:1], done(2)], KUBE_SCHEDULER))
    assert run.status["outside"] == [
        {
            "name": "kube-scheduler",
            "kind": "scheduler",
            "judgedBy": ["park-pod", "still"],
            "sameBytes": True,
        }
    ]


def test_the_same_scenario_gives_the_same_bytes(binary: str) -> None:
    statuses = []
    for _ in range(2):
        with stage() as made:
            made.start("kube-scheduler", f"{binary} {{settings}}", "scheduler")
            run = made.play(scenario(UNEQUAL, KUBE_SCHEDULER))
            statuses.append(run.status["scenarioResult"])
    assert statuses[0] == statuses[1]


def test_compare_with_tells_what_differs(
    binary: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    equal, changed = tmp_path / "equal.yaml", tmp_path / "changed.yaml"
    few = scenario([*EQUAL[:1], create(2, pod("p$(INDEX)", "500m"), count=4), done(3)])
    del few["spec"]["controllers"]["outside"]
    equal.write_text(yaml.safe_dump(few))
    profile = {"plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}}}
    fit = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}}
    profile["pluginConfig"] = [{"name": "NodeResourcesFit", "args": fit}]  # type: ignore[assignment]
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    few["spec"]["simulation"] = {"schedulerConfig": {**head, "profiles": [profile]}}
    changed.write_text(yaml.safe_dump(few))
    assert main(["compare-with", binary, str(equal)]) == 0
    assert "4 decisions, equal" in capsys.readouterr().out
    assert main(["compare-with", binary, str(changed)]) == 1
    told = capsys.readouterr().out
    assert "4 decisions, different" in told
    assert "decision 2\n    ours   2.2 default/p1 is bound to n" in told


def test_compare_with_goes_on_after_a_file_that_cannot_be_played(
    binary: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
    few = scenario([*EQUAL[:1], create(2, pod("p$(INDEX)", "500m"), count=4), done(3)])
    del few["spec"]["controllers"]["outside"]
    good.write_text(yaml.safe_dump(few))
    few["spec"]["operations"].insert(1, create(2, node("n1", 4)))
    bad.write_text(yaml.safe_dump(few))
    assert main(["compare-with", binary, str(bad), str(good)]) == 2
    told = capsys.readouterr()
    assert f"{bad}: " in told.err
    assert f"{good}: 4 decisions, equal" in told.out
