"""Samples in files beside a scenario."""

import gzip
from pathlib import Path

import pytest
import yaml

import kubescene
from kubescene.cli.files import read_scenario
from kubescene.errors import ScenarioError
from kubescene.scenario import ScenarioBuilder, parse_spec
from kubescene.scenario.reading import object_files, samples
from kubescene.scenario.validation.objects import object_faults
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

TIMES = "pod,seconds,code\na,30,0\nb,90.5,1\n"


def scenario(folder: Path, text: str = TIMES, **samples: str) -> Path:
    named = {"file": "times.csv", "column": "seconds", "unit": "s", **samples}
    (folder / "times.csv").write_text(text)
    objects = (make_node("n").build(), make_pod("p").build())
    steps = [
        {"id": f"o{step}", "step": step, "createOperation": {"object": obj}}
        for step, obj in enumerate(objects, 1)
    ]
    document: JsonObject = {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "samples"},
        "spec": {
            "simulation": {"workloads": [{"runTime": {"empirical": named, "max": "1h"}}]},
            "operations": [*steps, {"id": "done", "step": 3, "doneOperation": {}}],
        },
    }
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_column_becomes_the_values(tmp_path: Path) -> None:
    file = scenario(tmp_path)
    given = read_scenario(file).scenario["spec"]["simulation"]["workloads"][0]["runTime"]
    assert given == {"empirical": {"values": ["30s", "90.5s"]}, "max": "1h"}
    assert kubescene.run(file).ok


def test_numbers_without_a_unit_are_numbers(tmp_path: Path) -> None:
    file = scenario(tmp_path, "code\n0\n3\n", column="code", unit="")
    given = read_scenario(file).scenario["spec"]["simulation"]["workloads"][0]["runTime"]
    assert given["empirical"]["values"] == [0, 3]


@pytest.mark.parametrize(
    ("text", "samples", "words"),
    [
        (TIMES, {"file": "other.csv"}, "there is no file 'other.csv' in"),
        (TIMES, {"file": "../times.csv"}, "must be a path inside the folder of the scenario"),
        (
            TIMES,
            {"column": "minutes"},
            "times.csv has no column minutes; it has pod, seconds, code",
        ),
        (TIMES, {"kolumn": "x"}, "a file has no kolumn; it has file, column, unit"),
        ("seconds\n", {}, "times.csv has no values below its first line"),
        ("pod,seconds\na,3\nb\n", {}, "times.csv:3: there is no value in this line"),
        ("seconds\n3\nabc\n", {}, "times.csv:3: 'abc' is not a number, which the unit s follows"),
        ("seconds\n3\n5s\n", {}, "times.csv:3: '5s' is not a number, which the unit s follows"),
        ("seconds\n3\n\n-4\n", {}, "times.csv:4: '-4' is not a number"),
        ("seconds\n3s\ninf\n", {"unit": ""}, "times.csv:3: 'inf' is not an amount such as"),
    ],
)
def test_a_fault_names_the_line_of_the_scenario(
    tmp_path: Path, text: str, samples: dict[str, str], words: str
) -> None:
    file = scenario(tmp_path, text, **samples)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(file)
    assert words in str(caught.value)
    lines = file.read_text().splitlines()
    number = 1 + next(place for place, line in enumerate(lines) if "file:" in line)
    assert f"scenario.yaml:{number}:" in str(caught.value)


def test_values_that_make_no_sense_are_faults_of_the_field(tmp_path: Path) -> None:
    run = kubescene.run(scenario(tmp_path, "seconds\n99999999999999999999\n"))
    assert not run.ok
    assert "runTime: '99999999999999999999s' is" in run.message


QUEUE = "at,value\n0,5\n2m,40\n600,5\n"


