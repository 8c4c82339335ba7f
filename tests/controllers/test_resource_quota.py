"""Quotas: what they count, what they refuse, and when it becomes free again."""

import pytest

import kubescene
from kubescene.actors import Actor
from kubescene.api.options import WriteOptions
from kubescene.cluster import ClusterWorld
from kubescene.controllers.builtin import table
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import AlreadyExistsError, ForbiddenError
from kubescene.testing import make_deployment, make_node, make_pod, make_replica_set
from kubescene.types import JsonObject

PLACE = "default"


@pytest.fixture
def world() -> ClusterWorld:
    cluster = ClusterWorld()
    cluster.create(make_node("n1").cpu("64").memory("64Gi"))
    return cluster


def limit(cluster: ClusterWorld, name: str = "q", **spec: object) -> None:
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": name, "namespace": PLACE},
            "spec": spec,
        }
    )
    cluster.settle()


def used(cluster: ClusterWorld, name: str = "q") -> JsonObject:
    found: JsonObject = cluster.settle().get("ResourceQuota", name, PLACE)["status"]["used"]
    return found


def claim(name: str, size: str, storage_class: str = "") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def service(name: str, kind: str, ports: int = 1) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {
            "type": kind,
            "ports": [{"name": f"p{each}", "port": 80 + each} for each in range(ports)],
        },
    }


def with_gpu(name: str) -> JsonObject:
    resources = {"limits": {"example.com/gpu": "1"}}
    container = {"name": "c", "image": "i", "resources": resources}
    pod = make_pod(name).build()
    return {**pod, "spec": {**pod["spec"], "containers": [container]}}


def test_a_deployment_gets_as_many_pods_as_its_quota_allows(world: ClusterWorld) -> None:
    limit(world, hard={"pods": "2"})
    world.create(make_deployment("web").replicas(5))
    world.settle()
    assert len(world.list("Pod")) == 2
    assert {pod["status"]["phase"] for pod in world.list("Pod")} == {"Running"}
    [replica_set] = world.list("ReplicaSet")
    [failure] = replica_set["status"]["conditions"]
    assert failure["message"].endswith(
        "is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    )


def test_a_raised_quota_lets_the_rest_come(world: ClusterWorld) -> None:
    limit(world, hard={"pods": "2"})
    world.create(make_deployment("web").replicas(5))
    world.settle()
    world.patch("ResourceQuota", "q", {"spec": {"hard": {"pods": "9"}}}, PLACE, patch_type="merge")
    world.settle()
    world.advance("60s")
    assert len(world.list("Pod")) == 5
    assert used(world) == {"pods": "5"}


def test_what_was_there_before_the_quota_counts(world: ClusterWorld) -> None:
    for name in ("a", "b", "c"):
        world.create(make_pod(name).cpu("100m"))
    world.settle()
    limit(world, hard={"pods": "2", "requests.cpu": "1"})
    assert used(world) == {"pods": "3", "requests.cpu": "300m"}
    with pytest.raises(ForbiddenError, match="used: pods=3, limited: pods=2"):
        world.create(make_pod("d").cpu("100m"))


def test_scaling_down_and_ending_give_back(world: ClusterWorld) -> None:
    limit(world, hard={"pods": "9", "count/pods": "9", "cpu": "9"})
    world.create(make_replica_set("web").replicas(3).template(make_pod("").cpu("1")))
    assert used(world) == {"count/pods": "3", "cpu": "3", "pods": "3"}
    world.scale("ReplicaSet", "web", 2)
    assert used(world) == {"count/pods": "2", "cpu": "2", "pods": "2"}
    world.create(make_pod("once").cpu("500m"))
    world.settle()
    world.patch("Pod", "once", {"status": {"phase": "Succeeded"}}, PLACE, subresource="status")
    assert used(world) == {"count/pods": "3", "cpu": "2", "pods": "2"}


def test_templates_are_not_taken_past_the_quota() -> None:
    """Pods alike are admitted once for all of them; where a quota counts, each is."""
    cluster = kubescene.Cluster()
    cluster.create(make_node("n1").cpu("640").memory("640Gi").pods("1000"))
    cluster.create(make_deployment("before").replicas(50))
    cluster.settle()
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    cluster.create({**quota, "spec": {"hard": {"pods": "60"}}})
    cluster.settle()
    cluster.scale("Deployment", "before", 200)
    cluster.settle()
    assert len(cluster.list("Pod")) == 60
    assert cluster.get("ResourceQuota", "q")["status"]["used"] == {"pods": "60"}


def test_other_namespaces_are_free(world: ClusterWorld) -> None:
    limit(world, hard={"pods": "0"})
    world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "free"}})
    world.create(make_pod("p").namespace("free"))
    with pytest.raises(ForbiddenError):
        world.create(make_pod("p"))


