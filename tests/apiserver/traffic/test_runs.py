"""``POST /run`` and the history of runs, over real sockets."""

import json
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import process_time
from typing import Any

import numpy as np
import pytest

from apiserver.http import PODS, Http
from kubescene.apiserver.server import Server
from kubescene.apiserver.traffic import runs as traffic_runs
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.clock import SECOND
from kubescene.errors import RunStoreError
from kubescene.flows.fields import ArrivalPattern, Pattern, StepTraffic
from kubescene.flows.units import TrafficDuration
from kubescene.runs.catalogue import TRAFFIC_FILE
from kubescene.traffic import TrafficResult, TrafficSpec, run
from kubescene.traffic.runs import simulated
from kubescene.traffic.skenario import replies
from kubescene.traffic.skenario.requests import (
    FORM_PLUGINS,
    SkenarioRequest,
    read_request,
    run_requested,
)
from kubescene.traffic.skenario.series import (
    cpu_utilizations,
    levels,
    requests_per_second,
    response_times,
    tally_lines,
)
from kubescene.traffic.spec.loading import to_object
from kubescene.traffic.store import RunStore
from stopping import Retire

RAMP = {
    "run_for": 180 * SECOND,
    "traffic_pattern": "ramp",
    "ramp_config": {"delta_v": 1, "max_rps": 20},
    "plugins": {},
}
LONG = {
    "run_for": 40_000 * SECOND,
    "traffic_pattern": "step",
    "step_config": {"rps": 100, "step_after": 0},
    "request_cpu_time_millis": 5,
    "plugins": {},
    "initial_number_of_replicas": 2,
}
"""Four million requests: several seconds of simulating."""


@pytest.fixture
def kept(tmp_path: Path, retire: Retire) -> Iterator[Server]:
    """A server with a store of its own."""
    running = Server(port=0, controllers=False, traffic=TrafficPages(tmp_path, at_once=1))
    running.start()
    yield running
    retire(running)


@pytest.fixture
def client(kept: Server) -> Iterator[Http]:
    opened = Http(kept.host, kept.port)
    yield opened
    opened.close()


def test_8_3_the_reply_has_skenarios_fields_and_units(http: Http) -> None:
    reply = http.post("/run", RAMP)
    assert reply.status == 200
    assert reply.all("content-type") == ["application/json"]
    assert list(reply.json) == [
        "ran_for",
        "traffic_pattern",
        "tally_lines",
        "response_times",
        "requests_per_second",
        "cpu_utilizations",
    ]
    assert reply.json["ran_for"] == 180 * SECOND
    assert reply.json["traffic_pattern"] == "ramp"
    # Ramp 1 to 20: each second one more, the highest twice, then down to nothing.
    expected = [*range(1, 21), *range(20, 0, -1)]
    assert [each["requests"] for each in reply.json["requests_per_second"]] == expected
    assert len(reply.json["response_times"]) == sum(expected)
    assert {"arrived_at", "completed_at", "response_time"} == set(reply.json["response_times"][0])


@pytest.mark.parametrize("mode", ["fixed", "faithful"])
def test_the_reply_is_made_of_the_series_of_the_run(http: Http, mode: str) -> None:
    reply = http.post("/run", {**RAMP, "mode": mode}).json
    spec = {
        "mode": mode,
        "traffic": {"pattern": "ramp", "ramp": {"deltaV": 1.0, "maxRps": 20}},
    }
    document = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "TrafficRun",
        "metadata": {"name": "same"},
        "spec": spec,
    }
    result = run(document)
    for name, rows in (
        ("tally_lines", tally_lines(result)),
        ("response_times", response_times(result)),
        ("requests_per_second", requests_per_second(result)),
        ("cpu_utilizations", cpu_utilizations(result)),
    ):
        assert reply[name] == [each._asdict() for each in rows], name


