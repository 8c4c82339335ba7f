"""The operators for the tests in turns do their job when nobody holds them."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubescene.actors import Actor
from kubescene.api.scheme import GroupVersionKind
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http.kubeconfigs import make_kubeconfig
from real_programs import SOURCES, require_program

PATIENCE_S = 60
CONFIG_MAP = GroupVersionKind.of("v1", "ConfigMap")
SOURCE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "seeds", "namespace": "default", "labels": {"fan-out": "3"}},
    "data": {"colour": "red"},
}


class World:
    """A served cluster, and what a test does and sees in it."""

    def __init__(self, server: Server) -> None:
        self._call = server.engine.call
        self._client = server.cluster.client(Actor("test"))
        self._changed = threading.Event()
        self._call(
            lambda: self._client.watch(CONFIG_MAP, lambda _: self._changed.set(), quiet=True)
        )

    def create(self) -> None:
        self._call(lambda: self._client.create(SOURCE))

    def patch(self, patch: dict[str, Any]) -> None:
        self._call(lambda: self._client.patch(ObjectRef.to(SOURCE), patch))

    def await_copies(self, colours: dict[str, str]) -> None:
        while self._copies() != colours:
            assert self._changed.wait(PATIENCE_S), f"still {self._copies()}"
            self._changed.clear()

    def _copies(self) -> dict[str, str]:
        found = self._call(lambda: self._client.list(CONFIG_MAP, namespace="default"))
        labelled = [entry for entry in found if "copy-of" in entry["metadata"].get("labels", {})]
        return {entry["metadata"]["name"]: entry["data"]["colour"] for entry in labelled}


@pytest.fixture
def served() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


@pytest.fixture
def start(served: Server, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Starts a program with the arguments given; KUBECONFIG stands for the path of one."""
    kubeconfig = tmp_path / "kubeconfig.yaml"
    kubeconfig.write_text(yaml.safe_dump(make_kubeconfig(served.url)))
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        arguments = [part.replace("KUBECONFIG", str(kubeconfig)) for part in command]
        started.append(subprocess.Popen(arguments))

    yield start
    for program in started:
        program.terminate()
        program.wait()


def _controller_runtime(*options: str) -> list[str]:
    return [str(require_program("fan-out-operator")), "-kubeconfig", "KUBECONFIG", *options]


def _kopf(*options: str) -> list[str]:
    if find_spec("kopf") is None:
        pytest.skip("kopf is not installed: pip install kopf")
    return [sys.executable, str(SOURCES / "kopf_operator.py"), "KUBECONFIG", *options]


@pytest.mark.parametrize("options", [[], ["--park"]], ids=["unmodified", "parking"])
@pytest.mark.parametrize("command", [_controller_runtime, _kopf])
def test_an_operator_fans_out(
    served: Server,
    start: Callable[..., None],
    command: Callable[..., list[str]],
    options: list[str],
) -> None:
    world = World(served)
    start(*command(*options))
    world.create()
    world.await_copies({"seeds-0": "red", "seeds-1": "red", "seeds-2": "red"})
    world.patch({"data": {"colour": "blue"}})
    world.await_copies({"seeds-0": "blue", "seeds-1": "blue", "seeds-2": "blue"})
    world.patch({"metadata": {"labels": {"fan-out": "1"}}})
    world.await_copies({"seeds-0": "blue"})
