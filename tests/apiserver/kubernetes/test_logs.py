"""``pods/NAME/log``: the lines of behaviours, which of them, also as they come."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from apiserver.http import Http
from kubescene.apiserver.server import Server
from kubescene.clock import SECOND, VirtualClock, parse_time
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet.behaviour import read_behaviour
from kubescene.controllers.kubelet.logs import MOST_LINES, LogEntry, LoggedRun
from kubescene.types import JsonObject

T0 = parse_time("2026-03-02T09:00:00Z")
PODS = "/api/v1/namespaces/default/pods"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
TICKS = "[{text: hello}, {after: 2s, every: 1s, text: tick}]"


def pod(name: str, *containers: str, **annotations: str) -> JsonObject:
    said = {f"kubescene.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": said},
        "spec": {"containers": [{"name": each, "image": "i"} for each in containers or ("c",)]},
    }


@pytest.fixture
def server() -> Iterator[Server]:
    world = ClusterWorld(ClusterOptions(start=T0), clock=VirtualClock(T0))
    with Server(world, port=0) as server:
        yield server


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    client = Http(server.host, server.port)
    assert client.post("/api/v1/nodes", NODE).status == 201
    yield client
    client.close()


def advance(http: Http, duration: str) -> None:
    assert http.post("/simulator/v1/advance", {"duration": duration}).status == 200


def log(http: Http, name: str, options: str = "") -> str:
    reply = http.get(f"{PODS}/{name}/log{options}")
    assert reply.status == 200, reply.body
    return reply.body.decode()


def test_lines_are_written_at_their_times_and_chosen_by_options(http: Http) -> None:
    http.post(PODS, pod("a", logs=TICKS))
    advance(http, "0s")
    assert log(http, "a") == "hello\n"
    advance(http, "4500ms")
    assert log(http, "a") == "hello\ntick\ntick\ntick\n"
    assert log(http, "a", "?tailLines=1&timestamps=true") == "2026-03-02T09:00:04.000000000Z tick\n"
    assert log(http, "a", "?tailLines=0") == ""
    assert log(http, "a", "?sinceSeconds=1") == "tick\n"
    assert log(http, "a", "?sinceTime=2026-03-02T09:00:03Z") == "tick\ntick\n"
    assert log(http, "a", "?limitBytes=8") == "hello\nti"


def test_a_run_that_is_over_keeps_its_log_and_the_next_has_its_own(http: Http) -> None:
    http.post(PODS, pod("a", logs=TICKS, run_time="3s", exit_code="1"))
    advance(http, "3s")
    assert log(http, "a") == "hello\n"
    assert log(http, "a", "?previous=true") == "hello\ntick\ntick\n"
    advance(http, "4s")
    assert log(http, "a") == "hello\ntick\ntick\n"  # it waits to be started again


def test_containers_have_logs_of_their_own(http: Http) -> None:
    named = "[{name: d, logs: [{text: mine}]}]"
    http.post(PODS, pod("a", "c", "d", containers=named))
    http.post(PODS, pod("silent"))
    advance(http, "0s")
    assert (log(http, "a", "?container=d"), log(http, "a", "?container=c")) == ("mine\n", "")
    assert log(http, "silent") == ""


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        ("", 400, "a container name must be specified for pod a, choose one of: [c d]"),
        ("?container=x", 400, "container x is not valid for pod a"),
        ("?container=c&previous=1", 400, 'previous terminated container "c" in pod "a" not found'),
        ("?container=c&tailLines=x", 400, "strconv.ParseInt"),
        ("?container=c&sinceTime=today", 400, "sinceTime"),
    ],
)
def test_what_cannot_be_shown_is_said(http: Http, options: str, status: int, told: str) -> None:
    http.post(PODS, pod("a", "c", "d"))
    advance(http, "0s")
    reply = http.get(f"{PODS}/a/log{options}")
    assert reply.status == status
    assert told in reply.message


def test_who_waits_to_start_has_no_log_yet(http: Http) -> None:
    http.post(PODS, pod("slow", pull_time="1m", logs=TICKS))
    http.post(PODS, pod("failing", pull_error="no such image", logs=TICKS))
    advance(http, "100ms")
    told = [http.get(f"{PODS}/{name}/log").message for name in ("slow", "failing")]
    assert told == [
        'container "c" in pod "slow" is waiting to start: ContainerCreating',
        'container "c" in pod "failing" is waiting to start: image can\'t be pulled',
    ]


@contextmanager
def following(server: Server, name: str) -> Iterator[HTTPResponse]:
    with closing(HTTPConnection(server.host, server.port, timeout=120)) as connection:
        connection.request("GET", f"{PODS}/{name}/log?follow=true")
        yield connection.getresponse()


def test_a_follower_reads_as_time_goes_on_until_the_run_is_over(server: Server, http: Http) -> None:
    http.post(PODS, pod("a", logs=TICKS, run_time="4s"))
    advance(http, "0s")
    with following(server, "a") as reply:
        assert reply.readline() == b"hello\n"
        advance(http, "2s")
        assert reply.readline() == b"tick\n"
        advance(http, "2s")  # its container is started again: that is another log
        assert reply.read() == b"tick\ntick\n"


def test_a_follower_hears_that_the_pod_is_gone(server: Server, http: Http) -> None:
    http.post(PODS, pod("a", logs=TICKS))
    advance(http, "0s")
    with following(server, "a") as reply:
        assert reply.readline() == b"hello\n"
        http.delete(f"{PODS}/a?gracePeriodSeconds=0")
        assert reply.read() == b""


def test_a_server_ends_although_somebody_follows(server: Server, http: Http) -> None:
    http.post(PODS, pod("a", logs=TICKS))
    advance(http, "0s")
    with following(server, "a") as reply:
        assert reply.readline() == b"hello\n"
        server.stop()


def test_a_log_of_years_is_cut_to_its_newest_lines() -> None:
    run = LoggedRun(T0, None)
    entries = (LogEntry("often", every=1), LogEntry("daily", every=86400 * SECOND))
    until = T0 + 10 * 365 * 86400 * SECOND
    lines = [*run.written(entries, 0, until)]
    assert MOST_LINES <= len(lines) <= MOST_LINES + 2
    assert lines[-1].at == until
    assert [*run.written((LogEntry("once", after=5),), 0, until)] == [(T0 + 5, "once")]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("hello", "logs: must be a list of at most 100 entries"),
        ([{"text": "a\nb"}], "logs: entry 0: text: must be one line"),
        ([{"text": "a"}, {"after": "1s"}], "logs: entry 1: text: must be one line"),
        ([{"text": "a", "after": "-1s"}], "logs: entry 0: after: "),
        ([{"text": "a", "every": "0s"}], "logs: entry 0: every: must be longer than nothing"),
        ([{"text": "a", "eveery": "1s"}], "logs: entry 0: unknown field eveery"),
        ([7], "logs: entry 0: must be an object with a text"),
    ],
)
def test_what_is_wrong_with_an_entry_is_named(value: Any, told: str) -> None:
    with pytest.raises(ValueError, match="logs") as caught:
        read_behaviour({"logs": value})
    assert told in str(caught.value)
