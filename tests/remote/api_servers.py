"""API servers that scenarios are played against: a real kube-apiserver, and ours in its place."""

import base64
import json
import socket
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from kubescene.actors import Actor
from kubescene.api.kinds import NAMESPACE
from kubescene.apiserver.engine_thread import Nobody
from kubescene.apiserver.kubernetes import resources
from kubescene.apiserver.server import Server
from kubescene.client import ObjectRef
from kubescene.client.http import Endpoint, HttpClient, read_kubeconfig
from kubescene.client.http.kubeconfigs import make_kubeconfig
from kubescene.clock import SECOND, ScaledClock
from kubescene.types import JsonObject
from real_programs import require_program

READY_S = 120
DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: also if the tests themselves are killed
os.execv(sys.argv[1], sys.argv[1:])
"""
DISPOSABLE = {"metadata": {"annotations": {"kubescene.dev/disposable": "true"}}}
KUBE_SYSTEM = ObjectRef(NAMESPACE, "kube-system")


class ApiServer(Protocol):
    """One that runs. ``kubeconfig`` is that of the controller, ``outsider`` that of somebody."""

    kubeconfig: Path
    outsider: Path


def endpoint_of(kubeconfig: Path) -> Endpoint:
    return read_kubeconfig(kubeconfig)


@contextmanager
def client_of(kubeconfig: Path) -> Iterator[HttpClient]:
    client = HttpClient(read_kubeconfig(kubeconfig), Actor("tester"))
    try:
        yield client
    finally:
        client.close()


def make_disposable(server: ApiServer) -> None:
    with client_of(server.outsider) as client:
        client.patch(KUBE_SYSTEM, DISPOSABLE)


class OwnServer:
    """Our own, without an engine of its own: whoever asks may write the status of Scenarios."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resources, "check_status_writer", lambda target: None)
        self._server = Server(port=0, controllers=False)
        monkeypatch.setattr(self._server.engine, "_director", Nobody())
        self._server.start()
        self.kubeconfig = self._written(folder / "kubescene.yaml", "kubescene")
        self.outsider = self._written(folder / "somebody.yaml", "somebody")

    def _written(self, path: Path, user: str) -> Path:
        path.write_text(yaml.safe_dump(make_kubeconfig(self._server.url, as_user=user)))
        return path

    def stop(self) -> None:
        self._server.stop()


class RealServer:
    """etcd and kube-apiserver, which know two users: by certificate, and by token."""

    def __init__(self, folder: Path, *options: str) -> None:
        etcd, apiserver = require_program("etcd"), require_program("kube-apiserver")
        self._folder = folder
        self._options = options
        self._processes: list[subprocess.Popen[bytes]] = []
        self._certify()
        try:
            store = self._start_etcd(etcd)
            self.url = f"https://127.0.0.1:{self._start_server(apiserver, store)}"
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        self.kubeconfig = self._written("kubescene", self._certificate())
        self.outsider = self._written("somebody", {"token": "token-of-somebody"})

    def stop(self) -> None:
        """End both at once: what they hold goes with their folder."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._processes.clear()

    # -- inside ----------------------------------------------------------------------------

    def _certify(self) -> None:
        """An authority, a certificate of the server, one of an administrator, and a key."""
        self._openssl("req -x509 -days 2 -subj /CN=test-authority -keyout ca.key -out ca.crt")
        for name, subject, more in (
            ("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1"),
            ("admin", "/O=system:masters/CN=kubescene-admin", "extendedKeyUsage=clientAuth"),
        ):
            self._openssl(
                f"req -x509 -days 2 -CA ca.crt -CAkey ca.key -subj {subject} -addext {more} "
                f"-addext basicConstraints=critical,CA:FALSE -keyout {name}.key -out {name}.crt"
            )
        (self._folder / "tokens.csv").write_text(
            "token-of-somebody,somebody,somebody,system:masters\n"
        )

    def _openssl(self, request: str) -> None:
        words = request.split()
        key = ["-newkey", "rsa:2048", "-nodes"]
        subprocess.run(
            ["openssl", words[0], *key, *words[1:]],
            cwd=self._folder,
            check=True,
            capture_output=True,
        )

    def _start_etcd(self, program: Path) -> str:
        client, peer = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        self._start(
            program,
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )
        return client

    def _start_server(self, program: Path, store: str) -> int:
        port, folder = free_port(), self._folder
        self._start(
            program,
            f"--etcd-servers={store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={folder / 'certs'}",
            f"--tls-cert-file={folder / 'server.crt'}",
            f"--tls-private-key-file={folder / 'server.key'}",
            f"--client-ca-file={folder / 'ca.crt'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            f"--service-account-key-file={folder / 'server.key'}",
            f"--service-account-signing-key-file={folder / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--endpoint-reconciler-type=none",
            *self._options,
        )
        return port

    def _start(self, program: Path, *arguments: str) -> None:
        log = (self._folder / f"{program.name}.log").open("wb")
        with log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-c", DIE_WITH_PARENT, str(program), *arguments],
                    stdout=log,
                    stderr=log,
                    cwd=self._folder,
                )
            )

    def _wait_ready(self) -> None:
        trust = ssl.create_default_context(cafile=str(self._folder / "ca.crt"))
        clock = ScaledClock(1)
        deadline = clock.now() + READY_S * SECOND
        while not self._is_ready(trust):
            for process in self._processes:
                if process.poll() is not None or clock.now() > deadline:
                    pytest.fail(f"{process.args!r}\n{self._last_words()}")
            clock.wait_until(clock.now() + SECOND // 10)

    def _is_ready(self, trust: ssl.SSLContext) -> bool:
        request = urllib.request.Request(
            f"{self.url}/readyz", headers={"Authorization": "Bearer token-of-somebody"}
        )
        try:
            with urllib.request.urlopen(request, context=trust, timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def _last_words(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text()[-3000:]}" for log in logs)

    def _certificate(self) -> dict[str, Any]:
        return {"client-certificate": "admin.crt", "client-key-data": self._encoded("admin.key")}

    def _encoded(self, name: str) -> str:
        return base64.b64encode((self._folder / name).read_bytes()).decode()

    def _written(self, name: str, user: dict[str, Any]) -> Path:
        cluster = {"server": self.url, "certificate-authority-data": self._encoded("ca.crt")}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": name}}],
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
        }
        path = self._folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path


Ask = Callable[..., tuple[int, JsonObject]]


def asking(connection: HTTPConnection, known: dict[str, str]) -> Ask:
    """Asks over one connection; more keywords are headers."""

    def ask(
        method: str,
        path: str,
        body: Any = None,
        user: str = "",
        groups: tuple[str, ...] = (),
        **more: str,
    ) -> tuple[int, JsonObject]:
        connection.putrequest(method, path)
        data = b"" if body is None else json.dumps(body).encode()
        for name, value in {"Content-Type": "application/json", **known, **more}.items():
            connection.putheader(name, value)
        if user:
            connection.putheader("Impersonate-User", user)
        for group in groups:
            connection.putheader("Impersonate-Group", group)
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        response = connection.getresponse()
        text = response.read()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, {"text": text.decode()}

    return ask


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port
