"""What the scheduler writes about pods, and what it says in Events: rules E-1 to E-10."""

from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MINUTE
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.errors import ApiError
from kubescene.scheduler import (
    SUCCESS,
    Code,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PodInfo,
    PreBindPlugin,
    SchedulerOptions,
    Status,
)
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.scheduler.telling.notices import shortened
from kubescene.testing import make_node, make_pod, make_priority_class
from kubescene.types import JsonObject
from scheduler.staging import NODE, Stage

SCHEDULER = SchedulerOptions()


def world(scheduler: SchedulerOptions = SCHEDULER, *nodes: str) -> Cluster:
    cluster = Cluster(ClusterOptions(events=True, scheduler=scheduler))
    for name in nodes or ("a",):
        cluster.create(make_node(name).cpu("4").memory("8Gi").zone("z"))
    return cluster


def told(cluster: Cluster, name: str) -> list[JsonObject]:
    """What the scheduler said about a pod, in order."""
    events = [
        each
        for each in cluster.list("events")
        if each["involvedObject"]["name"] == name
        and each.get("reportingComponent") == "default-scheduler"
    ]
    return sorted(events, key=lambda each: int(each["metadata"]["resourceVersion"]))


def short(event: JsonObject) -> tuple[str, str, str, str]:
    return event["type"], event["reason"], event["action"], event["message"]


