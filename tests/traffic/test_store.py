"""Runs that are kept: what comes back, and files that are not what they should be."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubescene.errors import NotFoundError, RunStoreError, TrafficError
from kubescene.traffic import Phase, TrafficRun, TrafficSpec, run
from kubescene.traffic import store as store_module
from kubescene.traffic.runs import as_run
from kubescene.traffic.store import GONE, RunStore

RUN = as_run(TrafficSpec(seed=3))


def kept(store: RunStore, asked: TrafficRun = RUN) -> int:
    id = store.begin(asked)
    store.end(id, run(asked))
    return id


def test_a_kept_run_comes_back_byte_for_byte(tmp_path: Path) -> None:
    id = kept(RunStore(tmp_path / "runs.db"))
    store = RunStore(tmp_path / "runs.db")
    before, result = store.result(id), run(RUN)
    assert store.configuration(id) == RUN
    assert before.header() == result.header()
    assert before.requests.rows().tobytes() == result.requests.rows().tobytes()
    assert before.story() == result.story()
    assert store.get(id).summary is not None


def test_a_run_is_running_until_it_ends_or_fails(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    id = store.begin(RUN, ["mine:Scaler"], repeats=9)
    found = store.get(id)
    assert (found.phase, found.autoscalers, found.repeats) == ("Running", ("mine:Scaler",), 9)
    with pytest.raises(TrafficError, match="has no result: Running"):
        store.result(id)
    store.fail(id, "it broke")
    assert (store.get(id).phase, store.get(id).message) == ("Failed", "it broke")


def test_a_stopped_run_is_kept_with_what_was_simulated(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    seen: list[int] = []
    stopped = run(RUN, watch=lambda at: seen.append(at.now), cancelled=lambda: len(seen) > 8)
    id = store.begin(RUN)
    store.end(id, stopped)
    assert store.get(id).phase == Phase.CANCELLED
    assert 0 < store.result(id).requests.count < 1700


def test_a_run_whose_process_is_gone_is_shown_as_failed(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    script = (
        "import sys\n"
        "from kubescene.traffic import TrafficRun\n"
        "from kubescene.traffic.store import RunStore\n"
        "RunStore(sys.argv[1]).begin(TrafficRun())\n"
    )
    subprocess.run([sys.executable, "-c", script, str(file)], check=True)
    found = RunStore(file).get(1)
    assert (found.phase, found.message) == ("Failed", GONE)


def test_many_threads_and_processes_write_into_one_file(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    shared, other = RunStore(file), RunStore(file)
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(kept, [shared, other] * 4))
    assert sorted(ids) == list(range(1, 9))
    assert {each.phase for each in shared.runs()} == {"Succeeded"}


def test_pages_begin_with_the_newest(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    for _ in range(5):
        store.begin(RUN)
    assert [each.id for each in store.runs(2)] == [5, 4]
    assert [each.id for each in store.runs(2, before=4)] == [3, 2]
    assert [each.id for each in store.runs(2, before=1)] == []


def test_an_unknown_id_is_said(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    for asked in (store.get, store.configuration, store.result):
        with pytest.raises(NotFoundError, match="there is no run 4 in"):
            asked(4)


def test_memory_forgets_the_oldest_and_keeps_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_IN_MEMORY", 1)
    store = RunStore()
    kept(store)
    last = kept(store)
    assert [each.id for each in store.runs()] == [last]


def test_memory_forgets_runs_that_failed_or_were_stopped_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_module, "MOST_IN_MEMORY", 1)
    store = RunStore()
    for number in range(4):
        end = store.fail if number % 2 else store.stop
        end(store.begin(RUN), "why")
    assert [each.id for each in store.runs()] == [4]


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE songs (title TEXT)")


def newer(path: Path) -> None:
    RunStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")


def test_a_file_of_before_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    store = RunStore(path)
    kept(store)
    store.close()
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE runs DROP COLUMN finished")
        database.execute("PRAGMA user_version = 1")
    for _ in range(2):
        store = RunStore(path)
        assert store.get(1).finished == ""
        second = kept(store)
        assert store.get(second).finished >= store.get(second).created
        store.close()


def text(path: Path) -> None:
    path.write_text("This is not a database, and long enough to be none. " * 20)


def cut(path: Path) -> None:
    store = RunStore(path)
    kept(store)
    store.close()
    path.write_bytes(path.read_bytes()[:5000])


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (foreign, "a database of something else"),
        (newer, "written by a newer Kubescene .schema 99, this one knows 2."),
        (text, "cannot be used: file is not a database"),
        (cut, "cannot be used: database disk image is malformed"),
        (folder, "unable to open database file"),
    ],
)
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, make: object, told: str) -> None:
    assert callable(make)
    make(tmp_path / "runs.db")
    with pytest.raises(TrafficError, match=told) as caught:
        RunStore(tmp_path / "runs.db").result(1)
    assert str(tmp_path / "runs.db") in str(caught.value)


def test_a_full_disk_is_said_and_what_was_kept_stays(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    first, second = kept(store), store.begin(RUN)
    store._database.execute("PRAGMA max_page_count = 1")  # no page more than there are
    with pytest.raises(RunStoreError, match=r"runs.db: .*database or disk is full"):
        store.end(second, run(as_run(TrafficSpec(seed=4))))
    assert (store.get(first).phase, store.get(second).phase) == ("Succeeded", "Running")
    store._database.execute("PRAGMA max_page_count = 1000000")
    assert kept(store) == second + 1


def test_a_damaged_row_is_said(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    kept(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE runs SET story = x'00ff', run = x'7b'")
    with pytest.raises(RunStoreError, match="what is kept of run 1 is damaged: Input data was"):
        store.result(1)


@pytest.mark.parametrize("damage", ["run = '[]'", "run = '{}'", "requests = x'00'", "story = '{'"])
def test_the_run_that_is_damaged_is_named(tmp_path: Path, damage: str) -> None:
    store = RunStore(tmp_path / "runs.db")
    kept(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute(f"UPDATE runs SET {damage}")
    with pytest.raises(RunStoreError, match=r"runs.db: what is kept of run 1 is damaged: "):
        store.result(1)


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    for _ in range(3):
        kept(store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE runs SET header = x'00' WHERE id = 2")
    shown = [(each.id, each.phase, each.message) for each in store.runs()]
    damaged = (2, "Failed", "what is kept of it is damaged")
    assert shown == [(3, "Succeeded", ""), damaged, (1, "Succeeded", "")]
