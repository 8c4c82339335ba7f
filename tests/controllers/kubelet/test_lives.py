"""Pods that behave: starts, init containers and sidecars, probes, pulls, kills, terminations."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.clock import parse_time
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.controllers.kubelet.behaviour import in_vain, is_certain, read_workload
from kubescene.controllers.kubelet.lives import DueStatus, Lives
from kubescene.errors import NotFoundError
from kubescene.shortcuts import PLAIN
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

BEGIN = parse_time("2026-01-01T00:00:00Z")


def world(*workloads: JsonObject, **options: Any) -> Cluster:
    read = tuple(read_workload(each) for each in workloads)
    cluster = Cluster(ClusterOptions(workloads=read, **options))
    node = make_node("n").cpu("8").memory("16Gi").build()
    node["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    cluster.create(node)
    return cluster


def pod(name: str = "a", **spec: Any) -> JsonObject:
    made = make_pod(name).build()
    containers = [{"name": "main", "image": "web:1"}]
    return {**made, "spec": {**made["spec"], "containers": containers, **spec}}


def with_probe(kind: str, **fields: Any) -> JsonObject:
    probe = {"httpGet": {"port": 80}, "periodSeconds": 5, **fields}
    return pod(containers=[{"name": "main", "image": "web:1", kind: probe}])


def begun(cluster: Cluster, made: JsonObject) -> Cluster:
    cluster.create(made)
    return cluster.settle()


def status(cluster: Cluster, name: str = "a") -> JsonObject:
    found: JsonObject = cluster.get("pods", name)["status"]
    return found


def containers(cluster: Cluster) -> dict[str, JsonObject]:
    found = status(cluster)
    told = [*found.get("initContainerStatuses", ()), *found["containerStatuses"]]
    return {each["name"]: each for each in told}


def states(cluster: Cluster) -> str:
    """The container states of pod ``a`` in a word each."""
    return " ".join(_word(each) for each in containers(cluster).values())


def _word(told: JsonObject) -> str:
    ((kind, state),) = told["state"].items()
    return str(state.get("reason", kind))


def condition(cluster: Cluster, name: str) -> tuple[str, str | None, str | None]:
    (found,) = (each for each in status(cluster)["conditions"] if each["type"] == name)
    return found["status"], found.get("reason"), found.get("message")


def is_ready(cluster: Cluster) -> bool:
    return condition(cluster, "Ready")[0] == "True"


def said(cluster: Cluster, *reasons: str) -> list[tuple[str, str, int]]:
    """Events of the kubelet: reason, message, how often."""
    events = [each for each in cluster.list("events") if each["source"].get("host")]
    told = [(each["reason"], each["message"], each.get("count", 1)) for each in events]
    return [each for each in told if not reasons or each[0] in reasons]


def changes(cluster: Cluster, seconds: int) -> list[tuple[int, str]]:
    """What the states of pod ``a`` become, and when."""
    found = [(0, states(cluster))]
    for second in range(1, seconds + 1):
        cluster.advance("1s")
        if (now := states(cluster)) != found[-1][1]:
            found.append((second, now))
    return found


# -- starting ------------------------------------------------------------------------------


def test_a_pod_is_created_before_it_runs() -> None:
    cluster = begun(world({"startTime": "3s"}), pod())
    assert (status(cluster)["phase"], states(cluster)) == ("Pending", "ContainerCreating")
    assert condition(cluster, "PodReadyToStartContainers")[0] == "False"
    message = "containers with unready status: [main]"
    assert condition(cluster, "Ready") == ("False", "ContainersNotReady", message)
    assert status(cluster)["startTime"] == "2026-01-01T00:00:00Z"
    cluster.advance("2s")
    assert states(cluster) == "ContainerCreating"
    cluster.advance("1s")
    assert (status(cluster)["phase"], states(cluster)) == ("Running", "running")
    assert containers(cluster)["main"]["state"]["running"]["startedAt"] == "2026-01-01T00:00:03Z"
    assert is_ready(cluster)
    assert condition(cluster, "PodReadyToStartContainers")[0] == "True"


def test_a_container_may_take_its_time_to_be_ready() -> None:
    cluster = begun(world({"readyTime": "4s"}), pod())
    cluster.advance("3s")
    assert (states(cluster), is_ready(cluster)) == ("running", False)
    cluster.advance("1s")
    assert is_ready(cluster)


INIT = [
    {"name": "one", "image": "i"},
    {"name": "side", "image": "i", "restartPolicy": "Always"},
    {"name": "two", "image": "i"},
]


def test_init_containers_run_one_after_the_other_and_sidecars_go_on() -> None:
    named = [{"name": "one", "runTime": "5s"}, {"name": "two", "runTime": "3s"}]
    cluster = begun(world({"containers": named}), pod(initContainers=INIT))
    initializing = "PodInitializing"
    assert changes(cluster, 10) == [
        (0, f"running {initializing} {initializing} {initializing}"),
        (5, f"Completed running running {initializing}"),
        (8, "Completed running Completed running"),
    ]
    assert status(cluster)["phase"] == "Running"
    assert condition(cluster, "Initialized") == ("True", None, None)
    assert [each["ready"] for each in containers(cluster).values()] == [True] * 4


def test_what_is_not_initialized_says_what_is_missing() -> None:
    cluster = begun(
        world({"containers": [{"name": "two", "runTime": "9s"}]}), pod(initContainers=INIT)
    )
    assert status(cluster)["phase"] == "Pending"
    message = "containers with incomplete status: [two]"
    assert condition(cluster, "Initialized") == ("False", "ContainersNotInitialized", message)


def test_an_init_container_that_fails_is_restarted_or_ends_its_pod() -> None:
    fails = world({"containers": [{"name": "one", "runTime": "1s", "exitCode": 1}]})
    begun(fails, pod(initContainers=INIT[:1]))
    assert changes(fails, 12) == [
        (0, "running PodInitializing"),
        (2, "CrashLoopBackOff PodInitializing"),
        (12, "running PodInitializing"),
    ]
    assert status(fails)["phase"] == "Pending"
    once = world({"containers": [{"name": "one", "runTime": "1s", "exitCode": 1}]})
    begun(once, pod(initContainers=INIT[:1], restartPolicy="Never"))
    once.advance("1s")
    assert (status(once)["phase"], states(once)) == ("Failed", "Error PodInitializing")


def test_the_sidecars_of_a_pod_that_is_done_are_stopped_the_last_one_first() -> None:
    init = [{"name": name, "image": "i", "restartPolicy": "Always"} for name in ("s1", "s2")]
    behaviour = {
        "runTime": "10s",
        "containers": [{"name": n, "terminationTime": "2s"} for n in ("s1", "s2")],
    }
    cluster = begun(world(behaviour), pod(initContainers=init, restartPolicy="Never"))
    assert changes(cluster, 20) == [
        (0, "running running running"),
        (10, "running running Completed"),
        (12, "running Completed Completed"),
        (14, "Completed Completed Completed"),
    ]
    assert status(cluster)["phase"] == "Succeeded"
    assert condition(cluster, "Initialized") == ("True", "PodCompleted", None)


def test_a_sidecar_is_restarted_whatever_the_policy_of_its_pod() -> None:
    behaviour = {"containers": [{"name": "side", "runTime": "5s"}]}
    cluster = begun(world(behaviour), pod(initContainers=INIT[1:2], restartPolicy="Never"))
    cluster.advance("6s")
    assert states(cluster) == "running running"
    assert containers(cluster)["side"]["restartCount"] == 1
    assert status(cluster)["phase"] == "Running"


# -- probes --------------------------------------------------------------------------------


def test_a_pod_of_which_something_is_said_is_probed() -> None:
    cluster = begun(
        world({}), with_probe("readinessProbe", initialDelaySeconds=7, successThreshold=2)
    )
    cluster.advance("11s")
    assert not is_ready(cluster)
    cluster.advance("1s")
    assert is_ready(cluster)


def test_a_pod_of_which_nothing_is_said_is_not() -> None:
    cluster = begun(world(), with_probe("readinessProbe", initialDelaySeconds=7))
    assert is_ready(cluster)


def test_readiness_comes_and_goes() -> None:
    fails = {"failAfter": "20s", "failFor": "30s"}
    cluster = begun(
        world({"readinessProbe": fails}), with_probe("readinessProbe", failureThreshold=2)
    )
    found = []
    for second in range(1, 70):
        cluster.advance("1s")
        found.append((second, is_ready(cluster)))
    flips = [later for before, later in pairwise(found) if before[1] != later[1]]
    # The probes at 20 and 25 s fail, the one at 50 s passes.
    assert flips == [(25, False), (50, True)]


def test_a_container_that_fails_its_liveness_probe_is_restarted() -> None:
    behaviour = {"livenessProbe": {"failAfter": "20s"}, "terminationTime": "4s"}
    cluster = begun(world(behaviour, events=True), with_probe("livenessProbe"))
    cluster.advance("33s")
    assert containers(cluster)["main"]["restartCount"] == 0
    assert said(cluster, "Unhealthy", "Killing") == [
        ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503", 3),
        ("Killing", "Container main failed liveness probe, will be restarted", 1),
    ]
    cluster.advance("1s")
    told = containers(cluster)["main"]
    last = told["lastState"]["terminated"]
    assert (told["restartCount"], last["exitCode"], last["reason"]) == (1, 143, "Error")
    assert last["finishedAt"] == "2026-01-01T00:00:34Z"


def test_a_container_that_does_not_end_within_its_grace_period_is_killed() -> None:
    behaviour = {"livenessProbe": {"failAfter": "0s"}, "terminationTime": "1m"}
    probe = with_probe("livenessProbe", failureThreshold=1, terminationGracePeriodSeconds=7)
    cluster = begun(world(behaviour), probe)
    cluster.advance("7s")
    assert containers(cluster)["main"]["lastState"]["terminated"]["exitCode"] == 137


def test_a_container_that_never_starts_is_restarted_and_probed_no_further() -> None:
    behaviour = {"startupProbe": {"passAfter": "1h"}, "livenessProbe": {"failAfter": "0s"}}
    made = with_probe("startupProbe", failureThreshold=4)
    made["spec"]["containers"][0]["livenessProbe"] = {
        "exec": {"command": ["x"]},
        "periodSeconds": 1,
    }
    cluster = begun(world(behaviour, events=True), made)
    cluster.advance("14s")
    told = containers(cluster)["main"]
    assert (told["started"], told["ready"], told["restartCount"]) == (False, False, 0)
    cluster.advance("1s")
    assert containers(cluster)["main"]["restartCount"] == 1
    reasons = [message.partition(" ")[0] for reason, message, _ in said(cluster, "Unhealthy")]
    assert reasons == ["Startup"]
    assert (
        said(cluster, "Killing")[0][1] == "Container main failed startup probe, will be restarted"
    )


def test_a_share_of_the_runs_fails() -> None:
    behaviour = {"readinessProbe": {"failAfter": "0s", "share": 0.25}}
    cluster = world(behaviour)
    for number in range(100):
        made = with_probe("readinessProbe", failureThreshold=1)
        cluster.create({**made, "metadata": {**made["metadata"], "name": f"p{number}"}})
    cluster.settle()
    ready = [each["status"]["containerStatuses"][0]["ready"] for each in cluster.list("pods")]
    # 75 expected, with a deviation of 4.3.
    assert 60 < sum(ready) < 90


def test_gates_keep_a_pod_from_being_ready_until_somebody_opens_them() -> None:
    cluster = begun(world(), pod(readinessGates=[{"conditionType": "x.io/on"}]))
    missing = 'corresponding condition of pod readiness gate "x.io/on" does not exist.'
    assert condition(cluster, "Ready") == ("False", "ReadinessGatesNotReady", missing)
    assert condition(cluster, "ContainersReady")[0] == "True"
    for value, ready in (("False", False), ("True", True)):
        gate = {"type": "x.io/on", "status": value}
        found = [each for each in status(cluster)["conditions"] if each["type"] != "x.io/on"]
        cluster.patch("pods", "a", {"status": {"conditions": [*found, gate]}}, subresource="status")
        cluster.settle()
        assert is_ready(cluster) is ready
    shut = 'the status of pod readiness gate "x.io/on" is not "True", but Unknown'
    gate = {"type": "x.io/on", "status": "Unknown"}
    found = [each for each in status(cluster)["conditions"] if each["type"] != "x.io/on"]
    cluster.patch("pods", "a", {"status": {"conditions": [*found, gate]}}, subresource="status")
    assert condition(cluster.settle(), "Ready")[2] == shut


def test_probes_that_fail_are_told_when_they_do() -> None:
    cluster = begun(
        world({"livenessProbe": {"failAfter": "20s"}}, events=True), with_probe("livenessProbe")
    )
    cluster.advance("21s")
    assert [count for _, _, count in said(cluster, "Unhealthy")] == [1]
    cluster.advance("5s")
    assert [count for _, _, count in said(cluster, "Unhealthy")] == [2]


def test_a_container_is_killed_before_it_would_end() -> None:
    behaviour = {"livenessProbe": {"failAfter": "10s"}, "runTime": "1h", "terminationTime": "5s"}
    cluster = begun(world(behaviour), with_probe("livenessProbe"))
    cluster.advance("25s")
    assert containers(cluster)["main"]["restartCount"] == 1


def test_what_fails_its_probe_is_not_ready_when_its_time_has_come() -> None:
    behaviour = {"readinessProbe": {"failAfter": "10s"}, "readyTime": "1m"}
    cluster = begun(world(behaviour), with_probe("readinessProbe"))
    cluster.advance("2m")
    assert not is_ready(cluster)


# -- images --------------------------------------------------------------------------------


def test_a_slow_pull_keeps_a_pod_waiting_and_leaves_the_image() -> None:
    behaviour = {"pullTime": "1500ms", "imageSize": "100Mi"}
    cluster = begun(world(behaviour, events=True), pod())
    assert states(cluster) == "ContainerCreating"
    cluster.advance("2s")
    assert states(cluster) == "running"
    size = 100 * 2**20
    assert cluster.get("nodes", "n")["status"]["images"] == [
        {"names": ["web:1"], "sizeBytes": size}
    ]
    told = "in 1.5s (1.5s including waiting)."
    pulled = f'Successfully pulled image "web:1" {told} Image size: {size} bytes.'
    assert ("Pulled", pulled, 1) in said(cluster)
    cluster.create(pod("b"))
    cluster.settle()
    assert status(cluster, "b")["phase"] == "Running"


@pytest.mark.parametrize(("policy", "running"), [("Always", True), ("Never", False)])
def test_what_a_pull_policy_asks_for(policy: str, running: bool) -> None:
    cluster = world({"pullTime": "2s"}, events=True)
    begun(cluster, pod(containers=[{"name": "main", "image": "web:1", "imagePullPolicy": policy}]))
    if policy == "Never":
        assert states(cluster) == "ErrImageNeverPull"
        message = 'Container image "web:1" is not present with pull policy of Never'
        assert said(cluster) == [
            ("ErrImageNeverPull", message, 1),
            ("Failed", "Error: ErrImageNeverPull", 1),
        ]
    cluster.advance("2s")
    assert (status(cluster)["phase"] == "Running") is running


def test_pulls_that_fail_are_tried_again_later_and_later() -> None:
    behaviour = {"pullTime": "3s", "pullError": "not found", "pullFailures": 2}
    cluster = begun(world(behaviour, events=True), pod())
    assert changes(cluster, 45) == [
        (0, "ContainerCreating"),
        (3, "ErrImagePull"),
        (4, "ImagePullBackOff"),
        (16, "ErrImagePull"),
        (17, "ImagePullBackOff"),
        (39, "running"),
    ]
    assert said(cluster, "Failed", "BackOff", "Pulling") == [
        ("Pulling", 'Pulling image "web:1"', 3),
        ("Failed", 'Failed to pull image "web:1": not found', 2),
        ("Failed", "Error: ErrImagePull", 2),
        ("BackOff", 'Back-off pulling image "web:1"', 2),
        ("Failed", "Error: ImagePullBackOff", 2),
    ]


def test_a_pull_that_backs_off_says_why() -> None:
    cluster = begun(world({"pullError": "not found"}), pod())
    cluster.advance("2s")
    message = 'Back-off pulling image "web:1": ErrImagePull: not found'
    waits = containers(cluster)["main"]["state"]["waiting"]
    assert waits == {"reason": "ImagePullBackOff", "message": message}
    cluster.advance("1h")
    assert status(cluster)["phase"] == "Pending"


def test_an_annotation_of_a_node_troubles_the_pulls_there() -> None:
    cluster = world(events=True)
    trouble = {"pulls.kubescene.dev/slow": "{time: 5s, namespace: default}"}
    broken = {"pulls.kubescene.dev/bad": '{error: "i/o timeout", pods: {matchLabels: {app: b}}}'}
    cluster.patch("nodes", "n", {"metadata": {"annotations": {**trouble, **broken}}})
    cluster.create(pod())
    labelled = pod("b")
    cluster.create({**labelled, "metadata": {**labelled["metadata"], "labels": {"app": "b"}}})
    cluster.settle()
    cluster.advance("5s")
    assert status(cluster, "a")["phase"] == "Running"
    (told,) = status(cluster, "b")["containerStatuses"]
    assert told["state"]["waiting"] == {"reason": "ErrImagePull", "message": "i/o timeout"}
    cluster.patch("nodes", "n", {"metadata": {"annotations": dict.fromkeys(broken)}})
    cluster.advance("1m")
    assert status(cluster, "b")["phase"] == "Running"


def test_trouble_with_pulls_is_that_of_a_namespace() -> None:
    cluster = world()
    trouble = {"pulls.kubescene.dev/x": "{error: broken, namespace: other}"}
    cluster.patch("nodes", "n", {"metadata": {"annotations": trouble}})
    assert states(begun(cluster, pod())) == "running"


@pytest.mark.parametrize("plain", [True, False])
def test_pods_alike_wait_for_pulls_on_one_node_only(plain: bool) -> None:
    cluster = world(**({"shortcuts": PLAIN} if plain else {}))
    cluster.create(make_node("m").cpu("8").memory("16Gi"))
    trouble = {"pulls.kubescene.dev/x": "{time: 5s}"}
    cluster.patch("nodes", "n", {"metadata": {"annotations": trouble}})
    for number in range(6):
        cluster.create(pod(f"p{number}"))
    cluster.settle()
    waits = {(each["spec"]["nodeName"], each["status"]["phase"]) for each in cluster.list("pods")}
    assert waits == {("n", "Pending"), ("m", "Running")}
    cluster.advance("5s")
    assert {each["status"]["phase"] for each in cluster.list("pods")} == {"Running"}


# -- ends ----------------------------------------------------------------------------------


def test_a_container_is_killed_when_its_memory_is_not_enough() -> None:
    limits = {"limits": {"memory": "100Mi"}}
    series = [{"at": "0s", "value": "40Mi"}, {"at": "60s", "value": "160Mi"}]
    usage = {"memory": {"series": series, "interpolation": "Linear"}}
    made = pod(
        containers=[{"name": "main", "image": "i", "resources": limits}], restartPolicy="Never"
    )
    cluster = begun(world({"usage": usage}), made)
    # Half of the line: 30 s and a bit of a millisecond.
    cluster.advance("30s")
    assert states(cluster) == "running"
    cluster.advance("1s")
    how = containers(cluster)["main"]["state"]["terminated"]
    assert (how["exitCode"], how["reason"], how["finishedAt"]) == (
        137,
        "OOMKilled",
        "2026-01-01T00:00:30Z",
    )
    assert status(cluster)["phase"] == "Failed"


def test_a_crash_loop_says_that_it_backs_off() -> None:
    cluster = begun(world({"oomAfter": "5s"}, events=True), pod())
    cluster.advance("10s")
    assert states(cluster) == "CrashLoopBackOff"
    assert containers(cluster)["main"]["lastState"]["terminated"]["reason"] == "OOMKilled"
    uid = cluster.get("pods", "a")["metadata"]["uid"]
    message = f"Back-off restarting failed container main in pod a_default({uid})"
    assert said(cluster, "BackOff") == [("BackOff", message, 1)]


def test_rules_may_restart_a_container_whose_pod_never_restarts_any() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    main = {"name": "main", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    codes = {"empirical": {"values": [42]}}
    cluster = world({"runTime": "5s", "exitCode": codes})
    begun(cluster, pod(containers=[main], restartPolicy="Never"))
    cluster.advance("5s")
    assert (states(cluster), containers(cluster)["main"]["restartCount"]) == ("running", 1)


def test_a_rule_may_restart_all_containers_of_a_pod() -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    main = {"name": "main", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    other = {"name": "other", "image": "i"}
    behaviour = {
        "containers": [
            {"name": "one", "runTime": "1s"},
            {"name": "main", "runTime": "5s", "exitCode": 42},
        ]
    }
    cluster = world(behaviour)
    begun(cluster, pod(containers=[main, other], initContainers=INIT[:1], restartPolicy="Never"))
    restarting = "RestartingAllContainers"
    assert changes(cluster, 10) == [
        (0, "running PodInitializing PodInitializing"),
        (1, "Completed running running"),
        (6, f"{restarting} {restarting} {restarting}"),
        (7, f"running {restarting} {restarting}"),
        (8, "Completed running running"),
    ]
    assert [each["restartCount"] for each in containers(cluster).values()] == [1, 1, 1]
    assert condition(cluster, "Initialized")[0] == "True"


def test_a_condition_tells_while_all_containers_of_a_pod_restart() -> None:
    """As TestGenerateAllContainersRestartingCondition of the kubelet has it."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    main = {"name": "main", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    cluster = world({"containers": [{"name": "main", "runTime": "5s", "exitCode": 42}]})
    begun(cluster, pod(containers=[main, {"name": "other", "image": "i"}], restartPolicy="Never"))
    name = "AllContainersRestarting"
    assert condition(cluster, name)[0] == "False"
    cluster.advance("5s")
    assert condition(cluster, name)[:2] == ("True", "RestartAllContainersStarted")
    cluster.advance("1s")
    assert condition(cluster, name)[0] == "False"
    ordinary = begun(world({"runTime": "5s"}), pod())
    types = {each["type"] for each in status(ordinary)["conditions"]}
    assert name not in types