def condition(cluster: Cluster, name: str) -> JsonObject:
    conditions = cluster.get("pods", name)["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def uid(cluster: Cluster, name: str) -> str:
    found: str = cluster.get("pods", name)["metadata"]["uid"]
    return found


class Fails(PreBindPlugin):
    name = "Fails"

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return Status.error("the disk is on fire")


class Talks(FilterPlugin):
    name = "Talks"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("no" * 600)


class Waits(PreBindPlugin):
    """Has real work before Bind."""

    name = "Waits"

    def __init__(self, arguments: Any, handle: Handle) -> None:
        self.asked = 0

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        self.asked += 1
        return (Status(Code.WAIT) if self.asked == 1 else SUCCESS), 10**9


def fitting() -> tuple[Cluster, str]:
    cluster = world()
    cluster.create(make_pod("p").cpu("1"))
    return cluster.settle(), "Successfully assigned default/p to a"


def too_big() -> tuple[Cluster, str]:
    cluster = world()
    cluster.create(make_pod("p").cpu("9"))
    text = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    return cluster.settle(), text


def nowhere() -> tuple[Cluster, str]:
    cluster = Cluster(ClusterOptions(events=True))
    cluster.create(make_pod("p").cpu("9"))
    return cluster.settle(), "no nodes available to schedule pods"


def failing() -> tuple[Cluster, str]:
    cluster = world(with_plugin(SCHEDULER, Fails))
    cluster.create(make_pod("p").cpu("1"))
    return cluster.settle(), 'running PreBind plugin "Fails": the disk is on fire'


def deleting() -> tuple[Cluster, str]:
    cluster = world()
    pod = make_pod("p").cpu("1").build()
    pod["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(pod)
    cluster.delete("pods", "p")
    return cluster.settle(), "skip schedule deleting pod: default/p"


@pytest.mark.parametrize(
    ("make", "kind", "reason", "action"),
    [
        pytest.param(fitting, "Normal", "Scheduled", "Binding", id="E-3 bound"),
        pytest.param(too_big, "Warning", "FailedScheduling", "Scheduling", id="E-1 rejected"),
        pytest.param(nowhere, "Warning", "FailedScheduling", "Scheduling", id="E-1 no nodes"),
        pytest.param(failing, "Warning", "FailedScheduling", "Scheduling", id="E-1 error"),
        pytest.param(deleting, "Warning", "FailedScheduling", "Scheduling", id="Q-19 deleting"),
    ],
)
def test_e_3_events_have_the_real_texts(make: Any, kind: str, reason: str, action: str) -> None:
    cluster, text = make()
    assert short(told(cluster, "p")[0]) == (kind, reason, action, text)


def test_e_1_the_note_is_cut_to_1024_bytes_but_the_condition_is_not() -> None:
    cluster = world(with_plugin(SCHEDULER, Talks))
    cluster.create(make_pod("p").cpu("1"))
    event, *_ = told(cluster.settle(), "p")  # its note brings back who waits for every event
    full = condition(cluster, "p")["message"]
    assert len(full.encode()) > 1024
    assert event["message"] == full[:1020] + " ..."


def test_e_1_a_cut_inside_of_a_letter_leaves_no_broken_bytes() -> None:
    cut = shortened("x" + "é" * 600)
    assert cut.endswith("é ...")
    assert 1020 <= len(cut.encode()) <= 1024


@pytest.mark.parametrize(
    ("make", "reason"),
    [(too_big, "Unschedulable"), (failing, "SchedulerError"), (nowhere, "Unschedulable")],
    ids=["E-2 rejected", "E-2 error", "E-2 no nodes"],
)
def test_e_2_the_condition_says_why(make: Any, reason: str) -> None:
    cluster, text = make()
    found = condition(cluster, "p")
    assert (found["status"], found["reason"], found["message"]) == ("False", reason, text)
    assert found["observedGeneration"] == 1


def test_e_2_a_failure_that_stands_there_is_not_written_again_but_told_again() -> None:
    cluster, _ = too_big()
    before = cluster.get("pods", "p")["metadata"]["resourceVersion"]
    cluster.advance("10m")
    assert cluster.get("pods", "p")["metadata"]["resourceVersion"] == before
    assert len(told(cluster, "p")) > 1


@pytest.mark.parametrize("what", ["deleting", "assigned", "gated"])
def test_e_4_a_binding_is_refused(what: str) -> None:
    cluster = world()
    pod = make_pod("p")
    if what == "gated":
        pod = pod.gate("hold")
    if what == "assigned":
        pod = pod.on("a")
    obj = pod.build()
    obj["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(obj)
    if what == "deleting":
        cluster.delete("pods", "p")
    with pytest.raises(ApiError, match="p"):
        cluster.client(Actor("other")).bind(ObjectRef(POD, "p", "default"), "a")


def test_e_4_a_bound_pod_is_scheduled_and_nominated_nowhere() -> None:
    cluster, _ = fitting()
    pod = cluster.get("pods", "p")
    assert (pod["spec"]["nodeName"], condition(cluster, "p")["status"]) == ("a", "True")
    assert "nominatedNodeName" not in pod["status"]


def preempted() -> Cluster:
    cluster = world()
    cluster.create(make_priority_class("high", 10))
    low = make_pod("low").cpu("4").build()
    low["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(low)
    cluster.settle()
    cluster.create(make_pod("p").cpu("4").priority_class("high"))
    return cluster.settle()


def test_e_5_a_victim_is_told_by_whom_and_where() -> None:
    cluster = preempted()
    text = f"Preempted by pod {uid(cluster, 'p')} on node a"
    assert short(told(cluster, "low")[-1]) == ("Normal", "Preempted", "Preempting", text)
    conditions = cluster.get("pods", "low")["status"]["conditions"]
    (found,) = [each for each in conditions if each["type"] == "DisruptionTarget"]
    assert (found["status"], found["reason"]) == ("True", "PreemptionByScheduler")
    text = "default-scheduler: preempting to accommodate a higher priority pod"
    assert found["message"] == text


def test_e_6_preemption_nominates_and_its_end_clears() -> None:
    stage = Stage()
    stage.nodes("a", cpu="1")
    stage.create(make_priority_class("high", 10))
    stage.place(make_pod("low").cpu("1"))
    stage.place(make_pod("p").cpu("1").priority_class("high"))
    assert stage.pod("p")["status"]["nominatedNodeName"] == "a"
    stage.delete("a", NODE)
    stage.pass_time(6 * MINUTE)
    stage.work()
    assert "nominatedNodeName" not in stage.pod("p")["status"]


def test_e_7_who_has_work_before_bind_is_nominated_meanwhile() -> None:
    cluster = world(with_plugin(SCHEDULER, Waits))
    cluster.create(make_pod("p").cpu("1"))
    cluster.settle()
    assert cluster.get("pods", "p")["status"]["nominatedNodeName"] == "a"
    cluster.advance("2s")
    assert cluster.pod("p").node == "a"
    assert "nominatedNodeName" not in cluster.get("pods", "p")["status"]


def test_e_8_of_a_gated_pod_the_api_server_speaks_and_not_the_scheduler() -> None:
    cluster = world()
    cluster.create(make_pod("p").gate("hold"))
    found = condition(cluster, "p")
    assert (found["status"], found["reason"]) == ("False", "SchedulingGated")
    assert found["message"] == "Scheduling is blocked due to non-empty scheduling gates"
    assert told(cluster.settle(), "p") == []
    assert condition(cluster, "p") == found


def test_e_9_a_bound_pod_has_the_zone_of_its_node() -> None:
    cluster, _ = fitting()
    labels = cluster.get("pods", "p")["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "z"


def test_e_10_pods_get_no_annotations() -> None:
    cluster, _ = fitting()
    assert "annotations" not in cluster.get("pods", "p")["metadata"]
