"""A store on disk: what was acknowledged is there again, whatever cut the writing short."""

import errno
import logging
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource
from kubescene.errors import ConfigurationError, DamagedWorldError, ExpiredError, InternalError
from kubescene.store import Store
from kubescene.store.disk import StoredWorld, compacted, open_store, restored
from kubescene.store.disk import files as disk_files
from kubescene.store.disk import journal as disk_journal
from kubescene.store.disk.entries import EntryReader, EntryWriter
from kubescene.testing import make_node, make_pod

PODS, NODES = GroupResource("", "pods"), GroupResource("", "nodes")
MAPS = GroupResource("", "configmaps")


def seen(store: Store) -> list[tuple[Any, ...]]:
    """All that a record says, in order."""
    return [
        (*(getattr(it, name) for name in Record.__struct_fields__ if name != "payload"), it.data)
        for it in store.all_records()
    ]


def config_map(name: str, text: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path)
    yield store
    store.close()


def fill(store: Store) -> None:
    store.put(NODES, make_node("n").labels({"zone": "a"}).build())
    for name in "abcd":
        store.put(PODS, make_pod(name).cpu("1").label(app="web").build())
    store.put(PODS, make_pod("b").cpu("1").label(app="web").on("n").build())
    store.remove(PODS, "default", "c")
    store.put(PODS, make_pod("c").cpu("2").build())


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store)
    store.note("mark", b"here")
    before = seen(store)
    store.close()
    again = open_store(tmp_path)
    assert seen(again) == before
    assert [each.name for each in again.in_order_of_creation(PODS)] == ["a", "b", "d", "c"]
    assert (again.notes["mark"], again.lives) == (b"here", 1)
    again.close()


Operation = tuple[str, int, int]
operations = st.lists(
    st.tuples(
        st.sampled_from(["put", "bind", "remove", "note", "compact", "open"]),
        st.integers(0, 4),
        st.integers(0, 2),
    ),
    max_size=30,
)


@given(operations)
def test_any_script_leads_to_the_same_world(
    tmp_path_factory: pytest.TempPathFactory, script: list[Operation]
) -> None:
    folder = tmp_path_factory.mktemp("world")
    plain, kept = Store(), open_store(folder)
    try:
        for verb, which, how in script:
            if verb == "open":
                kept.close()
                kept = open_store(folder)
            elif verb == "compact":
                kept.compact()
            elif verb == "note":
                kept.note(f"note-{which}", b"%d" % how)
            else:
                for store in (plain, kept):
                    play(store, verb, f"pod-{which}", how)
        before = seen(kept)
        kept.close()
        again, _ = restored(folder)
        assert seen(again) == before
        assert again.notes == kept.notes
        # Revisions have gaps where the world was opened; everything else is as if it never was.
        assert [unversioned(it) for it in again.all_records()] == [
            unversioned(it) for it in plain.all_records()
        ]
    finally:
        kept.close()


def unversioned(record: Record) -> tuple[str, bytes]:
    return record.name, record.unversioned_data


def play(store: Store, verb: str, name: str, how: int) -> None:
    pod = make_pod(name).cpu(f"{how + 1}").label(app="web")
    if verb == "remove":
        if store.get(PODS, "default", name) is not None:
            store.remove(PODS, "default", name)
    else:
        store.put(PODS, (pod.on(f"n{how}") if verb == "bind" else pod).build())