def test_what_has_run_needs_no_pull_to_run_again() -> None:
    cluster = begun(world({"runTime": "5s"}), pod())
    broken = {"pulls.kubescene.dev/bad": "{error: broken}"}
    cluster.patch("nodes", "n", {"metadata": {"annotations": broken}})
    cluster.advance("6s")
    assert (states(cluster), containers(cluster)["main"]["restartCount"]) == ("running", 1)


def test_a_pod_stays_running_while_a_sidecar_starts_anew() -> None:
    probe = {"exec": {"command": ["x"]}, "periodSeconds": 1, "failureThreshold": 9}
    side = {"name": "side", "image": "i", "restartPolicy": "Always", "startupProbe": probe}
    named = [{"name": "side", "runTime": "10s", "startupProbe": {"passAfter": "4s"}}]
    cluster = begun(world({"containers": named}), pod(initContainers=[side]))
    assert status(cluster)["phase"] == "Pending"
    cluster.advance("11s")
    assert not containers(cluster)["side"]["started"]
    assert (status(cluster)["phase"], states(cluster)) == ("Running", "running running")


def test_a_container_that_never_gets_ready_ends_on_time() -> None:
    cluster = begun(world({"readyTime": "30s", "runTime": "10s"}), pod(restartPolicy="Never"))
    cluster.advance("10s")
    assert status(cluster)["phase"] == "Succeeded"


