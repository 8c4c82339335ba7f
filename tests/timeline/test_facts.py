"""Facts are an open set: a package adds its own, and a reader passes on what it does not know."""

import pickle
from pathlib import Path

import msgspec
import pytest

import kubescene
from kubescene.actors import ENGINE, Actor, Component, Role
from kubescene.api.scheme import GroupResource
from kubescene.clock import ScenarioStep, VirtualClock
from kubescene.errors import ConfigurationError
from kubescene.results import summarize
from kubescene.scenario import ScenarioBuilder
from kubescene.store import Store
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.timeline import (
    CustomFact,
    Fact,
    PodPreempted,
    Preemption,
    Timeline,
    TimelineLog,
    TimelineRecorder,
)
from kubescene.timeline.facts import LineWriter
from kubescene.timeline.files import Header, TimelineWriter
from kubescene.timeline.log import from_lines
from run_directories import read_log, read_summary

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/scenario.yaml"))


class ReplicasRecommended(Fact, frozen=True, kw_only=True):
    """A fact of another package."""

    target: str
    replicas: int
    limited_by: str = ""


def lines_of(log: TimelineLog) -> list[bytes]:
    writer = LineWriter()
    return [writer.line(fact) for fact in log]


def recommended() -> TimelineRecorder:
    recorder = TimelineRecorder(VirtualClock(), role_of=lambda _: Role.SIMULATION)
    hpa = Actor("hpa", Component.CONTROLLER, inside=True)
    recorder.record(ReplicasRecommended, hpa, target="web", replicas=3, limited_by="policy")
    return recorder


def test_a_package_adds_a_kind_by_subclassing() -> None:
    log = recommended().log
    (line,) = lines_of(log)
    assert line == (
        b'{"fact":"ReplicasRecommended","id":"@0.0-1","step":[0,0],"time":1767225600000000000,'
        b'"actor":"hpa","role":"simulation","target":"web","replicas":3,"limitedBy":"policy"}'
    )
    (fact,) = from_lines([line])
    assert isinstance(fact, ReplicasRecommended)
    assert (fact.replicas, fact.limited_by, fact.step) == (3, "policy", ScenarioStep(0, 0))


def test_a_name_is_taken_once() -> None:
    with pytest.raises(TypeError, match="there is a fact called Done already"):
        type("Done", (Fact,), {}, frozen=True)


def test_an_unknown_kind_is_kept_and_passed_on_byte_for_byte() -> None:
    (known,) = lines_of(recommended().log)
    strange = known.replace(b"ReplicasRecommended", b"PortalOpened").replace(b":3", b": 3.50")
    log = from_lines([strange, known])
    fact = log[0]
    assert isinstance(fact, CustomFact)
    assert (fact.kind, fact.actor, fact.role) == ("PortalOpened", "hpa", Role.SIMULATION)
    assert lines_of(log) == [strange, known]
    assert list(Timeline(log)) == []


def test_a_summary_counts_what_it_knows() -> None:
    summary = summarize(recommended().log, scenario="s")
    assert (summary.events, summary.steps) == (0, [])


# -- on disk -----------------------------------------------------------------------------------

WAITING = (
    ScenarioBuilder("waiting")
    .create(make_node("n-$(INDEX)").cpu("1"), count=3)
    .create(make_deployment("web").replicas(2).template(make_pod("x").cpu("500m")))
    .create(make_pod("a").cpu("2"))
    .step(2)
    .create(make_node("m").cpu("1"))
    .step(3)
    .create(make_node("big").cpu("4"))
    .patch("v1", "Node", "n-0", {"metadata": {"labels": {"a": "b"}}})
    .delete("v1", "Node", "n-1")
    .advance("2m")
    .done()
)


@pytest.mark.parametrize(
    "scenario", [*EXAMPLES, WAITING], ids=[*(p.parent.name for p in EXAMPLES), "waiting"]
)
def test_a_log_on_disk_tells_what_the_one_in_memory_tells(
    scenario: Path | ScenarioBuilder, tmp_path: Path
) -> None:
    run = kubescene.run(scenario, out=tmp_path)
    log = read_log(tmp_path)
    assert list(Timeline(log).lines) == list(run.timeline.lines)
    folded = summarize(run.log, scenario=log.header.scenario, seed=run.summary.seed)
    assert read_summary(tmp_path) == run.summary == folded
    head, *lines, end = (tmp_path / "timeline.jsonl").read_bytes().split(b"\n")
    assert end == b""
    assert lines == lines_of(log) == lines_of(run.log)
    assert msgspec.json.decode(head) == {
        "schema": "kubescene.dev/timeline",
        "version": 1,
        "kubescene": kubescene.__version__,
        "scenario": log.header.scenario,
        "seed": run.summary.seed,
    }


