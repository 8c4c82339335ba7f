"""A program outside that is asked as a webhook: over https, and it remembers what it was asked."""

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple

from kubescene.certificates import OpenSsl, Pem
from kubescene.types import JsonObject


class Raw(NamedTuple):
    """An answer that is no review."""

    status: int
    body: bytes
    kind: str = "application/json"


Answer = Callable[[JsonObject], "JsonObject | Raw"]
"""What a webhook answers: the ``response`` without its uid, or something else."""


def patch(*operations: JsonObject) -> JsonObject:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


ALLOWED: JsonObject = {"allowed": True}


def _allow(_: JsonObject) -> JsonObject:
    return ALLOWED


class WebhookProgram:
    """Answers by path; ``asked`` holds every review with its path and query."""

    def __init__(self, pem: Pem) -> None:
        self.pem = pem
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, JsonObject]] = []
        program = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, data, kind = program.answer(self.path, json.loads(body))
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass  # whoever asked has gone

            def log_message(self, format: str, *args: Any) -> None:
                del format, args

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            pair = Path(folder) / "pair"
            pair.write_bytes(pem.certificate + pem.key)
            context.load_cert_chain(pair)
        self._http.socket = context.wrap_socket(
            self._http.socket, server_side=True, do_handshake_on_connect=False
        )
        self._http.daemon_threads = True
        self.port: int = self._http.server_address[1]
        self._thread = Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()

    def answer(self, path: str, review: JsonObject) -> Raw:
        self.asked.append((path, review))
        name = path.partition("?")[0]
        answer: Answer = self.answers.get(name, _allow)
        made = answer(review)
        if isinstance(made, Raw):
            return made
        whole = {
            "apiVersion": review["apiVersion"],
            "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], **made},
        }
        return Raw(200, json.dumps(whole).encode())

    def requests(self, path: str = "") -> list[JsonObject]:
        """What it was asked, at a path."""
        return [
            review["request"]
            for asked, review in self.asked
            if not path or asked.partition("?")[0] == path
        ]

    def config(self, path: str) -> JsonObject:
        """The ``clientConfig`` of a webhook at a path."""
        return {
            "url": f"https://127.0.0.1:{self.port}{path}",
            "caBundle": base64.b64encode(self.pem.certificate).decode(),
        }

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def webhook_program(*hosts: str) -> Iterator[WebhookProgram]:
    pem = OpenSsl("try again").self_signed("webhook", hosts or ("127.0.0.1",))
    program = WebhookProgram(pem)
    try:
        yield program
    finally:
        program.close()


def webhook(name: str, config: JsonObject, **more: Any) -> JsonObject:
    """One webhook about ConfigMaps that are created or changed."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
        "operations": ["CREATE", "UPDATE"],
    }
    return {
        "name": name,
        "clientConfig": config,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def configuration(kind: str, name: str, *webhooks: JsonObject) -> JsonObject:
    """A configuration; ``kind`` is Mutating or Validating."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }
