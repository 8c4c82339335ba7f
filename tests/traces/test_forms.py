"""Traces of other forms become pods whose number, sizes and times are arithmetic. Rows are ours."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import kubescene
from commands import kubescene as command
from kubescene.durations import SECOND
from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces import azure, tables
from kubescene.traces.conversion import OWN, reader_of
from kubescene.traces.trace import GPU, NEVER_RAN, WorkloadTrace

GIB, DAY = 1024**3, 86400

SWF = """\
; Version: 2.2
; MaxNodes: 4
; MaxProcs: 16
1 0 0 120 4 -1 524288 4 300 1048576 1 1 1 -1 1 -1 -1 -1
2 15 105 60 16 -1 -1 10 60 -1 1 2 1 -1 1 -1 -1 -1
3 40 -1 -1 -1 -1 -1 8 600 -1 5 2 1 -1 2 -1 -1 -1
4 90.5 30 0 1 -1 2048 -1 60 -1 0 3 2 -1 2 -1 1 10
5 95 30 9 1 -1 -1 1 60 -1 2 3 2 -1 2 -1 -1 -1
6 96 30 9 -1 -1 -1 -1 60 -1 1 3 2 -1 2 -1 -1 -1
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,a,9,32,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:43:01,2020-06-09 19:43:01,3600,120
2,u2,a,0,4,1,CANCELLED,2020-06-09 18:50:00,2020-06-09 18:50:00,2020-06-09 18:55:00,300,0
3,u2,b,1,1,1,FAILED,2020-06-09 18:51:00,2020-06-09 18:51:00,2020-06-09 18:51:00,0,0
4,u2,b,1,1,1,CANCELLED,2020-06-09 18:52:00,None,None,0,0
"""
PHILLY = """[
{"status": "Pass", "vc": "v", "jobid": "1", "user": "u", "submitted_time": "2017-11-04 23:59:00",
 "attempts": [
  {"start_time": "2017-11-05 00:00:00", "end_time": "2017-11-05 03:00:00",
   "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": []}]},
  {"start_time": "2017-11-05 03:00:10", "end_time": "2017-11-05 03:00:40",
   "detail": [{"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
  {"start_time": "2017-11-05 03:01:00", "end_time": "None", "detail": []}]},
{"status": "Killed", "vc": "v", "jobid": "2", "user": "u",
 "submitted_time": "2017-11-05 02:00:00", "attempts": []}]
"""
VM_TYPES = [(8, 16, 0.0625, 0.03125), (8, 17, 0.5, 0.5), (9, 16, 0.25, 0.25)]
VMS = [
    (0, 8, -138.5, None),
    (1, 8, -0.25, 0.5),
    (2, 9, 0.25, 0.5),
    (3, 7, 0.0, 1.0),
    (4, 8, -3.0, -1.0),
    (5, 9, 2.0, 2.0),
]


def database(path: Path, *more: str) -> Path:
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
        made.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
        made.executemany("INSERT INTO vm VALUES (?, 0, ?, 0, ?, ?)", VMS)
        made.executemany("INSERT INTO vmType VALUES (0, ?, ?, ?, ?, 0, 0, 0)", VM_TYPES)
        for each in more:
            made.execute(each)
        made.commit()
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def read(path: Path) -> WorkloadTrace:
    reader = reader_of(SnapshotSource(path))
    assert reader is not None
    return reader.read(SnapshotSource(path), None)


def shown(trace: WorkloadTrace) -> list[tuple[float, float, int, int, dict[str, int]]]:
    """Seconds, seconds, thousandths of a CPU, bytes, and the rest."""
    return [
        (pod.at / SECOND, pod.run_time / SECOND, pod.cpu, pod.memory, dict(pod.others))
        for pod in trace.pods
    ]


def test_jobs_of_swf_are_split_over_nodes_of_the_header(tmp_path: Path) -> None:
    trace = read(written(tmp_path / "log.swf", SWF))
    assert shown(trace) == [
        (0, 120, 4000, 4 * GIB, {}),
        (15, 60, 4000, 0, {}),
        (15, 60, 4000, 0, {}),
        (15, 60, 2000, 0, {}),
        (90.5, 0, 1000, 2048 * 1024, {}),
    ]
    assert [(each.number, each.offers["cpu"]) for each in trace.nodes] == [(4, 4000)]
    assert sum(trace.left_out.values()) == 3
    assert trace.left_out[NEVER_RAN] == 1
    assert any("1 jobs came when another had ended" in each for each in trace.remarks)


def test_without_a_header_processors_are_pods(tmp_path: Path) -> None:
    text = "\n".join(line for line in SWF.splitlines() if line[0] != ";")
    trace = read(written(tmp_path / "log.swf", text))
    assert (len(trace.pods), trace.nodes) == (4 + 10 + 1, [])
    assert {pod.cpu for pod in trace.pods} == {1000}


def test_jobs_of_helios_share_what_they_ask_for(tmp_path: Path) -> None:
    trace = read(written(tmp_path / "cluster_log.csv", HELIOS))
    assert shown(trace) == [
        (0, 3600, 16000, 0, {GPU: 5}),
        (0, 3600, 16000, 0, {GPU: 4}),
        (539, 300, 4000, 0, {}),
        (599, 0, 1000, 0, {GPU: 1}),
    ]
    assert trace.left_out == {NEVER_RAN: 1}


def test_attempts_of_philly_are_pods_and_the_clock_was_put_back_that_night(tmp_path: Path) -> None:
    trace = read(written(tmp_path / "cluster_job_log", PHILLY))
    assert shown(trace) == [
        (0, 4 * 3600, 0, 0, {GPU: 2}),
        (0, 4 * 3600, 0, 0, {}),
        (60 + 4 * 3600 + 10, 30, 0, 0, {GPU: 2}),
    ]
    assert sum(trace.left_out.values()) == 2


def test_machines_of_azure_take_parts_of_one_that_most_types_fit_on(tmp_path: Path) -> None:
    trace = read(database(tmp_path / "packing.sqlite"))
    assert shown(trace) == [
        (0, 2 * DAY, 4000, 16 * GIB, {}),
        (0, DAY / 2, 4000, 16 * GIB, {}),
        (DAY / 4, DAY / 4, 16000, 128 * GIB, {}),
        (2 * DAY, 0, 16000, 128 * GIB, {}),
    ]
    assert trace.left_out == {azure.NO_TYPE: 1, azure.OVER: 1}
    assert "machine 16" in trace.remarks[0]


FILES: dict[str, Callable[[Path], Path]] = {
    "swf": lambda folder: written(folder / "log.swf", SWF),
    "helios": lambda folder: written(folder / "log.csv", HELIOS),
    "philly": lambda folder: written(folder / "jobs.json", PHILLY),
    "azure": lambda folder: database(folder / "packing.sqlite"),
}


@pytest.mark.parametrize("form", FILES)
def test_every_form_plays(tmp_path: Path, form: str) -> None:
    source = FILES[form](tmp_path)
    told = command(
        *("convert", source, "--nodes", "4x64cpu,512Gi,nvidia.com/gpu=8", "--out", "trace.yaml"),
        cwd=tmp_path,
    )
    assert told.returncode == 0, told.stderr
    trace = read(source)
    assert f"{len(trace.pods)} pods arrive at 4 nodes" in told.stderr
    run = kubescene.run(tmp_path / "trace.yaml")
    assert run.phase == "Succeeded", run.message
    phases = [pod["status"]["phase"] for pod in run.cluster.list("pods")]
    assert phases == ["Succeeded"] * len(trace.pods)


def test_a_log_with_a_header_needs_no_nodes(tmp_path: Path) -> None:
    told = command("convert", FILES["swf"](tmp_path), "--out", "trace.yaml", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "5 pods arrive at 4 nodes" in told.stderr
    told = command("convert", FILES["helios"](tmp_path), "--out", "other.yaml", cwd=tmp_path)
    assert (told.returncode, "needs nodes" in told.stderr) == (2, True)


def test_each_form_is_told_from_the_others(tmp_path: Path) -> None:
    for form, make in FILES.items():
        source = SnapshotSource(make(tmp_path))
        assert [each.name for each in OWN if each.detects(source)] == [form]


@pytest.mark.parametrize(
    ("form", "old", "new", "told"),
    [
        ("swf", "1 0 0 120", "1 0 0", "17 values, not 18"),
        ("swf", "1 0 0 120", "1 -1 0 120", "of no time when the job came"),
        ("swf", "15 105 60 16", "15 105 1e99 16", "out of all bounds"),
        ("swf", "15 105 60 16", "15 105 NaN 16", "out of all bounds"),
        ("swf", "15 105 60 16", "15 105 x 16", "a value is no number"),
        ("swf", "-1 10 60", "-1 2000000 60", "a job of 2000000 processors"),
        ("helios", "18:43:01,", "25:43:01,", "start_time is '2020-06-09 25:43:01', not a time"),
        ("helios", "a,9,32,2", "a,9,32,99999", "a job of 99999 nodes"),
        ("helios", "a,9,32", "a,-9,32", "gpu_num is '-9', not a whole number"),
        ("helios", "06-09 18:50:00,2020", "06-08 18:50:00,2020", "before the first job"),
        ("philly", '"attempts": []', '"attempts": {}', "job 1: it has no list of attempts"),
        ("philly", '"gpus": []', '"gpus": 3', "job 0: a machine of an attempt has no list of gpus"),
        ("philly", "2017-11-05 03:00:00", "soon", "is 'soon', not a time"),
        ("philly", "]}]", "", "it is no JSON"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, form: str, old: str, new: str, told: str) -> None:
    source = FILES[form](tmp_path)
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new, 1))
    reader = next(each for each in OWN if each.name == form)
    with pytest.raises(SnapshotError, match=source.name) as caught:
        reader.read(SnapshotSource(source), None)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DROP TABLE vmType", "it has no table vmType"),
        ("ALTER TABLE vm RENAME COLUMN endtime TO until", "table vm has no column endtime"),
        ("UPDATE vm SET starttime = 'soon'", "no number of days"),
        ("UPDATE vm SET endtime = 9e999", "no number of days"),
        ("UPDATE vmType SET core = -0.5", "vmType takes -0.5 of a machine"),
        ("DELETE FROM vm", "there is no machine in it that ran"),
        ("DELETE FROM vmType", "table vmType is empty"),
    ],
)
def test_a_bad_database_is_refused(tmp_path: Path, change: str, told: str) -> None:
    source = database(tmp_path / "packing.sqlite", change)
    with pytest.raises(SnapshotError) as caught:
        read(source)
    assert told in str(caught.value)


def test_a_hostile_database_does_not_run_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    view = f"CREATE VIEW vm AS {endless} SELECT i vmId, 8 vmTypeId, 0 starttime, 1 endtime FROM n"
    source = database(tmp_path / "packing.sqlite", "DROP TABLE vm", view)
    with pytest.raises(SnapshotError, match="it has no table vm"):
        read(source)
    source.write_bytes(source.read_bytes()[:700])
    with pytest.raises(SnapshotError, match="cannot be read as a packing trace"):
        read(source)
    monkeypatch.setattr(azure, "STEPS", 1)
    monkeypatch.setattr(azure, "MOST_CALLS", 20)
    with pytest.raises(SnapshotError, match="interrupted"):
        read(database(tmp_path / "other.sqlite"))


def test_too_many_pods_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_PODS", 3)
    for form in ("swf", "helios", "azure"):
        with pytest.raises(SnapshotError, match="more than 3 pods: take a part of it"):
            read(FILES[form](tmp_path))
    assert len(read(FILES["philly"](tmp_path)).pods) == 3
