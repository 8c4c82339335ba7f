"""Answers the API server, on threads of its own.

The engine's thread waits for the API server while this one is asked by it, so the two must not be
one.
"""

import logging
import socket
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import orjson

from kubescene.errors import BadRequestError, ConfigurationError
from kubescene.remote.webhook.certificates import Certificate
from kubescene.remote.webhook.reviews import AdmissionReviewer, answer
from kubescene.types import JsonObject

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
