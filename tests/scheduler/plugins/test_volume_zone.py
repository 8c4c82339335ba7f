"""VolumeZone: labels of volumes against labels of nodes."""

import pytest

from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import EventResource, Hint
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.plugins.volume_zone import VolumeZone
from kubescene.testing.builders import make_node, merged
from kubescene.types import JsonObject
from scheduler.shelves import Shelf, hint_of
from scheduler.storage import WFFC, ZONE, bound_claim, claim, storage_class, using, volume

BETA = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def labelled(labels: dict[str, str]) -> JsonObject:
    return merged(volume("v"), {"metadata": {"labels": labels}})


@pytest.mark.parametrize(
    ("labels", "node", "refused"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, False, id="F-23 same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, True, id="F-23 other zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, False, id="F-23 one of several"),
        pytest.param({ZONE: "a__c"}, {ZONE: "b"}, True, id="F-23 none of several"),
        pytest.param({ZONE: "a"}, {}, False, id="F-23 node without labels"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, True, id="F-23 node with another label"),
        pytest.param({BETA: "a"}, {ZONE: "a"}, False, id="F-23 beta key, GA on the node"),
        pytest.param({BETA: "a"}, {BETA: "b", ZONE: "a"}, True, id="F-23 beta key goes first"),
        pytest.param({ZONE: "a"}, {BETA: "a"}, True, id="F-23 GA key, beta on the node"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, True, id="F-23 region"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, False, id="F-23 beta region"),
    ],
)
def test_f_23_labels(labels: dict[str, str], node: dict[str, str], refused: bool) -> None:
    shelf, state = Shelf(make_node("n").labels(node).build()), CycleState()
    plugin = VolumeZone(shelf.handle)
    shelf.put(labelled(labels), bound_claim("c", "v"))
    pod = shelf.pod(using("p", "c"))
    assert plugin.pre_filter(state, pod, shelf.nodes)[0].ok
    assert plugin.filter(state, pod, shelf.nodes.infos[0]).ok is not refused
    codes = plugin.filter_nodes(state, pod, shelf.nodes, shelf.rows)
    assert codes.tolist() == [int(refused)]
    if refused:
        status = plugin.describe(state, pod, 1)
        assert status.code is Code.UNRESOLVABLE
        assert status.reasons == ("node(s) had no available volume zone",)


IMMEDIATE = "Immediate"


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param([], 'persistentvolumeclaim "c" not found', id="F-22 no claim"),
        pytest.param(
            [bound_claim("c", "v")], 'persistentvolume "v" not found', id="F-22 no volume"
        ),
        pytest.param(
            [claim("c", storage_class="")],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="F-22 neither volume nor class",
        ),
        pytest.param(
            [claim("c")], 'storageclass.storage.k8s.io "slow" not found', id="F-22 no class"
        ),
        pytest.param(
            [claim("c"), storage_class(mode=IMMEDIATE)],
            "PersistentVolume had no name",
            id="F-22 unbound and immediate",
        ),
    ],
)
def test_f_22_what_is_wrong_with_a_claim(objects: list[JsonObject], text: str) -> None:
    shelf = Shelf(make_node("n").build())
    plugin = VolumeZone(shelf.handle)
    shelf.put(*objects)
    status, _ = plugin.pre_filter(CycleState(), shelf.pod(using("p", "c")), shelf.nodes)
    assert (status.code, status.reasons) == (Code.UNRESOLVABLE, (text,))


def test_f_22_skips_claims_that_wait_and_volumes_without_labels() -> None:
    shelf = Shelf(make_node("n").build())
    plugin = VolumeZone(shelf.handle)
    shelf.put(claim("c"), storage_class(mode=WFFC), bound_claim("d", "v"), labelled({ZONE: "a__"}))
    pod = shelf.pod(using("p", "c", "d"))
    assert plugin.pre_filter(CycleState(), pod, shelf.nodes)[0].code is Code.SKIP


def test_hints() -> None:
    shelf = Shelf()
    events = VolumeZone(shelf.handle).events_to_register()
    pod = shelf.pod(using("p", "c"))
    classes, volumes = EventResource.STORAGE_CLASS, EventResource.PERSISTENT_VOLUME
    claims = EventResource.PERSISTENT_VOLUME_CLAIM
    assert hint_of(events, pod, classes, storage_class()) is Hint.QUEUE
    assert hint_of(events, pod, classes, storage_class(mode=IMMEDIATE)) is Hint.SKIP
    assert hint_of(events, pod, claims, claim("c"), claim("c")) is Hint.QUEUE
    assert hint_of(events, pod, claims, claim("d")) is Hint.SKIP
    assert hint_of(events, pod, volumes, volume("v")) is Hint.QUEUE
    assert hint_of(events, pod, volumes, volume("v"), volume("v")) is Hint.SKIP
    assert hint_of(events, pod, volumes, labelled({ZONE: "a"}), volume("v")) is Hint.QUEUE
    assert hint_of(events, pod, EventResource.NODE, make_node("n").build()) is Hint.QUEUE