def measured(folder: Path, text: str = QUEUE, **points: str) -> Path:
    """A scenario whose HPA goes by a series in a file."""
    (folder / "queue.csv").write_text(text)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    wanted = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": target,
            "maxReplicas": 6,
            "metrics": [{"type": "External", "external": wanted}],
        },
    }
    series = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "MetricSeries",
        "metadata": {"name": "queue"},
        "spec": {
            "metric": "queue",
            "external": {},
            "points": {"file": "queue.csv", **points},
        },
    }
    built = ScenarioBuilder("s").create(make_node("n")).create(make_deployment("web"))
    document = built.create(series).create(hpa).build()
    advance = {"id": "t", "step": 1, "advanceOperation": {"duration": "5m"}}
    document["spec"]["operations"].append(advance)
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_series_in_a_file_is_what_an_autoscaler_goes_by(tmp_path: Path) -> None:
    file = measured(tmp_path)
    series = read_scenario(file).scenario["spec"]["operations"][2]["createOperation"]["object"]
    assert series["spec"]["points"] == [
        {"at": "0s", "value": "5"},
        {"at": "2m", "value": "40"},
        {"at": "600s", "value": "5"},
    ]
    run = kubescene.run(file)
    assert run.ok, run.message
    assert [row.replicas_to for row in run.tables["scaling"].rows][-1] == 4
    [warning] = run.summary.warnings
    assert "spec.points[2] of MetricSeries default/queue has no effect: it comes at 600s" in warning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("at,value\n0,5\n30\n", "queue.csv:3: there is no value in this line"),
        ("at,value\n0,5\n30,\n", "queue.csv:3: there is no value in this line"),
        ("at,value\n0,5\n,7\n", "queue.csv:3: there is no value in this line"),
        ("at,value\n9,5\n\n9s,7\n", "queue.csv:4: 9s does not come after 9s before it"),
        ("at,value\n0,nan\n", "queue.csv:2: 'nan' is not an amount"),
        ("at,value\n0,inf\n", "queue.csv:2: 'inf' is not an amount"),
        ("at,value\n0,-5\n", "queue.csv:2: '-5' is not an amount"),
        ("at,value\n-5,1\n", "queue.csv:2: '-5' is not an amount"),
        ("at,value\n0x,1\n", "queue.csv:2: "),
        ("time,value\n0,1\n", "queue.csv needs the columns at and value, and no others"),
        ("at,value,unit\n0,1,s\n", "queue.csv needs the columns at and value, and no others"),
        ("at,value\n", "queue.csv has no values below its first line"),
    ],
)
def test_gaps_in_the_file_of_a_series_are_named_with_their_line(
    tmp_path: Path, text: str, words: str
) -> None:
    file = measured(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(file)
    assert words in str(caught.value)
    lines = file.read_text().splitlines()
    number = 1 + next(place for place, line in enumerate(lines) if "file:" in line)
    assert f"scenario.yaml:{number}:" in str(caught.value)


def test_quantities_that_are_none_are_faults_of_the_points(tmp_path: Path) -> None:
    faults = object_faults(
        parse_spec(read_scenario(measured(tmp_path, "at,value\n0,5q\n")).scenario)
    )
    assert "spec.points[0].value: " in next(faults).message


def test_a_file_of_points_says_nothing_else(tmp_path: Path) -> None:
    run = kubescene.run(measured(tmp_path, unit="s"))
    assert not run.ok
    assert "spec.points" in run.message


# -- the requests of a Traffic ------------------------------------------------------------------


def requested(folder: Path, text: str, **arrivals: object) -> Path:
    traffic = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Traffic",
        "metadata": {"name": "load"},
        "spec": {"to": {"deployment": "web"}, "arrivals": arrivals},
    }
    built = ScenarioBuilder("s").create(make_node("n")).create(make_deployment("web"))
    document = built.create(traffic).build()
    advance = {"id": "t", "step": 1, "advanceOperation": {"duration": "3m"}}
    document["spec"]["operations"].append(advance)
    (folder / "load.csv").write_text(text)
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def arrivals_of(file: Path) -> JsonObject:
    operation = read_scenario(file).scenario["spec"]["operations"][2]["createOperation"]
    found: JsonObject = operation["object"]["spec"]["arrivals"]
    return found


