"""The client libraries of Python, each in a process of its own."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef

CLIENTS = Path(__file__).parent / "clients"
GARDEN: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Garden",
    "metadata": {"name": "roses", "namespace": "default"},
    "spec": {"colour": "red"},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gardens.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gardens", "singular": "garden", "kind": "Garden"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("library", "script"),
    [("kubernetes", "official"), ("lightkube", "with_lightkube"), ("kr8s", "with_kr8s")],
)
def test_library_works(kubeconfig: Path, library: str, script: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed: pip install {library}")
    file = CLIENTS / f"{script}.py"
    done = subprocess.run(
        [sys.executable, str(file), str(kubeconfig)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    checks = re.findall(r"(?m)^def (check_\w+)", file.read_text())
    assert done.stdout.split() == checks, done.stdout + done.stderr


def test_kopf_operator_handles_its_resource(server: Server, kubeconfig: Path) -> None:
    if find_spec("kopf") is None:
        pytest.skip("kopf is not installed: pip install kopf")
    client, engine = server.cluster.client(Actor("gardener")), server.engine
    ref = ObjectRef.to(GARDEN)
    engine.call(lambda: client.create(DEFINITION))
    operator = subprocess.Popen(
        [sys.executable, str(CLIENTS / "with_kopf.py"), str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert operator.stdout is not None
    try:
        engine.call(lambda: client.create(GARDEN))
        assert operator.stdout.readline() == "created red\n"
        engine.call(lambda: client.patch(ref, {"spec": {"colour": "blue"}}))
        assert operator.stdout.readline() == "changed blue\n"
        engine.call(lambda: client.delete(ref))
        assert operator.stdout.readline() == "removed roses\n"
    finally:
        operator.terminate()
        operator.communicate(timeout=120)
