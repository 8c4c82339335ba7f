"""A trace becomes a scenario whose pods come, run and end as its rows say. The rows are ours."""

import gzip
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubescene
from commands import kubescene as command
from kubescene.api import quantity
from kubescene.api.text.yaml_text import read_yaml
from kubescene.durations import SECOND
from kubescene.errors import KubesceneError, ScenarioError, SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.conversion import reader_of, scenario_of
from kubescene.traces.openb import MODEL, WENT_BACK, OpenbReader
from kubescene.traces.trace import NEVER_RAN, TracedNodes, TracedPod, WorkloadTrace, offered_load

HERE = Path(__file__).parent
PODS, NODES = HERE / "pods.csv", HERE / "nodes.csv"
GIB = 1024**3


def read(pods: Path = PODS, nodes: Path | None = NODES) -> WorkloadTrace:
    return OpenbReader().read(
        SnapshotSource(pods), None if nodes is None else SnapshotSource(nodes)
    )


def refusal(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "pods.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SnapshotError) as caught:
        read(file)
    return str(caught.value).replace(str(file), "FILE")


def with_row(**changed: str) -> str:
    header, row, *_ = PODS.read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True)) | changed
    return f"{header}\n{','.join(cells.values())}\n"


def test_rows_are_read_and_what_is_left_out_is_counted_by_reason() -> None:
    trace = read()
    assert trace.left_out == {NEVER_RAN: 1, WENT_BACK: 1}
    assert [pod.group for pod in trace.pods] == [
        *("gpu-1", "gpu-1-of-300m", "gpu-1-of-300m", "gpu-2-or-red-or-green", "cpu", "gpu-8"),
    ]
    first, part, *_ = trace.pods
    assert first == TracedPod(
        at=0,
        run_time=600 * SECOND,
        cpu=4000,
        memory=8 * GIB,
        group="gpu-1",
        others=(("nvidia.com/gpu", 1), ("kubescene.dev/gpu-milli", 1000)),
    )
    assert part.others == (("kubescene.dev/gpu-milli", 300),)
    assert [(each.name, each.number) for each in trace.nodes] == [
        *(("cpu-1", 1), ("green-2", 4), ("blue-3", 1)),
    ]
    assert any("not by the device" in each for each in trace.remarks)


def test_a_pod_that_waited_there_comes_when_it_came_and_runs_as_long_as_it_ran() -> None:
    waited = read().pods[2]
    assert (waited.at, waited.run_time) == (60 * SECOND, 300 * SECOND)


def test_pods_come_run_and_end_on_nodes_that_they_may_be_on() -> None:
    run = kubescene.run(scenario_of(read(), "tiny"), thorough=True)
    assert run.ok, run.message
    pods = {pod["metadata"]["name"]: pod for pod in run.cluster.list("pods")}
    ended = {
        name: pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"][11:19]
        for name, pod in pods.items()
        if pod["status"]["phase"] == "Succeeded"
    }
    assert ended == {
        "gpu-1-0": "00:10:00",
        "gpu-1-of-300m-0": "00:06:00",
        "gpu-1-of-300m-1": "00:06:00",
        "gpu-2-or-red-or-green-0": "00:07:00",
        "cpu-0": "00:04:00",
    }
    assert pods["gpu-2-or-red-or-green-0"]["spec"]["nodeName"].startswith("green-2-")
    assert pods["gpu-8-0"]["status"]["phase"] == "Pending"


def test_offered_load_is_arithmetic() -> None:
    """Half of one of two CPUs for ten seconds, then nothing for ten, then all of one for ten."""
    pods = [
        TracedPod(at=0, run_time=10 * SECOND, cpu=500, memory=0, group="a"),
        TracedPod(at=20 * SECOND, run_time=10 * SECOND, cpu=1000, memory=0, group="a"),
        TracedPod(at=20 * SECOND, run_time=0, cpu=9000, memory=0, group="a"),
    ]
    trace = WorkloadTrace(pods, [TracedNodes("n", 2, {"cpu": 1000, "memory": GIB})])
    assert list(offered_load(trace)) == [
        "offered load of cpu: 25.0 % of the nodes in the mean of 30s, 50.0 % at the most",
        "1 pods of 1 sizes fit on none of these nodes: they wait",
    ]


