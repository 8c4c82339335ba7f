"""Each form of histories is read, and replayed, from a small file that holds its traps."""

import gzip
from pathlib import Path

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubescene
from kubescene.clock import SECOND, parse_time
from kubescene.clock.clocks import DEFAULT_START
from kubescene.errors import SnapshotError
from kubescene.histories.history import RecordedEvent
from kubescene.histories.survey import survey
from kubescene.histories.table import history_at
from kubescene.runs import Run
from kubescene.scenario.build import ScenarioBuilder
from kubescene.types import JsonObject

SAMPLES = Path(__file__).parent / "samples"
FORMS = {
    "kss-record.jsonl": "kube-scheduler-simulator",
    "audit.log": "audit",
    "tiny.sktrace": "simkube",
    "kwok-recording.yaml": "kwok",
}


def node(name: str, cpu: str = "16") -> JsonObject:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }


def played(sample: str, duration: str, *, restored: bool = False) -> Run:
    scenario = ScenarioBuilder("again")
    if restored:
        scenario.settings(snapshot=sample)
    else:
        for name in ("shop", "jobs"):
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            scenario.step(1).create(space)
        scenario.create(node("n"))
    scenario.step(2).replay(sample, id="replay").advance(duration).step(3).done()
    return kubescene.run(scenario, folder=SAMPLES)


def names(run: Run, plural: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in run.cluster.list(plural))


def outcome(run: Run) -> str:
    assert run.phase == "Succeeded", run.message
    rows = run.tables["outcomes"].rows
    assert [each.state for each in rows if each.state == "Refused"] == []
    return str(rows[-1].message)


@pytest.mark.parametrize("sample", FORMS)
def test_a_form_is_known_by_its_beginning(sample: str) -> None:
    assert survey(SAMPLES / sample).form == FORMS[sample]


def test_the_simulators_record_begins_with_what_was_there() -> None:
    history = history_at(SAMPLES / "kss-record.jsonl")
    assert [each["kind"] for each in history.objects] == ["Namespace", "Node", "Pod"]
    changes = [*history.changes]
    events = [each.event for each in changes]
    assert events == [RecordedEvent.ADD, RecordedEvent.UPDATE, RecordedEvent.DELETE]
    assert changes[0].at == parse_time("2026-03-02T09:02:31.5Z")
    run = played("kss-record.jsonl", "20m", restored=True)
    # Two bare pods: one is created and placed by us, the other one is deleted.
    assert outcome(run) == "2 changes played, 1 created, 1 deleted"
    (pod,) = run.cluster.list("pods")
    assert (pod["metadata"]["name"], pod["spec"]["nodeName"]) == ("web-5d9c7-fghij", "n1")


def test_a_trace_of_simkube_is_played_on_nodes_that_are_given() -> None:
    found = survey(SAMPLES / "tiny.sktrace")
    assert (found.objects, found.changes, found.length) == (0, 5, 900 * SECOND)
    assert found.left_out == {"a lifecycle of pods that had not ended": 1}
    before = played("tiny.sktrace", "14m")
    assert len([each for each in names(before, "pods") if each.startswith("web-")]) == 5
    run = played("tiny.sktrace", "20m")
    assert "5 changes played, 1 changed, 3 created, 1 deleted" in outcome(run)
    assert names(run, "pods") == ["job-1", "job-2"]
    phases = {
        each["metadata"]["name"]: each["status"]["phase"] for each in run.cluster.list("pods")
    }
    assert phases == {"job-1": "Succeeded", "job-2": "Running"}


def test_the_twin_in_json_says_the_same(tmp_path: Path) -> None:
    trace = msgspec.msgpack.decode((SAMPLES / "tiny.sktrace").read_bytes())
    trace["pod_lifecycles"] = {
        f'["{kind}","{name}"]': {str(key): states for key, states in lists.items()}
        for (kind, name), lists in trace["pod_lifecycles"].items()
    }
    twin = tmp_path / "twin.sktrace.gz"
    twin.write_bytes(gzip.compress(orjson.dumps(trace)))
    there, here = history_at(SAMPLES / "tiny.sktrace"), history_at(twin)
    assert [each[:3] for each in here.changes] == [each[:3] for each in there.changes]


