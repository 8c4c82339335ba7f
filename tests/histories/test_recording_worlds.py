"""A served world that random clients use is recorded and replayed to the same placements."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
import yaml

import kubescene
from commands import kubescene as command
from kubescene.actors import Actor
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.client.http.kubeconfigs import endpoint_at, make_kubeconfig
from kubescene.clock import SECOND, Deadline, Streams, WallClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import SnapshotError
from kubescene.histories.recordings import RecordingWriter
from kubescene.histories.survey import survey
from kubescene.results import open_run
from kubescene.results.agreement import agreement
from kubescene.runs import Run
from kubescene.scenario.build import ScenarioBuilder
from kubescene.snapshots.recorder import ClusterRecorder
from kubescene.types import JsonObject

PATIENCE_S = 300
POD = GroupVersionKind("", "v1", "Pod")
NODE = GroupVersionKind("", "v1", "Node")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


def node(name: str, cpu: int) -> JsonObject:
    room = {"cpu": str(cpu), "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room},
    }


def pod(name: str, cpu: str) -> JsonObject:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "bare"}},
        "spec": {"containers": [container]},
    }


def deployment(name: str, replicas: int, cpu: str) -> JsonObject:
    labels = {"app": name}
    spec = pod("x", cpu)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


class RandomClient:
    """Does one thing after the other, each when the world has come to rest after the last."""

    def __init__(self, url: str, seed: int) -> None:
        self._client = HttpClient(url, Actor("somebody"))
        self._random = Streams(seed).stream("client")
        self._pods: list[str] = []
        self._deployments: dict[str, int] = {}
        self._made = 0

    def __enter__(self) -> "RandomClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def pods(self) -> list[JsonObject]:
        return [*self._client.list(POD)]

    def begin(self) -> None:
        for number in range(6):
            self._client.create(node(f"node-{number}", 4 + 4 * self._random.below(2)))
        self._client.create(deployment("first", 2, "200m"))
        self._deployments["first"] = 2
        self._settle()

    def create(self, obj: JsonObject) -> None:
        self._client.create(obj)

    def act(self) -> None:
        cpu = self._chosen(("100m", "250m", "500m"))
        what = self._random.uniform()
        self._made += 1
        if what < 0.4:
            self._pods.append(f"bare-{self._made}")
            self._client.create(pod(self._pods[-1], cpu))
        elif what < 0.55 and self._pods:
            name = self._pods.pop(self._random.below(len(self._pods)))
            self._client.delete(ObjectRef(POD, name, "default"))
        elif what < 0.7:
            name = f"web-{self._made}"
            self._deployments[name] = 1 + self._random.below(3)
            self._client.create(deployment(name, self._deployments[name], cpu))
        elif what < 0.9:
            name = self._chosen(sorted(self._deployments))
            self._deployments[name] = 1 + self._random.below(4)
            self._client.patch(
                ObjectRef(DEPLOYMENT, name, "default"),
                {"spec": {"replicas": self._deployments[name]}},
            )
        else:
            self._client.create(node(f"more-{self._made}", 4))
        self._settle()

    def wait_for(self, recorder: ClusterRecorder) -> None:
        """Until it has heard of everything: the newest object of each kind is a new one."""
        self._client.create(node("last", 4))
        self._client.create(deployment("last", 0, "100m"))
        self._pods.append("last")
        self._client.create(pod("last", "100m"))
        self._settle()
        deadline = Deadline(WallClock(), PATIENCE_S * SECOND)
        for gvk in (NODE, DEPLOYMENT, POD):
            found = self._client.list(gvk)
            newest = max(int(each["metadata"]["resourceVersion"]) for each in found)
            while recorder.reached.get(gvk.kind, 0) < newest:
                assert not deadline.is_over
                Flag().wait(0.05)

    def _chosen(self, among: Sequence[str]) -> str:
        return among[self._random.below(len(among))]

    def _settle(self) -> None:
        deadline = Deadline(WallClock(), PATIENCE_S * SECOND)
        wanted = sum(self._deployments.values()) + len(self._pods)
        while not self._is_settled(wanted):
            assert not deadline.is_over, "the world does not come to rest"

    def _is_settled(self, wanted: int) -> bool:
        pods = self._client.list(POD)
        running = [each for each in pods if (each.get("status") or {}).get("phase") == "Running"]
        return len(pods) == len(running) == wanted


@contextmanager
def recorded(url: str, out: Path, **more: Any) -> Iterator[ClusterRecorder]:
    """What happens meanwhile is recorded."""
    stop = Flag()
    failures: list[BaseException] = []
    recorder = ClusterRecorder(endpoint_at(url), RecordingWriter(out), WallClock(), **more)

    def work() -> None:
        try:
            recorder.record(None, stop.is_set)
        except BaseException as error:  # told on the thread of the test
            failures.append(error)

    thread = Thread(target=work)
    thread.start()
    try:
        deadline = Deadline(WallClock(), PATIENCE_S * SECOND)
        while not recorder.recorded.objects and thread.is_alive():
            assert not deadline.is_over
            thread.join(0.05)
        yield recorder
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


def replayed(folder: Path, file: str, seed: int) -> Run:
    length = survey(folder / file).length // SECOND + 60
    scenario = ScenarioBuilder("again").settings(snapshot=file, seed=seed)
    scenario.step(1).replay(file, id="day").advance(f"{length}s").step(2).done()
    return kubescene.run(scenario, folder=folder)


def places(pods: list[JsonObject]) -> Counter[tuple[str, str]]:
    """How many pods of each workload, or which bare pod, are on each node."""
    found: Counter[tuple[str, str]] = Counter()
    for each in pods:
        labels = each["metadata"]["labels"]
        name = each["metadata"]["name"] if labels["app"] == "bare" else labels["app"]
        found[name, each["spec"]["nodeName"]] += 1
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_what_random_clients_did_is_replayed_to_the_same_placements(
    tmp_path: Path, seed: int
) -> None:
    world = ClusterWorld(ClusterOptions(seed=seed), clock=WallClock())
    file = tmp_path / "day.jsonl.gz"
    with Server(world, port=0) as server, RandomClient(server.url, seed) as client:
        client.begin()
        with recorded(server.url, file) as recorder:
            for _ in range(30):
                client.act()
            client.wait_for(recorder)
        there = places(client.pods)
    run = replayed(tmp_path, file.name, seed)
    assert run.phase == "Succeeded", run.message
    (outcome,) = run.tables["outcomes"].rows
    assert (outcome.operation, outcome.state) == ("day", "Completed")
    here = places([*run.cluster.list("pods")])
    assert here == there
    found = agreement(open_run(run).ledger, [(file, "")])
    assert found.recorded == found.played == found.nodes > 10
    assert not found.apart


def test_the_command_ends_with_a_complete_file_when_it_is_interrupted(tmp_path: Path) -> None:
    out, kubeconfig = tmp_path / "day.jsonl.gz", tmp_path / "kubeconfig"
    with Server(ClusterWorld(clock=WallClock()), port=0) as server:
        kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(server.url)))
        with RandomClient(server.url, 3) as client:
            client.begin()
            arguments = ("record", "--kubeconfig", kubeconfig, "--out", out)
            with subprocess.Popen(
                [sys.executable, "-m", "kubescene", *map(str, arguments)],
                stdout=subprocess.PIPE,
                text=True,
            ) as process:
                deadline = Deadline(WallClock(), PATIENCE_S * SECOND)
                while not (out.exists() and out.stat().st_size):
                    assert not deadline.is_over
                    assert process.poll() is None
                client.act()
                process.send_signal(signal.SIGINT)
                told, _ = process.communicate()
    assert process.returncode == 0
    found = survey(out)
    assert f"{found.objects:,} objects, then {found.changes:,} changes" in told
    done = command("convert", out.name, "--out", "day.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = command("run", "day.yaml", "--compare-recorded", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Compared with the recording\n" in done.stdout
    assert "pods were placed there" in done.stdout


def test_nothing_but_get_is_sent(tmp_path: Path) -> None:
    with Server(ClusterWorld(clock=WallClock()), port=0) as server:
        writer = RecordingWriter(tmp_path / "day.jsonl")
        recorder = ClusterRecorder(endpoint_at(server.url), writer, WallClock())
        with pytest.raises(SnapshotError, match="a snapshot only reads"):
            recorder.client.create(pod("a", "1"))
        recorder.client.close()
        writer.abandon()


def test_a_cluster_that_cannot_be_reached_leaves_no_file(tmp_path: Path) -> None:
    out, kubeconfig = tmp_path / "day.jsonl.gz", tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(make_kubeconfig("http://127.0.0.1:1")))
    done = command("record", "--kubeconfig", kubeconfig, "--out", out)
    assert done.returncode == 2
    assert "Check that the API server runs" in done.stderr
    assert not out.exists()


def test_what_is_confidential_is_not_recorded_and_names_are_replaced(tmp_path: Path) -> None:
    secret = pod("payroll", "100m")
    secret["spec"]["containers"][0] |= {
        "command": ["run", "hunter2hunter2"],
        "env": [{"name": "TOKEN", "value": "hunter2hunter2"}],
    }
    files = {True: tmp_path / "anonymous.jsonl", False: tmp_path / "plain.jsonl"}
    for anonymous, file in files.items():
        world = ClusterWorld(clock=WallClock())
        with Server(world, port=0) as server, RandomClient(server.url, 1) as client:
            client.begin()
            key = b"0123456789abcdef" if anonymous else None
            with recorded(server.url, file, key=key) as recorder:
                client.create(secret)
                deadline = Deadline(WallClock(), PATIENCE_S * SECOND)
                while recorder.changes < 2:
                    assert not deadline.is_over
        text = file.read_text()
        assert "hunter2" not in text
        assert ("payroll" in text) is not anonymous
        run = replayed(tmp_path, file.name, 0)
        assert run.phase == "Succeeded", run.message
        (outcome,) = run.tables["outcomes"].rows
        assert "1 created" in outcome.message
        pods = run.cluster.list("pods")
        assert [bool(each["spec"].get("nodeName")) for each in pods] == [True] * 3
