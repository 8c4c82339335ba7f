"""The client libraries of Python, each in a process of its own."""

import re
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, Http, config_map
from kubescene.actors import Actor
from kubescene.apiserver.server import Server
from kubescene.certificates import OpenSsl
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


def test_kopf_serves_webhooks_that_it_configures_itself(
    server: Server, kubeconfig: Path, tmp_path: Path
) -> None:
    if find_spec("kopf") is None:
        pytest.skip("kopf is not installed: pip install kopf")
    pem = OpenSsl("try again").self_signed("webhook", ["127.0.0.1"])
    (tmp_path / "crt").write_bytes(pem.certificate)
    (tmp_path / "key").write_bytes(pem.key)
    with closing(Http(server.host, server.port)) as http:
        operator = subprocess.Popen(
            [
                sys.executable,
                str(CLIENTS / "with_kopf_webhooks.py"),
                str(kubeconfig),
                str(tmp_path),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for kind in ("mutating", "validating"):
                hooks = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
                with http.watch(f"{hooks}?watch=true&resourceVersion=0") as events:
                    while not events.next()["object"].get("webhooks"):
                        pass
            made = http.post(CONFIG_MAPS, config_map("good", own="1"))
            assert made.status == 201, made.message
            assert made.json["data"] == {"own": "1", "kopf": "was here"}
            assert made.all("warning") == ['299 - "looked at"']
            refused = http.post(CONFIG_MAPS, config_map("bad", bad="1"))
            assert refused.status == 451
            assert refused.message == (
                'admission webhook "check.auto.kopf.dev" denied the request: it is bad'
            )
        finally:
            operator.terminate()
            operator.wait(timeout=120)
