"""The seam of a log on disk: told first, and answers wait until it has everything."""

import pytest

from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.records.drafts import Rebuilt
from kubescene.api.scheme import GroupResource
from kubescene.errors import ExpiredError
from kubescene.store import Store
from kubescene.store.journals import Acknowledge
from kubescene.testing import make_node, make_pod

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")


class DiskFullError(Exception):
    pass


class MemoryJournal:
    """Durable only once it was flushed; full after ``room`` changes."""

    def __init__(self, room: int = 100) -> None:
        self.told: list[str] = []
        self.durable = 0
        self._room = room
        self._newest = 0

    def admit(self, size: int) -> None:
        assert size > 0
        if self._newest >= self._room:
            raise DiskFullError("no space left")

    def append(self, change: Change) -> None:
        self._newest = change.revision
        self.told.append(f"journal {change.revision}")

    def note(self, name: str, text: bytes) -> None:
        self.told.append(f"note {name}")

    def when_durable(self, acknowledge: Acknowledge) -> None:
        self.flush()
        acknowledge(None)

    def flush(self) -> None:
        self.durable = self._newest

    def compact(self) -> None:
        self.flush()

    def close(self) -> None:
        self.flush()


def test_the_journal_is_told_before_subscribers() -> None:
    journal = MemoryJournal()
    store = Store(journal=journal)
    store.subscribe(lambda change: journal.told.append(f"subscriber {change.revision}"))
    store.put(PODS, make_pod("a").build(), expected=0)
    store.remove(PODS, "default", "a")
    assert journal.told == ["journal 1", "subscriber 1", "journal 2", "subscriber 2"]


def test_what_the_journal_refuses_has_not_happened() -> None:
    store = Store(journal=MemoryJournal(room=1))
    first = store.put(PODS, make_pod("a").build(), expected=0)
    heard: list[Change] = []
    store.subscribe(heard.append)
    with pytest.raises(DiskFullError):
        store.put(PODS, make_pod("a").label(tier="web").build())
    with pytest.raises(DiskFullError):
        store.put(PODS, make_pod("b").build(), expected=0)
    assert (store.revision, store.list(PODS), heard) == (1, [first], [])
    assert len(store.history.since(0)) == 1
    store._journal = None

    def build(revision: int) -> tuple[bytes, ...]:
        return (b'{"metadata":{"resourceVersion":"%d","name":"a"}}' % revision,)

    second = store.put(PODS, Rebuilt(first, build, ""))
    assert store.decoded(second)["metadata"] == {"resourceVersion": "2", "name": "a"}


def test_answers_can_wait_until_writes_are_durable() -> None:
    store = Store(journal=MemoryJournal())
    for name in ("a", "b"):
        store.put(PODS, make_pod(name).build(), expected=0)
    assert (store.revision, store.durable_revision) == (2, 0)
    store.flush()
    assert store.durable_revision == 2


def test_without_a_journal_everything_counts_as_durable() -> None:
    store = Store()
    store.put(PODS, make_pod("a").build(), expected=0)
    store.flush()
    assert store.durable_revision == 1


# -- restoring ---------------------------------------------------------------------------------


def saved() -> list[Record]:
    """Records in order of creation, with the gaps that updates leave."""
    store = Store()
    store.put(PODS, make_pod("b").build(), expected=0)
    store.put(NODES, make_node("n").build(), expected=0)
    store.put(PODS, make_pod("a").build(), expected=0)
    store.put(PODS, make_pod("b").on("n").build())
    return [*store.in_order_of_creation(PODS), *store.in_order_of_creation(NODES)]


def test_a_restored_store_goes_on_from_its_revision() -> None:
    store = Store()
    store.add_index(PODS, "node", lambda record: record.node)
    store.restore(saved(), 7)
    assert [record.revision for record in store.list(PODS)] == [3, 4]
    assert [r.name for r in store.in_order_of_creation(PODS)] == ["b", "a"]
    assert [r.name for r in store.indexes.records(PODS, "node", "n")] == ["b"]
    assert store.put(PODS, make_pod("c").build(), expected=0).revision == 8
    assert [record.name for record in store.list_at(PODS, 7)] == ["a", "b"]
    found = store.consistent_list(PODS)
    assert found is not None
    assert found[1] == 8


def test_nothing_before_the_restored_revision_is_known() -> None:
    store = Store()
    store.restore(saved(), 7)
    for resources in (None, [PODS], [GroupResource("", "configmaps")]):
        assert store.history.since(7, resources) == []
        with pytest.raises(ExpiredError, match=r"too old resource version: 6 \(8\)"):
            store.history.since(6, resources)


def test_subscribers_are_told_of_what_is_restored_and_the_journal_is_not() -> None:
    journal = MemoryJournal()
    store = Store(journal=journal)
    heard: list[tuple[str, str, int]] = []
    store.subscribe(lambda it: heard.append((it.type, it.record.name, store.count(PODS))), [PODS])
    store.restore(saved(), 7)
    assert heard == [("ADDED", "b", 2), ("ADDED", "a", 2)]
    assert journal.told == []


def test_only_an_empty_store_is_restored() -> None:
    store = Store()
    store.put(PODS, make_pod("x").build(), expected=0)
    with pytest.raises(ValueError, match="only an empty store can be restored"):
        store.restore(saved(), 7)
    with pytest.raises(ValueError, match="a record is newer than revision 3"):
        Store().restore(saved(), 3)