def test_a_pod_that_cannot_be_initialized_leaves_no_sidecar_behind() -> None:
    fails = [{"name": "two", "runTime": "1s", "exitCode": 1}]
    behaviour = {"terminationTime": "5s", "containers": fails}
    cluster = begun(world(behaviour), pod(initContainers=INIT[1:], restartPolicy="Never"))
    cluster.advance("1s")
    assert (status(cluster)["phase"], states(cluster)) == ("Failed", "Error Error PodInitializing")


def test_a_container_that_is_not_restarted_is_told_so() -> None:
    made = with_probe("livenessProbe", failureThreshold=1)
    made["spec"]["restartPolicy"] = "Never"
    cluster = begun(world({"livenessProbe": {"failAfter": "10s"}}, events=True), made)
    cluster.advance("10s")
    assert said(cluster, "Killing")[0][1] == "Container main failed liveness probe"
    assert status(cluster)["phase"] == "Failed"


def test_a_probe_that_fails_is_told_once_though_its_pod_is_looked_at_again() -> None:
    made = with_probe("readinessProbe")
    made["spec"]["readinessGates"] = [{"conditionType": "x.io/on"}]
    cluster = begun(world({"readinessProbe": {"failAfter": "10s"}}, events=True), made)
    cluster.advance("10s")
    for value in ("True", "False"):
        gate = {"type": "x.io/on", "status": value}
        found = [each for each in status(cluster)["conditions"] if each["type"] != "x.io/on"]
        cluster.patch("pods", "a", {"status": {"conditions": [*found, gate]}}, subresource="status")
        cluster.settle()
    assert [count for _, _, count in said(cluster, "Unhealthy")] == [1]


