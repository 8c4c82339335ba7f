"""A copied store: the same records, a life of its own."""

import threading
from copy import deepcopy

import pytest

from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource
from kubescene.store import Store, Watch
from kubescene.testing import make_pod

PODS = GroupResource("", "pods")


def node_of(record: Record) -> str:
    return record.node


class Listener:
    """A controller that hears of pods."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.heard: list[str] = []
        self.subscription = store.subscribe(self.hear, [PODS])

    def hear(self, change: Change) -> None:
        self.heard.append(change.record.name)


@pytest.fixture
def store() -> Store:
    store = Store()
    store.add_index(PODS, "node", node_of)
    for name in ("b", "a"):
        store.put(PODS, make_pod(name).on("n1").build(), expected=0)
    store.put(PODS, make_pod("b").on("n2").build())
    return store


def state(store: Store) -> tuple[object, ...]:
    return (
        store.revision,
        store.list(PODS),
        store.in_order_of_creation(PODS),
        [store.indexes.records(PODS, "node", node) for node in ("n1", "n2", "n3")],
        [(it.type, it.revision) for it in store.history.since(0)],
        [store.list_at(PODS, revision) for revision in range(store.revision)],
    )


def write(store: Store) -> None:
    store.put(PODS, make_pod("c").on("n3").build(), expected=0)
    store.remove(PODS, "default", "a")
    store.put(PODS, make_pod("b").on("n1").build())


def test_a_copy_is_in_the_same_state_and_shares_the_records(store: Store) -> None:
    twin = deepcopy(store)
    assert state(twin) == state(store)
    assert twin.list(PODS)[0] is store.list(PODS)[0]


@pytest.mark.parametrize("which", ["parent", "copy"])
def test_what_one_writes_the_other_does_not_see(store: Store, which: str) -> None:
    twin = deepcopy(store)
    writer, other = (store, twin) if which == "parent" else (twin, store)
    before = state(other)
    write(writer)
    assert state(other) == before
    write(other)
    assert state(other) == state(writer)


def test_a_copied_controller_hears_the_copied_store(store: Store) -> None:
    listener = Listener(store)
    world = deepcopy({"store": store, "listener": listener})
    twin, its_listener = world["store"], world["listener"]
    assert isinstance(twin, Store)
    assert isinstance(its_listener, Listener)
    assert its_listener.store is twin
    twin.put(PODS, make_pod("x").build(), expected=0)
    store.put(PODS, make_pod("y").build(), expected=0)
    assert (listener.heard, its_listener.heard) == (["y"], ["x"])
    its_listener.subscription.cancel()
    twin.put(PODS, make_pod("z").build(), expected=0)
    store.put(PODS, make_pod("z").build(), expected=0)
    assert (listener.heard, its_listener.heard) == (["y", "z"], ["x"])


def test_copied_changes_are_decoded_by_the_copy(store: Store) -> None:
    watch = Watch(store, [PODS], since=2)
    twin, its_watch = deepcopy((store, watch))
    (told,) = its_watch.drain()
    (kept,) = twin.history.since(2)
    for change in (told, kept):
        assert change.object is twin.decoded(change.record)
        assert change.object is not store.decoded(change.record)
        assert change.object == store.decoded(change.record)


def test_a_copy_has_no_owner_yet(store: Store) -> None:
    store.own()
    twin = deepcopy(store)
    thread = threading.Thread(target=write, args=(twin,))
    thread.start()
    thread.join()
    assert twin.revision == store.revision + 3