def test_one_that_ends_as_another_comes_makes_room_for_it() -> None:
    pods = [
        TracedPod(at=second * SECOND, run_time=SECOND, cpu=1000, memory=0, group="a")
        for second in range(3)
    ]
    trace = WorkloadTrace(pods, [TracedNodes("n", 1, {"cpu": 1000})])
    assert list(offered_load(trace)) == [
        "offered load of cpu: 100.0 % of the nodes in the mean of 3s, 100.0 % at the most"
    ]


def test_convert_tells_the_load_before_anything_is_played(tmp_path: Path) -> None:
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(gzip.compress(PODS.read_bytes()))
    out = tmp_path / "scenario.yaml"
    done = command("convert", packed, "--nodes", NODES, "--name", "tiny", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[:5] == [
        "kubescene: 6 pods arrive at 6 nodes",
        f"kubescene: left out: 1 pods ({WENT_BACK})",
        f"kubescene: left out: 1 pods ({NEVER_RAN})",
        "kubescene: offered load of cpu: 12.5 % of the nodes in the mean of 10m0s, 20.8 % at the "
        "most",
        "kubescene: offered load of memory: 6.2 % of the nodes in the mean of 10m0s, 10.4 % at the "
        "most",
    ]
    assert "1 pods of 1 sizes fit on none of these nodes: they wait" in done.stderr
    assert command("validate", out).returncode == 0
    assert kubescene.run(out).ok


def test_nodes_may_be_of_any_size_and_are_needed(tmp_path: Path) -> None:
    sized = "2x16cpu,64Gi,nvidia.com/gpu=8,kubescene.dev/gpu-milli=8000"
    done = command("convert", PODS, "--nodes", sized, "--out", tmp_path / "s.yaml")
    assert done.returncode == 0, done.stderr
    assert "cpu: 37.6 % of the nodes" in done.stderr
    without = command("convert", PODS)
    assert without.returncode != 0
    assert "a trace (openb) needs nodes: --nodes with its file of them" in without.stderr
    both = command("convert", PODS, NODES)
    assert "is converted alone; its nodes are given by --nodes" in both.stderr


def test_what_is_no_trace_is_not_taken_for_one(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("at,cpu\n0,1\n")
    assert reader_of(SnapshotSource(file)) is None
    found = reader_of(SnapshotSource(PODS))
    assert found is not None
    assert found.name == "openb"


def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, with_row(cpu_milli="many")) == (
        "FILE:2: cpu_milli is 'many', not a whole number"
    )
    assert refusal(tmp_path, with_row(creation_time="-5")) == (
        "FILE:2: creation_time is '-5', not a whole number"
    )
    assert refusal(tmp_path, with_row(gpu_milli="1001")) == (
        "FILE:2: gpu_milli is 1001, more than a whole GPU"
    )
    assert refusal(tmp_path, with_row(gpu_spec="RED|$(INDEX)")) == (
        "FILE:2: gpu_spec '$(INDEX)' is no name of a GPU such as V100M16"
    )
    assert refusal(tmp_path, f"{with_row()}short,1\n") == "FILE:3: 2 values for 11 columns"
    assert refusal(tmp_path, with_row(scheduled_time="")) == (
        "FILE: there is no pod in it that got a place"
    )
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
    assert refusal(tmp_path, f"{header},gpu_spec\na,1,1,0,0,\n") == (
        "FILE: it needs one column creation_time (a list without times is no trace)"
    )
    assert refusal(tmp_path, b"name\xff") == "FILE: it is no UTF-8 at byte 4"
    assert refusal(tmp_path, b"") == "FILE: it is empty"


def test_a_reader_that_calls_unlike_pods_alike_is_told() -> None:
    pods = [
        TracedPod(at=0, run_time=1, cpu=1, memory=1, group="a"),
        TracedPod(at=0, run_time=1, cpu=1, memory=1, group="a", others=(("x.io/y", 1),)),
    ]
    with pytest.raises(ScenarioError, match="unlike pods to the group a"):
        scenario_of(WorkloadTrace(pods), "s")


@given(st.integers(0, 900), st.binary(max_size=40))
def test_a_damaged_file_is_refused_or_read_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, at: int, put: bytes
) -> None:
    text = PODS.read_bytes()
    file = tmp_path_factory.mktemp("damaged") / "pods.csv"
    file.write_bytes(text[:at] + put + text[at + len(put) :])
    with suppress(SnapshotError):
        trace = read(file)
        assert len(trace.pods) + trace.left_out.total() <= 10


