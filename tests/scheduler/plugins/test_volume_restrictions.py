"""VolumeRestrictions: disks of their own, claims for one pod only, and whom their end wakes."""

import pytest

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import EventResource, Hint
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject
from scheduler.shelves import Shelf, hint_of
from scheduler.storage import claim, mounting, using

RWOP: JsonObject = {"accessModes": ["ReadWriteOncePod"]}
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


def gce(name: str, *, read_only: bool = False) -> JsonObject:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, *, read_only: bool = False) -> JsonObject:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, *, read_only: bool = False) -> JsonObject:
    return {"iscsi": {"iqn": iqn, "readOnly": read_only, "targetPortal": "x", "lun": 0}}


def rbd(monitors: str, pool: str, image: str, *, read_only: bool = False) -> JsonObject:
    return {
        "rbd": {"monitors": monitors.split(), "pool": pool, "image": image, "readOnly": read_only}
    }


@pytest.mark.parametrize(
    ("wanted", "held", "refused"),
    [
        pytest.param(gce("a"), gce("a"), True, id="F-15 same GCE disk"),
        pytest.param(gce("a"), gce("b"), False, id="F-15 other GCE disk"),
        pytest.param(gce("a", read_only=True), gce("a"), True, id="F-15 one of both writes"),
        pytest.param(
            gce("a", read_only=True), gce("a", read_only=True), False, id="F-15 GCE both read"
        ),
        pytest.param(
            ebs("a", read_only=True),
            ebs("a", read_only=True),
            True,
            id="F-15 EBS even if both read",
        ),
        pytest.param(ebs("a"), gce("a"), False, id="F-15 other kind"),
        pytest.param(iscsi("a"), iscsi("a"), True, id="F-15 ISCSI"),
        pytest.param(
            iscsi("a", read_only=True), iscsi("a", read_only=True), False, id="F-15 ISCSI both read"
        ),
        pytest.param(rbd("m1 m2", "p", "i"), rbd("m2", "p", "i"), True, id="F-15 RBD"),
        pytest.param(rbd("m1", "p", "i"), rbd("m2", "p", "i"), False, id="F-15 RBD other monitors"),
        pytest.param(rbd("m1", "p", "i"), rbd("m1", "q", "i"), False, id="F-15 RBD other pool"),
        pytest.param(rbd("m1", "p", "i"), rbd("m1", "p", "j"), False, id="F-15 RBD other image"),
    ],
)
def test_f_15_disks(wanted: JsonObject, held: JsonObject, refused: bool) -> None:
    shelf, state = Shelf(make_node("a").build(), make_node("b").build()), CycleState()
    plugin = VolumeRestrictions(shelf.handle)
    shelf.add(mounting("there", held), "a")
    pod = shelf.pod(mounting("new", wanted))
    assert plugin.pre_filter(state, pod, shelf.nodes)[0].ok
    codes = plugin.filter_nodes(state, pod, shelf.nodes, shelf.rows)
    assert [plugin.filter(state, pod, info).ok for info in shelf.nodes.infos] == [not refused, True]
    assert codes.tolist() == [int(refused), 0]
    if refused:
        assert plugin.describe(state, pod, 1).reasons == ("node(s) had no available disk",)


def test_f_14_a_claim_that_is_missing() -> None:
    shelf, state = Shelf(make_node("a").build()), CycleState()
    plugin = VolumeRestrictions(shelf.handle)
    status, _ = plugin.pre_filter(state, shelf.pod(using("p", "gone")), shelf.nodes)
    assert status.code is Code.UNRESOLVABLE
    assert status.reasons == ('persistentvolumeclaim "gone" not found',)


def test_f_14_skips_unless_an_exclusive_claim_is_in_use() -> None:
    shelf = Shelf(make_node("a").build(), make_node("b").build())
    plugin = VolumeRestrictions(shelf.handle)
    shelf.put(claim("own", **RWOP), claim("shared"))
    pod = shelf.pod(using("new", "own", "shared"))
    assert plugin.pre_filter(CycleState(), pod, shelf.nodes)[0].code is Code.SKIP
    shelf.add(using("other", "shared"), "a")
    assert plugin.pre_filter(CycleState(), pod, shelf.nodes)[0].code is Code.SKIP
    user = shelf.add(using("user", "own"), "a")
    state = CycleState()
    assert plugin.pre_filter(state, pod, shelf.nodes)[0].ok
    assert plugin.filter_nodes(state, pod, shelf.nodes, shelf.rows).tolist() == [2, 2]
    status = plugin.filter(state, pod, shelf.nodes.infos[1])
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, (IN_USE,))
    shelf.nodes.remove_pod(user, "a")
    assert plugin.pre_filter(CycleState(), pod, shelf.nodes)[0].code is Code.SKIP


def test_f_14_a_claim_with_two_users_counts_once_but_each_user_takes_one_off() -> None:
    shelf = Shelf(make_node("a").build())
    plugin = VolumeRestrictions(shelf.handle)
    shelf.put(claim("own", **RWOP))
    first = shelf.add(using("first", "own"), "a")
    shelf.add(using("second", "own"), "a")
    pod, state, info = shelf.pod(using("new", "own")), CycleState(), shelf.nodes.infos[0]
    assert plugin.pre_filter(state, pod, shelf.nodes)[0].ok
    supposed = state.clone()
    plugin.remove_pod(supposed, pod, first, info)
    assert plugin.filter(supposed, pod, info).ok
    assert not plugin.filter(state, pod, info).ok
    plugin.add_pod(supposed, pod, first, info)
    assert not plugin.filter(supposed, pod, info).ok


def test_hints() -> None:
    shelf = Shelf()
    events = VolumeRestrictions(shelf.handle).events_to_register()
    pod = shelf.pod(merged(using("p", "c"), {"metadata": {"namespace": "default"}}))
    disk = shelf.pod(mounting("q", gce("d")))
    gone = merged(using("gone", "c"), {"metadata": {"namespace": "default"}})
    assert hint_of(events, pod, EventResource.POD, gone, gone=True) is Hint.QUEUE
    foreign = merged(gone, {"metadata": {"namespace": "other"}})
    assert hint_of(events, pod, EventResource.POD, foreign, gone=True) is Hint.SKIP
    plain = make_pod("gone").build()
    assert hint_of(events, pod, EventResource.POD, plain, gone=True) is Hint.SKIP
    holder = mounting("gone", gce("d"))
    assert hint_of(events, disk, EventResource.POD, holder, gone=True) is Hint.QUEUE
    claims = EventResource.PERSISTENT_VOLUME_CLAIM
    assert hint_of(events, pod, claims, claim("c")) is Hint.QUEUE
    assert hint_of(events, pod, claims, claim("d")) is Hint.SKIP
    assert hint_of(events, pod, claims, claim("c"), claim("c")) is None
    assert hint_of(events, pod, EventResource.NODE, make_node("n").build()) is Hint.QUEUE
