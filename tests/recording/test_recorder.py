"""From notices to Event objects: their form, names, series, and what happens to refused ones."""

import copy
import logging

import pytest

from kubescene.actors import Actor, Component, Role
from kubescene.api.gates import role_without_scenario
from kubescene.clock import MINUTE, SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ForbiddenError
from kubescene.recording import NORMAL, WARNING, EventRecorder, EventStamps, Notice, regarding
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


class Rehearsal:
    """A cluster without controllers, and one recorder."""

    def __init__(self) -> None:
        self.cluster = ClusterWorld(ClusterOptions(events=True))
        self.pod = self.cluster.create(make_pod("web"))
        client = self.cluster.client(Actor("tester", Component.CONTROLLER, inside=True))
        queue = self.cluster.event_queue
        self.recorder = EventRecorder(
            client, self.cluster.clock, queue, EventStamps(self.cluster.clock)
        )

    def tell(self, message: str = "hello", *, action: str = "") -> None:
        about = regarding(self.pod)
        self.recorder.tell(Notice(about, NORMAL, "Greeted", message, "tester", action=action))

    def events(self, kind: str = "events") -> list[JsonObject]:
        return self.cluster.list(kind)

    def pass_time(self, duration: int) -> None:
        self.cluster.event_queue.run(self.cluster.clock.now() + duration)


@pytest.fixture
def world() -> Rehearsal:
    return Rehearsal()


def test_an_event_of_the_core_group(world: Rehearsal) -> None:
    world.tell()
    (event,) = world.events()
    metadata = world.pod["metadata"]
    assert event["involvedObject"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": metadata["uid"],
        "apiVersion": "v1",
        "resourceVersion": metadata["resourceVersion"],
    }
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Greeted", "hello")
    assert event["source"] == {"component": "tester"}
    assert event["reportingComponent"] == "tester"
    assert event["count"] == 1
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


def test_names_are_of_object_and_instant(world: Rehearsal) -> None:
    world.tell("a")
    world.tell("b")
    now = world.cluster.clock.now()
    names = sorted(event["metadata"]["name"] for event in world.events())
    assert names == [f"web.{now:x}", f"web.{now + 1:x}"]


def test_names_that_are_too_long_are_left_out() -> None:
    stamps = EventStamps(ClusterWorld().clock)
    assert stamps.name("a" * 253).isalnum()


def test_a_repeated_event_is_counted_up(world: Rehearsal) -> None:
    world.tell()
    world.pass_time(90 * SECOND)
    world.tell()
    (event,) = world.events()
    assert event["count"] == 2
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:30Z"


def test_a_repeated_event_that_has_gone_is_written_again(world: Rehearsal) -> None:
    world.tell()
    (event,) = world.events()
    world.cluster.delete("events", event["metadata"]["name"])
    world.tell()
    (again,) = world.events()
    assert (again["metadata"]["name"], again["count"]) == (event["metadata"]["name"], 2)


def test_combined_events_say_the_latest(world: Rehearsal) -> None:
    for number in range(12):
        world.tell(f"pod {number}")
    found = world.events()
    assert len(found) == 10
    (combined,) = [event for event in found if event["message"].startswith("(combined")]
    assert combined["message"] == "(combined from similar events): pod 11"
    assert combined["count"] == 3


def test_events_about_things_without_a_namespace_lie_in_default(world: Rehearsal) -> None:
    node = world.cluster.create(make_node("n1"))
    world.recorder.tell(Notice(regarding(node), WARNING, "Tired", "yawn", "tester"))
    (event,) = world.events()
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


class TestSeries:
    def new(self, world: Rehearsal) -> JsonObject:
        (event,) = world.events("events.events.k8s.io")
        return event

    def test_an_event_of_the_newer_group(self, world: Rehearsal) -> None:
        world.tell(action="Greeting")
        stored = world.events()[0]
        assert stored["reportingComponent"] == "tester"
        assert stored["reportingInstance"] == "tester-kubescene"
        assert (stored["action"], stored["message"]) == ("Greeting", "hello")
        assert stored["eventTime"] == "2026-01-01T00:00:00.000000Z"
        assert "series" not in stored
        assert "count" not in stored

    def test_the_second_begins_a_series_and_the_third_is_only_counted(
        self, world: Rehearsal
    ) -> None:
        world.tell("a", action="Greeting")
        world.pass_time(SECOND)
        world.tell("b", action="Greeting")
        world.pass_time(SECOND)
        world.tell("c", action="Greeting")
        (event,) = world.events()
        assert event["message"] == "a"
        assert event["series"] == {
            "count": 2,
            "lastObservedTime": "2026-01-01T00:00:01.000000Z",
        }

    def test_the_final_count_is_written_when_the_series_ends(self, world: Rehearsal) -> None:
        for _ in range(5):
            world.tell(action="Greeting")
        world.pass_time(6 * MINUTE)
        assert world.events()[0]["series"]["count"] == 2
        world.pass_time(6 * MINUTE)
        assert world.events()[0]["series"]["count"] == 5
        assert world.cluster.event_queue.peek() is None
        world.tell(action="Greeting")
        assert len(world.events()) == 2

    def test_a_series_that_goes_on_is_refreshed_every_half_hour(self, world: Rehearsal) -> None:
        for _ in range(30):
            world.tell(action="Greeting")
            world.pass_time(MINUTE)
        assert world.events()[0]["series"]["count"] == 30

    def test_a_single_event_is_forgotten(self, world: Rehearsal) -> None:
        world.tell(action="Greeting")
        world.pass_time(13 * MINUTE)
        world.tell(action="Greeting")
        assert len(world.events()) == 2


def test_events_in_a_namespace_that_goes_are_dropped(
    world: Rehearsal, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = world.cluster
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    pod = cluster.create(make_pod("web", "team"))
    cluster.delete("namespaces", "team")
    world.recorder.tell(Notice(regarding(pod), NORMAL, "Greeted", "bye", "tester"))
    assert world.events() == []
    assert not caplog.records


class ClosedGate:
    def role_of(self, actor: Actor) -> Role:
        return role_without_scenario(actor)

    def before_write(
        self, actor: Actor, resource_type: object, subresource: str, name: str
    ) -> None:
        raise ForbiddenError("closed")


def test_a_refused_event_is_logged_and_the_component_goes_on(
    world: Rehearsal, caplog: pytest.LogCaptureFixture
) -> None:
    world.cluster.guard(ClosedGate())
    with caplog.at_level(logging.WARNING):
        world.tell()
    assert "was refused: closed" in caplog.text


def test_a_copied_recorder_goes_on_alike(world: Rehearsal) -> None:
    world.tell(action="Greeting")
    world.tell(action="Greeting")
    other = copy.deepcopy(world)
    for each in (world, other):
        each.tell(action="Greeting")
        each.tell("same")
        each.pass_time(12 * MINUTE)
    assert world.cluster.export() == other.cluster.export()
    assert other.events()[0]["series"]["count"] == 3