# -- going ---------------------------------------------------------------------------------


def test_a_pod_goes_when_its_containers_have_ended() -> None:
    behaviour = {"preStopTime": "2s", "terminationTime": "3s"}
    cluster = begun(world(behaviour, events=True), pod())
    cluster.advance("10s")
    cluster.delete("pods", "a")
    cluster.settle()
    cluster.advance("4s")
    assert states(cluster) == "running"
    assert said(cluster, "Killing") == [("Killing", "Stopping container main", 1)]
    cluster.advance("1s")
    with pytest.raises(NotFoundError):
        cluster.get("pods", "a")


def test_a_pod_goes_at_the_end_of_its_grace_period_at_the_latest() -> None:
    cluster = begun(world({"terminationTime": "1h"}), pod(terminationGracePeriodSeconds=20))
    cluster.delete("pods", "a")
    cluster.settle()
    cluster.advance("19s")
    assert states(cluster) == "running"
    cluster.advance("1s")
    with pytest.raises(NotFoundError):
        cluster.get("pods", "a")


def test_a_pod_that_ends_by_itself_does_not_go_later() -> None:
    cluster = begun(world({"runTime": "12s", "terminationTime": "10s"}), pod())
    cluster.advance("10s")
    cluster.delete("pods", "a")
    cluster.settle()
    cluster.advance("2s")
    with pytest.raises(NotFoundError):
        cluster.get("pods", "a")


