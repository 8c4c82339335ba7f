"""Where the pods of a Service are: Endpoints, EndpointSlices, and slices of written Endpoints."""

import pytest

from kubescene.client import ObjectRef
from kubescene.client.direct import DirectClient
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.services import addresses, endpoint_slices
from kubescene.controllers.builtin.services.endpoints import OVER_CAPACITY, truncated
from kubescene.errors import InvalidError
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


@pytest.fixture
def world() -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(events=True))
    labels = {"topology.kubernetes.io/zone": "z1"}
    cluster.create(make_node("n1").cpu("640").memory("640Gi").pods("5000").labels(labels))
    return cluster


def serve(cluster: ClusterWorld, name: str = "web", **spec: object) -> None:
    usual = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}
    metadata = {"name": name, "labels": {"team": "a"}}
    cluster.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": usual | spec}
    )


def run(cluster: ClusterWorld, name: str, ip: str = "", **labels: str) -> None:
    """A pod that runs, with an address if one is given."""
    cluster.create(make_pod(name).labels(labels or {"app": "web"}))
    cluster.settle()
    if ip:
        give(cluster, name, ip)


def begin(cluster: ClusterWorld, name: str) -> None:
    """A pod that has no address for an hour."""
    pod = make_pod(name).labels({"app": "web"}).build()
    pod["metadata"]["annotations"] = {"kubescene.dev/start-time": "1h"}
    cluster.create(pod)
    cluster.settle()


def give(cluster: ClusterWorld, name: str, ip: str) -> None:
    status = {"podIP": ip, "podIPs": [{"ip": ip}]}
    cluster.patch("Pod", name, {"status": status}, subresource="status", patch_type="merge")
    cluster.settle()


def slices(cluster: ClusterWorld, service: str = "web") -> list[JsonObject]:
    listed = cluster.settle().list("EndpointSlice", namespace="default")
    label = "kubernetes.io/service-name"
    return [each for each in listed if each["metadata"]["labels"][label] == service]


def reached(cluster: ClusterWorld, service: str = "web") -> list[str]:
    """The addresses in all slices of a Service."""
    found = (each["addresses"] for one in slices(cluster, service) for each in one["endpoints"])
    return sorted(address for each in found for address in each)


def subsets(cluster: ClusterWorld, name: str = "web") -> list[JsonObject]:
    found: list[JsonObject] = cluster.settle().get("Endpoints", name).get("subsets") or []
    return found


def revision_at_rest(cluster: ClusterWorld) -> int:
    return cluster.settle().revision


def test_worlds_without_events_have_them_too() -> None:
    """A scenario is played alike in the library and in a server."""
    cluster = ClusterWorld()
    serve(cluster)
    cluster.settle()
    assert (len(cluster.list("EndpointSlice")), len(cluster.list("Endpoints"))) == (1, 1)


def test_a_pod_without_an_address_is_nowhere(world: ClusterWorld) -> None:
    begin(world, "p1")
    serve(world)
    [placeholder] = slices(world)
    assert not placeholder["endpoints"]
    assert placeholder["metadata"]["name"].startswith("web-")
    assert subsets(world) == []
    assert world.get("Pod", "p1")["spec"]["nodeName"] == "n1"


def test_pods_come_and_go(world: ClusterWorld) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    assert reached(world) == ["10.0.0.1"]
    run(world, "p2", "10.0.0.2")
    assert reached(world) == ["10.0.0.1", "10.0.0.2"]
    [subset] = subsets(world)
    assert [each["ip"] for each in subset["addresses"]] == ["10.0.0.1", "10.0.0.2"]
    [written] = slices(world)
    assert {each["zone"] for each in written["endpoints"]} == {"z1"}
    world.delete("Pod", "p1", grace_period_s=0)
    assert reached(world) == ["10.0.0.2"]
    world.delete("Pod", "p2", grace_period_s=0)
    [left] = slices(world)
    assert (left["metadata"]["name"], left["endpoints"]) == (written["metadata"]["name"], [])
    assert subsets(world) == []


def test_pods_that_others_select_change_nothing(world: ClusterWorld) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    before = reached(world)
    run(world, "other", "10.0.0.9", app="db")
    world.create(make_pod("elsewhere", namespace="kube-system").labels({"app": "web"}))
    assert reached(world) == before
    world.patch("Pod", "other", {"metadata": {"labels": {"app": "web"}}}, patch_type="merge")
    assert reached(world) == ["10.0.0.1", "10.0.0.9"]


def test_at_rest_nothing_is_written_again(world: ClusterWorld) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    revision = revision_at_rest(world)
    world.patch("Pod", "p1", {"metadata": {"annotations": {"a": "b"}}}, patch_type="merge")
    assert revision_at_rest(world) == revision + 1


