"""Measures of one's own in expectations: known where somebody brings them along, nowhere else."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import kubescene
from kubescene.cli.app import app
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.experiments import matrix
from kubescene.results import RunSource
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

MODULE = """
def surge(run):
    return max((step.pods_created for step in run.tables()["steps"]), default=None)
"""


def surge(run: RunSource) -> int | None:
    return max((step.pods_created for step in run.tables()["steps"]), default=None)


def broken(run: RunSource) -> int:
    raise ZeroDivisionError("by nothing")


def unknown(run: RunSource) -> None:
    del run


def no_number(run: RunSource) -> float:
    del run
    return float("nan")


def explained(run: RunSource) -> int:
    return len(run.explain("default/p-0"))


def pods_bound(run: RunSource) -> int:
    del run
    return 1


def scenario(*expressions: str) -> ScenarioBuilder:
    builder = ScenarioBuilder("own").create(make_node("n").cpu("4"))
    builder.step(2).create(make_pod("p-$(INDEX)").cpu("1"), count=3).done()
    for number, each in enumerate(expressions):
        builder.expect(f"e{number}", each)
    return builder


def outcomes(*expressions: str, measures: list[Any]) -> list[tuple[bool, str]]:
    run = kubescene.run(scenario(*expressions), measures=measures)
    return [(each.holds, each.error) for each in run.expectations]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "throngs.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return scenario("measures.surge <= 2").save(tmp_path / "s.yaml")


def kubescene_command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def complaint(found: Result) -> str:
    """What standard error would say: the command leaves some errors to `main`."""
    return found.stderr or str(found.exception)


@pytest.mark.parametrize("measure", ["measures.surge", 'measures["surge"]'])
def test_they_are_known_by_name_and_by_key(measure: str) -> None:
    assert outcomes(f"{measure} == 3", f"{measure} > 3", measures=[surge]) == [
        (True, ""),
        (False, ""),
    ]


@pytest.mark.parametrize("measure", ["measures.surge", 'measures["surge"]'])
def test_one_that_nobody_brought_is_a_fault_with_its_place(measure: str) -> None:
    run = kubescene.run(scenario(f"1 > 0 && {measure} > 1"))
    assert run.bad_input
    assert "one of your own is named by --measure" in run.message
    place = len("1 > 0 && measures") + measure.count("[")
    assert run.failed_at == ("spec", "expectations", 0, "expression", place)


def test_a_measure_of_a_resource_may_be_missing_until_the_end() -> None:
    (outcome,) = outcomes('measures["allocation_example_com_gpu"] > 0.5', measures=[])
    assert outcome == (False, "no such key: allocation_example_com_gpu")


def test_no_value_is_no_key() -> None:
    found = outcomes("has(measures.unknown)", "measures.unknown > 1", measures=[unknown])
    assert found == [(False, ""), (False, "no such key: unknown")]


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        (broken, "measure broken raised ZeroDivisionError: by nothing"),
        (no_number, "measure no_number gave nan: a measure is a finite number"),
        (explained, "measure explained raised ConfigurationError: attempts are not explained"),
    ],
)
def test_what_goes_wrong_in_one_is_no_value_of_any_expression_with_measures(
    measure: Any, why: str
) -> None:
    found = outcomes("true", "has(measures.surge)", "pods.size() == 3", measures=[surge, measure])
    assert [holds for holds, _ in found] == [True, False, True]
    assert found[1][1].startswith(why)


def test_the_name_of_a_known_measure_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is a measure pods_bound already"):
        kubescene.run(scenario(), measures=[pods_bound], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_line_brings_them_along(here: Path) -> None:
    assert kubescene_command("validate", here, "--measure", "throngs:surge").exit_code == 0
    played = kubescene_command("run", here, "--quiet", "--measure", "throngs:surge")
    assert played.exit_code == 3
    assert "expectation 'e0' does not hold" in played.stderr


@pytest.mark.parametrize("command", ["run", "validate", "matrix"])
def test_without_them_the_file_has_a_fault(here: Path, command: str) -> None:
    found = kubescene_command(command, here)
    assert found.exit_code
    assert "undefined field 'surge'" in complaint(found)
    assert not found.stdout


def test_a_matrix_takes_those_that_it_shows(here: Path) -> None:
    found = matrix(here, measures=["throngs:surge"], seeds=2, jobs=1)
    assert [run.unmet for run in found.runs] == [["e0"], ["e0"]]
    assert found.rows[0].measures["surge"].mean == 3


def test_a_misspelled_expectation_ends_a_matrix_before_its_first_run() -> None:
    with pytest.raises(ScenarioError, match="undeclared reference to 'podz'"):
        matrix(scenario("podz.size() == 0"), seeds=2, jobs=1)


def test_a_run_is_played_again_without_them(tmp_path: Path) -> None:
    builder = ScenarioBuilder("own").create(make_node("n").cpu("4"), make_pod("giant").cpu("9"))
    expecting = builder.done().expect("one", "measures.surge == 1")
    played = kubescene.run(expecting, out=tmp_path, measures=[surge])
    assert [each.holds for each in played.expectations] == [True]
    found = kubescene_command("explain", "pod", "giant", "--run", tmp_path, "--remedy")
    assert found.exit_code == 0, found.stderr
    assert "default/giant" in found.stdout


def test_they_go_to_no_server(here: Path) -> None:
    server = ("--server", "http://127.0.0.1:1")
    found = kubescene_command("run", here, *server, "--measure", "throngs:surge")
    assert "--measure cannot be used with --server" in complaint(found)


def test_both_of_two_configurations_are_judged_by_them(here: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    other = tmp_path / "d.yaml"
    other.write_text(config.read_text())
    configs = ("--scheduler-config", config, "--scheduler-config", other)
    found = kubescene_command("run", here, *configs, "--measure", "throngs:surge", "--quiet")
    assert found.exit_code == 0
    assert found.stderr.count("expectation 'e0' does not hold") == 2