def test_kwoks_patches_are_merged_with_what_was_there() -> None:
    history = history_at(SAMPLES / "kwok-recording.yaml")
    assert [each["metadata"]["name"] for each in history.objects] == ["node0"]
    changes = [*history.changes]
    assert [each.at - DEFAULT_START for each in changes] == [
        1_500_000_000,
        1_620_000_000,
        61_500_000_000,
    ]
    assert changes[1].object["spec"]["nodeName"] == "node0"
    assert changes[1].object["spec"]["containers"] == changes[0].object["spec"]["containers"]
    run = played("kwok-recording.yaml", "30s", restored=True)
    assert names(run, "pods") == ["pod0"]
    run = played("kwok-recording.yaml", "2m", restored=True)
    assert outcome(run) == "2 changes played, 1 created, 1 deleted"
    assert names(run, "pods") == []


def test_of_an_audit_log_intents_are_played() -> None:
    half = played("audit.log", "30m")
    assert [each["spec"]["replicas"] for each in half.cluster.list("deployments")] == [5]
    assert len(names(half, "pods")) == 5
    found = survey(SAMPLES / "audit.log")
    assert found.left_out == {"a binding that does not say where to": 1}
    run = played("audit.log", "2h")
    assert "3 changes played, 1 changed, 1 created, 1 deleted" in outcome(run)
    assert names(run, "pods") == []


def test_an_audit_event_in_an_envelope_is_found(tmp_path: Path) -> None:
    lines = (SAMPLES / "audit.log").read_bytes().splitlines()
    wrapped = [
        orjson.dumps({"insertId": "1", "protoPayload": {"line": line.decode()}})
        for line in lines[:2]
    ]
    items = {
        "kind": "EventList",
        "apiVersion": "audit.k8s.io/v1",
        "items": [*map(orjson.loads, lines[2:])],
    }
    file = tmp_path / "wrapped.log"
    file.write_bytes(b"\n".join([*wrapped, orjson.dumps(items)]) + b"\n")
    there = [each[:3] for each in history_at(SAMPLES / "audit.log").changes]
    assert [each[:3] for each in history_at(file, "audit").changes] == there


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stage": "RequestReceived"}, "it was not complete"),
        ({"responseStatus": {"code": 409}}, "it was refused"),
        ({"requestURI": "/apis/x?dryRun=All"}, "it was a dry run"),
        ({"user": {"username": "system:node:n1"}}, "a controller asked for it, as it does here"),
        (
            {"user": {"username": "system:serviceaccount:kube-system:replicaset-controller"}},
            "a controller asked for it, as it does here",
        ),
        ({"objectRef": {"resource": "secrets", "apiVersion": "v1"}}, "secrets are never read"),
        (
            {"verb": "patch", "responseObject": None},
            "patch: what a patch came to is not recorded at this level",
        ),
        (
            {"responseObject": "skipped-too-big-size-object"},
            "create: the object is not recorded at this level",
        ),
    ],
)
def test_what_of_an_audit_log_changes_nothing_is_counted(
    tmp_path: Path, change: JsonObject, why: str
) -> None:
    event = orjson.loads((SAMPLES / "audit.log").read_bytes().splitlines()[0])
    file = tmp_path / "one.log"
    file.write_bytes(orjson.dumps(event | change) + b"\n")
    found = survey(file)
    assert (found.changes, found.left_out) == (0, {why: 1})


@pytest.mark.parametrize("sample", FORMS)
@given(data=st.data())
def test_whatever_is_done_to_a_file_is_read_or_refused_with_its_place(
    sample: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = bytearray((SAMPLES / sample).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(("cut", "flip", "drop", "twice"))):
            case "cut":
                del text[max(at, 1) :]
            case "flip":
                text[at] ^= 1 << data.draw(st.integers(0, 7))
            case "drop":
                del text[at : at + 40]
            case _:
                text[at:at] = text[at : at + 60]
        if not text:
            return
    file = tmp_path_factory.mktemp("damaged") / "file"
    file.write_bytes(text)
    said = ""
    try:
        survey(file, FORMS[sample])
    except SnapshotError as error:
        said = str(error)
    assert not said or str(file) in said
