"""Node groups: machines that are ordered, boot, register, get ready, fail and are given back."""

from typing import Any

import pytest

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import InvalidError
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

AMOUNTS = {"cpu": "4", "memory": "16Gi", "pods": "110"}
TEMPLATE: JsonObject = {
    "metadata": {"labels": {"pool": "std"}, "annotations": {"note": "x"}},
    "spec": {"taints": [{"key": "dedicated", "effect": "PreferNoSchedule"}]},
    "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS},
}
BOOT = {"time": "2m", "registration": "5s", "ready": "10s"}


def group(name: str = "std", **spec: object) -> JsonObject:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": {"size": 2, "template": TEMPLATE, **spec},
    }


def phases(cluster: ClusterWorld) -> dict[str, str]:
    found = cluster.list("instances")
    return {each["metadata"]["name"]: each["status"]["phase"] for each in found}


def names(cluster: ClusterWorld, kind: str = "nodes") -> list[str]:
    return [each["metadata"]["name"] for each in cluster.list(kind)]


def status(cluster: ClusterWorld, name: str = "std") -> JsonObject:
    found: JsonObject = cluster.get("nodegroups", name)["status"]
    return found


def size(cluster: ClusterWorld, name: str = "std") -> int:
    found: int = cluster.get("nodegroups", name)["spec"]["size"]
    return found


def resize(cluster: ClusterWorld, replicas: int) -> None:
    cluster.patch("nodegroups", "std", {"spec": {"size": replicas}})
    cluster.settle()


def is_ready(cluster: ClusterWorld, name: str) -> bool:
    listed = cluster.get("nodes", name)["status"]["conditions"]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in listed)


def test_a_machine_boots_registers_and_gets_ready_at_its_times(cluster: ClusterWorld) -> None:
    cluster.create(group(boot=BOOT, size=1))
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    assert phases(cluster) == {"std-0": "Booting"}
    cluster.advance("119s")
    assert phases(cluster) == {"std-0": "Booting"}
    cluster.advance("1s")
    assert phases(cluster) == {"std-0": "Running"}
    cluster.advance("4s")
    assert names(cluster) == []
    cluster.advance("1s")
    assert phases(cluster) == {"std-0": "Registered"}
    assert not is_ready(cluster, "std-0")
    assert "nodeName" not in cluster.get("pods", "a")["spec"]
    cluster.advance("9s")
    assert not is_ready(cluster, "std-0")
    cluster.advance("1s")
    assert is_ready(cluster, "std-0")
    assert cluster.get("pods", "a")["spec"]["nodeName"] == "std-0"
    times = cluster.get("instances", "std-0")["status"]
    assert times["launchedAt"] == "2026-01-01T00:00:00.000000Z"
    assert times["readyAt"] == "2026-01-01T00:02:15.000000Z"
    assert status(cluster) == {
        "instances": 1,
        "nodes": 1,
        "failed": 0,
        "ordered": 1,
        "observedGeneration": 1,
    }


def test_a_node_is_what_its_group_says(cluster: ClusterWorld) -> None:
    cluster.create(group(zones=["a", "b", "c"], size=4))
    cluster.settle()
    zones = {
        each["metadata"]["name"]: each["metadata"]["labels"]["topology.kubernetes.io/zone"]
        for each in cluster.list("nodes")
    }
    assert zones == {"std-0": "a", "std-1": "b", "std-2": "c", "std-3": "a"}
    node = cluster.get("nodes", "std-1")
    assert node["metadata"]["labels"] == {
        "pool": "std",
        "kubernetes.io/hostname": "std-1",
        "kubescene.dev/node-group": "std",
        "topology.kubernetes.io/zone": "b",
    }
    assert node["metadata"]["annotations"]["note"] == "x"
    assert node["spec"]["providerID"] == "kubescene:///std-1"
    assert node["spec"]["taints"] == [{"key": "dedicated", "effect": "PreferNoSchedule"}]
    assert node["metadata"]["ownerReferences"][0]["kind"] == "Instance"
    assert is_ready(cluster, "std-1")


def test_names_are_never_used_twice(cluster: ClusterWorld) -> None:
    cluster.create(group())
    cluster.settle()
    resize(cluster, 0)
    assert names(cluster) == names(cluster, "instances") == []
    resize(cluster, 2)
    assert names(cluster) == ["std-2", "std-3"]


def test_a_group_without_a_size_has_its_least(cluster: ClusterWorld) -> None:
    given = group(min=3, max=5)
    del given["spec"]["size"]
    cluster.create(given)
    cluster.settle()
    assert names(cluster) == ["std-0", "std-1", "std-2"]


def test_whoever_deletes_a_machine_makes_the_group_smaller(cluster: ClusterWorld) -> None:
    cluster.create(group(size=3))
    cluster.settle()
    cluster.delete("instances", "std-1")
    cluster.settle()
    assert size(cluster) == 2
    assert names(cluster) == names(cluster, "instances") == ["std-0", "std-2"]