def test_a_watch_goes_on_where_it_was_and_never_from_what_was_lost(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    fill(store)
    since, newest = 3, store.revision
    told = [(it.type, it.record.name, it.revision) for it in store.history.since(since, [PODS])]
    store.close()
    again = open_store(tmp_path)
    found = again.history.since(since, [PODS])
    assert [(it.type, it.record.name, it.revision) for it in found] == told
    assert [None if it.previous is None else it.previous.name for it in found][-3:] == [
        "b",
        "c",
        None,
    ]
    assert again.history.since(newest, [PODS]) == []
    # Somebody may have seen writes after that which nobody acknowledged.
    for lost in (newest + 1, again.revision - 1):
        with pytest.raises(ExpiredError):
            again.history.since(lost, [PODS])
    assert again.history.since(again.revision, [PODS]) == []
    written = again.put(PODS, make_pod("e").build())
    again.close()
    third = open_store(tmp_path)
    assert [it.revision for it in third.history.since(newest, [PODS])] == [written.revision]
    with pytest.raises(ExpiredError):
        third.history.since(newest + 1, [PODS])
    with pytest.raises(ExpiredError):
        third.history.since(written.revision + 1, [PODS])
    third.close()


def test_nobody_begins_at_a_revision_of_one_that_was_killed_before_it_wrote(
    tmp_path: Path,
) -> None:
    with closing(open_store(tmp_path / "world")) as first:
        fill(first)
    with closing(open_store(tmp_path / "world")) as killed:
        shutil.copytree(tmp_path / "world", tmp_path / "left")
        with closing(open_store(tmp_path / "left")) as other:
            assert other.revision > killed.revision


def test_a_snapshot_replaces_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_journal, "LEAST_COMPACTED", 20_000)
    store = open_store(tmp_path)
    for number in range(50_000):
        store.put(MAPS, config_map("one", f"{number:0200d}"))
        if not number % 50:
            store.flush()
            if len(newest := disk_files.numbered(tmp_path, disk_files.SNAPSHOT)) == 1 and (
                newest[0].number > 3
            ):
                break
    before = seen(store)
    store.close()
    [snapshot] = disk_files.numbered(tmp_path, disk_files.SNAPSHOT)
    changes = disk_files.numbered(tmp_path, disk_files.CHANGES)
    assert [each.number for each in changes] == [snapshot.number]
    again = open_store(tmp_path)
    assert seen(again) == before
    again.close()


def test_equal_parts_are_written_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    spec = {"containers": [{"name": "app", "image": "x" * 500}]}
    for number in range(200):
        store.put(PODS, {**make_pod(f"pod-{number}").build(), "spec": spec})
    whole = sum(len(each.data) for each in store.all_records())
    store.close()
    assert compacted(tmp_path)[1] < whole / 3


# -- what was cut short --------------------------------------------------------------------------


def world_of(folder: Path) -> tuple[Path, list[int]]:
    """A world of six acknowledged writes: its file, and where each batch ends."""
    store = open_store(folder)
    store.flush()
    for number in range(6):
        store.put(MAPS, config_map(f"map-{number}"))
        store.flush()
    store.close()
    [file] = disk_files.numbered(folder, disk_files.CHANGES)
    return file.path, [it.end for it in disk_files.batches(file.path, may_be_torn=False)]


def names(store: Store) -> list[str]:
    return [record.name for record in store.list(MAPS)]


def test_a_write_that_was_cut_short_never_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, ends = world_of(tmp_path)
    whole = path.read_bytes()
    for end in range(ends[-2], ends[-1]):
        path.write_bytes(whole[:end])
        store, contents = restored(tmp_path)
        assert names(store) == [f"map-{number}" for number in range(5)]
        assert (contents.cut is None) == (end == ends[-2])
    path.write_bytes(whole[: ends[-1] - 3])
    with caplog.at_level(logging.WARNING):
        store = open_store(tmp_path)
    assert "ended in a write that was cut short" in caplog.text
    store.put(MAPS, config_map("later"))
    store.close()
    again, _ = restored(tmp_path)
    assert names(again) == ["later", *(f"map-{number}" for number in range(5))]


