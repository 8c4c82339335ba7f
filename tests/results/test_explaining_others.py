"""Explanations beside nodes and plugins: extenders, waits, tracebacks; one attempt, one node."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kubescene
from apiserver.http import Http
from apiserver.scenarios import create, wait
from kubescene.apiserver.server import Server
from kubescene.cli.app import app
from kubescene.cli.explain.answers import named
from kubescene.clock import SECOND
from kubescene.errors import ConfigurationError
from kubescene.results.explaining import read_attempts
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import (
    SUCCESS,
    Code,
    CycleState,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    ExtenderVerb,
    Handle,
    NodeInfo,
    PendingCall,
    PodInfo,
    SchedulerOptions,
    Status,
)
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.testing import make_node, make_pod

BOTH = frozenset({ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE})


class Answers:
    """An extender in this process: refuses n1, says nothing of n2, prefers n4."""

    def call(self, pending: PendingCall) -> None:
        pending.answer(self.answer(pending.call))

    def answer(self, call: ExtenderCall) -> ExtenderAnswer:
        if call.extender.name == "dead":
            return ExtenderAnswer(error="nobody there")
        if call.verb is ExtenderVerb.PRIORITIZE:
            return ExtenderAnswer(scores={"n4": 7})
        passed = tuple(node for node in call.nodes if node not in ("n1", "n2"))
        return ExtenderAnswer(nodes=passed, failed={"n1": "no GPU left"})


def extended(*extenders: Extender) -> SchedulerOptions:
    return SchedulerOptions(extenders=extenders, extender_caller=Answers())


def four_nodes() -> ScenarioBuilder:
    nodes = [make_node(f"n{number}").cpu("4") for number in range(1, 5)]
    return ScenarioBuilder("s").create(*nodes, make_pod("a").cpu("1"))


def explain(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)], env={"COLUMNS": "200"})


def test_extenders_are_told_node_by_node(tmp_path: Path) -> None:
    extender = Extender("gpu", BOTH, weight=2)
    dead = Extender("dead", frozenset({ExtenderVerb.FILTER}), ignorable=True)
    kubescene.run(four_nodes(), out=tmp_path, scheduler=extended(extender, dead))
    (attempt,) = read_attempts(tmp_path, "a")
    refused, ignored, rated = attempt.extenders
    assert (refused.extender, refused.verb, refused.asked) == ("gpu", "filter", 4)
    assert (refused.failed, refused.dropped) == ({"n1": "no GPU left"}, ("n2",))
    assert (ignored.extender, ignored.error, ignored.ignored) == ("dead", "nobody there", True)
    assert (rated.verb, rated.scores) == ("prioritize", {"n4": 140})
    shown = explain("pod", "a", "--run", tmp_path).stdout
    assert "extender gpu, filter: n1 refused: no GPU left" in shown
    assert "extender gpu, filter: n2 dropped without a reason" in shown
    assert "extender dead, filter: error: nobody there (ignored" in shown
    assert "extender gpu, prioritize: n4 +140" in shown


def test_an_extender_that_fails_an_attempt_is_told_without_an_empty_table(tmp_path: Path) -> None:
    dead = Extender("dead", frozenset({ExtenderVerb.FILTER}))
    kubescene.run(four_nodes(), out=tmp_path, scheduler=extended(dead))
    attempt = read_attempts(tmp_path, "a")[0]
    assert (attempt.explained, attempt.extenders[0].ignored) == (False, False)
    assert attempt.extenders[0].error == "nobody there"
    assert "verdict" not in explain("a", "--run", tmp_path).stdout


class Holding:
    """Lets a pod wait for ten seconds; nobody ever allows it."""

    name = "Holding"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        return Status(Code.WAIT), 10 * SECOND


class Preparing:
    """Has work for five seconds before a pod is bound."""

    name = "Preparing"

    def __init__(self, arguments: object, handle: Handle) -> None:
        self._clock = handle.clock
        self._since = -1

    def pre_bind(
        self, state: CycleState, pod: PodInfo, node: str
    ) -> Status | tuple[Status, int | None]:
        if self._since < 0:
            self._since = self._clock.now()
        if self._clock.now() < self._since + 5 * SECOND:
            return Status(Code.WAIT), 2 * SECOND
        return SUCCESS


def waiting(plugin: type, tmp_path: Path) -> str:
    scenario = four_nodes().settings(startTime="2030-01-01T00:00:00Z").step(2).advance("1m")
    scheduler = with_plugin(SchedulerOptions(), plugin)
    kubescene.run(scenario, out=tmp_path, scheduler=scheduler)
    return explain("a", "--run", tmp_path, "--attempt", "1").stdout


def test_a_wait_at_permit_tells_its_limit_and_its_end(tmp_path: Path) -> None:
    shown = waiting(Holding, tmp_path)
    (wait,) = read_attempts(tmp_path, "a")[0].waits
    assert (wait.plugin, wait.point, wait.node) == ("Holding", "Permit", "n1")
    assert wait.since == "2030-01-01T00:00:00.000000Z"
    assert wait.until == wait.ended == "2030-01-01T00:00:10.000000Z"
    assert wait.outcome == "rejected due to timeout after waiting 10s at plugin Holding"
    assert "waited for Holding at Permit with n1 promised" in shown


def test_a_prebind_plugin_that_goes_on_waiting_waits_once(tmp_path: Path) -> None:
    waiting(Preparing, tmp_path)
    (attempt,) = read_attempts(tmp_path, "a")
    (wait,) = attempt.waits
    assert (attempt.node, wait.point, wait.outcome) == ("n1", "PreBind", "done")
    assert wait.since == "2030-01-01T00:00:00.000000Z"
    assert wait.ended == "2030-01-01T00:00:06.000000Z"


class Raising:
    name = "Raising"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        raise RuntimeError("out of order")


def test_a_traceback_is_shown_and_no_empty_table(tmp_path: Path) -> None:
    kubescene.run(four_nodes(), out=tmp_path, scheduler=with_plugin(SchedulerOptions(), Raising))
    shown = explain("a", "--run", tmp_path, "--attempt", "-1").stdout
    assert "RuntimeError: out of order" in shown
    assert "verdict" not in shown
    assert "not kept" not in shown


# -- what is asked for -------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    scenario = ScenarioBuilder("s").create(make_node("small").cpu("1"), make_pod("a").cpu("2"))
    kubescene.run(scenario.step(2).create(make_node("big").cpu("8")), out=tmp_path)
    return tmp_path


def test_a_single_fitting_node_is_said_not_to_be_scored(run: Path) -> None:
    shown = explain("pod", "default/a", "--run", run, "--attempt", "-1").stdout
    assert "only one node fits, not scored" in shown
    assert " - " not in shown


def test_one_attempt_and_one_node_can_be_asked_for(run: Path) -> None:
    first = explain("pod", "a", "--run", run, "--attempt", "1").stdout
    assert "0/1 nodes are available" in first
    assert "bound to big" not in first
    node = explain("pod", "a", "--run", run, "--attempt", "2", "--node", "small").stdout
    assert "Insufficient cpu" in node
    assert "chosen" not in node


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a", "--attempt", "3"], "a has 2 attempts: 1 to 2, or -1 for the last"),
        (["a", "--attempt", "0"], "a has 2 attempts"),
        (["a", "--attempt", "-3"], "a has 2 attempts"),
        (["a", "--node", "nobody"], "none of these attempts looked at a node 'nobody'"),
        (["nobody"], "there is no such pod"),
    ],
)
def test_what_is_unknown_is_named(run: Path, arguments: list[str], told: str) -> None:
    asked = explain("pod", *arguments, "--run", run)
    assert (asked.exit_code, told in asked.stderr) == (2, True)


@pytest.mark.parametrize("words", [["pod", "x/a"], ["pods/x/a"], ["x/a"]])
def test_a_pod_is_named_as_kubectl_does(words: list[str]) -> None:
    assert named(words) == ("pod", "x/a")


@pytest.mark.parametrize("words", [["node", "n"], ["nodes/n"], ["instance", "n"]])
def test_so_is_a_node(words: list[str]) -> None:
    assert named(words) == ("node", "n")


@pytest.mark.parametrize("words", [["service", "n"], ["pod", "a", "b"]])
def test_nothing_but_a_pod_or_a_node_is_explained(words: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="explain takes a pod"):
        named(words)


def test_an_attempt_is_small_in_print() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"), make_pod("a"))
    (attempt,) = kubescene.run(scenario).explain("a")
    assert repr(attempt) == "<attempt at default/a, step 1.1: bound to n>"


# -- from a server -----------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


def test_a_server_explains_what_it_has_played(server: Server) -> None:
    http = Http(server.host, server.port)
    create(http, four_nodes())
    wait(http, "s")
    shown = explain("pod", "a", "--server", server.url)
    assert shown.exit_code == 0
    assert "default/a at step 1.1: bound to n1" in shown.stdout
    unknown = explain("pod", "b", "--server", server.url, "--scenario", "s")
    assert (unknown.exit_code, "there is no such pod" in unknown.stderr) == (2, True)
    http.close()


def test_a_server_without_a_scenario_says_what_it_does_not_keep(server: Server) -> None:
    asked = explain("pod", "a", "--server", server.url)
    assert isinstance(asked.exception, ConfigurationError)
    assert "it keeps explanations of scenarios only" in str(asked.exception)