def test_a_group_does_not_go_below_its_least_size(cluster: ClusterWorld) -> None:
    cluster.create(group(size=2, min=2, max=4))
    cluster.settle()
    cluster.delete("instances", "std-0")
    cluster.settle()
    assert size(cluster) == 2
    assert names(cluster) == ["std-1", "std-2"]


def test_who_replaces_what_is_lost_keeps_its_size(cluster: ClusterWorld) -> None:
    cluster.create(group(size=2, replace=True))
    cluster.settle()
    cluster.delete("instances", "std-0")
    cluster.settle()
    assert size(cluster) == 2
    assert names(cluster) == ["std-1", "std-2"]


def test_those_that_serve_nobody_go_first(cluster: ClusterWorld) -> None:
    cluster.create(group(size=2))
    cluster.settle()
    cluster.patch("nodegroups", "std", {"spec": {"boot": BOOT, "size": 4}})
    cluster.settle()
    assert phases(cluster)["std-3"] == "Booting"
    resize(cluster, 3)
    assert sorted(phases(cluster)) == ["std-0", "std-1", "std-2"]
    resize(cluster, 1)
    assert sorted(phases(cluster)) == ["std-0"]


def test_a_machine_takes_its_time_to_go(cluster: ClusterWorld) -> None:
    cluster.create(group(size=1, shutdown={"time": "30s"}))
    cluster.settle()
    cluster.delete("instances", "std-0")
    cluster.settle()
    assert phases(cluster) == {"std-0": "Deleting"}
    taints = cluster.get("nodes", "std-0")["spec"]["taints"]
    assert taints[-1]["key"] == "node.cloudprovider.kubernetes.io/shutdown"
    cluster.create(make_pod("late").cpu("1"))
    cluster.advance("29s")
    assert "nodeName" not in cluster.get("pods", "late")["spec"]
    assert names(cluster) == ["std-0"]
    cluster.advance("1s")
    assert names(cluster) == names(cluster, "instances") == []


def test_a_group_that_goes_gives_all_back(cluster: ClusterWorld) -> None:
    cluster.create(group(shutdown={"time": "30s"}))
    cluster.settle()
    cluster.delete("nodegroups", "std")
    cluster.settle()
    assert set(phases(cluster).values()) == {"Deleting"}
    cluster.advance("30s")
    assert names(cluster) == names(cluster, "instances") == []


def test_a_node_that_somebody_deletes_leaves_its_machine(cluster: ClusterWorld) -> None:
    cluster.create(group(size=1))
    cluster.settle()
    cluster.delete("nodes", "std-0")
    cluster.advance("1h")
    assert names(cluster) == []
    assert phases(cluster) == {"std-0": "Registered"}


def test_a_machine_whose_name_is_taken_has_failed(cluster: ClusterWorld) -> None:
    cluster.create(make_node("std-0").cpu("1"))
    cluster.create(group(size=1))
    cluster.settle()
    assert phases(cluster) == {"std-0": "Failed"}
    assert "already exists" in status(cluster)["message"]
    cluster.delete("instances", "std-0")
    cluster.settle()
    assert names(cluster) == ["std-0"], "it was not the machine's"


def test_machines_beyond_the_quota_fail(cluster: ClusterWorld) -> None:
    cluster.create(group(size=4, quota=2))
    cluster.settle()
    assert [*phases(cluster).values()] == ["Registered", "Registered", "Failed", "Failed"]
    error = cluster.get("instances", "std-2")["status"]["error"]
    assert error == {
        "class": "OutOfResource",
        "code": "QuotaExceeded",
        "message": "the quota of 2 machines is used up",
    }
    assert status(cluster)["message"] == error["message"]
    assert "launchedAt" not in cluster.get("instances", "std-2")["status"], "nobody pays for it"
    resize(cluster, 2)
    assert [*phases(cluster)] == ["std-0", "std-1"]
    assert "message" not in status(cluster)


def test_orders_fail_as_often_as_the_group_says(cluster: ClusterWorld) -> None:
    faults = {"share": 0.3, "after": "40s", "code": "Stockout", "class": "OutOfResource"}
    cluster.create(group(size=200, faults=faults))
    cluster.settle()
    cluster.advance("39s")
    assert status(cluster)["failed"] == 0
    cluster.advance("1s")
    assert 40 <= status(cluster)["failed"] <= 80
    failed = [each for each in cluster.list("instances") if each["status"]["phase"] == "Failed"]
    assert failed[0]["status"]["error"]["code"] == "Stockout"
    assert size(cluster) == 200, "a failed machine counts until somebody gives it back"