def test_a_refused_create_charges_no_quota(world: ClusterWorld) -> None:
    limit(world, "a", hard={"pods": "9"})
    limit(world, "b", hard={"pods": "0"})
    with pytest.raises(ForbiddenError, match="exceeded quota: b"):
        world.create(make_pod("p"))
    assert used(world, "a") == {"pods": "0"}


def test_a_name_that_is_taken_and_a_dry_run_charge_nothing(world: ClusterWorld) -> None:
    limit(world, hard={"pods": "9"})
    world.create(make_pod("p"))
    with pytest.raises(AlreadyExistsError):
        world.create(make_pod("p"))
    dry = WriteOptions(dry_run=True)
    world.registry.create(Actor("me"), make_pod("tried").build(), options=dry)
    assert world.get("ResourceQuota", "q", PLACE)["status"]["used"] == {"pods": "1"}


def test_storage_is_counted_by_class_and_when_it_grows(world: ClusterWorld) -> None:
    fast = "fast.storageclass.storage.k8s.io"
    hard = {
        "requests.storage": "5Gi",
        f"{fast}/requests.storage": "3Gi",
        f"{fast}/persistentvolumeclaims": "2",
    }
    limit(world, hard=hard)
    world.create(claim("a", "2Gi", "fast"))
    world.create(claim("b", "1Gi", "slow"))
    assert used(world) == {
        f"{fast}/persistentvolumeclaims": "1",
        f"{fast}/requests.storage": "2Gi",
        "requests.storage": "3Gi",
    }
    with pytest.raises(ForbiddenError, match=f"requested: {fast}/requests.storage=2Gi"):
        world.create(claim("c", "2Gi", "fast"))


def test_node_ports_and_load_balancers(world: ClusterWorld) -> None:
    limit(world, hard={"services.nodeports": "3", "services.loadbalancers": "1", "services": "9"})
    world.create(service("a", "NodePort", 2))
    world.create(service("b", "ClusterIP", 2))
    expected = {"services": "2", "services.loadbalancers": "0", "services.nodeports": "2"}
    assert used(world) == expected
    change = {"spec": {"type": "LoadBalancer"}}
    with pytest.raises(ForbiddenError, match=r"requested: services\.nodeports=2"):
        world.patch("Service", "b", change, PLACE, patch_type="merge")
    world.delete("Service", "a", PLACE)
    world.settle()
    world.patch("Service", "b", change, PLACE, patch_type="merge")
    expected = {"services": "1", "services.loadbalancers": "1", "services.nodeports": "2"}
    assert used(world) == expected


def test_extended_resources_are_counted_by_requests(world: ClusterWorld) -> None:
    limit(world, hard={"requests.example.com/gpu": "1"})
    world.create(with_gpu("a"))
    with pytest.raises(ForbiddenError, match=r"requested: requests\.example\.com/gpu=1"):
        world.create(with_gpu("b"))
    world.create(make_pod("c"))
    assert used(world) == {"requests.example.com/gpu": "1"}


def test_quotas_count_themselves_and_unknown_names_are_not_used(world: ClusterWorld) -> None:
    limit(world, hard={"resourcequotas": "2", "count/widgets.example.com": "3"})
    assert used(world) == {"resourcequotas": "1"}
    limit(world, "second", hard={"pods": "1"})
    assert used(world) == {"resourcequotas": "2"}
    with pytest.raises(ForbiddenError, match="resourcequotas=2, limited: resourcequotas=2"):
        limit(world, "third", hard={"pods": "1"})