def test_room_that_was_reserved_is_no_write_that_was_cut_short(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = world_of(tmp_path)
    with path.open("ab") as file:
        file.write(bytes(5_000))
    with caplog.at_level(logging.WARNING):
        open_store(tmp_path).close()
    assert caplog.text == ""


def test_any_byte_that_changed_is_found(tmp_path: Path) -> None:
    path, ends = world_of(tmp_path)
    whole = path.read_bytes()
    for at in range(0, ends[-2], 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        with pytest.raises(DamagedWorldError, match=r"damaged at byte|no file of a world"):
            open_store(tmp_path)
    path.write_bytes(whole)
    open_store(tmp_path).close()


def test_what_comes_before_a_damaged_place_can_be_had(tmp_path: Path) -> None:
    path, ends = world_of(tmp_path)
    whole = path.read_bytes()
    at = ends[3] + 20
    path.write_bytes(whole[:at] + b"?" + whole[at + 1 :])
    store, _ = restored(tmp_path, until_damage=True)
    assert names(store) == ["map-0", "map-1", "map-2"]


def test_a_file_that_was_only_begun_is_nothing(tmp_path: Path) -> None:
    path, _ = world_of(tmp_path)
    (tmp_path / "changes-00000009").write_bytes(disk_files.HEADING[:5])
    store = open_store(tmp_path)
    assert len(names(store)) == 6
    store.close()
    assert path.exists()


def test_a_snapshot_that_was_not_finished_is_not_taken(tmp_path: Path) -> None:
    world_of(tmp_path)
    (tmp_path / "snapshot-00000009.new").write_bytes(b"half of it")
    store = open_store(tmp_path)
    assert len(names(store)) == 6
    store.close()
    assert not (tmp_path / "snapshot-00000009.new").exists()


def test_a_snapshot_without_its_end_is_refused(tmp_path: Path) -> None:
    world_of(tmp_path)
    compacted(tmp_path)
    [snapshot] = disk_files.numbered(tmp_path, disk_files.SNAPSHOT)
    batches = [*disk_files.batches(snapshot.path, may_be_torn=False)]
    snapshot.path.write_bytes(snapshot.path.read_bytes()[: batches[-2].end])
    with pytest.raises(DamagedWorldError, match="ends before its end"):
        open_store(tmp_path)


def test_only_one_has_the_world(tmp_path: Path, store: Store) -> None:
    with pytest.raises(ConfigurationError, match=f"in use by process {os.getpid()}"):
        open_store(tmp_path)
    assert StoredWorld(tmp_path).revision == 0  # to look at it is allowed


# -- a disk that is full ---------------------------------------------------------------------------


FULL = """
import resource, sys
from pathlib import Path
from kubescene.errors import InternalError
from kubescene.store.disk import open_store, journal
journal.RESERVED = 4096
sys.path.insert(0, sys.argv[2])
from store.test_disk import MAPS, config_map, names
store = open_store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
told = []
for number in range(200):
    try:
        store.put(MAPS, config_map(f"map-{number:03d}", f"{number:03d}" * 400))
        store.flush()
    except InternalError as error:
        refused = error
        break
    told.append(f"map-{number:03d}")
assert names(store) == told, "what was refused has not happened"
assert "nothing was changed" in str(refused), refused
assert len(told) > 20, told
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.put(MAPS, config_map("map-999"))
store.flush()
store.close()
print(len(told))
"""


def test_a_full_disk_refuses_writes_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """A limit of the operating system stands for the disk: both end a write in the kernel."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    tests = Path(__file__).parent.parent
    ended = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path, tests], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    store, _ = restored(tmp_path)
    assert len(names(store)) == int(ended.stdout) + 1


def test_a_write_that_fails_on_the_way_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it arrives, then the disk says no: nobody is told that it is there, and it comes."""
    store = open_store(tmp_path)
    store.flush()
    real, failures = os.pwrite, [1, 1, 1]

    def failing(file: int, data: bytes, at: int) -> int:
        if failures:
            failures.pop()
            real(file, data[: len(data) // 2], at)
            raise OSError(errno.EIO, "Input/output error")
        return real(file, data, at)

    monkeypatch.setattr(disk_journal, "RETRIED_EVERY_S", 0.01)
    monkeypatch.setattr(os, "pwrite", failing)
    store.put(MAPS, config_map("one"))
    with pytest.raises(InternalError, match="Input/output error; whether this write outlives"):
        store.flush()
    while failures:
        pass
    wait_until_kept(store)
    store.put(MAPS, config_map("two"))
    store.close()
    again, contents = restored(tmp_path)
    assert names(again) == ["one", "two"]
    assert contents.cut is None or not contents.cut.is_more_than_room


def wait_until_kept(store: Store) -> None:
    while store.durable_revision < store.revision:
        try:
            store.flush()
        except InternalError:
            continue


def test_parts_are_told_by_the_same_rule_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of known parts begins anew when it is full."""
    from kubescene.store.disk import entries

    monkeypatch.setattr(entries, "MOST_KNOWN", 3)
    store, writer, reader = Store(), EntryWriter(), EntryReader()
    for number in range(40):
        record = store.put(MAPS, config_map(f"map-{number}", f"{number % 5}" * 100))
        assert reader.record(writer.record(record), None).data == record.data
