"""ProvisioningRequests: room for pods that do not exist yet, and what their conditions say."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ApiError
from kubescene.node_autoscaling.flags import read_settings
from kubescene.types import JsonObject

GROUP = "autoscaling.x-k8s.io"
CHECK, ATOMIC = f"check-capacity.{GROUP}", f"best-effort-atomic-scale-up.{GROUP}"
CONSUMES = f"{GROUP}/consume-provisioning-request"
LATER = "Capacity is not found, CA will try to find it later."


def world(*, events: bool = False, **flags: Any) -> ClusterWorld:
    wanted = {name.replace("_", "-"): value for name, value in flags.items()}
    wanted.setdefault("enable-provisioning-requests", True)
    settings = read_settings(wanted, "autoscaler")
    return ClusterWorld(ClusterOptions(autoscaler=settings, events=events))


def group(name: str = "std", cpu: str = "4", **spec: Any) -> JsonObject:
    capacity = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"max": 20, "template": {"status": {"capacity": capacity}}, **spec},
    }


def pod_spec(cpu: str) -> JsonObject:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}


def pod(name: str, cpu: str = "1", **annotations: str) -> JsonObject:
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(cpu)}


def template(name: str = "worker", cpu: str = "1") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(cpu)},
    }


def request(
    class_name: str, count: int = 6, name: str = "r", like: str = "worker", **parameters: str
) -> JsonObject:
    spec: JsonObject = {
        "provisioningClassName": class_name,
        "podSets": [{"count": count, "podTemplateRef": {"name": like}}],
    }
    if parameters:
        spec["parameters"] = parameters
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def conditions(cluster: ClusterWorld, name: str = "r") -> list[tuple[str, str, str]]:
    found = cluster.get(f"provisioningrequests.{GROUP}", name, namespace="default")
    every = (found.get("status") or {}).get("conditions") or ()
    return [(each["type"], each["status"], each["reason"]) for each in every]


def said(cluster: ClusterWorld, condition: str, name: str = "r") -> tuple[str, str]:
    """The message of a condition, and the time of day at which it was written."""
    found = cluster.get(f"provisioningrequests.{GROUP}", name, namespace="default")
    (each,) = [it for it in found["status"]["conditions"] if it["type"] == condition]
    return each["message"], each["lastTransitionTime"][11:19]


def size(cluster: ClusterWorld, name: str = "std") -> int:
    return int(cluster.get("nodegroups", name)["spec"].get("size", 0))


def times_of(cluster: ClusterWorld, condition: str, seconds: int) -> Iterator[str]:
    """When a condition was written anew while so much time passes."""
    last = ""
    for _ in range(seconds // 10):
        cluster.advance("10s")
        if condition in {each for each, _, _ in conditions(cluster)}:
            at = said(cluster, condition)[1]
            if at != last:
                yield at
            last = at


def test_all_nodes_of_an_atomic_request_are_ordered_at_once_and_booked_for_ten_minutes() -> None:
    cluster = world()
    for each in (group(), template(), request(ATOMIC)):
        cluster.create(each)
    cluster.advance("10s")
    accepted = ("Accepted", "True", "Accepted")
    assert conditions(cluster) == [accepted, ("Provisioned", "True", "CapacityIsProvisioned")]
    assert said(cluster, "Accepted")[0] == "ProvisioningRequest is accepted by ClusterAutoscaler"
    assert said(cluster, "Provisioned") == ("Capacity is found in the cluster", "00:00:10")
    assert size(cluster) == 2, "four pods of one core on a machine of four"
    # The booking ends in the first loop more than ten minutes later; until then nodes are needed,
    # and ten minutes after that (scale-down-unneeded-time) they go.
    assert list(times_of(cluster, "BookingExpired", 20 * 60)) == ["00:10:20"]
    assert said(cluster, "BookingExpired")[0] == "Capacity reservation time is expired"
    assert size(cluster) == 2
    cluster.advance("1m")
    assert size(cluster) == 0


def test_an_atomic_request_for_which_there_is_room_orders_nothing() -> None:
    cluster = world()
    for each in (group(size=2), template(), request(ATOMIC)):
        cluster.create(each)
    cluster.advance("30s")
    assert conditions(cluster)[1:] == [("Provisioned", "True", "CapacityIsFound")]
    assert size(cluster) == 2


@pytest.mark.parametrize(
    ("flags", "spec"),
    [
        ({}, {"max": 1}),
        ({"max_nodes_total": 1}, {}),
        ({"cores_total": "0:4"}, {}),
    ],
)
def test_an_atomic_request_gets_all_nodes_or_none(
    flags: dict[str, Any], spec: dict[str, Any]
) -> None:
    """Without the request, one node would be ordered for four of the pods."""
    cluster = world(**flags)
    for each in (group(**spec), template(), request(ATOMIC)):
        cluster.create(each)
    cluster.advance("1m")
    assert conditions(cluster)[1:] == [("Provisioned", "False", "CapacityIsNotFound")]
    assert said(cluster, "Provisioned")[0] == LATER
    assert size(cluster) == 0


def test_a_refused_request_is_tried_again_after_one_two_four_eight_and_ten_minutes() -> None:
    cluster = world()
    for each in (group(max=1), template(), request(ATOMIC)):
        cluster.create(each)
    found = list(times_of(cluster, "Provisioned", 60 * 60))
    # Each in the first loop after the time, of which the first is at ten seconds.
    assert found[:6] == ["00:00:10", "00:01:20", "00:03:30", "00:07:40", "00:15:50", "00:26:00"]
    assert found[6:] == ["00:36:10", "00:46:20", "00:56:30"]


def test_a_check_of_capacity_orders_nothing_and_books_what_it_finds() -> None:
    cluster = world()
    cluster.create(group(size=1, min=1))
    cluster.create(template())
    cluster.create(request(CHECK, 3))
    cluster.advance("10s")
    cluster.create(request(CHECK, 2, "second"))
    cluster.advance("20s")
    assert conditions(cluster)[1:] == [("Provisioned", "True", "CapacityIsFound")]
    refused = [("Provisioned", "False", "CapacityIsNotFound")]
    assert conditions(cluster, "second")[1:] == refused, "three of four cores are booked"
    assert size(cluster) == 1
    cluster.advance("16m")
    found = [("Provisioned", "True", "CapacityIsFound")]
    assert conditions(cluster, "second")[1:] == found, "the booking of the first has ended"


def test_without_retries_a_check_of_capacity_fails_once_and_for_all() -> None:
    cluster = world()
    cluster.create(template())
    cluster.create(request(CHECK, noRetry="true"))
    cluster.advance("5m")
    assert conditions(cluster)[1:] == [("Failed", "True", "CapacityIsNotFound")]
    assert said(cluster, "Failed") == ("CA could not find requested capacity", "00:00:10")


def test_missing_templates_are_named() -> None:
    cluster = world()
    cluster.create(request(CHECK, like="worker"))
    cluster.advance("20s")
    assert conditions(cluster) == [("Failed", "True", "FailedToCreatePods")]
    assert said(cluster, "Failed")[0] == (
        "missing pod templates, 1 pod templates were referenced, 1 templates were missing: worker"
    )


def test_a_template_that_goes_while_its_pods_are_booked_ends_the_booking() -> None:
    cluster = world()
    for each in (group(size=2), template(), request(CHECK)):
        cluster.create(each)
    cluster.advance("20s")
    cluster.delete("podtemplates", "worker", namespace="default")
    cluster.advance("10s")
    assert conditions(cluster)[2:] == [("Failed", "True", "FailedToBookCapacity")]
    assert said(cluster, "Failed")[0].startswith("Couldn't create pods, err: missing pod templates")


def test_pods_that_have_a_request_order_nothing_themselves() -> None:
    cluster = world(events=True)
    cluster.create(group())
    cluster.create(pod("consumer", **{CONSUMES: "r"}))
    cluster.create(pod("deprecated", **{f"cluster-autoscaler.kubernetes.io/{CONSUMES[21:]}": "r"}))
    cluster.advance("1m")
    assert size(cluster) == 0
    told = cluster.list("events")
    messages = {(it["involvedObject"]["name"], it["message"]) for it in told}
    why = "Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest"
    for name in ("consumer", "deprecated"):
        assert (name, f"{why} default/r") in messages


def test_pods_and_requests_are_helped_by_turns() -> None:
    """A loop serves one of them; the first is the pods'."""
    cluster = world()
    for each in (group("std"), template(), request(ATOMIC, 4), pod("own", "4")):
        cluster.create(each)
    cluster.advance("10s")
    assert (size(cluster), conditions(cluster)) == (1, [("Accepted", "True", "Accepted")])
    cluster.advance("10s")
    assert size(cluster) == 2
    assert conditions(cluster)[1:] == [("Provisioned", "True", "CapacityIsProvisioned")]