def test_a_package_brings_readers_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mytrace.py").write_text(
        "class Mine:\n"
        "    name, about = 'mine', 'a list of mine'\n"
        "    def detects(self, source): return source.head.startswith(b'mine')\n"
        "    def read(self, source, nodes): raise NotImplementedError\n"
        "class NoReader: pass\n"
    )
    package = tmp_path / "mytrace-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: mytrace\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[kubescene.traces]\nmine = mytrace:Mine\n")
    file = tmp_path / "a.txt"
    file.write_text("mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = reader_of(SnapshotSource(file))
    assert found is not None
    assert found.name == "mine"
    (package / "entry_points.txt").write_text("[kubescene.traces]\nno = mytrace:NoReader\n")
    monkeypatch.setattr("kubescene.installed._changed", lambda place: -1)
    with pytest.raises(KubesceneError, match=r"mytrace:NoReader of kubescene\.traces is no reader"):
        reader_of(SnapshotSource(file))


def test_a_scenario_says_what_its_trace_said() -> None:
    """Each amount and each label once more, out of the table and not by a run."""
    trace = read()
    operations = scenario_of(trace, "tiny")["spec"]["operations"]
    made = {each["id"]: each["createOperation"] for each in operations if "arrivals" in str(each)}
    pod = made["gpu-2-or-red-or-green"]["object"]
    rules = pod["spec"]["affinity"]["nodeAffinity"]
    term = {"key": MODEL, "operator": "In", "values": ["RED", "GREEN"]}
    assert rules == {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [term]}]
        }
    }
    gpus = {"nvidia.com/gpu": "2", "kubescene.dev/gpu-milli": "2000"}
    (container,) = pod["spec"]["containers"]
    assert container["resources"] == {"requests": gpus, "limits": gpus}
    assert pod["metadata"]["labels"] == {"app": "gpu-2-or-red-or-green"}
    assert "affinity" not in made["cpu"]["object"]["spec"]
    assert "resources" not in made["cpu"]["object"]["spec"]["containers"][0]
    (came,) = made["gpu-2-or-red-or-green"]["arrivals"]["listed"]
    assert (came.pop("at"), came.pop("runTime")) == ("2m0s", "5m0s")
    assert amounts(came) == amounts({"cpu": "8", "memory": "16Gi"})
    nodes = [each["createOperation"] for each in operations if each["step"] == 1]
    one = {"nvidia.com/gpu": "1", "kubescene.dev/gpu-milli": "1000"}
    offered = {"pods": "110", "cpu": "16", "memory": "64Gi"}
    assert [(each["count"], offers_of(each)) for each in nodes] == [
        (1, amounts(offered)),
        (4, amounts(offered | gpus)),
        (1, amounts(offered | one)),
    ]
    labels = [each["object"]["metadata"]["labels"].get(MODEL) for each in nodes]
    assert labels == [None, "GREEN", "BLUE"]
    assert [each["advanceOperation"] for each in operations if "advanceOperation" in each] == [
        {"duration": "10m0s"}
    ]


def offers_of(creation: Any) -> dict[str, Any]:
    status = creation["object"]["status"]
    assert status["capacity"] == status["allocatable"]
    return amounts(status["allocatable"])


def amounts(written: dict[str, str]) -> dict[str, Any]:
    return {resource: quantity.parse(each) for resource, each in written.items()}


def test_sizes_of_nodes_are_what_they_offer(tmp_path: Path) -> None:
    sizes = ["2x16cpu,64Gi,nvidia.com/gpu=8", "1x500mcpu,1536Mi"]
    asked = [part for size in sizes for part in ("--nodes", size)]
    done = command("convert", PODS, *asked, "--out", tmp_path / "s.yaml")
    assert done.returncode == 0, done.stderr
    assert "kubescene: 6 pods arrive at 3 nodes" in done.stderr
    spec = read_yaml((tmp_path / "s.yaml").read_bytes())[0].value["spec"]
    nodes = [each["createOperation"] for each in spec["operations"] if each["step"] == 1]
    assert [(each["count"], offers_of(each)) for each in nodes] == [
        (2, amounts({"pods": "110", "cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8"})),
        (1, amounts({"pods": "110", "cpu": "500m", "memory": "1536Mi"})),
    ]


@pytest.mark.parametrize(("number", "part"), [("0", "1000"), ("2", "0"), ("0", "0")])
def test_no_gpus_or_no_part_of_one_is_a_pod_without(number: str, part: str, tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    file.write_text(with_row(num_gpu=number, gpu_milli=part), encoding="utf-8")
    (pod,) = read(file).pods
    assert (pod.group, pod.others) == ("cpu", ())