def test_a_pod_that_should_have_gone_is_not_charged_when_all_quotas_are_looked_at() -> None:
    """Every five minutes, as the real controller does (recorded: namespace-random-601)."""
    without_kubelet = [each for each in table() if each.name != "kubelet"]
    world = ClusterWorld(controllers=ControllerRegistrations(without_kubelet))
    world.create(make_node("n1").cpu("64").memory("64Gi"))
    limit(world, hard={"pods": "1", "count/pods": "2"})
    world.create(make_pod("held").on("n1"))
    world.settle()
    world.delete("Pod", "held", PLACE)
    assert used(world) == {"count/pods": "1", "pods": "1"}
    world.advance("299s")
    assert used(world) == {"count/pods": "1", "pods": "1"}
    world.advance("1s")
    assert used(world) == {"count/pods": "1", "pods": "0"}


def test_a_pod_counts_to_the_last_instant_of_its_grace_period() -> None:
    without_kubelet = [each for each in table() if each.name != "kubelet"]
    world = ClusterWorld(controllers=ControllerRegistrations(without_kubelet))
    world.create(make_node("n1").cpu("64").memory("64Gi"))
    limit(world, hard={"pods": "1"})
    world.create(make_pod("held").on("n1"))
    world.advance("240s")
    world.delete("Pod", "held", PLACE)  # Twice its 30 s are over when all are looked at.
    world.advance("60s")
    assert used(world) == {"pods": "1"}
    world.advance("300s")
    assert used(world) == {"pods": "0"}


def test_a_fork_goes_on_alike(world: ClusterWorld) -> None:
    limit(world, hard={"pods": "3"})
    world.create(make_replica_set("web").replicas(2))
    world.settle()
    fork = world.fork()
    for each in (world, fork):
        each.scale("ReplicaSet", "web", 9)
        assert used(each) == {"pods": "3"}
        each.scale("ReplicaSet", "web", 1)
        assert used(each) == {"pods": "1"}


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ({"operator": "In", "values": ["high"]}, ["high"]),
        ({"operator": "NotIn", "values": ["high"]}, ["low", ""]),
        ({"operator": "Exists"}, ["high", "low"]),
        ({"operator": "DoesNotExist"}, [""]),
    ],
)
def test_scope_selectors_pick_by_priority_class(
    world: ClusterWorld, expression: JsonObject, names: list[str]
) -> None:
    for name in ("high", "low"):
        world.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": 1,
            }
        )
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", **expression}]}
    limit(world, hard={"pods": "9"}, scopeSelector=selector)
    for name in ("high", "low", ""):
        pod = make_pod(f"p{name}")
        world.create(pod.priority_class(name) if name else pod)
    assert used(world) == {"pods": str(len(names))}


def test_a_resized_pod_is_charged_for_what_comes_on_top(world: ClusterWorld) -> None:
    limit(world, hard={"requests.cpu": "1"})
    world.create(make_pod("p").cpu("500m"))
    world.settle()
    [container] = world.get("Pod", "p", PLACE)["spec"]["containers"]

    def resize(amount: str) -> None:
        resources = {"requests": {"cpu": amount}}
        patch = {"spec": {"containers": [{"name": container["name"], "resources": resources}]}}
        world.patch("Pod", "p", patch, PLACE, subresource="resize")

    with pytest.raises(ForbiddenError, match=r"requested: requests\.cpu=1500m"):
        resize("2")
    resize("800m")
    assert used(world) == {"requests.cpu": "800m"}
    resize("300m")
    assert used(world) == {"requests.cpu": "300m"}


def test_the_plain_way_leads_to_the_same_world() -> None:
    worlds = []
    for plain in (False, True):
        cluster = kubescene.Cluster(plain=plain)
        cluster.create(make_node("n1").cpu("64").memory("64Gi").pods("500"))
        cluster.create(make_deployment("web").replicas(20))
        cluster.settle()
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
        cluster.create({**quota, "spec": {"hard": {"pods": "25", "count/pods": "99"}}})
        cluster.settle()
        for replicas in (40, 10, 30):
            cluster.scale("Deployment", "web", replicas)
            cluster.settle()
        worlds.append([*cluster.list("Pod"), *cluster.list("ResourceQuota")])
    assert worlds[0] == worlds[1]
    assert worlds[0][-1]["status"]["used"] == {"count/pods": "25", "pods": "25"}
