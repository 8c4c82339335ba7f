"""Changes that are made only when somebody looks."""

from copy import deepcopy

from kubescene.api.records import Record
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.scheme import GroupResource
from kubescene.store import Store, Watch

THINGS = GroupResource("example.dev", "things")


class Counter:
    """Encodes a number that goes up with every change."""

    def __init__(self, store: Store) -> None:
        self.number = 0
        self.encoded = 0
        obj = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}}
        self.record: Record = store.put(THINGS, obj, expected=0)

    def payload(self, revision: int) -> bytes:
        self.encoded += 1
        return b'{"metadata":{"resourceVersion":"%d","name":"t"},"n":%d}' % (revision, self.number)

    def change(self, store: Store) -> bool:
        self.number += 1
        current = store.get(THINGS, "", "t")
        assert current is not None
        return store.defer(Rebuilt(current, self.payload, ""))


def number(store: Store) -> int:
    record = store.get(THINGS, "", "t")
    assert record is not None
    n: int = record.decode()["n"]
    return n


def test_nothing_is_made_until_somebody_reads() -> None:
    store = Store()
    counter = Counter(store)
    before = store.revision
    for number_ in range(1, 6):
        counter.number = number_
        assert store.defer(Rebuilt(counter.record, counter.payload, ""))
    assert (counter.encoded, store.revision) == (0, before)
    assert number(store) == 5
    assert (counter.encoded, store.revision) == (1, before + 1)
    assert store.history.since(before)[0].revision == before + 1


def test_a_list_and_a_late_watch_see_the_newest_state() -> None:
    store = Store()
    counter = Counter(store)
    counter.change(store)
    assert [record.decode()["n"] for record in store.list(THINGS)] == [1]
    counter.change(store)
    watch = Watch(store, [THINGS], since=store.revision)
    assert [change.record.decode()["n"] for change in watch.drain()] == [2]
    assert number(store) == 2
    assert watch.drain() == []


def test_who_follows_the_resource_is_told_of_every_change() -> None:
    store = Store()
    counter = Counter(store)
    subscription = store.subscribe(lambda change: None, [THINGS])
    assert not counter.change(store)
    subscription.cancel()
    assert counter.change(store)


def test_who_follows_everything_is_told_of_every_change_unless_patient() -> None:
    store = Store()
    counter = Counter(store)
    heard: list[int] = []
    following = store.subscribe(lambda change: heard.append(change.revision))
    assert not counter.change(store)
    following.cancel()
    patient = store.subscribe(lambda change: heard.append(change.revision), patient=[THINGS])
    assert counter.change(store)
    assert heard == []
    # A patient one still hears of what is not deferred.
    store.remove(THINGS, "", "t")
    assert heard == [store.revision]
    patient.cancel()


def test_who_begins_to_follow_everything_has_missed_nothing() -> None:
    store = Store()
    counter = Counter(store)
    counter.change(store)
    before = store.revision
    store.subscribe(lambda change: None)
    assert store.revision == before + 1
    assert number(store) == 1


def test_a_served_store_defers_nothing() -> None:
    store = Store()
    counter = Counter(store)
    store.own()
    assert not counter.change(store)


def test_a_record_that_is_not_the_newest_is_not_deferred() -> None:
    store = Store()
    counter = Counter(store)
    old = counter.record
    store.put(THINGS, old.decode())
    assert not store.defer(Rebuilt(old, counter.payload, ""))


def test_two_objects_do_not_take_each_others_place() -> None:
    store = Store()
    counter = Counter(store)
    other = {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "u"}}
    record = store.put(THINGS, other, expected=0)
    counter.change(store)
    assert store.defer(Rebuilt(record, lambda revision: b'{"n":0}', ""))
    assert number(store) == 1


def test_what_waits_may_have_another_phase_until_somebody_reads() -> None:
    store = Store()
    counter = Counter(store)
    deferred = Rebuilt(counter.record, counter.payload, "first")
    assert store.defer(deferred)
    assert deferred.waits
    deferred.phase = "second"
    found = store.get(THINGS, "", "t")
    assert found is not None
    assert found.phase == "second"
    assert not deferred.waits


def test_what_was_deferred_before_waits_no_more() -> None:
    store = Store()
    counter = Counter(store)
    first = Rebuilt(counter.record, counter.payload, "first")
    assert store.defer(first)
    second = Rebuilt(counter.record, counter.payload, "second")
    assert store.defer(second)
    assert (first.waits, second.waits) == (False, True)


def test_the_copy_of_a_store_has_a_deferral_of_its_own() -> None:
    store = Store()
    counter = Counter(store)
    deferred = Rebuilt(counter.record, counter.payload, "first")
    assert store.defer(deferred)
    twin, own = deepcopy((store, deferred))
    own.phase = "second"
    for each, phase in ((store, "first"), (twin, "second")):
        found = each.get(THINGS, "", "t")
        assert found is not None
        assert found.phase == phase
    assert (deferred.waits, own.waits) == (False, False)


def test_who_takes_the_store_over_finds_nothing_undone() -> None:
    store = Store()
    counter = Counter(store)
    counter.change(store)
    store.own()
    revision = store.revision
    assert (number(store), store.revision) == (1, revision)


def test_an_index_has_the_newest_state() -> None:
    store = Store()
    counter = Counter(store)
    store.add_index(THINGS, "name", by_name)
    counter.change(store)
    store.catch_up(THINGS)
    assert [record.decode()["n"] for record in store.indexes.records(THINGS, "name", "t")] == [1]


def by_name(record: Record) -> str:
    return record.name


def test_a_copy_catches_up_by_itself() -> None:
    store = Store()
    counter = Counter(store)
    counter.change(store)
    twin, other = deepcopy((store, counter))
    counter.number = 7
    assert (number(store), number(twin)) == (7, 1)
    assert (counter.encoded, other.encoded) == (1, 1)