def test_failed_machines_are_replaced_without_end_but_not_at_once(cluster: ClusterWorld) -> None:
    cluster.create(group(size=1, replace=True, faults={"share": 1}))
    cluster.settle()
    assert phases(cluster) == {"std-0": "Failed"}
    cluster.advance("59s")
    assert phases(cluster) == {"std-0": "Failed"}
    cluster.advance("1s")
    assert phases(cluster) == {"std-1": "Failed"}
    cluster.advance("9m")
    assert status(cluster)["ordered"] == 11


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"boot": {"time": "-1s"}}, "spec.boot.time: '-1s' is not a duration"),
        ({"boot": {"ready": {"uniform": {"min": "2s", "max": "1s"}}}}, "min is larger than max"),
        ({"boot": {"registration": 5}}, "spec.boot.registration: a duration is a text"),
        ({"shutdown": {"time": {"normal": {"mean": "1s"}}}}, "spec.shutdown.time: normal needs"),
        ({"faults": {"share": 1, "after": "x"}}, "spec.faults.after: "),
        ({"min": 5, "max": 4}, "spec.min: 5 is larger than max, which is 4"),
        ({"max": 1}, "spec.size: 2 is beyond max, which is 1"),
        ({"min": 3}, "spec.size: 2 is below min, which is 3"),
    ],
)
def test_a_group_that_makes_no_sense_says_so_and_has_no_machines(
    cluster: ClusterWorld, spec: JsonObject, said: str
) -> None:
    cluster.create(group(**spec))
    cluster.settle()
    assert said in status(cluster)["message"]
    assert names(cluster, "instances") == []
    cluster.patch("nodegroups", "std", {"spec": dict.fromkeys(spec)})
    cluster.settle()
    assert "message" not in status(cluster)
    assert names(cluster) == ["std-0", "std-1"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"price": {"perHour": "cheap"}}, "spec.price.perHour"),
        ({"price": {"perHour": "-1"}}, "spec.price.perHour"),
        ({"price": {"perHour": 0.2}}, "spec.price.perHour"),
        ({"faults": {"share": 1.5}}, "spec.faults.share"),
        ({"size": -1}, "spec.size"),
        ({"template": None}, "spec.template"),
        ({"capacityType": "cheap"}, "spec.capacityType"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    cluster: ClusterWorld, spec: JsonObject, said: str
) -> None:
    with pytest.raises(InvalidError, match=said.replace(".", r"\.")):
        cluster.create(group(**spec))


def test_a_machine_of_somebody_else_may_say_anything(cluster: ClusterWorld) -> None:
    cluster.create(
        {
            "apiVersion": "kubescene.dev/v1alpha1",
            "kind": "Instance",
            "metadata": {"name": "own"},
            "spec": {"group": "none", "boot": {"time": "soon"}},
        }
    )
    cluster.settle()
    assert phases(cluster) == {"own": "Failed"}
    cluster.delete("instances", "own")
    cluster.settle()
    assert phases(cluster) == {}


def test_the_price_is_that_of_the_capacity(cluster: ClusterWorld) -> None:
    price = {"perHour": "0.20", "spot": "0.06"}
    cluster.create(group("od", price=price, size=1))
    cluster.create(group("spot", price=price, size=1, capacityType="Spot"))
    cluster.settle()
    prices = {
        each["spec"]["group"]: each["spec"]["price"]["perHour"]
        for each in cluster.list("instances")
    }
    assert prices == {"od": "0.20", "spot": "0.06"}


UNSURE: dict[str, Any] = {
    "time": {"lognormal": {"median": "90s", "sigma": 0.5}},
    "ready": {"uniform": {"min": "1s", "max": "20s"}},
}


def boots(cluster: ClusterWorld, name: str) -> list[JsonObject]:
    machines = [each for each in cluster.list("instances") if each["spec"]["group"] == name]
    return [each["spec"]["boot"] for each in machines]


def drawn(seed: int, *others: str) -> list[JsonObject]:
    cluster = ClusterWorld(ClusterOptions(seed=seed))
    for name in (*others, "std"):
        cluster.create(group(name, boot=UNSURE))
    cluster.settle()
    return boots(cluster, "std")


def test_what_a_machine_takes_is_drawn_by_its_name() -> None:
    assert drawn(1) == drawn(1, "other", "another")
    assert drawn(1) != drawn(2)
    assert drawn(1)[0] != drawn(1)[1]


@pytest.mark.parametrize("plain", [False, True])
def test_forks_and_split_advances_come_to_the_same(plain: bool) -> None:
    cluster = ClusterWorld(ClusterOptions(seed=3), plain=plain)
    cluster.create(group(size=20, boot=UNSURE, shutdown={"time": "45s"}))
    cluster.settle()
    cluster.advance("1m")
    fork = cluster.fork()
    for world, pieces in ((cluster, 1), (fork, 30)):
        world.patch("nodegroups", "std", {"spec": {"size": 12}})
        for _ in range(pieces):
            world.advance(f"{600 // pieces}s")
    for kind in ("nodes", "instances", "nodegroups"):
        assert [*map(dict, fork.list(kind))] == [*map(dict, cluster.list(kind))]


def test_a_definition_that_goes_is_survived(cluster: ClusterWorld) -> None:
    cluster.create(group(size=1))
    cluster.settle()
    cluster.delete("customresourcedefinitions", "nodegroups.kubescene.dev")
    cluster.settle()
    cluster.advance("1m")
    assert names(cluster, "instances") == []
