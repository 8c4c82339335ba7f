"""Worlds without some of the built-in controllers (``--without``)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kubescene
from kubescene.cli.components import names_in
from kubescene.cli.run.command import run_as_asked
from kubescene.cli.run.playing import RunArguments
from kubescene.cli.serve import cluster_with, left_out
from kubescene.cluster import SCHEDULER, ClusterOptions, ClusterWorld, builtin_controllers
from kubescene.errors import ConfigurationError, NotFoundError
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.validation.unsimulated import DUTIES, KINDS
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

BUILT_IN = tuple(builtin_controllers(ClusterOptions(events=True)))
EXAMPLES = Path(__file__).parents[2] / "examples"


def without(*names: str, **options: object) -> ClusterWorld:
    return ClusterWorld(ClusterOptions(without=frozenset(names), **options))  # type: ignore[arg-type]


def test_who_is_left_out_does_nothing() -> None:
    cluster = without("replicaset")
    cluster.create(make_node("n").cpu("4").memory("8Gi"))
    cluster.create(make_deployment("web").replicas(2))
    cluster.settle()
    assert len(cluster.list("replicasets")) == 1
    assert len(cluster.list("pods")) == 0


def test_without_kubelet_and_scheduler_pods_wait() -> None:
    cluster = without("kubelet", SCHEDULER)
    cluster.create(make_node("n").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a").cpu("1"))
    cluster.create(make_pod("b").cpu("1").on("n"))
    cluster.settle()
    assert [pod["status"]["phase"] for pod in cluster.list("pods")] == ["Pending", "Pending"]
    assert "nodeName" not in cluster.get("pods", "a")["spec"]


def test_a_name_that_nobody_has_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(ConfigurationError, match="did you mean deployment") as told:
        without("deploymnt")
    assert "'deploymnt'" in str(told.value)
    assert "statefulset" in str(told.value)


def test_kinds_of_who_is_left_out_exist() -> None:
    cluster = without("outage", "nodeset")
    outage = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Outage",
        "metadata": {"name": "o"},
        "spec": {"what": "NodesSilent", "nodes": {}},
    }
    cluster.create(outage)
    cluster.settle()
    assert "status" not in cluster.get("outages", "o")
    assert cluster.fork().registrations.left_out == {"outage", "nodeset"}


def test_somebody_of_the_same_name_takes_the_place() -> None:
    controllers = builtin_controllers(ClusterOptions(without=frozenset({"deployment"})))
    assert "deployment" not in controllers
    controllers.register("deployment", builtin_controllers(ClusterOptions()).factory("deployment"))
    assert "deployment" in controllers


def test_of_everybody_it_is_known_what_nobody_does_without_him() -> None:
    assert set(BUILT_IN) - set(KINDS.values()) - set(DUTIES) == set()


def scenario() -> JsonObject:
    builder = ScenarioBuilder("s").create(make_node("n").cpu("4").memory("8Gi"))
    return builder.create(make_deployment("web").replicas(2)).done().build()


def test_a_run_says_what_nobody_does() -> None:
    result = kubescene.run(scenario(), without=["kubelet", "deployment"])
    assert [each.partition(":")[0] for each in result.summary.warnings] == [
        "kubelet was left out",
        "Deployment has no effect",
    ]
    strict = kubescene.run(scenario(), without=["deployment"], strict=True)
    assert "the controller deployment does not run" in strict.message


def test_a_scenario_that_needs_one_who_is_left_out_says_so() -> None:
    result = kubescene.run(scenario(), without=[SCHEDULER])
    assert result.bad_input
    assert f"{SCHEDULER} was left out of this world" in result.message


def disabling(document: JsonObject, name: str) -> JsonObject:
    controllers = {
        "presimulationControllers": {"disabled": [{"name": name}]},
        "simulationControllers": {"enabled": [{"name": SCHEDULER}]},
    }
    return {**document, "spec": {**document["spec"], "controllers": controllers}}


def test_leaving_out_is_as_disabling_and_both_can_be_said() -> None:
    left = kubescene.run(scenario(), without=["replicaset"])
    disabled = kubescene.run(disabling(scenario(), "replicaset"))
    both = kubescene.run(disabling(scenario(), "replicaset"), without=["replicaset"])
    told = [[str(fact) for fact in run.log.read(0, len(run.log))] for run in (left, disabled, both)]
    assert left.ok
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize(
    "name", [each for each in BUILT_IN if each not in (SCHEDULER, "event-expiry")]
)
def test_shortcuts_change_nothing_whoever_is_left_out(name: str, tmp_path: Path) -> None:
    file = EXAMPLES / "02-rolling-update" / "scenario.yaml"
    kubescene.run(file, without=[name], out=tmp_path / "fast")
    kubescene.run(file, without=[name], out=tmp_path / "plain", plain=True)
    timelines = [(tmp_path / each / "timeline.jsonl").read_bytes() for each in ("fast", "plain")]
    assert timelines[0] == timelines[1]


def test_names_stand_between_commas_or_in_several_options() -> None:
    assert names_in(["a, b", "c,"]) == {"a", "b", "c"}


def asked(*names: str, server: str | None = None, outside: tuple[str, ...] = ()) -> int:
    file = EXAMPLES / "02-rolling-update" / "scenario.yaml"
    arguments = RunArguments(without=names, quiet=True, outside=outside)
    return run_as_asked(file, arguments, server, delete=False)


def test_the_command_line_leaves_out_only_what_is_there() -> None:
    assert asked("kubelet") == 0
    with pytest.raises(ConfigurationError, match="did you mean kubelet"):
        asked("kublet")
    with pytest.raises(ConfigurationError, match="say it to `kubescene serve`"):
        asked("kubelet", server="http://127.0.0.1:1")


def test_a_server_says_who_is_not_there() -> None:
    options = ClusterOptions(events=True, without=frozenset({"kubelet", "job"}))
    said = list(left_out(cluster_with(options, (), "virtual")))
    assert said == [
        "Until somebody takes their place:",
        f"  kubelet was left out: {DUTIES['kubelet']}",
        "  job was left out: nobody acts on a Job",
    ]
    assert not list(left_out(ClusterWorld()))


def renewals(cluster: ClusterWorld, node: str) -> Iterator[str]:
    for _ in range(4):
        yield cluster.get("leases", node, "kube-node-lease")["spec"]["renewTime"][17:19]
        cluster.advance("5s")


def test_kubelets_send_heartbeats_to_a_node_lifecycle_controller_outside() -> None:
    cluster = without("node-lifecycle", events=True)
    cluster.create(make_node("n").cpu("4"))
    cluster.create(make_node("silent").cpu("4").annotate({"kubescene.dev/kubelet": "stopped"}))
    cluster.settle()
    assert [*renewals(cluster, "n")] == ["00", "00", "10", "10"]
    with pytest.raises(NotFoundError):
        cluster.get("leases", "silent", "kube-node-lease")
    cluster.patch("nodes", "n", {"metadata": {"annotations": {"kubescene.dev/kubelet": "stopped"}}})
    cluster.advance("25s")
    assert [*renewals(cluster, "n")] == ["20"] * 4
    cluster.patch("nodes", "n", {"metadata": {"annotations": {"kubescene.dev/kubelet": None}}})
    cluster.settle()
    assert next(renewals(cluster, "n")) == "05"
    owner = cluster.get("leases", "n", "kube-node-lease")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Node", "n")


@pytest.mark.parametrize(("name", "events"), [("node-lifecycle", False), ("kubelet", True)])
def test_nobody_else_needs_heartbeats(name: str, events: bool) -> None:
    cluster = without(name, events=events)
    cluster.create(make_node("n").cpu("4"))
    cluster.settle()
    assert not cluster.list("leases", "kube-node-lease")