def test_requests_are_answered_one_in_a_loop_and_checks_in_batches_if_asked() -> None:
    found = []
    for flags in ({}, {"check_capacity_batch_processing": True}):
        cluster = world(**flags)
        cluster.create(group(size=5, min=5))
        cluster.create(template())
        for at in range(4):
            cluster.create(request(CHECK, 5, f"r{at}"))
        cluster.advance("10s")
        answers = [conditions(cluster, f"r{at}") for at in range(4)]
        found.append([each[1][1] if each else "" for each in answers])
    assert found == [["True", "", "", ""], ["True", "True", "True", "True"]]


def test_a_batch_is_no_larger_than_asked_and_its_requests_take_each_others_room() -> None:
    flags: dict[str, Any] = {"check_capacity_provisioning_request_max_batch_size": 3}
    cluster = world(check_capacity_batch_processing=True, **flags)
    cluster.create(group(size=2, min=2))
    cluster.create(template())
    for at in range(4):
        cluster.create(request(CHECK, 3, f"r{at}"))
    cluster.advance("10s")
    answers = [conditions(cluster, f"r{at}") for at in range(4)]
    assert [each[1][1] if each else "" for each in answers] == ["True", "True", "False", ""]


def test_a_processor_takes_checks_that_name_it_and_no_others() -> None:
    cluster = world(check_capacity_processor_instance="mine")
    cluster.create(group(size=5))
    cluster.create(template())
    cluster.create(request(CHECK, 1, "named", processorInstance="mine"))
    cluster.create(request(CHECK, 1, "other", processorInstance="others"))
    cluster.create(request(CHECK, 1, "plain"))
    cluster.create(request(f"mine{CHECK}", 1, "prefixed"))
    cluster.create(request(ATOMIC, 1, "atomic"))
    cluster.advance("2m")
    answered = [
        each
        for each in ("named", "other", "plain", "prefixed", "atomic")
        if conditions(cluster, each)
    ]
    assert answered == ["named", "prefixed"]


