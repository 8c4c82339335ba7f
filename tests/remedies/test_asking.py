"""Asking for remedies from the command line: a run that is played again, a server, a summary."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kubescene
from apiserver.http import Http
from apiserver.scenarios import create, wait
from kubescene.api.text.encoding import encode
from kubescene.apiserver.server import Server
from kubescene.cli.app import app
from kubescene.errors import ConfigurationError
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import CycleState, NodeInfo, PodInfo, SchedulerOptions, Status
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.testing import make_node, make_pod

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def scenario() -> ScenarioBuilder:
    objects = make_node("n").cpu("1"), make_pod("a").cpu("2"), make_pod("b").cpu("500m")
    return ScenarioBuilder("s").settings(seed=7).create(*objects)


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def explain(*arguments: object) -> Result:
    return command("explain", "pod", *arguments, "--remedy")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


def test_a_finished_run_is_played_again(tmp_path: Path) -> None:
    kubescene.run(scenario(), out=tmp_path)
    asked = explain("a", "--run", tmp_path)
    assert asked.exit_code == 0
    assert "What would it take to place default/a?" in asked.stdout
    assert "request 1500m cpu less: 500m instead of 2" in asked.stdout
    assert f"playing {tmp_path} again" in asked.stderr.replace("\n", "")
    assert "there is no such pod" in explain("nobody", "--run", tmp_path).stderr
    placed = explain("b", "--run", tmp_path)
    assert "default/b is on n: there is nothing to remedy" in str(placed.exception)


class Never:
    name = "Never"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("never")


def test_a_run_that_was_played_with_something_else_is_not_mistaken(tmp_path: Path) -> None:
    kubescene.run(scenario(), out=tmp_path, scheduler=with_plugin(SchedulerOptions(), Never))
    asked = explain("a", "--run", tmp_path)
    assert isinstance(asked.exception, ConfigurationError)
    assert 'FilterPlugin "Never" does not exist; name the --plugin' in str(asked.exception)


def test_a_run_of_a_configured_scheduler_is_played_again_without_naming_it(tmp_path: Path) -> None:
    no_fit = {"plugins": {"multiPoint": {"disabled": [{"name": "NodePorts"}]}}}
    kubescene.run(scenario(), out=tmp_path, scheduler={**HEADER, "profiles": [no_fit]})
    assert explain("a", "--run", tmp_path).exit_code == 0


def test_a_summary_names_the_best_remedy(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_bytes(encode(scenario().build()))
    shown = command("run", file, "--remedies").stdout
    assert "What would it take\ndefault/a: request 1500m cpu less" in shown
    assert "What would it take" not in command("run", file).stdout


@pytest.mark.parametrize("ends", [True, False])
def test_a_server_is_asked_about_its_world(server: Server, *, ends: bool) -> None:
    http = Http(server.host, server.port)
    create(http, scenario().done() if ends else scenario())
    wait(http, "s")
    asked = explain("a", "--server", server.url)
    assert asked.exit_code == 0, asked.exception
    assert "request 1500m cpu less: 500m instead of 2" in asked.stdout
    with_a_node = explain("b", "--server", server.url)
    assert "default/b is on n" in str(with_a_node.exception)
    assert "not found" in str(explain("c", "--server", server.url).exception)
    http.close()
