"""``/simulator/v1/what-if``: the answers of the library, from a process that can be ended."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import orjson
import pytest

from apiserver.http import Http
from kubescene.apiserver.server import Server
from kubescene.apiserver.simulator import what_if
from kubescene.clock import SECOND, WallClock
from kubescene.errors import ConfigurationError
from kubescene.snapshots.snapshot import read_snapshot
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from kubescene.what_if import WhatIf
from kubescene.what_if.questions import QUESTIONS, answered

PLACE = "/simulator/v1/what-if"


def small() -> list[JsonObject]:
    """Four nodes in two zones, and pods that fill half of them."""
    nodes = [make_node(f"n{each}").cpu("4").memory("8Gi").zone("ab"[each % 2]) for each in range(4)]
    pods = [make_pod(f"p{each}").cpu("2").on(f"n{each}") for each in range(4)]
    return [each.build() for each in (*nodes, *pods)]


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": small()})
    (tmp_path / "snapshot").write_text(text)
    return text


@pytest.fixture
def http() -> Iterator[Http]:
    with Server(port=0) as server:
        client = Http("127.0.0.1", server.port)
        yield client
        client.close()


def test_an_answer_is_that_of_the_library(http: Http, snapshot: str, tmp_path: Path) -> None:
    fields = {"nodes": "zone=a", "within": "20m"}
    body = {"question": "lose", "fields": fields, "snapshot": snapshot}
    reply = http.post(PLACE, body)
    assert reply.status == 200
    expected = WhatIf(read_snapshot(tmp_path / "snapshot")).lose("zone=a", within="20m")
    assert reply.json == orjson.loads(orjson.dumps(expected.to_dict()))
    assert expected.measures["pods"] == 2
    listed = http.get(PLACE).json["questions"]
    assert [each["name"] for each in listed] == [*QUESTIONS]


def test_without_a_snapshot_it_is_the_world_of_the_server(http: Http) -> None:
    items = [make_node("n").cpu("4").build(), make_pod("old").cpu("1").on("n").build()]
    assert http.post("/simulator/v1/import", {"kind": "List", "items": items}).status == 200
    reply = http.post(PLACE, {"question": "fit", "fields": {"objects": pod_of("1")}})
    assert reply.status == 200
    assert reply.json["sentence"].startswith("3 pods more fit")
    [pod] = http.get("/api/v1/pods").json["items"]
    assert pod["metadata"]["name"] == "old"


def pod_of(cpu: str) -> str:
    return json.dumps(make_pod("more").cpu(cpu).build())


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({"question": "nope"}, 400, "there is no question 'nope'"),
        ({"question": "lose", "fields": {"keep": "1"}}, 400, "lose has no field 'keep'"),
        ({"question": "lose", "fields": {"nodes": 3}}, 400, "Expected `str`"),
        ({"question": "lose", "plugin": "os:system"}, 400, "plugin"),
        ({"question": "lose", "snapshot": "{{{"}, 409, "snapshot"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    http: Http, body: JsonObject, status: int, why: str
) -> None:
    reply = http.post(PLACE, body)
    assert (reply.status, reply.json["kind"]) == (status, "Status")
    assert why in reply.message


@pytest.mark.parametrize(
    ("question", "fields", "why"),
    [
        ("lose", {}, "which nodes?"),
        ("lose", {"nodes": "zone=a", "within": "soon"}, "within"),
        ("shrink", {"keep": "120"}, "from 0 to 99"),
        ("repack", {"cpu": "16"}, "their memory"),
        ("explain", {}, "which pod?"),
        ("explain", {"pod": "default/none"}, "no pod default/none"),
        ("fit", {}, "Paste them"),
        ("apply", {"objects": "a: 3"}, "must have a kind"),
    ],
)
def test_what_is_wrong_with_a_field_is_said(
    tmp_path: Path, snapshot: str, question: str, fields: dict[str, str], why: str
) -> None:
    del snapshot
    with pytest.raises(ConfigurationError, match=why):
        answered(tmp_path, question, fields)


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        ("drain", {"nodes": "node=n1", "force": "yes"}),
        ("shrink", {"keep": "10", "force": "yes"}),
        ("upgrade", {}),
        ("balance", {}),
        ("repack", {"cpu": "16", "memory": "32Gi"}),
        ("schedule", {}),
        ("explain", {"pod": "default/p1"}),
        ("apply", {"objects": pod_of("3")}),
    ],
)
def test_every_question_of_the_table_is_answered(
    tmp_path: Path, snapshot: str, question: str, fields: dict[str, str]
) -> None:
    del snapshot
    assert answered(tmp_path, question, fields).sentence


SLEEPS = (sys.executable, "-c", "import sys, time; sys.stdin.read(); time.sleep(3600)")
"""Somebody who thinks about a question for an hour."""


def sleeping(folder: Path) -> bool:
    """Whether a process of ours sleeps over a question, or has ended unheard."""
    try:
        parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
        return (
            int(parent) == os.getpid()
            and b"time.sleep(3600)" in folder.joinpath("cmdline").read_bytes()
        )
    except OSError:
        return False


def becomes(*, asked: bool) -> None:
    """Wait until there is such a process, or none any more."""
    clock = WallClock()
    end = clock.now() + 90 * SECOND
    while any(map(sleeping, Path("/proc").glob("[0-9]*"))) is not asked:
        assert clock.now() < end
        Event().wait(0.02)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are seen in /proc")
def test_who_leaves_ends_the_question(
    http: Http, snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = orjson.dumps({"question": "upgrade", "snapshot": snapshot})
    head = f"POST {PLACE} HTTP/1.1\r\nHost: 127.0.0.1:{http.port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with monkeypatch.context() as patched:
        patched.setattr(what_if, "COMMAND", SLEEPS)
        client = socket.create_connection((http.host, http.port))
        client.sendall(head.encode() + body)
        becomes(asked=True)
        client.close()
        becomes(asked=False)
    fields = {"objects": pod_of("1")}
    reply = http.post(PLACE, {"question": "fit", "fields": fields, "snapshot": snapshot})
    assert reply.status == 200  # the turn is given back


def test_the_process_answers_on_one_line(tmp_path: Path, snapshot: str) -> None:
    del snapshot
    command = [sys.executable, "-m", "kubescene.what_if.questions", str(tmp_path)]
    given = orjson.dumps({"question": "lose", "fields": {"nodes": "node=none"}})
    done = subprocess.run(command, input=given, capture_output=True, check=True)
    assert "none" in orjson.loads(done.stdout)["refused"]
    assert done.stdout.count(b"\n") == 1
