"""VolumeBinding: which claims hold a pod back, which nodes reach its volumes, which it gets."""

import copy
from typing import Any

import pytest

from kubescene.api.selectors.node_selectors import node_selector
from kubescene.api.volumes.matching import name_of, read_shape
from kubescene.clock import MINUTE, SECOND, Streams
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.interfaces import EventResource, Hint
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.plugins.volume_binding import VolumeBinding
from kubescene.scheduler.volumes.finding import AssumeCache
from kubescene.scheduler.volumes.matching import VolumeIndex
from kubescene.scheduler.volumes.reach import Reach
from kubescene.testing.builders import make_node, merged
from kubescene.types import JsonObject
from scheduler.shelves import Shelf, hint_of
from scheduler.staging import Stage
from scheduler.storage import (
    ZONE,
    bound_claim,
    claim,
    csi_node,
    in_zone,
    mounting,
    storage_class,
    using,
    volume,
)
from scheduler.tables import Table

WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
LOST: JsonObject = {"status": {"phase": "Lost"}, "spec": {"volumeName": "gone"}}
DELETING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
EPHEMERAL: JsonObject = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
STATIC = "kubernetes.io/no-provisioner"
EARLIER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "earlier", "controller": True}


def shelf_with(*objects: JsonObject) -> Shelf:
    """Nodes a1 and a2 in zone a, b1 in zone b."""
    shelf = Shelf(*(make_node(name).zone(name[0]).build() for name in ("a1", "a2", "b1")))
    VolumeBinding(shelf.handle)
    shelf.put(*objects)
    return shelf


def reasons(shelf: Shelf, pod: JsonObject) -> dict[str, tuple[str, ...]]:
    """What is said of each node that is refused, in both forms."""
    plugin, state, info = VolumeBinding(shelf.handle), CycleState(), shelf.pod(pod)
    status, _ = plugin.pre_filter(state, info, shelf.nodes)
    assert status.ok, status
    codes: list[int] = plugin.filter_nodes(state, info, shelf.nodes, shelf.rows).tolist()
    found = {}
    for code, node in zip(codes, shelf.nodes.infos, strict=True):
        one = plugin.filter(state, info, node)
        assert one.ok is (code == 0)
        if code:
            assert plugin.describe(state, info, code) == one
            assert one.code is Code.UNRESOLVABLE
            found[node.name] = one.reasons
    return found


def chosen(shelf: Shelf, pod: JsonObject, node: str) -> tuple[dict[str, str], list[str]]:
    """The volumes that a pod gets on a node, by claim, and the claims to provision for."""
    plugin, state, info = VolumeBinding(shelf.handle), CycleState(), shelf.pod(pod)
    plugin.pre_filter(state, info, shelf.nodes)
    plugin.filter_nodes(state, info, shelf.nodes, shelf.rows)
    assert plugin.reserve(state, info, node).ok
    assumed: Any = state.find("VolumeBinding").assumed
    bindings = {each["metadata"]["name"]: name for name, each in assumed.bindings}
    return bindings, [each["metadata"]["name"] for each in assumed.provisions]


# -- PreFilter ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "objects", "text"),
    [
        pytest.param(using("p", "c"), [], 'persistentvolumeclaim "c" not found', id="F-17 missing"),
        pytest.param(
            mounting("p", EPHEMERAL),
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v0"',
            id="F-17 not made yet",
        ),
        pytest.param(
            using("p", "c"),
            [merged(claim("c"), LOST)],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
            id="F-17 lost",
        ),
        pytest.param(
            using("p", "c"),
            [merged(claim("c"), DELETING)],
            'persistentvolumeclaim "c" is being deleted',
            id="F-17 being deleted",
        ),
        pytest.param(
            mounting("p", EPHEMERAL),
            [claim("p-v0")],
            "PVC default/p-v0 was not created for pod default/p (pod is not owner)",
            id="F-17 made for somebody else",
        ),
        pytest.param(
            mounting("p", EPHEMERAL),
            [merged(claim("p-v0"), {"metadata": {"ownerReferences": [EARLIER]}})],
            "PVC default/p-v0 was not created for pod default/p (pod is not owner)",
            id="F-17 made for an earlier pod of that name",
        ),
        pytest.param(
            using("p", "c"),
            [claim("c", storage_class="fixed"), storage_class("fixed", "Immediate")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="F-18 immediate",
        ),
        pytest.param(
            using("p", "c"),
            [claim("c", volumeName="v"), storage_class()],
            "pod has unbound immediate PersistentVolumeClaims",
            id="F-18 promised but not bound",
        ),
        pytest.param(
            using("p", "c"),
            [claim("c")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="F-18 class is missing",
        ),
    ],
)
def test_f_17_f_18_pods_that_must_wait(
    pod: JsonObject, objects: list[JsonObject], text: str
) -> None:
    shelf = shelf_with(*objects)
    plugin = VolumeBinding(shelf.handle)
    status, _ = plugin.pre_filter(CycleState(), shelf.pod(pod), shelf.nodes)
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (text,))


def test_f_17_skips_pods_without_claims() -> None:
    shelf = shelf_with()
    plugin, pod = VolumeBinding(shelf.handle), shelf.pod(mounting("p", {"emptyDir": {}}))
    assert not plugin.concerns(pod.signature)
    assert plugin.pre_filter(CycleState(), pod, shelf.nodes)[0].code is Code.SKIP


def test_f_18_a_class_without_mode_is_an_error() -> None:
    shelf = shelf_with(claim("c"), {**storage_class(), "volumeBindingMode": None})
    status, _ = VolumeBinding(shelf.handle).pre_filter(
        CycleState(), shelf.pod(using("p", "c")), shelf.nodes
    )
    assert status.code is Code.ERROR
    assert status.message == 'VolumeBindingMode not set for StorageClass "slow"'


# -- Filter ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "refused"),
    [
        pytest.param([bound_claim("c", "v"), volume("v")], {}, id="F-19 everywhere"),
        pytest.param(
            [bound_claim("c", "v"), volume("v", zone="a")], {"b1": (WRONG_NODE,)}, id="F-19 a zone"
        ),
        pytest.param(
            [bound_claim("c", "v")],
            dict.fromkeys(
                ("a1", "a2", "b1"),
                ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",),
            ),
            id="F-19 volume is missing",
        ),
        pytest.param(
            [claim("c"), storage_class(provisioner=STATIC), volume("v", zone="a")],
            {"b1": (NO_VOLUME,)},
            id="F-20 free volume in a zone",
        ),
        pytest.param(
            [claim("c", "2Gi"), storage_class(provisioner=STATIC), volume("v")],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 too small",
        ),
        pytest.param(
            [claim("c"), storage_class(provisioner=STATIC), volume("v", storage_class="fast")],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 another class",
        ),
        pytest.param(
            [claim("c"), storage_class(provisioner=STATIC), volume("v", volumeMode="Block")],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 another mode",
        ),
        pytest.param(
            [
                claim("c", volumeAttributesClassName="gold"),
                storage_class(provisioner=STATIC),
                volume("v"),
            ],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 other attributes",
        ),
        pytest.param(
            [
                claim("c", accessModes=["ReadWriteMany"]),
                storage_class(provisioner=STATIC),
                volume("v"),
            ],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 other access modes",
        ),
        pytest.param(
            [
                claim("c", selector={"matchLabels": {"tier": "x"}}),
                storage_class(provisioner=STATIC),
                volume("v"),
            ],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 selector",
        ),
        pytest.param(
            [
                claim("c"),
                storage_class(provisioner=STATIC),
                merged(volume("v"), {"status": {"phase": "Released"}}),
            ],
            dict.fromkeys(("a1", "a2", "b1"), (NO_VOLUME,)),
            id="F-20 not available",
        ),
        pytest.param([claim("c"), storage_class()], {}, id="F-20 provisioned anywhere"),
        pytest.param(
            [
                claim("c"),
                storage_class(
                    allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
                ),
            ],
            {"a1": (NO_VOLUME,), "a2": (NO_VOLUME,)},
            id="F-20 allowed topologies",
        ),
        pytest.param(
            [
                merged(
                    claim("c"),
                    {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a2"}}},
                ),
                storage_class(),
            ],
            {"a1": (NO_VOLUME,), "b1": (NO_VOLUME,)},
            id="F-20 selected node",
        ),
    ],
)
def test_f_19_f_20_which_nodes_are_refused(
    objects: list[JsonObject], refused: dict[str, tuple[str, ...]]
) -> None:
    assert reasons(shelf_with(*objects), using("p", "c")) == refused