def test_levels_of_more_than_four_digits_are_told_as_well() -> None:
    crowd = TrafficSpec(
        duration=TrafficDuration(12 * SECOND),
        traffic=ArrivalPattern(
            pattern=Pattern.STEP, step=StepTraffic(rps=1200, after=TrafficDuration(0))
        ),
    )
    result = run(crowd)
    lines = tally_lines(result)
    assert max(each.tally for each in lines) > 9999
    told = json.loads(b"".join(replies.reply(result)))["tally_lines"]
    assert told == [each._asdict() for each in lines]


def test_8_2_an_empty_body_is_the_form(http: Http) -> None:
    reply = http.post("/run", {})
    assert reply.status == 200
    assert reply.json["ran_for"] == 180 * SECOND
    assert len(reply.json["response_times"]) == 1700
    configuration = http.get(reply.all("location")[0]).json["run"]["spec"]
    assert [each["type"] for each in configuration["autoscalers"]] == [
        "hpa.v2beta2.autoscaling.k8s.io",
        "vpa.v1.autoscaling.k8s.io",
    ]
    kept = {key: value for key, value in configuration.items() if key != "autoscalers"}
    form = run(TrafficSpec()).spec
    assert kept["replicas"]["launchDelay"] == str(form.replicas.launch_delay)
    assert kept["request"]["timeout"] == "10s"


def test_a_run_without_requests_has_empty_series(http: Http) -> None:
    body = {
        "traffic_pattern": "golang_rand_uniform",
        "uniform_config": {"number_of_requests": 0},
        "plugins": {},
    }
    reply = http.post("/run", body).json
    assert reply["traffic_pattern"] == "golang_rand_uniform"
    assert reply["response_times"] == reply["requests_per_second"] == []


def test_10_2_12_the_forms_uniform_pattern_needs_no_more_than_a_number(http: Http) -> None:
    body = {
        "traffic_pattern": "golang_rand_uniform",
        "uniform_config": {"number_of_requests": 100},
        "plugins": {},
    }
    counted = http.post("/run", body).json["requests_per_second"]
    assert sum(each["requests"] for each in counted) == 100
    assert counted[-1]["second"] > 150


def test_10_2_13_a_ramp_ends_with_the_run(http: Http) -> None:
    ramp = {"delta_v": 1, "max_rps": 1_000_000}
    reply = http.post("/run", {**RAMP, "run_for": 10 * SECOND, "ramp_config": ramp})
    assert [each["requests"] for each in reply.json["requests_per_second"]] == list(range(1, 11))


def test_10_2_15_of_two_autoscalers_one_may_be_chosen(http: Http) -> None:
    for kind, text in FORM_PLUGINS.items():
        reply = http.post("/run", {"plugins": {kind: text}})
        assert reply.status == 200
        [chosen] = http.get(reply.all("location")[0]).json["run"]["spec"]["autoscalers"]
        assert chosen["type"] == kind


def test_the_uniform_pattern_begins_at_an_instant(http: Http) -> None:
    uniform = {"number_of_requests": 50, "start_at": "1970-01-01T00:01:00Z", "run_for": SECOND}
    body = {"traffic_pattern": "golang_rand_uniform", "uniform_config": uniform, "plugins": {}}
    assert http.post("/run", body).json["requests_per_second"] == [{"second": 60, "requests": 50}]


