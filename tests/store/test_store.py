"""One history of every object: revisions, lists, subscribers, who may write."""

import threading
from collections.abc import Callable

import orjson
import pytest

from kubescene.api.records import Record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    NotFoundError,
    ReentrantWriteError,
)
from kubescene.store import Store
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")


@pytest.fixture
def store() -> Store:
    return Store()


def pod(name: str, namespace: str = "default", **labels: str) -> JsonObject:
    return make_pod(name, namespace).label(**labels).build()


def names(records: list[Record]) -> list[str]:
    return [f"{record.namespace}/{record.name}" for record in records]


def test_every_write_takes_the_next_revision(store: Store) -> None:
    created = store.put(PODS, pod("a"), expected=0)
    other = store.put(NODES, make_node("n").build(), expected=0)
    changed = store.put(PODS, pod("a", tier="web"))
    gone = store.remove(PODS, "default", "a")
    assert [r.revision for r in (created, other, changed, gone)] == [1, 2, 3, 4]
    assert store.revision == 4


def test_the_object_says_its_revision(store: Store) -> None:
    record = store.put(PODS, pod("a"), expected=0)
    assert record.decode()["metadata"]["resourceVersion"] == "1"
    assert store.put(PODS, pod("a")).decode()["metadata"]["resourceVersion"] == "2"


def test_what_is_stored_is_found(store: Store) -> None:
    record = store.put(PODS, pod("a"), expected=0)
    assert store.get(PODS, "default", "a") is record
    assert store.get(PODS, "other", "a") is None
    assert store.get(NODES, "default", "a") is None
    assert store.count(PODS) == 1
    assert store.resources() == (PODS,)


def test_a_second_object_of_the_same_name_is_refused(store: Store) -> None:
    store.put(PODS, pod("a"), expected=0)
    with pytest.raises(AlreadyExistsError, match='pods "a" already exists'):
        store.put(PODS, pod("a"), expected=0)
    assert store.revision == 1


def update(store: Store, expected: int | None = None) -> Record:
    return store.put(PODS, pod("a"), expected=expected)


def remove(store: Store, expected: int | None = None) -> Record:
    return store.remove(PODS, "default", "a", expected=expected)


CHANGES = pytest.mark.parametrize("change", [update, remove])
ChangeCall = Callable[..., Record]


@CHANGES
def test_what_is_not_there_cannot_be_changed(store: Store, change: ChangeCall) -> None:
    with pytest.raises(NotFoundError, match='pods "a" not found'):
        change(store, expected=1)
    assert store.revision == 0


@CHANGES
def test_a_stale_expectation_is_a_conflict(store: Store, change: ChangeCall) -> None:
    store.put(PODS, pod("a"), expected=0)
    current = store.put(PODS, pod("a", tier="web"))
    with pytest.raises(ConflictError, match="the object has been modified"):
        change(store, expected=1)
    assert store.get(PODS, "default", "a") is current


def test_the_current_revision_satisfies_the_expectation(store: Store) -> None:
    store.put(PODS, pod("a"), expected=0)
    store.put(PODS, pod("a"), expected=1)
    assert store.remove(PODS, "default", "a", expected=2).revision == 3


def test_a_removed_record_is_the_last_state_at_a_new_revision(store: Store) -> None:
    store.put(PODS, pod("a", tier="web"), expected=0)
    gone = store.remove(PODS, "default", "a")
    decoded = gone.decode()
    assert decoded["metadata"]["resourceVersion"] == "2"
    assert decoded["metadata"]["labels"] == {"tier": "web"}
    assert store.list(PODS) == []
    assert store.resources() == ()


@pytest.mark.parametrize("namespace", ["a", "a-b", "ab", "b", "", "c"])
def test_a_list_of_a_namespace_has_its_objects_and_no_others(store: Store, namespace: str) -> None:
    places = [("ab", "x"), ("a", "z"), ("a-b", "y"), ("a", "b"), ("b", "a")]
    for place, name in places:
        store.put(PODS, {"metadata": {"namespace": place, "name": name}}, expected=0)
    expected = sorted(it for it in places if not namespace or it[0] == namespace)
    assert [record.key for record in store.list(PODS, namespace)] == expected


def test_lists_are_ordered_by_namespace_and_name(store: Store) -> None:
    for namespace, name in (("b", "a"), ("a", "z"), ("a", "b"), ("b", "B")):
        store.put(PODS, pod(name, namespace), expected=0)
    assert names(store.list(PODS)) == ["a/b", "a/z", "b/B", "b/a"]
    assert names(store.list(PODS, "a")) == ["a/b", "a/z"]
    store.remove(PODS, "a", "z")
    store.put(PODS, pod("c", "a"), expected=0)
    assert names(store.list(PODS, "a")) == ["a/b", "a/c"]


