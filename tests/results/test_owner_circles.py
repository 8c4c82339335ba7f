"""Whoever writes objects can let them own one another: whatever looks for the owner on top ends."""

from pathlib import Path

import pytest

from kubescene import Cluster
from kubescene.clock import Streams
from kubescene.histories.placements import RecordedPlaces
from kubescene.results.over_time.following import owner_key, top_owner
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

UID = "uid-{}"


def deployment(number: int) -> JsonObject:
    pod = make_pod("x").cpu("1").build()
    labels = {"app": f"set-{number}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"set-{number}", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


def reference(owner: JsonObject) -> JsonObject:
    metadata = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


CIRCLES = {"itself": [0], "each other": [1, 0], "three": [1, 2, 0], "behind one": [1, 2, 1]}


@pytest.mark.parametrize("owners", CIRCLES.values(), ids=CIRCLES)
def test_a_world_whose_workloads_own_one_another_is_told(owners: list[int], tmp_path: Path) -> None:
    cluster = Cluster(recorded=True)
    cluster.create(make_node("n").cpu("20").pods("50"))
    made = [cluster.create(deployment(number)) for number in range(len(owners))]
    for number, owner in enumerate(owners):
        patch = {"metadata": {"ownerReferences": [reference(made[owner])]}}
        cluster.patch("deployments", f"set-{number}", patch, patch_type="merge")
    cluster.settle()
    cluster.advance("10m")
    assert len(cluster.tables["pods"].rows) == 2 * len(owners)
    told = str(cluster.tables["workloads"].rows)
    assert all(f"set-{number}" in told for number in range(len(owners)))
    cluster.report(tmp_path / "report.html")
    assert "set-0" in (tmp_path / "report.html").read_text()
    cluster.delete("deployments", "set-0")
    cluster.settle()
    assert not [each for each in cluster.list("pods") if each["metadata"]["name"] == "set-0"]


@pytest.mark.parametrize("seed", range(30))
def test_what_was_recorded_and_what_was_played_have_the_same_owner_on_top(seed: int) -> None:
    lot = Streams(seed).stream("owners")
    owners = {number: (0, 1, 2, 3, 4, None)[lot.below(6)] for number in range(5)}
    played = {
        owner_key("default", f"Deployment/set-{number}"): f"Deployment/set-{owner}"
        for number, owner in owners.items()
        if owner is not None
    }
    recorded = RecordedPlaces.__new__(RecordedPlaces)
    recorded._owners = {
        UID.format(number): (
            f"Deployment/set-{number}",
            "" if owner is None else UID.format(owner),
        )
        for number, owner in owners.items()
    }
    for number in owners:
        name, uid = f"Deployment/set-{number}", UID.format(number)
        top = top_owner(played, "default", name)
        assert recorded._group("default/pod", name, uid) == f"default/{top}"
