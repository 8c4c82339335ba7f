"""DynamicResources through a scheduler that runs: what pods and their owners get to see."""

import copy
from typing import Any

import pytest

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MINUTE, SECOND
from kubescene.testing.builders import make_pod
from kubescene.types import JsonObject
from scheduler.staging import Stage

CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
SLICE = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")
DRIVER = "gpu.example.com"


def resource(kind: str, name: str, spec: JsonObject, **metadata: Any) -> JsonObject:
    made = {"name": name, **metadata}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": made, "spec": spec}


def device_class(name: str = "gpu", **spec: Any) -> JsonObject:
    return resource("DeviceClass", name, spec)


def slice_on(node: str, *devices: str, **fields: Any) -> JsonObject:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": each, **fields} for each in devices]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
    return resource("ResourceSlice", f"slice-{node}", spec)


def claim(name: str, *requests: JsonObject, **metadata: Any) -> JsonObject:
    asked = [*requests] or [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    spec = {"devices": {"requests": asked}}
    return resource("ResourceClaim", name, spec, namespace="default", **metadata)


def pod(name: str, *claims: str, template: str = "", **requests: str) -> JsonObject:
    made = make_pod(name).build()
    entries: list[JsonObject] = [
        {"name": f"c{at}", "resourceClaimName": each} for at, each in enumerate(claims)
    ]
    if template:
        entries.append({"name": "own", "resourceClaimTemplateName": template})
    if entries:
        made["spec"]["resourceClaims"] = entries
    if requests:
        named = {
            each.replace("_", "/", 1).replace("_", "."): much for each, much in requests.items()
        }
        made["spec"]["containers"][0]["resources"] = {"requests": named, "limits": named}
    return made


class Devices(Stage):
    """A stage with a class of devices, and eyes for claims."""

    def __init__(self) -> None:
        super().__init__()
        self.create(device_class())

    def claim(self, name: str) -> JsonObject:
        return self.client.get(ObjectRef(CLAIM, name, "default"))

    def devices_of(self, name: str) -> list[str]:
        allocation = self.claim(name)["status"].get("allocation") or {"devices": {}}
        return [each["device"] for each in allocation["devices"].get("results") or ()]

    def users_of(self, name: str) -> list[str]:
        return [each["name"] for each in self.claim(name)["status"].get("reservedFor") or ()]

    def write_status(self, name: str, **status: Any) -> None:
        held = self.claim(name)
        self.client.update({**held, "status": {**held["status"], **status}}, subresource="status")

    def messages(self) -> list[str]:
        return [each.message for each in self.work()]


@pytest.fixture
def stage() -> Devices:
    return Devices()


# -- pods without claims -------------------------------------------------------------------------


def test_m_4_a_pod_without_claims_hears_that_there_are_none_to_deallocate(stage: Devices) -> None:
    stage.nodes("a", cpu="1")
    stage.create(make_pod("p").cpu("2"))
    text = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    assert stage.messages()[0].startswith(text)


def test_m_6_if_another_prefilter_ended_the_cycle_there_is_no_state(stage: Devices) -> None:
    stage.nodes("a")
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    for name in ("p", "q"):
        made = make_pod(name).build()
        made["spec"]["affinity"] = {"nodeAffinity": affinity}
        stage.create(made)
    text = "0/1 nodes are available: pod affinity terms conflict. not found"
    assert stage.messages() == [text, text]


# -- claims --------------------------------------------------------------------------------------


def test_a_claim_is_allocated_where_its_pod_goes(stage: Devices) -> None:
    stage.nodes("a", "b")
    stage.create(slice_on("b", "gpu-0", "gpu-1"), claim("mine"))
    assert stage.place(pod("p", "mine")) == ["p:b"]
    held = stage.claim("mine")
    assert stage.devices_of("mine") == ["gpu-0"]
    assert stage.users_of("mine") == ["p"]
    assert held["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    term = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    selector = held["status"]["allocation"]["nodeSelector"]
    assert selector == {"nodeSelectorTerms": [{"matchFields": [term]}]}


def test_d_1_a_pod_waits_until_its_claim_exists(stage: Devices) -> None:
    """P-1: it is not even queued."""
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0"))
    assert stage.place(pod("p", "late")) == []
    assert stage.place(claim("other")) == []
    assert stage.place(claim("late")) == ["p:a"]


def test_d_1_a_claim_of_another_pod_is_not_its_own(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0"))
    assert stage.place(pod("p", template="t")) == []
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "of another",
        "controller": True,
    }
    stage.create(claim("p-own", ownerReferences=[owner]))
    told = {"status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "p-own"}]}}
    ref = ObjectRef(GroupVersionKind("", "v1", "Pod"), "p", "default")
    stage.client.patch(ref, told, subresource="status")
    assert stage.work() == []


def test_d_2_a_class_that_does_not_exist_is_named(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(claim("c", {"name": "r", "exactly": {"deviceClassName": "nic"}}), pod("p", "c"))
    text = "0/1 nodes are available: request r: device class nic does not exist."
    assert stage.messages()[0].startswith(text)
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "a", "pool": pool, "devices": [{"name": "n"}]}
    stage.create(resource("ResourceSlice", "s", spec))
    assert stage.place(device_class("nic")) == ["p:a"]


def test_d_3_a_claim_ties_later_pods_to_its_node(stage: Devices) -> None:
    stage.nodes("a", "b", cpu="1")
    stage.create(slice_on("a", "gpu-0"), claim("shared"))
    assert stage.place(pod("p", "shared", cpu="500m")) == ["p:a"]
    assert stage.place(pod("q", "shared", cpu="500m")) == ["q:a"]
    assert stage.users_of("shared") == ["p", "q"]
    stage.create(pod("r", "shared", cpu="500m"))
    text = "0/2 nodes are available: 1 Insufficient cpu, 1 resourceclaim not available on the node."
    assert stage.messages()[0].startswith(f"{text} still not schedulable")


def test_devices_run_out_and_come_back(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0"), claim("one"), claim("two"))
    assert stage.place(pod("p", "one"), pod("q", "two")) == ["p:a", "q:"]
    stage.write_status("one", allocation=None, reservedFor=None)
    assert stage.place() == ["q:a"]
    assert stage.devices_of("two") == ["gpu-0"]


def test_devices_of_a_deleted_claim_are_free_again(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0"), claim("old"), claim("new"))
    held = {"request": "r", "driver": DRIVER, "pool": "a", "device": "gpu-0"}
    stage.write_status("old", allocation={"devices": {"results": [held]}})
    assert stage.place(pod("p", "new")) == ["p:"]
    stage.client.delete(ObjectRef(CLAIM, "old", "default"))
    assert sorted(stage.place(pod("q", "new"))) == ["p:a", "q:a"]
    assert stage.devices_of("new") == ["gpu-0"]


def test_a_slice_that_comes_or_goes_is_seen_at_once(stage: Devices) -> None:
    stage.nodes("a", "b")
    stage.create(slice_on("a", "gpu-0"), claim("one"), claim("two"))
    assert stage.place(pod("p", "one"), pod("q", "two")) == ["p:a", "q:"]
    assert stage.place(slice_on("b", "gpu-0")) == ["q:b"]
    stage.client.delete(ObjectRef(SLICE, "slice-b"))
    stage.create(claim("three"))
    assert stage.place(pod("r", "three")) == ["r:"]


def test_a_device_in_the_network_is_seen_from_all_nodes_and_taken_for_all(stage: Devices) -> None:
    stage.nodes("a", "b")
    stage.create(claim("one"), claim("two"), claim("three"))
    assert stage.place(pod("p", "one")) == ["p:"]
    pool = {"name": "net", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "allNodes": True, "pool": pool, "devices": [{"name": "x"}]}
    assert stage.place(resource("ResourceSlice", "net", spec)) == ["p:a"]
    assert stage.place(pod("q", "two"), pod("r", "three")) == ["q:", "r:"]
    assert "nodeSelector" not in stage.claim("one")["status"]["allocation"]


def test_d_4_a_claim_that_nobody_else_uses_is_deallocated(stage: Devices) -> None:
    stage.nodes("a", "b")
    stage.create(slice_on("a", "gpu-0"), slice_on("b", "gpu-0"), claim("c"))
    assert stage.place(pod("p", "c")) == ["p:a"]
    stage.delete("p")
    stage.write_status("c", reservedFor=None)
    stage.create({**make_pod("q").select(**{"kubernetes.io/hostname": "b"}).build()})
    assert stage.place() == ["q:b"]
    pinned = pod("r", "c")
    pinned["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "b"}
    stage.create(pinned)
    entry = stage.scheduler.queue.get(stage.uid("r"))
    assert entry is not None
    decided = stage.scheduler.cycle_of("default-scheduler").decide(entry.pod)
    assert "deallocation of ResourceClaim completed" in decided.message
    assert stage.devices_of("c") == ["gpu-0"], "deciding alone writes nothing"
    first, *others = stage.work()
    assert "deallocation of ResourceClaim completed" in first.message
    assert [each.node for each in others] == ["b"]
    assert stage.users_of("c") == ["r"]


def test_d_5_a_better_alternative_makes_a_better_node(stage: Devices) -> None:
    stage.nodes("a", "b")
    stage.create(slice_on("a", "gpu-0"), slice_on("b", "gpu-0", "gpu-1"))
    alternatives = [
        {"name": "two", "deviceClassName": "gpu", "count": 2},
        {"name": "one", "deviceClassName": "gpu", "count": 1},
    ]
    stage.create(claim("c", {"name": "r", "firstAvailable": alternatives}))
    assert stage.place(pod("p", "c")) == ["p:b"]


def test_a_pod_that_names_a_claim_twice_gets_no_second_allocation(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0", "gpu-1"), claim("c"), pod("p", "c", "c"))
    (attempt,) = stage.work()
    assert attempt.message == (
        'running PreBind plugin "DynamicResources": claim default/c got allocated elsewhere in the '
        "meantime"
    )
    assert stage.users_of("c") == []


def test_a_claim_can_be_reserved_for_so_many_pods_only(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0"), claim("c"))
    stage.place(pod("p", "c"))
    users = [{"resource": "pods", "name": f"u{at}", "uid": f"u{at}"} for at in range(256)]
    stage.write_status("c", reservedFor=users)
    stage.create(pod("q", "c"))
    (attempt,) = stage.work()
    assert attempt.message == (
        'running PreBind plugin "DynamicResources": add reservation to claim default/c: '
        'ResourceClaim.resource.k8s.io "c" is invalid: status.reservedFor: Too many: 257: must '
        "have at most 256 items"
    )


def test_a_world_can_be_copied_and_goes_its_own_way(stage: Devices) -> None:
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0"), claim("one"), claim("two"))
    assert stage.place(pod("p", "one")) == ["p:a"]
    other = copy.deepcopy(stage)
    other.write_status("one", allocation=None, reservedFor=None)
    assert other.place(pod("q", "two")) == ["q:a"]
    assert stage.place(pod("q", "two")) == ["q:"]


# -- extended resources --------------------------------------------------------------------------


def extended(stage: Devices) -> list[JsonObject]:
    return [
        each
        for each in stage.client.list(CLAIM, namespace="default")
        if "extended-resources" in each["metadata"]["name"]
    ]


def test_f_13_a_class_stands_for_an_extended_resource(stage: Devices) -> None:
    stage.nodes("a", "b")
    stage.create(slice_on("b", "gpu-0", "gpu-1"))
    asking = pod("p", **{"example.com_gpu": "2"})
    stage.create(asking)
    assert "2 Insufficient example.com/gpu" in stage.messages()[0]
    assert stage.place(device_class("x", extendedResourceName="example.com/gpu")) == ["p:b"]
    (made,) = extended(stage)
    assert made["metadata"]["annotations"] == {
        "resource.kubernetes.io/extended-resource-claim": "true"
    }
    status = stage.pod("p")["status"]["extendedResourceClaimStatus"]
    assert status["resourceClaimName"] == made["metadata"]["name"]
    assert [each["requestName"] for each in status["requestMappings"]] == ["container-0-request-0"]


@pytest.mark.parametrize(
    ("first", "counts"), [("1", [2]), ("2", [2]), ("3", [1, 2])], ids=["fewer", "as many", "more"]
)
def test_f_13_who_ends_before_others_begin_uses_their_devices(
    stage: Devices, first: str, counts: list[int]
) -> None:
    """What an init container needs beyond is a request of its own."""
    stage.create(device_class("x", extendedResourceName="example.com/gpu"))
    stage.nodes("a")
    stage.create(slice_on("a", "gpu-0", "gpu-1", "gpu-2"))
    asking = pod("p", **{"example.com_gpu": "2"})
    (later,) = asking["spec"]["containers"]
    amounts = {"example.com/gpu": first}
    resources = {"requests": amounts, "limits": amounts}
    asking["spec"]["initContainers"] = [{**later, "name": "first", "resources": resources}]
    stage.create(asking)
    stage.work()
    assert stage.pod("p")["spec"]["nodeName"] == "a"
    (made,) = extended(stage)
    requests = made["spec"]["devices"]["requests"]
    assert sorted(each["exactly"]["count"] for each in requests) == counts


def test_a_node_that_offers_the_resource_itself_needs_no_claim(stage: Devices) -> None:
    stage.create(device_class("x", extendedResourceName="example.com/gpu"))
    stage.nodes("a")
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "1"}
    ref = ObjectRef(GroupVersionKind("", "v1", "Node"), "a")
    stage.client.patch(ref, {"status": {"allocatable": amounts}}, subresource="status")
    assert stage.place(pod("p", **{"example.com_gpu": "1"})) == ["p:a"]
    assert extended(stage) == []


# -- devices that have to be made ready ----------------------------------------------------------


def ready(status: str) -> list[JsonObject]:
    told = {"reason": "Driver", "message": "told", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    condition = {"type": "x.io/ready", "status": status, **told}
    broken = {"type": "x.io/broken", "status": "True", **told}
    conditions = [condition if status != "broken" else broken]
    return [{"driver": DRIVER, "pool": "a", "device": "gpu-0", "conditions": conditions}]


@pytest.fixture
def waiting(stage: Devices) -> Devices:
    stage.nodes("a")
    conditions = {"bindingConditions": ["x.io/ready"], "bindingFailureConditions": ["x.io/broken"]}
    stage.create(slice_on("a", "gpu-0", **conditions), claim("c"), pod("p", "c"))
    assert stage.work() == []
    assert stage.users_of("c") == ["p"]
    return stage


def test_a_pod_is_bound_when_its_devices_are_ready(waiting: Devices) -> None:
    waiting.write_status("c", devices=ready("True"))
    waiting.pass_time(5 * SECOND)
    assert [each.node for each in waiting.work()] == ["a"]


def test_a_device_that_fails_ends_the_wait(waiting: Devices) -> None:
    waiting.write_status("c", devices=ready("broken"))
    waiting.pass_time(5 * SECOND)
    (attempt,) = waiting.work()
    assert attempt.message == (
        'running PreBind plugin "DynamicResources": device binding failed: claim=c, '
        'reason=Driver, message="told"'
    )
    assert waiting.users_of("c") == []


def test_a_claim_that_loses_its_allocation_meanwhile_is_not_ready(waiting: Devices) -> None:
    waiting.write_status("c", allocation=None, devices=None, reservedFor=None)
    waiting.pass_time(5 * SECOND)
    assert [each.node for each in waiting.work() if each.node] == []


def test_devices_have_ten_minutes(waiting: Devices) -> None:
    waiting.pass_time(10 * MINUTE - SECOND)
    assert waiting.work() == []
    waiting.pass_time(SECOND)
    (attempt,) = waiting.work()
    text = "device binding timeout: context deadline exceeded"
    assert attempt.message == f'running PreBind plugin "DynamicResources": {text}'