def test_who_joins_late_is_told_in_order_of_creation(store: Store) -> None:
    for name in "bac":
        store.put(PODS, pod(name), expected=0)
    store.put(PODS, pod("b", tier="web"))
    store.remove(PODS, "default", "a")
    store.put(PODS, pod("a"), expected=0)
    assert names(store.in_order_of_creation(PODS)) == ["default/b", "default/c", "default/a"]


def test_a_snapshot_names_its_revision(store: Store) -> None:
    store.put(PODS, pod("a"), expected=0)
    store.put(NODES, make_node("n").build(), expected=0)
    found = store.consistent_list(PODS)
    assert found is not None
    records, revision = found
    assert (names(records), revision) == (["default/a"], 2)


def test_hot_fields_are_read_from_the_object(store: Store) -> None:
    owner = {"uid": "u1", "controller": True, "kind": "ReplicaSet", "name": "r"}
    obj = make_pod("a").on("n1").label(app="web").build()
    obj = {
        **obj,
        "metadata": {**obj["metadata"], "uid": "u2", "ownerReferences": [{"uid": "u0"}, owner]},
        "status": {"phase": "Running"},
    }
    record = store.put(PODS, obj, expected=0)
    assert (record.node, record.phase, record.owner, record.uid) == ("n1", "Running", "u1", "u2")
    assert record.labels == {"app": "web"}


# -- decoded objects ---------------------------------------------------------------------------


def test_decoded_objects_are_shared(store: Store) -> None:
    record = store.put(PODS, pod("a"), expected=0)
    assert store.decoded(record) is store.decoded(record)
    assert record.decode() is not record.decode()


def test_the_store_changes_neither_what_it_is_given_nor_what_it_handed_out(store: Store) -> None:
    given = pod("a", tier="web")
    before = orjson.dumps(given)
    created = store.put(PODS, given, expected=0)
    handed_out = store.decoded(created)
    told = orjson.dumps(handed_out)
    store.put(PODS, {**handed_out, "spec": {"containers": []}})
    store.remove(PODS, "default", "a")
    assert orjson.dumps(given) == before
    assert orjson.dumps(handed_out) == told
    assert orjson.loads(created.data) == orjson.loads(told)


def test_an_old_record_is_decoded_to_its_own_state(store: Store) -> None:
    first = store.put(PODS, pod("a"), expected=0)
    for n in range(1500):
        store.put(PODS, pod("a", n=str(n)))
    assert store.decoded(first)["metadata"]["resourceVersion"] == "1"
    assert not store.decoded(first)["metadata"].get("labels")


def test_what_is_asked_for_again_stays_decoded(store: Store) -> None:
    hot = store.put(PODS, pod("hot"), expected=0)
    decoded = store.decoded(hot)
    for n in range(3000):
        store.put(PODS, pod(f"p{n}"), expected=0)
        if n % 500 == 0:
            assert store.decoded(hot) is decoded


# -- subscribers -------------------------------------------------------------------------------


def test_subscribers_are_told_in_the_order_they_subscribed(store: Store) -> None:
    told: list[str] = []
    store.subscribe(lambda _: told.append("first"))
    store.subscribe(lambda _: told.append("second"), [PODS])
    store.subscribe(lambda _: told.append("third"))
    store.put(PODS, pod("a"), expected=0)
    assert told == ["first", "second", "third"]


def test_a_subscriber_hears_only_of_its_resources(store: Store) -> None:
    heard: list[Change] = []
    store.subscribe(heard.append, [NODES])
    store.put(PODS, pod("a"), expected=0)
    store.put(NODES, make_node("n").build(), expected=0)
    assert [change.record.name for change in heard] == ["n"]


def test_a_change_tells_type_and_both_states(store: Store) -> None:
    heard: list[Change] = []
    store.subscribe(heard.append)
    store.put(PODS, pod("a"), expected=0)
    store.put(PODS, pod("a", tier="web"))
    store.remove(PODS, "default", "a")
    assert [change.type for change in heard] == list(ChangeType)
    added, modified, deleted = heard
    assert added.previous_object is None
    assert modified.object["metadata"]["labels"] == {"tier": "web"}
    assert modified.previous is added.record
    assert deleted.previous_object == modified.object
    assert deleted.revision == 3


def test_the_store_already_holds_what_a_subscriber_is_told(store: Store) -> None:
    seen: list[Record | None] = []
    store.subscribe(lambda change: seen.append(store.get(PODS, "default", change.record.name)))
    record = store.put(PODS, pod("a"), expected=0)
    assert seen == [record]


def test_a_cancelled_subscription_hears_nothing_more(store: Store) -> None:
    heard: list[Change] = []
    subscription = store.subscribe(heard.append)
    store.put(PODS, pod("a"), expected=0)
    subscription.cancel()
    subscription.cancel()
    store.put(PODS, pod("b"), expected=0)
    assert len(heard) == 1


