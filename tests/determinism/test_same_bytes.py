"""Same input and seed, same bytes out: in any process, after any other run, whoever looks on."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

import kubescene
from kubescene.cluster import ClusterOptions, ClusterWorld, builtin_controllers
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.scenario import Engine, ScenarioBuilder, load_scenario
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.timeline import TimelineRecorder
from kubescene.types import JsonObject
from run_directories import RUN_FILES, files_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-first-scenario" / "scenario.yaml"

EXAMPLES = sorted(EXAMPLE.parents[1].glob("*/scenario.yaml"))

CROWD = (
    ScenarioBuilder("crowd")
    .create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=7)
    .step(2)
    .create(make_replica_set("web").replicas(20).template(make_pod("x").cpu("500m")))
    .create(make_pod("huge").cpu("64"))
    .step(3)
    .patch("apps/v1", "ReplicaSet", "web", {"spec": {"replicas": 5}}, namespace="default")
    .delete("v1", "Node", "n-3")
    .done()
)


PLAY_ALL = """
import sys
from pathlib import Path
from commands import kubescene as command
out, *examples = sys.argv[1:]
for example in examples:
    to = str(Path(out) / Path(example).parent.name)
    done = command("run", example, "--quiet", "--full-status", "--out", to)
    assert done.returncode == 0, (example, done.stderr)
"""


def play_all(out: Path, hash_seed: str, examples: list[Path]) -> Path:
    """Every example in one process, in that order."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", PLAY_ALL, str(out), *map(str, examples)],
        check=True,
        env={
            **os.environ,
            "PYTHONPATH": path,
            "PYTHONHASHSEED": hash_seed,
            "TZ": f"UTC+{hash_seed}",
        },
    )
    return out


@pytest.fixture(scope="module")
def played_twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """By two processes; the second one begins at the other end, so that none follows its like."""
    out = tmp_path_factory.mktemp("played")
    return (
        play_all(out / "first", "1", EXAMPLES),
        play_all(out / "second", "2", EXAMPLES[::-1]),
    )


@pytest.mark.xdist_group("played-twice")
@pytest.mark.parametrize("example", EXAMPLES, ids=[path.parent.name for path in EXAMPLES])
def test_two_processes_write_the_same_files(example: Path, played_twice: tuple[Path, Path]) -> None:
    first, second = (files_of(out / example.parent.name) for out in played_twice)
    assert sorted(first) == RUN_FILES
    for name, data in first.items():
        assert data == second[name], name


def status_of(scenario: Any, **options: Any) -> bytes:
    return kubescene.run(scenario, **options).record.unversioned_data


@pytest.mark.parametrize(
    "scenario", [*EXAMPLES, CROWD], ids=[*(path.parent.name for path in EXAMPLES), "crowd"]
)
def test_a_second_run_in_the_same_process_gives_the_same_status(scenario: Any) -> None:
    first = status_of(scenario)
    status_of(ScenarioBuilder("between").create(make_node("n"), make_replica_set("web")))
    assert status_of(scenario) == first


def test_another_seed_gives_other_identities_and_the_same_shape() -> None:
    first, second = (kubescene.run(CROWD, seed=seed) for seed in (1, 2))
    assert list(first.timeline) != list(second.timeline)
    assert [e["operation"] for e in first.timeline] == [e["operation"] for e in second.timeline]


class Bystander:
    """A controller that looks at pods and creates objects of other kinds."""

    name = "bystander"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._made = 0
        context.streams.stream("bystander").next_u64()

    def run_once(self) -> Progress:
        if self._made == 3:
            return IDLE
        self._made += 1
        metadata = {"generateName": "web-", "namespace": "default"}
        self._context.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        return Progress(wrote=True, more=False)


def pods_of(run: kubescene.Run) -> list[JsonObject]:
    return [
        {**pod, "metadata": {k: v for k, v in pod["metadata"].items() if k != "resourceVersion"}}
        for pod in run.cluster.list("pods")
    ]


