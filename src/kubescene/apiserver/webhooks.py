"""Webhooks over https: one POST per question, answered within its time or not at all.

What an object names is called only where that can harm nobody: at loopback addresses, and at the
names that the command line allows. There is no network of Services here; one that is mapped to an
address on the command line is called there. What goes wrong is told in the words of kube-apiserver
v1.36. Neither the engine thread nor the event loop waits in here.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from kubescene.api.consultations import WebhookAddress, WebhookAnswer, WebhookCall
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.clock import SECOND, Deadline, WallClock
from kubescene.clock.randomness import unguessable
from kubescene.errors import ConfigurationError
from kubescene.scheduler.extenders.http import PunctualConnection, PunctualSocket, seconds_left
from kubescene.types import JsonObject

MAX_ANSWER = 8 * 1024 * 1024
AT_ONCE = 256
"""Calls that are under way; each ends by its deadline, so that more only wait."""
_CHUNK = 1 << 16
_HTTPS = 443
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "Accept-Encoding": "identity",
    "User-Agent": "kube-apiserver-admission (kubescene)",
    "Connection": "close",
}
_OK = range(200, 207)
_TOLD: Mapping[int, str] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}
_SAID_BY_SERVER = (403, 406, 415)
_JSON_TYPES: Sequence[tuple[type | tuple[type, ...], str]] = (
    (list, "array"),
    (str, "string"),
    (bool, "bool"),
    ((int, float), "number"),
    (object, "null"),
)
_UNKNOWN_AUTHORITY = frozenset((18, 19, 20, 21))
_EXPIRED = frozenset((9, 10))


class WebhookPlaces(Struct, frozen=True):
    """Where webhooks may be besides this machine; only the command line can say that."""

    hosts: frozenset[str] = frozenset()
    services: Mapping[str, tuple[str, int]] = {}
    """Host and port by ``namespace/name``."""

    @classmethod
    def of(cls, hosts: Sequence[str], services: Sequence[str]) -> "WebhookPlaces":
        """As the command line has them; raises `ConfigurationError`."""
        return cls(frozenset(hosts), dict(map(_mapped, services)))


def _mapped(text: str) -> tuple[str, tuple[str, int]]:
    service, _, place = text.partition("=")
    host, _, port = place.rpartition(":")
    if service.count("/") != 1 or not host or not port.isdecimal():
        raise ConfigurationError(
            f"--webhook-service is {text!r}: say NAMESPACE/NAME=HOST:PORT, such as "
            "default/hook=127.0.0.1:9443"
        )
    return service, (host.strip("[]"), int(port))


class _Place(NamedTuple):
    """What is called: where, by which name, and how that is written down."""

    url: str
    host: str
    port: int
    name: str
    path: str
    is_allowed: bool


class WebhookClient:
    """Calls webhooks. Any thread may ask."""

    def __init__(self, places: WebhookPlaces | None = None) -> None:
        self._places = places or WebhookPlaces()
        self._clock = WallClock()
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kubescene-webhook")

    async def answer(self, call: WebhookCall) -> WebhookAnswer:
        """The answer to one question, for somebody on an event loop."""
        return await asyncio.wrap_future(self.begin(call))

    def begin(self, call: WebhookCall) -> "Future[WebhookAnswer]":
        """Ask; the answer comes by itself, and never as an exception."""
        return self._threads.submit(self.ask, call)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def ask(self, call: WebhookCall) -> WebhookAnswer:
        """The answer to one question; the calling thread waits."""
        asked = {**call.body, "request": {**call.body["request"], "uid": _new_uid()}}
        document, error = self.post(call.address, asked, call.timeout_s)
        return WebhookAnswer(asked["request"]["uid"], document, error)

    def post(self, address: WebhookAddress, body: JsonObject, timeout_s: int) -> tuple[Any, str]:
        """What a webhook sends back, decoded; or why there is nothing."""
        url = _url_of(address)
        try:
            place = self._place(address, f"{url}?timeout={timeout_s}s")
            answered = self._exchange(place, address, orjson.dumps(body), timeout_s)
        except _NotAskedError as error:
            return None, f'Post "{url}?timeout={timeout_s}s": {error}'
        except (OSError, HTTPException, ValueError) as error:
            return None, f'Post "{url}?timeout={timeout_s}s": {_went_wrong(error)}'
        return _read(*answered)

    # -- one exchange --------------------------------------------------------------------------

    def _place(self, address: WebhookAddress, url: str) -> _Place:
        parts = urlsplit(url)
        path = f"{parts.path or '/'}?{parts.query}"
        if address.service is None:
            if parts.scheme != "https" or not parts.hostname:
                raise _NotAskedError(f'unsupported protocol scheme "{parts.scheme}"')
            host = parts.hostname
            is_allowed = host in self._places.hosts
            return _Place(url, host, parts.port or _HTTPS, host, path, is_allowed)
        namespace, name, _ = address.service
        known = self._places.services.get(f"{namespace}/{name}")
        if known is None:
            raise _NotAskedError(
                f"no Service is behind {namespace}/{name} here: say where it is with "
                f"`kubescene serve --webhook-service {namespace}/{name}=HOST:PORT`"
            )
        return _Place(url, *known, f"{name}.{namespace}.svc", path, True)

    def _exchange(
        self, place: _Place, address: WebhookAddress, body: bytes, timeout_s: int
    ) -> tuple[int, bytes, str]:
        """Status, body, and what that is."""
        deadline = Deadline(self._clock, timeout_s * SECOND)
        context = _context(address.authorities)
        raw = _connected(place, deadline)
        try:
            raw.settimeout(seconds_left(deadline))
            raw = context.wrap_socket(raw, server_hostname=place.name)
            punctual = PunctualSocket(raw)
            punctual.deadline = deadline
            connection = PunctualConnection(
                place.name, urlsplit(place.url).port or _HTTPS, punctual
            )
            connection.request("POST", place.path, body, _HEADERS)
            response = connection.getresponse()
            kind = response.getheader("Content-Type") or ""
            return response.status, b"".join(_chunks(response)), kind
        finally:
            raw.close()


class _NotAskedError(Exception):
    """Nobody was called, and why."""


def _new_uid() -> str:
    """Of one question; nobody sees it in a result."""
    text = unguessable(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"


def _url_of(address: WebhookAddress) -> str:
    """How kube-apiserver writes down where a webhook is."""
    if address.service is None:
        return address.url
    namespace, name, port = address.service
    return f"https://{name}.{namespace}.svc:{port}/{address.path.lstrip('/')}"


def _connected(place: _Place, deadline: Deadline) -> socket.socket:
    """A connection to the place: to an address that was looked at, so that no other is meant."""
    found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    targets = [(family, address) for family, _, _, _, address in found]
    foreign = [host for _, (host, *_) in targets if not ipaddress.ip_address(host).is_loopback]
    if foreign and not place.is_allowed:
        raise _NotAskedError(
            f"{place.host} is not a loopback address, and others are called only if "
            f"`kubescene serve --webhook-host {place.host}` allows it"
        )
    failure: OSError | None = None
    for family, address in targets:
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.settimeout(seconds_left(deadline))
            raw.connect(address)
        except OSError as error:
            raw.close()
            failure = error
        else:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return raw
    assert failure is not None
    if isinstance(failure, TimeoutError):
        raise failure
    target: tuple[Any, ...] = targets[-1][1]
    host, port = str(target[0]), target[1]
    shown = f"[{host}]" if ":" in host else host
    why = (failure.strerror or str(failure)).lower()
    raise _NotAskedError(f"dial tcp {shown}:{port}: connect: {why}")


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    """The body, as far as it is bearable."""
    size = 0
    while chunk := response.read(_CHUNK):
        size += len(chunk)
        if size > MAX_ANSWER:
            raise ValueError(f"the answer has more than {MAX_ANSWER} bytes")
        yield chunk


@lru_cache(maxsize=64)
def _context(authorities: bytes) -> ssl.SSLContext:
    """Whom to trust: the authorities of a configuration, or else those of the machine."""
    try:
        text = authorities.decode("ascii")
        context = ssl.create_default_context(cadata=text or None)
    except (UnicodeDecodeError, ssl.SSLError):
        raise _NotAskedError(
            "unable to load root certificates: unable to parse bytes as PEM block"
        ) from None
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)  # Go does not ask for it
    context.hostname_checks_common_name = False
    return context


def _went_wrong(error: Exception) -> str:
    """What happened to a connection, as Go tells it where there are words for it."""
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"x509: {error.verify_message}"
        if error.verify_code in _UNKNOWN_AUTHORITY:
            why = "x509: certificate signed by unknown authority"
        elif error.verify_code in _EXPIRED:
            why = "x509: certificate has expired or is not yet valid"
        return f"tls: failed to verify certificate: {why}"
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup: {error.strerror}"
    if isinstance(error, HTTPException) and not str(error):
        return "EOF"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


# -- what came back --------------------------------------------------------------------------


def _read(status: int, data: bytes, kind: str) -> tuple[Any, str]:
    """The document in an answer, or what is said of one without."""
    if status not in _OK:
        is_text = kind.startswith("text/")
        return None, _refused(status, data.decode(errors="replace").strip() if is_text else "")
    if not data:
        said = f"0-length response with status code: {status} and content type: {kind}"
        return None, said
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = ""  # what is no JSON is read as YAML there, and hardly ever more than a text
    if isinstance(document, dict):
        return document, ""
    found = next(name for of, name in _JSON_TYPES if isinstance(document, of))
    return None, (
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go "
        'value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
        '"json:\\"kind,omitempty\\"" }'
    )


def _refused(status: int, text: str) -> str:
    said = text or "unknown"
    if status in _TOLD:
        return _TOLD[status]
    if status in _SAID_BY_SERVER:
        return said
    if status >= 500:
        shown = orjson.dumps(said).decode()
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


# -- on the engine thread --------------------------------------------------------------------


class EngineWebhooks:
    """Asks for those who write on the engine thread itself: controllers, and the scheduler.

    While they wait the thread serves others, a webhook that calls back among them.
    """

    def __init__(
        self, client: WebhookClient, engine: EngineThread, is_lent: Callable[[], bool]
    ) -> None:
        self._client = client
        self._engine = engine
        self._is_lent = is_lent

    @property
    def is_open(self) -> bool:
        return not self._is_lent()

    def ask(self, calls: Sequence[WebhookCall]) -> list[WebhookAnswer]:
        begun = [*map(self._client.begin, calls)]
        return [*map(self._engine.wait_for, begun)]


def calling(client: WebhookClient, engine: EngineThread, is_lent: Callable[[], bool]) -> None:
    """Webhooks have an effect in the world of an engine from now on."""
    webhooks = engine.cluster.registry.webhooks
    engine.post(partial(webhooks.call_by, EngineWebhooks(client, engine, is_lent)))
