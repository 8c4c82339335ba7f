"""``kubescene results``: tables of a run on the terminal, in files, from a server."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import orjson
import polars as pl
import pytest
from typer.testing import CliRunner

import commands
import kubescene
from apiserver.http import Http
from apiserver.scenarios import play
from kubescene.apiserver.server import Server
from kubescene.cli.app import app
from kubescene.errors import KubesceneError
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

LABEL = "node.kubernetes.io/instance-type"


def scenario(name: str = "small") -> ScenarioBuilder:
    node = make_node("n").cpu("4").memory("8Gi").labels({LABEL: "small"})
    return ScenarioBuilder(name).create(node).step(2).create(make_pod("a").cpu("1")).done()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kubescene.run(scenario(), out=tmp_path / "run")
    return tmp_path / "run"


def results(*arguments: object) -> str:
    """What the command prints; its errors are raised."""
    done = CliRunner().invoke(app, ["results", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_measures_are_what_is_shown_first(folder: Path) -> None:
    header, *rows = results(folder).splitlines()
    assert header.split() == ["MEASURE", "VALUE", "UNIT", "MEANING"]
    shown = {row.split()[0]: row.split()[1] for row in rows}
    assert (shown["allocation_cpu"], shown["pods_bound"], shown["allocation_mean_cpu"]) == (
        "0.25",
        "1",
        "-",
    )
    assert "cost" not in shown


def test_the_directory_may_be_named_by_an_option(folder: Path) -> None:
    assert results("--run", folder) == results(folder)


def test_csv_and_json_hold_the_table(folder: Path) -> None:
    (row,) = csv.DictReader(io.StringIO(results(folder, "--table", "pods", "--format", "csv")))
    assert (row["name"], row["node"], row["cpu"], row["censored"]) == ("a", "n", "1000", "false")
    (found,) = orjson.loads(results(folder, "--table", "pods", "--format", "json"))
    assert (found["name"], found["node"], found["cpu"], found["censored"]) == (
        "a",
        "n",
        1000,
        False,
    )


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_file_holds_what_the_terminal_shows(folder: Path, tmp_path: Path, form: str) -> None:
    shown = results(folder, "--table", "nodes", "--format", form)
    results(folder, "--table", "nodes", "--format", form, "--out", tmp_path / "nodes")
    assert (tmp_path / "nodes").read_text() == shown


def test_parquet_goes_to_a_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "steps.parquet"
    results(folder, "--table", "steps", "--format", "parquet", "--out", file)
    assert pl.read_parquet(file)["cpu_requested"].to_list() == [0, 1000]


def test_prices_give_a_cost(folder: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("currency: EUR\nhourly: {small: 0.25}\n")
    rows = results(folder, "--prices", prices).splitlines()
    (cost,) = (row for row in rows if row.startswith("cost_per_hour"))
    assert cost.split()[1:5] == ["0.25", "EUR", "per", "hour"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hourly: {large: 1}", r"no price for node n \(.*instance-type=small\)"),
        ("hourly: {small: -1}", "prices.yaml: the price of small"),
        ("hourly: {small: .nan}", "prices.yaml"),
        ("hourly: {small: cheap}", r"prices.yaml: .*\$\.hourly"),
        ("hourlie: {}", "prices.yaml: .*hourlie"),
        ("[1]", "prices.yaml"),
        ("a: [", "prices.yaml"),
    ],
)
def test_a_price_list_that_is_wrong_is_named(
    folder: Path, tmp_path: Path, text: str, why: str
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(text)
    with pytest.raises(KubesceneError, match=why):
        results(folder, "--prices", prices)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{run}", "--table", "planets"], "no table 'planets'; there are: pods, nodes"),
        (["{run}", "--format", "parquet"], "name a file by --out"),
        (["{run}", "--run", "{run}"], "name the run once"),
        ([], "either a run directory or --server"),
        (["{run}", "--server", "http://x"], "either a run directory or --server"),
        (["{run}/nowhere"], "there is no run at"),
        (["{run}", "--prices", "{run}/none.yaml"], "cannot read"),
        (["{run}", "--format", "csv", "--out", "{run}/no/such/folder.csv"], "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, arguments: list[str], why: str) -> None:
    with pytest.raises(KubesceneError, match=why):
        results(*(each.replace("{run}", str(folder)) for each in arguments))


def command(*arguments: object) -> CompletedProcess[str]:
    return commands.kubescene("results", *arguments)


def test_a_run_that_was_cut_short_is_shown_with_a_warning(folder: Path) -> None:
    (folder / "summary.json").unlink()
    done = command(folder)
    assert done.returncode == 0
    assert "pods_bound" in done.stdout
    assert done.stderr.startswith("kubescene: warning: ")
    assert "cut short or still goes on" in done.stderr


def test_a_damaged_run_is_one_line_and_code_2(folder: Path) -> None:
    with (folder / "timeline.jsonl").open("ab") as file:
        file.write(b"}\n")
    done = command(folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "timeline.jsonl, line" in done.stderr
    assert "Traceback" not in done.stderr


# -- servers -----------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


def test_a_server_tells_what_a_directory_tells(server: Server, folder: Path) -> None:
    http = Http(server.host, server.port)
    play(http, scenario())
    http.close()
    for table in ("measures", "pods", "attempts"):
        shown = results("--server", server.url, "--table", table, "--format", "csv")
        assert shown == results(folder, "--table", table, "--format", "csv")
    assert results("--server", server.url, "--scenario", "small") == results(folder)
    with pytest.raises(KubesceneError, match="has not been played"):
        results("--server", server.url, "--scenario", "other")


def test_a_server_without_a_scenario_has_no_results(server: Server) -> None:
    with pytest.raises(KubesceneError, match="has played no scenario: there are no results"):
        results("--server", server.url)


def test_a_server_that_is_not_there_is_named() -> None:
    done = command("--server", "http://127.0.0.1:9")
    assert done.returncode == 2
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
