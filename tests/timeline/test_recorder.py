"""A recorder that fails stops the run: a run without its record is worth nothing."""

from pathlib import Path

import orjson
import pytest

import kubescene
from kubescene.api.records.parts import Composite
from kubescene.clock import ScenarioStep
from kubescene.cluster import ClusterWorld
from kubescene.errors import ConfigurationError, RecorderError
from kubescene.scenario import Engine, ScenarioBuilder, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_node, make_pod
from kubescene.timeline import (
    Fact,
    Instrument,
    Instruments,
    ObjectWrite,
    SchedulingAttempt,
    Timeline,
    TimelineRecorder,
)

SCENARIO = (
    ScenarioBuilder("s")
    .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
    .step(2)
    .create(make_pod("b").cpu("1"))
)


class Disk:
    """Takes so many facts, then it is full."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.kept: list[Fact] = []

    def write(self, fact: Fact) -> None:
        if len(self.kept) == self.room:
            raise OSError(28, "No space left on device")
        self.kept.append(fact)


def play_until(broken_at: int) -> tuple[ClusterWorld, Engine, list[Fact]]:
    """Play with a disk that is full when the fact of that number comes."""
    cluster = ClusterWorld()
    disk = Disk(broken_at)
    recorder = TimelineRecorder(cluster.clock)
    recorder.log.follow(disk.write)
    cluster.observe(recorder)
    cluster.create(SCENARIO)
    (record,) = cluster.store.list(cluster.scheme.resolve("scenarios").group_resource)
    engine = Engine(cluster, ScenarioResource(cluster.store, record), recorder)
    engine.run()
    return cluster, engine, disk.kept


@pytest.mark.parametrize(
    ("broken_at", "step"),
    [
        pytest.param(0, "1.0", id="an operation"),
        pytest.param(2, "1.1", id="a bind"),
        pytest.param(3, "1.1", id="an attempt"),
    ],
)
def test_a_full_disk_fails_the_run_where_it_happened(broken_at: int, step: str) -> None:
    cluster, engine, kept = play_until(broken_at)
    assert engine.scenario.phase is ScenarioPhase.FAILED
    assert not engine.bad_input
    message = engine.scenario.message
    assert f"the timeline could not be written at step {step}" in message
    assert "No space left on device" in message
    assert len(kept) == broken_at
    assert "b" not in [pod["metadata"]["name"] for pod in cluster.list("pods")]


def test_a_full_disk_under_the_output_directory_is_an_error(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "timeline.jsonl").symlink_to("/dev/full")
    with pytest.raises(RecorderError, match="could not be written"):
        kubescene.run(SCENARIO, out=out)
    # Its presence would mean a complete run.
    assert not (out / "summary.json").exists()


class Broken(Instrument):
    def object_written(self, write: ObjectWrite) -> None:
        raise RuntimeError(f"cannot follow {write.gvk.kind}")


def test_an_error_in_an_instrument_ends_the_run() -> None:
    with pytest.raises(RuntimeError, match="cannot follow"):
        kubescene.run(SCENARIO, instruments=[Broken()])


def test_only_overridden_hooks_are_called() -> None:
    broken = Broken()
    instruments = Instruments(Instrument(), broken)
    assert instruments.object_written == (broken.object_written,)
    assert instruments.phase_changed == ()


class Listener(Instrument):
    """Notes the pods that schedulers attempted, and whether they explained it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bool]] = []

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self.heard.append((attempt.pod.name, attempt.explanation is not None))


def test_instruments_come_and_go_while_the_world_runs() -> None:
    cluster, listener = ClusterWorld(), Listener()
    cluster.create(make_node("n").cpu("4"))
    cluster.create(make_pod("before"))
    cluster.settle()
    cluster.observe(listener)
    cluster.create(make_pod("meanwhile"))
    cluster.settle()
    cluster.instruments.detach(listener)
    cluster.create(make_pod("after"))
    cluster.settle()
    assert [pod["spec"]["nodeName"] for pod in cluster.list("pods")] == ["n"] * 3
    assert listener.heard == [("meanwhile", True)]
    assert cluster.instruments.pod_attempted == ()


def test_an_instrument_is_attached_once() -> None:
    listener = Listener()
    instruments = Instruments(listener)
    with pytest.raises(ConfigurationError, match="is attached already"):
        instruments.attach(listener)
    instruments.detach(listener, Listener())
    instruments.attach(listener)
    assert instruments.pod_attempted == (listener.pod_attempted,)


class Once(Instrument):
    """Leaves after the first step."""

    def __init__(self) -> None:
        self.calls = 0
        self.instruments = Instruments()

    def step_finished(self, step: ScenarioStep) -> None:
        self.calls += 1
        self.instruments.detach(self)


def test_an_instrument_may_leave_from_within_a_hook() -> None:
    first, second = Once(), Once()
    first.instruments = second.instruments = instruments = Instruments(first, second)
    for _ in range(2):
        for hook in instruments.step_finished:
            hook(ScenarioStep(1, 0))
    assert (first.calls, second.calls) == (1, 1)


def test_what_a_writer_sent_is_told_as_it_was_then() -> None:
    cluster = ClusterWorld()
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    cluster.create(make_node("n"))
    patch = {"metadata": {"labels": {"a": "1"}}}
    for value in "12":
        patch["metadata"]["labels"]["a"] = value
        cluster.patch("nodes", "n", patch)
    patch.clear()
    told = [event["patch"]["operation"]["patch"] for event in list(Timeline(recorder.log))[1:]]
    assert told == ['{"metadata":{"labels":{"a":"1"}}}', '{"metadata":{"labels":{"a":"2"}}}']


def test_every_decoded_object_is_as_it_was_stored_after_a_run() -> None:
    # Objects are handed out shared and read-only: whoever changed one would be seen here.
    store = kubescene.run(SCENARIO).cluster.store
    changes = store.history.since(store.history.compacted)
    assert len(changes) > 15
    for change in changes:
        payload = change.record.payload
        outline = orjson.loads(payload.outline) if isinstance(payload, Composite) else None
        assert change.object == (outline or change.record.decode())
