"""Whole worlds with volumes: scenarios, waits that end or do not, and copies in the middle."""

import kubescene
from kubescene.cluster import Cluster, ClusterOptions, builtin_controllers
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.storage import ZONE, claim, storage_class, using


def scenario(pods: int = 6) -> kubescene.ScenarioBuilder:
    built = kubescene.ScenarioBuilder("volumes")
    for zone in "abc":
        built.create(make_node(f"{zone}-$(INDEX)").cpu("4").memory("8Gi").zone(zone), count=2)
    built.create(storage_class())
    built.create(claim("c-$(INDEX)"), count=pods).step(2)
    return built.create(using("p-$(INDEX)", "c-$(INDEX)"), count=pods).done()


def test_a_scenario_with_volumes_runs_to_running_pods_and_volumes_in_their_zones() -> None:
    result = kubescene.run(scenario())
    assert result.phase == "Succeeded", result.message
    assert result.summary.placements_total == 6
    claims = {
        each["metadata"]["name"]: each for each in result.cluster.list("persistentvolumeclaims")
    }
    volumes = {each["metadata"]["name"]: each for each in result.cluster.list("persistentvolumes")}
    nodes = {each["metadata"]["name"]: each for each in result.cluster.list("nodes")}
    for pod in result.cluster.list("pods"):
        assert pod["status"]["phase"] == "Running"
        name = pod["metadata"]["name"].replace("p-", "c-")
        made = volumes[claims[name]["spec"]["volumeName"]]
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        zone = nodes[pod["spec"]["nodeName"]]["metadata"]["labels"][ZONE]
        assert term["matchExpressions"][0]["values"] == [zone]


def test_pods_of_one_template_with_claims_of_their_own_are_what_they_are_one_by_one() -> None:
    shown = []
    for many in (True, False):
        built = kubescene.ScenarioBuilder("many").create(make_node("n").cpu("4").memory("8Gi"))
        built.create(storage_class())
        for index in range(4):
            built.create(claim(f"c-{index}"))
        if many:
            built.create(using("p-$(INDEX)", "c-$(INDEX)"), count=4)
        else:
            for index in range(4):
                built.create(using(f"p-{index}", f"c-{index}"))
        pods = kubescene.run(built.done()).cluster.list("pods")
        shown.append([(pod["metadata"]["name"], pod["spec"], pod["status"]) for pod in pods])
    assert shown[0] == shown[1]
    assert {status["phase"] for _, _, status in shown[0]} == {"Running"}
    names = [spec["volumes"][0]["persistentVolumeClaim"]["claimName"] for _, spec, _ in shown[0]]
    assert names == [f"c-{index}" for index in range(4)]


def without_binder() -> Cluster:
    """Nobody answers the scheduler."""
    options = ClusterOptions()
    controllers = builtin_controllers(options)
    controllers.replace(
        "persistentvolume-binder", builtin_controllers(options).factory("namespace")
    )
    cluster = Cluster(options, controllers=controllers)
    cluster.create(make_node("n").cpu("4").memory("8Gi").zone("a"))
    cluster.create(storage_class())
    cluster.create(claim("c"))
    cluster.create(using("p", "c"))
    cluster.settle()
    return cluster


def complete(cluster: Cluster) -> None:
    """Answer as a provisioner and the volume controller do."""
    obj = cluster.get("persistentvolumeclaims", "c")
    made = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "made"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "d.example.com", "volumeHandle": "made"},
            "claimRef": {"namespace": "default", "name": "c", "uid": obj["metadata"]["uid"]},
            "storageClassName": "slow",
        },
    }
    cluster.create(made)
    bound: JsonObject = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    cluster.patch("persistentvolumeclaims", "c", merged(bound, {"spec": {"volumeName": "made"}}))
    cluster.settle()


def node_of(cluster: Cluster) -> str:
    return str(cluster.get("pods", "p")["spec"].get("nodeName", ""))


def test_a_world_that_is_copied_in_the_middle_of_a_wait_goes_on_twice() -> None:
    cluster = without_binder()
    assert node_of(cluster) == ""
    assert cluster.get("pods", "p")["status"]["nominatedNodeName"] == "n"
    fork = cluster.fork()
    complete(fork)
    assert node_of(fork) == "n"
    assert node_of(cluster) == ""
    cluster.advance("5m")
    assert "PodScheduled" not in str(cluster.get("pods", "p")["status"].get("conditions"))
    second = cluster.fork()
    complete(cluster)
    assert node_of(cluster) == "n"
    second.advance("5m1s")
    (condition,) = second.get("pods", "p")["status"]["conditions"]
    assert condition["message"] == (
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    )


def test_a_copied_world_assumes_and_counts_for_itself() -> None:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.create(make_node(name).cpu("4").memory("8Gi").zone(name))
    cluster.create(storage_class())
    for at in range(6):
        cluster.create(claim(f"c{at}"))
    for at in range(3):
        cluster.create(using(f"p{at}", f"c{at}"))
    cluster.settle()
    fork = cluster.fork()
    for world in (cluster, fork):
        for at in range(3, 6):
            world.create(using(f"p{at}", f"c{at}"))
        world.create(make_pod("plain"))
        world.settle()
    shown = [
        [(pod["metadata"]["name"], pod["spec"].get("nodeName")) for pod in world.list("pods")]
        for world in (cluster, fork)
    ]
    assert shown[0] == shown[1]
    assert all(node for _, node in shown[0])