def test_a_slice_has_at_most_a_hundred_endpoints(world: ClusterWorld) -> None:
    for number in range(101):
        run(world, f"p{number}", f"10.0.1.{number}")
    serve(world)
    assert sorted(len(each["endpoints"]) for each in slices(world)) == [1, 100]
    world.delete("Pod", "p0", grace_period_s=0)
    world.delete("Pod", "p1", grace_period_s=0)
    assert len(reached(world)) == 99
    run(world, "new", "10.0.2.1")
    assert sorted(len(each["endpoints"]) for each in slices(world)) == [1, 99]


def test_a_slice_that_somebody_deletes_comes_back(world: ClusterWorld) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    [written] = slices(world)
    world.delete("EndpointSlice", written["metadata"]["name"])
    world.delete("Endpoints", "web")
    assert reached(world) == ["10.0.0.1"]
    assert len(subsets(world)) == 1


def test_a_service_takes_its_endpoints_with_it(world: ClusterWorld) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    world.settle()
    world.delete("Service", "web")
    assert slices(world) == []
    assert world.list("Endpoints") == []
    serve(world)
    assert reached(world) == ["10.0.0.1"]


def test_a_pod_on_a_node_that_is_not_there_waits_for_it(world: ClusterWorld) -> None:
    serve(world)
    pod = make_pod("p1").labels({"app": "web"}).build()
    pod["spec"]["nodeName"] = "n2"
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    world.create(pod)
    world.patch("Pod", "p1", {"status": status}, subresource="status", patch_type="merge")
    assert reached(world) == []
    world.create(make_node("n2").cpu("1").memory("1Gi"))
    assert reached(world) == ["10.0.0.1"]