def test_one_more_controller_renames_no_pod() -> None:
    with_bystander = kubescene.run(CROWD, controllers={"bystander": Bystander})
    assert with_bystander.ok, with_bystander.message
    assert any(e["actor"] == "bystander" for e in with_bystander.timeline)
    assert pods_of(with_bystander) == pods_of(kubescene.run(CROWD))


def decisions(run: kubescene.Run) -> list[tuple[Any, ...]]:
    found = []
    for event in run.timeline:
        result = event.get("podScheduled") or event.get("podUnscheduled")
        if result:
            pod = result["pod"]["metadata"]["name"]
            found.append((str(event["step"]), pod, result.get("boundTo"), result.get("message")))
    return found


@pytest.mark.parametrize("mode", ["Full", "Failures", "Off"])
@pytest.mark.parametrize(
    "scenario", [load_scenario(EXAMPLE), CROWD.build()], ids=["example", "crowd"]
)
def test_explaining_changes_no_decision(scenario: JsonObject, mode: str) -> None:
    spec = {**scenario["spec"], "simulation": {"explain": mode}}
    told = decisions(kubescene.run({**scenario, "spec": spec}))
    assert told == decisions(kubescene.run(scenario))
    assert told


@pytest.mark.parametrize(
    ("mode", "explained"),
    [("Auto", "all"), ("Full", "all"), ("Failures", "failed"), ("Off", "none")],
)
def test_the_mode_says_what_is_explained(mode: str, explained: str) -> None:
    run = kubescene.run(
        {**CROWD.build(), "spec": {**CROWD.build()["spec"], "simulation": {"explain": mode}}}
    )
    rows = [row for row in run.explanations if b'"pod":' in row]
    attempts = decisions(run)
    failed = [attempt for attempt in attempts if attempt[2] is None]
    assert failed
    expected = {"all": len(attempts), "failed": len(failed), "none": 0}[explained]
    assert len(rows) == expected


def play_on(cluster: ClusterWorld, scenario: ScenarioBuilder) -> JsonObject:
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    cluster.create(scenario)
    resource = cluster.scheme.resolve("scenarios").group_resource
    record = cluster.store.get(resource, "", scenario.build()["metadata"]["name"])
    assert record is not None
    live = ScenarioResource(cluster.store, record)
    engine = Engine(cluster, live, recorder)
    engine.run()
    status: JsonObject = orjson.loads(live.data)["status"]
    return status


def test_a_used_cluster_gives_the_same_status() -> None:
    fresh, used = ClusterWorld(), ClusterWorld()
    between = ScenarioBuilder("between").create(make_node("n").cpu("4"), make_replica_set("web"))
    play_on(used, between.advance("5m").done())
    assert play_on(used, CROWD) == play_on(fresh, CROWD)


class Gambler:
    """A controller whose writes are drawn."""

    name = "gambler"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._stream = context.streams.stream("gambler")
        self._left = 3

    def run_once(self) -> Progress:
        if not self._left:
            return IDLE
        self._left -= 1
        data = {"drawn": str(self._stream.exponential(10**9))}
        metadata = {"generateName": "drawn-", "namespace": "default"}
        self._client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        )
        return Progress(wrote=True, more=True)


def gambling_cluster() -> ClusterWorld:
    registrations = builtin_controllers(ClusterOptions())
    registrations.register("gambler", Gambler)
    return ClusterWorld(controllers=registrations)


def drawn_on(cluster: ClusterWorld) -> list[str]:
    maps = cluster.list("configmaps")
    return [each["data"]["drawn"] for each in maps if "drawn" in each.get("data", {})]


def test_chance_begins_anew_with_every_scenario() -> None:
    cluster = gambling_cluster()
    play_on(cluster, CROWD)
    first = drawn_on(cluster)
    assert len(set(first)) == 3
    play_on(cluster, ScenarioBuilder("another").create(make_node("n")).done())
    assert drawn_on(cluster) == first


def test_chance_begins_anew_with_an_empty_cluster() -> None:
    cluster = gambling_cluster()
    first = drawn_on(cluster.settle())
    cluster.reset()
    assert drawn_on(cluster.settle()) == first