def test_f_19_reasons_add_up_in_order() -> None:
    shelf = shelf_with(
        bound_claim("c", "v"),
        volume("v", zone="a"),
        claim("d"),
        storage_class(provisioner=STATIC),
    )
    assert reasons(shelf, using("p", "d", "c"))["b1"] == (WRONG_NODE, NO_VOLUME)


def capacity(name: str, zone: str, **limits: str) -> JsonObject:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": "slow",
        "nodeTopology": {"matchLabels": {ZONE: zone}},
        **limits,
    }


def test_capacity_that_shrinks_or_goes_is_seen_by_the_next_pod() -> None:
    enough = capacity("x", "a", capacity="10Gi")
    shelf = shelf_with(claim("c", "5Gi"), storage_class(), DRIVER, enough)
    plugin, info = VolumeBinding(shelf.handle), shelf.pod(using("p", "c"))

    def fitting() -> int:
        state = CycleState()
        plugin.pre_filter(state, info, shelf.nodes)
        codes: list[int] = plugin.filter_nodes(state, info, shelf.nodes, shelf.rows).tolist()
        return codes.count(0)

    assert fitting() == 2
    shelf.put(capacity("x", "a", capacity="1Gi"))
    assert fitting() == 0
    shelf.put(enough)
    assert fitting() == 2
    shelf.take(enough)
    assert fitting() == 0


DRIVER: JsonObject = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": "disk.example.com"},
    "spec": {"storageCapacity": True},
}


def test_f_20_capacity() -> None:
    shelf = shelf_with(claim("c", "5Gi"), storage_class(), DRIVER)
    assert reasons(shelf, using("p", "c")) == dict.fromkeys(("a1", "a2", "b1"), (NO_SPACE,))
    shelf.put(capacity("x", "a", capacity="10Gi"), capacity("y", "b", capacity="1Gi"))
    assert reasons(shelf, using("p", "c")) == {"b1": (NO_SPACE,)}
    shelf.put(capacity("x", "a", capacity="10Gi", maximumVolumeSize="1Gi"))
    assert {*reasons(shelf, using("p", "c"))} == {"a1", "a2", "b1"}
    shelf.put(merged(DRIVER, {"spec": {"storageCapacity": False}}))
    assert reasons(shelf, using("p", "c")) == {}


def test_a_migrated_volume_goes_by_the_label_of_its_driver() -> None:
    old: JsonObject = {"csi": None, "gcePersistentDisk": {"pdName": "d"}}
    shelf = shelf_with(bound_claim("c", "v"), volume("v", zone="a", **old))
    assert reasons(shelf, using("p", "c")) == {"b1": (WRONG_NODE,)}
    plugins = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}
    shelf.put(merged(csi_node("a1"), {"metadata": {"annotations": plugins}}))
    assert {*reasons(shelf, using("p", "c"))} == {"a1", "b1"}
    shelf.set_node(make_node("a1").zone("a").labels({"topology.gke.io/zone": "a"}).build())
    assert {*reasons(shelf, using("p", "c"))} == {"b1"}


# -- the choice -----------------------------------------------------------------------------------


def test_f_20_the_smallest_volume_that_is_reachable_then_the_first_by_name() -> None:
    shelf = shelf_with(claim("c", "2Gi"), storage_class())
    shelf.put(volume("large", "9Gi"), volume("z", "3Gi"), volume("y", "3Gi"), volume("x", "1Gi"))
    shelf.put(volume("near", "2Gi", zone="b"))
    assert chosen(shelf, using("p", "c"), "a1") == ({"c": "y"}, [])
    assert chosen(shelf, using("p", "c"), "b1") == ({"c": "near"}, [])


def test_f_20_a_volume_that_names_the_claim_goes_first() -> None:
    named: JsonObject = {"claimRef": {"namespace": "default", "name": "c"}}
    shelf = shelf_with(claim("c"), storage_class(), volume("small"), volume("kept", "5Gi", **named))
    assert chosen(shelf, using("p", "c"), "a1") == ({"c": "kept"}, [])
    shelf.put(volume("kept", "5Gi", zone="b", **named))
    assert chosen(shelf, using("p", "c"), "a1") == ({}, ["c"])
    other: JsonObject = {"claimRef": {"namespace": "default", "name": "c", "uid": "other"}}
    shelf.put(volume("kept", "5Gi", **other))
    assert chosen(shelf, using("p", "c"), "a1") == ({"c": "small"}, [])


