"""``kubescene run --server``: what a server plays looks as if it were played here."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.http import CONFIG_MAPS, Http, config_map
from apiserver.scenarios import SCENARIOS, create, play, status, wait
from kubescene.actors import Actor
from kubescene.apiserver.kubernetes.watches import WatchStreams
from kubescene.apiserver.server import Server
from kubescene.cli.files import read_scenario
from kubescene.cli.run.at_server import run_on_server
from kubescene.errors import ConfigurationError
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from run_directories import RUN_FILES, files_of

PACE = re.compile(r", [\d,]+ a second(, about \d+ s left)?")
EXAMPLE = Path(__file__).parents[1] / "examples" / "01-first-scenario" / "scenario.yaml"
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    client = Http(server.host, server.port)
    yield client
    client.close()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "kubescene", "run", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=ENVIRONMENT,
    )


def written(tmp_path: Path, builder: ScenarioBuilder) -> Path:
    return builder.save(tmp_path / "scenario.yaml")


def test_progress_summary_and_files_are_those_of_a_local_run(
    server: Server, http: Http, tmp_path: Path
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    # Another comes first, so that the command follows before the first step is over.
    play(http, ScenarioBuilder("first").create(make_node("n")))
    remote = subprocess.Popen(
        command(EXAMPLE, "--server", server.url, "--out", there),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert remote.stderr is not None
    assert "waits" in remote.stderr.readline()
    http.delete(f"{SCENARIOS}/first")
    shown, told = remote.communicate(timeout=120)
    local = run(EXAMPLE, "--out", here)
    assert remote.returncode == local.returncode == 0
    assert shown.replace(str(there), "OUT") == local.stdout.replace(str(here), "OUT")
    assert steps(told) == steps(local.stderr)
    sent, written = files_of(there), files_of(here)
    assert sorted(sent) == RUN_FILES
    for name in RUN_FILES:
        assert sent[name] == written[name] or name == "result.yaml", name
    created = [line for line in sent["result.yaml"].splitlines() if b"creationTimestamp" in line]
    assert created == [b"  creationTimestamp: '2026-01-01T00:00:00Z'"]


def steps(text: str) -> list[str]:
    """The lines about steps without what depends on the machine's speed."""
    return [PACE.sub("", line) for line in text.splitlines() if "at rest" in line]


def test_results_of_a_server_do_not_overwrite_the_scenario_either(
    server: Server, http: Http, tmp_path: Path
) -> None:
    file = tmp_path / "result.yaml"
    file.write_bytes(EXAMPLE.read_bytes())
    refused = run(file, "--server", server.url, "--out", tmp_path)
    assert refused.returncode == 2
    assert "would overwrite" in refused.stderr
    assert file.read_bytes() == EXAMPLE.read_bytes()
    assert http.get(f"{SCENARIOS}/first-scenario").status == 404


@pytest.mark.parametrize("explain", [None, "Everything"], ids=["no Scenario", "refused at play"])
def test_bad_input_leaves_an_earlier_run_as_it_was_also_at_a_server(
    server: Server, tmp_path: Path, explain: str | None
) -> None:
    out = tmp_path / "out"
    assert run(EXAMPLE, "--out", out).returncode == 0
    before = files_of(out)
    broken = tmp_path / "scenario.yaml"
    bad = ScenarioBuilder("bad").build() | {"spec": {"simulation": {"explain": explain}}}
    broken.write_text("kind: Pod" if explain is None else orjson.dumps(bad).decode())
    assert run(broken, "--server", server.url, "--out", out).returncode == 2
    assert files_of(out) == before


