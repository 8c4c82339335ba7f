"""NodeVolumeLimits: what counts, what counts twice, and counts that follow every change."""

from typing import Any

import pytest

from kubescene.clock import Streams
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import EventResource, Hint
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.shelves import Shelf, hint_of
from scheduler.storage import (
    bound_claim,
    claim,
    csi_node,
    mounting,
    storage_class,
    using,
    volume,
)

DISK = "disk.example.com"
EBS = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}


def verdicts(shelf: Shelf, pod: JsonObject, plugin: NodeVolumeLimits | None = None) -> list[int]:
    """In both forms."""
    plugin = plugin or NodeVolumeLimits(shelf.handle)
    info, state = shelf.pod(pod), CycleState()
    codes: list[int] = plugin.filter_nodes(state, info, shelf.nodes, shelf.rows).tolist()
    one = [not plugin.filter(state, info, node).ok for node in shelf.nodes.infos]
    assert [code != 0 for code in codes] == one
    return codes


def limited(**limits: int) -> Shelf:
    shelf = Shelf(make_node("a").build(), make_node("b").build())
    shelf.put(csi_node("a", **limits), storage_class(), storage_class("fixed", "Immediate"))
    return shelf


def attachment(volume_name: str, node: str = "a", attacher: str = DISK) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"{volume_name}-{node}"},
        "spec": {
            "attacher": attacher,
            "nodeName": node,
            "source": {"persistentVolumeName": volume_name},
        },
    }


def test_f_16_a_node_takes_so_many() -> None:
    shelf = limited(disk_example_com=1)
    shelf.put(volume("v1"), volume("v2"), bound_claim("c1", "v1"), bound_claim("c2", "v2"))
    assert verdicts(shelf, using("p", "c1")) == [0, 0]
    assert verdicts(shelf, using("p", "c1", "c2")) == [1, 0]
    shelf.add(using("there", "c2"), "a")
    assert verdicts(shelf, using("p", "c1")) == [1, 0]
    assert verdicts(shelf, using("p", "c2")) == [0, 0]
    plugin = NodeVolumeLimits(shelf.handle)
    status = plugin.describe(CycleState(), shelf.pod(using("p", "c1")), 1)
    assert (status.code, status.message) == (
        Code.UNSCHEDULABLE,
        "node(s) exceed max volume count",
    )


def test_f_16_pods_without_volumes_take_nothing() -> None:
    shelf = limited(disk_example_com=1)
    shelf.put(volume("v1"), bound_claim("c1", "v1"))
    shelf.add(make_pod("there").build(), "a")
    assert verdicts(shelf, using("p", "c1")) == [0, 0]
    shelf.add(make_pod("later").build(), "a")
    assert verdicts(shelf, using("p", "c1")) == [0, 0]


def test_nothing_is_left_of_pods_that_went() -> None:
    shelf = limited(disk_example_com=2)
    shelf.put(volume("v1"), bound_claim("c1", "v1"))
    plugin = NodeVolumeLimits(shelf.handle)
    there = shelf.add(using("there", "c1"), "a")
    assert verdicts(shelf, using("p", "c1"), plugin) == [0, 0]
    attached = plugin._attached
    assert ([*attached._holders], len(attached._users)) == ([f"{DISK}/v1"], 2)
    shelf.nodes.remove_pod(there, "a")
    assert verdicts(shelf, using("p", "c1"), plugin) == [0, 0]
    assert (attached._holders, attached._users) == ({}, {})


def test_f_16_an_unbound_claim_counts_for_the_driver_of_its_class() -> None:
    shelf = limited(disk_example_com=1)
    shelf.put(claim("c1"), claim("c2"))
    shelf.add(using("there", "c1"), "a")
    assert verdicts(shelf, using("p", "c2")) == [1, 0]
    assert verdicts(shelf, using("p", "c1")) == [0, 0]


def test_f_16_an_attached_volume_that_no_pod_uses_counts_twice_for_its_own_pod() -> None:
    shelf = limited(disk_example_com=1)
    shelf.put(volume("v1"), bound_claim("c1", "v1"), attachment("v1"))
    assert verdicts(shelf, using("p", "c1")) == [1, 0]
    shelf.add(using("there", "c1"), "a")
    assert verdicts(shelf, using("p", "c1")) == [0, 0]


def test_f_16_an_attached_volume_that_a_pod_there_uses_counts_once() -> None:
    shelf = limited(disk_example_com=2)
    shelf.put(volume("v1"), bound_claim("c1", "v1"), attachment("v1"))
    shelf.put(volume("v2"), bound_claim("c2", "v2"))
    shelf.add(using("there", "c1"), "a")
    assert verdicts(shelf, using("p", "c2")) == [0, 0]


def test_f_16_attachments_count_under_their_attacher() -> None:
    shelf = limited(disk_example_com=1, other_example_com=1)
    shelf.put(volume("v1"), volume("v2"), bound_claim("c2", "v2"))
    shelf.put(attachment("v1", attacher="other.example.com"))
    assert verdicts(shelf, using("p", "c2")) == [0, 0]
    shelf.put(attachment("v1"))
    assert verdicts(shelf, using("p", "c2")) == [1, 0]


