"""The ledger that a run leaves behind is that of its timeline, or it is not used."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kubescene
from kubescene.results import open_run
from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PodEntry
from kubescene.results.ledger_file import PodColumns, columns_of, read_ledger, write_ledger
from kubescene.results.stored_sources import TimelineSource
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ["02-rolling-update", "07-node-fails", "09-preemption", "11-devices", "12-expectations"]
HUGE = "9Ei"
"""More bytes than 64 bits can count, for a few nodes and seconds."""


def changeful() -> ScenarioBuilder:
    """Nodes that go and come back, labels, pods of one name, waits, ends, much memory."""
    scenario = ScenarioBuilder("changeful").create(make_node("n").cpu("4").memory(HUGE))
    scenario.create(make_node("m").cpu("1").label(zone="a"))
    scenario.step(2).create(make_pod("a").cpu("1").label(app="x"), make_pod("b").cpu("8"))
    scenario.advance("1m").step(3).delete("v1", "Pod", "a").delete("v1", "Node", "m").advance("1m")
    scenario.step(4).create(make_pod("a").cpu("2"), make_node("m").cpu("2").memory(HUGE))
    return scenario.advance("1m").done()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kubescene.run(changeful(), out=tmp_path / "run")
    return tmp_path / "run"


def kept(folder: Path) -> Ledger | None:
    return read_ledger(folder / "ledger.jsonl", folder / "timeline.jsonl")


def from_lines(folder: Path) -> Ledger:
    return TimelineSource(folder / "timeline.jsonl").ledger


WHILE_IT_FOLLOWS = (
    "_devices",
    "_follower",
    "_moments",
    "_nodes_ready",
    "_operation",
    "_refused",
    "_several",
)
"""What a ledger holds to follow a run, and is of no use once that is over."""


def known(value: Any) -> Any:
    """Everything that a ledger or a part of it holds, as plain values."""
    if isinstance(value, dict):
        return [(key, known(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return [known(each) for each in value]
    if isinstance(value, msgspec.Struct):
        return known(msgspec.structs.asdict(value))
    names = getattr(type(value), "__slots__", None) or getattr(value, "__dict__", None)
    if names is None:
        return value
    kept = (name for name in names if name not in WHILE_IT_FOLLOWS)
    return [(name, known(getattr(value, name))) for name in kept]


def assert_same(folder: Path) -> None:
    ledger = kept(folder)
    assert ledger is not None
    assert known(ledger) == known(from_lines(folder))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_back_is_what_the_lines_tell(name: str, tmp_path: Path) -> None:
    kubescene.run(EXAMPLES / name / "scenario.yaml", out=tmp_path)
    assert_same(tmp_path)


def test_sums_beyond_64_bits_are_kept(folder: Path) -> None:
    assert_same(folder)
    ledger = kept(folder)
    assert ledger is not None
    assert ledger.allocatable_time["memory"] > 1 << 64


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(ScenarioBuilder("s").done(), id="nothing at all"),
        pytest.param(ScenarioBuilder("s").create(make_node("n")), id="no pods, paused"),
        pytest.param(ScenarioBuilder("s").create(make_pod("a")).done(), id="no nodes"),
    ],
)
def test_a_run_of_little_leaves_one_too(scenario: ScenarioBuilder, tmp_path: Path) -> None:
    kubescene.run(scenario, out=tmp_path)
    assert_same(tmp_path)


def test_the_bytes_are_those_of_a_ledger_read_from_lines(folder: Path, tmp_path: Path) -> None:
    write_ledger(tmp_path / "again", folder / "timeline.jsonl", from_lines(folder))
    assert (tmp_path / "again").read_bytes() == (folder / "ledger.jsonl").read_bytes()


def test_nothing_of_a_pod_is_forgotten() -> None:
    assert PodColumns.__struct_fields__ == PodEntry.__struct_fields__


def test_the_timeline_is_not_folded_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entries, "read", None)
    assert open_run(folder).measures()["pods_bound"] == 1


def test_an_edited_timeline_of_the_same_size_is_read_itself(folder: Path) -> None:
    timeline = folder / "timeline.jsonl"
    data = timeline.read_bytes()
    timeline.write_bytes(data.replace(b'"name":"b"', b'"name":"c"'))
    assert timeline.stat().st_size == len(data)
    assert kept(folder) is None
    assert [pod.name for pod in open_run(folder).ledger.pods] == ["a", "c", "a"]


def test_a_ledger_of_another_run_is_not_believed(folder: Path, tmp_path: Path) -> None:
    kubescene.run(changeful().settings(seed=9), out=tmp_path / "other")
    (tmp_path / "other" / "ledger.jsonl").replace(folder / "ledger.jsonl")
    assert kept(folder) is None
    assert open_run(folder).measures() == TimelineSource(folder / "timeline.jsonl").measures()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version":7', b'"version":6'),
        (b'"schema":"kubescene.dev/ledger"', b'"schema":"kubescene.dev/ladder"'),
        (b'"kubescene":"', b'"kubescene":"9'),
        (b'"attempts":[', b'"attempts":[7'),
        (b'"Bound"', b'"Found"'),
        (b'{"schema"', b'{"sch\xffma"'),
    ],
)
def test_what_another_wrote_or_time_has_harmed_is_not_used(
    folder: Path, old: bytes, new: bytes
) -> None:
    file = folder / "ledger.jsonl"
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new, 1))
    assert kept(folder) is None
    assert open_run(folder).measures()["pods_bound"] == 1


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.999])
def test_a_ledger_that_was_cut_is_not_used(folder: Path, part: float) -> None:
    file = folder / "ledger.jsonl"
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * part)])
    assert kept(folder) is None


def test_a_ledger_that_cannot_be_read_is_not_needed(folder: Path) -> None:
    (folder / "ledger.jsonl").unlink()
    assert kept(folder) is None
    (folder / "ledger.jsonl").mkdir()
    assert open_run(folder).measures()["pods_bound"] == 1


def test_a_run_that_fails_leaves_no_ledger_of_the_one_before(folder: Path) -> None:
    (folder / "ledger.jsonl").write_bytes(b"of an earlier run")
    failing = ScenarioBuilder("fails").delete("v1", "Pod", "nobody").done()
    assert not kubescene.run(failing, out=folder).ok
    assert_same(folder)


def test_columns_share_what_pods_share(folder: Path) -> None:
    columns = columns_of(from_lines(folder))
    assert len(columns.texts) == len(set(columns.texts))
    assert len(columns.asks) == len({str(each) for each in columns.asks})


def test_a_run_whose_sums_need_more_than_64_bits_has_its_files_and_frames(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("huge").create(make_node("n").memory("7Ei"))
    pods = make_pod("p-$(INDEX)").memory("7Ei").on("n")
    kubescene.run(scenario.create(pods, count=3).done(), out=tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_bytes())
    whole = summary["nodes"][0]["requested"]["memory"]
    assert whole == 3 * 7 * 2**60 > 1 << 63
    frame = open_run(tmp_path).tables()["nodes"].frame()
    assert frame["memory_requested"].to_list() == [float(whole)]
    assert frame["cpu_requested"].dtype.is_integer()
    assert f"{whole}" in open_run(tmp_path).tables()["nodes"].csv()
