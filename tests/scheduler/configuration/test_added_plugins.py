"""Bringing one's own plugins and profiles: from Python and from the command line."""

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kubescene
from commands import kubescene as command_line
from commands import started
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.cluster.options import scheduler_options
from kubescene.errors import ConfigurationError
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    ExtensionPoint,
    FilterPlugin,
    Handle,
    NodeInfo,
    PodInfo,
    SchedulerOptions,
    ScorePlugin,
    Status,
)
from kubescene.scheduler.configuration.added_plugins import import_plugin, with_plugin
from kubescene.scheduler.framework.explain import Explain
from kubescene.testing.builders import make_node, make_pod

PLUGIN = """
from kubescene.scheduler import SUCCESS, FilterPlugin, Status

class OnlyB(FilterPlugin):
    name = "OnlyB"

    def filter(self, state, pod, node):
        return SUCCESS if node.name == "b" else Status.unschedulable("not b")
"""


class OnlyB(FilterPlugin, ScorePlugin):
    name = "OnlyB"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == "b" else Status.unschedulable("not b")

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 50


OPTIONS = with_plugin(SchedulerOptions(), OnlyB)


def scenario() -> ScenarioBuilder:
    nodes = [make_node(name).cpu("4") for name in "abc"]
    return ScenarioBuilder("own").step(1).create(*nodes).step(2).create(make_pod("p"))


def test_a_plugin_stands_at_every_point_it_implements() -> None:
    (profile,) = OPTIONS.profiles
    points = [point for point in ExtensionPoint if "OnlyB" in str(profile.at(point))]
    assert points == [ExtensionPoint.FILTER, ExtensionPoint.SCORE]
    assert profile.at(ExtensionPoint.FILTER)[-1].name == "OnlyB"


def test_a_cluster_takes_the_schedulers_options() -> None:
    cluster = Cluster(scheduler=OPTIONS)
    for name in "abc":
        cluster.create(make_node(name).cpu("4"))
    cluster.create(make_pod("p"))
    assert cluster.settle().pod("p").node == "b"


class Picky(OnlyB):
    """Takes its arguments and the handle."""

    name = "Picky"

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        self.wanted = arguments.get("node", "c")
        self.handle = handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == self.wanted else Status.unschedulable("not wanted")


def test_a_plugin_can_take_arguments_and_the_handle() -> None:
    cluster = Cluster(scheduler=with_plugin(SchedulerOptions(), Picky))
    for name in "abc":
        cluster.create(make_node(name).cpu("4"))
    cluster.create(make_pod("p"))
    assert cluster.settle().pod("p").node == "c"


def test_explanations_are_the_worlds_unless_said_otherwise() -> None:
    full = SchedulerOptions(explain=Explain.FULL)
    assert scheduler_options(ClusterOptions(explain=Explain.OFF)).explain is Explain.OFF
    assert scheduler_options(ClusterOptions(scheduler=full)).explain is Explain.FULL


def test_a_run_takes_the_schedulers_options() -> None:
    result = kubescene.run(scenario(), scheduler=OPTIONS)
    assert result.ok, result.message
    assert result.cluster.pod("p").node == "b"


def test_options_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(SchedulerOptions()))
    assert sent == SchedulerOptions()
    assert copy.deepcopy(OPTIONS) == OPTIONS


def test_the_command_line_takes_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    scenario().save(tmp_path / "scenario.yaml")
    done = started("run", "scenario.yaml", "--plugin", "mine:OnlyB", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"nodeName":"b"' in (tmp_path / "out" / "timeline.jsonl").read_text()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nonsense", "must be written as module:Class"),
        ("no_such_module_here:X", "cannot be imported: No module named"),
        ("kubescene.scheduler:Nothing", "has no class Nothing"),
        ("kubescene.scheduler:default_profile", "has no class default_profile"),
    ],
)
def test_a_plugin_that_cannot_be_found_is_an_error(reference: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        import_plugin(reference)


def test_a_class_without_methods_is_no_plugin() -> None:
    with pytest.raises(ConfigurationError, match="has none of the methods of a scheduler plugin"):
        with_plugin(SchedulerOptions(), dict)


# -- plugins of installed packages -------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers the plugin OnlyB under the name ``Beta``."""
    (tmp_path / "offering.py").write_text(PLUGIN)
    info = tmp_path / "offering-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[kubescene.plugins]\nBeta = offering:OnlyB\nBroken = offering:PLUGIN\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.mark.usefixtures("installed")
def test_an_installed_plugin_runs_where_it_is_named() -> None:
    plugins = {"filter": {"enabled": [{"name": "Beta"}]}}
    for config, chosen in ((HEADER, "a"), ({**HEADER, "profiles": [{"plugins": plugins}]}, "b")):
        cluster = Cluster(scheduler=config)
        for name in "ab":
            cluster.create(make_node(name).cpu("4"))
        cluster.create(make_pod("p"))
        assert cluster.settle().pod("p").node == chosen


@pytest.mark.usefixtures("installed")
def test_an_installed_plugin_can_be_added_by_its_name() -> None:
    assert import_plugin("Beta").__name__ == "OnlyB"
    with pytest.raises(ConfigurationError, match="or be installed under that name"):
        import_plugin("Gamma")
    with pytest.raises(ConfigurationError, match=r"entry point 'Broken' .* cannot be loaded"):
        import_plugin("Broken")


def test_a_configuration_and_a_plugin_on_one_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "config.json").write_text(
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",'
        '"profiles": [{"plugins": {"filter": {"disabled": [{"name": "OnlyB"}]}}}]}'
    )
    scenario = ScenarioBuilder("s").create(make_node("a").cpu("4"))
    scenario.create(make_node("b").cpu("4")).next_step().create(make_pod("p")).done()
    scenario.save(tmp_path / "s.yaml")
    command = ["run", "s.yaml", "--plugin", "mine:OnlyB"]
    for more, chosen in (([], "b"), (["--scheduler-config", "config.json"], "a")):
        done = command_line(*command, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"2.1 default/p {chosen} " in " ".join(done.stdout.split())


def test_a_bad_configuration_ends_a_command_with_file_and_path(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",'
        '"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"x": 1}}]}]}'
    )
    ScenarioBuilder("s").done().save(tmp_path / "s.yaml")
    for command in (["run", "s.yaml"], ["serve", "--port", "0"]):
        done = command_line(*command, "--scheduler-config", "config.json", cwd=tmp_path)
        assert done.returncode == 2
        assert "kubescene: config.json: profiles[0].pluginConfig[0].args.x: " in done.stderr
