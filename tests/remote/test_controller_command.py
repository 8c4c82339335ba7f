"""``kubescene controller``: one clear line for what cannot work, and a life of the process."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from client.worlds import PATIENCE_S
from kubescene.api.kinds import SCENARIO
from kubescene.cli.app import app, main
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.clock import SECOND, ScaledClock
from kubescene.remote.player import STOPPED
from kubescene.testing import make_node, make_pod
from remote.api_servers import ApiServer, client_of, free_port, make_disposable

pytestmark = pytest.mark.xdist_group("real-api-server")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["kubescene", "controller", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(str(ended.value.code)), capsys.readouterr().err

    return run


def written(path: Path, server: str, user: dict[str, Any], **cluster: Any) -> str:
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    file = path / "config"
    file.write_text(yaml.safe_dump(document))
    return str(file)


def test_a_kubeconfig_that_is_not_there(failing: Any, tmp_path: Path) -> None:
    code, said = failing("--kubeconfig", str(tmp_path / "none"))
    assert (code, said.count("\n")) == (2, 1)
    assert "cannot be read" in said


def test_a_kubeconfig_that_is_garbled(failing: Any, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a: [")
    code, said = failing("--kubeconfig", str(tmp_path / "config"))
    assert code == 2
    assert "is not YAML" in said


def test_a_context_that_it_does_not_have(failing: Any, tmp_path: Path) -> None:
    file = written(tmp_path, "https://127.0.0.1:1", {})
    code, said = failing("--kubeconfig", file, "--context", "there")
    assert code == 2
    assert "no context named 'there'" in said


@pytest.mark.parametrize(
    ("user", "cluster", "why"),
    [
        ({"exec": {"command": "aws"}}, {}, "it would run a command"),
        ({}, {"insecure-skip-tls-verify": True}, "--insecure-skip-tls-verify"),
        ({"client-certificate-data": "!"}, {}, "is not base64"),
        (
            {},
            {"certificate-authority": "nowhere.crt"},
            "certificate-authority nowhere.crt cannot be read",
        ),
    ],
)
def test_what_a_kubeconfig_may_not_ask_for(
    failing: Any, tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], why: str
) -> None:
    code, said = failing("--kubeconfig", written(tmp_path, "https://127.0.0.1:1", user, **cluster))
    assert (code, said.count("\n")) == (2, 1)
    assert why in said


def test_a_server_that_nobody_answers_for(failing: Any, tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    code, said = failing("--kubeconfig", written(tmp_path, url, {}))
    assert (code, said.count("\n")) == (1, 1)
    assert url in said
    assert "Check that the API server runs" in said


def test_half_a_certificate(failing: Any, tmp_path: Path) -> None:
    code, said = failing("--webhook-cert", "a.crt", "--webhook-port", "0")
    assert code == 2
    assert "belong together" in said


def test_a_strategy_that_is_none() -> None:
    done = CliRunner().invoke(app, ["controller", "--results-strategy", "Never"])
    assert "AtMovingNextStep, OnPause, OnDone" in str(done.exception)


def test_a_token_that_has_expired(failing: Any, tmp_path: Path, real_server: ApiServer) -> None:
    document = yaml.safe_load(real_server.outsider.read_text())
    document["users"][0]["user"] = {"token": "expired"}
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    code, said = failing("--kubeconfig", str(tmp_path / "config"))
    assert (code, said.count("\n")) == (1, 1)
    assert "refuses the credentials of the kubeconfig: Unauthorized" in said


@pytest.fixture(params=["own", "real"])
def server(request: pytest.FixtureRequest) -> ApiServer:
    found: ApiServer = request.getfixturevalue(f"{request.param}_server")
    make_disposable(found)
    return found


def test_it_plays_what_is_created_until_it_is_stopped(
    server: ApiServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    webhook = [] if "own" in request.node.callspec.id else ["--webhook-port", "0"]
    arguments = ["controller", "--kubeconfig", str(server.kubeconfig), "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "kubescene", *arguments, *webhook],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Playing the Scenarios of"):
                break
        with client_of(server.outsider) as user:
            user.create(scenario())
            status = ended(user, "short")
            assert status["phase"] == "Succeeded", status.get("message")
            user.delete(ObjectRef(SCENARIO, "short"))
    finally:
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    assert f"short: Succeeded, see {tmp_path}/short-" in rest
    (folder,) = tmp_path.glob("short-*")
    assert (folder / "summary.json").exists()


def started(server: ApiServer, out: Path) -> subprocess.Popen[str]:
    arguments = ["controller", "--kubeconfig", str(server.kubeconfig), "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "kubescene", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def heard(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    found = next((line for line in process.stdout if line.startswith(beginning)), "")
    assert found, beginning
    return found


def test_a_second_one_waits_until_the_first_has_ended(server: ApiServer, tmp_path: Path) -> None:
    """It would unlock the server and fail the scenario that the first one has under way."""
    first, second = started(server, tmp_path), None
    try:
        heard(first, "Playing the Scenarios of")
        paused = scenario()
        del paused["spec"]["operations"][-1]
        with client_of(server.outsider) as user:
            user.create(paused)
            assert ended(user, "short", "Paused")["phase"] == "Paused"
            second = started(server, tmp_path)
            told = heard(second, f"{socket.gethostname()}_{first.pid}_")
            assert "plays here already (Lease kube-system/kubescene-controller)" in told
            assert ended(user, "short", "Paused")["phase"] == "Paused"
            first.send_signal(signal.SIGTERM)
            heard(second, "Playing the Scenarios of")
            assert ended(user, "short")["message"] == STOPPED
            user.delete(ObjectRef(SCENARIO, "short"))
    finally:
        for process in (first, second):
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)


def scenario() -> dict[str, Any]:
    objects = (make_node("n1").cpu("1").build(), make_pod("a").cpu("1").build())
    creations = [{"step": 1, "createOperation": {"object": obj}} for obj in objects]
    return {
        "apiVersion": SCENARIO.api_version,
        "kind": SCENARIO.kind,
        "metadata": {"name": "short"},
        "spec": {"operations": [*creations, {"step": 1, "doneOperation": {}}]},
    }


def ended(user: HttpClient, name: str, *others: str) -> dict[str, Any]:
    clock = ScaledClock(1)
    deadline = clock.now() + int(3 * PATIENCE_S * SECOND)
    status: dict[str, Any] = {}
    while status.get("phase") not in ("Succeeded", "Failed", *others):
        assert clock.now() < deadline, status
        clock.wait_until(clock.now() + SECOND // 10)
        status = user.get(ObjectRef(SCENARIO, name)).get("status") or {}
    return status