BAD: list[tuple[Any, str]] = [
    (b"", "the body is not valid JSON"),
    (b"{", "the body is not valid JSON"),
    (b'{"run_for": NaN}', "the body is not valid JSON"),
    (b'{"seed": 1, "seed": 2}', "is given twice"),
    ([], "the body must be a JSON object"),
    ({"run_for": 0}, "run_for: "),
    ({"run_for": -1}, "run_for: "),
    ({"run_for": 1.5}, "run_for: "),
    ({"run_for": "180"}, "run_for: "),
    ({"run_for": 32 * 24 * 3600 * SECOND}, "run_for: "),
    ({"run_for": 10**30}, "run_for"),
    ({"tick_interval": 0}, "tick_interval: "),
    ({"tick_interval": 1}, "tick_interval: "),
    ({"traffic_pattern": ""}, "traffic_pattern: there is no pattern ''"),
    ({"traffic_pattern": "waves"}, "traffic_pattern: "),
    ({"initial_number_of_replicas": -1}, "initial_number_of_replicas: "),
    ({"initial_number_of_replicas": 10**9}, "initial_number_of_replicas: "),
    ({"launch_delay": -1}, "launch_delay: "),
    ({"terminate_delay": -1}, "terminate_delay: "),
    ({"request_timeout_nanos": -1}, "request_timeout_nanos: "),
    ({"request_cpu_time_millis": -1}, "request_cpu_time_millis: "),
    ({"request_cpu_time_millis": 10**12}, "request_cpu_time_millis: "),
    ({"request_io_time_millis": 10**18}, "request_io_time_millis: "),
    ({"step_config": {"rps": -1}}, "step_config.rps: "),
    ({"step_config": {"step_after": -1}}, "step_config.step_after: "),
    ({"step_config": {"after": 1}}, "step_config"),
    ({"traffic_pattern": "ramp", "ramp_config": {"delta_v": 0}}, "ramp_config.delta_v: "),
    ({"traffic_pattern": "ramp", "ramp_config": {"max_rps": -1}}, "ramp_config.max_rps: "),
    (
        {"traffic_pattern": "sinusoidal", "sinusoidal_config": {"period": 0}},
        "sinusoidal_config.period: ",
    ),
    (
        {"traffic_pattern": "golang_rand_uniform", "uniform_config": {"start_at": "soon"}},
        "uniform_config.start_at: ",
    ),
    ({"request_io_time_millis": -1}, "request_io_time_millis: "),
    ({"request_timeout_nanos": 2**70}, "request_timeout_nanos"),
    ({"launch_delay": 0.5}, "launch_delay: "),
    ({"in_memory_database": "yes"}, "in_memory_database: "),
    ({"initial_number_of_replicas": 1.5}, "initial_number_of_replicas: "),
    ({"step_config": {"rps": 1.5}}, "step_config.rps: "),
    ({"step_config": None}, "step_config: "),
    (
        {"traffic_pattern": "sinusoidal", "sinusoidal_config": {"amplitude": -1}},
        "sinusoidal_config.amplitude: ",
    ),
    (
        {"traffic_pattern": "golang_rand_uniform", "uniform_config": {"number_of_requests": -1}},
        "uniform_config.number_of_requests: ",
    ),
    (
        {"traffic_pattern": "golang_rand_uniform", "uniform_config": {"run_for": 0}},
        "uniform_config.run_for: ",
    ),
    (
        {"traffic_pattern": "golang_rand_uniform", "uniform_config": {"run_for": 2**63}},
        "uniform_config.run_for: must fit into 64 bits",
    ),
    ({"plugins": {"hpa.v2beta2.autoscaling.k8s.io": 7}}, "plugins"),
    ({"step_config": {"rps": 1_000_000}}, "more than the 5000000 that this server simulates"),
    ({"plugins": {"nobody.example.com": "{}"}}, "plugins"),
    ({"plugins": {"hpa.v2beta2.autoscaling.k8s.io": "a: ["}}, "plugins['hpa.v2beta2"),
    ({"plugins": {"hpa.v2beta2.autoscaling.k8s.io": "spec: {}"}}, "plugins['hpa.v2beta2"),
    ({"plugins": []}, "plugins: "),
    ({"mode": "quick"}, "mode: "),
    ({"seed": 2**70}, "seed"),
    ({"autoscaler": "os:system"}, "autoscaler"),
]


@pytest.mark.parametrize(("body", "told"), BAD, ids=[str(index) for index in range(len(BAD))])
def test_8_4_bad_input_is_refused_with_its_field(http: Http, body: Any, told: str) -> None:
    reply = http.post("/run", body)
    assert reply.status == 400, reply.body[:500]
    assert told in reply.message
    assert not [each for each in http.get("/runs").json["runs"] if each["phase"] == "Succeeded"]


NONSENSE: tuple[Any, ...] = (
    0,
    -1,
    1.5,
    1e300,
    2**62,
    2**63,
    2**64,
    True,
    None,
    "",
    "abc",
    [],
    {},
    {"a": 1},
    [1],
)


@pytest.mark.parametrize("part", ["", "uniform_config", "ramp_config", "sinusoidal_config"])
def test_8_4_whatever_stands_in_a_field_is_answered(http: Http, part: str) -> None:
    """A run, or a message that names the field."""
    patterns = {"uniform_config": "golang_rand_uniform", "": "step"}
    pattern = patterns.get(part, part.removesuffix("_config"))
    config = getattr(SkenarioRequest(), part) if part else SkenarioRequest()
    for name in config.__struct_fields__:
        for value in NONSENSE:
            body: dict[str, Any] = {"run_for": 20 * SECOND, "traffic_pattern": pattern}
            body |= {part: {name: value}} if part else {name: value}
            reply = http.post("/run", body)
            assert reply.status in (200, 400), (name, value, reply.body[:500])
            assert reply.status == 200 or (part or name) in reply.message, (name, value)


def test_other_methods_and_types_are_refused(http: Http) -> None:
    assert http.get("/run").status == 405
    assert http.post("/runs", {}).status == 405
    assert http.get("/runs/1/repeat").status == 405
    assert http.request("POST", "/run", b"a: 1", content_type="application/yaml").status == 415
    assert http.get("/runs/none").status == 404
    assert http.get("/runs/7").status == 404
    assert http.post("/runs/7/repeat", {}).status == 404
    assert http.get("/runs/7/other").status == 404
    assert http.get("/runs?limit=0").status == 400


def test_a_run_repeated_by_id_gives_the_same_bytes(client: Http) -> None:
    body = {**RAMP, "seed": 7, "plugins": {}}
    first = client.post("/run", body)
    other = client.post("/run", {**body, "seed": 8})
    again = client.post("/runs/1/repeat", {})
    assert first.all("location") == ["/runs/1"]
    assert again.all("location") == ["/runs/3"]
    assert again.body == first.body != other.body
    shown = client.get("/runs/3").json
    assert (shown["repeats"], shown["seed"], shown["phase"]) == (1, 7, "Succeeded")
    assert shown["run"] == client.get("/runs/1").json["run"]


def test_the_series_of_a_kept_run_are_what_was_answered(client: Http) -> None:
    first = client.post("/run", {**RAMP, "seed": 7})
    assert client.get("/runs/1/series").body == first.body
    assert client.get("/runs/2/series").status == 404
    assert client.post("/runs/1/series", {}).status == 405
    assert client.post("/run", {**RAMP, "mode": "faithful"}).status == 200
    faithful = client.get("/runs/2/series")
    assert (faithful.status, "POST /runs/2/repeat" in faithful.message) == (409, True)


def test_a_run_that_has_not_ended_has_no_series(kept: Server, client: Http, tmp_path: Path) -> None:
    store = RunStore(tmp_path / TRAFFIC_FILE)
    id = store.begin(run_requested(read_request(RAMP)))
    reply = client.get(f"/runs/{id}/series")
    assert (reply.status, "has no result: Running" in reply.message) == (409, True)
    store.close()


def test_the_history_is_paged_and_outlives_the_server(tmp_path: Path) -> None:
    with Server(port=0, controllers=False, traffic=TrafficPages(tmp_path)) as server:
        http = Http(server.host, server.port)
        for seed in range(3):
            assert http.post("/run", {**RAMP, "seed": seed}).status == 200
        http.close()
    with Server(port=0, controllers=False, traffic=TrafficPages(tmp_path)) as server:
        http = Http(server.host, server.port)
        page = http.get("/runs?limit=2").json
        assert [each["id"] for each in page["runs"]] == [3, 2]
        last = http.get(f"/runs?limit=2&before={page['before']}").json
        assert ([each["id"] for each in last["runs"]], last["before"]) == ([1], None)
        assert last["runs"][0]["summary"]["requests"] == 420
        http.close()


def pause() -> None:
    """Let others have their turn."""
    Event().wait(0.01)


