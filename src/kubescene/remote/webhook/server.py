"""Tells the API server whom to ask, and answers it on threads of its own.

The engine's thread waits for the API server while this one is asked by it, so the two must not be
one.

The webhook is registered while a scenario is under way, and only then: between scenarios nobody's
writes depend on this process. It *fails closed*: what the API server cannot ask about is refused,
since a write that slips in makes the result a silent lie. A cluster that is left locked by a
process that was killed is a disposable one, and is unlocked by the next start of the command, or by
``kubectl delete validatingwebhookconfiguration kubescene``. Edits of Scenarios are looked at as
well, failing open: the engine says the same when it reads them.
"""

import base64
import logging
import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import orjson

from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.clock import MILLISECOND, SECOND, Deadline, ScaledClock
from kubescene.errors import ApiError, BadRequestError, ConfigurationError, ScenarioError
from kubescene.remote.cluster import MANAGER, WEBHOOKS, RemoteCluster
from kubescene.remote.webhook.certificates import Certificate
from kubescene.remote.webhook.reviews import (
    PROBE,
    PROBED,
    REVIEWS,
    SERVER_USERS,
    AdmissionReviewer,
    answer,
)
from kubescene.scenario.fields.definition import SCENARIOS
from kubescene.types import JsonObject

GATE = "gate.kubescene.dev"
SCENARIO_EDITS = "scenarios.kubescene.dev"
TIMEOUT_S = 10
LOOK_AGAIN = 50 * MILLISECOND


class WebhookRegistration:
    """Of the webhook at ``url`` with one API server; ``bundle`` is whom it is to trust."""

    def __init__(
        self, cluster: RemoteCluster, url: str, bundle: bytes, patience_s: float = 30.0
    ) -> None:
        self._cluster = cluster
        self._url = url
        self._bundle = bundle
        self._patience_s = patience_s
        self._is_made = False

    def make(self) -> None:
        """Return when the API server asks; raises `ScenarioError` if it does not in time."""
        if self._is_made:
            return
        self._is_made = True
        configuration = webhook_configuration(self._url, self._bundle)
        options = WriteOptions(field_manager=MANAGER, force=True)
        self._cluster.remote.patch(
            WEBHOOKS, configuration, patch_type=PatchType.APPLY, options=options
        )
        try:
            self._wait()
        except ScenarioError:
            self.withdraw()
            raise

    def withdraw(self) -> None:
        """Nobody is asked any more. Safe to call twice."""
        if self._is_made:
            self._is_made = False
            self._cluster.unlock()

    def _wait(self) -> None:
        deadline = Deadline(ScaledClock(1), int(self._patience_s * SECOND))
        while (why := self._complaint()) is not None:
            if deadline.is_over:
                raise ScenarioError(
                    f"the API server does not ask the admission webhook at {self._url} after "
                    f"{self._patience_s:g} s ({why}): it must be able to reach that address "
                    "(--webhook-host, --webhook-port)"
                )
            self._cluster.mirror.hear(LOOK_AGAIN / SECOND)

    def _complaint(self) -> str | None:
        """Why a write that the webhook refuses was not refused by it; None if it was."""
        probe = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": PROBE, "namespace": "default"},
        }
        options = WriteOptions(dry_run=True)
        try:
            self._cluster.remote.create(probe, options=options)
        except ApiError as error:
            return None if PROBED in error.message else error.message
        return "it lets everything pass"


def webhook_configuration(url: str, bundle: bytes) -> JsonObject:
    """What is registered. Bookkeeping, and what the server does for itself, is not asked about."""
    client = {"url": url, "caBundle": base64.b64encode(bundle).decode()}
    return {
        "apiVersion": WEBHOOKS.gvk.api_version,
        "kind": WEBHOOKS.gvk.kind,
        "metadata": {"name": WEBHOOKS.name},
        "webhooks": [
            _webhook(GATE, client, "Fail", "*", "*/*", _conditions()),
            _webhook(SCENARIO_EDITS, client, "Ignore", SCENARIOS.group, "*/*"),
        ],
    }


def _webhook(
    name: str,
    client: JsonObject,
    policy: str,
    group: str,
    resources: str,
    conditions: list[JsonObject] | None = None,
) -> JsonObject:
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": [resources],
        "scope": "*",
    }
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": policy,
        "matchPolicy": "Equivalent",
        "matchConditions": conditions or [],
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
    }


def _conditions() -> list[JsonObject]:
    groups = [*sorted(REVIEWS), "coordination.k8s.io", "events.k8s.io", SCENARIOS.group]
    users = sorted(SERVER_USERS)
    conditions = {
        "not-bookkeeping": f"!(request.resource.group in {groups})",
        "not-an-event": "request.resource.group != '' || request.resource.resource != 'events'",
        "not-the-server": f"!(request.userInfo.username in {users})",
    }
    return [{"name": name, "expression": text} for name, text in conditions.items()]


PATH = "/admit"
MAX_BODY = 8 * 1024 * 1024
"""An object of three megabytes, the most that an API server takes, before and after."""
IDLE_S = 120
SLOWEST_HANDSHAKE_S = 10

_log = logging.getLogger(__name__)


class Webhook(ThreadingHTTPServer):
    """Listens from the start, answers from `start` to `stop`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, judge: AdmissionReviewer, certificate: Certificate, host: str, port: int
    ) -> None:
        self.judge = judge
        self._tls = certificate.tls
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            raise ConfigurationError(
                f"the webhook cannot listen on {host}:{port}: {error.strerror or error}; choose "
                "another --webhook-port or --webhook-host"
            ) from None
        self._open: set[socket.socket] = set()
        shown = f"[{host}]" if ":" in host else host
        self.url = f"https://{shown}:{self.server_port}{PATH}"
        self._thread = Thread(target=self.serve_forever, name="kubescene-webhook", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Answer nobody any more, also not on connections that are kept. Safe to call twice."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()
        for connection in self._open.copy():
            with suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """On the thread of the connection, so that a slow handshake keeps nobody else waiting."""
        request.settimeout(SLOWEST_HANDSHAKE_S)
        with self._tls.wrap_socket(request, server_side=True) as secured:
            self._open.add(secured)
            try:
                super().finish_request(secured, client_address)
            finally:
                self._open.discard(secured)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever hangs up, or does not speak TLS, is not worth a traceback."""
        _log.debug("a connection of %s to the webhook failed", client_address, exc_info=True)


class Handler(BaseHTTPRequestHandler):
    """One connection of the API server."""

    server: Webhook
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if self.path.partition("?")[0] != PATH or not length.isdecimal():
            self._reply(404, {"message": f"the webhook answers at {PATH}"})
            return
        if int(length) > MAX_BODY:
            self.close_connection = True
            self._reply(413, {"message": f"a review may have {MAX_BODY} bytes"})
            return
        try:
            self._reply(200, answer(self.server.judge, orjson.loads(self.rfile.read(int(length)))))
        except (orjson.JSONDecodeError, BadRequestError) as error:
            self._reply(400, {"message": str(error)})

    def _reply(self, code: int, body: JsonObject) -> None:
        data = orjson.dumps(body)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: every write of the cluster would be a line."""