def test_sidecars_end_after_the_others() -> None:
    behaviour = {"terminationTime": "3s", "containers": [{"name": "side", "terminationTime": "2s"}]}
    cluster = begun(world(behaviour), pod(initContainers=INIT[1:2]))
    cluster.delete("pods", "a")
    cluster.settle()
    cluster.advance("3s")
    assert states(cluster) == "running Completed"
    assert not is_ready(cluster)
    cluster.advance("2s")
    with pytest.raises(NotFoundError):
        cluster.get("pods", "a")


def test_a_deadline_ends_what_has_not_even_begun() -> None:
    cluster = begun(world({"startTime": "1m"}, events=True), pod(activeDeadlineSeconds=5))
    cluster.advance("5s")
    assert (status(cluster)["phase"], status(cluster)["reason"]) == ("Failed", "DeadlineExceeded")
    assert states(cluster) == "ContainerStatusUnknown"
    message = "Pod was active on the node longer than the specified deadline"
    assert said(cluster, "DeadlineExceeded") == [("DeadlineExceeded", message, 1)]


# -- all of it -----------------------------------------------------------------------------

seconds = st.integers(0, 40).map(lambda each: f"{each}s")
drawn = st.builds(lambda mean: {"exponential": {"mean": f"{mean}s"}}, st.integers(1, 40))
times = seconds | drawn
probes = st.fixed_dictionaries(
    {}, optional={"passAfter": times, "failAfter": times, "share": st.sampled_from([0, 0.5, 1])}
)
behaviours = st.fixed_dictionaries(
    {},
    optional={
        "startTime": times,
        "runTime": times,
        "readyTime": times,
        "oomAfter": times,
        "exitCode": st.sampled_from([0, 1, {"empirical": {"values": [0, 0, 3]}}]),
        "terminationTime": times,
        "postStartTime": times,
        "postStartFailures": st.integers(0, 2),
        "pullTime": times,
        "pullFailures": st.integers(0, 2),
        "startupProbe": probes,
        "readinessProbe": probes,
        "livenessProbe": probes,
        "containers": st.just([{"name": "one", "runTime": "2s"}]),
    },
)