@pytest.mark.parametrize("node", ["a1", "b1"])
@pytest.mark.parametrize(("operator", "holds"), [("In", False), ("NotIn", True)])
def test_f_20_names_of_nodes_are_held_against_a_node_without_one(
    operator: str, holds: bool, node: str
) -> None:
    """As upstream, which gives the affinity of a volume nothing but the labels of a node."""
    field = {"key": "metadata.name", "operator": operator, "values": ["a1"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    shelf = shelf_with(claim("c"), storage_class(), volume("v", nodeAffinity=affinity))
    assert chosen(shelf, using("p", "c"), node) == (({"c": "v"}, []) if holds else ({}, ["c"]))


def test_f_20_small_claims_choose_first_and_the_rest_is_provisioned() -> None:
    shelf = shelf_with(claim("big", "3Gi"), claim("small", "1Gi"), claim("third"), storage_class())
    shelf.put(volume("v2", "2Gi"), volume("v4", "4Gi"))
    found = chosen(shelf, using("p", "big", "small", "third"), "a1")
    assert found == ({"small": "v2", "third": "v4"}, ["big"])


def naive(shelf: Shelf, claims: list[JsonObject], volumes: list[JsonObject], node: Any) -> Any:
    """The rules of the checklist, one by one, for classes without provisioner."""
    taken: list[str] = []
    found = {}
    for each in sorted(
        claims, key=lambda obj: int(obj["spec"]["resources"]["requests"]["storage"])
    ):
        size = int(each["spec"]["resources"]["requests"]["storage"])
        fitting = [
            (int(obj["spec"]["capacity"]["storage"]), obj["metadata"]["name"])
            for obj in volumes
            if obj["metadata"]["name"] not in taken
            and int(obj["spec"]["capacity"]["storage"]) >= size
            and _reaches(obj, node)
        ]
        if not fitting:
            return None
        taken.append(min(fitting)[1])
        found[each["metadata"]["name"]] = min(fitting)[1]
    return found


def _reaches(obj: JsonObject, node: Any) -> bool:
    affinity = obj["spec"].get("nodeAffinity")
    return affinity is None or node_selector(affinity["required"]).matches(node.labels, "")


@pytest.mark.parametrize("seed", range(25))
def test_what_is_kept_equals_the_plain_rules(seed: int) -> None:
    random = Streams(seed).stream("volumes")
    names = [f"{'abc'[at % 3]}{at}" for at in range(6)]
    shelf = Shelf(*(make_node(name).zone(name[0]).build() for name in names))
    plugin = VolumeBinding(shelf.handle)
    shelf.put(storage_class(provisioner=STATIC))
    volumes: dict[str, JsonObject] = {}
    for step in range(25):
        name, size = f"v{random.below(8)}", str(1 + random.below(4))
        if random.below(3) and name in volumes:
            shelf.take(volumes.pop(name))
        else:
            hosts = in_zone(names[random.below(6)], "kubernetes.io/hostname")
            affinity = [None, in_zone("abc"[random.below(3)]), hosts][random.below(3)]
            volumes[name] = volume(name, size, nodeAffinity=affinity)
            shelf.put(volumes[name])
        count = 1 + random.below(2)
        claims = [claim(f"c{step}-{at}", str(1 + random.below(4))) for at in range(count)]
        shelf.put(*claims)
        pod = shelf.pod(using(f"p{step}", *(each["metadata"]["name"] for each in claims)))
        state = CycleState()
        assert plugin.pre_filter(state, pod, shelf.nodes)[0].ok
        codes = plugin.filter_nodes(state, pod, shelf.nodes, shelf.rows).tolist()
        for row, info in enumerate(shelf.nodes.infos):
            want = naive(shelf, claims, [*volumes.values()], info)
            assert (codes[row] == 0) is (want is not None), (step, info.name)
            if want is not None:
                trial = copy.deepcopy(state)
                plugin.reserve(trial, pod, info.name)
                got = {
                    c["metadata"]["name"]: v for v, c in trial.find(plugin.name).assumed.bindings
                }
                plugin.unreserve(trial, pod, info.name)
                assert got == want, (step, info.name)


# -- Reserve, PreBind -----------------------------------------------------------------------------


def stage_with(*objects: JsonObject) -> Stage:
    stage = Stage()
    for name in ("a1", "b1"):
        stage.create(make_node(name).cpu("4").memory("8Gi").zone(name[0]))
    stage.create(*objects)
    for obj in objects:
        if obj["kind"] == "PersistentVolume":
            stage.client.update({**obj, "status": {"phase": "Available"}}, subresource="status")
    return stage


def test_nothing_is_left_of_volumes_that_went() -> None:
    table = Table(make_node("a").zone("x").build())
    reach = Reach(table.nodes)
    reach.renew()
    index = VolumeIndex(reach)
    for zone in "xyz":
        taken = volume(f"taken-{zone}", zone=zone, claimRef={"name": zone, "namespace": "default"})
        for each in (taken, volume(f"free-{zone}", zone=zone)):
            index.put(each["metadata"]["name"], each)
    shape = read_shape(claim("c"))
    assert index.reached(shape, 1).tolist() == [1]
    for name in index.names():
        index.put(name, None)
    assert index.reached(shape, 1).tolist() == [0]
    left = index._class("slow")
    assert [*left.volumes, *left.by_claim, *left.groups] == []
    index.put("new", volume("new", zone="x"))
    assert index.reached(shape, 1).tolist() == [1]
    found = index.choose(shape, name_of(claim("c")), 0, ())
    assert found is not None
    assert found.name == "new"


def test_f_21_what_is_reserved_is_found_by_nobody_until_it_is_given_back() -> None:
    claims = [claim(f"c{number}", "2Gi") for number in range(3)]
    shelf = shelf_with(*claims, storage_class(), volume("first", "2Gi"), volume("last", "3Gi"))
    plugin = VolumeBinding(shelf.handle)
    reserved = []
    for each, node in zip(claims, ("a1", "a1", "b1"), strict=True):
        state, info = CycleState(), shelf.pod(using("p", each["metadata"]["name"]))
        plugin.pre_filter(state, info, shelf.nodes)
        plugin.filter_nodes(state, info, shelf.nodes, shelf.rows)
        assert plugin.reserve(state, info, node).ok
        bindings = state.find("VolumeBinding").assumed.bindings
        reserved += [name for name, _ in bindings]
        if len(reserved) == 2:
            plugin.unreserve(state, info, node)
    assert reserved == ["first", "last", "last"]


def test_f_21_a_volume_that_is_assumed_is_not_chosen_again() -> None:
    stage = stage_with(
        storage_class(provisioner=STATIC), volume("v"), claim("c1"), claim("c2"), claim("c3")
    )
    stage.create(using("p1", "c1"), using("p2", "c2"))
    stage.work()
    assert stage.pod("p1")["status"]["nominatedNodeName"]
    assert "nodeName" not in stage.pod("p1")["spec"]
    (condition,) = stage.pod("p2")["status"]["conditions"]
    assert f"2 {NO_VOLUME}" in condition["message"]
    written = stage.cluster.get("persistentvolumes", "v")
    assert written["spec"]["claimRef"]["name"] == "c1"
    assert written["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_f_21_time_out_on_the_virtual_clock() -> None:
    stage = stage_with(storage_class(), claim("c"))
    stage.create(using("p", "c"))
    stage.work()
    selected = stage.cluster.get("persistentvolumeclaims", "c")["metadata"]["annotations"]
    assert selected == {"volume.kubernetes.io/selected-node": "a1"}
    stage.pass_time(10 * MINUTE - SECOND)
    assert not stage.work()
    stage.pass_time(SECOND)
    attempt = stage.work()[0]
    assert attempt.message == (
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    )
    assert attempt.reason == "SchedulerError"


def test_f_21_a_selection_that_is_taken_back_fails_the_binding() -> None:
    stage = stage_with(storage_class(), claim("c"))
    stage.create(using("p", "c"))
    stage.work()
    obj = stage.cluster.get("persistentvolumeclaims", "c")
    obj["metadata"]["annotations"] = {"something": "else"}
    stage.client.update(obj)
    attempt = stage.work()[0]
    assert attempt.message == (
        'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"'
    )


def test_pods_that_wait_are_asked_about_their_own_claims_alone() -> None:
    stage = stage_with(storage_class(), claim("c1"), claim("c2"))
    stage.create(using("p1", "c1"), using("p2", "c2"))
    stage.work()
    waiting = stage.scheduler.waiting_bindings
    assert len(stage.scheduler.waiting_pods) == 2
    stage.create(volume("another"))
    assert not stage.scheduler.waiting_pods.has_ready
    obj = stage.cluster.get("persistentvolumeclaims", "c2")
    stage.client.update(merged(obj, {"metadata": {"labels": {"x": "y"}}}))
    assert stage.scheduler.waiting_pods.next_ready() == stage.uid("p2")
    assert stage.uid("p1") in waiting


def test_a_claim_that_nobody_waits_for_any_more_asks_nobody() -> None:
    stage = stage_with(storage_class(), claim("c1"))
    stage.create(using("p1", "c1"))
    stage.work()
    stage.delete("p1")
    stage.work()
    obj = stage.cluster.get("persistentvolumeclaims", "c1")
    stage.client.update(merged(obj, {"metadata": {"labels": {"x": "y"}}}))
    assert not stage.scheduler.waiting_pods.has_ready


def test_what_is_assumed_holds_until_the_object_changes_or_is_restored() -> None:
    shelf = shelf_with(claim("c"))
    lister = shelf.lister(KINDS[EventResource.PERSISTENT_VOLUME_CLAIM])
    cache = AssumeCache(lister)
    assumed = merged(claim("c"), {"metadata": {"labels": {"assumed": "yes"}}})
    cache.assume(assumed)
    assert cache.get("c", "default") is assumed
    cache.restore(assumed)
    assert cache.get("c", "default") == claim("c")
    cache.assume(assumed)
    shelf.put(claim("c", "2Gi"))
    assert cache.get("c", "default") == claim("c", "2Gi")
    shelf.take(claim("c"))
    assert cache.get("c", "default") is None


# -- hints ----------------------------------------------------------------------------------------


def test_hints() -> None:
    shelf = shelf_with()
    events = VolumeBinding(shelf.handle).events_to_register()
    pod, owner = shelf.pod(using("p", "c")), shelf.pod(mounting("q", EPHEMERAL))
    classes, claims = EventResource.STORAGE_CLASS, EventResource.PERSISTENT_VOLUME_CLAIM
    there = storage_class(allowedTopologies=[{"matchLabelExpressions": []}])
    assert hint_of(events, pod, classes, storage_class()) is Hint.QUEUE
    assert hint_of(events, pod, classes, storage_class(), storage_class()) is Hint.SKIP
    assert hint_of(events, pod, classes, there, storage_class()) is Hint.QUEUE
    assert hint_of(events, pod, claims, claim("c"), claim("c")) is Hint.QUEUE
    assert hint_of(events, pod, claims, claim("d")) is Hint.SKIP
    assert hint_of(events, owner, claims, claim("q-v0")) is Hint.QUEUE
    assert hint_of(events, pod, EventResource.PERSISTENT_VOLUME, volume("v")) is Hint.QUEUE
    assert hint_of(events, pod, EventResource.NODE, make_node("n").build()) is Hint.QUEUE
    nodes = EventResource.CSI_NODE
    assert hint_of(events, pod, nodes, csi_node("n")) is Hint.QUEUE
    assert hint_of(events, pod, nodes, csi_node("n", x=1), csi_node("n")) is Hint.SKIP
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "x"}
    moved = merged(csi_node("n"), {"metadata": {"annotations": migrated}})
    assert hint_of(events, pod, nodes, moved, csi_node("n")) is Hint.QUEUE
    pools = EventResource.CSI_STORAGE_CAPACITY
    small, large = capacity("x", "a", capacity="1Gi"), capacity("x", "a", capacity="2Gi")
    assert hint_of(events, pod, pools, small) is Hint.QUEUE
    assert hint_of(events, pod, pools, large, small) is Hint.QUEUE
    assert hint_of(events, pod, pools, small, large) is Hint.SKIP
    drivers, silent = EventResource.CSI_DRIVER, merged(DRIVER, {"spec": {"storageCapacity": False}})
    inline = shelf.pod(mounting("r", {"csi": {"driver": "disk.example.com"}}))
    assert hint_of(events, inline, drivers, silent, DRIVER) is Hint.QUEUE
    assert hint_of(events, inline, drivers, DRIVER, silent) is Hint.SKIP
    assert hint_of(events, pod, drivers, silent, DRIVER) is Hint.SKIP
