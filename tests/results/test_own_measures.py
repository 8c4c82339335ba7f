"""Measures of one's own, in results and in a matrix."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

import kubescene
from kubescene.cli.app import app
from kubescene.errors import ConfigurationError
from kubescene.experiments import matrix
from kubescene.results import RunSource, open_run
from kubescene.results.measures.own import load_measure
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

MODULE = '''
def surge(run):
    """Most pods that came in one step.

    More than one line is not shown.
    """
    return max((step.pods_created for step in run.tables()["steps"]), default=None)

surge.unit = "pods"

def broken(run):
    return run.nothing_like_it

unit = 7
'''


def scenario() -> ScenarioBuilder:
    builder = ScenarioBuilder("own").create(make_node("n").cpu("4"))
    return builder.step(2).create(make_pod("p-$(INDEX)").cpu("1"), count=3).done()


def surge(run: RunSource) -> int:
    """Most pods of a step."""
    return max(step.created_pods for step in run.ledger.steps)


def not_a_number(run: RunSource) -> float:
    del run
    return float("nan")


def nothing(run: RunSource) -> None:
    """No value."""
    del run


def attempts(run: RunSource) -> int:
    del run
    return 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "surges.py").write_text(MODULE)
    kubescene.run(scenario(), out=tmp_path / "out")
    scenario().save(tmp_path / "s.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def command(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_function_of_a_run_is_a_measure() -> None:
    run = open_run(kubescene.run(scenario()))
    assert run.measures(own=[surge])["surge"] == 3
    row = run.tables(own=[surge])["measures"].rows[-1]
    assert (row.measure, row.value, row.unit, row.meaning) == (
        "surge",
        3,
        "",
        "Most pods of a step.",
    )
    assert "nothing" not in run.measures(own=[nothing])


def test_what_is_no_number_is_refused() -> None:
    run = open_run(kubescene.run(scenario()))
    with pytest.raises(ConfigurationError, match="measure not_a_number gave nan: a measure is a"):
        run.measures(own=[not_a_number])
    with pytest.raises(ConfigurationError, match="there is a measure attempts already"):
        run.measures(own=[attempts])
    with pytest.raises(ConfigurationError, match="there is a measure surge already"):
        run.measures(own=[surge, surge])


def test_results_show_it(folder: Path) -> None:
    del folder
    told = command("results", "out", "--measure", "surges:surge", "--format", "json")
    assert orjson.loads(told.stdout)[-1] == {
        "measure": "surge",
        "value": 3,
        "unit": "pods",
        "meaning": "Most pods that came in one step.",
    }


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("surges:broken", "measure broken raised AttributeError"),
        ("surges:absent", "surges has no function absent"),
        ("surges:unit", "surges has no function unit"),
        ("nowhere:f", "cannot be imported: No module named 'nowhere'"),
        ("surges", "write it as module:function; installed are: none"),
    ],
)
def test_whose_fault_it_is_is_said(folder: Path, reference: str, told: str) -> None:
    del folder
    result = command("results", "out", "--measure", reference)
    assert isinstance(result.exception, ConfigurationError)
    assert told in str(result.exception)


def test_a_package_offers_one_by_name(folder: Path) -> None:
    metadata = folder / "surges-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: surges\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[kubescene.measures]\nbusy = surges:surge\n")
    assert load_measure("busy").__name__ == "surge"


def test_a_matrix_measures_it_in_every_run(folder: Path) -> None:
    command_line = ("matrix", "s.yaml", "--seeds", "2", "--jobs", "2", "--format", "csv")
    asked = ("--measure", "surges:surge", "--measure", "pods_bound", "--out", "sweep")
    told = command(*command_line, *asked)
    assert told.exit_code == 0, told.output
    header, row = told.stdout.splitlines()
    values = dict(zip(header.split(","), row.split(","), strict=True))
    assert (values["surge"], values["pods_bound"]) == ("3.0", "3.0")
    markers = sorted((folder / "sweep" / "runs").iterdir())
    assert command(*command_line, *asked[2:]).exit_code == 0
    assert len([*(folder / "sweep" / "runs").iterdir()]) == 2 * len(markers)  # other results


def test_a_matrix_takes_functions(folder: Path) -> None:
    del folder
    found = matrix(scenario(), seeds=2, jobs=1, measures=[surge, "pods_bound"])
    assert found.measures == ["surge", "pods_bound"]
    assert found.rows[0].measures["surge"].mean == 3
    with pytest.raises(ConfigurationError, match="there is a measure attempts already"):
        matrix(scenario(), jobs=1, measures=[attempts])