def full(policy: str) -> JsonObject:
    probe = {"periodSeconds": 3, "failureThreshold": 2}
    hook = {"postStart": {"exec": {"command": ["x"]}}}
    main: JsonObject = {"name": "main", "image": "i", "lifecycle": hook}
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        main[kind] = {"exec": {"command": ["x"]}, **probe}
    return pod(
        containers=[main, {"name": "other", "image": "j"}],
        initContainers=INIT,
        restartPolicy=policy,
    )


ORDER = {"Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}


@settings(deadline=None, max_examples=40)
@given(
    behaviours,
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
    st.booleans(),
)
def test_however_time_is_cut_pods_come_to_the_same(
    behaviour: JsonObject, policy: str, pieces: list[int], events: bool
) -> None:
    whole, cut, plain = (
        begun(world(behaviour, events=events, **more), full(policy))
        for more in ({}, {}, {"shortcuts": PLAIN})
    )
    fork = whole.fork()
    seen = [status(cut)]
    for each in pieces:
        cut.advance(f"{each}s")
        seen.append(status(cut))
    for cluster in (whole, fork, plain):
        cluster.advance(f"{sum(pieces)}s")
        assert cluster.get("pods", "a") == cut.get("pods", "a")
    for before, after in pairwise(seen):
        # An init container may begin again, and its pod be initialized anew: never from the end.
        assert ORDER[after["phase"]] >= ORDER[before["phase"]]
        pairs = zip(before["containerStatuses"], after["containerStatuses"], strict=True)
        assert all(later["restartCount"] >= one["restartCount"] for one, later in pairs)


def test_a_probe_may_fail_several_times_in_a_run() -> None:
    main = {
        "name": "main",
        "image": "i",
        "readinessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": 1},
    }
    spells = [{"after": "10s", "for": "5s"}, {"after": "30s", "for": "10s"}]
    cluster = world({"readinessProbe": {"failAfter": "60s", "failFor": "5s", "fails": spells}})
    begun(cluster, pod(containers=[main]))
    seen = []
    for second in range(70):
        seen.append((second, is_ready(cluster)))
        cluster.advance("1s")
    turns = [
        at for (at, now), (_, before) in zip(seen[1:], seen, strict=False) if now is not before
    ]
    assert turns == [12, 15, 32, 40, 62, 65], (
        "not ready with the third answer, ready with the first"
    )