def test_a_placement_holds_the_pod_once_and_the_template_once(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").settings(seed=7).create(make_node("n").cpu("9"))
    scenario.create(make_pod("p-$(INDEX)").labels({"note": "template-text"}), count=4, id="pods")
    kubescene.run(scenario, out=tmp_path)
    lines = (tmp_path / "timeline.jsonl").read_bytes().splitlines()
    scheduled = [line for line in lines if line.startswith(b'{"fact":"PodScheduled"')]
    assert len(scheduled) == 4
    assert all(b"template-text" not in line and b'"objectOf":' in line for line in scheduled)
    asked = [line for line in lines if b'"operation":' in line and b"$(INDEX)" in line]
    assert len(asked) == 1
    assert read_log(tmp_path).header.seed == 7


def test_a_file_is_followed_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    facts = list(kubescene.run(WAITING).log)
    with path.open("wb", buffering=0) as file:
        writer = TimelineWriter(file, Header(scenario="s"))
        log = TimelineLog.open(path)
        assert (len(log), log.header.scenario) == (0, "s")
        for count, fact in enumerate(facts, 1):
            writer.write(fact)
            assert log.refresh() == 1
            assert (log[-1].id, len(log)) == (fact.id, count)
    assert log.refresh() == 0


def test_a_line_that_is_half_written_is_not_there_yet(tmp_path: Path) -> None:
    kubescene.run(WAITING, out=tmp_path)
    path = tmp_path / "timeline.jsonl"
    whole = path.read_bytes()
    end = whole.index(b"\n", len(whole) // 2) + 1
    path.write_bytes(whole[: end + 40])
    log = TimelineLog.open(path)
    assert len(log) == whole[:end].count(b"\n") - 1
    path.write_bytes(whole)
    log.refresh()
    assert len(log) == whole.count(b"\n") - 1


def test_a_file_that_was_written_anew_is_not_read_on(tmp_path: Path) -> None:
    kubescene.run(WAITING, out=tmp_path)
    log = read_log(tmp_path)
    kubescene.run(ScenarioBuilder("s"), out=tmp_path)
    with pytest.raises(ConfigurationError, match="written anew"):
        log.refresh()


def test_a_log_goes_to_another_process_as_its_lines() -> None:
    log = kubescene.run(WAITING).log
    copy = pickle.loads(pickle.dumps(log))
    assert lines_of(copy) == lines_of(log)
    assert list(Timeline(copy).lines) == list(Timeline(log).lines)


def test_an_empty_file_is_a_log_that_has_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(b"")
    assert len(TimelineLog.open(path)) == 0


DAMAGE = [
    pytest.param(2, b"{", "truncated", id="cut"),
    pytest.param(2, b"\xff\xfe\x00", "", id="binary"),
    pytest.param(2, b"null", "object", id="no object"),
    pytest.param(2, b'{"fact":"Done"}', "id", id="no envelope"),
    pytest.param(2, b'{"fact":"PortalOpened"}', "id", id="no envelope of an unknown kind"),
    pytest.param(3, b'{"fact":"ObjectCreated","id":"x","step":[1]}', "step", id="bad step"),
    pytest.param(1, b"{}", "no timeline", id="no schema"),
    pytest.param(1, b'{"id":"op-1","step":{"major":1}}', "no timeline", id="older format"),
    pytest.param(
        1,
        b'{"schema":"kubescene.dev/timeline","version":2,"kubescene":"9.9"}',
        "version 2",
        id="newer",
    ),
]


@pytest.mark.parametrize(("number", "line", "fault"), DAMAGE)
def test_a_damaged_line_is_named(tmp_path: Path, number: int, line: bytes, fault: str) -> None:
    kubescene.run(WAITING, out=tmp_path)
    path = tmp_path / "timeline.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ConfigurationError, match=rf"timeline\.jsonl, line {number}: .*{fault}"):
        TimelineLog.open(path)


def test_a_reference_to_nothing_is_named(tmp_path: Path) -> None:
    kubescene.run(WAITING, out=tmp_path)
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"operationOf":0', b'"operationOf":99', 1))
    with pytest.raises(ConfigurationError, match=r"line 3: it refers to fact 99"):
        TimelineLog.open(path)


def test_a_missing_file_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name the --out directory of a run"):
        read_log(tmp_path)


# -- preemption --------------------------------------------------------------------------------


def test_a_preemption_is_told_with_where_the_pod_was(tmp_path: Path) -> None:
    obj = make_pod("victim").on("n").build()
    pod = Store().put(
        GroupResource("", "pods"), {**obj, "metadata": {**obj["metadata"], "uid": "u"}}, expected=0
    )
    recorder = TimelineRecorder(VirtualClock())
    recorder.pod_preempted(Preemption(ENGINE, pod, "default/important"))
    log = from_lines(lines_of(recorder.log))
    assert isinstance(log[0], PodPreempted)
    (event,) = Timeline(log)
    assert event == Timeline(recorder.log)[0]
    result = event["podPreempted"]
    assert (result["boundTo"], result["preemptedBy"]) == ("n", "default/important")
    assert result["preemptedAt"] == {"major": 0, "minor": 0}