def test_a_store_that_others_hold_is_no_fault_of_the_client(
    client: Http, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubescene.traffic.store.PATIENCE_S", 0.1)
    assert client.post("/run", RAMP).status == 200
    other = sqlite3.connect(tmp_path / TRAFFIC_FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    refused = [client.post("/run", RAMP), client.get("/runs"), client.post("/runs/1/repeat", {})]
    other.execute("ROLLBACK")
    other.close()
    for reply in refused:
        assert (reply.status, reply.json["reason"]) == (500, "InternalError")
        assert f"{TRAFFIC_FILE}: others have been writing for more than" in reply.message
    assert client.post("/run", RAMP).status == 200
    assert [each["id"] for each in client.get("/runs").json["runs"]] == [2, 1]


def test_in_a_file_a_run_is_kept_before_it_is_answered(client: Http, tmp_path: Path) -> None:
    assert client.post("/run", RAMP).status == 200
    store = RunStore(tmp_path / TRAFFIC_FILE)
    assert (store.get(1).phase, store.result(1).requests.count) == ("Succeeded", 420)
    store.close()


def test_in_memory_the_history_waits_for_what_is_being_written(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, end = Event(), RunStore.end

    def end_late(store: RunStore, id: int, result: TrafficResult) -> None:
        gate.wait()
        end(store, id, result)

    monkeypatch.setattr(RunStore, "end", end_late)
    answered = http.post("/run", RAMP)
    assert answered.status == 200
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(http.get, f"{answered.all('location')[0]}/series")
        pause()
        gate.set()
    assert asked.result().body == answered.body
    assert http.get("/runs").json["runs"][0]["phase"] == "Succeeded"


def test_a_run_that_ended_after_its_client_had_left_is_kept_as_well(
    server: Server, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gone = Event(), Event()

    def unstoppable(*run: Any, cancelled: object) -> TrafficResult:
        begun.set()
        gone.wait()
        return simulated(*run)

    monkeypatch.setattr(traffic_runs, "simulated", unstoppable)
    monkeypatch.setattr(traffic_runs, "SHORT_S", 0)
    body = json.dumps(RAMP).encode()
    with socket.create_connection((server.host, server.port)) as leaving:
        head = b"POST /run HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        leaving.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        begun.wait()
    gone.set()
    while (phase := http.get("/runs").json["runs"][0]["phase"]) == "Running":
        pause()
    assert phase == "Succeeded"


def test_a_run_that_was_answered_and_cannot_be_kept_is_shown_as_failed(
    http: Http, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(store: RunStore, id: int, result: TrafficResult) -> None:
        raise RunStoreError("there is no room", source="the runs in memory")

    monkeypatch.setattr(RunStore, "end", refuse)
    place = http.post("/run", RAMP).all("location")[0]
    told = http.get(place).json
    assert (told["phase"], "there is no room" in told["message"]) == ("Failed", True)
    assert "was answered and cannot be kept" in caplog.text


def test_a_damaged_store_is_no_fault_of_the_client(client: Http, tmp_path: Path) -> None:
    assert client.post("/run", RAMP).status == 200
    with (tmp_path / TRAFFIC_FILE).open("r+b") as file:
        file.write(b"no database" * 1000)
    reply = client.post("/run", RAMP)
    assert reply.status == 500
    assert f"{TRAFFIC_FILE}: the store of runs cannot be used: " in reply.message
    assert client.get("/healthz").status == 200


def waiting(store: RunStore, phase: str) -> None:
    """Until the first run of the store is in this phase."""
    while not [each for each in store.runs() if each.id == 1 and each.phase == phase]:
        pause()


def begun(server: Server, body: Any) -> socket.socket:
    """A run that is being simulated, and the connection that waits for it."""
    data = json.dumps(body).encode()
    connection = socket.create_connection((server.host, server.port))
    head = f"POST /run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(data)}\r\n\r\n"
    connection.sendall(head.encode() + data)
    return connection


def test_10_2_14_a_client_that_leaves_ends_its_run(
    kept: Server, client: Http, tmp_path: Path
) -> None:
    store = RunStore(tmp_path / TRAFFIC_FILE)
    connection = begun(kept, LONG)
    waiting(store, "Running")
    connection.close()
    waiting(store, "Cancelled")
    found = store.get(1)
    assert found.summary is not None
    assert found.summary["requests"] < 4_000_000
    while client.post("/run", RAMP).status == 429:
        pause()
    store.close()


MANY: dict[str, Any] = {
    "replicas that join at one instant": {
        "initial_number_of_replicas": 100_000,
        "uniform_config": {"number_of_requests": 5},
    },
    "replicas and requests": {
        "initial_number_of_replicas": 20_000,
        "uniform_config": {"number_of_requests": 4_000_000},
    },
    "faithful": {"mode": "faithful", "uniform_config": {"number_of_requests": 4_000_000}},
}


@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_a_server_that_ends_stops_every_run_within_a_movement(body: Any, tmp_path: Path) -> None:
    """Patience for machines that are shared: before, these took minutes."""
    asked = {"run_for": 3600 * SECOND, "traffic_pattern": "golang_rand_uniform", **body}
    server = Server(port=0, controllers=False, traffic=TrafficPages(tmp_path))
    server.start()
    connection = begun(server, asked)
    store = RunStore(tmp_path / TRAFFIC_FILE)
    waiting(store, "Running")
    for _ in range(100):
        pause()
    begin = process_time()
    server.stop()
    assert process_time() - begin < 60
    assert store.get(1).phase == "Cancelled"
    connection.close()
    store.close()


def test_beyond_the_bound_runs_wait_outside_and_the_api_answers(
    kept: Server, client: Http, tmp_path: Path
) -> None:
    store = RunStore(tmp_path / TRAFFIC_FILE)
    connection = begun(kept, LONG)
    waiting(store, "Running")
    refused = client.post("/run", RAMP)
    assert refused.status == 429
    assert refused.all("retry-after") == ["2"]
    assert client.get(PODS).status == 200
    assert client.get("/runs/1").json["phase"] == "Running"
    connection.close()
    waiting(store, "Cancelled")
    store.close()


def test_two_runs_at_once_do_not_disturb_each_other(server: Server) -> None:
    def posted(seed: int) -> bytes:
        http = Http(server.host, server.port)
        reply = http.post("/run", {"seed": seed, "traffic_pattern": "ramp"})
        http.close()
        assert reply.status == 200
        return reply.body

    alone = [posted(1), posted(2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(posted, (1, 2)))
    assert together == alone
    assert alone[0] != alone[1]


def test_a_server_that_ends_does_not_wait_for_a_run(tmp_path: Path) -> None:
    server = Server(port=0, controllers=False, traffic=TrafficPages(tmp_path))
    server.start()
    connection = begun(server, LONG)
    store = RunStore(tmp_path / TRAFFIC_FILE)
    waiting(store, "Running")
    server.stop()
    assert store.get(1).phase == "Cancelled"
    connection.close()
    store.close()


def test_several_changes_at_one_instant_are_one_level() -> None:
    instants, tallies = levels(np.array([1, 1, 3]), np.array([3, 5]))
    assert instants.tolist() == [1, 3, 5]
    assert tallies.tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([], "must be an object"),
        ("nonsense", "must be an object"),
        (0, "must be an object"),
        ({}, "expected apiVersion"),
        ({"apiVersion": "kubescene.dev/v1alpha1", "kind": "Traffic"}, "expected apiVersion"),
        ({"mode": "faithful"}, "faithful mode is Skenario's world"),
        ({"duration": "x"}, "spec.duration"),
    ],
)
def test_what_is_no_traffic_run_becomes_no_scenario(http: Http, body: Any, told: str) -> None:
    if isinstance(body, dict) and body and "kind" not in body:
        made = to_object(run_requested(SkenarioRequest()))
        body = {**made, "spec": {**made["spec"], **body}}
    answer = http.post("/simulator/v1/convert", body)
    assert (answer.status, told in answer.message) == (400, True), answer.message
    assert http.post("/simulator/v1/convert", body, content_type="text/plain").status == 415