# -- hooks ---------------------------------------------------------------------------------


def hooked(**spec: Any) -> JsonObject:
    hook = {"postStart": {"exec": {"command": ["x"]}}}
    probe = {"exec": {"command": ["x"]}, "periodSeconds": 1}
    main = {"name": "main", "image": "i", "lifecycle": hook, "readinessProbe": probe}
    return pod(containers=[main], **spec)


def test_a_container_is_not_ready_before_its_hook_is_over() -> None:
    cluster = begun(world({"postStartTime": "4s"}), hooked())
    assert states(cluster) == "running"
    assert containers(cluster)["main"]["started"] is False
    cluster.advance("3s")
    assert not is_ready(cluster)
    cluster.advance("1s")
    assert is_ready(cluster)
    assert containers(cluster)["main"]["started"] is True


def test_nothing_is_probed_before_the_hook_is_over() -> None:
    made = hooked()
    probe = {"exec": {"command": ["x"]}, "periodSeconds": 1, "failureThreshold": 2}
    made["spec"]["containers"][0]["startupProbe"] = probe
    cluster = begun(world({"postStartTime": "4s", "startupProbe": {"passAfter": "3s"}}), made)
    assert changes(cluster, 6) == [(0, "running")]
    assert containers(cluster)["main"]["restartCount"] == 0
    assert is_ready(cluster)


def test_a_hook_that_fails_kills_its_container_and_another_run_begins_later() -> None:
    said_of_it = {"postStartTime": "2s", "postStartFailures": 2, "terminationTime": "1s"}
    cluster = begun(world(said_of_it, events=True), hooked())
    # Runs begin after 0, 3 (at once) and 16 s (10 s after the second has ended).
    assert changes(cluster, 20) == [(0, "running"), (6, "CrashLoopBackOff"), (16, "running")]
    told = containers(cluster)["main"]
    assert (told["restartCount"], told["lastState"]["terminated"]["exitCode"]) == (2, 143)
    assert is_ready(cluster)
    assert said(cluster, "FailedPostStartHook", "Killing") == [
        ("FailedPostStartHook", "PostStartHook failed", 2),
        ("Killing", "FailedPostStartHook", 2),
    ]


def test_a_pod_that_never_restarts_has_failed_with_its_hook() -> None:
    behaviour = {"postStartFailures": 1, "terminationTime": "60s"}
    cluster = begun(
        world(behaviour), hooked(restartPolicy="Never", terminationGracePeriodSeconds=5)
    )
    cluster.advance("4s")
    assert status(cluster)["phase"] == "Running"
    cluster.advance("1s")
    assert (status(cluster)["phase"], states(cluster)) == ("Failed", "Error")
    assert containers(cluster)["main"]["state"]["terminated"]["exitCode"] == 137


def test_containers_without_a_hook_are_not_held_up() -> None:
    cluster = begun(world({"postStartTime": "1h", "postStartFailures": 3}), pod())
    assert is_ready(cluster)
    behaviour = read_workload({"postStartTime": "1h"}).behaviour
    ((what, why),) = in_vain(behaviour, pod()["spec"])
    assert (what, why) == ("what is said of postStart", "no container of the pod has such a hook")
    assert not [*in_vain(behaviour, hooked()["spec"])]


# -- pulls that wait for each other --------------------------------------------------------


def puller(name: str, image: str) -> JsonObject:
    made = pod(name, containers=[{"name": "main", "image": image}])
    made["spec"]["nodeName"] = "n"
    return made


def serially(*workloads: JsonObject, **options: Any) -> Cluster:
    return world(*workloads, kubelet=KubeletDelays(serial_pulls=True), **options)


def first_runs(cluster: Cluster, names: str, seconds: int) -> dict[str, int]:
    """When each of these pods runs for the first time."""
    found: dict[str, int] = {}
    for second in range(seconds):
        for name in names:
            if status(cluster, name)["phase"] == "Running":
                found.setdefault(name, second)
        cluster.advance("1s")
    return found


def test_images_are_pulled_one_after_the_other_and_each_of_them_once() -> None:
    cluster = serially({"pullTime": "5s"}, events=True)
    for name, image in (("a", "x:1"), ("b", "y:1"), ("c", "x:1"), ("d", "z:1")):
        cluster.create(puller(name, image))
    cluster.settle()
    assert first_runs(cluster, "abcd", 20) == {"a": 5, "b": 10, "c": 10, "d": 15}
    took = [message for _, message, _ in said(cluster, "Pulled")]
    assert [each.split(" in ")[1].split(" Image")[0] for each in took] == [
        "5s (5s including waiting).",
        "5s (10s including waiting).",
        "0s (10s including waiting).",
        "5s (15s including waiting).",
    ]


