"""Who brings an autoscaler to which command: ``--autoscaler`` and ``--autoscaler-process``."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from commands import ENVIRONMENT
from commands import kubescene as command
from controllers.test_plugin_autoscaler import plugin, scenario
from controllers.test_traffic import deployment
from kubescene.autoscalers import (
    AutoscalerPlugin,
    Capability,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
    serve,
)
from kubescene.snapshots import read_snapshot
from kubescene.testing import make_node
from kubescene.types import JsonObject
from kubescene.what_if import WhatIf
from outside_runs import FAN_OUT

THREE = "three.example.com"
MINUTE = {"run_for": 60 * 10**9, "step_config": {"rps": 10, "step_after": 0}}
ITSELF = "controllers.test_plugin_commands:Three"


class Three(AutoscalerPlugin):
    types = (THREE,)
    capabilities = frozenset({Capability.HORIZONTAL_RECOMMENDATION})

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        del request
        return HorizontalRecommendationResponse(3, "always three")


def three(**spec: Any) -> JsonObject:
    return plugin(THREE, {}, horizontalInterval="10s", **spec)


def written(folder: Path, given: JsonObject) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(given))
    return path


def expecting(replicas: str) -> JsonObject:
    given = scenario(deployment(1), three())
    expression = f'objects.filter(o, o.kind == "Deployment").all(o, o.spec.replicas == {replicas})'
    given["spec"]["expectations"] = [{"name": "scaled", "expression": expression}]
    return given


@pytest.mark.parametrize("search", ["grid", "random"])
def test_tuning_takes_classes(tmp_path: Path, search: str) -> None:
    path = written(tmp_path, scenario(deployment(1), three()))
    asked = ["tune", path, "--minimize", "scale_ups", "--jobs", 1, "--search", search]
    vary = "spec.operations.1.createOperation.object.spec.horizontalInterval=10s,2m"
    done = command(*asked, "--vary", vary, "--autoscaler", ITSELF, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    values = [each["values"].get("scale_ups", {}).get("mean") for each in found["trials"]]
    assert sorted(values, key=str) == [1.0, None]


def test_what_if_takes_classes(tmp_path: Path) -> None:
    """The Deployment has one pod in the dump; ten minutes later three, if somebody scales it."""
    objects = [make_node("n").cpu("8").memory("8Gi").build(), deployment(1), three()]
    for each in objects[1:]:
        each["metadata"]["namespace"] = "default"
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    counts = []
    for autoscalers in ([Three], []):
        world = WhatIf(read_snapshot(path), autoscalers=autoscalers).world.fork()
        world.advance("10m")
        counts.append(world.get("deployments", "web")["spec"]["replicas"])
    assert counts == [3, 1]
    asked = ["what-if", path, "lose", "node=n", "--for", "10m", "--json"]
    assert command(*asked, "--autoscaler", ITSELF).returncode == 0
    assert (
        "no class Four" in command(*asked, "--autoscaler", ITSELF.replace("Three", "Four")).stderr
    )


def test_a_server_elsewhere_has_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, scenario(deployment(1), three()))
    done = command("run", path, "--server", "http://127.0.0.1:1", "--autoscaler", ITSELF)
    assert done.returncode == 2
    assert "--autoscaler-process cannot be used with --server: say them to" in done.stderr


def test_programs_outside_and_autoscalers_play_together(tmp_path: Path) -> None:
    given = scenario(deployment(1), three())
    given["spec"]["controllers"] = {
        "simulationControllers": {"enabled": [{"name": "kube-scheduler"}, {"name": "fan-out"}]},
        "outside": [{"name": "fan-out", "timeout": "60s"}],
    }
    path, out = written(tmp_path, given), tmp_path / "out"
    options = ["--outside", f"fan-out={FAN_OUT}", "--out", out, "--quiet"]
    done = command("run", path, *options, "--autoscaler", ITSELF)
    assert done.returncode == 0, done.stderr
    assert '"always three"' in (out / "timeline.jsonl").read_text()


def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        Event().wait(0.1)
    raise AssertionError("it does not come to that")


# -- a server ------------------------------------------------------------------------------------


def call(url: str, document: JsonObject | None = None) -> JsonObject:
    data = None if document is None else json.dumps(document).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=60) as reply:
        found: JsonObject = json.load(reply)
    return found


def test_a_server_starts_a_process_once_for_objects_and_for_runs(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    program = shlex.join([sys.executable, __file__, str(starts)])
    serving = [sys.executable, "-m", "kubescene", "serve", "--port", "0"]
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(
        [*serving, "--autoscaler-process", program],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().removeprefix("Serving on ").strip()
            apps = f"{url}/apis/apps/v1/namespaces/default/deployments"
            own = f"{url}/apis/kubescene.dev/v1alpha1/namespaces/default/pluginautoscalers"
            call(apps, deployment(1))
            call(own, {**three(), "spec": {**three()["spec"], "horizontalInterval": "1s"}})
            eventually(lambda: call(f"{apps}/web")["spec"]["replicas"] == 3)
            assert call(f"{url}/run", {**MINUTE, "plugins": {THREE: ""}})
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    [pid] = starts.read_text().split()
    eventually(lambda: not Path(f"/proc/{pid}").exists())


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a") as started:
        started.write(f"{os.getpid()}\n")
    serve(Three())
