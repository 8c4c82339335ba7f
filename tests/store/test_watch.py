"""A consumer's own backlog: filled by the store, drained at the consumer's pace."""

import pytest

from kubescene.api.scheme import GroupResource
from kubescene.errors import ExpiredError
from kubescene.store import Store, Watch, WatchOverflowError
from kubescene.testing import make_node, make_pod

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")


def add_pods(store: Store, *names: str) -> None:
    for name in names:
        store.put(PODS, make_pod(name).build(), expected=0)


def drained(watch: Watch) -> list[str]:
    return [change.record.name for change in watch.drain()]


def test_a_watch_begins_in_the_past_and_goes_on() -> None:
    store = Store()
    add_pods(store, "a", "b")
    watch = Watch(store, [PODS], since=1)
    store.put(NODES, make_node("n").build(), expected=0)
    add_pods(store, "c")
    assert drained(watch) == ["b", "c"]
    assert drained(watch) == []


def test_a_watch_from_a_forgotten_revision_is_refused() -> None:
    store = Store(window=1)
    add_pods(store, "a", "b", "c")
    with pytest.raises(ExpiredError):
        Watch(store, [PODS], since=1)


def test_a_closed_watch_gets_nothing_more() -> None:
    store = Store()
    watch = Watch(store, [PODS], since=0)
    watch.close()
    add_pods(store, "a")
    assert drained(watch) == []


def test_a_slow_consumer_is_cut_off_and_finds_out_after_what_it_has() -> None:
    store = Store()
    watch = Watch(store, [PODS], since=0, backlog=2)
    add_pods(store, "a", "b", "c", "d")
    assert watch.is_cut_off
    assert drained(watch) == ["a", "b"]
    add_pods(store, "e")
    for _ in range(2):
        with pytest.raises(WatchOverflowError, match="more than 2 changes were waiting"):
            watch.drain()


def test_the_consumer_is_woken_for_every_change_and_for_the_cut() -> None:
    store = Store()
    woken: list[int] = []
    Watch(store, [PODS], since=0, backlog=1, wake=lambda: woken.append(store.revision))
    add_pods(store, "a", "b", "c")
    assert woken == [1, 2]


def test_a_closed_watch_lets_go_of_what_nobody_took() -> None:
    store = Store()
    watch = Watch(store, [PODS], since=0)
    add_pods(store, "a")
    watch.close()
    assert drained(watch) == []
