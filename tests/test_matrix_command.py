"""``kubescene matrix``: the table, exit codes, Ctrl-C and going on."""

import csv
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import orjson
import polars as pl
import pytest
from typer.testing import CliRunner

from experiments.test_matrix import PACKING, failing, small
from kubescene.cli.app import app
from kubescene.errors import KubesceneError
from kubescene.scenario import ScenarioBuilder

FAILED, UNMET, INTERRUPTED = 1, 3, 130


def written(folder: Path, name: str, scenario: ScenarioBuilder) -> Path:
    file = folder / f"{name}.json"
    file.write_bytes(orjson.dumps(scenario.build()))
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path, "small", small())


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    file = tmp_path / "pack.json"
    file.write_bytes(orjson.dumps(PACKING))
    return file


def matrix(*arguments: object, code: int = 0) -> str:
    """What the command prints; its errors are raised."""
    asked = ["matrix", *map(str, arguments), "--jobs", "1"]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == code, done.stderr
    return done.stdout


def rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.read_text())))


def test_the_table_has_a_row_per_configuration(file: Path, pack: Path) -> None:
    told = matrix(file, "--scheduler-config", pack, "--seeds", 2, "--measure", "imbalance_cpu")
    header, row, gap, *notes = told.splitlines()
    assert header.split() == ["SCENARIO", "CONFIGURATION", "RUNS", "IMBALANCE_CPU"]
    assert row.split()[:3] == [str(file), str(pack), "2"]
    assert row.endswith(" ± 0")
    assert gap == ""
    assert notes[1] == "every seed gave the same: nothing that is shown here depends on chance"


def test_one_run_has_no_interval(file: Path) -> None:
    told = matrix(file, "--measure", "pods_bound")
    assert told.splitlines()[1].split() == [str(file), "1", "4"]
    assert "±" not in told


def test_csv_json_and_parquet_hold_the_same(file: Path, tmp_path: Path) -> None:
    asked = (file, "--seed", 4, "--seed", 9, "--measure", "pods_bound", "--out", tmp_path / "o")
    (row,) = csv.DictReader(io.StringIO(matrix(*asked, "--format", "csv")))
    (found,) = orjson.loads(matrix(*asked, "--format", "json"))
    matrix(*asked, "--format", "parquet")
    frame = pl.read_parquet(tmp_path / "o/matrix.parquet")
    assert (row["runs"], row["pods_bound"], row["pods_bound_high"]) == ("2", "4.0", "4.0")
    assert found["measures"]["pods_bound"]["mean"] == 4
    assert frame["pods_bound_high"].to_list() == [4.0]
    seeds = [each["seed"] for each in rows(tmp_path / "o/runs.csv")]
    assert seeds == ["4", "9"]


def test_a_failed_run_is_in_the_table_and_the_code_is_1(file: Path, tmp_path: Path) -> None:
    bad = written(tmp_path, "failing", failing())
    told = matrix(bad, file, "--seeds", 2, "--measure", "pods_bound", code=FAILED)
    _, first, second, *_ = told.splitlines()
    assert "0 of 2" in first
    assert "nobody" in first
    assert second.split()[1:] == ["2", "4", "±", "0", "-"]


def test_an_expectation_that_does_not_hold_is_code_3(tmp_path: Path) -> None:
    document = small().build()
    document["spec"]["expectations"] = [{"name": "many", "expression": "measures.pods_bound > 99"}]
    file = tmp_path / "unmet.json"
    file.write_bytes(orjson.dumps(document))
    assert "1 (1 unmet)" in matrix(file, "--measure", "pods_bound", code=UNMET)


def test_settings_make_rows(file: Path) -> None:
    told = matrix(file, "--set", "spec.operations.1.createOperation.count=1,5", "--format", "csv")
    assert [row["pods_bound"] for row in csv.DictReader(io.StringIO(told))] == ["1.0", "5.0"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{f}", "{f}"], "small.json is given twice"),
        (["{f}", "{d}/../{n}/small.json"], "is given twice"),
        (["{d}/nowhere.yaml"], "nowhere.yaml"),
        (["-"], "standard input cannot be one of them"),
        (["{f}", "--scheduler-config", "{d}/bad.yaml"], "bad.yaml: .*profiles"),
        (
            ["{f}", "--scheduler-config", "{p}", "--scheduler-config", "{p}"],
            "json is given twice",
        ),
        (["{f}", "--seeds", "0"], "at least 1, not 0"),
        (["{f}", "--seeds", "-2"], "at least 1, not -2"),
        (["{f}", "--seeds", "2", "--seed", "1"], "either --seeds N"),
        (["{f}", "--measure", "preemption"], "did you mean preemptions"),
        (["{f}", "--format", "parquet"], "name a directory by --out"),
        (["{f}", "--set", "count"], "path=value,value"),
        (["{f}", "--set", "spec.a=[", "--seeds", "2"], "--set 'spec.a=\\['"),
        (["{f}", "--set", "spec.a=1", "--set", "spec.a=2"], "given twice: name all its values"),
        (["{f}", "--out", ""], "--out is empty"),
        (["{f}", "--out", "{f}/x"], "cannot write .*choose another --out"),
    ],
)
def test_what_cannot_be_done_is_said(
    file: Path, pack: Path, tmp_path: Path, arguments: list[str], why: str
) -> None:
    (tmp_path / "bad.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {enabled: [{name: Nonsense}]}}}]\n"
    )
    known = {"{f}": str(file), "{d}": str(tmp_path), "{n}": tmp_path.name, "{p}": str(pack)}
    for short, long in known.items():
        arguments = [each.replace(short, long) for each in arguments]
    with pytest.raises(KubesceneError, match=why):
        matrix(*arguments)


# -- Ctrl-C ------------------------------------------------------------------------------------


def begun(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kubescene", "matrix", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("jobs", "ending"), [(1, signal.SIGINT), (2, signal.SIGINT), (2, signal.SIGKILL)]
)
def test_a_matrix_that_was_stopped_goes_on(
    tmp_path: Path, jobs: int, ending: signal.Signals
) -> None:
    file, out = written(tmp_path, "small", small(pods=12)), tmp_path / "out"
    asked = (file, "--seeds", 400, "--out", out, "--format", "csv", "--jobs", jobs)
    process = begun(*asked)
    while len(list(out.glob("runs/*.json"))) < 3:
        assert process.poll() is None
        Event().wait(0.02)
    if ending is signal.SIGINT:
        os.killpg(process.pid, ending)  # As a terminal does: to all of them.
    else:
        process.kill()  # The workers notice that nobody sends any more.
    _, told = process.communicate()
    kept = len(list(out.glob("runs/*.json")))
    assert 3 <= kept < 400
    if ending is signal.SIGINT:
        assert process.returncode == INTERRUPTED
        assert f"{out} keeps {kept} runs: the same command goes on from there" in told
        assert "Traceback" not in told
    following = begun(file, "--seeds", kept + 2, *asked[3:])
    shown, told = following.communicate()
    assert following.returncode == 0
    assert len(rows(out / "runs.csv")) == kept + 2
    assert "were finished earlier" in told
    assert shown == matrix(file, "--seeds", kept + 2, "--format", "csv")