def test_families_have_slices_of_their_own(world: ClusterWorld) -> None:
    serve(world, ipFamilyPolicy="PreferDualStack", ipFamilies=["IPv6", "IPv4"])
    run(world, "p1")
    status = {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00:0::1"}]}
    world.patch("Pod", "p1", {"status": status}, subresource="status", patch_type="merge")
    found = {
        each["addressType"]: [one["addresses"] for one in each["endpoints"]]
        for each in slices(world)
    }
    assert found == {"IPv4": [["10.0.0.1"]], "IPv6": [["fd00::1"]]}
    [subset] = subsets(world)
    assert [each["ip"] for each in subset["addresses"]] == ["fd00::1"]


@pytest.mark.parametrize(
    ("distribution", "hints"),
    [
        ("PreferClose", {"forZones": [{"name": "z1"}]}),
        ("PreferSameZone", {"forZones": [{"name": "z1"}]}),
        ("PreferSameNode", {"forZones": [{"name": "z1"}], "forNodes": [{"name": "n1"}]}),
    ],
)
def test_hints_come_and_go_with_the_distribution(
    world: ClusterWorld, distribution: str, hints: JsonObject
) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    world.settle()
    for wanted, expected in ((distribution, hints), (None, None)):
        spec = {"spec": {"trafficDistribution": wanted}}
        world.patch("Service", "web", spec, patch_type="merge")
        [written] = slices(world)
        assert [each.get("hints") for each in written["endpoints"]] == [expected]


def test_written_endpoints_are_mirrored_while_nobody_selects_pods(world: ClusterWorld) -> None:
    serve(world, selector=None)
    metadata = {"name": "web", "annotations": {"mine": "x"}}
    ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    given = [
        {"addresses": [{"ip": "10.2.0.1"}, {"ip": "fd00::2"}], "ports": ports},
        {"addresses": [{"ip": "10.2.0.3"}], "ports": ports[:1]},
    ]
    world.create({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": given})
    assert reached(world) == ["10.2.0.1", "10.2.0.3", "fd00::2"]
    assert len(slices(world)) == 3
    assert all(each["metadata"]["annotations"] == {"mine": "x"} for each in slices(world))
    revision = revision_at_rest(world)
    assert revision_at_rest(world) == revision
    body = {"metadata": {"annotations": {"mine": "y"}}, "subsets": given[:1]}
    world.patch("Endpoints", "web", body, patch_type="merge")
    assert reached(world) == ["10.2.0.1", "fd00::2"]
    assert all(each["metadata"]["annotations"] == {"mine": "y"} for each in slices(world))
    world.delete("Service", "web")
    assert slices(world) == []


def test_a_fork_goes_on_alike(world: ClusterWorld) -> None:
    run(world, "p1", "10.0.0.1")
    serve(world)
    world.settle()
    fork = world.fork()
    for each in (world, fork):
        run(each, "p2", "10.0.0.2")
        each.delete("Pod", "p1", grace_period_s=0)
    assert slices(world) == slices(fork)
    assert subsets(world) == subsets(fork)


def test_nothing_is_created_in_a_namespace_that_goes(world: ClusterWorld) -> None:
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    held = {"name": "m", "namespace": "going", "finalizers": ["example.com/hold"]}
    world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    service = {"name": "web", "namespace": "going", "finalizers": ["example.com/hold"]}
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    world.create({"apiVersion": "v1", "kind": "Service", "metadata": service, "spec": spec})
    world.settle()
    world.delete("Namespace", "going")
    world.settle()
    assert world.list("EndpointSlice", namespace="going") == []
    assert world.list("Endpoints", namespace="going") == []


def test_endpoints_are_cut_off_at_a_thousand() -> None:
    def some(count: int) -> list[JsonObject]:
        return [{"ip": f"10.0.{number // 256}.{number % 256}"} for number in range(count)]

    whole = [{"addresses": some(600), "notReadyAddresses": some(400)}]
    assert truncated(whole) is whole
    [cut] = truncated([{"addresses": some(600), "notReadyAddresses": some(500)}])
    assert (len(cut["addresses"]), len(cut["notReadyAddresses"])) == (600, 400)
    one, two = truncated(
        [{"addresses": some(900), "notReadyAddresses": some(1)}, {"addresses": some(300)}]
    )
    assert (len(one["addresses"]), len(two["addresses"])) == (750, 250)
    assert "notReadyAddresses" not in one
    assert OVER_CAPACITY == "endpoints.kubernetes.io/over-capacity"


def test_text_that_is_no_address_is_none() -> None:
    assert addresses.spelled("nowhere") is None
    assert addresses.spelled("::ffff:10.0.0.1") == ("10.0.0.1", "IPv4")
    pod = {"status": {"podIPs": [{"ip": "nowhere"}, {}]}}
    assert addresses.pod_addresses(pod, "IPv4") == []


def unready(cluster: ClusterWorld, name: str, since: str) -> None:
    """A pod is ready no more, from an instant on."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": since}
    patch = {"status": {"conditions": [condition]}}
    cluster.patch("Pod", name, patch, subresource="status", patch_type="merge")
    cluster.settle()


def test_a_pass_reads_no_pod_that_is_as_it_was_and_has_no_place(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a Service costs as much per pod over ten thousand of them as over ten."""
    serve(world)
    for number in range(30):
        begin(world, f"p{number}")
    run(world, "placed", "10.0.0.1")
    read: list[str] = []
    find = DirectClient.find

    def noted(client: DirectClient, ref: ObjectRef) -> JsonObject | None:
        if ref.gvk.kind == "Pod" and client.actor.name.startswith("endpoint"):
            read.append(ref.name)
        return find(client, ref)

    monkeypatch.setattr(DirectClient, "find", noted)
    give(world, "p7", "10.0.0.7")
    assert sorted(set(read)) == ["p7", "placed"]
    assert reached(world) == ["10.0.0.1", "10.0.0.7"]
    read.clear()
    world.delete("Pod", "p7")
    assert reached(world) == ["10.0.0.1"]
    assert set(read) <= {"p7", "placed"}


def test_the_time_of_a_change_is_that_of_the_pods_that_have_changed(world: ClusterWorld) -> None:
    def told() -> str | None:
        annotations = world.settle().get("Endpoints", "web")["metadata"].get("annotations") or {}
        return annotations.get("endpoints.kubernetes.io/last-change-trigger-time")

    for name in ("p1", "p2", "p3"):
        run(world, name, f"10.0.0.{name[1]}")
    serve(world)
    world.settle()
    unready(world, "p1", "2031-01-01T00:00:00Z")
    assert told() == "2031-01-01T00:00:00Z"
    unready(world, "p2", "2033-01-01T00:00:00Z")
    assert told() == "2033-01-01T00:00:00Z"
    world.delete("Pod", "p3")
    assert told() is None


def test_new_endpoints_go_where_they_fit_best() -> None:
    few: JsonObject = {"endpoints": [{}] * 10}
    many: JsonObject = {"endpoints": [{}] * 60}
    assert endpoint_slices.roomiest_fit([few, many], 40) is many
    assert endpoint_slices.roomiest_fit([few, many], 41) is few
    assert endpoint_slices.roomiest_fit([few, many], 91) is None


def test_writes_that_are_refused_are_told_and_tried_again(world: ClusterWorld) -> None:
    class Refusal:
        name = "refusal"
        active = True

        def admit(self, request: AdmissionRequest) -> JsonObject:
            if self.active and request.obj.get("kind") in ("Endpoints", "EndpointSlice"):
                raise InvalidError("not now")
            return request.obj

    refusal = Refusal()
    run(world, "p1", "10.0.0.1")
    world.registry.admission.add(refusal)
    serve(world)
    assert slices(world) == []
    told = {each["reason"]: each["message"] for each in world.list("Event")}
    assert told["FailedToCreateEndpoint"] == (
        "Failed to create endpoint for service default/web: not now"
    )
    assert told["FailedToUpdateEndpointSlices"] == (
        "Error updating Endpoint Slices for Service default/web: failed to create EndpointSlice "
        "for Service default/web: not now"
    )
    refusal.active = False
    assert reached(world) == ["10.0.0.1"]
    refusal.active = True
    give(world, "p1", "10.0.0.2")
    assert "FailedToUpdateEndpoint" in {each["reason"] for each in world.list("Event")}
    refusal.active = False
    assert reached(world) == ["10.0.0.2"]