def test_rates_in_a_file_are_those_of_a_traffic(tmp_path: Path) -> None:
    """From 10 s on two requests a second for a minute, then none: 120."""
    text = "time,rps\n1772442010,2\n1772442070,0\n"
    given = {"file": "load.csv", "origin": 1_772_442_000, "interpolation": "step"}
    file = requested(tmp_path, text, pattern="piecewise", piecewise=given)
    points = [{"at": "10s", "rps": 2.0}, {"at": "1m10s", "rps": 0.0}]
    assert arrivals_of(file) == {
        "pattern": "piecewise",
        "piecewise": {"points": points, "interpolation": "step"},
    }
    run = kubescene.run(file)
    assert run.ok, run.message
    traffic = run.cluster.get("traffics", "load")
    assert traffic["status"]["requests"] == 120


def test_recorded_requests_come_when_they_came(tmp_path: Path) -> None:
    text = "2026-03-02T09:00:30Z\n2026-03-02T09:00:00Z\n2026-03-02T09:00:00.5Z\n"
    file = requested(tmp_path, text, pattern="replay", replay={"file": "load.csv"})
    replay = arrivals_of(file)["replay"]
    assert replay == {"arrivals": ["0s", "0.5s", "30s"]}
    assert kubescene.run(file).cluster.get("traffics", "load")["status"]["requests"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,rps\n10,many\n", "load.csv:2: 'many' is not a number"),
        ("time,rps\n10,1\n10,2\n", "load.csv:3: its time must come after that of the row before"),
        ("time,rps\nsoon,2\n", "load.csv:2: time must be seconds from 0"),
        ("time,rps\n10,1,2\n", "load.csv:2: a row needs two columns, time and rps"),
        ("time,rps\n10,-1\n", "load.csv:2: '-1' is not a number from 0"),
        ("time,rps\n", "load.csv has no rows"),
        ("rps,time\n1,0\n", "load.csv:1: the column time has to be the first"),
        ("time,rps\n5,1\n", "load.csv:2: this is before origin"),
    ],
)
def test_what_is_wrong_with_a_file_of_requests_is_named(
    tmp_path: Path, text: str, words: str
) -> None:
    piecewise = {"file": "load.csv", "origin": "10s"}
    file = requested(tmp_path, text, pattern="piecewise", piecewise=piecewise)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(file)
    assert words in str(caught.value)
    assert "scenario.yaml:52:" in str(caught.value)


def test_a_packed_file_says_the_same(tmp_path: Path) -> None:
    text = "2026-03-02T09:00:30Z\n2026-03-02T09:00:00Z\n2026-03-02T09:00:00.5Z\n"
    plain = requested(tmp_path, text, pattern="replay", replay={"file": "load.csv"})
    found = arrivals_of(plain)
    (tmp_path / "load.csv.gz").write_bytes(gzip.compress(text.encode()))
    packed = requested(tmp_path, "", pattern="replay", replay={"file": "load.csv.gz"})
    assert arrivals_of(packed) == found


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"0\n" * 99)[:-9], "it ends in the middle of what was packed"),
        (b"0\n1\n", "it cannot be unpacked"),
        (gzip.compress(b"0\n\xff\n"), "is not text in UTF-8"),
        (gzip.compress(b"0\n" * 501), "it unpacks to more than 1000 bytes"),
    ],
    ids=["half", "plain", "bytes", "bomb"],
)
def test_a_packed_file_that_cannot_be_read_is_named(
    tmp_path: Path, data: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_files, "MAX_FILE_BYTES", 1000)
    (tmp_path / "load.csv.gz").write_bytes(data)
    file = requested(tmp_path, "", pattern="replay", replay={"file": "load.csv.gz"})
    with pytest.raises(ScenarioError, match=words) as caught:
        read_scenario(file)
    assert "load.csv.gz" in str(caught.value)


def test_a_file_of_too_many_rows_is_read_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "MAX_REQUESTS", 3)
    given = {"pattern": "replay", "replay": {"file": "load.csv"}}
    assert len(arrivals_of(requested(tmp_path, "1\n2\n3\n", **given))["replay"]["arrivals"]) == 3
    with pytest.raises(ScenarioError, match=r"load\.csv has more than 3 rows"):
        read_scenario(requested(tmp_path, "1\n2\n3\n4\nsoon\n", **given))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    given = {"pattern": "replay", "replay": {"file": "other.csv"}}
    with pytest.raises(ScenarioError, match=r"there is no file 'other\.csv'"):
        read_scenario(requested(tmp_path, "0\n", **given))