def test_a_subscriber_that_writes_is_refused(store: Store) -> None:
    def write(change: Change) -> None:
        if change.record.resource == PODS:
            store.put(NODES, make_node("n").build(), expected=0)

    store.subscribe(write)
    with pytest.raises(ReentrantWriteError, match="while it was being told of <ADDED pods"):
        store.put(PODS, pod("a"), expected=0)
    assert store.count(NODES) == 0
    store.put(NODES, make_node("n").build(), expected=0)


class DeafError(Exception):
    pass


def test_a_subscriber_that_raises_does_not_keep_others_from_hearing(store: Store) -> None:
    heard: list[Change] = []

    def fail(_: Change) -> None:
        raise DeafError("first")

    def fail_too(_: Change) -> None:
        raise ValueError("second")

    store.subscribe(fail)
    store.subscribe(heard.append)
    store.subscribe(fail_too)
    with pytest.raises(DeafError, match="first") as raised:
        store.put(PODS, pod("a"), expected=0)
    assert raised.value.__notes__ == ["another subscriber failed with ValueError('second')"]
    assert [change.record.name for change in heard] == ["a"]
    assert store.history.since(0) == heard
    with pytest.raises(DeafError):
        store.put(PODS, pod("b"), expected=0)
    assert names(store.list(PODS)) == ["default/a", "default/b"]


# -- who may write -----------------------------------------------------------------------------


def in_thread(action: Callable[[], object]) -> list[BaseException]:
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            action()
        except ReentrantWriteError as error:
            raised.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    return raised


def test_any_thread_writes_until_one_owns_the_store(store: Store) -> None:
    assert in_thread(lambda: store.put(PODS, pod("a"), expected=0)) == []


@pytest.mark.parametrize("verb", ["create", "update", "remove"])
def test_only_the_owner_writes(store: Store, verb: str) -> None:
    store.put(PODS, pod("a"), expected=0)
    store.own()
    actions = {
        "create": lambda: store.put(PODS, pod("b"), expected=0),
        "update": lambda: store.put(PODS, pod("a")),
        "remove": lambda: store.remove(PODS, "default", "a"),
    }
    (error,) = in_thread(actions[verb])
    assert "does not own the store" in str(error)
    assert store.revision == 1
    actions[verb]()


# -- indexes -----------------------------------------------------------------------------------


def on_node(store: Store, node: str) -> list[str]:
    return names(store.indexes.records(PODS, "node", node))


def test_an_index_follows_its_records(store: Store) -> None:
    store.put(PODS, make_pod("early").on("n1").build(), expected=0)
    store.add_index(PODS, "node", lambda record: record.node)
    store.put(PODS, pod("a"), expected=0)
    assert on_node(store, "n1") == ["default/early"]
    store.put(PODS, make_pod("a").on("n1").build())
    assert on_node(store, "n1") == ["default/early", "default/a"]
    store.put(PODS, make_pod("early").on("n2").build())
    assert (on_node(store, "n1"), on_node(store, "n2")) == (["default/a"], ["default/early"])
    store.remove(PODS, "default", "a")
    assert on_node(store, "n1") == []


def test_an_index_holds_the_newest_records_in_order_of_creation(store: Store) -> None:
    store.add_index(PODS, "node", lambda record: record.node)
    store.put(PODS, make_pod("a").on("n1").build(), expected=0)
    other = store.put(PODS, make_pod("b").on("n1").build(), expected=0)
    newest = store.put(PODS, make_pod("a").on("n1").label(tier="web").build())
    assert store.indexes.records(PODS, "node", "n1") == [newest, other]


def test_adding_the_same_index_again_changes_nothing(store: Store) -> None:
    store.add_index(PODS, "node", lambda record: record.node)
    store.put(PODS, make_pod("a").on("n1").build(), expected=0)
    store.add_index(PODS, "node", lambda _: "everywhere")
    assert on_node(store, "n1") == ["default/a"]


# -- the past ----------------------------------------------------------------------------------


def test_what_left_the_window_is_expired() -> None:
    store = Store(window=3)
    for n in range(5):
        store.put(PODS, pod(f"p{n}"), expected=0)
    assert store.history.compacted == 2
    assert [change.revision for change in store.history.since(2)] == [3, 4, 5]
    assert names(store.list_at(PODS, 2)) == ["default/p0", "default/p1"]
    with pytest.raises(ExpiredError, match=r"too old resource version: 1 \(3\)"):
        store.list_at(PODS, 1)


def test_nothing_has_happened_since_now(store: Store) -> None:
    store.put(PODS, pod("a"), expected=0)
    assert store.history.since(1) == []
    assert store.history.since(7) == []
