"""One request: who, what, how, and its body, read within bounds."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from msgspec import Struct

from kubescene.actors import Actor
from kubescene.api.consultations import Consultation
from kubescene.api.scheme import ResourceType
from kubescene.apiserver.access import DEFAULT_ACTOR, Attributes
from kubescene.errors import BadRequestError, RequestTooLargeError
from kubescene.types import JsonValue

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = "--max-body"
"""The option that says another limit than this."""
DEFAULT_MAX_BODY = 3 * 1024 * 1024
"""kube-apiserver's limit for request bodies, in bytes."""

_TRUE = ("true", "1", "")
_NO_QUERY: dict[str, str] = {}


class ClientGoneError(Exception):
    """The client closed the connection before its request was read."""


class RequestTarget(Struct, frozen=True):
    """The resource of Kubernetes that a path names. Without ``name`` it is a collection."""

    resource_type: ResourceType
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False

    @property
    def attributes(self) -> Attributes:
        """The same for an `Authorizer`."""
        kind, plural = self.resource_type.gvk, self.resource_type.plural
        is_namespace = plural == "namespaces" and not kind.group
        namespace = self.name if is_namespace else self.namespace
        return Attributes(kind.group, kind.version, plural, self.subresource, namespace, self.name)


class Request:
    """A request as the verbs see it. Headers and query are parsed when first asked for."""

    __slots__ = (
        "_body",
        "_query",
        "actor",
        "afterwards",
        "consultation",
        "method",
        "params",
        "path",
        "receive",
        "rewrite",
        "scope",
        "send",
        "target",
        "warnings",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.method: str = scope["method"]
        self.actor: Actor = DEFAULT_ACTOR
        self.path: str = scope["path"]
        """Without the prefix that says who asks, once that is known."""
        self.target: RequestTarget | None = None
        self.params: dict[str, str] = _NO_QUERY
        """What the path has where the pattern of its row has braces."""
        self.warnings: list[str] = []
        self.rewrite: Callable[[JsonValue], JsonValue] | None = None
        """What becomes of the body before anybody acts on it."""
        self.afterwards: list[Callable[[], None]] = []
        """Who wants to know that the answer is out."""
        self.consultation = Consultation()
        """What webhooks have answered about it."""
        self._body: bytes | None = None
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """Query parameters; of a repeated one the first counts, as in Go."""
        if self._query is None:
            raw: bytes = self.scope["query_string"]
            pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True) if raw else ()
            self._query = {}
            for key, value in pairs:
                self._query.setdefault(key, value)
        return self._query

    def header(self, name: bytes) -> str:
        """A header by its lower-case name; several of the same name are joined by commas."""
        values = [value for key, value in self.scope["headers"] if key == name]
        return b",".join(values).decode("latin-1") if values else ""

    def flag(self, name: str) -> bool:
        """A boolean parameter; ``watch`` alone means true."""
        value = self.query.get(name)
        if value is None or value in ("false", "0"):
            return False
        if value.lower() in _TRUE:
            return True
        raise BadRequestError(f'strconv.ParseBool: parsing "{value}": invalid syntax ({name})')

    def number(self, name: str) -> int | None:
        """An integer parameter, or None."""
        value = self.query.get(name)
        if not value:
            return None
        try:
            return int(value)
        except ValueError:
            raise BadRequestError(
                f'strconv.ParseInt: parsing "{value}": invalid syntax ({name})'
            ) from None

    @property
    def is_dry_run(self) -> bool:
        value = self.query.get("dryRun")
        if value in (None, ""):
            return False
        if value != "All":
            raise BadRequestError(f'Invalid value: "{value}": dryRun may only be All')
        return True

    @property
    def wants_indentation(self) -> bool:
        """Whether the reply is for people: ``?pretty=true``."""
        if not self.scope["query_string"]:
            return False
        return self.query.get("pretty", "").lower() in ("1", "t", "true")

    async def body(self, limit: int, option: str = "") -> bytes:
        """The whole body; 413 once it is longer than ``limit`` bytes. May be asked for again.

        ``option`` of the server raises the limit.
        """
        if self._body is None:
            self._body = await self._read(limit, option)
        return self._body

    @property
    def body_read(self) -> bytes:
        """The body, as far as it has been asked for."""
        return self._body or b""

    @property
    def size(self) -> int:
        """Of the body, as far as it has been asked for."""
        return len(self.body_read)

    @property
    def resource(self) -> "RequestTarget":
        """The target, for those who are asked only if there is one."""
        assert self.target is not None
        return self.target

    def rewritten(self, value: JsonValue) -> JsonValue:
        return value if self.rewrite is None else self.rewrite(value)

    def finish(self) -> None:
        """The answer is out."""
        while self.afterwards:
            self.afterwards.pop()()

    async def _read(self, limit: int, option: str) -> bytes:
        announced = self.header(b"content-length")
        if announced.isdigit() and int(announced) > limit:
            raise too_large(limit, option)
        chunks, size = [], 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise too_large(limit, option)
            chunks.append(chunk)
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def too_large(limit: int, option: str = "") -> RequestTooLargeError:
    remedy = f" (kubescene serve {option} raises it)" if option else ""
    return RequestTooLargeError(f"Request entity too large: limit is {limit}{remedy}")
