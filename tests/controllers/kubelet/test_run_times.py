"""Containers that end by themselves: run times, exit codes, restarts and their back-off."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kubescene
from kubescene.clock import SECOND, parse_time
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour, annotated, read_workload
from kubescene.errors import ScenarioError
from kubescene.scenario.simulation import parse_simulation
from kubescene.scenario.spec import parse_spec
from kubescene.scenario.validation.unsimulated import Players, unsimulated
from kubescene.scheduler import SchedulerOptions
from kubescene.shortcuts import PLAIN
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

RUN_TIME = "kubescene.dev/run-time"
EXIT_CODE = "kubescene.dev/exit-code"


def world(*workloads: JsonObject, **options: Any) -> Cluster:
    read = tuple(read_workload(each) for each in workloads)
    cluster = Cluster(ClusterOptions(workloads=read, **options))
    cluster.create(make_node("n"))
    return cluster


def pod(name: str = "a", policy: str = "Always", **annotations: str) -> JsonObject:
    made = make_pod(name).build()
    named = {"run_time": RUN_TIME, "exit_code": EXIT_CODE}
    metadata = {**made["metadata"], "annotations": {named[k]: v for k, v in annotations.items()}}
    metadata["labels"] = {"app": name}
    return {**made, "metadata": metadata, "spec": {**made["spec"], "restartPolicy": policy}}


def status(cluster: Cluster, name: str = "a") -> JsonObject:
    found: JsonObject = cluster.get("pods", name)["status"]
    return found


def of_two(made: JsonObject) -> JsonObject:
    containers = [{"name": name, "image": "i"} for name in ("main", "side")]
    return {**made, "spec": {**made["spec"], "containers": containers}}


def containers_of(cluster: Cluster) -> list[JsonObject]:
    found: list[JsonObject] = status(cluster)["containerStatuses"]
    return found


def state(cluster: Cluster, name: str = "a") -> JsonObject:
    found: JsonObject = status(cluster, name)["containerStatuses"][0]
    return found


def conditions(cluster: Cluster, name: str = "a") -> dict[str, tuple[str, str | None]]:
    found = status(cluster, name)["conditions"]
    return {each["type"]: (each["status"], each.get("reason")) for each in found}


def test_a_pod_that_never_restarts_succeeds_when_its_time_is_over() -> None:
    cluster = world()
    cluster.create(pod(policy="Never", run_time="30s"))
    cluster.settle()
    assert status(cluster)["phase"] == "Running"
    cluster.advance("29s")
    assert status(cluster)["phase"] == "Running"
    cluster.advance("1s")
    assert status(cluster)["phase"] == "Succeeded"
    ended = state(cluster)["state"]["terminated"]
    assert ended == {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:30Z",
    }
    assert conditions(cluster)["Ready"] == ("False", "PodCompleted")
    assert not state(cluster)["ready"]


def test_a_pod_whose_container_fails_has_failed() -> None:
    cluster = world()
    cluster.create(pod(policy="Never", run_time="30s", exit_code="3"))
    cluster.settle()
    cluster.advance("1m")
    assert status(cluster)["phase"] == "Failed"
    ended = state(cluster)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    assert conditions(cluster)["ContainersReady"] == ("False", "PodFailed")


def test_what_ends_at_once_needs_no_time() -> None:
    cluster = world()
    cluster.create(pod(policy="Never", run_time="0s"))
    cluster.settle()
    assert status(cluster)["phase"] == "Succeeded"


def test_only_failures_are_restarted_if_the_policy_says_so() -> None:
    cluster = world()
    cluster.create(pod("well", policy="OnFailure", run_time="5s"))
    cluster.create(pod("ill", policy="OnFailure", run_time="5s", exit_code="1"))
    cluster.settle()
    cluster.advance("6s")
    assert status(cluster, "well")["phase"] == "Succeeded"
    assert status(cluster, "ill")["phase"] == "Running"
    assert state(cluster, "ill")["restartCount"] == 1


def test_restarts_are_put_off_longer_and_longer() -> None:
    """At once, then 10 s after the end, 20 s, ... as a kubelet does; at most 5 minutes."""
    cluster = world()
    cluster.create(pod(run_time="1s", exit_code="1"))
    cluster.settle()
    begun: list[int] = []
    for second in range(1200):
        cluster.advance("1s")
        running = state(cluster)["state"].get("running")
        if running and len(begun) < state(cluster)["restartCount"]:
            begun.append(second + 1)
    ends = [1, *(each + 1 for each in begun)]
    waits = [start - end for end, start in zip(ends, begun, strict=False)]
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_container_that_waits_for_its_restart_says_so() -> None:
    cluster = world()
    cluster.create(pod(run_time="1s", exit_code="1"))
    cluster.settle()
    cluster.advance("5s")
    uid = cluster.get("pods", "a")["metadata"]["uid"]
    told = state(cluster)
    assert told["state"]["waiting"] == {
        "reason": "CrashLoopBackOff",
        "message": f"back-off 10s restarting failed container={told['name']} pod=a_default({uid})",
    }
    assert told["lastState"]["terminated"]["exitCode"] == 1
    assert not told["ready"]
    assert status(cluster)["phase"] == "Running"
    assert conditions(cluster)["Ready"] == ("False", "ContainersNotReady")
    cluster.advance("7s")
    assert conditions(cluster)["Ready"] == ("True", None)


def test_a_container_that_ran_for_long_is_restarted_at_once() -> None:
    cluster = world()
    cluster.create(pod(run_time="11m"))
    cluster.settle()
    for restarts in (1, 2, 3):
        cluster.advance("11m")
        assert state(cluster)["restartCount"] == restarts
        assert "running" in state(cluster)["state"]


def test_a_restarted_container_is_ready_after_its_delay() -> None:
    cluster = world(kubelet=KubeletDelays(ready=3 * SECOND))
    cluster.create(pod(run_time="10s"))
    cluster.settle()
    seen = []
    for _ in range(14):
        cluster.advance("1s")
        seen.append(conditions(cluster)["Ready"][0])
    assert seen == ["False"] * 2 + ["True"] * 7 + ["False"] * 3 + ["True"] * 2


def test_a_pod_that_is_active_for_too_long_fails() -> None:
    cluster = world()
    made = make_pod("a").build()
    cluster.create({**made, "spec": {**made["spec"], "activeDeadlineSeconds": 20}})
    cluster.settle()
    cluster.advance("19s")
    assert status(cluster)["phase"] == "Running"
    cluster.advance("1s")
    assert (status(cluster)["phase"], status(cluster)["reason"]) == ("Failed", "DeadlineExceeded")
    assert state(cluster)["state"]["terminated"]["exitCode"] == 137


def test_workloads_are_chosen_by_labels_and_namespace_and_the_first_counts() -> None:
    cluster = world(
        {"selector": {"matchLabels": {"app": "a"}}, "namespace": "other", "runTime": "1s"},
        {"selector": {"matchLabels": {"app": "a"}}, "runTime": "20s"},
        {"runTime": "40s"},
    )
    for name in ("a", "b"):
        cluster.create(pod(name, policy="Never"))
    cluster.settle()
    phases = []
    for _ in range(3):
        cluster.advance("15s")
        phases.append([status(cluster, name)["phase"] for name in ("a", "b")])
    assert phases == [["Running", "Running"], ["Succeeded", "Running"], ["Succeeded", "Succeeded"]]


def test_single_containers_may_differ() -> None:
    cluster = world({"runTime": "10s", "containers": [{"name": "main", "runTime": "50s"}]})
    cluster.create(of_two(pod(policy="Never")))
    cluster.settle()
    cluster.advance("10s")
    assert ["running" in each["state"] for each in containers_of(cluster)] == [True, False]
    assert status(cluster)["phase"] == "Running"
    cluster.advance("40s")
    assert status(cluster)["phase"] == "Succeeded"


def test_a_pod_has_failed_if_one_of_its_containers_has() -> None:
    cluster = world({"runTime": "10s", "containers": [{"name": "main", "exitCode": 2}]})
    cluster.create(of_two(pod(policy="Never")))
    cluster.settle()
    cluster.advance("10s")
    assert status(cluster)["phase"] == "Failed"
    codes = [each["state"]["terminated"]["exitCode"] for each in containers_of(cluster)]
    assert codes == [2, 0]


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    cluster = world({"runTime": "1h", "containers": [{"name": "main", "runTime": "4s"}]})
    cluster.create(of_two(pod()))
    cluster.settle()
    cluster.advance("9s")
    assert [each["restartCount"] for each in containers_of(cluster)] == [1, 0]
    ready = [each for each in status(cluster)["conditions"] if each["type"] == "Ready"]
    assert ready[0]["message"] == "containers with unready status: [main]"
    assert ready[0]["lastTransitionTime"] == "2026-01-01T00:00:08Z"
    scheduled = [each for each in status(cluster)["conditions"] if each["type"] == "Initialized"]
    assert scheduled[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_every_run_of_a_container_draws_anew() -> None:
    cluster = world({"runTime": {"uniform": {"min": "11m", "max": "10h"}}})
    cluster.create(pod())
    cluster.settle()
    begun = [state(cluster)["state"]["running"]["startedAt"]]
    while len(begun) < 4:
        cluster.advance("10m")
        if begun[-1] != (now := state(cluster)["state"]["running"]["startedAt"]):
            begun.append(now)
    times = [parse_time(each) for each in begun]
    assert len({after - before for before, after in pairwise(times)}) == 3


def test_pods_like_one_without_behaviour_have_theirs() -> None:
    """What is known of a plain pod is not taken for one that differs in its annotations alone."""
    cluster = world()
    for number in range(4):
        cluster.create(pod(f"plain-{number}", policy="Never"))
        cluster.create(pod(f"short-{number}", policy="Never", run_time="5s"))
    cluster.settle()
    cluster.advance("5s")
    phases = {each["metadata"]["name"]: each["status"]["phase"] for each in cluster.list("pods")}
    assert [phases[f"plain-{number}"] for number in range(4)] == ["Running"] * 4
    assert [phases[f"short-{number}"] for number in range(4)] == ["Succeeded"] * 4


def test_annotations_win_over_the_list() -> None:
    cluster = world({"runTime": "10s", "exitCode": 7})
    cluster.create(pod(policy="Never", run_time="20s"))
    cluster.settle()
    cluster.advance("10s")
    assert status(cluster)["phase"] == "Running"
    cluster.advance("10s")
    assert state(cluster)["state"]["terminated"]["exitCode"] == 7


def test_an_annotation_that_cannot_be_read_is_told_and_nothing_ends() -> None:
    cluster = world(events=True)
    cluster.create(pod(policy="Never", run_time="soon"))
    cluster.settle()
    cluster.advance("30m")
    assert status(cluster)["phase"] == "Running"
    told = [each for each in cluster.list("events") if each["reason"] == "InvalidBehaviour"]
    assert [each["type"] for each in told] == ["Warning"]
    assert "annotation kubescene.dev/run-time: 'soon' is not a duration" in told[0]["message"]


DRAWN = {"runTime": {"exponential": {"mean": "2m"}}, "exitCode": {"empirical": {"values": [0, 1]}}}


def drawn_world(seed: int = 0, names: tuple[str, ...] = ("a", "b", "c"), **more: Any) -> Cluster:
    cluster = world(DRAWN, seed=seed, **more)
    for name in names:
        cluster.create(pod(name))
    return cluster.settle()


def pods_of(cluster: Cluster) -> list[JsonObject]:
    found = [cluster.get("pods", name) for name in ("a", "b", "c")]
    return [{**each["status"], "uid": each["metadata"]["uid"]} for each in found]


@settings(deadline=None, max_examples=15)
@given(st.lists(st.integers(1, 900), min_size=1, max_size=6))
def test_however_time_is_cut_the_same_becomes_of_pods(seconds: list[int]) -> None:
    whole, pieces, plain = drawn_world(), drawn_world(), drawn_world(shortcuts=PLAIN)
    for each in seconds:
        pieces.advance(f"{each}s")
    fork = whole.fork()
    for cluster in (whole, fork, plain):
        cluster.advance(f"{sum(seconds)}s")
    assert pods_of(whole) == pods_of(pieces) == pods_of(fork) == pods_of(plain)


def test_seeds_change_what_is_drawn_and_other_pods_do_not() -> None:
    one, other = drawn_world(), drawn_world(seed=1)
    more = drawn_world(names=("z", "c", "b", "a"))
    for cluster in (one, other, more):
        cluster.advance("1h")
    restarts = [
        [status(cluster, name)["containerStatuses"][0]["restartCount"] for name in "abc"]
        for cluster in (one, other, more)
    ]
    assert restarts[0] != restarts[1]
    assert restarts[0] == restarts[2]


SCENARIO: JsonObject = {
    "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
    "kind": "Scenario",
    "metadata": {"name": "batch"},
    "spec": {
        "simulation": {"workloads": [{"selector": {"matchLabels": {"app": "batch"}}}]},
        "operations": [
            {"id": "n", "step": 1, "createOperation": {"object": make_node("n").build()}},
            {
                "id": "job",
                "step": 1,
                "createOperation": {
                    "object": {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "metadata": {"name": "sums"},
                        "spec": {
                            "completions": 6,
                            "parallelism": 2,
                            "template": {
                                "metadata": {"labels": {"app": "batch"}},
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [{"name": "c", "image": "i"}],
                                },
                            },
                        },
                    }
                },
            },
            {"id": "time", "step": 2, "advanceOperation": {"duration": "10m"}},
            {"id": "end", "step": 2, "doneOperation": {}},
        ],
    },
}


def scenario(**behaviour: Any) -> JsonObject:
    spec = SCENARIO["spec"]
    workload = {**spec["simulation"]["workloads"][0], **behaviour}
    return {**SCENARIO, "spec": {**spec, "simulation": {"workloads": [workload]}}}


def warnings(document: JsonObject) -> list[str]:
    spec = parse_spec(document)
    players = Players.of(spec, ("job", "kubelet"), SchedulerOptions())
    return [each.what for each in unsimulated(spec, players)]


@pytest.mark.parametrize("plain", [False, True])
def test_a_job_of_a_scenario_runs_and_is_complete(plain: bool) -> None:
    result = kubescene.run(scenario(runTime="2m"), plain=plain)
    assert result.phase == "Succeeded"
    done = result.cluster.get("jobs", "sums")["status"]
    assert done["succeeded"] == 6
    assert done["completionTime"] == "2026-01-01T00:06:00Z"


def test_a_job_of_which_nobody_says_how_long_it_runs_is_warned_of() -> None:
    assert warnings(scenario()) == ["completion of a Job"]
    assert not warnings(scenario(runTime="2m"))
    assert not warnings(scenario(containers=[{"name": "c", "runTime": "2m"}]))


def test_an_annotation_that_says_nothing_is_warned_of_before_the_run() -> None:
    made = pod(run_time="soon")
    create = {"id": "p", "step": 1, "createOperation": {"object": made}}
    spoilt = {**SCENARIO, "spec": {"operations": [create]}}
    assert warnings(spoilt) == ["annotation kubescene.dev/run-time of a Pod"]


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"runtime": "1s"}, "unknown field runtime; did you mean runTime?"),
        ({"runTime": "-1s"}, "runTime: "),
        ({"runTime": {"gamma": {}}}, "runTime: must name one of"),
        ({"exitCode": 256}, "exitCode: must be a whole number from 0 to 255"),
        ({"exitCode": True}, "exitCode: must be a whole number"),
        ({"selector": "app=a"}, "selector: must be an object"),
        ({"selector": {"labels": {}}}, "selector: unknown field labels"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "selector: "),
        ({"containers": {"a": {}}}, "containers: must be a list"),
        ({"containers": [{"runTime": "1s"}]}, r"containers\[0\].name: "),
        ({"containers": [{"name": "a", "runTime": "x"}]}, r"containers\[0\].runTime: 'x'"),
        ({"containers": [{"name": "a"}, {"name": "a"}]}, r"containers\[1\].name: "),
        ("all", "must be an object"),
    ],
)
def test_faults_name_their_field(workload: object, words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as told:
        parse_simulation({"workloads": [workload]})
    assert told.value.path is not None
    assert tuple(told.value.path)[:4] == ("spec", "simulation", "workloads", 0)


def test_annotations_of_others_say_nothing() -> None:
    assert annotated({"kubescene.dev/note": "1s"}) is None


def test_a_workload_without_a_selector_is_every_pod() -> None:
    every: WorkloadBehaviour = read_workload({"runTime": "1s"})
    assert every.is_of("anywhere", {})
