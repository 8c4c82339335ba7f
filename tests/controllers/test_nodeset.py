"""NodeSets: KEP-140's example."""

from typing import Any

import pytest

import kubescene
from kubescene.cluster import ClusterWorld
from kubescene.errors import InvalidError
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


def node_set(name: str = "pool", replicas: int = 3, **template: JsonObject | None) -> JsonObject:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": {"status": status, **template}},
    }


def names(cluster: ClusterWorld) -> list[str]:
    return sorted(node["metadata"]["name"] for node in cluster.list("nodes"))


def test_a_node_set_makes_ready_nodes_of_its_template(cluster: ClusterWorld) -> None:
    labels = {"topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "mine"}
    cluster.create(node_set(metadata={"labels": labels, "annotations": {"x": "y"}}))
    cluster.settle()
    assert names(cluster) == ["pool-0", "pool-1", "pool-2"]
    node = cluster.get("nodes", "pool-1")
    assert node["metadata"]["labels"] == {**labels, "kubescene.dev/node-set": "pool"}
    assert node["metadata"]["annotations"] == {"x": "y"}
    assert node["metadata"]["ownerReferences"][0]["kind"] == "NodeSet"
    assert node["status"]["allocatable"]["cpu"] == "4"
    assert [c["type"] for c in node["status"]["conditions"]] == ["Ready"]
    assert cluster.get("nodesets", "pool")["status"] == {"replicas": 3, "observedGeneration": 1}


def test_scaled_down_the_highest_numbers_go_and_a_lost_node_comes_back(
    cluster: ClusterWorld,
) -> None:
    cluster.create(node_set(replicas=12))
    cluster.settle().scale("nodesets", "pool", 11)
    cluster.settle()
    assert "pool-11" not in names(cluster)
    assert "pool-9" in names(cluster)
    cluster.delete("nodes", "pool-3")
    cluster.settle()
    assert len(names(cluster)) == 11
    assert "pool-3" in names(cluster)


def test_the_nodes_go_with_their_set(cluster: ClusterWorld) -> None:
    cluster.create(make_node("other"))
    cluster.create(node_set())
    cluster.settle().delete("nodesets", "pool")
    cluster.settle()
    assert names(cluster) == ["other"]


def test_the_nodes_go_with_the_definition_of_their_set(cluster: ClusterWorld) -> None:
    cluster.create(node_set())
    cluster.settle()
    cluster.delete("customresourcedefinitions", "nodesets.kubescene.dev")
    assert names(cluster.settle()) == []


def test_a_name_that_is_taken_is_told(cluster: ClusterWorld) -> None:
    cluster.create(make_node("pool-0"))
    cluster.create(node_set(replicas=1))
    cluster.settle()
    status = cluster.get("nodesets", "pool")["status"]
    assert status["replicas"] == 0
    assert 'nodes "pool-0" already exists' in status["message"]


def test_an_impossible_set_is_refused(cluster: ClusterWorld) -> None:
    with pytest.raises(InvalidError, match=r"spec\.replicas"):
        cluster.create(node_set(replicas=-1))


def test_a_thousand_nodes_are_there_before_the_first_pod_is_looked_at() -> None:
    scenario = ScenarioBuilder("kep").create(make_pod("first").cpu("1")).create(node_set("n", 1000))
    run = kubescene.run(scenario)
    assert run.ok, run.message
    (placed,) = run.summary.placements
    assert (placed.step, run.summary.steps[0].controller_writes) == ("1.1", 1002)
    assert run.summary.steps[0].failed_attempts == 0
    assert len(run.cluster.list("nodes")) == 1000


def test_the_definition_survives_scenarios_and_resets(cluster: ClusterWorld) -> None:
    cluster.begin_anew()
    cluster.create(node_set())
    cluster.reset()
    cluster.create(node_set())
    assert names(cluster.settle()) == ["pool-0", "pool-1", "pool-2"]


@pytest.mark.parametrize("kind", ["NodeSet", "NodeGroup"])
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"spec": {"taints": 1}}, "Node: json: cannot unmarshal number into Go struct field"),
        (
            {"status": {"allocatable": []}},
            "Node: json: cannot unmarshal array into Go struct field",
        ),
        ({"status": {"capacity": 1.5}}, "Node: json: cannot unmarshal number into Go struct field"),
        ({"status": {"capacity": {"cpu": "much"}}}, "Node: quantities must match"),
        ({"status": {"capacity": {"cpu": {}}}}, "cannot be handled as a Node: "),
        ({"status": {"allocatable": {"cpu": "-1"}}}, ".status.allocatable.cpu: Invalid value: "),
        ({"metadata": {"labels": {"a b": "c"}}}, '.metadata.labels: Invalid value: "a b"'),
    ],
)
def test_a_template_of_which_no_node_could_be_made_is_refused(
    cluster: ClusterWorld, kind: str, template: JsonObject, said: str
) -> None:
    obj = {**node_set(), "kind": kind, "spec": {"template": template}}
    with pytest.raises(InvalidError) as refusal:
        cluster.create(obj)
    assert "spec.template" in str(refusal.value)
    assert said in str(refusal.value)
    cluster.create({**obj, "spec": {"template": {}}})
    with pytest.raises(InvalidError):
        cluster.patch(f"{kind.lower()}s", "pool", {"spec": {"template": template}})


@pytest.mark.parametrize("kind", ["NodeSet", "NodeGroup"])
@pytest.mark.parametrize("spec", [None, True, 1.5, "x", [], {"template": "x"}])
def test_a_spec_that_is_no_object_is_refused(cluster: ClusterWorld, kind: str, spec: Any) -> None:
    with pytest.raises(InvalidError):
        cluster.create({**node_set(), "kind": kind, "spec": spec})


def test_nulls_of_a_template_are_dropped_as_a_node_s_are(cluster: ClusterWorld) -> None:
    status = {"capacity": {"cpu": None, "pods": "5"}, "allocatable": None}
    cluster.create(node_set(status=status, spec=None))
    template = cluster.get("nodesets", "pool")["spec"]["template"]
    assert template == {"status": {"capacity": {"cpu": "0", "pods": "5"}}}
