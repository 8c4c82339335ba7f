"""``kubescene traffic run --store``, ``runs`` and ``repeat`` as a user types them."""

import json
import shlex
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from commands import kubescene
from kubescene.traffic import run
from kubescene.traffic.store import RunStore
from plugin_commands import program

ROOT = Path(__file__).parents[1]
STEP = ROOT / "examples" / "traffic" / "step.yaml"


def traffic(*arguments: str | Path) -> CompletedProcess[str]:
    return kubescene("traffic", *arguments)


def test_a_run_is_kept_listed_and_repeated(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    assert traffic("run", STEP, "--store", file, "--quiet").returncode == 0
    again = traffic("repeat", "1", "--store", file)
    assert again.returncode == 0, again.stderr
    assert "compared with run 1: the same, byte for byte" in again.stderr
    listed = json.loads(traffic("runs", "--store", file, "--json").stdout)
    assert [(each["id"], each["repeats"]) for each in listed] == [(2, 1), (1, None)]
    shown = traffic("runs", "--store", file, "--limit", "1").stdout.splitlines()
    assert shown[0].split()[:2] == ["ID", "NAME"]
    assert shown[1].split()[:2] == ["2", "step"]
    assert "SLO missed" in shown[1]
    assert "Succeeded" not in shown[1], "that the simulation ended is no success of the service"


def test_a_result_that_is_not_the_same_is_said(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs.db")
    id = store.begin(run(STEP).run)
    other = run(STEP)
    other.requests.completed[7] += 1
    store.end(id, other)
    store.close()
    again = traffic("repeat", "1", "--store", tmp_path / "runs.db", "--quiet")
    assert again.returncode == 1
    assert "it differs" in again.stderr


def test_what_stands_in_a_file_beside_the_run_is_kept_with_it(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("time,rps\n0,5\n30,2.5\n")
    (tmp_path / "arrivals.csv").write_text("10.5\n11.25\n11.250000001\n")
    for pattern, part in (
        ("piecewise", "{file: rates.csv, interpolation: linear}"),
        ("replay", "{file: arrivals.csv, origin: 10s}"),
    ):
        folder = tmp_path / pattern
        folder.mkdir()
        for name in ("rates.csv", "arrivals.csv"):
            (folder / name).write_text((tmp_path / name).read_text())
        (folder / "run.yaml").write_text(
            "apiVersion: kubescene.dev/v1alpha1\nkind: TrafficRun\nmetadata: {name: files}\n"
            f"spec:\n  traffic:\n    pattern: {pattern}\n    {pattern}: {part}\n"
        )
        file = tmp_path / f"{pattern}.db"
        assert traffic("run", folder / "run.yaml", "--store", file, "--quiet").returncode == 0
        for each in folder.iterdir():
            each.unlink()
        again = traffic("repeat", "1", "--store", file, "--quiet")
        assert again.returncode == 0, again.stderr


def test_bad_input_is_said(tmp_path: Path) -> None:
    missing = traffic("runs", "--store", tmp_path / "none.db")
    assert (missing.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "there is no such file" in missing.stderr
    file = tmp_path / "runs.db"
    RunStore(file).begin(run(STEP).run, ["mine:Scaler"])
    unknown = traffic("repeat", "7", "--store", file)
    assert (unknown.returncode, "there is no run 7" in unknown.stderr) == (2, True)
    foreign = traffic("repeat", "1", "--store", file)
    assert (foreign.returncode, "say --autoscaler mine:Scaler" in foreign.stderr) == (2, True)


def test_a_report_is_one_page_that_fetches_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    name = "metadata.name=<script>alert(1)</script>"
    done = traffic("run", STEP, "--out", out, "--report", "--quiet", "--set", name)
    assert done.returncode == 0, done.stderr
    page = (out / "report.html").read_text()
    assert "<script>alert" not in page
    assert "default-src &#x27;none&#x27;" in page
    assert page.count("<svg") == 16
    assert 'href="#decision-' in page
    written = traffic("report", out, "--out", tmp_path / "again.html")
    assert written.returncode == 0, written.stderr
    assert (tmp_path / "again.html").read_text() == page
    assert traffic("report", tmp_path).returncode == 2
    assert traffic("run", STEP, "--report").returncode == 2


def test_a_run_with_a_process_is_kept_and_repeated_by_whoever_names_it_again(
    tmp_path: Path,
) -> None:
    pytest.importorskip("grpc")
    file, command = tmp_path / "runs.db", program("counting")
    process = ("--autoscaler-process", command)
    alone = ("--set", "spec.autoscalers=[]")
    kept = traffic("run", STEP, "--store", file, "--quiet", *alone, *process)
    assert kept.returncode == 0, kept.stderr
    unnamed = traffic("repeat", "1", "--store", file)
    assert unnamed.returncode == 2
    assert f"say --autoscaler-process {shlex.quote(command)}" in unnamed.stderr
    again = traffic("repeat", "1", "--store", file, *process)
    assert again.returncode == 0, again.stderr
    assert "compared with run 1: the same, byte for byte" in again.stderr
