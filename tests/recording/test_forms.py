"""Events of one form are what the long way makes of each of them."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.actors import Actor, Component
from kubescene.clock import SECOND
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.recording import NORMAL, WARNING, EventRecorder, EventStamps, Notice
from kubescene.recording.recorder import EventForms
from kubescene.testing import make_pod
from kubescene.types import JsonObject


class Formless(EventForms):
    """No Event is like another."""

    def of(self, event: JsonObject) -> None:
        del event


class World:
    """A cluster that tracks fields, and one recorder."""

    def __init__(self, forms: EventForms, *, tracked: bool = True) -> None:
        self.cluster = Cluster(ClusterOptions(events=True))
        self.cluster.registry.track_fields = tracked
        self.cluster.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
        )
        client = self.cluster.client(Actor("tester", Component.CONTROLLER, inside=True))
        clock, queue = self.cluster.clock, self.cluster.event_queue
        self.recorder = EventRecorder(client, clock, queue, EventStamps(clock))
        self.recorder._forms = forms

    def tell(self, notices: list[Notice]) -> list[JsonObject]:
        for notice in notices:
            self.recorder.tell(notice)
            self.cluster.event_queue.run(self.cluster.clock.now() + SECOND)
        return [
            self.cluster.registry.store.decoded(record)
            for record in self.cluster.registry.store.list(EVENTS)
        ]


EVENTS = Cluster().registry.scheme.of_kind("v1", "Event").group_resource


USUAL = Notice(
    about={"kind": "Pod", "namespace": "default", "name": "a", "uid": "uid-a"},
    type=NORMAL,
    reason="Pulled",
    message="done",
    reporter="kubelet",
    host="n1",
)
OTHERS: dict[str, list[object]] = {
    "about": [
        {"kind": "Pod", "namespace": "default", "name": "b", "uid": "uid-b"},
        {"kind": "Pod", "namespace": "other", "name": "a", "uid": "uid-a"},
        {"kind": "Pod", "namespace": "missing", "name": "a", "uid": "uid-a"},
        {"kind": "Pod", "namespace": "default", "name": "c/d", "uid": "uid-c"},
        {"kind": "Pod", "namespace": "default", "name": "x" * 260, "uid": "uid-x"},
        {"kind": "Node", "name": "n1", "uid": "uid-n"},
        {**USUAL.about, "fieldPath": "spec.containers{app}"},
    ],
    "type": [WARNING],
    "reason": ["Scheduled", "R" * 200],
    "message": ["failed", "\u00e4" * 600, "y" * 1025, ""],
    "reporter": ["tester", "not a label"],
    "host": ["", "n2", "h" * 130],
    "related": [{"kind": "Node", "name": "n1"}],
}


@st.composite
def notices(draw: st.DrawFn, action: str) -> Notice:
    """The usual notice with a difference or two."""
    members = draw(st.lists(st.sampled_from(sorted(OTHERS)), max_size=2, unique=True))
    changes = {member: draw(st.sampled_from(OTHERS[member])) for member in members}
    return msgspec.structs.replace(USUAL, action=action, **changes)


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("action", ["", "Binding"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_events_are_those_of_the_long_way(
    data: st.DataObject, action: str, *, tracked: bool
) -> None:
    told = data.draw(st.lists(notices(action), max_size=12))
    short, long = World(EventForms(), tracked=tracked), World(Formless(), tracked=tracked)
    assert short.tell(told) == long.tell(told)


def test_a_form_is_checked_again_when_its_namespace_ends() -> None:
    world = World(EventForms())
    about = {"kind": "Pod", "namespace": "other", "name": "p", "uid": "u"}
    told = [Notice(about, NORMAL, "Pulled", f"number {n}", "kubelet") for n in range(3)]
    assert len(world.tell(told[:2])) == 2
    world.cluster.create(make_pod("holds").namespace("other").label(a="b"))
    world.cluster.delete("namespace", "other")
    assert len(world.tell(told[2:])) <= 2
