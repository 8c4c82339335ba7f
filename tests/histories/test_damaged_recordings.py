"""A recording that is damaged says where, before anything is played."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

import kubescene
from kubescene.clock import SECOND
from kubescene.errors import SnapshotError
from kubescene.histories.history import RecordedEvent, in_order
from kubescene.histories.lines import MAX_LINE
from kubescene.histories.recordings import RecordingWriter
from kubescene.histories.survey import survey
from kubescene.histories.table import history_at
from kubescene.scenario.build import ScenarioBuilder
from kubescene.types import JsonObject

T0 = 1_772_442_000 * SECOND


def node(name: str) -> JsonObject:
    room = {"cpu": "4", "pods": "10"}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, **spec: str) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"containers": [container], **spec},
    }


def recording(file: Path) -> list[bytes]:
    """A node, three pods and a pod that goes; its lines."""
    writer = RecordingWriter(file)
    writer.begin(T0, [node("n")])
    for number in range(3):
        writer.add(T0 + (number + 1) * SECOND, RecordedEvent.ADD, pod(f"p{number}"))
    writer.add(T0 + 5 * SECOND, RecordedEvent.DELETE, pod("p1"))
    writer.end(T0 + 9 * SECOND)
    data = file.read_bytes()
    text = gzip.decompress(data) if file.suffix == ".gz" else data
    return text.splitlines(keepends=True)


def rewritten(file: Path, lines: Sequence[bytes]) -> Path:
    file.write_bytes(b"".join(lines))
    return file


def complaint(file: Path) -> str:
    with pytest.raises(SnapshotError) as caught:
        survey(file)
    return str(caught.value)


def test_a_whole_one_is_read(tmp_path: Path) -> None:
    recording(tmp_path / "day.jsonl.gz")
    found = survey(tmp_path / "day.jsonl.gz")
    assert (found.objects, found.changes, found.length) == (1, 4, 9 * SECOND)
    assert found.kinds == {"Node": 1, "Pod": 4}


def test_one_that_was_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "day.jsonl.gz"
    recording(file)
    data = file.read_bytes()
    for size in range(1, len(data) - 1, 7):
        file.write_bytes(data[:size])
        assert complaint(file).startswith(str(file)), size


def test_one_that_was_cut_off_between_lines_is_refused(tmp_path: Path) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    for number in range(len(lines)):
        file = rewritten(tmp_path / f"cut-{number}.jsonl", lines[:number])
        told = complaint(file)
        assert told.startswith(str(file))
        assert number < 1 or "cut off" in told


def test_lines_that_are_missing_or_more_are_counted(tmp_path: Path) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    fewer = rewritten(tmp_path / "fewer.jsonl", [*lines[:3], *lines[4:]])
    assert "there are 3 changes, but there were 4" in complaint(fewer)
    more = rewritten(tmp_path / "more.jsonl", [*lines, lines[3]])
    assert complaint(more) == f"{more}:8: there is more after the last line"


def test_time_that_goes_back_is_told_with_both_places(tmp_path: Path) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    file = rewritten(tmp_path / "back.jsonl", [*lines[:2], lines[3], lines[2], *lines[4:]])
    told = complaint(file)
    assert told.startswith(f"{file}:4: time goes back from 2026-03-02T09:00:02")
    assert f"({file}:3)" in told


def test_changes_are_put_in_order_within_a_window(tmp_path: Path) -> None:
    recording(tmp_path / "day.jsonl")
    history = history_at(tmp_path / "day.jsonl")
    objects, changes = [*history.objects], [*history.changes]
    assert len(objects) == 1
    assert [*in_order(reversed(changes), 8)] == changes
    with pytest.raises(SnapshotError, match="time goes back"):
        list(in_order(reversed(changes), 1))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "a line must be an object"),
        (b'{"time": 3, "event": "Add"}', "there is no time here"),
        (b'{"time": "soon", "event": "Add"}', "soon"),
        (b'{"time": "2026-03-02T09:00:03Z", "event": "Gone"}', "event is 'Gone'"),
        (b'{"time": "2026-03-02T09:00:03Z", "event": "Add"}', "there must be an object"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_line_that_is_no_change_is_named(tmp_path: Path, line: bytes, told: str) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    file = rewritten(tmp_path / "odd.jsonl", [*lines[:3], line + b"\n", *lines[4:]])
    assert complaint(file).startswith(f"{file}:4: ")
    assert told in complaint(file)


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": None},
        {"apiVersion": 1},
        {"metadata": {}},
        {"metadata": {"name": "x" * 300}},
        {"metadata": {"name": "x", "labels": "a=b"}},
        {"metadata": {"name": "x", "ownerReferences": ["me"]}},
        {"spec": []},
    ],
)
def test_an_object_that_is_none_is_named(tmp_path: Path, odd: JsonObject) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    change = orjson.loads(lines[3])
    change["resource"] |= odd
    file = rewritten(tmp_path / "odd.jsonl", [*lines[:3], orjson.dumps(change) + b"\n", *lines[4:]])
    assert complaint(file).startswith(f"{file}:4: ")


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    file = tmp_path / "long.jsonl.gz"
    with gzip.open(file, "wb", 1) as packed:
        packed.write(b"".join(lines[:3]))
        for _ in range(40):
            packed.write(b" " * (MAX_LINE // 16))
    assert complaint(file) == f"{file}:4: the line is longer than {MAX_LINE} bytes"


def scenario(file: str) -> ScenarioBuilder:
    again = ScenarioBuilder("again").settings(snapshot=file)
    return again.step(1).replay(file).advance("20s").step(2).done()


def test_a_scenario_with_a_damaged_one_fails_before_anything_happens(tmp_path: Path) -> None:
    lines = recording(tmp_path / "whole.jsonl")
    file = rewritten(tmp_path / "cut.jsonl", lines[:-1])
    alone = ScenarioBuilder("alone").step(1).create(node("m")).replay(file.name).advance("20s")
    for each in (alone, scenario(file.name)):
        run = kubescene.run(each, folder=tmp_path)
        assert run.phase == "Failed"
        assert run.bad_input
        assert "cut off" in run.message
        assert run.cluster.list("nodes") == []


def test_a_hostile_name_is_refused_and_told_and_the_rest_is_played(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "day.jsonl")
    writer.begin(T0, [node("n")])
    for name in ("../../etc/passwd", "a/b", "\x1b[31mred", "Ünicode", "fine"):
        writer.add(T0 + SECOND, RecordedEvent.ADD, pod(name))
    writer.add(
        T0 + 2 * SECOND,
        RecordedEvent.ADD,
        {"apiVersion": "v9", "kind": "What", "metadata": {"name": "w"}},
    )
    writer.end(T0 + 9 * SECOND)
    run = kubescene.run(scenario("day.jsonl"), folder=tmp_path)
    assert run.phase == "Succeeded", run.message
    rows = run.tables["outcomes"].rows
    assert [each.state for each in rows] == ["Refused"] * 4 + ["Incomplete"]
    assert "day.jsonl:3" in rows[0].message
    assert "1 created" in rows[-1].message
    assert "left out: 1 x What (v9): nobody here knows the kind" in rows[-1].message
    assert [each["metadata"]["name"] for each in run.cluster.list("pods")] == ["fine"]


def test_a_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    recording(tmp_path / "day.jsonl")
    again = ScenarioBuilder("again").step(1).replay("../day.jsonl").advance("20s")
    run = kubescene.run(again, folder=tmp_path / "inside")
    assert run.bad_input
    assert "must be a path inside the folder of the scenario" in run.message
