"""The window of the past: one for each resource, bounded by count and by bytes."""

from collections.abc import Iterable

import pytest

import kubescene
from kubescene.api.records.changes import Change
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.records.parts import unshared_size
from kubescene.api.scheme import GroupResource
from kubescene.cluster import ClusterWorld
from kubescene.errors import ExpiredError
from kubescene.runs.staging import stored
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.fields.definition import SCENARIOS
from kubescene.scenario.resource import ScenarioResource
from kubescene.store import Store, Watch
from kubescene.store.history import History
from kubescene.testing import make_node, make_pod
from kubescene.timeline.views import PACKED_FACT, KepView
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")
EVENTS = GroupResource("", "events")
DEPLOYMENTS = GroupResource("apps", "deployments")


def named(name: str, **members: object) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, **members}


def revisions(changes: Iterable[Change]) -> list[int]:
    return [change.revision for change in changes]


@pytest.fixture
def store() -> Store:
    """Two pods, then more events than the window holds, then a pod."""
    store = Store(window=3)
    for name in ("a", "b"):
        store.put(PODS, make_pod(name).build(), expected=0)
    for n in range(5):
        store.put(EVENTS, named(f"e{n}"), expected=0)
    store.put(PODS, make_pod("c").build(), expected=0)
    return store


def test_a_burst_of_events_does_not_make_pods_forgotten(store: Store) -> None:
    assert revisions(store.history.since(0, [PODS])) == [1, 2, 8]
    assert [r.name for r in store.list_at(PODS, 1)] == ["a"]
    assert revisions(Watch(store, [PODS], since=1).drain()) == [2, 8]


@pytest.mark.parametrize(
    ("revision", "resources", "oldest"),
    [
        pytest.param(3, [EVENTS], 5, id="events"),
        pytest.param(3, [PODS, EVENTS], 5, id="both"),
        pytest.param(3, None, 5, id="all"),
    ],
)
def test_what_left_the_window_is_expired(
    store: Store, revision: int, resources: list[GroupResource] | None, oldest: int
) -> None:
    with pytest.raises(ExpiredError, match=rf"too old resource version: 3 \({oldest}\)"):
        store.history.since(revision, resources)
    assert store.history.compacted == oldest - 1
    assert store.history.compacted_of(PODS) == 0


def test_changes_of_several_resources_come_in_order_of_revision(store: Store) -> None:
    assert revisions(store.history.since(4)) == [5, 6, 7, 8]
    assert revisions(store.history.since(4, [EVENTS, PODS])) == [5, 6, 7, 8]
    assert revisions(store.history.since(6, [EVENTS])) == [7]
    assert store.history.since(8) == []


def test_a_resource_that_never_changed_has_nothing_to_forget(store: Store) -> None:
    assert store.history.since(0, [GroupResource("", "nodes")]) == []


def test_large_objects_that_change_often_are_bounded_by_bytes() -> None:
    store = Store()
    store.history = History(most_bytes=2500)
    store.put(PODS, make_pod("a").build(), expected=0)
    for n in range(10):
        large = named("large", text=f"{n}" + "x" * 1000)
        store.put(EVENTS, large)
    kept = store.history.since(store.history.compacted, [EVENTS])
    assert revisions(kept) == [10, 11]
    assert revisions(store.history.since(0, [PODS])) == [1]


def test_what_is_forgotten_is_what_exact_sizes_say() -> None:
    """They are measured late, when there may be too many bytes: nobody sees a difference."""
    store, heard, expected = Store(window=12), list[Change](), 0
    store.history = History(window=12, most_bytes=3000)
    store.subscribe(heard.append, [DEPLOYMENTS])
    record = store.put(DEPLOYMENTS, named("a", spec={"text": "x" * 900}, status={}), expected=0)
    for n in range(60):
        size = 40 * n if n % 20 < 15 else 1100
        record = store.put(
            DEPLOYMENTS, {**store.decoded(record), "status": {"text": f"{n}" + "y" * size}}
        )
        kept = [each for each in heard if each.revision > expected]
        while len(kept) > 12 or sum(each.kept_alive() for each in kept) > 3000:
            expected = kept.pop(0).revision
        assert store.history.compacted_of(DEPLOYMENTS) == expected
    assert expected


def test_a_change_counts_for_what_it_alone_keeps_alive() -> None:
    store = Store()
    heard: list[Change] = []
    store.subscribe(heard.append)
    spec, status = {"text": "x" * 1000}, {"text": "y" * 100}
    record = store.put(DEPLOYMENTS, named("a", spec=spec, status=status), expected=0)
    obj = store.decoded(record)
    store.put(DEPLOYMENTS, {**obj, "status": {}})
    store.remove(DEPLOYMENTS, "default", "a")
    created, updated, removed = (change.kept_alive() for change in heard)
    assert created == 0
    assert 100 < updated < 200
    assert removed > 1000


def test_bytes_of_parts_that_an_owner_encodes_count_too() -> None:
    store = Store()
    heard: list[Change] = []
    store.subscribe(heard.append)
    large, log = b'"data":"' + b"x" * 1000 + b'",', (b"[" + b"1" * 500, b"]")

    def build(revision: int) -> tuple[bytes | tuple[bytes, ...], ...]:
        head = b'{"metadata":{"resourceVersion":"%d","name":"a"},' % revision
        return (head, large, b'"log":', *((log,) if revision < 3 else (b"[]",)), b"}")

    record = store.put(EVENTS, named("a"), expected=0)
    for _ in range(2):
        record = store.put(EVENTS, Rebuilt(record, build, ""))
    assert 500 < heard[2].kept_alive() < 600


def test_the_timeline_of_a_scenario_counts_once_it_is_deleted() -> None:
    """Until then it is the engine's; afterwards the history alone keeps it."""
    cluster, heard = ClusterWorld(), list[Change]()
    cluster.store.subscribe(heard.append, [SCENARIOS])
    builder = ScenarioBuilder("s").create(make_node("n").cpu("4"), make_pod("p")).done()
    scenario = ScenarioResource(cluster.store, stored(builder.build(), cluster))
    log = kubescene.run(builder).log
    scenario.timeline = KepView(log).until(len(log))
    scenario.write()
    cluster.store.get(SCENARIOS, "", "s")  # a status that nobody reads is not written
    cluster.store.remove(SCENARIOS, "", "s")
    removed = heard[-1]
    before = removed.previous
    assert before is not None
    assert removed.kept_alive() - unshared_size(before.payload, b"") == len(log) * PACKED_FACT