def test_a_request_that_is_never_provisioned_fails_after_a_week_and_goes_after_another() -> None:
    cluster = world(scan_interval="1h", provisioning_request_initial_backoff_time="400h")
    cluster.create(group(max=0))
    cluster.create(template())
    cluster.create(request(ATOMIC))
    cluster.advance("168h")
    assert [each for each, _, _ in conditions(cluster)] == ["Accepted", "Provisioned"]
    cluster.advance("1h")
    assert conditions(cluster)[2:] == [("Failed", "True", "Expired")]
    assert said(cluster, "Failed")[0] == "ProvisioningRequest is expired"
    # A week after any answer: the first was after an hour.
    cluster.advance("1h")
    assert cluster.list(f"provisioningrequests.{GROUP}") == []


def test_a_finished_request_is_deleted_a_week_later_though_loops_are_left_out() -> None:
    cluster = world()
    cluster.create(request(CHECK))
    cluster.advance("168h")
    assert [each for each, _, _ in conditions(cluster)] == ["Failed"]
    cluster.advance("1m")
    assert cluster.list(f"provisioningrequests.{GROUP}") == []


def test_without_the_flag_nobody_answers() -> None:
    cluster = world(enable_provisioning_requests=False)
    for each in (group(), template(), request(ATOMIC)):
        cluster.create(each)
    cluster.advance("1m")
    assert (conditions(cluster), size(cluster)) == ([], 0)


def test_in_steps_without_time_a_request_is_answered_at_once() -> None:
    cluster = world(mode="Immediate")
    for each in (group(), template(), request(ATOMIC)):
        cluster.create(each)
    cluster.settle()
    assert conditions(cluster)[1:] == [("Provisioned", "True", "CapacityIsProvisioned")]
    assert size(cluster) == 2


def test_limits_of_a_template_are_requests_of_its_pods() -> None:
    like = template()
    resources = like["template"]["spec"]["containers"][0]["resources"]
    resources["limits"] = resources.pop("requests")
    cluster = world()
    for each in (group(), like, request(ATOMIC)):
        cluster.create(each)
    cluster.advance("10s")
    assert size(cluster) == 2


def test_the_spec_of_a_request_cannot_be_changed() -> None:
    cluster = world()
    cluster.create(request(CHECK))
    found = cluster.get(f"provisioningrequests.{GROUP}", "r", namespace="default")
    podsets = [{"count": 1, "podTemplateRef": {"name": "other"}}]
    with pytest.raises(ApiError, match="Value is immutable"):
        cluster.update({**found, "spec": {**found["spec"], "podSets": podsets}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"podSets": []}, "should have at least 1 items"),
        (
            {"podSets": [{"count": 0, "podTemplateRef": {"name": "t"}}]},
            "greater than or equal to 1",
        ),
        ({"podSets": [{"count": 1, "podTemplateRef": {}}]}, "podTemplateRef.name: Required"),
        ({"provisioningClassName": "No Such"}, "provisioningClassName"),
        ({"parameters": {"noRetry": "x" * 256}}, "may not be more than 255"),
    ],
)
def test_bad_requests_are_refused(changes: JsonObject, message: str) -> None:
    wrong = request(CHECK)
    wrong["spec"].update(changes)
    with pytest.raises(ApiError, match=message):
        world().create(wrong)


def test_a_request_that_is_found_holds_scale_down_back_as_any_scale_up() -> None:
    """So says the real one: an answer of check-capacity counts as a scale-up."""
    cluster = world(scale_down_unneeded_time="1m")
    cluster.create(group(size=2))
    cluster.advance("50s")
    cluster.create(template())
    cluster.create(request(CHECK, 1))
    cluster.advance("5m")
    assert size(cluster) == 2, "within ten minutes of the answer"
    cluster.advance("12m")
    assert size(cluster) == 0