def test_a_pull_that_fails_makes_room_and_brings_nothing() -> None:
    cluster = serially({"pullTime": "5s", "pullFailures": 1})
    for name, image in (("a", "x:1"), ("b", "y:1")):
        cluster.create(puller(name, image))
    cluster.settle()
    # a: 0 to 5 fails, again after 10 s: 15 to 20; b: 5 to 10 fails, again 20 to 25.
    assert first_runs(cluster, "ab", 40) == {"a": 20, "b": 25}


def test_an_image_whose_pull_has_failed_has_to_be_brought_again() -> None:
    cluster = serially()
    first, second = puller("a", "x:1"), puller("b", "y:1")
    first["metadata"]["annotations"] = {
        "kubescene.dev/pull-time": "5s",
        "kubescene.dev/pull-failures": "1",
    }
    second["metadata"]["annotations"] = {"kubescene.dev/pull-time": "30s"}
    cluster.create(first)
    cluster.create(second)
    cluster.settle()
    # a: 0 to 5 fails; b: 5 to 35; a asks again at 15 and has its turn after b.
    assert first_runs(cluster, "ab", 50) == {"a": 40, "b": 35}


def test_nodes_do_not_wait_for_each_other() -> None:
    cluster = serially({"pullTime": "5s"})
    cluster.create(make_node("m").cpu("8").memory("16Gi"))
    cluster.create(puller("a", "x:1"))
    other = puller("b", "y:1")
    other["spec"]["nodeName"] = "m"
    cluster.create(other)
    cluster.settle()
    assert first_runs(cluster, "ab", 10) == {"a": 5, "b": 5}


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.sampled_from(["x:1", "y:1", "z:1"]), min_size=1, max_size=5),
    st.integers(0, 2),
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
)
def test_however_time_is_cut_pulls_wait_alike(
    images: list[str], failures: int, pieces: list[int]
) -> None:
    behaviour = {"pullTime": {"uniform": {"min": "1s", "max": "9s"}}, "pullFailures": failures}
    whole, cut, plain = (serially(behaviour, **more) for more in ({}, {}, {"shortcuts": PLAIN}))
    for cluster in (whole, cut, plain):
        for place, image in enumerate(images):
            cluster.create(puller(f"p{place}", image))
        cluster.settle()
    fork = whole.fork()
    for each in pieces:
        cut.advance(f"{each}s")
    for cluster in (whole, fork, plain):
        cluster.advance(f"{sum(pieces)}s")
        assert [*cluster.list("pods")] == [*cut.list("pods")]


def asked(monkeypatch: pytest.MonkeyPatch, said: JsonObject, **options: Any) -> tuple[int, bytes]:
    """How often it is worked out what becomes of ten pods that come together, and their world."""
    times = 0
    ask = Lives.next_status

    def counting(self: Lives, *told: Any) -> DueStatus:
        nonlocal times
        times += 1
        return ask(self, *told)

    with monkeypatch.context() as patched:
        patched.setattr(Lives, "next_status", counting)
        cluster = world(said, **options)
        for number in range(10):
            cluster.create(pod(f"pod-{number}", restartPolicy="Never"))
        cluster.settle()
        cluster.advance("1h")
    return times, cluster.export()


@pytest.mark.parametrize(
    ("said", "times"),
    [
        pytest.param({"runTime": "10s"}, 2, id="alike"),
        pytest.param({"runTime": "10s", "exitCode": 3, "readyTime": "2s"}, 3, id="in three steps"),
        pytest.param({"runTime": {"uniform": {"min": "1s", "max": "2m"}}}, 20, id="drawn"),
        pytest.param({"runTime": "10s", "pullTime": "3s"}, 40, id="pulled"),
        pytest.param({"runTime": "10s", "usage": {"cpu": "1"}}, 20, id="measured"),
    ],
)
def test_what_becomes_of_pods_that_live_alike_is_worked_out_once(
    said: JsonObject, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, end = asked(monkeypatch, said)
    assert found == times
    assert asked(monkeypatch, said, shortcuts=PLAIN)[1] == end


def test_what_is_drawn_is_found_wherever_it_stands() -> None:
    drawn: JsonObject = {"exponential": {"mean": "3s"}}
    certain = {"runTime": "1s", "livenessProbe": {"failAfter": "1m", "fails": [{"after": "2m"}]}}
    assert is_certain(read_workload(certain).behaviour)
    for said in (
        {"startTime": drawn},
        {"livenessProbe": {"failAfter": drawn}},
        {"livenessProbe": {"fails": [{"after": "2m", "for": drawn}]}},
        {"livenessProbe": {"failAfter": "1m", "share": 0.5}},
        {"containers": [{"name": "main", "runTime": drawn}]},
        {"usage": {"memory": {"uniform": {"min": "1Mi", "max": "2Mi"}}}},
    ):
        assert not is_certain(read_workload({**certain, **said}).behaviour), said