def test_a_long_step_is_told_of_while_it_lasts(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also one whose rows come all the time; here nobody has to wait for ten seconds."""
    monkeypatch.setattr("kubescene.cli.run.at_server.ASK_EVERY", 0)
    monkeypatch.setattr("kubescene.reports.progress.SAY_EVERY", -1)
    pods = (
        ScenarioBuilder("x")
        .create(make_node("n").cpu("64"))
        .create(make_pod("p-$(INDEX)"), count=100)
    )
    file = read_scenario(written(tmp_path, pods.done()))
    assert run_on_server(file, server.url, out=None, seed=None, quiet=False, delete=False) == 0
    lines = capsys.readouterr().err.splitlines()
    meanwhile = lines[: next(n for n, line in enumerate(lines) if "at rest" in line)]
    assert any(line.startswith("step 1.") and "pods bound" in line for line in meanwhile)


def test_a_scenario_is_watched_before_there_is_one(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short one may be over before somebody could follow it afterwards."""
    done: list[str] = []
    register, create_object = WatchStreams._register, server.cluster.registry.create

    def registered(*arguments: Any) -> Any:
        done.append("watched")
        return register(*arguments)

    def created(actor: Actor, obj: JsonObject, **options: Any) -> Any:
        if obj["kind"] == "Scenario":
            done.append("created")
        return create_object(actor, obj, **options)

    monkeypatch.setattr(WatchStreams, "_register", registered)
    monkeypatch.setattr(server.cluster.registry, "create", created)
    file = read_scenario(written(tmp_path, ScenarioBuilder("x").create(make_node("n")).done()))
    assert run_on_server(file, server.url, out=None, seed=None, quiet=True, delete=True) == 0
    assert done == ["watched", "created"]


def test_delete_takes_nothing_away_that_was_there_before(
    server: Server, http: Http, tmp_path: Path
) -> None:
    file = read_scenario(written(tmp_path, ScenarioBuilder("x").create(make_node("n"))))
    play(http, ScenarioBuilder("x").create(make_node("n")))
    with pytest.raises(ConfigurationError, match="has a scenario 'x' already"):
        run_on_server(file, server.url, out=None, seed=None, quiet=True, delete=True)
    assert status(http, "x")["phase"] == "Paused"


def test_a_seed_goes_along(server: Server, tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("there", "here")]
    run(EXAMPLE, "--seed", "9", "--server", server.url, "--out", outs[0])
    run(EXAMPLE, "--seed", "9", "--out", outs[1])
    assert len({(out / "timeline.jsonl").read_bytes() for out in outs}) == 1


@pytest.mark.parametrize(
    ("builder", "code"),
    [
        (ScenarioBuilder("x").create(make_node("n")).done(), 0),
        (ScenarioBuilder("x").create(make_node("n")), 0),
        (ScenarioBuilder("x").create(make_node("n")).create(make_node("n")), 1),
        (ScenarioBuilder("x").simulate("nobody").create(make_node("n")), 2),
    ],
    ids=["succeeded", "paused", "failed", "bad input"],
)
def test_exit_codes_are_those_of_a_local_run(
    server: Server, tmp_path: Path, builder: ScenarioBuilder, code: int
) -> None:
    file = written(tmp_path, builder)
    remote, local = run(file, "--server", server.url), run(file)
    assert (remote.returncode, local.returncode) == (code, code)
    assert complaints(remote.stderr) == complaints(local.stderr)


def complaints(text: str) -> list[str]:
    """What is said of faults; a server has one more controller than a run of its own."""
    lines = [line for line in text.splitlines() if line.startswith("kubescene: ")]
    return [line.partition("; registered are")[0] for line in lines]


def test_a_paused_scenario_is_left_there_and_that_is_said(
    server: Server, http: Http, tmp_path: Path
) -> None:
    file = written(tmp_path, ScenarioBuilder("x").create(make_node("n")))
    done = run(file, "--server", server.url)
    assert "x is paused at" in done.stdout
    assert "kubectl delete scenario x" in done.stdout
    assert status(http, "x")["phase"] == "Paused"


def test_delete_takes_the_scenario_away(server: Server, http: Http, tmp_path: Path) -> None:
    file = written(tmp_path, ScenarioBuilder("x").create(make_node("n")))
    assert run(file, "--server", server.url, "--delete").returncode == 0
    assert http.get(f"{SCENARIOS}/x").status == 404
    assert http.post(CONFIG_MAPS, config_map("c")).status == 201


def test_a_scenario_that_has_to_wait_says_so(server: Server, http: Http, tmp_path: Path) -> None:
    play(http, ScenarioBuilder("first").create(make_node("n")))
    file = written(tmp_path, ScenarioBuilder("second").create(make_node("n")).done())
    process = subprocess.Popen(
        command(file, "--server", server.url), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    assert process.stderr is not None
    assert process.stderr.readline() == 'second waits: scenario "first" comes first\n'
    http.delete(f"{SCENARIOS}/first")
    process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("delete", [False, True], ids=["leaves", "deletes"])
def test_ctrl_c_says_what_becomes_of_the_scenario(
    server: Server, http: Http, tmp_path: Path, delete: bool
) -> None:
    play(http, ScenarioBuilder("first").create(make_node("n")))
    file = written(tmp_path, ScenarioBuilder("second").create(make_node("n")).done())
    options = ("--delete",) if delete else ()
    process = subprocess.Popen(
        command(file, "--server", server.url, *options),
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert ("second is deleted" if delete else "second goes on") in said
    assert http.get(f"{SCENARIOS}/second").status == (404 if delete else 200)


def test_a_scenario_that_somebody_else_deletes_is_a_failure(
    server: Server, http: Http, tmp_path: Path
) -> None:
    play(http, ScenarioBuilder("first").create(make_node("n")))
    file = written(tmp_path, ScenarioBuilder("second").create(make_pod("p")).done())
    process = subprocess.Popen(
        command(file, "--server", server.url), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    assert process.stderr is not None
    process.stderr.readline()
    http.delete(f"{SCENARIOS}/second")
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "was deleted by somebody else" in said) == (1, True)


def test_what_cannot_be_handed_over_is_one_line(server: Server, http: Http, tmp_path: Path) -> None:
    file = written(tmp_path, ScenarioBuilder("x").create(make_node("n")).done())
    create(http, ScenarioBuilder("x").create(make_node("n")).done())
    wait(http, "x")
    twice = run(file, "--server", server.url)
    assert twice.returncode == 2
    assert "has a scenario 'x' already: delete it" in twice.stderr
    local = run(file, "--server", server.url, "--full-status")
    assert local.returncode == 2
    assert "--full-status cannot be used with --server" in local.stderr
    nobody = run(file, "--server", "http://127.0.0.1:9")
    assert nobody.returncode == 2
    assert len(nobody.stderr.splitlines()) == 1
    assert "Check that the API server runs" in nobody.stderr


CONTROLLER = """
from kubescene.controllers import NOTHING, GroupVersionKind, ObjectReconciler, ObjectRef
from kubescene.controllers import Patch, Plan

NODE = GroupVersionKind("", "v1", "Node")


class Labeller(ObjectReconciler):
    name = "labeller"
    kinds = (NODE,)

    def reconcile(self, key, reader, now):
        ref = ObjectRef(NODE, key.name)
        node = reader.find(ref)
        if node is None or "seen" in node["metadata"].get("labels", {}):
            return NOTHING
        return Plan([Patch(ref, {"metadata": {"labels": {"seen": "yes"}}})])
"""


def test_a_server_has_the_controllers_that_it_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CONTROLLER)
    (tmp_path / "broken.py").write_text("def")
    file = written(
        tmp_path, ScenarioBuilder("x").simulate("labeller").create(make_node("n")).done()
    )
    serve = [sys.executable, "-m", "kubescene", "serve", "--port", "0", "--controller"]
    broken = subprocess.run(
        [*serve, "broken:X"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (broken.returncode, broken.stderr.count("\n")) == (2, 1), broken.stderr
    assert "controller 'broken:X' cannot be imported: SyntaxError" in broken.stderr
    server = subprocess.Popen(
        [*serve, "mine:Labeller"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        done = run(file, "--server", url, "--out", tmp_path / "out")
        assert done.returncode == 0, done.stderr
        assert '"labeller"' in (tmp_path / "out" / "timeline.jsonl").read_text()
    finally:
        server.terminate()
        server.communicate(timeout=120)
