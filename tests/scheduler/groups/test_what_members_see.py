"""What members of a pod group see of each other: kube-scheduler takes one snapshot for all of them.

Who is assumed takes room on its node. The lists beside the nodes stay as they were: of nodes that
have pods with terms, of claims in use, and how many nodes hold an image.
"""

import copy
from typing import Any

import pytest

from kubescene.scheduler import default_profile
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject
from scheduler.groups.test_pod_groups import GATES, gang, members, stage
from scheduler.staging import Stage
from scheduler.storage import bound_claim, volume
from scheduler.tables import Table

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"


def term(app: str) -> JsonObject:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}


def against(app: str) -> JsonObject:
    return {"podAntiAffinity": {REQUIRED: [term(app)]}}


def rather_not(app: str) -> JsonObject:
    weighted = {"weight": 100, "podAffinityTerm": term(app)}
    return {"podAntiAffinity": {PREFERRED: [weighted]}}


def member(name: str, **spec: Any) -> JsonObject:
    """A member of the group "job" with its name as label; "a" is tried first."""
    first = {"priorityClassName": "high"} if name == "a" else {}
    [pod] = members("job", name, cpu="100m", **first, **spec)
    return {**pod, "metadata": {**pod["metadata"], "labels": {"app": name}}}


def world_of(*nodes: str, cpu: str = "8") -> Stage:
    world = stage(profiles=(default_profile("default-scheduler", GATES),))
    for name in nodes:
        world.create(make_node(name).cpu(cpu).labels({HOST: name}))
    world.create(gang("job", 2))
    return world


def placed(world: Stage) -> dict[str, str]:
    return {each.pod.name: each.node or "" for each in world.work()}


def test_required_anti_affinity_of_a_member_is_not_seen_on_a_node_without_any() -> None:
    world = world_of("n")
    world.create(member("a", affinity=against("b")), member("b"))
    assert placed(world) == {"a": "n", "b": "n"}


def test_on_a_node_where_somebody_has_anti_affinity_that_of_a_member_is_seen() -> None:
    world = world_of("n")
    other = make_pod("other").build()
    other["spec"] |= {"affinity": against("nobody"), "nodeName": "n"}
    world.create(other, member("a", affinity=against("b")), member("b"))
    assert placed(world) == {"a": "", "b": ""}
    assert "didn't satisfy existing pods anti-affinity rules" in reason(world, "b")


def reason(world: Stage, name: str) -> str:
    text: str = world.pod(name)["status"]["conditions"][0]["message"]
    return text


def test_preferences_of_others_do_not_make_required_terms_of_members_seen() -> None:
    world = world_of("n")
    other = make_pod("other").build()
    other["spec"] |= {"affinity": rather_not("nobody"), "nodeName": "n"}
    world.create(other, member("a", affinity=against("b")), member("b"))
    assert placed(world) == {"a": "n", "b": "n"}


def test_members_see_their_own_terms_against_each_other() -> None:
    world = world_of("n")
    world.create(member("a"), member("b", affinity=against("a")))
    assert placed(world) == {"a": "", "b": ""}


def test_after_the_group_has_gone_everybody_sees_its_terms() -> None:
    world = world_of("n")
    world.create(member("a", affinity=against("late")), member("b"))
    assert placed(world) == {"a": "n", "b": "n"}
    assert world.place(make_pod("late").labels({"app": "late"})) == ["late:"]


@pytest.mark.parametrize(
    ("own", "there", "chosen"),
    [
        (None, None, "big"),  # nobody has terms on the node of a: what a prefers is not seen
        (None, {"podAffinity": {}}, "small"),  # an empty list of terms is one
        (rather_not("nobody"), None, "small"),  # b looks at all nodes, as it prefers something
    ],
)
def test_preferences_of_a_member(
    own: JsonObject | None, there: JsonObject | None, chosen: str
) -> None:
    world = world_of("small")
    world.create(make_node("big").cpu("64").labels({HOST: "big"}))
    other = make_pod("other").cpu("10m").build()
    other["spec"] |= {"nodeName": "big"} | ({"affinity": there} if there is not None else {})
    spec = {"affinity": own} if own else {}
    world.create(other, member("a", affinity=rather_not("b")), member("b", **spec))
    assert placed(world) == {"a": "big", "b": chosen}


def exclusive(world: Stage) -> list[JsonObject]:
    """A claim for one pod, as the volume of one."""
    once = ["ReadWriteOncePod"]
    world.create(volume("v", accessModes=once), bound_claim("one", "v", accessModes=once))
    return [{"name": "data", "persistentVolumeClaim": {"claimName": "one"}}]


def test_members_do_not_see_which_claims_the_others_use() -> None:
    world = world_of("n")
    volumes = exclusive(world)
    world.create(member("a", volumes=volumes), member("b", volumes=volumes))
    assert placed(world) == {"a": "n", "b": "n"}


def test_a_claim_that_was_in_use_before_is_seen() -> None:
    world = world_of("n")
    volumes = exclusive(world)
    other = make_pod("other").build()
    other["spec"] |= {"volumes": volumes, "nodeName": "n"}
    world.create(other, member("a", volumes=volumes), member("b"))
    assert placed(world) == {"a": "", "b": ""}


IMAGE = "registry.example/large:1"


def holding(name: str, *images: str) -> JsonObject:
    node = make_node(name).cpu("8").build()
    node["status"]["images"] = [{"names": [each], "sizeBytes": 900 << 20} for each in images]
    return node


def counts(world: Table) -> list[int]:
    """On how many nodes the image is, as the copies of n1 and n2 have it."""
    nodes = world.nodes
    rows = [nodes.row_of(name) for name in ("n1", "n2")]
    return [
        nodes.images.nodes_with(IMAGE, row, int(nodes.versions[row]))
        for row in rows
        if row is not None
    ]


def images_in_disorder() -> Table:
    """n1 was copied before others held the image."""
    world = Table(holding("n1", IMAGE), holding("n2", IMAGE), holding("n3"))
    world.nodes.refresh()
    world.set_node(holding("n3", IMAGE))
    world.nodes.refresh()
    assert counts(world) == [2, 2]
    return world


def test_a_trial_is_no_reason_to_count_images_anew() -> None:
    """The number of nodes with an image is as old as the copy of each node (N-7)."""
    world = images_in_disorder()
    pod = world.pod(make_pod("p").build()).assumed("n1")
    world.nodes.try_pod(pod, "n1")
    assert counts(world) == [2, 2]
    world.nodes.take_back(pod, "n1")
    assert counts(world) == [2, 2]
    world.nodes.refresh()
    assert counts(copy.deepcopy(world)) == counts(world) == [2, 2]
    world.nodes.add_pod(pod, "n1")
    world.nodes.refresh()
    assert counts(world) == [3, 2]


def test_what_was_overlooked_stays_old_when_images_move_and_nodes_come() -> None:
    world = images_in_disorder()
    pod = world.pod(make_pod("p").build()).assumed("n2")
    world.nodes.try_pod(pod, "n2")
    world.nodes.take_back(pod, "n2")
    world.set_node(holding("n0", IMAGE))
    world.nodes.refresh()
    assert counts(world) == [2, 2]
    world.nodes.add_pod(pod, "n2")
    world.nodes.refresh()
    assert counts(world) == [2, 4]
