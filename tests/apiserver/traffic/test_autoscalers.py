"""Autoscalers in processes of their own behind ``POST /run``."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from apiserver.http import Http, Reply
from kubescene.apiserver.server import Server
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.clock import SECOND
from kubescene.errors import AutoscalerError
from plugin_commands import program

COUNTING, BEHAVING = "counting.example.com", "behaving.example.com"
MINUTE = {"run_for": 60 * SECOND, "step_config": {"rps": 10, "step_after": 0}}


@contextmanager
def serving(*commands: str, folder: Path | None = None, at_once: int = 4) -> Iterator[Server]:
    pages = TrafficPages(folder, commands=commands, at_once=at_once)
    with Server(port=0, controllers=False, traffic=pages) as server:
        yield server


def posted(server: Server, path: str, body: dict[str, Any]) -> Reply:
    with closing(Http(server.host, server.port)) as client:
        return client.post(path, body)


def test_a_run_that_names_its_type_is_with_the_process() -> None:
    command = program("counting")
    with serving(command) as server:
        own = posted(server, "/run", {**MINUTE, "plugins": {COUNTING: ""}})
        form = posted(server, "/run", MINUTE)
        with closing(Http(server.host, server.port)) as client:
            kept = client.get("/runs").json["runs"]
    assert (own.status, form.status) == (200, 200)
    assert own.body != form.body
    assert [each["autoscalers"] for each in kept] == [[], [f"command {command}"]]
    assert kept[1]["summary"]["replicasMost"] > kept[0]["summary"]["replicasMost"]


def test_runs_at_once_share_a_process_and_nothing_else() -> None:
    body = {**MINUTE, "plugins": {BEHAVING: ""}}
    with serving(program("behaving", "well")) as server, ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda number: posted(server, "/run", body), range(12)))
    assert [each.status for each in replies] == [200] * 12
    assert len({each.body for each in replies}) == 1


def test_a_process_that_dies_fails_its_run_and_the_server_goes_on() -> None:
    with serving(program("behaving", "dies"), program("counting")) as server:
        for _ in range(2):
            failed = posted(server, "/run", {**MINUTE, "plugins": {BEHAVING: ""}})
            assert failed.status == 500
            assert "it exited with code 3 (its last words: asked for a number)" in failed.message
        assert posted(server, "/run", {**MINUTE, "plugins": {COUNTING: ""}}).status == 200
        assert posted(server, "/run", MINUTE).status == 200


def test_a_kept_run_is_repeated_only_where_its_process_is(tmp_path: Path) -> None:
    with serving(program("counting"), folder=tmp_path) as server:
        first = posted(server, "/run", {**MINUTE, "plugins": {COUNTING: ""}})
        assert posted(server, "/runs/1/repeat", {}).body == first.body
    with serving(folder=tmp_path) as server:
        refused = posted(server, "/runs/1/repeat", {})
    assert refused.status == 409
    assert "which this server was not started with" in refused.message


def test_a_command_that_is_no_plugin_is_refused_at_the_start(tmp_path: Path) -> None:
    pages = TrafficPages(tmp_path, commands=[program("counting"), "/no/such/program"])
    with pytest.raises(AutoscalerError, match="/no/such/program"):
        pages.runs()
