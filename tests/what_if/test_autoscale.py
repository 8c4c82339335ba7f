"""The cluster autoscaler over a snapshot, where what it has to do is arithmetic."""

from pathlib import Path
from typing import Any

import pytest

import kubescene
from commands import kubescene as command
from hand_made import asked, rows, workload
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.testing import make_node
from kubescene.types import JsonObject
from kubescene.what_if.autoscaling import GroupLimits, read_limits


def pool(cluster: kubescene.Cluster, count: int, name: str = "general", cpu: str = "4") -> None:
    for number in range(count):
        node = make_node(f"{name}-{number}").cpu(cpu).memory("16Gi").build()
        node["metadata"]["labels"] |= {"pool": name, "node.kubernetes.io/instance-type": cpu}
        cluster.create(node)


def group(name: str, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_1_a_node_comes_for_pods_that_wait_after_it_has_booted(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    pool(cluster, 2)
    cluster.create(workload("Deployment", "web", "1", replicas=12))
    what_if = asked(cluster, tmp_path, prices=Prices(hourly={"4": 0.2}))
    answer = what_if.autoscale(boot="3m", within="9m")
    # Twelve cores are wanted and eight are there: a node of four, within twice two.
    assert answer.measures["ordered"] == 1
    assert (answer.measures["nodes_before"], answer.measures["nodes_after"]) == (2, 3)
    assert answer.measures["waiting"] == answer.measures["pending"] == 0
    assert answer.sentence.startswith(
        "In 9m the cluster autoscaler would order 1 node and give back 0: 3 instead of 2. 4 of "
        "4 pods that waited have a place then, and 0 others wait."
    )
    assert answer.measures["cost_before"] == pytest.approx(0.4)
    assert answer.measures["cost_after"] == pytest.approx(0.6)
    # It is paid for from its order on, which is made in the first loops.
    assert answer.measures["cost"] == pytest.approx(0.6 * 9 / 60, abs=0.005)
    assert rows(answer, "Groups") == [("general-4", "1:4", 2, 3)]
    assert [row[1] for row in rows(answer, "What it decides")] == ["general-4 from 2 to 3"]
    [first, *_, last] = rows(answer, "Course")
    assert first[1:] == (2, 4, 0.4)
    assert last[0].startswith("3m")
    assert last[1:] == (3, 0, 0.6)


def test_2_no_group_grows_beyond_its_limit_and_that_is_why(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    pool(cluster, 2)
    cluster.create(workload("Deployment", "web", "1", replicas=12))
    answer = asked(cluster, tmp_path).autoscale(limits=GroupLimits(1, 2), within="5m")
    assert answer.measures["ordered"] == 0
    assert answer.measures["waiting"] == 4
    assert answer.measures["pending"] == 0  # they waited before
    assert len(rows(answer, "Pods that wait then")) == 4


def test_3_nodes_that_nobody_needs_are_given_back_down_to_the_least(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    pool(cluster, 4)
    cluster.create(workload("Deployment", "web", "1", replicas=2))
    what_if = asked(cluster, tmp_path, prices=Prices(hourly={"4": 0.2}))
    answer = what_if.autoscale()
    # Two cores need one node, and one is the least.
    assert answer.measures["nodes_after"] == 1
    assert answer.measures["removed"] == 3
    assert answer.measures["cost_after"] == pytest.approx(0.2)
    assert answer.measures["pending"] == 0
    first = rows(answer, "What it decides")[0]
    assert first[0].startswith("10m")  # scale-down-unneeded-time
    least = what_if.autoscale([group("general", min=2, max=9)])
    assert least.measures["nodes_after"] == 2
    assert rows(least, "Groups") == [("general", "2:9", 4, 2)]
    flags = {"scale-down-unneeded-time": "2m", "scale-down-delay-after-add": "0s"}
    soon = what_if.autoscale(flags=flags)
    assert rows(soon, "What it decides")[0][0].startswith("2m")
    never = what_if.autoscale(flags={"scale-down-enabled": False})
    assert never.measures["removed"] == 0


def test_4_a_pool_of_its_own_is_a_group_and_the_control_plane_is_none(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    pool(cluster, 2)
    pool(cluster, 1, name="large", cpu="16")
    plane = make_node("plane").cpu("4").memory("16Gi").build()
    plane["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    cluster.create(plane)
    cluster.create(workload("Deployment", "big", "10", replicas=3))
    answer = asked(cluster, tmp_path).autoscale(within="9m")
    assert [row[0] for row in rows(answer, "Groups")] == ["general-4", "large-16"]
    # One of three has a place; two more machines of 16 cores, of which there may be three.
    assert answer.measures["ordered"] == 2
    assert answer.measures["nodes_after"] == 6
    assert answer.measures["waiting"] == 0


def test_5_a_group_without_nodes_comes_from_its_template(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    pool(cluster, 1)
    cluster.create(workload("Deployment", "big", "10", replicas=1))
    sizes = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    template = {"status": {"capacity": sizes, "allocatable": sizes}}
    large = group("large", min=0, max=2, template=template)
    what_if = asked(cluster, tmp_path)
    answer = what_if.autoscale([group("general", max=1), large], within="9m")
    assert answer.measures["waiting"] == 0
    assert rows(answer, "Groups") == [("general", "0:1", 1, 1), ("large", "0:2", 0, 1)]
    with pytest.raises(ConfigurationError, match=r"no nodes in the snapshot and no template: .*ge"):
        what_if.autoscale([group("gone", max=3)])
    with pytest.raises(ConfigurationError, match="max is 0, and 1 nodes are there"):
        what_if.autoscale([group("general", max=0)])


def test_limits_and_flags_that_make_no_sense_are_refused(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    assert read_limits("1:20") == GroupLimits(1, 20)
    for text in ("20:1", "1", "a:b", "1:2:3"):
        with pytest.raises(ConfigurationError, match="say the least and the most"):
            read_limits(text)
    pool(cluster, 1)
    with pytest.raises(ConfigurationError, match="did you mean scale-down-enabled"):
        asked(cluster, tmp_path).autoscale(flags={"scale-down-enable": True})


def test_the_command_takes_groups_and_flags_from_files(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    pool(cluster, 3)
    asked(cluster, tmp_path)
    (tmp_path / "groups.yaml").write_text(
        "apiVersion: kubescene.dev/v1alpha1\nkind: NodeGroup\n"
        "metadata: {name: general}\nspec: {min: 2, max: 5}\n"
    )
    (tmp_path / "flags.yaml").write_text("scale-down-unneeded-time: 1m\n")
    told = [tmp_path / "cluster.json", "autoscale", "--groups", tmp_path / "groups.yaml"]
    done = command("what-if", *told, "--autoscaler-flags", tmp_path / "flags.yaml", "--for", "30m")
    assert done.returncode == 0, done.stderr
    assert "give back 1: 2 instead of 3" in " ".join(done.stdout.split())
    (tmp_path / "groups.yaml").write_text("kind: Node\nmetadata: {name: n}\n")
    refused = command("what-if", *told)
    assert refused.returncode == 2
    assert "must hold NodeGroups" in refused.stderr