def test_f_16_volumes_of_old_kinds_count_for_their_driver() -> None:
    shelf = limited(ebs_csi_aws_com=1)
    old: JsonObject = {"csi": None, "awsElasticBlockStore": {"volumeID": "vol-2"}}
    shelf.put(volume("v2", **old), bound_claim("c2", "v2"))
    shelf.add(mounting("there", EBS), "a")
    assert verdicts(shelf, using("p", "c2")) == [1, 0]
    assert verdicts(shelf, mounting("p", EBS)) == [0, 0]
    again = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    assert verdicts(shelf, mounting("p", again)) == [0, 0]


def test_f_16_a_missing_claim_of_the_pod_is_its_fault_and_one_of_others_does_not_count() -> None:
    shelf = limited(disk_example_com=1)
    shelf.put(volume("v1"), bound_claim("c1", "v1"))
    shelf.add(using("there", "gone"), "a")
    assert verdicts(shelf, using("p", "c1")) == [0, 0]
    plugin, state, pod = NodeVolumeLimits(shelf.handle), CycleState(), shelf.pod(using("p", "gone"))
    status = plugin.filter(state, pod, shelf.nodes.infos[0])
    assert status.code is Code.UNRESOLVABLE
    assert status.message == ('looking up PVC default/gone: persistentvolumeclaim "gone" not found')


def test_f_16_skips_pods_without_such_volumes() -> None:
    shelf = limited()
    plugin = NodeVolumeLimits(shelf.handle)
    for pod, counts in (
        (make_pod("p").build(), False),
        (mounting("p", {"emptyDir": {}}), False),
        (mounting("p", EBS), True),
        (using("p", "c"), True),
    ):
        info = shelf.pod(pod)
        assert plugin.concerns(info.signature) is counts
        skipped = plugin.pre_filter(CycleState(), info, shelf.nodes)[0].code is Code.SKIP
        assert skipped is not counts


@pytest.mark.parametrize("seed", range(15))
def test_counts_that_follow_changes_equal_counts_made_anew(seed: int) -> None:
    random = Streams(seed).stream("limits")
    shelf = Shelf(*(make_node(name).build() for name in "abc"))
    plugin = NodeVolumeLimits(shelf.handle)
    placed: list[Any] = []
    shelf.put(storage_class())
    for step in range(60):
        what, number = random.below(8), random.below(5)
        node = "abcd"[random.below(4)]
        if what == 0:
            shelf.put(csi_node(node, disk_example_com=random.below(3)))
        elif what == 1:
            shelf.put(claim(f"c{number}") if random.below(2) else bound_claim(f"c{number}", "v0"))
        elif what == 2:
            shelf.put(volume(f"v{number}"), bound_claim(f"c{number}", f"v{number}"))
        elif what == 3 and random.below(2):
            shelf.take(claim(f"c{number}"))
        elif what == 4:
            shelf.put(attachment(f"v{number}", node))
        elif what == 5 and placed:
            gone = placed.pop(random.below(len(placed)))
            shelf.nodes.remove_pod(gone, gone.node)
        elif what == 6 and node == "d":
            shelf.set_node(make_node("d").build())
            shelf.nodes.refresh()
        elif node != "d" or shelf.nodes.row_of("d") is not None:
            placed.append(shelf.add(using(f"p{step}", f"c{number}", f"c{(number + 1) % 5}"), node))
        wanted = using("new", f"c{random.below(5)}")
        assert verdicts(shelf, wanted, plugin) == verdicts(shelf, wanted), step


def test_hints() -> None:
    shelf = Shelf()
    events = NodeVolumeLimits(shelf.handle).events_to_register()
    pod, inline = shelf.pod(using("p", "c")), shelf.pod(mounting("q", EBS))
    nodes, pods = EventResource.CSI_NODE, EventResource.POD
    few, many = csi_node("n", x=1), csi_node("n", x=2)
    assert hint_of(events, pod, nodes, few) is Hint.QUEUE
    assert hint_of(events, pod, nodes, many, few) is Hint.QUEUE
    assert hint_of(events, pod, nodes, few, many) is Hint.SKIP
    there = merged(using("gone", "x"), {"spec": {"nodeName": "n"}})
    assert hint_of(events, pod, pods, there, gone=True) is Hint.QUEUE
    assert hint_of(events, pod, pods, using("gone", "x"), gone=True) is Hint.SKIP
    empty = merged(mounting("gone", {"emptyDir": {}}), {"spec": {"nodeName": "n"}})
    assert hint_of(events, pod, pods, empty, gone=True) is Hint.SKIP
    claims = EventResource.PERSISTENT_VOLUME_CLAIM
    assert hint_of(events, pod, claims, claim("c")) is Hint.QUEUE
    assert hint_of(events, pod, claims, claim("d")) is Hint.SKIP
    detached, attached = EventResource.VOLUME_ATTACHMENT, attachment("v")
    assert hint_of(events, pod, detached, attached, gone=True) is Hint.QUEUE
    assert hint_of(events, inline, detached, attached, gone=True) is Hint.SKIP
    own = attachment("v", attacher="ebs.csi.aws.com")
    assert hint_of(events, inline, detached, own, gone=True) is Hint.QUEUE
